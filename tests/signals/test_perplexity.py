"""Perplexity fingerprints under a real (tiny) language model."""

from __future__ import annotations

import json

import numpy as np
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.signals import (
    load,
    negative_log_likelihoods,
    perplexity_fingerprints,
)

TEXTS = ["Paris is the capital of France.", "4", "", "the lazy dog, 17 times" * 3, "B"]


def test_nll_equals_the_librarys_own_loss(loaded):
    # Padding must enter neither the sum nor the number of tokens.
    import torch

    found = negative_log_likelihoods(loaded, TEXTS, batch_size=2)
    assert np.isnan(found[2])
    for text, value in zip(TEXTS, found, strict=True):
        ids = [loaded.tokenizer.bos_token_id, *loaded.tokenizer(text)["input_ids"]]
        if len(ids) > 1:
            inputs = torch.tensor([ids[: loaded.max_length]])
            with torch.inference_mode():
                expected = float(loaded.model(inputs, labels=inputs).loss)
            assert value == pytest.approx(expected, rel=1e-4)


def test_centred_to_unit_variance(loaded):
    nll = {
        "m": negative_log_likelihoods(loaded, TEXTS[:2] + TEXTS[3:]),
        "n": np.array([1.0, 2.0, 3.0, 6.0]),
    }
    table = perplexity_fingerprints(nll, ["q1", "q2", "q3", "q4"], "tiny-gpt2")
    for row in table.to_pylist():
        vector = np.array(row["vector"])
        assert vector.mean() == pytest.approx(0, abs=1e-6)
        assert vector.var() == pytest.approx(1, abs=1e-5)
    said = json.loads(table.to_pylist()[1]["metadata"])
    assert said["language_model"] == "tiny-gpt2"
    assert said["mean_nll"] == 3.0


def test_a_probe_one_model_did_not_answer_is_dropped_for_all_and_named():
    nll = {"m": np.array([1.0, np.nan, 3.0, 5.0]), "n": np.array([2.0, 2.0, 4.0, 9.0])}
    rows = perplexity_fingerprints(nll, ["q1", "q2", "q3", "q4"], "lm").to_pylist()
    for row in rows:
        assert len(row["vector"]) == 3
        assert json.loads(row["metadata"])["dropped_probes"] == ["q2"]
    with pytest.raises(BadInput, match="only 1 of 2"):
        perplexity_fingerprints({"m": np.array([1.0, np.nan])}, ["q1", "q2"], "lm")


def test_a_constant_model_is_zero_and_says_so():
    row = perplexity_fingerprints({"m": np.full(3, 2.5)}, list("abc"), "lm").to_pylist()[0]
    assert row["vector"] == [0, 0, 0]
    assert json.loads(row["metadata"])["constant"] is True


def test_what_is_not_a_model_is_refused(tmp_path):
    with pytest.raises(BadInput, match="cannot be loaded"):
        load(str(tmp_path))
    with pytest.raises(BadInput, match="no dtype"):
        load(str(tmp_path), dtype="float99")
