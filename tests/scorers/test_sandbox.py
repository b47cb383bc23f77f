"""Hostile programs: none is marked correct, and none harms the host.

As root the whole set is run twice, as root and as an ordinary user; as an
ordinary user once. Nothing is skipped: without isolation the tests fail.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from routeyard.pipelines.common.isolation import jail as sandbox
from routeyard.pipelines.common.isolation.jail import host

HOSTILE = Path(__file__).parent / "hostile"
PROGRAMS = sorted(path.stem for path in HOSTILE.glob("*.txt") if path.stem != "honest")
WHO = ["root", "ordinary"] if os.getuid() == 0 else ["ordinary"]
NOBODY = 65534


def _interpreter(user: int) -> str:
    """One that `user` can read; the one running the tests may lie in root's home."""
    for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        probe = [candidate, "-c", "import ctypes, sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            if subprocess.run(probe, user=user, cwd="/", env={}, check=False).returncode == 0:
                return candidate
        except (PermissionError, FileNotFoundError):
            continue
    pytest.fail("no Python 3.11 that an ordinary user can read: install python3")


class Host:
    """What a hostile program would like to reach, and what became of it."""

    def __init__(self, who: str, folder: Path):
        self.user = os.getuid() if who == "root" or os.getuid() != 0 else NOBODY
        code = folder / "sandbox"
        shutil.copytree(Path(sandbox.__file__).parent, code)
        shutil.copytree(HOSTILE, folder / "hostile")
        self.canary = folder / "canary"
        self.canary.write_text("untouched")
        for path in (folder, *folder.rglob("*")):
            os.chmod(path, 0o755 if path.is_dir() else 0o644)
        if self.user != os.getuid():
            os.chown(self.canary, self.user, self.user)
        name = f"routeyard-{os.getpid()}-{who}"
        tcp, unix = socket.socket(), socket.socket(socket.AF_UNIX)
        with tcp, unix:
            tcp.bind(("127.0.0.1", 0))
            unix.bind("\0" + name)
            for listener in (tcp, unix):
                listener.listen()
                listener.settimeout(0)
            command = [
                _interpreter(self.user),
                str(folder / "hostile" / "run_programs.py"),
                *(str(code), str(folder / "hostile"), str(self.canary)),
                *(str(tcp.getsockname()[1]), name),
            ]
            environment = {"SECRET": "the-secret-of-the-host"}
            identity = {"user": self.user, "group": self.user, "extra_groups": []}
            if self.user == os.getuid():
                identity = {}
            started = time.monotonic()
            self.ended = subprocess.run(
                command, capture_output=True, text=True, env=environment, cwd="/", **identity
            )
            self.seconds = time.monotonic() - started
            self.connections = 0
            for listener in (tcp, unix):
                try:
                    listener.accept()[0].close()
                    self.connections += 1
                except BlockingIOError:
                    pass
        lines = [json.loads(line) for line in self.ended.stdout.splitlines()]
        self.results = {line["program"]: line for line in lines}


@pytest.fixture(scope="module", params=WHO)
def attacked(request: pytest.FixtureRequest) -> Iterator[Host]:
    with tempfile.TemporaryDirectory() as folder:
        yield Host(request.param, Path(folder))


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_hostile_program_is_marked_correct(attacked: Host, program: str) -> None:
    result = attacked.results[program]
    assert result["passed"] is False, result
    assert result["uid"] == attacked.user
    assert "the-secret" not in result["reason"]
    assert "got" not in result["reason"], result
    assert "found" not in result["reason"], result
    assert "wrote" not in result["reason"], result


def test_an_honest_program_passes(attacked: Host) -> None:
    # otherwise "none is marked correct" would say nothing
    assert attacked.results["honest"]["passed"] is True, attacked.results["honest"]


def test_the_host_is_unharmed(attacked: Host) -> None:
    assert attacked.ended.returncode == 0, attacked.ended.stderr
    assert len(attacked.results) == len(PROGRAMS) + 1 >= 26
    assert attacked.canary.read_text() == "untouched"
    assert attacked.connections == 0
    assert "was here" not in Path(os.__file__).read_text()
    assert not _left_over(attacked.canary.parent)


def _left_over(folder: Path) -> list[str]:
    """Processes of finished jails; a moment is allowed for the kernel to reap them."""
    found: list[str] = []
    for _ in range(40):
        found = [path for path in _commands() if str(folder).encode() in path]
        if not found:
            break
        time.sleep(0.05)
    return [str(line) for line in found]


def _commands() -> Iterator[bytes]:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield entry.read_bytes()
        except OSError:
            continue


def test_without_isolation_nothing_runs_unless_the_risk_is_accepted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(job: object, limits: object, *, isolate: bool, **more: object) -> dict[str, object]:
        return (
            {"refused": "unshare: Operation not permitted"}
            if isolate
            else start(job, limits, isolate=False, **more)
        )

    start = host._start
    monkeypatch.setattr(host, "_start", refused)
    job = {"kind": "asserts", "program": "def f(): return 3", "setup": "", "entry_point": "f"}
    good, bad = {**job, "tests": ["assert f() == 3"]}, {**job, "tests": ["assert f() == 4"]}
    with pytest.raises(host.NoIsolation):
        host.run(good)
    assert host.run(good, without_isolation=True).passed
    assert not host.run(bad, without_isolation=True).passed


def test_a_broken_jail_is_not_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_BOOT", "raise SystemExit(1)")
    with pytest.raises(host.JailBroken):
        host.run({"kind": "asserts", "program": "", "setup": "", "entry_point": "", "tests": []})


def test_a_jail_whose_machine_is_unknown_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    from routeyard.pipelines.common.isolation.jail import jail, kernel

    monkeypatch.setattr(kernel, "machine", lambda: "vax")
    with pytest.raises(OSError, match="vax"):
        jail._new_namespaces()
