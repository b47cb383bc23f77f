"""What steps would have cost under another policy of arms, with each provider's prompt cache.

The trajectory is taken to be the same under every policy: the same steps, prompts and times. That
says nothing of whether the other arm would have got as far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.arrays import Bools, Floats, Ints
from routeyard.pipelines.common.trajectories import ArmPrice, cache_rule, seconds
from routeyard.schemas.contracts import statements
from routeyard.schemas.errors import BadInput, did_you_mean
from routeyard.schemas.statuses import ANSWERLESS

# The table `steps` as arrays, in the order of trajectory and step.

_KEY = ("query_id", "model_id", "sample", "step")


@dataclass(frozen=True, eq=False)
class Trajectories:
    """n steps; a number that is not known is NaN.

    Attributes:
        tasks: Names of the tasks; trials of a task are resampled together.
        arms: Names of the arms, sorted.
        order: (n,) row of the table that each step is.
        task, trajectory, arm: (n,) codes.
        chain: (n,) code of the run of steps whose prompts extend one another.
        assumed: (n,) steps that are taken to extend the one before, because no parent is recorded
            and the prompt does not shrink.
        read, write: Prompt tokens that were read from, and written to, the provider's cache.
        cost: USD as the log itself states it; NaN where it was computed from a price table.
        time: Seconds since 1970 when the call was sent.
        outcome: Outcome of the trajectory that the step is of.
        failed: Calls that brought no answer.
    """

    tasks: tuple[str, ...]
    arms: tuple[str, ...]
    order: Ints
    task: Ints
    trajectory: Ints
    step: Ints
    arm: Ints
    chain: Ints
    assumed: Bools
    prompt: Floats
    completion: Floats
    read: Floats
    write: Floats
    cost: Floats
    latency: Floats
    time: Floats
    outcome: Floats
    failed: Bools

    def __len__(self) -> int:
        return len(self.task)

    @cached_property
    def is_first(self) -> Bools:
        """(n,) whether each step begins its trajectory."""
        return np.asarray(np.diff(self.trajectory, prepend=-1) != 0)

    @cached_property
    def first(self) -> Ints:
        """(trajectories,) number of the step that each trajectory begins with."""
        return np.flatnonzero(self.is_first)

    def answered(self, names: Sequence[str]) -> Ints:
        """(n,) number in `names` of the arm that answered; −1 where it is not among them."""
        return np.array([names.index(arm) if arm in names else -1 for arm in self.arms])[self.arm]


def trajectories_of(steps: pa.Table) -> Trajectories:
    """Arrays of a table with the columns of `steps`; columns that are absent are unknown.

    Raises:
        BadInput: it has no step, or lacks a column of the key.
    """
    for name in (*_KEY, "prompt_tokens"):
        if name not in steps.column_names:
            raise BadInput(
                f"column {name!r} is missing: these are no steps",
                next_step="import the log first (`routeyard import list` names formats)",
            )
    if not steps.num_rows:
        raise BadInput("there are no steps", next_step="check that the log has calls")
    query, tasks = _codes(steps.column("query_id"))
    model, _ = _codes(steps.column("model_id"))
    sample = _numbers(steps, "sample").astype(np.int64)
    step = _numbers(steps, "step").astype(np.int64)
    order = np.lexsort((step, sample, model, query))
    query, model, sample, step = query[order], model[order], sample[order], step[order]
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(query) != 0) | (np.diff(model) != 0) | (np.diff(sample) != 0)
    arm, arms = _codes(_arms(steps))
    prompt = _numbers(steps, "prompt_tokens")[order]
    starts, assumed = _starts(first, prompt, step, _numbers(steps, "parent")[order])
    return Trajectories(
        tasks=tasks,
        arms=arms,
        order=order,
        task=query,
        trajectory=first.cumsum() - 1,
        step=step,
        arm=arm[order],
        chain=starts.cumsum() - 1,
        assumed=assumed,
        prompt=prompt,
        completion=_numbers(steps, "completion_tokens")[order],
        read=_numbers(steps, "cache_read_tokens")[order],
        write=_numbers(steps, "cache_write_tokens")[order],
        cost=_own_costs(steps)[order],
        latency=_numbers(steps, "latency_s")[order],
        time=seconds(steps, "requested_at")[order],
        outcome=_numbers(steps, "outcome")[order],
        failed=_failed(steps)[order],
    )


def _arms(steps: pa.Table) -> pa.ChunkedArray:
    """The arm of each step: `arm`, else the model that acted, else the member of the pool."""
    names = [name for name in ("arm", "acted_by", "model_id") if name in steps.column_names]
    return pc.coalesce(*(steps.column(name) for name in names))


def _starts(first: Bools, prompt: Floats, step: Ints, parent: Floats) -> tuple[Bools, Bools]:
    """(steps that extend nothing known, steps that are assumed to extend the one before)."""
    before = np.concatenate([[np.nan], prompt[:-1]])
    previous = np.concatenate([[-1], step[:-1]])
    mask = ~np.isnan(parent)
    # Without a recorded parent: a prompt that shrinks has been rewritten.
    grows = prompt >= before
    starts = first | (mask & (parent != previous)) | (~mask & ~grows)
    return starts, ~mask & ~starts


def _failed(steps: pa.Table) -> Bools:
    if "status" not in steps.column_names:
        return np.zeros(steps.num_rows, bool)
    return np.isin(steps.column("status").to_numpy(), sorted(ANSWERLESS))


def _codes(column: pa.ChunkedArray) -> tuple[Ints, tuple[str, ...]]:
    """(n,) codes and the sorted names, whatever the order of the rows."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    names = np.array([str(name) for name in encoded.dictionary.to_pylist()], dtype=object)
    order = np.argsort(names, kind="stable")
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    return rank[np.asarray(encoded.indices)], tuple(names[order])


