"""`routeyard build` with a `preference` rule: from a local server's samples to a release."""

from __future__ import annotations

import hashlib
import json
import math

import pytest
import yaml

from routeyard.flows.cli import run
from routeyard.pipelines.release.reader import open_release
from tests.calls.loopback import Loopback, answer, completion

N, SAMPLES = 24, 4
SKILL = {"large": 0.9, "small": 0.5}


def behave(body, seen):
    prompt, model = body["messages"][-1]["content"], body["model"]
    i = int(prompt.split()[2])
    digest = hashlib.sha256(f"{model}|{i}|{body['seed']}".encode()).digest()
    right = digest[0] / 256 < SKILL[model]
    text = f"Answer: {2 * i if right else 2 * i + 1 + digest[1] % 3}"
    top = [{"token": "Answer", "logprob": math.log(0.7)}, {"token": "It", "logprob": -2.0}]
    content = [{"token": "Answer", "logprob": math.log(0.7), "top_logprobs": top}]
    choice = {
        "index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop",
        "logprobs": {"content": content},
    }  # fmt: skip
    return answer(completion(choices=[choice], model=model))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    questions = [{"q": f"What is {i} + {i}?", "a": str(2 * i)} for i in range(N)]
    (folder / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    with Loopback(behave) as server:
        recipe = {
            "name": "sums",
            "version": "1.0.0",
            "sources": [
                {
                    "name": "sums", "path": "sums.jsonl", "task": "sums", "domain": "math",
                    "scorer": "numeric", "fields": {"question": "q", "references": ["{{ a }}"]},
                }
            ],
            "pool": {
                "models": [{"model_id": name} for name in SKILL],
                "providers": [{"name": "local", "base_url": server.base_url}],
            },
            "collect": {
                "samples": SAMPLES, "temperature": 1.0, "logprobs": True, "top_logprobs": 2,
            },
            "curate": [{"rule": "preference", "strong": "large", "weak": "small"}],
            "release": {
                "waivers": [
                    {"gate": "metering", "reason": "a test's server stands in for models"}
                ]
            },
        }  # fmt: skip
        path = folder / "recipe.yaml"
        path.write_text(yaml.safe_dump(recipe))
        assert run(["build", str(path), "--workspace", str(folder / "yard")]) == 0
        asked = server.requests
        assert run(["build", str(path), "--workspace", str(folder / "yard")]) == 0
        assert server.requests == asked == N * SAMPLES * len(SKILL)
    return folder / "yard" / "releases" / "sums" / "1.0.0"


def test_release_holds_pairs_entropies_and_signals(built):
    with open_release(built) as release:
        assert {"preferences", "entropies", "signals"} <= set(release.tables)
        pairs = release.arrow("preferences")
        assert pairs.num_rows == N
        assert set(pairs.column("estimator").to_pylist()) == {"sequence_probability"}
        assert release.arrow("signals").num_rows == N * SAMPLES
    card = (built / "README.md").read_text()
    assert "## Preference pairs: large (strong) and small (weak)" in card
    assert "\n| 0.1 |" in card
    assert run(["verify", str(built)]) == 0


def test_datasets_loads_the_table_and_the_export(built, tmp_path):
    import datasets

    loaded = datasets.load_dataset(
        str(built), "preferences", split="train", cache_dir=str(tmp_path / "cache")
    )
    assert {"id", "model_a", "model_b", "prompt", "winner_tie", "delta"} <= set(loaded.column_names)
    assert len(loaded) == N
    out = tmp_path / "pairs.csv"
    assert run(["export", "preferences", str(built), str(out)]) == 0
    exported = datasets.load_dataset(
        "csv", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert exported.column_names == [
        "id", "model_a", "model_b", "prompt", "response_a", "response_b",
        "winner_model_a", "winner_model_b", "winner_tie",
    ]  # fmt: skip
    assert run(["import", "preferences", str(out), "-w", str(tmp_path / "yard")]) == 0
    assert run(["export", "preferences", str(built), str(out), "--split", "nowhere"]) == 0
