"""An evaluation whose arrays and texts lie on disk gives the figures of one in memory."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.flows.evaluation.released import Tables
from routeyard.pipelines.common import arrays as memmap
from routeyard.pipelines.common import arrays as memory_check
from routeyard.pipelines.common import arrays as row_blocks
from routeyard.pipelines.common import machine as memory
from routeyard.pipelines.common.errors import DiskFull
from routeyard.pipelines.common.matrix import core_of, from_tables
from routeyard.pipelines.evaluate.certificate import certify
from routeyard.pipelines.evaluate.run import evaluate
from routeyard.pipelines.routers import ROUTERS
from routeyard.schemas import QUERIES, StoredTable

Made = Callable[..., dict[str, pa.Table]]


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a few rows were very many."""
    monkeypatch.setattr(memmap, "LARGE", 0)
    monkeypatch.setattr(memmap, "ROWS", 5)


def _figures(tables: dict[str, pa.Table]) -> list[Any]:
    core = from_tables(**tables)
    routers = {name: partial(_make, name) for name in ("knn", "random", "pareto-random")}
    settings: dict[str, Any] = {"pair": ("model-0", "model-1"), "ood": True}
    done = evaluate(core, routers, resamples=10, scaling="mean", **settings)
    found = [done.metrics, done.curves, done.comparisons, done.exchanges, done.choices]
    found += [done.profiles, done.ood]
    return [*(table.to_pylist() for table in found), done.facts, core.coverage]


