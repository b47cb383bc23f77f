"""Which scorer reads a stranger's references, and tables of answers recognised by columns.

A table of answers taken for one of questions makes a benchmark of nothing, so it is recognised
before a recipe is written, and its columns are named as `collect.recorded` wants them. Names,
scales and units are those by which any results are read (`ingest/results`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.ingest.guessing import CODE, Row, reach
from routeyard.pipelines.ingest.mapping import FIELDS, in_units
from routeyard.pipelines.ingest.results.keys import assign
from routeyard.pipelines.ingest.results.values import (
    FAMILY,
    candidates,
    numbers,
    rank_of,
    scale_of,
    some,
    table_of,
)
from routeyard.pipelines.label.scorers.scorer import ScoringInput
from routeyard.schemas.statuses import status_of

# Which scorer reads a table's answers: tried on some rows, with the agreement that was found.

_MATH = re.compile(r"\\[a-z]+|\^|=|\d\s*/\s*\d|√|π|\bpi\b|[a-z]\d|\d[a-z]", re.I)
_NUMBER = re.compile(r"^[\s$€£¥₹]*[-+−]?[\d.,  ]*\d\s*(?:%|[a-zA-Z°€]{0,4})\s*$")
#: What a table writes before an answer and no model does: `# 366`, `#### 366`, `Answer: 366`.
_MARKER = re.compile(r"^\s*(?:#+\s*|(?:final )?answer\s*[:=]\s*)", re.IGNORECASE)
#: Shapes of references that no other scorer reads.
_OWN_SHAPES = frozenset(
    {"option", "word of a closed pair", "bracket sequence", "literal", "word list"}
)
#: Rows that are tried for a suggestion.
TRIED = 20
#: Graded answers that are tried for an agreement, evenly from the first batch of the file.
GRADED = 200
#: Longer answers are not tried.
_LONGEST = 100_000


@dataclass(frozen=True, slots=True)
class ScorerSuggestion:
    """A scorer, why, and how often it read answers as it should.

    Attributes:
        right: Answers that repeat the row's own reference and were read as correct.
        wrong: Answers of another row that were, although the references differ.
        tried: Rows of both; 0 where the scorer was not tried (code is not run here).
    """

    scorer: str
    why: str
    right: int = 0
    wrong: int = 0
    tried: int = 0


@dataclass(frozen=True, slots=True)
class ScorerAgreement:
    """A rule scorer, and how many of the tried answers it grades as their source does."""

    scorer: str
    agrees: int
    tried: int


def suggest(
    questions: Sequence[str],
    references: Sequence[Sequence[str]],
    choices: Sequence[Sequence[str]],
    outputs: Sequence[str] = (),
) -> ScorerSuggestion:
    """The scorer for these rows, given answers of models where there are some.

    A scorer is tried on answers that are known to be right (the reference itself, as a model
    writes it: without the table's marker, in the form the scorer asks for) and on those of another
    row, which are wrong.
    """
    flat = [text for texts in references for text in texts if text.strip()]
    if not flat:
        return ScorerSuggestion("none", "there is no reference: a judge has to decide")
    if any(CODE.search(text) for text in flat):
        return ScorerSuggestion("code", "the references are tests in Python; they are not run here")
    options = choices or [()] * len(questions)
    asked = [
        ScoringInput(question, tuple(texts), tuple(listed))
        for question, texts, listed in zip(questions, references, options, strict=True)
    ]
    if any(choices):
        return _suggestion("mcq", "the rows have options", asked)
    tried = [
        _suggestion(name, why, asked)
        for name, why in _candidates(questions, references, flat, outputs)
    ]
    return max(tried, key=lambda item: item.right - item.wrong)  # the first of the best


def _candidates(
    questions: Sequence[str],
    references: Sequence[Sequence[str]],
    flat: Sequence[str],
    outputs: Sequence[str],
) -> list[tuple[str, str]]:
    """Scorers to try, and why, by the shapes and lengths of the references and answers."""
    from routeyard.pipelines.label.scorers.auto import shape_of
    from routeyard.pipelines.label.scorers.em import SHORT

    results = [
        {shape_of(text, question) for text in texts if text.strip()}
        for question, texts in zip(questions, references, strict=True)
    ]
    shapes = Counter(min(item) if len(item) == 1 else "short text" for item in results if item)
    mixed = [name for name, n in shapes.most_common() if n >= 0.1 * shapes.total()]
    words = _middle_length(flat)
    numbers = _share(flat, lambda text: bool(_NUMBER.match(_bare(text))))
    formulas = _share(flat, lambda text: bool(_MATH.search(text)))
    sentences = _middle_length(outputs) > SHORT
    several = len(mixed) > 1
    kinds = f"the references are of several kinds ({', '.join(mixed)})"
    table = (
        (
            "auto",
            kinds if several else f"each reference is a {''.join(mixed)}",
            bool({*mixed} & _OWN_SHAPES) or (several and words <= 5),
        ),
        ("numeric", "the references are numbers", numbers >= 0.9),
        ("math", "the references are formulas", formulas >= 0.4 and words <= 8),
        ("contains", "the references are short, the answers sentences", sentences and words <= 12),
        ("em", "the references are names or short phrases", numbers < 0.9 and words <= 5),
        ("f1", "the references are phrases", words <= 12 and not sentences),
        ("rouge_l", "the references are sentences", True),
    )
    return [(name, why) for name, why, fits in table if fits]


def _share(texts: Sequence[str], fits: Callable[[str], bool]) -> float:
    return sum(map(fits, texts)) / len(texts)


def _middle_length(texts: Sequence[str]) -> int:
    """Words of the text in the middle by length; 0 without any."""
    lengths = sorted(len(text.split()) for text in texts if text.strip())
    return lengths[len(lengths) // 2] if lengths else 0


def _suggestion(name: str, why: str, asked: Sequence[ScoringInput]) -> ScorerSuggestion:
    from routeyard.pipelines.label.scorers import SCORERS

    read = SCORERS.get(name).read
    rows = [item for item in asked if any(text.strip() for text in item.references)][:TRIED]
    right = wrong = 0
    for row, other in zip(rows, [*rows[1:], *rows[:1]], strict=True):
        right += read(row, _answer(name, row.references[0])).outcome == "correct"
        differs = not _folded(other) & _folded(row)
        wrong += differs and read(row, _answer(name, other.references[0])).outcome == "correct"
    return ScorerSuggestion(name, why, right, wrong, len(rows))


def _folded(asked: ScoringInput) -> set[str]:
    return {text.casefold().strip() for text in asked.references}


def _bare(reference: str) -> str:
    return _MARKER.sub("", reference)


def _answer(name: str, reference: str) -> str:
    """An answer in the form that the scorer's instruction asks for."""
    reference = _bare(reference)
    if name == "math":
        return f"\\boxed{{{reference}}}"
    return reference if name == "rouge_l" else f"Answer: {reference}"


def scorer_agreement(questions: Path, answers: Path) -> ScorerAgreement | None:
    """The rule scorer that grades an import's answers most often as their source does.

    Tried are `auto`, which goes by the shape of each reference, and what the references as
    a whole suggest; `auto` where both agree equally often. None where no graded answer has a
    text and a reference, or where no rule follows the grades: those of preferences go by which
    of two answers a judge likes, and no rule for exact answers may be proposed for them.

    Args:
        questions: `queries.parquet` of an import.
        answers: `responses.parquet` of an import.
    """
    import pyarrow.parquet as pq

    from routeyard.pipelines.label.scorers import SCORERS

    listed = {row["id"]: row for row in pq.read_table(questions).to_pylist() if row["references"]}
    rows = [row for row in _graded(answers) if row["query"] in listed]
    rows = rows[:: max(1, len(rows) // GRADED)][:GRADED]
    if not rows:
        return None
    asked = [
        ScoringInput(item["question"], tuple(item["references"]), tuple(item["choices"] or ()))
        for item in (listed[row["query"]] for row in rows)
    ]
    named = suggest(
        [item.question for item in asked],
        [item.references for item in asked],
        [item.choices for item in asked],
        outputs=[row["text"] for row in rows],
    )
    # Nothing is run here, and grades are what a scorer is compared with.
    names = dict.fromkeys(
        name for name in ("auto", named.scorer) if name not in ("none", "code", "given")
    )
    tried = []
    for name in names:
        read = SCORERS.get(name).read
        pairs = [(read(item, row["text"]), row) for item, row in zip(asked, rows, strict=True)]
        said = [(got.outcome == "correct", row["score"] >= 0.5) for got, row in pairs]
        if _follows(said):
            agrees = sum(ours == theirs for ours, theirs in said)
            tried.append(ScorerAgreement(name, agrees, len(rows)))
    return max(tried, key=lambda item: item.agrees, default=None)


def _follows(said: Sequence[tuple[bool, bool]]) -> bool:
    """Whether a rule finds right answers, and agrees with grades far beyond chance (κ ≥ 0.4)."""
    n = len(said)
    ours, theirs = (sum(side) / n for side in zip(*said, strict=True))
    chance = ours * theirs + (1 - ours) * (1 - theirs)
    agree = sum(a == b for a, b in said) / n
    return ours > 0 and (agree == 1 or agree - chance >= 0.4 * (1 - chance))


def _graded(answers: Path) -> list[dict[str, Any]]:
    """Answers with a text and a grade, of the file's first batch."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(answers) as file:
        batch = next(file.iter_batches(columns=["query", "text", "score"]), None)
    return [
        row
        for row in (batch.to_pylist() if batch is not None else ())
        if row["score"] is not None and (row["text"] or "").strip() and len(row["text"]) < _LONGEST
    ]


#: Rank of a name from which a column may name something else than models, or number other things
#: than samples.
_SURE = 8


def answers_of(rows: Sequence[Row]) -> dict[str, str] | None:
    """Field of a recording → mapping, for a table with one row per answer; None for another."""
    filled = ({str(k): None if v == "" else v for k, v in row.items()} for row in rows)
    table = table_of([*filled])
    found = candidates(table, "arm")
    named = [c.column for c in found if c.rank < _SURE or _models(table, c.column)]
    roles, texts = _assigned(table) if named else ({}, [])
    # All models may have given the same answers.
    if texts:
        roles.setdefault("text", texts[0])
    if roles.get("arm") not in named or not {"text", "score"} & roles.keys():
        return None
    if "status" in roles and not _is_status(table, roles):
        del roles["status"]
    fields = FIELDS | {"status": _field_of_status(roles.get("status", ""))}
    return {fields[role]: _mapped(table, role, column) for role, column in roles.items()}


def _assigned(table: pa.Table) -> tuple[dict[str, str], list[str]]:
    """Columns of roles that a recording has, and those that may be texts of answers."""
    done = assign(table, set(), {})
    roles = {role: done.roles[role] for role in FIELDS if role in done.roles}
    roles = {role: column for role, column in roles.items() if not column.startswith("(")}
    if roles.get("prompt") == roles.get("question"):
        roles.pop("prompt", None)
    if samples := [n for n in done.fitting("sample") if (rank_of(n, "sample") or 0) < _SURE]:
        roles["sample"] = samples[0]
    return roles, done.fitting("text")


def _models(table: pa.Table, name: str) -> bool:
    """Whether half of a column's values look like names of models."""
    seen = {str(value) for value in some(table.column(name))}
    return 2 * sum(bool(FAMILY.search(item)) for item in seen) >= max(1, len(seen))


def _is_status(table: pa.Table, roles: Mapping[str, str]) -> bool:
    """Whether a column says how answers ended: by its words, or beside answers that are empty.

    A word that nobody knows beside an empty answer is no reason to leave the column out: the build
    asks what it means.
    """
    column = table.column(roles["status"])
    empty = some(column.filter(table.column(roles["text"]).is_null())) if "text" in roles else []
    return bool(empty) or all(map(status_of, some(column)))


def _field_of_status(name: str) -> str:
    ended = any(word in name.lower() for word in ("finish", "stop", "terminat"))
    return "finish_reason" if ended else "status"


def _mapped(table: pa.Table, role: str, name: str) -> str:
    """The column, or an expression that brings it to USD, seconds, or scores from 0 to 1."""
    by, low = None, 0.0
    if role == "score" and (values := numbers(table.column(name))) is not None:
        scale = scale_of(values, name)
        if scale is not None and not pa.types.is_boolean(table.column(name).type):
            by, low = 1 / (scale.high - scale.low), scale.low
    mapped = in_units(role, name, low=low, by=by)
    return reach(name) if mapped == name else mapped


def holds_answers(rows: Sequence[Row], asked: Sequence[Any] | None) -> bool:
    """Whether rows are answers of models, not questions.

    Rows that name a model are answers where none of their columns holds questions, or where the
    same question comes again.

    Args:
        asked: What each row asks; None where no column is named as questions are.
    """
    repeats = asked is None or len({*map(str, asked)}) < len(asked)
    return repeats and answers_of(rows) is not None
