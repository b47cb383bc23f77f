"""The protocol of docs/ledger.md as a small model whose states are all visited.

    python -m tests.ledger.lease_model          counts of states, per setting

Processes want the same answers. Each step is one atomic thing: a transaction, a look at one's own
clock, a request sent, its arrival, an answer, a tick of time, or a fault (kill, stop, sleep of a
machine, a lost request, a lost answer, a lost acknowledgement of a transaction, a step of the
server's clock). A request is paid when it arrives. `Rules` switches parts of the protocol off: the
model then finds the double payment that the part prevents.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

#: Ticks of a lease by its holder's clock, and of silence after which others may end it.
LEASE, ENDS = 2, 4
#: What a process has to do with one question.
NOTHING, CLAIMED, CHECKED, SENT, PAID, ANSWERED, SETTLED = range(7)
#: What a process is.
ABSENT, RUNNING, STOPPED, ASLEEP, KILLED, LEFT = range(6)
#: Seconds since a renewal by a server's clock that was set back.
FUTURE = -1


@dataclass(frozen=True)
class Rules:
    """Parts of the protocol, and the setting."""

    processes: int = 2
    questions: int = 1
    postgres: bool = False
    one_namespace: bool = False
    kills: int = 1
    stops: int = 1
    losses: int = 1
    steps: int = 1
    own_clock: bool = True
    heartbeat_seen: bool = True
    ended_as_a_whole: bool = True
    namespaces_told_apart: bool = True


class Process(NamedTuple):
    status: int = ABSENT
    lease: bool = False
    #: Ticks since the renewal, by the own clock; and of the present stop.
    age: int = LEASE
    stopped: int = 0
    does: tuple[int, ...] = ()
    #: Per other process: ticks for which its heartbeat has not moved, null before the first look.
    watched: tuple[int | None, ...] = ()
    #: Whether it has moved since that look.
    moved: tuple[bool, ...] = ()
    #: Ticks since the renewal by the server's clock.
    silent: int = 0


class State(NamedTuple):
    processes: tuple[Process, ...]
    #: Owner of each claim, -1 for none.
    claims: tuple[int, ...]
    answered: tuple[bool, ...]
    paid: tuple[int, ...]
    excused: tuple[int, ...]
    kills: int
    stops: int
    losses: int
    steps: int


def first(rules: Rules) -> State:
    n, q = rules.processes, rules.questions
    one = Process(does=(NOTHING,) * q, watched=(None,) * n, moved=(False,) * n)
    left = (rules.kills, rules.stops, rules.losses, rules.steps)
    return State((one,) * n, (-1,) * q, (False,) * q, (0,) * q, (0,) * q, *left)


def put(items: tuple, at: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (*items[:at], value, *items[at + 1 :])


def changed(state: State, at: int, **changes: object) -> State:
    made = state.processes[at]._replace(**changes)  # type: ignore[arg-type]
    return state._replace(processes=put(state.processes, at, made))


def does(state: State, at: int, question: int, what: int) -> State:
    return changed(state, at, does=put(state.processes[at].does, question, what))


def renewed(state: State, at: int) -> State:
    """The state after a transaction of a process, which renews its lease or begins a new one."""
    one = state.processes[at]
    kept = one.does
    if not one.lease:
        kept = tuple(NOTHING if what == CLAIMED else what for what in one.does)
    state = changed(state, at, lease=True, age=0, silent=0, does=kept)
    others = tuple(other._replace(moved=put(other.moved, at, True)) for other in state.processes)
    return state._replace(processes=others)


def looked(state: State, at: int, owner: int, rules: Rules) -> tuple[State, bool]:
    """Whether a process finds another's lease held, and the state after its look."""
    me, other = state.processes[at], state.processes[owner]
    if not other.lease:
        return state, False
    if other.status == KILLED and rules.one_namespace:
        return state, False
    if not rules.namespaces_told_apart:
        return state, False  # its process id is not there: taken for dead
    unmoved = me.watched[owner]
    if unmoved is None or me.moved[owner]:
        unmoved = 0
    watched, moved = put(me.watched, owner, unmoved), put(me.moved, owner, False)
    state = changed(state, at, watched=watched, moved=moved)
    if rules.postgres and 0 <= other.silent < ENDS:
        return state, True
    return state, rules.heartbeat_seen and unmoved < ENDS


