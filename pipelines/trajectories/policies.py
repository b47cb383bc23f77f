"""Policies of arms in words: which arm serves each step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Ints
from routeyard.pipelines.errors import BadInput, did_you_mean
from routeyard.pipelines.trajectories.arrays import Trajectories

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
        return np.array([_number(name, names) for name in steps.arms])[steps.arm]
    if word == "always" and rest:
        return np.full(n, _number(rest, names))
    if word in ("first", "every") and rest.count(":") >= 2:
        count, _, arms = rest.partition(":")
        if not count.isdigit() or int(count) < 1:
            raise BadInput(f"{count!r} is no number of steps", where=text)
        one, other = _pair(arms, names, text)
        number = _within(steps)
        chosen = number < int(count) if word == "first" else number % int(count) == 0
        return np.where(chosen, one, other)
    if Path(text).is_file() and table is not None:
        return _from_file(Path(text), steps, names, table)
    raise BadInput(
        f"{text!r} is no policy and no file",
        next_step="forms: " + "; ".join(f"{form} ({means})" for form, means in FORMS.items()),
    )


def _within(steps: Trajectories) -> Ints:
    """(n,) place of each step in its trajectory, from 0."""
    starts = np.flatnonzero(np.diff(steps.trajectory, prepend=-1))
    return np.arange(len(steps)) - starts[steps.trajectory]


def _pair(text: str, names: tuple[str, ...], where: str) -> tuple[int, int]:
    """Two arms with a colon between; a name may hold colons itself if that leaves one reading."""
    parts = text.split(":")
    found = {
        (":".join(parts[:k]), ":".join(parts[k:]))
        for k in range(1, len(parts))
        if ":".join(parts[:k]) in names and ":".join(parts[k:]) in names
    }
    if len(found) != 1:
        one, _, other = text.partition(":")
        for name in (one, other):
            _number(name, names)
        raise BadInput("the two arms can be read in several ways", where=where)
    one, other = found.pop()
    return names.index(one), names.index(other)


def _number(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise BadInput(
            f"no price is known of the arm {name!r}", next_step=did_you_mean(name, names)
        )
    return names.index(name)


def _from_file(path: Path, steps: Trajectories, names: tuple[str, ...], table: pa.Table) -> Ints:
    from routeyard.pipelines.io import files

    key = ("query_id", "model_id", "sample", "step")
    arms: dict[tuple[str, ...], str] = {}
    for number, row in enumerate(files.rows(path), 1):
        if lacking := [name for name in (*key, "arm") if row.get(name) is None]:
            raise BadInput(f"record {number} has no {lacking[0]!r}", where=str(path))
        arms[tuple(str(row[name]) for name in key)] = str(row["arm"])
    rows = table.select(list(key)).take(pa.array(steps.order)).to_pylist()
    found = [arms.get(tuple(str(row[name]) for name in key)) for row in rows]
    if None in found:
        row = rows[found.index(None)]
        raise BadInput(
            f"{found.count(None):,} of {len(rows):,} steps have no arm, such as {row}",
            where=str(path),
            next_step="name an arm for every step",
        )
    return np.array([_number(str(name), names) for name in found])
