"""Which rule reads an import's graded answers as its source graded them: tried on some of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

#: Graded answers that are tried, evenly from the first batch of the file.
TRIED = 200
#: Rules that are not tried: nothing is run here, and grades are what it is compared with.
_NOT_TRIED = ("none", "code", "given")
#: Longer answers are not tried.
_LONGEST = 100_000


@dataclass(frozen=True, slots=True)
class ScorerAgreement:
    """A rule scorer, and on how many of the tried answers it says what the source says."""

    scorer: str
    agrees: int
    tried: int


def scorer_agreement(questions: Path, answers: Path) -> ScorerAgreement | None:
    """The rule for answers that carry a grade; None where they have no text or no reference.

    Tried are `auto`, which goes by the shape of each reference, and what the references as
    a whole suggest; `auto` where both agree with the source equally often.

    Args:
        questions: `queries.parquet` of an import.
        answers: `responses.parquet` of an import.
    """
    from pipelines.ingest.guessing.scorers import suggest

    asked = {row["id"]: row for row in pq.read_table(questions).to_pylist() if row["references"]}
    rows = [row for row in _graded(answers) if row["query"] in asked]
    rows = rows[:: max(1, len(rows) // TRIED)][:TRIED]
    if not rows:
        return None
    those = [asked[row["query"]] for row in rows]
    named = suggest(
        [one["question"] for one in those],
        [one["references"] for one in those],
        [one["choices"] or [] for one in those],
    ).scorer
    names = ["auto"] + [named] * (named not in ("auto", *_NOT_TRIED))
    tried = [_tried(name, rows, asked) for name in names if named != "code"]
    return max(tried, key=lambda one: one.agrees, default=None)


def _graded(answers: Path) -> list[dict[str, Any]]:
    with pq.ParquetFile(answers) as file:
        batch = next(file.iter_batches(columns=["query", "text", "score"]), None)
    if batch is None:
        return []
    table = pa.Table.from_batches([batch])
    short = pc.less(pc.utf8_length(table["text"]), _LONGEST)
    keep = pc.and_(pc.and_kleene(short, pc.is_valid(table["score"])), pc.is_valid(table["text"]))
    rows: list[dict[str, Any]] = table.filter(keep).to_pylist()
    return [row for row in rows if row["text"].strip()]


def _tried(
    name: str, rows: list[dict[str, Any]], asked: dict[str, dict[str, Any]]
) -> ScorerAgreement:
    from pipelines.scorers import SCORERS
    from pipelines.scorers.scorer import ScoringInput

    read = SCORERS.get(name).read
    agrees = 0
    for row in rows:
        one = asked[row["query"]]
        reading = read(
            ScoringInput(one["question"], tuple(one["references"]), tuple(one["choices"] or ())),
            row["text"],
        )
        agrees += (reading.outcome == "correct") == (row["score"] >= 0.5)
    return ScorerAgreement(name, agrees, len(rows))
