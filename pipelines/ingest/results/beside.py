"""What is beside the answers: API calls, and figures of whole arms or of many questions.

Their checks are SQL (`beside.sql`): each statement returns the notes of what is wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.pool import same_model
from routeyard.pipelines.common.sql import runner
from routeyard.pipelines.ingest.results.arms import Assigned
from routeyard.pipelines.ingest.results.values import (
    FIGURES,
    ReadingNote,
    candidates,
    factor,
    numbers,
    plain,
    rank_of,
    texts,
    told,
    vocabulary,
)

_SQL = Path(__file__).with_suffix(".sql")
_SHOWN = 3


def _notes(statements: Sequence[str], tables: Mapping[str, pa.Table]) -> Iterator[ReadingNote]:
    """The notes that some statements return, in their order."""
    with runner(_SQL, tables) as run:
        run.connection.execute(run.statements["macros"])
        for name in statements:
            for row in run.table(name).select(["kind", "says", "rows", "about"]).to_pylist():
                yield ReadingNote(**row)


# Logs of API calls beside results: what they cost, whom they asked, and what nobody can assign.
#
# A call belongs to no question, so that its tokens and its cost are no answer's; what is wrong with
# them is reported all the same.


def calls_of(done: Assigned) -> pa.Table | None:
    """The group's records as API calls; None where they have a question, or no tokens.

    Columns are the model that was `asked`, and that `served`, and USD and tokens, null where not
    said.
    """
    roles, table = done.roles, done.table
    if "question" in roles or "score" in roles or "completion_tokens" not in roles:
        return None
    named = [c.column for c in candidates(table, "arm")]
    asked = next((name for name in named if "response" not in name.lower()), roles.get("arm"))
    if asked is None:
        return None
    served = roles.get("served_model") or next(
        (name for name in table.column_names if rank_of(name, "served_model") is not None), None
    )
    cached = next(
        (n for n in table.column_names if plain(n.rpartition(".")[2]) in vocabulary("cached")), None
    )
    amounts = {"cost": roles.get("cost"), "prompt": roles.get("prompt_tokens"),
               "completion": roles["completion_tokens"], "cached": cached}  # fmt: skip
    empty = pa.nulls(table.num_rows, pa.string())
    columns = {"asked": texts(table.column(asked)),
               "served": empty if served is None else texts(table.column(served))}  # fmt: skip
    for name, column in amounts.items():
        values = None if column is None else numbers(table.column(column))
        if values is None or column is None:
            values = np.full(table.num_rows, np.nan)
        columns[name] = pa.array(values * factor(column or "", name), from_pandas=True)
    return pa.table(columns)


def call_notes(groups: Sequence[pa.Table], arms: Iterable[str]) -> Iterator[ReadingNote]:
    """What a person has to know of calls beside the answers of some arms."""
    known = sorted(arms)
    for calls in groups:
        asked, served = (calls.column(name).to_pylist() for name in ("asked", "served"))
        of_arm = {a: any(same_model(a, arm) for arm in known) for a in {*asked} if a}
        alike = {pair: same_model(*pair) for pair in {*zip(asked, served, strict=True)}
                 if all(pair)}  # fmt: skip
        calls = calls.append_column("r", pa.array(range(len(asked))))
        calls = calls.append_column("of_arm", pa.array([of_arm.get(a) for a in asked], pa.bool_()))
        pairs = zip(asked, served, strict=True)
        calls = calls.append_column("as_asked", pa.array(map(alike.get, pairs), pa.bool_()))
        yield from _notes(["calls"], {"calls": calls})


# Figures that are stated of many questions: those that contradict one another.


def figure_notes(table: pa.Table, arm: str | None) -> Iterator[ReadingNote]:
    """What is odd in a table with a row per model and figures of many questions each."""
    names = [n for n in table.column_names if not n.startswith("(") and n != arm]
    values = {n: v for n in names if (v := numbers(table.column(n))) is not None}
    counts = [c.column for c in candidates(table, "aggregate") if c.column in values]
    who = texts(table.column(arm if arm in table.column_names else "(at)")).combine_chunks()
    apart = [n for n in names if n not in values and rank_of(n, "setting") is not None]
    settings = [str([*row.values()]) for row in table.select(apart).to_pylist()] if apart else ""
    n = table.num_rows
    lines = pa.table({"r": pa.array(range(n)), "who": who,
                      "apart": pa.array(settings or [""] * n)})  # fmt: skip
    parts = [
        pa.table({
            "r": lines["r"], "who": who, "value": pa.array(column, pa.float64(), from_pandas=True),
            "place": pa.repeat(place, n), "name": pa.repeat(name, n),
            "said": pa.repeat(repr(name), n),
            "is_cost": pa.repeat(rank_of(name, "cost") is not None, n),
            "count_place": pa.array([counts.index(name) if name in counts else None] * n,
                                    pa.int32()),
        })
        for place, (name, column) in enumerate(values.items())
    ]  # fmt: skip
    if parts:
        checks = ("costs", "twice", "totals", "shares", "gaps", "faults")
        yield from _notes(checks, {"lines": lines, "figures": pa.concat_tables(parts)})


# Absolute paths in strangers' files: they name people and machines, and travel with a copy.

#: Bytes of each file, and of all files, that are looked at.
_OF_FILE, _OF_ALL = 4_000_000, 256_000_000
_PATH = re.compile(
    rb"(?:(?<![\w.])/(?:Users|home)/|\b[A-Z]:\\{1,2}Users\\{1,2})([A-Za-z][\w.-]{1,30})[/\\]"
)
_TEXT = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".yaml", ".yml", ".txt", ".log", ".md")


def path_notes(paths: Sequence[Path], root: Path) -> list[ReadingNote]:
    """A note of the files with absolute paths of somebody's machine; empty without any."""
    counts: Counter[str] = Counter()
    held, left = [], _OF_ALL
    for path in paths:
        if path.suffix.lower() not in _TEXT or left <= 0:
            continue
        with path.open("rb") as stream:
            data = stream.read(min(_OF_FILE, left))
        left -= len(data)
        homes = _PATH.finditer(data)
        names = [m for m in homes if m[1].decode().lower() not in vocabulary("accounts")]
        if names:
            held.append(path.relative_to(root).as_posix() if path != root else path.name)
            counts.update(m[0].decode(errors="replace") for m in names)
    if not held:
        return []
    shown = ", ".join(repr(item) for item, _ in counts.most_common(_SHOWN))
    return [told("machine_paths", len(held), "", tuple(held[:_SHOWN]), some=shown)]