def claim(state: State, at: int, question: int, rules: Rules) -> State:
    """The transaction of a claim."""
    state = renewed(state, at)
    if state.answered[question]:
        return does(state, at, question, SETTLED)
    owner = state.claims[question]
    if owner not in (-1, at):
        state, held = looked(state, at, owner, rules)
        if held:
            return does(state, at, question, NOTHING)
        if rules.ended_as_a_whole:
            state = changed(state, owner, lease=False)
            state = state._replace(claims=tuple(-1 if o == owner else o for o in state.claims))
    state = state._replace(claims=put(state.claims, question, at))
    return does(state, at, question, CLAIMED)


def keep(state: State, at: int, question: int) -> State:
    """The transaction that keeps an answer; it ends a claim only of the same lease."""
    ours = state.claims[question] == at and state.processes[at].lease
    claims = put(state.claims, question, -1) if ours else state.claims
    state = state._replace(answered=put(state.answered, question, True), claims=claims)
    return does(state, at, question, SETTLED)


def killed(state: State, at: int) -> State:
    return excuse(changed(state, at, status=KILLED), at)


def excuse(state: State, at: int) -> State:
    """What is in flight in a process may be asked once more."""
    on_their_way = {CHECKED, SENT, PAID, ANSWERED}
    counts = zip(state.excused, state.processes[at].does, strict=True)
    return state._replace(excused=tuple(n + (what in on_their_way) for n, what in counts))


def steps(state: State, rules: Rules) -> Iterator[State]:
    """Every state that can come next."""
    for at, one in enumerate(state.processes):
        if one.status == ABSENT:
            yield changed(state, at, status=RUNNING)
        # The server and the network go on, whatever becomes of the client.
        for question, what in enumerate(one.does):
            if what == SENT:
                paid = put(state.paid, question, state.paid[question] + 1)
                yield does(state._replace(paid=paid), at, question, PAID)
        if one.status == RUNNING:
            yield from _work(state, at, one, rules)
        elif one.status in (STOPPED, ASLEEP):
            yield changed(state, at, status=RUNNING, stopped=0)
    if state.steps and rules.postgres:
        for silent in (FUTURE, ENDS):
            set_ = tuple(one._replace(silent=silent) for one in state.processes)
            yield state._replace(processes=set_, steps=state.steps - 1)
    if all(p.status != RUNNING or not p.lease or p.age <= 1 for p in state.processes):
        yield tick(state)


def _work(state: State, at: int, one: Process, rules: Rules) -> Iterator[State]:
    if one.lease and one.age:
        yield renewed(state, at)
    for question, what in enumerate(one.does):
        if what in (NOTHING, CLAIMED):
            after = claim(state, at, question, rules)
            yield after
            if state.losses:  # it was done, and the process hears of a fault instead
                yield killed(after._replace(losses=state.losses - 1), at)
        if what == CLAIMED and (one.age < LEASE or not rules.own_clock):
            yield does(state, at, question, CHECKED)
        if what == CHECKED:
            yield does(state, at, question, SENT)
        if what == SENT and state.losses:  # the request is lost: asked again after a time-out
            yield does(state._replace(losses=state.losses - 1), at, question, CLAIMED)
        if what == PAID:
            yield does(state, at, question, ANSWERED)
            if state.losses:  # the answer is lost: the call was paid for nothing
                excused = put(state.excused, question, state.excused[question] + 1)
                lost = state._replace(excused=excused, losses=state.losses - 1)
                yield does(lost, at, question, CLAIMED)
        if what == ANSWERED:
            yield keep(state, at, question)
    if all(what == SETTLED for what in one.does):
        yield changed(state, at, status=LEFT, lease=False)
    if state.kills:
        yield killed(state._replace(kills=state.kills - 1), at)
    if state.stops:
        for status in (STOPPED, ASLEEP):
            yield changed(state._replace(stops=state.stops - 1), at, status=status)


