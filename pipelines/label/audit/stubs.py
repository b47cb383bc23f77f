"""The text behind a stored score: stubs, constant texts, one text scored both ways.

A file of scores is believed too easily. Where the text beside a score is "I do",
"Okay," or nothing, the score says that a harness failed, not that a model did.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pyarrow as pa

from routeyard.pipelines.label.audit.questions import question

#: A stub is no longer than this; longer texts are answers, good or bad.
LONGEST = 60
#: So many words at most, where nothing else gives a stub away.
WORDS = 4
_OPENS = re.compile(
    r"(?:i|i['’]m|i['’]ll|okay|ok|sure|well|so|the|let|let['’]s|to|here|here['’]s|hello|hi|we|it|this|"
    r"that|first|in|an?|of course|certainly|great|thanks?|thank you|as|based|step|answer|yes,? i|"
    r"no,? i|there|you|what|my|and|alright|hmm+|absolutely|based on)\b",
    re.IGNORECASE,
)
_ANSWERS = re.compile(r"\(?[A-Z]\)?[.):]?|[-+$€£]?[\d.,/%]+|yes|no|true|false|none", re.IGNORECASE)
#: A word within a text that can be what it answers: an option's letter, a name.
_NAMES = re.compile(
    r"(?!I\b|Let\b|Step\b|Sure\b|Here\b|Okay\b|Thank)[(\[*\"'“]*[^\W\d_a-z][\w'’.-]*[)\].,*\"'”]*"
    r"|[(\[][a-z][)\]][.,]?"
)
_GIVES = re.compile(r"\banswer\W*(?:\bis\b|:)\W*\w", re.IGNORECASE)
_HANGS = re.compile(
    r"[,:;(\-–—]$|\b(?:the|an?|of|to|is|are|and|or|for|with|that|in|do|am|will|can|need|have)$",
    re.IGNORECASE,
)


class StubMatch(NamedTuple):
    """A finding before it has a place in the report."""

    kind: str
    about: str
    says: str


def is_stub(text: str | None) -> bool:
    """Whether a text has no content: empty, an opening without what it opens, cut off at once."""
    said = (text or "").strip().strip("*_`\"'. ")
    if not said:
        return True
    if len(said) > LONGEST or _ANSWERS.fullmatch(said):
        return False
    words = said.split()
    if _HANGS.search(said) and len(words) <= 2 * WORDS:
        return True
    if len(words) > WORDS or not _OPENS.match(said) or re.search(r"\d", said):
        return False
    # "The answer is (A)" and "It is Paris" open as stubs do, and name something.
    named = _GIVES.search(said) or _ANSWERS.fullmatch(words[-1])
    return not named and not any(_NAMES.fullmatch(word) for word in words[1:])


def is_answer(text: str) -> bool:
    """Whether a short text is an answer and no more: "B", "The answer is (A)."

    Such a text can legitimately answer many questions.
    """
    said = text.strip().strip("*_`\"'. ")
    short = len(said) <= LONGEST and not is_stub(said)
    return short and bool(_ANSWERS.fullmatch(said) or _GIVES.search(said))


def look(
    connection: Any, *, least: int = 3, share: float = 0.01, constant: int = 20
) -> tuple[dict[str, pa.Table], list[StubMatch]]:
    """Findings about stored texts; the connection holds queries, verdicts, labels and texts.

    Args:
        connection: DuckDB, with `texts` (query_id, model_id, sample, text).
        least: Stubs from which a model is a finding, when they are at least
            `share` of its answers.
        constant: Questions from which one text of a model is a finding.
    """
    connection.execute(question("scored"))
    short = connection.sql(_SHORT).to_arrow_table()
    kept = pa.array([is_stub(text) for text in short.column("text").to_pylist()], pa.bool_())
    connection.register("stub_texts", short.filter(kept))
    plain = pa.array([is_answer(text) for text in short.column("text").to_pylist()], pa.bool_())
    connection.register("answer_texts", short.filter(plain))
    tables = {
        "stubs": connection.sql(question("stubs")).to_arrow_table(),
        "readable": connection.sql(question("readable")).to_arrow_table(),
        "both_ways": connection.sql(question("both_ways")).to_arrow_table(),
        "constant_texts": connection.sql(question("constant"), params=[constant]).to_arrow_table(),
    }
    return tables, _findings(tables, least, share)


_SHORT = f"SELECT DISTINCT text FROM scored WHERE length(text) <= {2 * LONGEST} ORDER BY text"


def _findings(tables: dict[str, pa.Table], least: int, share: float) -> list[StubMatch]:
    found = []
    examples: dict[str, list[str]] = {}
    for row in tables["stubs"].to_pylist():
        shown = repr(row["text"]) if row["text"] else "nothing at all"
        examples.setdefault(row["model_id"], []).append(f"{shown} ({row['wrong']:,} times)")
    for row in tables["readable"].to_pylist():
        if row["stubs"] < least or row["stubs"] < share * row["answers"]:
            continue
        readable = row["accuracy_readable"]
        after = "unknown" if readable is None else f"{readable:.1%}"
        says = (
            f"{row['stubs']:,} of {row['answers']:,} answers are stubs scored as wrong, such as "
            f"{', '.join(examples[row['model_id']][:3])}: accuracy {row['accuracy']:.1%} "
            f"as stored, {after} over readable answers"
        )
        found.append(StubMatch("stub_answers", row["model_id"], says))
    for row in tables["constant_texts"].to_pylist():
        says = (
            f"{row['text'][:60]!r} answers {row['answers']:,} questions with "
            f"{row['different_references']:,} different references, {row['marked_right']:,} "
            "of them marked right"
        )
        kind = "stub_constant_text" if row["stub"] else "constant_text"
        found.append(StubMatch(kind, row["model_id"], says))
    for row in tables["both_ways"].to_pylist():
        says = (
            f"{row['text'][:60]!r} is marked right {row['marked_right']:,} times of "
            f"{row['answers']:,} under the same question and reference"
            + (f", in {row['queries']} duplicate rows" if row["queries"] > 1 else "")
        )
        kind = "duplicate_row_contradicts" if row["queries"] > 1 else "same_text_scored_both_ways"
        if is_stub(row["text"]):
            kind = f"stub_{kind}"
        found.append(StubMatch(kind, row["query_id"], says))
    return found
