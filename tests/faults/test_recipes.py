"""Hostile recipes: refused by name, quickly, and nothing of the environment is told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from routeyard.flows.recipe import load
from routeyard.flows.tasks.ingest import read_sources
from routeyard.flows.workspace import BuildContext, complete_stage
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.common.errors import RouteyardError
from tests.faults.attacks import Row
from tests.faults.recipes import GOOD, HOSTILE, KEY

SECRET = "what-the-environment-hides"


def taken_in(path: Path, root: Path) -> None:
    """All that a build does before it asks anybody."""
    import pyarrow.parquet as pq

    recipe, base = load(path)
    context = BuildContext(recipe.name, root, base)
    given = {"sources": recipe.sources, "compared_with": recipe.compared_with}
    done = complete_stage("ingest", read_sources, context, given)
    plan(pq.read_table(done.path("queries")), recipe.pool, recipe.collect, None)


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "recipe.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    rows = [{"question": "a" * 40 + f"! {i}", "answer": "1"} for i in range(4)]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_good_one_is_taken(tmp_path: Path) -> None:
    # Otherwise "all are refused" would say nothing.
    taken_in(written(tmp_path, json.dumps(GOOD)), tmp_path / "yard")


def test_hostile_recipes(
    tmp_path: Path,
    row: Callable[[str], Row],
    full: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(HOSTILE) >= 60
    monkeypatch.setenv("FAULTS_SECRET", SECRET)
    found, wrong = row("hostile recipes"), {}
    for number, name in enumerate(list(HOSTILE)[:: 1 if full else 10]):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = written(folder, HOSTILE[name])
        found.tried += 1
        begun = time.monotonic()
        try:
            taken_in(path, folder / "yard")
            wrong[name] = "taken"
            continue
        except RouteyardError as error:
            said = str(error)
        except BaseException as error:
            wrong[name] = f"{type(error).__name__}: {str(error)[:200]}"
            continue
        if time.monotonic() - begun > 30:
            wrong[name] = "took longer than half a minute"
        elif not said or SECRET in said or KEY in said or "\x1b" in said or len(said) > 5_000:
            wrong[name] = said[:300]
        elif not {"yard", "q.jsonl", "recipe.yaml"} >= {p.name for p in folder.iterdir()}:
            wrong[name] = "wrote elsewhere"
        else:
            found.held += 1
    assert not Path("/tmp/was-here").exists()
    assert wrong == {}
