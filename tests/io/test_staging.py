"""What killed processes left half-written is removed, and what others are at work on is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from routeyard.pipelines.common import staging


def left_by(pid: int, folder: Path, space: str) -> tuple[Path, Path]:
    """A file and a folder that a process of a namespace has begun."""
    file, made = (folder / f".{name}.abcd1234.{space}.{pid}" for name in ("table", "stage"))
    file.write_text("half")
    (made / "deep").mkdir(parents=True)
    (made / "deep/file").write_text("half")
    return file, made


def test_what_a_dead_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here = staging._space()
    dead = left_by(ended.pid, tmp_path, here)
    living = left_by(os.getppid(), tmp_path, here)
    # The same number in another container means another process.
    elsewhere = left_by(ended.pid, tmp_path, "0" * 8)
    odd = tmp_path / f".x.abcd1234.{here}.no-number"
    odd.write_text("x")
    target = tmp_path / "out.json"
    staging.write_text(target, "{}")
    assert not any(path.exists() for path in dead)
    assert all(path.exists() for path in (*living, *elsewhere, odd, target))


def test_a_link_that_was_left_is_removed_and_not_followed(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    link = tmp_path / f".stage.abcd1234.{staging._space()}.{ended.pid}"
    link.symlink_to(precious)
    staging.sweep(tmp_path)
    assert not link.is_symlink()
    assert (precious / "file").read_text() == "x"


def test_a_name_says_who_makes_it(tmp_path: Path) -> None:
    named = staging.temporary_path(tmp_path / "a.parquet").name.split(".")
    assert named[-1] == str(os.getpid())
    assert named[-2] == staging._space()
    with staging.staging(tmp_path / "stage") as folder:
        staging.sweep(tmp_path)
        assert folder.is_dir()
    assert not folder.exists()
