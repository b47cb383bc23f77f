"""The real loading code on a tiny NLI model, offline."""

from __future__ import annotations

import itertools
import json
import shutil

import numpy as np
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.curate.entailment import (
    BACKENDS,
    CrossEncoderEntailment,
    Pair,
    entailment_label,
)
from routeyard.pipelines.curate.preference import AnswerGroup, answer_key, cluster

ANSWERS = ["paris", "london", "rome", "it is paris", "paris is a city", "1 2 3", "4"]
QUESTION = "what is the capital of france ?"


@pytest.fixture(scope="session")
def backend(nli):
    return CrossEncoderEntailment(str(nli), batch_size=4, device="cpu")


def pairs():
    return [Pair(QUESTION, a, b) for a, b in itertools.permutations(ANSWERS, 2)]


def test_decides_as_the_model_itself_does(backend, nli):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(nli, local_files_only=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(nli, local_files_only=True)
    expected = []
    for pair in pairs():
        first, second = (f"{QUESTION} {text}" for text in (pair.premise, pair.hypothesis))
        with torch.inference_mode():
            logits = model(**tokenizer(first, second, return_tensors="pt")).logits[0]
        expected.append(bool(logits.argmax() == 2))
    assert backend.entails(pairs()) == expected
    assert 0 < sum(expected) < len(expected)
    assert backend.name == "cross_encoder:tiny-nli"


def test_label_order_is_read_from_the_config(backend, nli, tmp_path):
    # Published models disagree on it; a fixed index would cluster contradictions.
    folder = tmp_path / "relabelled"
    shutil.copytree(nli, folder)
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {"0": "ENTAILMENT", "1": "neutral", "2": "contradiction"}
    config["label2id"] = {label: int(i) for i, label in config["id2label"].items()}
    (folder / "config.json").write_text(json.dumps(config))
    other = CrossEncoderEntailment(str(folder), device="cpu")
    both = np.array([backend.entails(pairs()), other.entails(pairs())])
    assert both[1].any()
    assert not both.all(axis=0).any()


def test_models_without_the_label_are_refused(nli, tmp_path):
    with pytest.raises(BadInput, match="LABEL_0, LABEL_1"):
        entailment_label({0: "LABEL_0", 1: "LABEL_1"}, where="m")
    with pytest.raises(BadInput, match="cannot be loaded"):
        CrossEncoderEntailment(str(tmp_path))


def test_clusters_equal_the_plain_loop_through_the_same_model(backend):
    groups = [
        AnswerGroup(QUESTION, tuple(chosen), tuple(answer_key(a, None) for a in chosen))
        for chosen in itertools.combinations(ANSWERS[:6], 4)
    ]
    result = cluster(groups, backend)
    for group, found in zip(groups, result.assignments, strict=True):
        representatives: list[str] = []
        clusters = []
        for answer in group.answers:
            for number, r in enumerate(representatives):
                both = [Pair(QUESTION, r, answer), Pair(QUESTION, answer, r)]
                if all(backend.entails(both)):
                    clusters.append(number)
                    break
            else:
                clusters.append(len(representatives))
                representatives.append(answer)
        assert found.tolist() == clusters
    # Every ordered pair of the answers is asked once, whatever the number of queries.
    assert result.calls <= len(pairs()) < result.calls_naive


def test_pairs_longer_than_the_model_are_counted(nli):
    backend = CrossEncoderEntailment(str(nli), device="cpu", with_question=False)
    long = "paris " * 40
    assert len(backend.entails([Pair("", long, "rome"), Pair("", "rome", "rome")])) == 2
    # Two answers that differ after the cut look the same to the model.
    assert backend.truncated == 1


def test_every_backend_is_listed():
    assert BACKENDS.get("cross_encoder") is CrossEncoderEntailment
    listed = {target.partition(":")[0] for target in BACKENDS.builtin.values()}
    assert listed == {"routeyard.pipelines.curate.entailment"}
    for name in BACKENDS.names():
        assert callable(BACKENDS.get(name).entails)
