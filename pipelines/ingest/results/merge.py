"""Groups of one source put together: more answers, texts of answers, or the same once more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from routeyard.pipelines.ingest.results.arms import Assigned
from routeyard.pipelines.ingest.results.groups import Group
from routeyard.pipelines.ingest.results.record_sets import DOCUMENT
from routeyard.pipelines.ingest.results.values import ReadingNote

#: Scored answers that are compared with another set; beyond, sets are put side by side.
_COMPARED = 2_000_000
#: What a second set of the same answers may add to the first.
FILLED = ("text", "prompt", "reference", "status", "error", "served_model", "cost_usd",
          "prompt_tokens", "completion_tokens", "latency_s")  # fmt: skip


@dataclass(slots=True)
class AnswerSet:
    """The answers of one group in the normal form, and its further scores."""

    group: Group
    done: Assigned
    table: pa.Table
    others: dict[str, pa.Array] = field(default_factory=dict)

    @property
    def scored(self) -> int:
        """Number of answers with a score."""
        return int(self.table.num_rows - self.table.column("score").null_count)

    @property
    def files(self) -> str:
        """Names of the first files."""
        return ", ".join(list(dict.fromkeys(self.group.files))[:2])


def merged(
    answers: Sequence[AnswerSet],
) -> tuple[pa.Table, dict[str, str], list[ReadingNote], dict[str, pa.Array]]:
    """All answers once: table, columns, notes, further scores.

    The set with most scores counts; another that scores the same questions is compared with it,
    one that has texts alone gives it texts, and one with other answers is put beside it.
    """
    ordered = sorted(
        answers,
        key=lambda one: (-one.scored, -one.table.num_rows, -len(one.done.roles), one.group.trail),
    )
    first = ordered[0]
    tables, others = [first.table], [first.others]
    columns, notes = dict(first.done.roles), [*first.done.notes]
    for one in ordered[1:]:
        if one.scored == 0 and first.scored > 0:
            tables, told = _with_texts(tables, one)
            notes.append(told)
            continue
        share, same = _overlap(pa.concat_tables(tables), one.table)
        if share >= 0.5 and same == 1:
            tables, filled = _filled(tables, one)
            notes += filled
        if share >= 0.5 or not _beside(first.group.trail, one.group.trail):
            notes += _left_out(one, first, share, same)
            continue
        tables.append(one.table)
        others.append(one.others)
        notes += one.done.notes
        columns = {**one.done.roles, **columns}
    table = pa.concat_tables(tables)
    return table, columns, list(dict.fromkeys(notes)), _others(others, tables)


def _left_out(
    one: AnswerSet, first: AnswerSet, share: float, same: float | None
) -> Iterable[ReadingNote]:
    n = one.table.num_rows
    if share < 0.5:
        yield ReadingNote("left_out", f"{n:,} records of another kind in {one.files}", n)
        return
    agreed = "" if same is None else f", {same:.1%} of them with the same score"
    says = f"{n:,} rows of {one.files} repeat questions that were read already{agreed}"
    yield ReadingNote("left_out", says, n)
    if same is not None and same < 1:
        says = f"{one.files} states other scores than {first.group.files[0]} for some answers"
        yield ReadingNote("question", says, n)


def _beside(first: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two kinds of sets are answers of one source: rows of files, or lists of ids."""
    plain = all(len(one) <= 1 and one != DOCUMENT for one in (first, other))
    return first == other or plain or (first[-1:] == other[-1:] == ("(lists of ids)",))


def _others(found: list[dict[str, pa.Array]], tables: list[pa.Table]) -> dict[str, pa.Array]:
    names = dict.fromkeys(name for one in found for name in one)
    empty = [pa.nulls(table.num_rows, pa.float64()) for table in tables]
    return {
        name: pa.concat_arrays([one.get(name, no) for one, no in zip(found, empty, strict=True)])
        for name in names
    }


def _keys(table: pa.Table, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def _overlap(have: pa.Table, more: pa.Table) -> tuple[float, float | None]:
    """Share of further answers that were read already, and the share of those that agree."""
    if have.num_rows > _COMPARED:
        return 0.0, None
    scores = dict(zip(_short(have), have.column("score").to_pylist(), strict=True))
    mine = zip(_short(more), more.column("score").to_pylist(), strict=True)
    known = [(scores[key], score) for key, score in mine if key in scores]
    both = [(a, b) for a, b in known if a is not None and b is not None]
    agree = sum(abs(a - b) < 1e-9 for a, b in both) / len(both) if both else None
    return len(known) / max(1, more.num_rows), agree


def _short(table: pa.Table) -> list[tuple[str, str]]:
    """(end of the arm's name, question): a provider before the name does not count."""
    return [
        ((arm or "").rpartition("/")[2], question)
        for arm, question in _keys(table, ("arm", "question"))
    ]


def _with_texts(tables: list[pa.Table], one: AnswerSet) -> tuple[list[pa.Table], ReadingNote]:
    """The tables with the texts of a set without scores, joined by arm and question.

    Where the arms are named otherwise, files of one folder are of one arm.
    """
    said = _keys(one.table, ("text", "prompt"))
    by_arm = dict(zip(_keys(one.table, ("arm", "question")), said, strict=True))
    asked = one.table.column("question").to_pylist()
    by_folder = dict(zip(zip(_folders(one.table), asked, strict=True), said, strict=True))
    near = {folder for folder, _ in by_folder if folder}
    found, joined = [], 0
    for table in tables:
        told = []
        rows = _keys(table, ("arm", "question", "text", "prompt"))
        for (arm, question, *own), folder in zip(rows, _folders(table), strict=True):
            more = by_arm.get((arm, question)) or next(
                (by_folder[f, question] for f in near
                 if folder and (folder.startswith(f) or f.startswith(folder))
                 and (f, question) in by_folder), None,
            )  # fmt: skip
            joined += more is not None
            told.append([a if a is not None else b for a, b in zip(own, more or own, strict=True)])
        for n, name in enumerate(("text", "prompt")):
            column = pa.array([pair[n] for pair in told], pa.string())
            table = table.set_column(table.column_names.index(name), name, column)
        found.append(table)
    if joined:
        says = f"texts of {joined:,} answers come from {one.files}"
        return found, ReadingNote("choice", says, joined)
    says = f"{one.table.num_rows:,} texts of {one.files} belong to no scored answer"
    return found, ReadingNote("left_out", says, one.table.num_rows)


def _filled(tables: list[pa.Table], one: AnswerSet) -> tuple[list[pa.Table], list[ReadingNote]]:
    """The tables with what they lack, and a set of the same answers with the same scores states."""
    lacks = [
        name for name in FILLED
        if one.table.column(name).null_count < one.table.num_rows
        and all(table.column(name).null_count == table.num_rows for table in tables)
    ]  # fmt: skip
    if not lacks:
        return tables, []
    stated = dict(zip(_short(one.table), _keys(one.table, tuple(lacks)), strict=True))
    none = (None,) * len(lacks)
    found = []
    for table in tables:
        rows = [stated.get(key, none) for key in _short(table)]
        for name, values in zip(lacks, zip(*rows, strict=True), strict=True):
            at = table.column_names.index(name)
            table = table.set_column(at, name, pa.array(values, table.schema.field(name).type))
        found.append(table)
    says = f"{', '.join(lacks)} of the answers come from {one.files}"
    return found, [ReadingNote("choice", says, one.table.num_rows)]


def _folders(table: pa.Table) -> list[str]:
    """Folder of each row's file."""
    places = table.column("at").to_pylist()
    return [(one or "").partition(", row ")[0].rpartition("/")[0] for one in places]
