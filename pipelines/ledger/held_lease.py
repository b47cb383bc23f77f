"""The lease that one open ledger holds, its claims, and what it has seen of other leases."""

from __future__ import annotations

from collections.abc import Iterable

from routeyard.pipelines.ledger.answer_keys import AnswerKey
from routeyard.pipelines.ledger.charges import Execute
from routeyard.pipelines.ledger.lease import Clocks, Lease, Validity, Watch, is_lapsed
from routeyard.pipelines.ledger.statements import END_LEASE, RELEASE_ALL, Dialect


class HeldLease:
    """Renews this process's lease and judges those of others, within transactions.

    Attributes:
        claimed: Keys claimed under the present lease.
        begun: Whether anything was ever written under a lease.
    """

    def __init__(self, dialect: Dialect, clocks: Clocks) -> None:
        self._dialect = dialect
        self._validity, self._watch = Validity(clocks), Watch(clocks)
        self._lease = self.new()
        self.claimed: set[AnswerKey] = set()
        self.begun = False

    def new(self) -> Lease:
        return Lease.this_process()

    def process_ended(self, host: str | None, pid: int | None, began: str | None) -> bool:
        return Lease.process_ended(host, pid, began)

    @property
    def name(self) -> str:
        return self._lease.name

    def written(self) -> None:
        """What was executed last is durable."""
        self._validity.written()

    def holds(self, keys: Iterable[AnswerKey]) -> bool:
        """Whether the lease surely still runs, and covers these claims."""
        return self._validity.holds() and self.claimed.issuperset(keys)

    def renew(self, execute: Execute) -> str:
        """Write that this process lives; returns the name of its lease.

        Where another process has ended the lease, a new one begins, without claims.
        """
        self._validity.begin()
        if not (self.begun and execute(self._dialect.renew_lease, (self._lease.name,))):
            if self.begun:
                self._lease = self.new()
            self.claimed.clear()
            self.begun = True
            lease = self._lease
            row = (lease.name, lease.host, lease.pid, lease.started)
            execute(self._dialect.begin_lease, row)
        return self._lease.name

    def is_held(self, execute: Execute, name: str) -> bool:
        """Whether the lease of another process holds its claims and charges."""
        for host, pid, began, beat, silent_s in execute(self._dialect.read_lease, (name,)):
            if not self.process_ended(host, pid, began):
                return not is_lapsed(self._watch.unmoved_s(name, beat), silent_s)
        return False

    def end(self, execute: Execute, name: str) -> None:
        """End a lease as a whole: its process finds that out with its next renewal."""
        execute(RELEASE_ALL, (name,))
        execute(END_LEASE, (name,))
