"""Who holds a claim, and whether that process still lives.

On the same host a process is known by its id and start time, so that the claims
of one that was killed lapse at once. Across hosts a heartbeat decides, and so it does for a
process that lives and says nothing: it was stopped, or this ledger is a copy of its own.
"""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from routeyard.pipelines.io.staging import runs


@dataclass(frozen=True, slots=True)
class Lease:
    """One open ledger of one process."""

    name: str
    host: str
    pid: int
    started: str | None

    HEARTBEAT_S: ClassVar[float] = 10.0
    LEASE_S: ClassVar[float] = 120.0

    @classmethod
    def this_process(cls) -> Lease:
        pid = os.getpid()
        return cls(uuid.uuid4().hex, _host(), pid, _started(pid))

    @staticmethod
    def is_held(host: str | None, pid: int | None, started: str | None, silent_s: float) -> bool:
        """Whether the process that last said it lives `silent_s` seconds ago still does."""
        if host is None or pid is None or silent_s >= Lease.LEASE_S:
            return False
        if host == _host():
            return _started(pid) == started if started is not None else runs(pid)
        return True


def _host() -> str:
    """Host name and boot, so that a process id is never taken across a restart."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}"


def _started(pid: int) -> str | None:
    """Start time of a living process in clock ticks; null where unknown or dead."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command name may hold spaces and brackets: read behind the last one.
    state, *rest = text[text.rindex(")") + 2 :].split()
    # A killed child that its parent has not waited for answers nothing any more.
    return None if state in ("Z", "X") else rest[18]
