"""What steps would have cost under another policy of arms, with each provider's prompt cache.

The trajectory is taken to be the same under every policy: the same steps, prompts and times. That
says nothing of whether the other arm would have got as far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Ints
from routeyard.pipelines.trajectories.arrays import Trajectories
from routeyard.pipelines.trajectories.caches import ArmPrice, cache_rule


@dataclass(frozen=True, eq=False)
class StepCosts:
    """What each step costs under a policy, in USD and tokens; NaN unknown.

    Attributes:
        read_least, read_most: Tokens read from the cache. They differ where the time of a call or
            the prefix it shares with an earlier one is unknown.
        prompt_least, prompt_most: USD of the prompt, with `read_most` and `read_least`.
        output: USD of the completion where the arm is the one that answered; NaN elsewhere.
        foreign: Steps that another arm answered in the recording.
        switch: Steps whose arm is not that of the step before in the same chain.
        lost: USD of the prompt above what it would cost had the new arm the old one's cache.
    """

    arm: Ints
    read_least: Floats
    read_most: Floats
    write: Floats
    prompt_least: Floats
    prompt_most: Floats
    output: Floats
    foreign: Bools
    switch: Bools
    lost: Floats


def replay(
    steps: Trajectories,
    arm: Ints,
    prices: Mapping[str, ArmPrice],
    names: tuple[str, ...],
    *,
    shared: bool = True,
) -> StepCosts:
    """Cost of each step when `arm` serves it.

    A call reads what the last call of the same arm in the same chain of prompts left: its prompt
    (and answer, where the provider keeps it), cut to whole blocks, if at least the minimum and not
    older than the time to live since that call was sent. What it does not read it writes, where
    the rule has a premium.

    Args:
        arm: (n,) number in `names` of the arm that serves each step.
        prices: Price and cache rule by name of the arm.
        shared: The first call of a trajectory may read what was recorded that it read, from the
            cache of another trajectory. That is a bound for other arms, and for arms that lose
            calls to them; an arm that keeps all its calls reads it.
    """
    table = _PriceTable.of(prices, names)
    read_least, read_most = _read(steps, arm, table)
    if shared:
        borrowed = np.where(table.ttl[arm] > 0, first_reads(steps), 0.0)
        read_most = np.maximum(read_most, np.minimum(borrowed, steps.prompt))
        moved = _foreign(steps, arm, names)
        left = np.isin(steps.arm, np.unique(steps.arm[moved]))
        sure = np.where(moved | left, 0.0, np.minimum(borrowed, steps.prompt))
        read_least = np.maximum(read_least, sure)
    least, write = _prompt_cost(steps, arm, table, read_most)
    most, _ = _prompt_cost(steps, arm, table, read_least)
    foreign = _foreign(steps, arm, names)
    switch = np.zeros(len(steps), bool)
    inside = np.diff(steps.chain) == 0
    switch[1:] = inside & (np.diff(arm) != 0)
    # As if each arm had read what the step before left, whoever served it.
    kept, _ = _read(steps, np.zeros_like(arm), table, of=arm)
    warm, _ = _prompt_cost(steps, arm, table, np.maximum(kept, read_most))
    return StepCosts(
        arm=arm,
        read_least=read_least,
        read_most=read_most,
        write=write,
        prompt_least=least,
        prompt_most=most,
        output=np.where(foreign, np.nan, steps.completion * table.output[arm] / 1e6),
        foreign=foreign,
        switch=switch,
        lost=np.where(switch, least - warm, 0.0),
    )


def _foreign(steps: Trajectories, arm: Ints, names: tuple[str, ...]) -> Bools:
    """(n,) whether another arm answered in the recording."""
    answered = np.array([names.index(name) if name in names else -1 for name in steps.arms])
    return np.asarray(answered[steps.arm] != arm)


def first_reads(steps: Trajectories) -> Floats:
    """(n,) tokens that the first call of a trajectory read from a cache; 0 elsewhere."""
    first = np.diff(steps.trajectory, prepend=-1) != 0
    return np.where(first, np.nan_to_num(steps.read), 0.0)


@dataclass(frozen=True, eq=False)
class _PriceTable:
    """Prices and rules of all arms as arrays (arms,); NaN unknown."""

    input: Floats
    output: Floats
    read: Floats
    write: Floats
    ttl: Floats
    minimum: Floats
    block: Floats
    premium: Bools
    keeps_output: Bools
    up_to: Floats

    @classmethod
    def of(cls, prices: Mapping[str, ArmPrice], names: tuple[str, ...]) -> _PriceTable:
        rows = [prices.get(name, ArmPrice(None, None)) for name in names]
        rules = [cache_rule(row.rule) for row in rows]

        def column(values: list[float | int | None]) -> Floats:
            return np.array([np.nan if one is None else one for one in values], dtype=np.float64)

        return cls(
            column([one.input for one in rows]),
            column([one.output for one in rows]),
            column([one.read for one in rows]),
            column([one.write for one in rows]),
            column([rule.ttl_s for rule in rules]),
            column([rule.minimum for rule in rules]),
            column([rule.block for rule in rules]),
            np.array([rule.premium for rule in rules]),
            np.array([rule.output for rule in rules]),
            column([np.inf if one.up_to is None else one.up_to for one in rows]),
        )


def _read(
    steps: Trajectories, server: Ints, table: _PriceTable, *, of: Ints | None = None
) -> tuple[Floats, Floats]:
    """(least, most) tokens that each step reads from the cache of the arm that serves it.

    Args:
        server: (n,) whose cache it is.
        of: (n,) arm whose rule holds, where that is another one.
    """
    arm = server if of is None else of
    before = _last_of_arm(steps.chain, server)
    sure, unsure = _reusable(steps, before, arm, table)
    least, most = np.where(unsure, 0.0, sure), sure
    if steps.chain[-1] != steps.trajectory[-1]:  # some prompts were rewritten on the way
        elsewhere = _last_of_arm(steps.trajectory, server)
        elsewhere = np.where(elsewhere == before, -1, elsewhere)
        most = np.maximum(most, _reusable(steps, elsewhere, arm, table)[0])
    return least, most


def _last_of_arm(part: Ints, arm: Ints) -> Ints:
    """(n,) the last earlier step of the same part that the same arm served; −1 none."""
    key = part * (int(arm.max(initial=0)) + 1) + arm
    order = np.argsort(key, kind="stable")
    same = key[order[1:]] == key[order[:-1]]
    found = np.full(len(key), -1, np.int64)
    found[order[1:][same]] = order[:-1][same]
    return found


def _reusable(
    steps: Trajectories, before: Ints, arm: Ints, table: _PriceTable
) -> tuple[Floats, Bools]:
    """(n,) tokens that the call before left for this one if it is not too old; age unknown."""
    left = steps.prompt[before] + np.where(
        table.keeps_output[arm], np.nan_to_num(steps.completion[before]), 0.0
    )
    # The next prompt is the same prefix, and never all of it is read.
    shared = np.minimum(left, steps.prompt)
    block = table.block[arm]
    shared = np.where(block > 1, np.floor(shared / block) * block, shared)
    age = steps.time - steps.time[before]
    there = (before >= 0) & (shared >= table.minimum[arm]) & (table.ttl[arm] > 0)
    old = age > table.ttl[arm]
    return np.where(there & ~old, shared, 0.0), there & np.isnan(age)


def _prompt_cost(
    steps: Trajectories, arm: Ints, table: _PriceTable, read: Floats
) -> tuple[Floats, Floats]:
    """(USD of the prompt, tokens written) when so many of its tokens are read."""
    writes = table.premium[arm] & (steps.prompt >= table.minimum[arm])
    rest = steps.prompt - read
    write = np.where(writes, rest, 0.0)
    priced = [(rest - write, table.input), (read, table.read), (write, table.write)]
    # A price that nothing is charged at need not be known.
    usd = sum(np.where(tokens == 0, 0.0, tokens * price[arm]) for tokens, price in priced)
    return np.where(steps.prompt > table.up_to[arm], np.nan, np.asarray(usd) / 1e6), write
