"""`routeyard fingerprint` and `routeyard hidden-states` on a release, offline."""

from __future__ import annotations

import json
import math
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from routeyard.datacards.card import render
from routeyard.flows.cli import run
from routeyard.flows.workspace import MAKERS
from routeyard.pipelines.release.build import write_release
from routeyard.schemas import CONTRACTS, LABELS, MODELS, QUERIES, RESPONSES, SPLITS
from tests.calls.loopback import Loopback, answer, completion

N = 12


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    """Twelve queries (six of them validation), two models' answers."""
    ids = [f"q{i:020x}" for i in range(N)]
    queries = QUERIES.from_rows(
        {
            "query_id": ids[i], "source": "s", "source_id": str(i), "task": "t", "domain": "math",
            "question": f"{i}+1?", "prompt": f"What is {i} + 1?", "choices": [],
            "references": [str(i + 1)], "scorer": "numeric", "metadata": "{}",
        }
        for i in range(N)
    )  # fmt: skip
    models = MODELS.from_rows(
        {"model_id": name, "kind": "real", "simulated": False} for name in ("m0", "m1")
    )
    pairs = [(i, m) for i in range(N) for m in ("m0", "m1") if (i, m) != (1, "m1")]
    responses = RESPONSES.from_rows(
        {
            "query_id": ids[i], "model_id": m, "sample": 0, "status": "ok", "attempts": 1,
            "text": f"The answer is {i + 1}." if m == "m0" else "fox " * (i + 1),
        }
        for i, m in pairs
    )  # fmt: skip
    labels = LABELS.from_rows(
        {
            "query_id": ids[i], "model_id": m, "score": float(m == "m0"), "correct": m == "m0",
            "decided_by": "numeric", "contested": False, "n_samples": 1,
        }
        for i, m in pairs
    )  # fmt: skip
    splits = SPLITS.from_rows(
        {"scheme": "dense", "query_id": q, "split": "validation" if i < 6 else "train"}
        for i, q in enumerate(ids)
    )
    tables = {
        "queries": queries, "models": models, "responses": responses, "labels": labels,
        "splits": splits,
    }  # fmt: skip
    root = tmp_path_factory.mktemp("releases")
    recipe = {"name": "tiny", "version": "1.0.0"}
    return write_release(tables, recipe=recipe, root=root, render_card=render, code="test").path


def routeyard(*words: object) -> int:
    return run([str(word) for word in words])


def descriptors(path) -> dict[str, tuple[np.ndarray, dict]]:
    table = CONTRACTS["descriptors"].check(pq.read_table(path))
    return {
        row["model_id"]: (np.array(row["vector"]), json.loads(row["metadata"]))
        for row in table.to_pylist()
    }


def test_footprints_of_local_models(release, gpt2, llama, tmp_path):
    out = tmp_path / "d.parquet"
    words = ["fingerprint", release, "--local", f"small={gpt2}", "--local", f"other={llama}",
             "--out", out, "--steps", 4, "--tokens", 16, "--device", "cpu"]  # fmt: skip
    assert routeyard(*words) == 0
    first = out.read_bytes()
    found = descriptors(out)
    assert set(found) == {"small", "other"}
    # Six queries are validation; the six that are trained on are never probed.
    assert found["small"][1]["probes"] == [f"q{i:020x}" for i in range(6)]
    assert routeyard(*words) == 0
    assert out.read_bytes() == first


#: Where the server of a test listens now.
ADDRESS: dict[str, str] = {}


@contextmanager
def address(root):
    yield ADDRESS["now"]


def test_footprints_through_an_api_are_asked_once(release, tmp_path, capsys, monkeypatch):
    def behave(body, seen):
        assert (body["temperature"], body["max_tokens"]) == (0.0, 3)
        top = [{"token": "A", "logprob": math.log(0.5)}, {"token": "B", "logprob": math.log(0.25)}]
        content = [{"token": "A", "logprob": math.log(0.5), "top_logprobs": top}]
        choice = {"index": 0, "message": {"role": "assistant", "content": "A"},
                  "finish_reason": "length", "logprobs": {"content": content}}  # fmt: skip
        return answer(completion(choices=[choice]))

    with Loopback(behave) as server:
        recipe = {
            "name": "tiny", "version": "1.0.0",
            "sources": [{"name": "s", "path": "x.jsonl", "fields": {"question": "q"}}],
            "pool": {"models": [{"model_id": "m0"}],
                     "providers": [{"name": "local", "base_url": server.base_url}]},
        }  # fmt: skip
        path = tmp_path / "recipe.yaml"
        path.write_text(yaml.safe_dump(recipe))
        words = ["fingerprint", release, "--recipe", path, "--workspace", tmp_path / "yard",
                 "--steps", 3, "--out", tmp_path / "d.parquet"]  # fmt: skip
        # What it may cost is said without a call.
        assert routeyard(*words, "--plan", "--json") == 0
        asked = json.loads(capsys.readouterr().out)["asked"]
        assert asked == [{"model_id": "m0", "calls": 6, "most_usd": None}]
        priced = recipe | {"pool": recipe["pool"] | {"models": [
            {"model_id": "m0", "price_in": 1.0, "price_out": 1000.0, "price_date": "2026-11-01"}
        ]}}  # fmt: skip
        (tmp_path / "priced.yaml").write_text(yaml.safe_dump(priced))
        assert routeyard(*words, "--recipe", tmp_path / "priced.yaml", "--plan", "--json") == 0
        most = json.loads(capsys.readouterr().out)["asked"][0]["most_usd"]
        # Three tokens of each answer at 1,000 USD per million, and the prompts.
        assert 6 * 3 * 1000 / 1e6 < most < 6 * 3 * 1000 / 1e6 + 6 * 1000 / 1e6
        assert server.requests == 0
        assert routeyard(*words) == 0
        assert routeyard(*words) == 0
        assert server.requests == 6
        # A recipe whose server is made on the spot, as that of the real model is, is served too.
        made = recipe | {"pool": recipe["pool"] | {"providers": [
            {"name": "local", "base_url": "${ROUTEYARD_REAL_URL}"}
        ]}}  # fmt: skip
        (tmp_path / "made.yaml").write_text(yaml.safe_dump(made))
        ADDRESS["now"] = server.base_url
        monkeypatch.delenv("ROUTEYARD_REAL_URL", raising=False)
        monkeypatch.setitem(MAKERS.targets, "ROUTEYARD_REAL_URL", f"{__name__}:address")
        words[words.index(path)] = tmp_path / "made.yaml"
        words[words.index(tmp_path / "yard")] = tmp_path / "other"
        assert routeyard(*words) == 0
        assert server.requests == 12
    vector, said = descriptors(tmp_path / "d.parquet")["m0"]
    assert said["unreturned_mass"] == pytest.approx(0.25)
    assert vector.tolist() == [1.0]