# Figures of whole arms that a source states beside its rows, compared with the rows.


#: An arm, the kind of a figure of it, its value, and the column that states it.
StatedFigure = tuple[str, str, float, str]


def figures_of(done: Assigned, columns: Sequence[str]) -> set[StatedFigure]:
    """Figures of whole arms in these columns; without a column of the arm none."""
    table, arm = done.table, done.roles.get("arm")
    figures: set[StatedFigure] = set()
    if arm is None or arm not in table.column_names:
        return figures
    names = texts(table.column(arm)).to_pylist()
    for column in columns:
        leaf = plain(column.rpartition(".")[2])
        kind = next((k for k, called in FIGURES.items() if called.fullmatch(leaf)), None)
        values = None if kind is None else numbers(table.column(column))
        if kind is None or values is None:
            continue
        values = values * (factor(column, "cost") if "cost" in kind else 1.0)
        figures |= {
            (name, kind, float(value), column.removeprefix("(name)."))
            for name, value in zip(names, values, strict=True)
            if name and not np.isnan(value)
        }
    return figures


def stated_notes(figures: set[StatedFigure], table: pa.Table) -> Iterator[ReadingNote]:
    """Stated figures that the rows of the whole recording contradict."""
    arms = [arm for arm in table.column("arm").unique().to_pylist() if arm]
    called = {f[0]: [a for a in arms if a == f[0] or same_model(a, f[0])] for f in figures}
    rows = [
        {"arm": arm, "name": called[arm][0], "kind": kind, "value": value, "about": column,
         "said": repr(column)}
        for arm, kind, value, column in sorted(figures)
        if len(called[arm]) == 1
    ]  # fmt: skip
    if rows:
        answers = table.select(["arm", "question", "score", "cost_usd"])
        yield from _notes(["stated"], {"stated": pa.Table.from_pylist(rows), "answers": answers})
