"""A stranger's DuckDB file is opened in the limited process alone; its end there is a finding."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.common.isolation import Worker
from routeyard.pipelines.verify.database import compare
from tests.support.sound_release import verify_release


def test_this_process_opens_no_database_of_a_release(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = duckdb.connect

    def connect(database: Any = ":memory:", *more: Any, **named: Any) -> Any:
        assert not Path(database).is_relative_to(release), "opened in this process"
        return real(database, *more, **named)

    monkeypatch.setattr(duckdb, "connect", connect)
    assert verify_release(release, render_card=render) == []


def test_a_file_at_which_the_reader_ends_is_a_finding(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Worker.call

    def aborted(self: Worker, function: Any, *given: Any, limits: Any = None) -> Any:
        return real(self, end if function is compare else function, *given, limits=limits)

    monkeypatch.setattr(Worker, "call", aborted)
    (finding,) = verify_release(release, render_card=render)
    assert finding.check == "database"
    assert "cannot be read" in finding.says
    assert "SIGABRT" in finding.says


def end(*_: Any) -> None:
    """A reader that is aborted, as a library is by a file it never expected."""
    os.kill(os.getpid(), signal.SIGABRT)


def test_damage_is_a_finding(release: Path) -> None:
    (path,) = release.glob("*.duckdb")
    data = bytearray(path.read_bytes())
    data[4096:20000] = b"\xff" * 15904
    path.write_bytes(bytes(data))
    assert "database" in {one.check for one in verify_release(release, render_card=render)}