def test_perplexity_fingerprints_of_released_answers(release, gpt2, tmp_path):
    out = tmp_path / "d.parquet"
    assert routeyard("fingerprint", release, "--kind", "perplexity_fingerprint",
                     "--language-model", gpt2, "--out", out, "--device", "cpu") == 0  # fmt: skip
    found = descriptors(out)
    assert set(found) == {"m0", "m1"}
    vector, said = found["m1"]
    assert said["dropped_probes"] == [f"q{1:020x}"]  # m1 did not answer it
    assert vector.var() == pytest.approx(1, abs=1e-5)


def test_text_footprints_need_the_released_answers_alone(release, tmp_path):
    out = tmp_path / "text.parquet"
    words = ("fingerprint", release, "--kind", "text_footprint", "--steps", 0, "--tokens", 3)
    assert routeyard(*words, "--out", out) == 0
    found = descriptors(out)
    # m1 did not answer the second query; of the other five probes m1 says fox 1+3+4+5+6 times.
    assert found["m0"][1]["tokens"] == ["fox", ".", "answer"]
    assert len(found["m0"][1]["dropped_probes"]) == 1
    assert found["m0"][0] == pytest.approx([0, 2**-0.5, 2**-0.5], abs=1e-6)
    assert found["m1"][0] == pytest.approx([1, 0, 0], abs=1e-6)
    assert found["m1"][1]["words"] == 19
    first = tmp_path / "first.parquet"
    assert routeyard(*words[:5], 1, "--out", first) == 0
    assert descriptors(first)["m0"][1]["words"] == 5
    # A logit footprint without steps describes nothing.
    assert routeyard("fingerprint", release, "--local", "x=y", "--steps", 0) == 2


def test_hidden_states_resume(release, llama, tmp_path, capsys):
    out = tmp_path / "states"
    words = ["hidden-states", release, "--model", llama, "--out", out, "--shard-size", 5,
             "--device", "cpu"]  # fmt: skip
    assert routeyard(*words) == 0
    files = sorted(out.glob("part-*.parquet"))
    table = pa.concat_tables([pq.read_table(file) for file in files])
    assert CONTRACTS["hidden_states"].check(table).num_rows == N * 4
    files[1].unlink()
    assert routeyard(*words) == 0
    assert "(1 files written, 2 were there)" in capsys.readouterr().out
    assert routeyard("hidden-states", release, "--model", llama, "--out", tmp_path / "v",
                     "--split", "validation") == 0  # fmt: skip
    assert len(pq.read_table(tmp_path / "v" / "part-00000.parquet")) == 6 * 4


def test_what_is_read_is_said_before_weights_are_loaded(
    release, llama, gpt2, tmp_path, capsys, monkeypatch
):
    from safetensors.numpy import load_file

    from routeyard.pipelines.evaluate import signals as local_model

    def refuse(*_, **__):
        raise AssertionError("weights were loaded")

    monkeypatch.setattr(local_model, "load", refuse)
    out = tmp_path / "states"
    words = ["hidden-states", release, "--model", llama, "--out", out, "--device", "cpu"]
    assert routeyard(*words, "--plan", "--json") == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    arrays = load_file(llama / "model.safetensors").values()
    assert found["parameters"] == sum(a.size for a in arrays)
    assert found["texts"] == N
    assert found["tokens"] > N
    assert f"{N:,} texts" in said.err
    assert not out.exists()
    words = ["fingerprint", release, "--local", f"s={gpt2}", "--steps", 4, "--device", "cpu"]
    assert routeyard(*words, "--plan", "--json") == 0
    (local,) = json.loads(capsys.readouterr().out)["local"]
    assert local["texts"] == 6
    words = ["fingerprint", release, "--kind", "perplexity_fingerprint", "--language-model", gpt2]
    assert routeyard(*words, "--device", "cpu", "--plan", "--json") == 0
    (local,) = json.loads(capsys.readouterr().out)["local"]
    assert local["texts"] == 11  # two models, one of which left a probe out


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ([], "no model to probe"),
        (["--local", "small"], "is not NAME=FOLDER"),
        (["--local", "small=/nowhere/at/all"], "cannot be loaded"),
        (["--kind", "perplexity_fingerprint"], "needs the language model"),
        (["--scheme", "sparse", "--local", "a=b"], "no validation query"),
    ],
)
def test_bad_input_exits_2_with_a_next_step(release, capsys, more, says):
    assert routeyard("fingerprint", release, *more) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "next:" in said
