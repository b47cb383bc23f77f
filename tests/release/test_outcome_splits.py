"""`outcomes` by split: as `datasets`, polars and DuckDB read it, and as `verify` checks it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import datasets
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.release.reader import open_release
from routeyard.schemas import SPLITS
from routeyard.schemas.release import Manifest, folder_names, usual_scheme
from tests.support.small_release import qid
from tests.support.sound_release import verify_release


@pytest.fixture
def two_schemes(write, tables) -> Path:
    """`dense` leaves the last question out; `ood:not even` tests on the odd ones."""
    rows = [row for row in tables["splits"].to_pylist() if row["query_id"] != qid(5)]
    rows += [
        {"scheme": "ood:not even", "query_id": qid(q), "split": "test" if q % 2 else "train"}
        for q in range(6)
    ]
    return Path(write({**tables, "splits": SPLITS.from_rows(rows)}).path)


def _load(release: Path, cache: Path, config: str = "outcomes", **wanted: Any) -> list[Any]:
    data = datasets.load_dataset(str(release), config, cache_dir=str(cache), **wanted)
    return sorted((row["query_id"], row["model_id"], row["score"]) for row in data)


@pytest.mark.parametrize("streaming", [False, True])
def test_datasets_loads_each_split(two_schemes, tmp_path, streaming):
    with open_release(two_schemes) as release:
        every = [
            (r["query_id"], r["model_id"], r["score"])
            for r in release.arrow("outcomes").to_pylist()
        ]
    assert len(every) == 17
    test = [row for row in every if row[0] in (qid(0), qid(3))]
    assert _load(two_schemes, tmp_path, split="test", streaming=streaming) == sorted(test)
    # The last question is in no split, and in `all`.
    assert _load(two_schemes, tmp_path, split="all", streaming=streaming) == sorted(every)
    odd = [row for row in every if row[0] in (qid(1), qid(3), qid(5))]
    other = "outcomes__ood-not-even"
    loaded = _load(two_schemes, tmp_path, other, split="test", streaming=streaming)
    assert loaded == sorted(odd)


def test_polars_and_duckdb_read_a_split_as_a_file(two_schemes):
    assert verify_release(two_schemes, render_card=render) == []
    card = (two_schemes / "README.md").read_text()
    assert "`test` (`data/outcomes/dense/test.parquet`)" in card
    path = two_schemes / "data/outcomes/dense/test.parquet"
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT count(*) FROM '{path.parent}/*.parquet'").fetchall()
    assert found == [(17,)]
    polars = pytest.importorskip("polars")
    assert polars.scan_parquet(path).collect().height == 6


def _sealed(release: Path, name: str, data: bytes | None) -> None:
    """Put a file into a release, or take it out, and seal the manifest again."""
    told = json.loads((release / "manifest.json").read_text())
    if data is None:
        (release / name).unlink()
        del told["files"][name]
    else:
        (release / name).write_bytes(data)
        told["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    (release / "manifest.json").write_text(Manifest.model_validate(told).sealed().to_json())


def test_verify_finds_a_split_that_says_something_else(two_schemes):
    def found() -> dict[str, str]:
        return {
            finding.where: finding.says
            for finding in verify_release(two_schemes, render_card=render)
            if finding.where.startswith("data/outcomes")
        }

    test, train = (f"data/outcomes/dense/{name}.parquet" for name in ("test", "train"))
    rows = pq.read_table(two_schemes / test)
    sink = pa.BufferOutputStream()
    pq.write_table(rows.slice(1), sink)
    _sealed(two_schemes, test, sink.getvalue().to_pybytes())
    (where, says), *others = found().items()
    assert (where, others) == (test, [])
    assert says.startswith("says something else than labels and responses, e.g. row 1 has ")
    _sealed(two_schemes, "data/outcomes/dense/validation.parquet", b"")
    _sealed(two_schemes, train, None)
    says = found()
    assert says[train] == "is missing"
    assert says["data/outcomes/dense/validation.parquet"] == (
        "is a split that the release does not have"
    )


def test_schemes_of_any_name_have_files_of_their_own():
    schemes = ["dense", "Dense", "ood:math", "ood math", "../..", "质", "x" * 200]
    names = folder_names(schemes)
    assert names == folder_names(schemes[::-1])
    assert len({name.lower() for name in names.values()}) == len(schemes)
    assert all(name.replace("-", "").isalnum() and len(name) < 80 for name in names.values())
    assert folder_names(["dense", "upstream"]) == {"dense": "dense", "upstream": "upstream"}
    assert usual_scheme(["b", "a"]) == "a"
    assert usual_scheme(["dense", "a", "upstream"]) == "upstream"
