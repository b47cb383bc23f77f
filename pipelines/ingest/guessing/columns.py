"""Which columns of a stranger's table hold the question, the answer and the options: a guess.

Names are looked at first (in several languages), then contents. Every guess has a reason, so that
a person can tell a good one from a bad one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from routeyard.pipelines.ingest.guessing.forms import (
    read_absent,
    read_choices,
    read_classes,
    read_references,
)
from routeyard.pipelines.ingest.guessing.guess import GIVEN, Guess, Row, Table, reach
from routeyard.pipelines.ingest.guessing.nested import (
    mix_marked,
    mix_wrong,
    nested_question,
    question_inside,
    read_question,
    wrong_options,
)
from routeyard.pipelines.ingest.guessing.roles import QUESTION_ROLES
from routeyard.pipelines.ingest.guessing.values import (
    consecutive,
    distinct,
    mean_length,
    mostly_filled,
    present,
    scores,
)

#: Columns that each hold one option: `A`, `option_b`, `choice3`, `opa`.
_ONE_OPTION = re.compile(r"^(?:option|choice|answer|opt|op|ans|opcion|wahl|选项)?[ _-]?([a-j]|\d)$")
#: The same under any other name, of which there must be three: `ending0`, `holding_4`.
_ANY_OPTION = re.compile(r"^[^\W\d_]{3,20}[ _-]?(\d)$")
#: Last words of names whose values name a row: `Ticket No`, `case_ref`.
_NUMBERING = re.compile(
    r"(?:^|[\s_\-.])(?:id|no|nr|number|num|key|ref|code|[#№])\.?(?:\s*[#№])?$", re.IGNORECASE
)


def guess_columns(rows: Sequence[Row], given: Mapping[str, str] | None = None) -> Guess:
    """The mapping of a table's columns, from its first rows.

    Args:
        rows: Some rows; two hundred are plenty.
        given: field → column that a person named; it is taken as it is.
    """
    table = Table(rows)
    guess = Guess(table.columns)
    for name, column in (given or {}).items():
        guess.take(name, column, GIVEN)
        # An expression is mapped as it is, unless a column has that name.
        guess.fields[name] = reach(column) if column in table.columns else column
    wrong = wrong_options(guess.free)
    options = _option_columns(guess.free)
    guess.used |= {*options, *wrong}
    several = nested_question(guess, table)
    settled = {*guess.fields, *["question"] * several, *["choices"] * bool(options or wrong)}
    for name, role in QUESTION_ROLES.items():
        named = None if name in settled else role.column(guess.free, table)
        if named is not None:
            guess.take(name, named, f"by its name, {named!r}")
    if not several:
        _by_content(guess, table)
    if len(options) >= 2 and "choices" not in guess.fields:
        one_each = [reach(column) for column in options]
        guess.put("choices", one_each, f"one column each: {', '.join(options)}")
    _numbered_id(guess, table)
    if "question" not in guess.fields and not several:
        question_inside(guess, table)
    read_choices(guess, table)
    read_references(guess, table)
    read_question(guess, table)
    mix_marked(guess, table)
    mix_wrong(guess, wrong)
    read_classes(guess, table)
    taken = "id" in guess.fields and not guess.given("id")
    if taken and not distinct(table.values(guess.fields["id"])):
        _repeated_id(guess, table)
    read_absent(guess, table)
    return guess


def _repeated_id(guess: Guess, table: Table) -> None:
    """Take back an id that several rows share or that rows lack, so that rows are numbered."""
    column = guess.origins["id"]
    values = present(table.values(guess.fields["id"]))
    counts = Counter(map(str, values))
    again = [value for value, count in counts.items() if count > 1]
    rows, lacking = sum(counts[value] for value in again), len(table.rows) - len(values)
    guess.drop("id")
    guess.used.discard(column)
    says = [f"{lacking} have none"] * bool(lacking)
    says += [f"{rows} share one with another row (such as {again[0]!r})" for _ in again[:1]]
    guess.doubts.append(
        f"the id in {column!r}: of {len(table.rows)} rows looked at {' and '.join(says)}, so that "
        "rows are numbered instead and all are kept: take repeated rows out, or map fields.id to "
        "what tells them apart"
    )


def _numbered_id(guess: Guess, table: Table) -> None:
    """Map the id to a column whose name ends as that of a number does, and that never repeats."""
    if "id" in guess.fields:
        return
    numbering = (column for column in guess.free if _NUMBERING.search(column.strip()))
    numbered = next((column for column in numbering if distinct(table.seen(column))), None)
    if numbered is not None:
        guess.take("id", numbered, f"by its name, {numbered!r}, and it differs in every row")


def _option_columns(columns: Sequence[str]) -> list[str]:
    """Columns that hold one option each, in order; none unless they run from the first on."""
    runs: dict[str, dict[str, str]] = {}
    for column in columns:
        plain = column.strip().lower()
        match = _ONE_OPTION.match(plain) or _ANY_OPTION.match(plain)
        if match and not wrong_options([column]):
            runs.setdefault(plain[: match.start(1)], {}).setdefault(match[1], column)
    for start, run in runs.items():
        least = 2 if _ONE_OPTION.match(start + "1") else 3
        for signs in ("abcdefghij", "123456789", "0123456789"):
            if len(run) >= least and sorted(run) == list(signs[: len(run)]):
                return [run[sign] for sign in sorted(run)]
    return []


def _by_content(guess: Guess, table: Table) -> None:
    """The longest text is the question, the column beside it that is mostly filled the answer."""

    there = {column: present(table.seen(column)) for column in guess.free}

    def asks(column: str) -> tuple[int, bool, float]:
        texts = there[column]
        marks = sum(t.rstrip().endswith(("?", "？", "؟")) for t in texts)
        return marks, len(texts) == len(table.rows), mean_length(texts)

    # A row without its question cannot be asked: it is left out, so there are few of them.
    texts = [
        column
        for column in guess.free
        if mostly_filled(table.seen(column)) and all(isinstance(v, str) for v in there[column])
    ]
    if "question" not in guess.fields and texts:
        best = max(texts, key=asks)
        if asks(best)[0] or asks(best)[2] >= 15:
            guess.take("question", best, "its texts ask, or are the longest")
    if {"references", "tests"} & guess.fields.keys() or "question" not in guess.fields:
        return
    columns = {column: table.seen(column) for column in guess.free}
    filled = [
        column
        for column, seen in columns.items()
        if all(value not in (None, "") for value in seen) and not consecutive(seen)
    ]
    # Several columns of scores are those of models, whichever of them has no gap.
    if len(filled) == 1 and sum(map(scores, columns.values())) < 2:
        guess.put("references", reach(filled[0]), "the one column that is left and filled")
