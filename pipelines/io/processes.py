"""Which process of which machine this is, and whether another one of the same place still runs.

A process id means one process only within a boot of a machine and a pid namespace: two
containers may share a host name and a boot, and each has a process 1.
"""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path


def pid_space() -> str:
    """Host name, boot, and pid and time namespace of this process, as one text.

    Where one of them cannot be known (no /proc, or that of another namespace), a text that no
    other process gets: then no process id is looked up.
    """
    name = socket.gethostname()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        spaces = [str(Path(f"/proc/self/ns/{kind}").stat().st_ino) for kind in _kinds()]
        if boot and Path("/proc/self").readlink() == Path(str(os.getpid())):
            return " ".join([name, boot, *spaces])
    except OSError:
        pass
    return f"{name} {uuid.uuid4().hex}"


def _kinds() -> list[str]:
    # A time namespace shifts the start times that /proc gives.
    return ["pid", "time"] if Path("/proc/self/ns/time").exists() else ["pid"]


def started(pid: int) -> str | None:
    """Start time of a living process of this place in clock ticks; null where unknown or dead."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command name may hold spaces and brackets: read behind the last one.
    state, *rest = text[text.rindex(")") + 2 :].split()
    # A killed child that its parent has not waited for answers nothing any more.
    return None if state in ("Z", "X") else rest[18]


def runs(pid: int) -> bool:
    """Whether a process of that id is there in this place."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
