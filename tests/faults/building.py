"""Run as a process of its own: imports what a build needs once, then forks a command per line.

    {"words": ["build", …], "out": FILE, "kill": {"stage": "label", "event": 3}, …}

With `learn` the parent imports afterwards what the command imported, for the forks to come.
A line is a list of jobs that run beside each other.
A fork is a real process in a group of its own, ended by a real SIGKILL: at the n-th change of a
file within a stage (`event`), or so many seconds into it (`after`). What stands in for the world
is in `world.py`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults.world import disk, world

#: Audit events that change a file; `open` counts when it writes.
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "sqlite3.connect"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Stages:
    """Says which stage a build is in, and kills it where the job says so."""

    def __init__(self, kill: dict[str, Any] | None, told: int) -> None:
        self.kill = kill or {}
        self.told = told
        self.stage = ""
        self.events = 0

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.stage:
            return
        if event == "open":
            if not isinstance(arguments[2], int) or not arguments[2] & _WRITING:
                return
        elif event not in _CHANGES:
            return
        self.events += 1
        if self.stage == self.kill.get("stage") and self.events == self.kill.get("event"):
            os.killpg(0, signal.SIGKILL)

    @contextlib.contextmanager
    def within(self, name: str) -> Iterator[None]:
        self.stage, self.events = name, 0
        begun, used = time.perf_counter(), time.process_time()
        self.tell({"begun": name})
        try:
            yield
        finally:
            seconds = time.perf_counter() - begun
            cpu = time.process_time() - used
            self.tell({"ended": name, "events": self.events, "seconds": seconds, "cpu": cpu})
            self.stage = ""

    def tell(self, what: dict[str, Any]) -> None:
        os.write(self.told, json.dumps(what).encode() + b"\n")


def watch(stages: Stages) -> None:
    """Every stage of `routeyard.flows.build` goes through here."""
    from routeyard.flows import build

    plain, call = build.Completing.__call__, build.call
    entered = contextlib.ExitStack()

    def completing(self: Any, stage: Any, *given: Any) -> Any:
        name = stage.part_of or stage.name
        if stages.stage != name:
            entered.close()
            entered.enter_context(stages.within(name))
        try:
            made = plain(self, stage, *given)
        except BaseException:
            entered.close()
            raise
        if not stage.part_of:
            entered.close()
        return made

    def calling(task: Any, **parameters: Any) -> Any:
        if task.name != "release":
            return call(task, **parameters)
        with stages.within("release"):
            return call(task, **parameters)

    build.Completing.__call__ = completing  # type: ignore[method-assign]
    build.call = calling
    sys.addaudithook(stages.hook)


def child(job: dict[str, Any], told: int) -> int:
    """What a fork does: the command, with its output in a file."""
    out = os.open(job["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ.update(job.get("env", {}))
    time.sleep(job.get("delay", 0.0))
    stages = Stages(job.get("kill"), told)
    world(job)
    watch(stages)
    from routeyard.flows.cli import run

    with disk(job):  # before there is a second thread: a user's own mounts are for one alone
        # Where one hangs, its output says where.
        faulthandler.dump_traceback_later(120, repeat=True)
        code = run([str(word) for word in job["words"]])
    if job.get("learn"):
        stages.tell({"modules": sorted(sys.modules)})
    return code


def learn(modules: list[str]) -> None:
    """Import here what a whole build did, so that later forks find it done."""
    for name in modules:
        if name != "vl_convert":
            with contextlib.suppress(Exception):
                importlib.import_module(name)


class Fork:
    """One job in a process group of its own."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.kill = job.get("kill") or {}
        self.begun = time.monotonic()
        self.due: float | None = None
        self.stage, self.pending = "", b""
        self.stages: dict[str, list[float]] = {}
        self.modules: list[str] = []
        self.reads, told = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                os.setsid()
                code = child(job, told)
            except BaseException:
                import traceback

                traceback.print_exc()
                code = 1
            finally:
                for stream in (sys.stdout, sys.stderr):
                    with contextlib.suppress(Exception):
                        stream.flush()
                os._exit(code)
        os.close(told)

    def hear(self) -> bool:
        """Take in what the fork says of its stages; False when it has ended."""
        data = os.read(self.reads, 65536)
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            self.modules += said.get("modules", [])
            self.stage = said.get("begun", self.stage)
            if said.get("begun") == self.kill.get("stage", "") and "after" in self.kill:
                self.due = time.monotonic() + self.kill["after"]
            if "ended" in said:
                self.stages[said["ended"]] = [said["events"], said["seconds"], said["cpu"]]
                if said["ended"] == self.kill.get("stage"):
                    self.due = 0.0  # it was over before its moment came
        return bool(data)

    def strike(self) -> None:
        """Kill it if its moment has come."""
        if self.due is not None and time.monotonic() >= self.due:
            self.due = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def end(self) -> dict[str, Any]:
        os.close(self.reads)
        _, status = os.waitpid(self.pid, 0)
        if self.modules:
            learn(self.modules)
        return {
            "code": os.waitstatus_to_exitcode(status),
            "stage": self.stage,
            "stages": self.stages,
            "seconds": time.monotonic() - self.begun,
        }


def forked(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run jobs beside each other to their ends; exit codes (negative: a signal) and times."""
    forks = [Fork(job) for job in jobs]
    running = {fork.reads: fork for fork in forks}
    while running:
        times = [fork.due for fork in running.values() if fork.due is not None]
        wait = max(0.0, min(times) - time.monotonic()) if times else None
        for reads in select.select(list(running), [], [], wait)[0]:
            if not running[reads].hear():
                del running[reads]
        for fork in running.values():
            fork.strike()
    return [fork.end() for fork in forks]


#: What a build imports, so that it is imported once and not first by a fork and then here.
_NEEDED = (
    "routeyard.flows.build",
    "routeyard.flows.cli",
    "routeyard.flows.cli.start",
    "routeyard.datacards.card",
    "routeyard.pipelines.collect.client",
    "routeyard.pipelines.release.build",
    "routeyard.pipelines.evaluate.certificate",
)


def needed() -> None:
    """Import what every build needs, the routers of the certificate with it."""
    for name in _NEEDED:
        importlib.import_module(name)
    from routeyard.pipelines.evaluate.certificate import REFERENCE
    from routeyard.pipelines.routers import ROUTERS

    for name in REFERENCE:
        if name in ROUTERS.targets:
            ROUTERS.get(name)


def main() -> None:
    needed()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(forked(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