def tick(state: State) -> State:
    """One tick of time, which every clock but that of a sleeping machine counts."""
    for at, one in enumerate(state.processes):
        changes: dict[str, object] = {
            "age": min(one.age + 1, LEASE),
            "silent": one.silent if one.silent == FUTURE else min(one.silent + 1, ENDS),
        }
        if one.status != ASLEEP:
            changes["watched"] = tuple(
                None if seen is None else min(seen + 1, ENDS) for seen in one.watched
            )
        if one.status in (STOPPED, ASLEEP):
            changes["stopped"] = min(one.stopped + 1, LEASE)
            if one.stopped + 1 == LEASE:
                state = excuse(state, at)
        state = changed(state, at, **changes)
    return state


def broken(state: State) -> str | None:
    """What promise a state breaks."""
    for question, paid in enumerate(state.paid):
        if paid > 1 + state.excused[question]:
            return f"question {question} is paid {paid} times, {state.excused[question]} excused"
    return None


def mirrored(state: State) -> State:
    """The same state with the first two processes exchanged: they have the same rules."""

    def turned(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return (items[1], items[0], *items[2:])

    processes = turned(
        tuple(
            one._replace(watched=turned(one.watched), moved=turned(one.moved))
            for one in state.processes
        )
    )
    owners = tuple(1 - owner if owner in (0, 1) else owner for owner in state.claims)
    return state._replace(processes=processes, claims=owners)


@functools.cache
def visit(rules: Rules, *, most: int = 5_000_000) -> tuple[int, int, str | None]:
    """(states, transitions, the first broken promise) of all that can happen.

    Of a state and its mirror image one is visited.
    """
    begin = first(rules)
    seen, frontier, transitions, ends = {begin}, [begin], 0, False
    while frontier:
        found: list[State] = []
        for state in frontier:
            for after in steps(state, rules):
                transitions += 1
                if after in seen or mirrored(after) in seen:
                    continue
                if (said := broken(after)) is not None:
                    return len(seen), transitions, said
                ends |= all(after.answered)
                seen.add(after)
                found.append(after)
        if len(seen) > most:
            raise RuntimeError(f"more than {most:,} states")
        frontier = found
    return len(seen), transitions, None if ends else "no end is ever reached"


#: What the tests visit, and what the command does beside it.
SETTINGS = {
    "SQLite, two namespaces": Rules(),
    "SQLite, one namespace": Rules(one_namespace=True, losses=0),
    "PostgreSQL": Rules(postgres=True, losses=0),
}
LARGER = {
    "SQLite, one namespace, a loss": Rules(one_namespace=True),
    "PostgreSQL, a loss": Rules(postgres=True),
    "SQLite, two stops": Rules(stops=2, losses=0),
    "PostgreSQL, two steps of its clock": Rules(postgres=True, steps=2, losses=0),
    "SQLite, two questions": Rules(questions=2, losses=0, kills=0),
    "SQLite, three processes": Rules(processes=3, losses=0, kills=0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Visit all states of the lease protocol.")
    parser.add_argument("--all", action="store_true", help="also the larger settings")
    given = parser.parse_args()
    for name, rules in (SETTINGS | (LARGER if given.all else {})).items():
        states, transitions, said = visit(rules)
        print(f"{name}: {states:,} states, {transitions:,} transitions, broken: {said}", flush=True)


if __name__ == "__main__":
    main()
