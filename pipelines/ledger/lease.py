"""The lease of a process: who holds claims, until when, and how others see that it has lapsed.

docs/ledger.md states the protocol. A lease's name is its fencing token: no two leases ever have
one name, and a lease that another process has ended never comes back.
"""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass, field
from typing import ClassVar

from routeyard.pipelines.io.processes import pid_space, runs, started


@dataclass(frozen=True, slots=True)
class Lease:
    """One lease of one open ledger of one process.

    Attributes:
        host: Host, boot and namespaces in which `pid` means this process.
        started: Start time of the process; null where the system does not tell.
    """

    name: str
    host: str
    pid: int
    started: str | None

    #: Seconds between renewals, and for which a renewal holds by the holder's own clock.
    HEARTBEAT_S: ClassVar[float] = 10.0
    LEASE_S: ClassVar[float] = 120.0

    @classmethod
    def ends_after_s(cls) -> float:
        """Silence after which others may end a lease: who was stopped for less keeps it."""
        return cls.LEASE_S + 2 * cls.HEARTBEAT_S

    @classmethod
    def this_process(cls) -> Lease:
        pid = os.getpid()
        return cls(uuid.uuid4().hex, pid_space(), pid, started(pid))

    @staticmethod
    def process_ended(host: str | None, pid: int | None, began: str | None) -> bool:
        """Whether a process is known to be gone: only one of the same pid namespace can be."""
        if host is None or pid is None or host != pid_space():
            return False
        return started(pid) != began if began is not None else not runs(pid)


class Clocks:
    """The clocks that leases are judged by; nobody sets them. Tests put others in their place."""

    def monotonic(self) -> float:
        """Seconds that this process could have run: the silence of others is measured by it."""
        return time.monotonic()

    def own(self) -> float:
        """Seconds in which the machine's sleep counts: the process's own lease runs out by it."""
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass
class Validity:
    """Whether this process may still rely on its own lease, by its own clock.

    It ends two heartbeats before others may end the lease.
    """

    _clocks: Clocks
    _begun: float | None = None
    _renewed: float | None = None

    def begin(self) -> None:
        """A renewal is about to be written."""
        self._begun = self._clocks.own()

    def written(self) -> None:
        """What was written last is durable."""
        if self._begun is not None:
            self._renewed, self._begun = self._begun, None

    def holds(self) -> bool:
        if self._renewed is None:
            return False
        return self._clocks.own() - self._renewed < Lease.LEASE_S


@dataclass
class Watch:
    """Heartbeats of other leases, as this process has seen them."""

    _clocks: Clocks
    _seen: dict[str, tuple[float, float]] = field(default_factory=dict)

    def unmoved_s(self, name: str, beat: float) -> float:
        """Seconds, by this process's clock, for which a lease's heartbeat is what it is now."""
        now = self._clocks.monotonic()
        last, since = self._seen.get(name, (beat, now))
        if last != beat:
            since = now
        self._seen[name] = (beat, since)
        return now - since


def is_lapsed(unmoved_s: float, server_silent_s: float | None) -> bool:
    """Whether a lease may be ended by others.

    Args:
        server_silent_s: Seconds since the renewal by the database server's clock; null without
            one. A time outside the lease says either that it has run out, or
            that the server's clock was set: then the heartbeat alone decides.
    """
    if server_silent_s is not None and 0 <= server_silent_s < Lease.ends_after_s():
        return False
    return unmoved_s >= Lease.ends_after_s()
