"""A split that a source published is kept to the question, without a word from the user."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from routeyard.flows.build import run_build
from routeyard.flows.evaluation.released import read_release
from routeyard.flows.plan import split_sizes
from routeyard.flows.recipe import load_recipe
from routeyard.pipelines.common.matrix import core_of
from routeyard.pipelines.evaluate.experiment import default_scheme
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.write import run_import

COLUMNS = ["prompt_id", "model_id", "model_name", "category", "prompt", "label"]


def imported(folder: Path, parts: dict[str, range]) -> Path:
    """The recipe of an import of EmbedLLM's files, one question per number."""
    (folder / "files").mkdir()
    for name, numbers in parts.items():
        with (folder / f"files/{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(COLUMNS)
            for k in numbers:
                for m, model in enumerate(("left", "right")):
                    row = [k, m, model, "piqa", f"What is number {k}?", (k + m) % 2]
                    writer.writerow(row)
    return run_import(IMPORTERS.get("embedllm"), folder / "files", folder / "imported").recipe


def test_an_import_with_a_published_split_is_built_with_it(tmp_path: Path) -> None:
    parts = {"train": range(30), "val": range(30, 37), "test": range(37, 60)}
    recipe = imported(tmp_path, parts)
    assert split_sizes(load_recipe(recipe), {"embedllm": 60}) == {}  # known once they are read
    built = run_build(str(recipe), str(tmp_path / "yard"), jobs=1, until="release")
    release = Path(built["release"]["path"])
    places = pq.read_table(release / "data/splits.parquet").to_pylist()
    queries = pq.read_table(release / "data/queries.parquet").to_pylist()
    number = {row["query_id"]: int(row["question"].split()[-1][:-1]) for row in queries}
    assert {row["scheme"] for row in places} == {"upstream"}
    for name, ours in (("train", "train"), ("val", "validation"), ("test", "test")):
        found = sorted(number[row["query_id"]] for row in places if row["split"] == ours)
        assert found == list(parts[name])
    assert default_scheme(core_of(read_release(release))) == "upstream"


@pytest.mark.parametrize("only", ["train", "test"])
def test_one_part_alone_is_no_split(tmp_path: Path, only: str) -> None:
    recipe = load_recipe(imported(tmp_path, {only: range(20)}))
    assert not recipe.curate
    assert set(split_sizes(recipe, {"embedllm": 20})) == {"dense"}
