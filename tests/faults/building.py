"""Run as a process of its own: imports what a build needs once, then forks a command per line.

    {"words": ["build", …], "out": FILE, "kill": {"stage": "label", "event": 3}, …}

With `learn` the parent imports afterwards what the command imported, for the forks to come.
A line is a list of jobs that run beside each other.
A fork is a real process in a group of its own, ended by a real SIGKILL: at the n-th change of a
file within a stage (`event`), or so many seconds into it (`after`). What a test puts in place of
the world stands here and nowhere in the package: an encoder that is a hash, a clock that stands
still or jumps, a limit on the size of files, another host name.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import hashlib
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

#: Audit events that change a file; `open` counts when it writes.
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "sqlite3.connect"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_REAL_TIME = time.time


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
    """Every stage of `flows.build` goes through here."""
    from flows import build

    names = {
        build.ingest_task: "ingest",
        build.pool_task: "pool",
        build.curate_task: "curate",
        build.audit_task: "audit",
        build.certify_task: "certify",
        build.release_task: "release",
    }
    plain = build.call

    def call(task: Any, **parameters: Any) -> Any:
        with stages.within(names[task]):
            return plain(task, **parameters)

    def staged(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            with stages.within(name):
                return function(*given, **named)

        return run

    build.call = call
    for name in ("collect", "label", "embed"):
        setattr(build, f"{name}_stage", staged(name, getattr(build, f"{name}_stage")))
    sys.addaudithook(stages.hook)


def hashed(texts: list[str]) -> tuple[Any, list[int | None]]:
    """Unit vectors that say what a text is: equal for texts that differ in case or spaces."""
    import numpy as np

    rows = []
    for text in texts:
        plain = " ".join(text.lower().split())
        seed = int.from_bytes(hashlib.sha256(plain.encode()).digest()[:8], "big")
        rows.append(np.random.default_rng(seed).standard_normal(32))
    vectors = np.asarray(rows, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), [None] * len(texts)


def drawn(spec: Any, **_: Any) -> str:
    """A picture that says what it is of; starting a browser's engine takes seconds."""
    text = json.dumps(spec, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10">'
        f"<title>{digest}</title></svg>"
    )


def world(job: dict[str, Any]) -> None:
    """Put in place of the world what the job names."""
    import socket
    from datetime import UTC, datetime, timedelta

    from flows.workspace import stage_folders
    from pipelines import encoders
    from pipelines.calls import client, run

    encoders.load = lambda encoder, batch_size: hashed
    # The same code makes all of them; to hash it anew in every fork would take most of the time.
    stage_folders.made_by = lambda make, uses=(): {make.__module__: make.__qualname__}
    engine: Any = ModuleType("vl_convert")
    engine.vegalite_to_svg = drawn
    engine.svg_to_png = lambda svg, **_: hashlib.sha256(svg.encode()).digest()
    sys.modules["vl_convert"] = engine
    shift: Callable[[], float] = lambda: 0.0  # noqa: E731
    if jumps := job.get("clock"):
        calls = iter(range(10**9))
        shift = lambda: float(jumps[next(calls) % len(jumps)])  # noqa: E731
        time.time = lambda: _REAL_TIME() + shift()

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            day = datetime(2026, 1, 1, tzinfo=UTC) if job.get("still") else datetime.now(UTC)
            return day + timedelta(seconds=shift())

    class Still:
        perf_counter = staticmethod(lambda: 0.25)

        def __getattr__(self, name: str) -> Any:
            return getattr(time, name)

    run.datetime = Clock
    if job.get("still"):
        client.time = Still()
    if name := job.get("host"):
        socket.gethostname = lambda: name
    if job.get("lease"):
        from pipelines.ledger.owner import Owner

        Owner.HEARTBEAT_S, Owner.LEASE_S = job["lease"]
    if size := job.get("largest_file"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
_BIND, _REMOUNT, _READ_ONLY, _PRIVATE, _ALL = 4096, 32, 1, 1 << 18, 16384


@contextlib.contextmanager
def disk(job: dict[str, Any]) -> Iterator[None]:
    """The workspace on a disk of so many bytes, or one that cannot be written.

    Both are mounts that only this fork sees; what is on the small disk is copied out at the end.
    """
    folder = job.get("small_disk") or job.get("read_only")
    if not folder:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)

    def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
        words = [word.encode() for word in (source, target, kind)]
        if libc.mount(*words, ctypes.c_ulong(flags), data.encode()):
            raise OSError(ctypes.get_errno(), f"mount {target}")

    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_MOUNTS | (0 if user == 0 else _NEW_USER)):
        raise OSError(ctypes.get_errno(), "unshare")
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    mount("none", "/", "", _PRIVATE | _ALL)
    if "read_only" in job:
        mount(folder, folder, "", _BIND)
        mount("none", folder, "", _BIND | _REMOUNT | _READ_ONLY)
        yield
        return
    aside = Path(folder + ".aside")
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(folder, aside)
    mount("tmpfs", folder, "tmpfs", 0, f"size={job['bytes']}")
    shutil.copytree(aside, folder, dirs_exist_ok=True)
    try:
        yield
    finally:
        shutil.rmtree(aside)
        shutil.copytree(folder, aside)  # beside the mount, where the caller finds it


def child(job: dict[str, Any], told: int) -> int:
    """What a fork does: the command, with its output in a file."""
    out = os.open(job["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ.update(job.get("env", {}))
    # Where one hangs, its output says where.
    faulthandler.dump_traceback_later(120, repeat=True)
    time.sleep(job.get("delay", 0.0))
    stages = Stages(job.get("kill"), told)
    world(job)
    watch(stages)
    from flows.cli import run

    with disk(job):
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


def main() -> None:
    import pipelines.calls.client
    import pipelines.release.build  # noqa: F401

    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(forked(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
