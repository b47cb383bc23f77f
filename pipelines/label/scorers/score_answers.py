"""Answers in JSON lines → what a scorer reads in them; behind `routeyard score`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.errors import BadInput, did_you_mean
from routeyard.pipelines.common.files import json_lines
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, ScoringInput

_KEYS = ("scorer", "question", "choices", "references", "output", "metadata")
_SAID = ("outcome", "score", "extracted", "span", "reason")


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer and its place (`file, line 3`)."""

    where: str
    fields: Mapping[str, Any]


def rows(path: Path | None) -> Iterator[AnswerRow]:
    """Rows of a JSONL file, or of standard input when `path` is None.

    Raises:
        BadInput: the file cannot be read, or a line is not a JSON object; the
            error names the line.
    """
    name = "standard input" if path is None else str(path)
    try:
        with nullcontext(sys.stdin) if path is None else path.open(encoding="utf-8") as lines:
            for row in json_lines(lines, name):
                yield AnswerRow(f"{name}, line {row.line}", row)
    except (OSError, UnicodeDecodeError) as error:
        why = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else "cannot be read"
        next_step = "name a JSONL file in UTF-8, or pipe such lines to standard input"
        raise BadInput(f"{name} {why}: {error}", where=name, next_step=next_step) from error


def one_answer(
    output: str, references: Sequence[str], choices: Sequence[str], question: str
) -> AnswerRow:
    """The row of a single answer given on the command line."""
    fields = {"output": output, "references": references, "choices": choices}
    return AnswerRow("--output", {**fields, "question": question})


def score(
    output: str,
    references: str | Sequence[str],
    *,
    scorer: str,
    choices: Sequence[str] = (),
    question: str = "",
    metadata: Mapping[str, object] | None = None,
) -> ScoreResult:
    """What a scorer reads in one answer.

    Args:
        output: The model's text.
        references: Accepted answers; one text means a list of one.
        scorer: Name of a registered scorer.

    Returns:
        A `ScoreResult`: outcome (`correct`, `incorrect`, `abstain`, `error`), score in
        [0, 1] or None, extracted answer, its span in `output`, reason.

    Raises:
        UnknownName: there is no such scorer.
        BadInput: the scorer needs a reference.
    """
    accepted = (references,) if isinstance(references, str) else tuple(references)
    result: Scorer = SCORERS.get(scorer, where="score")
    if result.needs_reference and not accepted:
        raise BadInput(f"{scorer!r} needs a reference", next_step="give the accepted answers")
    asked = ScoringInput(question, accepted, tuple(choices), dict(metadata or {}))
    return result.score(asked, output)


def score_row(row: AnswerRow, scorer: str | None = None) -> dict[str, Any]:
    """`{outcome, score, extracted, span, reason}` of one row; `scorer` overrides the row's own.

    Raises:
        BadInput: a field is missing, unknown or of the wrong type.
        UnknownName: there is no such scorer.
    """
    fields = row.fields
    for key in fields:
        if key not in _KEYS:
            raise _bad(row, f"has an unknown field {key!r}", did_you_mean(key, _KEYS))
    name = scorer or fields.get("scorer")
    if not isinstance(name, str) or not name:
        how = "give --scorer NAME" + ("" if row.where == "--output" else ", or a field `scorer`")
        raise _bad(row, "names no scorer", f"{how}; known: {', '.join(SCORERS.names())}")
    result = SCORERS.get(name, where="--scorer" if row.where == "--output" else row.where)
    output = fields.get("output")
    if not isinstance(output, str):
        raise _bad(row, "has no text in `output`", "give the model's answer as `output`")
    references = _texts(row, "references")
    if result.needs_reference and not references:
        raise _bad(row, f"has no `references`, which {name} needs", "add the accepted answers")
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise _bad(row, "has a `metadata` that is not an object", "give an object or leave it out")
    question, choices = str(fields.get("question") or ""), _texts(row, "choices")
    asked = ScoringInput(question, references, choices, metadata)
    reading = result.score(asked, output)
    return {key: getattr(reading, key) for key in _SAID}


def _texts(row: AnswerRow, key: str) -> tuple[str, ...]:
    """A list of texts; a single text or number means a list of one."""
    value = row.fields.get(key)
    if value is None:
        return ()
    values = value if isinstance(value, list) else [value]
    for item in values:
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise _bad(row, f"has a {type(item).__name__} in `{key}`", "give texts or numbers")
    return tuple(str(entry) for entry in values)


def _bad(row: AnswerRow, what: str, next_step: str) -> BadInput:
    return BadInput(f"{row.where} {what}", where=row.where, next_step=next_step)
