"""A stranger's DuckDB file is opened in the limited process alone; its end there is a finding."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.common.isolation import Worker
from routeyard.pipelines.verify.database import verify_release
from routeyard.pipelines.verify.tables import _summaries, numbered_rows


def test_this_process_opens_no_database_of_a_release(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = duckdb.connect

    def connect(database: Any = ":memory:", *more: Any, **named: Any) -> Any:
        assert not str(database).endswith(".duckdb"), "opened in this process"
        return real(database, *more, **named)

    monkeypatch.setattr(duckdb, "connect", connect)
    assert verify_release(release, render_card=render) == []


def test_a_file_at_which_the_reader_ends_is_a_finding(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {"per_model": pa.table({"model_no": pa.array([0], pa.int16())})}
    (path,) = release.glob("*.duckdb")
    real = Worker.stream

    def aborted(self: Worker, function: Any, *given: Any, limits: Any = None) -> Any:
        assert function is numbered_rows
        return real(self, end, *given, limits=limits)

    monkeypatch.setattr(Worker, "stream", aborted)
    (finding,) = _summaries(path, expected)
    assert finding.check == "database"
    assert "cannot be read" in finding.says
    assert "SIGABRT" in finding.says


def end(path: str, name: str, most: int) -> None:
    """A reader that is aborted, as a library is by a file it never expected."""
    os.kill(os.getpid(), signal.SIGABRT)


def test_damage_is_a_finding(release: Path) -> None:
    (path,) = release.glob("*.duckdb")
    data = bytearray(path.read_bytes())
    data[4096:20000] = b"\xff" * 15904
    path.write_bytes(bytes(data))
    expected = {"per_model": pa.table({"model_no": pa.array([0], pa.int16())})}
    assert [one.check for one in _summaries(path, expected)] == ["database"]
