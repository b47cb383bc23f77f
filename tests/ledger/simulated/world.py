"""One schedule: processes that want the same answers, a server that counts, and faults.

Everything that happens follows from the seed. `World(seed, database).run()` returns what broke.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from routeyard.pipelines.collect.budget import BudgetLedger, Price
from routeyard.pipelines.collect.client import TimedReply
from routeyard.pipelines.collect.ledger import Attempt
from routeyard.pipelines.collect.reply import CallFault, ModelReply, ReplyChoice, Usage
from routeyard.pipelines.collect.request import CHAT_COMPLETIONS, Request, RequestSettings
from routeyard.pipelines.collect.runner import Gate, ModelQueue, ModelWorker, RequestRun
from routeyard.schemas.recipe.collect import Budget, RateLimits, Retry
from routeyard.schemas.recipe.pool import Provider
from tests.ledger.simulated.ledgers import Crashed
from tests.ledger.simulated.loop import ProcessLoop

#: Seconds of a lease and between heartbeats: the ratio of the real ones.
LEASE_S, HEARTBEAT_S = 6.0, 0.5
PRICE = Price(1000.0, 1000.0)
MAX_TOKENS = 20
#: A schedule that takes longer than this many virtual seconds or turns hangs.
LONGEST_S, MOST_TURNS = 3_000.0, 200_000
SETTINGS = RequestSettings("simulated", CHAT_COMPLETIONS, "m", {"max_tokens": MAX_TOKENS})


@dataclass
class Process:
    """One simulated process of a pid namespace, with clocks of its own."""

    world: World
    name: str
    space: str
    pid: int
    faulty: bool
    skew: float
    asleep: float = 0.0
    stopped_at: float = 0.0
    stopped_until: float = 0.0
    crashed: bool = False
    ended: bool = False
    leases: int = 0
    position: int = 0
    in_flight: Counter[str] = field(default_factory=Counter)
    fault: str | None = None

    def __post_init__(self) -> None:
        self.loop = ProcessLoop(self.monotonic)
        self.ledger = self.world.database.ledger(self)
        self.task = self.loop.create_task(self.work())

    def monotonic(self) -> float:
        return self.own() - self.asleep

    def own(self) -> float:
        return self.world.now + self.skew

    async def work(self) -> None:
        """As `runner.run_requests` does it, for one model."""
        world, ledger = self.world, self.ledger
        budget = BudgetLedger(Budget(usd=world.limit), ledger, "b")
        settled = ledger.settled(list(world.wanted))
        after = ledger.position()
        run = RequestRun(
            ledger, after, self.name, "collect", world.retry, budget, self._stored,
            random=random.Random(world.chance.random()),
        )  # fmt: skip
        missing = [
            world.wanted[name]
            for name in world.wanted
            if (name, 0) not in settled or settled[name, 0].status == "error"
        ]
        queue = ModelQueue(
            "m", Provider(name="p", base_url="http://127.0.0.1:1"), iter(missing), len(missing),
            limits=RateLimits(concurrency=world.concurrency), price=PRICE, max_tokens=MAX_TOKENS,
        )  # fmt: skip
        gate = Gate(RateLimits(concurrency=world.concurrency), adaptive=False)
        worker = ModelWorker(run, queue, _Transport(self), gate)
        try:
            await budget.begin(self.name)
            await worker.work()
            await budget.close()
            await asyncio.to_thread(ledger.flush)
        except Exception as error:
            run.fail(error)
        self.fault = str(run.fault) if run.fault else None
        self.paused = worker.tally.paused
        try:
            await asyncio.to_thread(ledger.close)
        except Exception as error:
            self.fault = self.fault or str(error)

    def _stored(self, rows: Any) -> None:
        row: Attempt = rows[0]
        self.in_flight[row.request_hash] -= 1
        if row.usable:
            self.world.acknowledged.add(row.request_hash)


@dataclass
class _Call:
    """One request on its way; the server goes on when the client does not."""

    process: Process
    name: str
    reply: asyncio.Future[TimedReply]
    paid: bool = False
    #: The client will never read the answer.
    lost: bool = False

    def lose(self) -> None:
        self.process.world.excused[self.name] += self.paid and not self.lost
        self.lost = True


class _Transport:
    streams = False

    def __init__(self, process: Process) -> None:
        self._process = process

    async def complete(self, path: str, body: Mapping[str, Any]) -> TimedReply:
        process = self._process
        name = SETTINGS.request_hash(body["messages"])
        process.in_flight[name] += 1
        call = _Call(process, name, process.loop.create_future())
        process.world.send(call)
        try:
            async with asyncio.timeout(4.0):
                return await call.reply
        except TimeoutError:
            call.lose()
            raise CallFault("timeout", "no answer within 4 s") from None


class World:
    """A schedule.

    Attributes:
        paid: How often the server did the work of each request.
        excused: How often it may have been asked again: its answer was lost, or it was in flight
            in a process that was killed, or stopped for longer than its lease.
    """

    def __init__(self, seed: int, database: Any) -> None:
        self.seed, self.database = seed, database
        self.chance = random.Random(seed)
        self.now = 0.0
        self.server_step = self.chance.choice([0.0, 1e6])
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self.processes: list[Process] = []
        self.paid: Counter[str] = Counter()
        self.excused: Counter[str] = Counter()
        self.billed = 0.0
        self.acknowledged: set[str] = set()
        self.happened: Counter[str] = Counter()
        self.concurrency = self.chance.choice([1, 2, 4])
        self.retry = Retry(attempts=8, first_wait_s=0.1)
        questions = self.chance.randrange(2, 8)
        self.wanted: dict[str, Request] = {}
        for number in range(questions):
            messages = [{"role": "user", "content": f"q{number}"}]
            name = SETTINGS.request_hash(messages)
            self.wanted[name] = Request(f"q{number}", "m", SETTINGS, messages, (0,), name)
        # Enough for everything, or for about half of it.
        self.limit = self.chance.choice([100.0, 0.3 * questions])
        #: Chances per turn: of a kill, of a stop, of a fault of the database, of a clock's step.
        self.rates = [self.chance.choice([0.0, 0.002, 0.01]) for _ in range(4)]
        database.begin(self)

    # -- time ----------------------------------------------------------------------

    def server_clock(self) -> float:
        return self.now + self.server_step

    def at(self, delay: float, do: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + delay, next(self._count), do))

    def living(self, space: str) -> set[int]:
        here = [one for one in self.processes if one.space == space]
        return {one.pid for one in here if not (one.crashed or one.ended)}

    # -- the server ----------------------------------------------------------------

    def send(self, call: _Call) -> None:
        kind = self.chance.random()
        if kind < 0.02:
            self.happened["request lost"] += 1
            return  # never arrives
        self.at(self.chance.uniform(0.0, 0.3), lambda: self._arrive(call, kind))

    def _arrive(self, call: _Call, kind: float) -> None:
        if kind < 0.04:
            self._answer(call, CallFault("http_429", "", status=429, maybe_billed=False))
            return
        tokens = self.chance.randrange(1, MAX_TOKENS + 1)
        cost = PRICE.of(10, tokens)
        assert cost is not None
        self.paid[call.name] += 1
        self.billed += cost
        call.paid = True
        if call.lost:
            self.excused[call.name] += 1
        if kind < 0.06:
            self.happened["answer lost"] += 1
            return
        if kind < 0.08:
            call.lose()
            self.at(0.1, lambda: self._answer(call, CallFault("http_500", "", status=500)))
            return
        choice = ReplyChoice(f"answer to {call.name[:6]}", "ok", "stop", None)
        usage = Usage(10, tokens, None, 10 + tokens)
        found = TimedReply(ModelReply((choice,), usage, "m", None, None), 0.1, None)
        self.at(self.chance.expovariate(1 / 0.6), lambda: self._answer(call, found))

    def _answer(self, call: _Call, what: CallFault | TimedReply) -> None:
        def give() -> None:
            if call.reply.done():
                return
            if isinstance(what, CallFault):
                call.reply.set_exception(what)
            else:
                call.reply.set_result(what)

        if not call.process.crashed:
            call.process.loop.call_soon(give)

    # -- faults --------------------------------------------------------------------

    def database_fault(self, process: Process) -> str | None:
        if process.faulty and self.chance.random() < self.rates[2]:
            self.happened["database fault"] += 1
            self._excuse(process)
            return self.chance.choice(["before", "after"])
        return None

    def _excuse(self, process: Process) -> None:
        for name, count in process.in_flight.items():
            self.excused[name] += max(0, count)

    def _kill(self, process: Process) -> None:
        self.happened["kill"] += 1
        process.crashed = True
        self._excuse(process)

    def _stop(self, process: Process) -> None:
        seconds = self.chance.choice([0.3, 0.9, 1.05, 1.5, 4.0]) * LEASE_S
        # Stops with no time for a heartbeat between them are one stop.
        if self.now > process.stopped_until + 2 * HEARTBEAT_S:
            process.stopped_at = self.now
        process.stopped_until = self.now + seconds
        if self.chance.random() < 0.3:
            self.happened["machine asleep"] += 1
            process.asleep += seconds
        if process.stopped_until - process.stopped_at >= LEASE_S:
            self.happened["stop longer than the lease"] += 1
            self._excuse(process)
        self.happened["stop"] += 1

    def _interfere(self, process: Process) -> None:
        if process.faulty and self.chance.random() < self.rates[0]:
            self._kill(process)
        elif process.faulty and self.chance.random() < self.rates[1]:
            self._stop(process)
        if self.chance.random() < self.rates[3]:
            self.happened["server clock set"] += 1
            self.server_step += self.chance.choice([-1e5, -LEASE_S, LEASE_S, 1e5])

    # -- the schedule ----------------------------------------------------------------

    def start(self, *, faulty: bool = True) -> Process:
        number = len(self.processes)
        space = self.chance.choice("AB") if faulty else "C"
        # Namespaces count from 1: the same ids in each.
        pid = 1 + sum(one.space == space for one in self.processes)
        made = Process(self, f"p{number}", space, pid, faulty, self.chance.uniform(0, 1e4))
        self.processes.append(made)
        return made

    def run(self) -> list[str]:
        """What broke, in words; nothing where every promise was kept."""
        for _ in range(self.chance.choice([2, 2, 3])):
            self.at(self.chance.choice([0.0, 0.0, self.chance.uniform(0, 8)]), self.start)
        broken = self._until_idle()
        # Whoever comes last meets no faults and finishes the work.
        last = self.start(faulty=False)
        broken += self._until_idle()
        if not last.ended:
            broken.append("the last process did not end")
        elif last.fault:
            broken.append(f"the last process failed: {last.fault}")
        return broken + self._promises(last)

    def tidy(self) -> None:
        """Drop what killed processes left half done, before Python does it in the next schedule."""
        for process in self.processes:
            process.crashed = True
            for left in asyncio.all_tasks(process.loop):
                with contextlib.suppress(BaseException):
                    left.get_coro().close()
            process.loop.close()

    def _until_idle(self) -> list[str]:
        for _ in range(MOST_TURNS):
            if not self._turn():
                hung = [p.name for p in self.processes if not (p.ended or p.crashed)]
                return [f"{name} waits for ever" for name in hung]
            if self.now > LONGEST_S:
                break
        return [f"no end after {self.now:.0f} s"]

    def _turn(self) -> bool:
        """Do what comes first; false where nothing will ever happen again."""
        alive = [p for p in self.processes if not (p.crashed or p.ended)]
        moments = []
        for one in alive:
            due = one.loop.due()
            if due is not None:
                when = due - one.skew + one.asleep
                moments.append(max(when, one.stopped_until, self.now))
            else:
                moments.append(float("inf"))
        first = min([*moments, self.events[0][0] if self.events else float("inf")])
        if first == float("inf") or not (alive or self.events):
            return False
        self.now = max(self.now, first)
        ready: list[Process | None] = [
            p for p, when in zip(alive, moments, strict=True) if when <= self.now
        ]
        if self.events and self.events[0][0] <= self.now:
            ready.append(None)
        chosen = ready[0] if len(ready) == 1 else self.chance.choice(ready)
        if chosen is None:
            heapq.heappop(self.events)[2]()
            return True
        self._interfere(chosen)
        if not chosen.crashed and chosen.stopped_until <= self.now:
            chosen.loop.turn()
            if chosen.task.done():
                chosen.ended = True
        return bool(self.events) or any(not (p.crashed or p.ended) for p in self.processes)

    # -- what was promised -------------------------------------------------------------

    def _promises(self, last: Process) -> list[str]:
        broken = [f"{p.name}: {error}" for p in self.processes for error in p.loop.errors]
        broken += [
            f"{process.name} ended in {error!r}"
            for process in self.processes
            if process.task.done() and (error := process.task.exception()) is not None
        ]
        for name, times in self.paid.items():
            if times > 1 + self.excused[name]:
                broken.append(
                    f"{self.wanted[name].query_id} paid {times} times, excused {self.excused[name]}"
                )
        settled = last.ledger.settled(list(self.wanted))
        answered = {name for (name, _), found in settled.items() if found.status == "ok"}
        lost = [name for name in self.wanted if name in self.acknowledged - answered]
        broken += [f"the answer to {self.wanted[name].query_id} was lost" for name in lost]
        if self.limit == 100.0 and len(answered) < len(self.wanted) and last.ended:
            broken.append(f"{len(self.wanted) - len(answered)} questions without an answer")
        if self.billed > self.limit + 1e-9:
            broken.append(f"billed {self.billed:.3f} of {self.limit:.3f} USD")
        charged = sum(last.ledger.charged("b").values())
        if charged + 1e-9 < self.billed:
            broken.append(f"charged {charged:.3f} USD for a bill of {self.billed:.3f}")
        return broken


__all__ = ["Crashed", "Process", "World"]
