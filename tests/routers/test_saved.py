"""What a folder that says it holds a router may do: give values of a registered router."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from routeyard.flows.evaluation.route import route
from routeyard.pipelines.common.errors import BadInput, RouteyardError, Unsafe
from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers.saved import load, save, tuned_encoder


def saved(folder: Path, **about: object) -> Path:
    """A ridge router of three models, saved; the path of its words."""
    names = ("a", "b", "c")
    queries = Queries(("p", "q"), np.array(["t", "t"]), np.eye(2, dtype=np.float32))
    router = ROUTERS.get("ridge")()
    router.fit(Examples(queries, names, np.array([[1.0, 0, 1], [0, 1, 1]])))
    given = {"encoder": "e", "encoder_hash": "h", "price": np.ones(3)} | about
    save(router, folder, setting={}, model_ids=names, **given)
    return folder / "router.json"


def test_a_broken_folder_is_refused_and_a_foreign_router_is_not_saved(tmp_path: Path) -> None:
    path = saved(tmp_path)
    words = json.loads(path.read_text())
    path.write_text(json.dumps(words | {"format": 99}))
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
    path = saved(tmp_path)
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
    saved(tmp_path)
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
    saved(tmp_path, encoder=encoder)
    with pytest.raises(Unsafe, match="did not come with it"):
        route(tmp_path, "What?")
    with pytest.raises(BadInput, match="not the one the router was fitted with"):
        route(tmp_path, "What?", encoder=encoder)  # who names it is let through to it
