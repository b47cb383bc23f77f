"""A small release made of real tables, and fixtures that write it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from routeyard.datacards.card import render
from routeyard.datacards.files import render as render_files
from routeyard.pipelines.release.build import Released, write_release
from routeyard.pipelines.release.manifest import read_manifest
from routeyard.schemas import CONTRACTS
from routeyard.schemas.release import Manifest

RECIPE: dict[str, Any] = {"name": "tiny", "version": "1.0.0", "release": {"title": "Tiny"}}
SOURCES = [{"source": "arith", "license": "MIT", "url": None, "redistribute_text": True}]


def qid(number: int) -> str:
    return f"q{number:020x}"


def tiny_tables(queries: int = 6) -> dict[str, pa.Table]:
    """Three models; m0 is right on all, m1 on even ones, m2 has no answer to the last query."""
    rows = range(queries)
    models = [
        {
            "model_id": f"m{m}",
            "kind": "real",
            "simulated": False,
            "price_in": 1.0,
            "price_out": 2.0,
            "price_date": "2026-01-01",
        }
        for m in range(3)
    ]
    pairs = [(q, m) for q in rows for m in range(3) if not (m == 2 and q == queries - 1)]
    right = {(q, m): m == 0 or (m == 1 and q % 2 == 0) for q, m in pairs}
    asked = [
        {
            "query_id": qid(q),
            "source": "arith",
            "source_id": str(q),
            "task": "even" if q % 2 == 0 else "odd",
            "domain": "math",
            "question": f"{q}+1?",
            "prompt": f"{q}+1?\n\nAnswer with a number.",
            "choices": [],
            "references": [str(q + 1)],
            "scorer": "numeric",
            "metadata": "{}",
        }
        for q in rows
    ]
    key = [{"query_id": qid(q), "model_id": f"m{m}"} for q, m in pairs]
    responses = [
        {
            **k,
            "sample": 0,
            "text": str(q + 1 if right[q, m] else q),
            "status": "ok",
            "prompt_tokens": 10,
            "completion_tokens": 2 + m,
            "cost_usd": 1e-5 * (3 - m),
            "cost_source": "provider",
            "latency_s": 0.1,
            "attempts": 1,
            "requested_at": "2026-01-01T00:00:00Z",
            "request_hash": f"h{q}{m}",
        }
        for k, (q, m) in zip(key, pairs, strict=True)
    ]
    verdicts = [
        {
            **k,
            "sample": 0,
            "scorer": "numeric",
            "scorer_version": "1",
            "outcome": "correct" if right[pair] else "incorrect",
            "score": float(right[pair]),
            "extracted": "1",
            "conflict": pair == (0, 1),
            "reason": "",
            "cost_usd": 0.0,
        }
        for k, pair in zip(key, pairs, strict=True)
    ]
    labels = [
        {
            **k,
            "score": float(right[pair]),
            "correct": right[pair],
            "decided_by": "numeric",
            "contested": pair == (0, 1),
            "n_samples": 1,
        }
        for k, pair in zip(key, pairs, strict=True)
    ]
    splits = [
        {"scheme": "dense", "query_id": qid(q), "split": "test" if q % 3 == 0 else "train"}
        for q in rows
    ]
    given: dict[str, list[dict[str, Any]]] = {
        "queries": asked,
        "models": models,
        "responses": responses,
        "verdicts": verdicts,
        "labels": labels,
        "splits": splits,
    }
    tables = {name: CONTRACTS[name].from_rows(found) for name, found in given.items()}
    return {**tables, "removals": CONTRACTS["removals"].empty()}


Write = Callable[..., Released]
#: Changed keys of the recipe → the release of the tiny tables that this process wrote.
_WRITTEN: dict[str, Released] = {}


def written_once(factory: pytest.TempPathFactory, recipe: dict[str, Any]) -> Released:
    """A release of the tiny tables that no test changes."""
    key = json.dumps(recipe, sort_keys=True)
    if key not in _WRITTEN:
        _WRITTEN[key] = _write(tiny_tables(), factory.mktemp("sound"), recipe)
    return _WRITTEN[key]


def _write(
    tables: dict[str, pa.Table], root: Path, recipe: dict[str, Any], **more: Any
) -> Released:
    return write_release(
        tables,
        recipe={**RECIPE, **recipe},
        root=root,
        render_card=render,
        render_files=render_files,
        **{"sources": SOURCES, **more},
    )


@pytest.fixture
def write(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Write:
    """`write_release` with the card and this folder filled in; without tables, a copy."""

    def call(
        tables: dict[str, pa.Table] | None = None,
        *,
        root: Path = tmp_path / "releases",
        recipe: dict[str, Any] | None = None,
        **more: Any,
    ) -> Released:
        if tables is None and not more:
            made = written_once(tmp_path_factory, recipe or {})
            path = root / made.path.relative_to(made.path.parents[1])
            if not path.exists():
                shutil.copytree(made.path, path)
                return replace(made, path=path)
        return _write(tiny_tables() if tables is None else tables, root, recipe or {}, **more)

    return call


@pytest.fixture
def release(sound: Path, tmp_path: Path) -> Path:
    """A copy of the sound release, to be changed; what `write()` writes."""
    root = tmp_path / "releases"
    shutil.copytree(sound.parents[1], root)
    return root / sound.relative_to(sound.parents[1])


@pytest.fixture
def tables() -> dict[str, pa.Table]:
    return tiny_tables()


@pytest.fixture(scope="session")
def tiny() -> Callable[..., dict[str, pa.Table]]:
    """`tiny_tables`, for releases that several tests share."""
    return tiny_tables


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that no test changes."""
    return written_once(tmp_path_factory, {}).path


@pytest.fixture(scope="session")
def manifest(sound: Path) -> Manifest:
    """Its manifest."""
    return read_manifest(sound)