def _holed(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Scores in tenths beside their decisions, and a tenth of labels and costs missing."""
    rng = np.random.default_rng(1)
    labels, responses = tables["labels"], tables["responses"]
    n = labels.num_rows
    score = np.clip(labels["score"].to_numpy() + rng.integers(-4, 5, n) / 10, 0, 1)
    labels = labels.set_column(2, "score", pa.array(score))
    paid = pa.array(responses["cost_usd"].to_numpy(), mask=rng.random(n) < 0.1)
    responses = responses.set_column(4, "cost_usd", paid)
    holes = {"labels": labels.filter(pa.array(rng.random(n) > 0.1)), "responses": responses}
    return {**tables, **holes}


def _make(name: str, seed: int) -> Any:
    return ROUTERS.get(name)()


@pytest.mark.parametrize("holes", [False, True])
def test_figures_on_disk_are_those_in_memory(
    tables: Made, request: pytest.FixtureRequest, holes: bool
) -> None:
    given = tables(60, 3, 8)
    given = _holed(given) if holes else given
    in_memory = _figures(given)
    request.getfixturevalue("on_disk")
    assert _figures(given) == in_memory


@pytest.mark.slow
def test_a_certificate_on_disk_is_that_in_memory(
    tables: Made, request: pytest.FixtureRequest
) -> None:
    given = _holed(tables(120, 3))
    in_memory = certify(from_tables(**given), resamples=200).to_json()
    request.getfixturevalue("on_disk")
    assert certify(from_tables(**given), resamples=200).to_json() == in_memory


def test_sums_by_blocks_have_the_digits_of_the_whole(on_disk: None) -> None:
    # Numbers whose sum depends on the order in which they are added.
    values = np.random.default_rng(0).lognormal(0, 9, (203, 11))
    one = values[:, :1]
    wide = np.broadcast_to(values[0], values.shape)
    for given in (values, one, np.asfortranarray(values), wide, values[:, 2:9], values[:0]):
        assert row_blocks.sums_of(np.sqrt, given).tolist() == np.sqrt(given).sum(axis=0).tolist()
    assert row_blocks.by_rows(np.sqrt, values).tolist() == np.sqrt(values).tolist()
    assert row_blocks.sums_of(np.isnan, values).tolist() == [0] * 11
    names = np.array(["b", "a", "ccc"])[np.arange(203) % 3]
    assert row_blocks.distinct(names).tolist() == ["a", "b", "ccc"]
    assert not row_blocks.every(lambda part: part < values[150, 0], one)
    assert row_blocks.every(lambda part: part > 0, values)


def test_what_is_large_is_mapped(tables: Made, on_disk: None) -> None:
    core = from_tables(**tables(60, 2, 8))
    train = core.take(core.rows("dense", "train"))
    for one in (core, train):
        for values in (train.labels, train.costs["usd"], one.embeddings):
            assert _on_disk(values)


def _on_disk(values: Any) -> bool:
    while isinstance(values, np.ndarray):
        values = values.base
    return values is not None


@pytest.mark.parametrize("reverse", [False, True])
def test_questions_of_a_file_are_read_by_row_groups(
    tmp_path: Path, tables: Made, on_disk: None, reverse: bool
) -> None:
    given = tables(60, 2, 8)
    asked = given["queries"].append_column("metadata", pa.array(["", "{}", '{"a": 1}'] * 20))
    asked = asked.append_column("choices", pa.array([["x"], [], ["x", "y"]] * 20))
    for name in ("source", "source_id", "question", "scorer"):
        asked = asked.append_column(name, pa.array([f"{name}{k % 2}" for k in range(60)]))
    asked = asked.append_column("references", pa.array([["1"]] * 60))
    given["queries"] = QUERIES.conform(asked)
    files: dict[str, Any] = {}
    for name in ("queries", "splits"):
        table = given[name].take(np.arange(59, -1, -1)) if reverse else given[name]
        files[name] = StoredTable(tmp_path / f"{name}.parquet")
        pq.write_table(table, files[name].path, row_group_size=7)
    one, other = from_tables(**{**given, **files}), from_tables(**given)
    for name in ("query_ids", "prompts", "metadata"):
        assert list(getattr(one, name)) == list(getattr(other, name))
    for name in ("tasks", "domains", "sources", "options"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert one.splits["dense"].tolist() == other.splits["dense"].tolist()
    assert one.metadata[1:3] == ("{}", '{"a": 1}')


def test_a_full_disk_is_an_error_not_the_end(
    on_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pages of a sparse file that find no room later end the process without a word.
    def full(*_: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(DiskFull, match="TMPDIR"):
        memmap.allocate((3, 4))


def test_to_ask_whether_a_table_is_there_reads_nothing() -> None:
    # A mapping finds out by reading: `in` loaded outcomes, the largest table, for nothing.
    tables = Tables({"outcomes": _never})
    assert "outcomes" in tables
    assert "labels" not in tables


def test_what_does_not_fit_is_refused_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")
    monkeypatch.setattr(memory, "_MEMORY", meminfo)
    monkeypatch.setattr(memory, "_CONTROL", tmp_path / "groups")
    memory_check.check_fits(1_000_000, 27, 384)
    with pytest.raises(memory.OutOfMemory, match=r"15\.8 GB"):  # in blocks: 7.7 GB
        memory_check.check_fits(5_000_000, 27, whole=True)
    memory_check.check_fits(5_000_000, 27)
    with pytest.raises(
        memory.OutOfMemory, match=r"10,000,000 questions × 27 models .* 12\.7 GB .* 8\.2 GB"
    ):
        memory_check.check_fits(10_000_000, 27)
    # What is small is in memory as a whole.
    assert memory_check.needed(1000, 3) == 1000 * (
        memory_check.EACH + memory_check.MATRICES * 8 * 3
    )
    limit = tmp_path / "groups/memory.max"  # of a container
    limit.parent.mkdir()
    limit.write_text("1000000000\n")
    with pytest.raises(memory.OutOfMemory, match=r"1\.0 GB of memory"):
        memory_check.check_fits(1_000_000, 27)
    # Where nothing says how much there is, nothing is refused.
    limit.write_text("max\n")
    monkeypatch.setattr(memory, "_MEMORY", tmp_path / "none")
    memory_check.check_fits(10**9, 1000)


def test_a_release_of_which_the_tables_do_not_fit_stays_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tables: Made
) -> None:
    pq.write_table(tables(60, 2, 8)["queries"], tmp_path / "queries.parquet")
    pq.write_table(tables(60, 2, 8)["embeddings"], tmp_path / "embeddings.parquet")
    files = {name: tmp_path / f"{name}.parquet" for name in ("queries", "embeddings")}
    readers: dict[str, Any] = dict.fromkeys(files, _never)
    held = Tables(readers, files).also("models", tables(60, 2, 8)["models"])
    monkeypatch.setattr(memory, "available", lambda: memory_check.needed(60, 2, 8) - 1)
    with pytest.raises(memory.OutOfMemory, match="60 questions × 2 models"):
        core_of(held.also("outcomes", pa.table({})))


def _never() -> NoReturn:
    raise AssertionError("the table was read")
