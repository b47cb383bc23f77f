"""Fitted routers come back from disk with the same scores to the last bit."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from routeyard.flows.evaluation.route import route
from routeyard.pipelines.common.errors import BadInput, RouteyardError, Unsafe
from routeyard.pipelines.common.matrix import Arms
from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers.base import traits_of
from routeyard.pipelines.routers.saved import load, save, tuned_encoder


def examples(n: int, seed: int) -> Examples:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = (rng.random((n, 3)) < 0.3 + 0.5 * (vectors[:, :3] > 0)).astype(float)
    labels[rng.random((n, 3)) < 0.1] = np.nan
    tasks = np.array([f"t{k}" for k in rng.integers(0, 3, n)])
    shown = ("margin", "entropy", "max_logit", "self_assessment", "semantic_entropy[discrete]")
    queries = Queries(
        tuple(f"q{i}" for i in range(n)), tasks, vectors,
        signals={name: rng.random((n, 3)) for name in shown},
        hidden=rng.normal(size=(n, 3, 8)).astype(np.float32), hidden_of="b",
    )  # fmt: skip
    descriptors = {"text_footprint": np.eye(3, 5, dtype=np.float32)}
    usd = np.tile([1.0, 2.0, 4.0], (n, 1))
    arms = Arms(np.zeros(3), np.array([50.0, 400.0, np.nan]), np.ones(3), np.ones(3))
    return Examples(queries, ("a", "b", "c"), labels, {"usd": usd}, None, descriptors, arms)


@pytest.mark.parametrize("name", sorted(ROUTERS.builtin))
def test_what_is_loaded_scores_as_what_was_saved(name: str, tmp_path: Path) -> None:
    made = ROUTERS.get(name)
    setting = {"seed": 7} if traits_of(made).stochastic else {}
    if name == "mirt":
        setting |= {"mix": 0.3}
    router = made(**setting)
    router.fit(examples(80, 0))
    save(
        router, tmp_path / "r", setting=setting, model_ids=("a", "b", "c"), encoder="e",
        encoder_hash="h", price=np.array([1.0, 2.0, 3.0]),
    )  # fmt: skip
    found, words = load(tmp_path / "r")
    test = examples(30, 1).queries
    assert np.array_equal(found.scores(test), router.scores(test))
    assert words["model_ids"] == ["a", "b", "c"]
    assert words["price"].tolist() == [1.0, 2.0, 3.0]
    assert {path.suffix for path in (tmp_path / "r").iterdir()} == {".json", ".safetensors"}


def test_a_broken_folder_is_refused_and_a_foreign_router_is_not_saved(tmp_path: Path) -> None:
    router = ROUTERS.get("ridge")()
    router.fit(examples(20, 0))
    save(router, tmp_path, setting={}, model_ids=("a", "b", "c"), encoder="e", encoder_hash="h")
    words = json.loads((tmp_path / "router.json").read_text())
    (tmp_path / "router.json").write_text(json.dumps(words | {"format": 99}))
    with pytest.raises(BadInput, match="format 99"):
        load(tmp_path)
    (tmp_path / "router.safetensors").write_bytes(b"no tensors")
    with pytest.raises(BadInput, match="no saved router"):
        load(tmp_path)

    class Mine:
        name = "mine"

    with pytest.raises(BadInput, match="no registered router"):
        save(Mine(), tmp_path, setting={}, model_ids=("a",), encoder="e", encoder_hash="h")


@pytest.mark.parametrize(
    "change",
    [
        "[" * 50_000,
        "[]",
        "{}",
        {"router": 7},
        {"router": "os.system"},
        {"setting": {"dict": {"command": "id"}}},
        {"setting": {"dict": {}, "list": []}},
        {"setting": {"array": ["state.a"]}},
        {"setting": {"dict": 3}},
        {"state": {"dict": {"scores": "not a method any more"}}},
        {"state": {"dict": {"__class__": "str"}}},
        {"state": {"bytes": "no hex"}},
        {"model_ids": [["a"]]},
        {"model_ids": None},
        {"encoder": None},
        {"encoder_hash": 5},
        {"model_ids": ["a", "b"]},  # another number than it has prices
    ],
)
def test_a_strangers_router_is_values_and_nothing_else(change: object, tmp_path: Path) -> None:
    """Whatever stands in it, it is loaded as values of a registered router or refused in words."""
    router = ROUTERS.get("ridge")()
    router.fit(examples(20, 0))
    about = {"model_ids": ("a", "b", "c"), "encoder": "e", "encoder_hash": "h"}
    save(router, tmp_path, setting={}, **about, price=np.ones(3))
    path = tmp_path / "router.json"
    words = json.loads(path.read_text())
    path.write_text(json.dumps(words | change) if isinstance(change, dict) else str(change))
    with pytest.raises(RouteyardError):
        load(tmp_path)


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("os.system", ""),
        ("sentence_transformers.models.Router", ""),
        ("sentence_transformers.util.import_from_string", ""),
        ("sentence_transformers.models.Transformer", "../../elsewhere"),
        ("sentence_transformers.models.Pooling", "/tmp/elsewhere"),
    ],
)
def test_an_encoder_of_a_stranger_is_made_of_plain_parts(
    kind: str, part: str, tmp_path: Path
) -> None:
    # What lies elsewhere was not looked at, and a `Router` loads what its settings name.
    place = tmp_path / "encoder"
    place.mkdir()
    good = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    (place / "modules.json").write_text(json.dumps(good))
    assert tuned_encoder(tmp_path) == place
    bad = [*good, {"idx": 1, "name": "1", "path": part, "type": kind}]
    (place / "modules.json").write_text(json.dumps(bad))
    with pytest.raises(Unsafe, match="its own code or files"):
        tuned_encoder(tmp_path)


def test_a_pipe_for_the_arrays_is_not_waited_for(tmp_path: Path) -> None:
    router = ROUTERS.get("ridge")()
    router.fit(examples(20, 0))
    save(router, tmp_path, setting={}, model_ids=("a", "b", "c"), encoder="e", encoder_hash="h")
    (tmp_path / "router.safetensors").unlink()
    os.mkfifo(tmp_path / "router.safetensors")
    with pytest.raises(RouteyardError, match="no regular file"):
        load(tmp_path)


@pytest.mark.parametrize("encoder", ["weights", "./weights", "org/name", "./encoder/"])
def test_a_router_of_a_stranger_does_not_choose_what_is_loaded(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only `./encoder` was looked at: by another name the same folder was loaded as it was.
    monkeypatch.chdir(tmp_path)
    router = ROUTERS.get("ridge")()
    router.fit(examples(20, 0))
    about = {"model_ids": ("a", "b", "c"), "encoder": encoder, "encoder_hash": "h"}
    save(router, tmp_path, setting={}, **about)
    with pytest.raises(Unsafe, match="did not come with it"):
        route(tmp_path, "What?")
    with pytest.raises(BadInput, match="not the one the router was fitted with"):
        route(tmp_path, "What?", encoder=encoder)  # who names it is let through to it
