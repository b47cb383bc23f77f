"""Logit footprints from servers' top log-probabilities and from local models."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.usage import Token
from routeyard.pipelines.evaluate.signals import (
    Trace,
    footprints,
    frequent_tokens,
    load,
    trace_local,
    trace_tokens,
)
from routeyard.schemas import CONTRACTS

PROMPTS = ["What is 2 + 2?", "The capital of France", "fox", "Answer: B. The quick brown fox"]


def token(name, p, *others):
    top = [(name, math.log(p))] + [(other, math.log(q)) for other, q in others]
    return Token(name, math.log(p), tuple(top))


def rows(table):
    return {row["model_id"]: (np.array(row["vector"]), json.loads(row["metadata"]))
            for row in table.to_pylist()}  # fmt: skip


def test_by_hand():
    # Two probes of one step. Means: A (0.6 + 0.2) / 2 = 0.4, B (0.3 + 0.7) / 2 = 0.5.
    answers = [[token("A", 0.6, ("B", 0.3))], [token("B", 0.7, ("A", 0.2))]]
    vector, said = rows(footprints({"m": trace_tokens(answers)}, ["q1", "q2"], k=2))["m"]
    assert said["tokens"] == ["A", "B"]
    assert vector == pytest.approx(np.array([0.4, 0.5]) / math.hypot(0.4, 0.5))
    assert said["norm"] == pytest.approx(math.hypot(0.4, 0.5))
    assert said["unreturned_mass"] == pytest.approx(0.1)
    assert said["returned_share"] == 1.0


def test_what_was_not_returned_is_reported():
    # B was never returned for model n: its 0 in the vector must not pass for a measured 0.
    traces = {
        "m": trace_tokens([[token("B", 0.9, ("A", 0.1))]]),
        "n": trace_tokens([[Token("A", math.log(0.6))]]),
    }
    found = rows(footprints(traces, ["q1"], k=2))
    assert found["n"][1]["unreturned_mass"] == pytest.approx(0.4)
    assert found["n"][1]["returned_share"] == 0.5
    assert found["m"][1]["unreturned_mass"] == pytest.approx(0.0, abs=1e-12)


def test_tokens_are_ranked_over_all_models_and_ties_by_string():
    traces = {
        "m": Trace(4, {" b": 3, "a": 1}, {}, {}, 0.0),
        "n": Trace(4, {"c": 1, "a": 3}, {}, {}, 0.0),
    }
    assert frequent_tokens(traces, k=3) == ["a", " b", "c"]
    assert frequent_tokens(traces, k=1) == ["a"]


def test_only_the_first_steps_count():
    answer = [token("A", 0.5), token("B", 0.5), token("C", 0.5)]
    assert trace_tokens([answer], steps=2).chosen == {"A": 1, "B": 1}


def test_a_model_without_probabilities_is_refused():
    with pytest.raises(BadInput, match="'silent'"):
        footprints({"m": trace_tokens([[token("A", 0.5)]]), "silent": trace_tokens([])}, ["q"])


def test_local_model_equals_one_forward_pass_per_step(loaded):
    # Left padding, the key-value cache and batching must change nothing.
    import torch

    steps = 4
    trace = trace_local(loaded, PROMPTS, steps=steps, batch_size=3)
    total: dict[int, float] = {}
    chosen: dict[int, int] = {}
    for prompt in PROMPTS:
        ids = loaded.tokenizer(prompt)["input_ids"]
        for _ in range(steps):
            with torch.inference_mode():
                p = loaded.model(torch.tensor([ids])).logits[0, -1].double().softmax(-1)
            best = int(p.argmax())
            if best == loaded.tokenizer.eos_token_id:
                break
            for i, value in enumerate(p.tolist()):
                total[i] = total.get(i, 0.0) + value
            chosen[best] = chosen.get(best, 0) + 1
            ids.append(best)
    assert trace.steps == sum(chosen.values())
    assert sum(trace.chosen.values()) == trace.steps
    assert sum(trace.mass.values()) == pytest.approx(trace.steps)
    for i, count in chosen.items():
        string = loaded.tokenizer.decode([i])
        same = [j for j in total if loaded.tokenizer.decode([j]) == string]
        assert trace.mass[string] == pytest.approx(sum(total[j] for j in same), rel=1e-4)
        assert trace.chosen[string] >= count


def test_the_models_own_generation_settings_change_nothing(loaded, gpt2, tmp_path):
    # Published chat models ship a repetition penalty; greedy steps must not inherit it.
    folder = tmp_path / "tiny-gpt2"
    shutil.copytree(gpt2, folder)
    settings = {"repetition_penalty": 50.0, "eos_token_id": 0}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    penalised = load(str(folder), device="cpu")
    assert trace_local(penalised, PROMPTS, steps=6) == trace_local(loaded, PROMPTS, steps=6)


def test_two_architectures_share_axes(loaded, loaded_llama):
    traces = {m.name: trace_local(m, PROMPTS, steps=5) for m in (loaded, loaded_llama)}
    table = footprints(traces, [f"q{i}" for i in range(4)], k=8, steps=5)
    assert CONTRACTS["descriptors"].check(table)
    found = rows(table)
    assert set(found) == {"tiny-gpt2", "tiny-llama"}
    for vector, said in found.values():
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
        assert len(vector) == len(said["tokens"])
        assert said["unreturned_mass"] == 0.0
        assert said["returned_share"] == 1.0
    assert footprints(traces, [f"q{i}" for i in range(4)], k=8, steps=5).equals(table)
