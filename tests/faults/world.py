"""What stands in for the world in a build under attack, and nowhere in the package.

An encoder and a drawing engine that are hashes, a clock that stands still or jumps, two routers
for the certificate, a limit on the size of files, another host name, a disk that is small or
cannot be written, a machine that was asleep.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import inspect
import json
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

_REAL_TIME = time.time


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

    from routeyard.flows import workspace as stage_folders
    from routeyard.pipelines.collect import client
    from routeyard.pipelines.collect import runner as worker
    from routeyard.pipelines.common import encoders
    from routeyard.pipelines.evaluate import certificate

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

    # Two of the certificate's five routers, the others fit networks, and a twentieth of its draws.
    plain = inspect.unwrap(certificate.certify)
    plain.__kwdefaults__.update(routers=("knn", "task-map"), resamples=500)
    worker.datetime = Clock
    if job.get("still"):
        client.time = Still()
    if name := job.get("host"):
        socket.gethostname = lambda: name
    if job.get("lease"):
        from routeyard.pipelines.collect.ledger import Lease

        Lease.HEARTBEAT_S, Lease.LEASE_S = job["lease"]
    if naps := job.get("asleep"):
        from routeyard.pipelines.collect.ledger import Clocks

        looks, awake = iter(range(10**9)), Clocks.own
        Clocks.own = lambda self: awake(self) + naps[min(next(looks), len(naps) - 1)]
    if "reserve" in job:
        from routeyard.pipelines.collect.sqlite import Reserve

        Reserve.BYTES = job["reserve"]
    if size := job.get("largest_file"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
_BIND, _REMOUNT, _READ_ONLY, _PRIVATE, _ALL = 4096, 32, 1, 1 << 18, 16384


@contextlib.contextmanager
def _not_writable(folder: Path) -> Iterator[None]:
    modes = {path: path.stat().st_mode for path in (folder, *folder.rglob("*"))}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@contextlib.contextmanager
def disk(job: dict[str, Any]) -> Iterator[None]:
    """The workspace on a disk of so many bytes, or one that cannot be written.

    Mounts that only this fork sees; what is on the small disk is copied out at the end. An
    ordinary user's workspace is one without the right to write instead, which stops no root.
    """
    folder = job.get("small_disk") or job.get("read_only")
    if not folder:
        yield
        return
    if "read_only" in job and os.getuid():
        with _not_writable(Path(folder)):
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