def _own_costs(steps: pa.Table) -> Floats:
    """(n,) USD that the log states; a figure of a price table is no figure of the log."""
    costs = _numbers(steps, "cost_usd")
    if "cost_source" not in steps.column_names:
        return costs
    modelled = pc.fill_null(pc.equal(steps.column("cost_source"), "price_table"), False)
    return np.where(modelled.to_numpy(), np.nan, costs)


def _numbers(table: pa.Table, name: str) -> Floats:
    """(n,) values of a column as floats; NaN where null or absent."""
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    return np.asarray(table.column(name).cast(pa.float64()).to_numpy(), dtype=np.float64)


# What is wrong with recorded steps: counts that cannot be, calls out of order, calls twice.

#: Check (its SQL is in `audit.sql`) → what a row that it finds is.
CHECKS = {
    "classes": "steps with more cached tokens than prompt tokens",
    "reasoning": "steps with more reasoning tokens than completion tokens",
    "unwritten": "steps that read more tokens from the cache than any earlier prompt of their arm",
    "backwards": "steps that were sent before the step they follow",
    "outcomes": "trajectories with more than one outcome",
    "repeated": "calls that repeat another one in time, arm and every count (all are counted)",
}
SHOWN = 5


@dataclass(frozen=True, slots=True)
class StepFinding:
    """What one check found: how many, and the first of them by key."""

    check: str
    says: str
    count: int
    rows: tuple[tuple[str, str, int, int], ...]

    def __str__(self) -> str:
        first = ", ".join(f"{q} trial {s} step {k}" for q, _, s, k in self.rows[:3])
        return f"{self.check}: {self.count:,} {self.says} ({first}{', …' * (self.count > 3)})"


def audit_steps(steps: pa.Table) -> list[StepFinding]:
    """Findings over the table `steps`, in the order of `CHECKS`; counts that are null find nothing.

    Counts of a trajectory are judged step by step: what a whole trajectory used is no property of
    its last text.
    """
    import duckdb

    results = []
    texts = statements(Path(__file__).with_name("audit.sql"))
    with duckdb.connect() as connection:
        connection.register("steps", steps)
        for check, says in CHECKS.items():
            sql = texts[check]
            rows = connection.execute(
                f"SELECT *, count(*) OVER () FROM ({sql}) ORDER BY ALL LIMIT {SHOWN}"
            ).fetchall()
            if rows:
                shown = tuple((q, m, s, k) for q, m, s, k, _ in rows)
                results.append(StepFinding(check, says, rows[0][-1], shown))
    return results


# Policies of arms as text: which arm serves each step.

#: Form → what it means.
FORMS = {
    "recorded": "the arm that answered",
    "always:ARM": "one arm for every step",
    "first:N:ARM:THEN": "ARM for the first N steps of a trajectory, THEN for the others",
    "every:N:ARM:ELSE": "ARM for each N-th step from the first, ELSE between",
    "from a file": "a Parquet or CSV file with query_id, model_id, sample, step and arm",
}


