"""Hostile programs: none passes, none reaches out, as root and as an ordinary user."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.attacks import Row
from tests.faults.programs import PROGRAMS
from tests.scorers import test_sandbox as sandboxed


@pytest.mark.parametrize("who", sandboxed.WHO)
def test_hostile_programs(
    who: str,
    row: Callable[[str], Row],
    full: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not full and who == "root":
        pytest.skip("in the full suite; here as an ordinary user")
    with tempfile.TemporaryDirectory() as folder:
        # `TMPDIR` may lie where an ordinary user cannot look.
        programs = Path(folder) / "all"
        programs.mkdir()
        for name in list(PROGRAMS)[:: 1 if full else 9]:
            (programs / f"{name}.txt").write_text(PROGRAMS[name])
        for name in ("run_programs.py", "honest.txt"):
            shutil.copy(sandboxed.HOSTILE / name, programs)
        if full:
            shutil.copytree(sandboxed.HOSTILE, programs, dirs_exist_ok=True)
        monkeypatch.setattr(sandboxed, "HOSTILE", programs)
        host = Path(folder) / "host"
        host.mkdir()
        Path(folder).chmod(0o755)
        attacked = sandboxed.Host(who, host)
        results = attacked.results
        assert attacked.ended.returncode == 0, attacked.ended.stderr
        assert results.pop("honest")["passed"], "else that none passes would say nothing"
        found, wrong = row("hostile programs"), {}
        assert len(results) == len(list(programs.glob("*.txt"))) - 1
        for name, result in results.items():
            found.tried += 1
            words = ("the-secret", "got", "found", "wrote")
            if result["passed"] or any(word in result["reason"] for word in words):
                wrong[name] = result["reason"]
            else:
                found.held += 1
        assert wrong == {}
        assert len(results) >= 80 or not full
        assert attacked.canary.read_text() == "untouched"
        assert attacked.connections == 0
        assert not list(attacked.canary.parent.glob("canary.*"))
        assert not sandboxed._left_over(attacked.canary.parent)
