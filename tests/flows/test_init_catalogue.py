"""`routeyard init` on the fixture rows of every dataset in the catalogue, as a stranger's file.

Two or three rows are far less than a person's table has, so a guess has little to go by.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from routeyard.flows.cli import run
from routeyard.flows.new_recipe.write import NewRecipe, start_recipe
from routeyard.flows.recipe import load
from routeyard.flows.recipe_check import faults
from routeyard.pipelines.ingest import ingest
from routeyard.pipelines.ingest.catalog import entry, from_catalog, names
from routeyard.pipelines.ingest.queries import each_item, to_queries
from routeyard.schemas.recipe import Source

NAMES = [name for name in names() if entry(name).rows]


def started(name: str, folder: Path) -> NewRecipe:
    """A recipe from the dataset's own rows, without what the catalogue knows of them."""
    rows = [
        {key: value for key, value in row.items() if key not in ("_config", "_split")}
        for row in entry(name).rows
    ]
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return start_recipe(folder / f"{name}.yaml", str(path), fields={})


def catalogued(name: str) -> list[dict[str, Any]]:
    source = from_catalog(Source(name=name, catalog=name))
    whole = source.model_copy(update={"limit": None, "dense": None})
    rows = [{"_config": "", "_split": "", **row} for row in entry(name).rows]
    return list(
        to_queries(whole, each_item(whole, rows, where=name), seen=Counter(), where=name)[0]
    )


def test_eight_of_ten_are_whole_and_the_others_say_what_they_lack(tmp_path: Path) -> None:
    whole, same, lacking = [], [], {}
    for name in NAMES:
        done = started(name, tmp_path)
        if done.lacks:
            # It says which column, and how the recipe is completed.
            assert all("--" in one or "fields." in one for one in done.lacks), (name, done.lacks)
            assert "# LACKS: " in done.recipe.read_text(encoding="utf-8")
            lacking[name] = done.lacks
            continue
        assert faults(str(done.recipe)) == [], name
        checked, base = load(str(done.recipe))
        found = ingest(checked.sources, base=base).queries.to_pylist()
        assert len(found) == len(entry(name).rows), name
        whole.append(name)
        mine = sorted(tuple(query["references"]) for query in found)
        if mine == sorted(tuple(query["references"]) for query in catalogued(name)):
            same.append(name)
    assert len(whole) >= 0.8 * len(NAMES), lacking
    # A recipe that builds with wrong references is worse than one that does not.
    assert len(same) >= 0.85 * len(whole), sorted({*whole} - {*same})


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_what_lacks_nothing_builds_unedited(name: str, tmp_path: Path) -> None:
    done = started(name, tmp_path)
    if done.lacks:
        pytest.skip("; ".join(done.lacks))
    assert run(["build", str(done.recipe), "--workspace", str(tmp_path / "yard")]) == 0
    (release,) = (tmp_path / "yard" / "releases").glob("*/1.0.0/manifest.json")
    assert release.is_file()