def policy_arms(
    text: str, steps: Trajectories, names: tuple[str, ...], table: pa.Table | None = None
) -> Ints:
    """(n,) number in `names` of the arm that a policy gives each step.

    Args:
        text: One of `FORMS`, or the path of a file; arms with a colon in their name are given in a
            file.
        table: The table of the steps, where a file is to be joined to it.

    Raises:
        BadInput: it has none of these forms, or names an arm without price.
    """
    n = len(steps)
    word, _, rest = text.partition(":")
    if text == "recorded":
        for name in steps.arms:
            _number(name, names)
        return steps.answered(names)
    if word == "always" and rest:
        return np.full(n, _number(rest, names))
    if word in ("first", "every") and rest.count(":") >= 2:
        count, _, arms = rest.partition(":")
        if not count.isdigit() or int(count) < 1:
            raise BadInput(f"{count!r} is no number of steps", where=text)
        item, other = _pair(arms, names, text)
        number = _within(steps)
        chosen = number < int(count) if word == "first" else number % int(count) == 0
        return np.where(chosen, item, other)
    if Path(text).is_file() and table is not None:
        return _from_file(Path(text), steps, names, table)
    raise BadInput(
        f"{text!r} is no policy and no file",
        next_step="forms: " + "; ".join(f"{form} ({means})" for form, means in FORMS.items()),
    )


def _within(steps: Trajectories) -> Ints:
    """(n,) place of each step in its trajectory, from 0."""
    return np.arange(len(steps)) - steps.first[steps.trajectory]


def _pair(text: str, names: tuple[str, ...], where: str) -> tuple[int, int]:
    """Two arms with a colon between; a name may hold colons itself if that leaves one reading."""
    parts = text.split(":")
    results = {
        (":".join(parts[:k]), ":".join(parts[k:]))
        for k in range(1, len(parts))
        if ":".join(parts[:k]) in names and ":".join(parts[k:]) in names
    }
    if len(results) != 1:
        item, _, other = text.partition(":")
        for name in (item, other):
            _number(name, names)
        raise BadInput("the two arms can be read in several ways", where=where)
    item, other = results.pop()
    return names.index(item), names.index(other)


