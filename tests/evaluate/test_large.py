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

from flows.actions.released import Tables
from pipelines.errors import BadInput, DiskFull
from pipelines.evaluate.certificate import certify
from pipelines.evaluate.reading import core_of, from_tables
from pipelines.evaluate.run import evaluate
from pipelines.large import fits, room, texts
from pipelines.routers import ROUTERS

Made = Callable[..., dict[str, pa.Table]]


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a few rows were very many."""
    monkeypatch.setattr(room, "LARGE", 0)
    monkeypatch.setattr(room, "ROWS", 17)
    monkeypatch.setattr(texts, "MANY", 0)


def _figures(tables: Made) -> list[Any]:
    core = from_tables(**tables(60, 2, 8))
    routers = {name: partial(_make, name) for name in ("knn",)}
    done = evaluate(core, routers, resamples=10, pair=("model-0", "model-1"))
    found = [done.metrics, done.curves, done.comparisons, done.exchanges, done.choices]
    return [table.to_pylist() for table in found]


def _make(name: str, seed: int) -> Any:
    return ROUTERS.get(name)()


def test_figures_on_disk_are_those_in_memory(tables: Made, request: pytest.FixtureRequest) -> None:
    in_memory = _figures(tables)
    request.getfixturevalue("on_disk")
    assert _figures(tables) == in_memory


@pytest.mark.slow
def test_a_certificate_on_disk_is_that_in_memory(
    tables: Made, request: pytest.FixtureRequest
) -> None:
    in_memory = certify(from_tables(**tables(120, 3)), resamples=30).to_json()
    request.getfixturevalue("on_disk")
    assert certify(from_tables(**tables(120, 3)), resamples=30).to_json() == in_memory


def test_what_is_large_is_mapped(tables: Made, on_disk: None) -> None:
    core = from_tables(**tables(60, 2, 8))
    train = core.take(core.rows("dense", "train"))
    for one in (core, train):
        assert isinstance(one.query_ids, texts.Texts)
        assert isinstance(one.prompts, texts.Texts)
        for values in (train.labels, train.costs["usd"], one.embeddings):
            assert _on_disk(values)


def _on_disk(values: Any) -> bool:
    while isinstance(values, np.ndarray):
        values = values.base
    return values is not None


def test_texts_are_a_tuple_for_who_reads_them(on_disk: None) -> None:
    told = ("b", "", "ä", "b", "long " * 9, *map(str, range(20)))
    found = texts.texts_of(pa.chunked_array([list(told[:3]), list(told[3:])]))
    assert isinstance(found, texts.Texts)
    assert found == told
    assert tuple(found) == told
    assert (found[2], found[-1], tuple(found[1:4])) == (told[2], told[-1], told[1:4])
    assert pa.array(found, pa.string()).to_pylist() == list(told)
    rows = np.array([4, 0, 4])
    assert texts.some(texts.some(found, np.arange(24, -1, -1)), 24 - rows) == tuple(
        told[i] for i in rows
    )
    assert texts.together(found, ("c",)) == (*told, "c")


def test_a_full_disk_is_an_error_not_the_end(
    on_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pages of a sparse file that find no room later end the process without a word.
    def full(*_: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(DiskFull, match="TMPDIR"):
        room.room((3, 4))


def test_to_ask_whether_a_table_is_there_reads_nothing() -> None:
    # A mapping finds out by reading: `in` loaded outcomes, the largest table, for nothing.
    tables = Tables({"outcomes": _never})
    assert "outcomes" in tables
    assert "labels" not in tables


def test_what_does_not_fit_is_refused_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    memory = tmp_path / "meminfo"
    memory.write_text("MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")
    monkeypatch.setattr(fits, "_MEMORY", memory)
    monkeypatch.setattr(fits, "_LIMITS", ())
    fits.check_fits(1_000_000, 27, 384)
    with pytest.raises(BadInput, match=r"10,000,000 questions × 27 models .* 21\.7 GB .* 8\.2 GB"):
        fits.check_fits(10_000_000, 27)
    limit = tmp_path / "memory.max"  # of a container
    limit.write_text("1000000000\n")
    monkeypatch.setattr(fits, "_LIMITS", (limit,))
    with pytest.raises(BadInput, match=r"1\.0 GB of memory"):
        fits.check_fits(1_000_000, 27)
    # Where nothing says how much there is, nothing is refused.
    limit.write_text("max\n")
    monkeypatch.setattr(fits, "_MEMORY", tmp_path / "none")
    fits.check_fits(10**9, 1000)


def test_a_release_of_which_the_tables_do_not_fit_stays_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tables: Made
) -> None:
    pq.write_table(tables(60, 2, 8)["queries"], tmp_path / "queries.parquet")
    pq.write_table(tables(60, 2, 8)["embeddings"], tmp_path / "embeddings.parquet")
    files = {name: tmp_path / f"{name}.parquet" for name in ("queries", "embeddings")}
    readers: dict[str, Any] = dict.fromkeys(files, _never)
    held = Tables(readers, files).also("models", tables(60, 2, 8)["models"])
    monkeypatch.setattr(fits, "available", lambda: 60 * (fits.EACH + 2 * fits.PAIR + 4 * 8) - 1)
    with pytest.raises(BadInput, match="60 questions × 2 models"):
        core_of(held.also("outcomes", pa.table({})))


def _never() -> NoReturn:
    raise AssertionError("the table was read")
