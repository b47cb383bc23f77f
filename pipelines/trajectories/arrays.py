"""The table `steps` as arrays, in the order of trajectory and step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.arrays import Bools, Floats, Ints
from routeyard.pipelines.errors import BadInput

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

    def __len__(self) -> int:
        return len(self.task)


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
    )


def seconds(table: pa.Table, name: str) -> Floats:
    """(n,) seconds since 1970 of a column of ISO 8601 times; NaN where missing."""
    if name not in table.column_names or table.column(name).null_count == table.num_rows:
        return np.full(table.num_rows, np.nan)
    import duckdb

    times = table.select([name])
    with duckdb.connect() as connection:
        connection.register("times", times)
        found = connection.execute(
            f'SELECT epoch(try_cast("{name}" AS TIMESTAMPTZ)) AS s FROM times'
        ).fetchnumpy()["s"]
    return np.asarray(np.ma.filled(np.ma.asarray(found, dtype=np.float64), np.nan))


def _arms(steps: pa.Table) -> pa.ChunkedArray:
    """The arm of each step: `arm`, else the model that acted, else the member of the pool."""
    names = [name for name in ("arm", "acted_by", "model_id") if name in steps.column_names]
    return pc.coalesce(*(steps.column(name) for name in names))


def _starts(first: Bools, prompt: Floats, step: Ints, parent: Floats) -> tuple[Bools, Bools]:
    """(steps that extend nothing known, steps that are assumed to extend the one before)."""
    before = np.concatenate([[np.nan], prompt[:-1]])
    previous = np.concatenate([[-1], step[:-1]])
    told = ~np.isnan(parent)
    # Without a recorded parent: a prompt that shrinks has been rewritten.
    grows = prompt >= before
    starts = first | (told & (parent != previous)) | (~told & ~grows)
    return starts, ~told & ~starts


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
