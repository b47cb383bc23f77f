"""Starts a jail and waits for its result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .modules import Shown, installed

# The package is loaded by path under a separate name, because the folders
# above it must not come onto the path of a bare interpreter.
_BOOT = """
import importlib.util, sys
folder = sys.argv.pop(1)
spec = importlib.util.spec_from_file_location(
    "jailed", folder + "/__init__.py", submodule_search_locations=[folder]
)
sys.modules["jailed"] = importlib.util.module_from_spec(spec)
import jailed.jail
jailed.jail.main()
"""
_FOLDER = Path(__file__).resolve().parent


class NoIsolation(Exception):
    """The kernel offers none, so nothing was run."""


class JailBroken(Exception):
    """The jail failed, not the program: nothing is known about the program."""


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """What a program may use.

    wall_s and cpu_s in seconds (cpu_s for each process), memory_mb of address
    space and file_mb per file in MiB, scratch_mb for all files together,
    processes including threads.
    """

    cpu_s: int = 10
    wall_s: float = 30.0
    memory_mb: int = 512
    file_mb: int = 8
    scratch_mb: int = 16
    processes: int = 4


@dataclass(frozen=True, slots=True)
class Result:
    """Whether every test held, and what happened; `fault` says what the question or this machine
    lacks, so that nothing is known about the program."""

    passed: bool
    reason: str
    fault: str | None = None


def run(
    job: Mapping[str, Any],
    limits: ProgramLimits | None = None,
    *,
    without_isolation: bool = False,
    modules: tuple[str, ...] = (),
) -> Result:
    """Run a program against tests (`examiner` lists the kinds of job).

    Args:
        job: kind, program, entry_point, setup and tests or cases.
        limits: What the program may use.
        without_isolation: Accept a plain process with resource limits where no
            namespaces can be had. Where they can be had they are used.
        modules: Third-party modules the program may import, seen read-only from
            this environment with what they need.

    Raises:
        NoIsolation: no namespaces, and the risk was not accepted.
        JailBroken: the jail itself failed.
        ModuleNotFoundError: one of `modules` is not installed.
    """
    limits = limits or ProgramLimits()
    shown = installed(modules)
    said = first = _start(job, limits, isolate=True, modules=shown)
    if "refused" in said:
        if not without_isolation:
            raise NoIsolation(str(said["refused"]))
        said = _start(job, limits, isolate=False, modules=shown)
    if said.get("passed") is True and (said.get("changed") is True or said.get("apart")):
        # It changed arguments of a call whose result is used, now or in a call for nothing before:
        # a test that computes what it expects from a changed argument may hold for nothing, so it
        # has to hold without.
        again = {**job, "carry": False, "apart": said.get("apart") or ()}
        said = _start(again, limits, isolate="refused" not in first, modules=shown)
        if said.get("passed") is False:
            said["reason"] = f"holds only because the arguments were changed: {said['reason']}"
    if "passed" not in said:
        raise JailBroken(str(said.get("broken", said)))
    fault = said.get("fault")
    return Result(said["passed"] is True, str(said["reason"]), str(fault) if fault else None)


def _start(
    job: Mapping[str, Any], limits: ProgramLimits, *, isolate: bool, modules: Shown = Shown()
) -> dict[str, Any]:
    settings = json.dumps({**asdict(limits), "isolate": isolate, "modules": asdict(modules)})
    interpreter = getattr(sys, "_base_executable", None) or sys.executable
    # As `-I`, which would not listen to the seed: the order of a set of texts is then the same in
    # every run of a program, and so is its verdict.
    command = [interpreter, "-P", "-s", "-S", "-X", "utf8", "-c", _BOOT, str(_FOLDER), settings]
    process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own file
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONHASHSEED": "0"},
        cwd="/",
        start_new_session=True,
    )
    try:
        result, _ = process.communicate(json.dumps(dict(job)).encode(), timeout=limits.wall_s)
    except subprocess.TimeoutExpired:
        return {"passed": False, "reason": f"not done after {limits.wall_s:g} s"}
    finally:
        _end(process)
    try:
        said = json.loads(result)
    except ValueError:
        return {"broken": "the jail said nothing"}
    return said if isinstance(said, dict) else {"broken": "no result"}


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        # Without namespaces the group is all there is; with them the launcher's
        # death takes every process inside along.
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.wait()
