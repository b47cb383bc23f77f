"""What a person reads when a command is stopped, or the file system refuses."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from routeyard.flows import cli
from routeyard.flows.console import collecting
from routeyard.pipelines.collect.budget import Tally, snapshot


def raising(error: BaseException):
    def call(words: list[str]) -> int:
        raise error

    return call


def test_ctrl_c_says_what_is_kept(monkeypatch, capsys) -> None:
    tally = Tally(wanted=1000, before=0)
    tally.ok, tally.spent_usd = 500, 1.25
    with collecting(Console(file=io.StringIO())) as show:
        show(snapshot({"m": tally}, 1.0, finished=False))
    monkeypatch.setattr(cli, "_call", raising(KeyboardInterrupt()))
    assert cli.run(["build", "x"]) == 130
    said = capsys.readouterr().err
    assert "500 of 1,000 answers are kept in the ledger ($1.2500 spent in this run)" in said
    assert "run the same command to go on" in said


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (errno.EROFS, "read-only"),
        (errno.EACCES, "no permission"),
        (errno.EPERM, "not permitted"),
        (errno.ENAMETOOLONG, "longer than the file system takes"),
        (errno.ENOSPC, "the disk is full"),
        (errno.EIO, "cannot be read or written"),
        # A workspace that is a link to a disk which is not there now.
        (errno.EEXIST, "a link that leads nowhere"),
        (errno.ENOTDIR, "where a folder has to be"),
    ],
)
def test_what_the_file_system_refuses_is_no_traceback(code, says, monkeypatch, capsys) -> None:
    error = OSError(code, os.strerror(code), "/yard/\x1b[2Jledger")
    monkeypatch.setattr(cli, "_call", raising(error))
    assert cli.run(["build", "x"]) == 1
    said = capsys.readouterr().err
    assert says in said
    assert "where: /yard/" in said
    assert "\x1b" not in said


def test_a_workspace_that_was_moved_meanwhile_is_no_traceback(monkeypatch, capsys) -> None:
    # Arrow's error has no number, and is its path.
    for error in (
        FileNotFoundError("/yard/stages/a"),
        FileNotFoundError(2, "gone", "/yard/stages/a"),
    ):
        monkeypatch.setattr(cli, "_call", raising(error))
        assert cli.run(["build", "x"]) == 1
        said = capsys.readouterr().err
        assert "where: /yard/stages/a\n" in said
        assert "--workspace" in said


def test_another_fault_keeps_its_traceback(monkeypatch) -> None:
    monkeypatch.setattr(cli, "_call", raising(OSError(errno.ECHILD, "ours")))
    with pytest.raises(OSError, match="ours"):
        cli.run(["build", "x"])


def test_a_name_too_long_for_the_file_system(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "routeyard", "status", "--workspace", str(tmp_path / ("y" * 300))],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert "Traceback" not in done.stderr