def _number(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise BadInput(
            f"no price is known of the arm {name!r}", next_step=did_you_mean(name, names)
        )
    return names.index(name)


def _from_file(path: Path, steps: Trajectories, names: tuple[str, ...], table: pa.Table) -> Ints:
    from routeyard.pipelines.common import files

    key = ("query_id", "model_id", "sample", "step")
    arms: dict[tuple[str, ...], str] = {}
    for number, row in enumerate(files.rows(path), 1):
        if lacking := [name for name in (*key, "arm") if row.get(name) is None]:
            raise BadInput(f"record {number} has no {lacking[0]!r}", where=str(path))
        arms[tuple(str(row[name]) for name in key)] = str(row["arm"])
    rows = table.select(list(key)).take(pa.array(steps.order)).to_pylist()
    file = [arms.get(tuple(str(row[name]) for name in key)) for row in rows]
    if None in file:
        row = rows[file.index(None)]
        raise BadInput(
            f"{file.count(None):,} of {len(rows):,} steps have no arm, such as {row}",
            where=str(path),
            next_step="name an arm for every step",
        )
    return np.array([_number(str(name), names) for name in file])


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
    table = PriceTable.of(prices, names)
    foreign = steps.answered(names) != arm
    read_least, read_most = _read(steps, arm, table)
    if shared:
        borrowed = np.where(table.ttl[arm] > 0, first_reads(steps), 0.0)
        read_most = np.maximum(read_most, np.minimum(borrowed, steps.prompt))
        left = np.isin(steps.arm, np.unique(steps.arm[foreign]))
        sure = np.where(foreign | left, 0.0, np.minimum(borrowed, steps.prompt))
        read_least = np.maximum(read_least, sure)
    least, write = _prompt_cost(steps, arm, table, read_most)
    most, _ = _prompt_cost(steps, arm, table, read_least)
    switch = np.zeros(len(steps), bool)
    inside = np.diff(steps.chain) == 0
    switch[1:] = inside & (np.diff(arm) != 0)
    # As if each arm had read what the step before left, whoever served it.
    cached, _ = _read(steps, np.zeros_like(arm), table, of=arm)
    warm, _ = _prompt_cost(steps, arm, table, np.maximum(cached, read_most))
    output = np.where(foreign, np.nan, steps.completion * table.output[arm] / 1e6)
    lost = np.where(switch, least - warm, 0.0)
    return StepCosts(arm, read_least, read_most, write, least, most, output, foreign, switch, lost)


def first_reads(steps: Trajectories) -> Floats:
    """(n,) tokens that the first call of a trajectory read from a cache; 0 elsewhere."""
    return np.where(steps.is_first, np.nan_to_num(steps.read), 0.0)


@dataclass(frozen=True, eq=False)
class PriceTable:
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
    def of(cls, prices: Mapping[str, ArmPrice], names: tuple[str, ...]) -> PriceTable:
        rows = [prices.get(name, ArmPrice(None, None)) for name in names]
        rules = [cache_rule(row.rule) for row in rows]

        def column(of: Sequence[Any], name: str) -> Floats:
            return np.array([getattr(item, name) for item in of], dtype=np.float64)  # None is NaN

        up_to = column(rows, "up_to")
        return cls(
            column(rows, "input"), column(rows, "output"), column(rows, "read"),
            column(rows, "write"), column(rules, "ttl_s"), column(rules, "minimum"),
            column(rules, "block"), column(rules, "premium") == 1, column(rules, "output") == 1,
            np.where(np.isnan(up_to), np.inf, up_to),
        )  # fmt: skip


def _read(
    steps: Trajectories, server: Ints, table: PriceTable, *, of: Ints | None = None
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
    values = np.full(len(key), -1, np.int64)
    values[order[1:][same]] = order[:-1][same]
    return values


def _reusable(
    steps: Trajectories, before: Ints, arm: Ints, table: PriceTable
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
    steps: Trajectories, arm: Ints, table: PriceTable, read: Floats
) -> tuple[Floats, Floats]:
    """(USD of the prompt, tokens written) when so many of its tokens are read."""
    writes = table.premium[arm] & (steps.prompt >= table.minimum[arm])
    rest = steps.prompt - read
    write = np.where(writes, rest, 0.0)
    priced = [(rest - write, table.input), (read, table.read), (write, table.write)]
    # A price that nothing is charged at need not be known.
    usd = sum(np.where(tokens == 0, 0.0, tokens * price[arm]) for tokens, price in priced)
    return np.where(steps.prompt > table.up_to[arm], np.nan, np.asarray(usd) / 1e6), write


# The cheapest arm that sufficed from a step on, only where several arms were executed there.


@dataclass(frozen=True)
class SufficientArms:
    """Labels of the prompts from which several arms went on.

    Attributes:
        labels: `query_id`, `step`, `arms` (tried), `arm` (the cheapest that sufficed; null where
            none did, or its cost is unknown), `trials`.
        steps: Steps in all; the others have no label, as no other arm was executed there.
    """

    labels: pa.Table
    steps: int

    def words(self) -> str:
        """The labels in words."""
        if not self.labels.num_rows:
            return (
                "cheapest sufficient arm: unknown at every step, as no two arms went on from "
                "the same prompt"
            )
        counts = Counter(self.labels.column("arm").to_pylist())
        arm_counts = ", ".join(
            f"{arm or 'none that is known'} {n:,}" for arm, n in sorted(counts.items(), key=str)
        )
        return (
            f"cheapest sufficient arm at {self.labels.num_rows:,} prompts from which several arms "
            f"went on: {arm_counts}; at the other steps it is unknown"
        )


def sufficient_arms(steps: pa.Table, enough: float = 1.0) -> SufficientArms:
    """The cheapest arm, by mean cost from the step on, of those that succeeded often enough.

    Arms are compared where they were asked the same prompt (`prefix_hash`) of the same task and
    the trajectory has an outcome. What another arm would have done elsewhere was not executed,
    and is not said.

    Args:
        enough: Least mean outcome of an arm's trials that suffices.
    """
    import duckdb

    sql = Path(__file__).with_name("sufficient.sql").read_text(encoding="utf-8")
    with duckdb.connect() as connection:
        connection.register("steps", steps)
        result = connection.sql(sql, params=[enough]).to_arrow_table()
    return SufficientArms(result, steps.num_rows)
