"""Stored texts that are no answers: stubs, refusals, cut-off texts, harness errors, constants.

A file of scores is believed too easily. Where the text beside a score is "I do", "[ERROR]
timeout" or ends in mid-sentence, the score says that a harness failed, not that a model did. What
a text is follows from features: its length beside what the task's answers have, how it ends beside
how the model's answers end, whether it opens or repeats others, what a rule read in it, and words
without content (`texts.yaml`); never from one list of openings.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import yaml

from routeyard.pipelines.label.audit.questions import question

#: A stub is no longer than this; a message of a harness or a refusal than these.
SHORT, MESSAGE, REFUSAL = 60, 300, 700
#: Questions that one text answers from which it is a constant.
CONSTANT = 20
_WORDS: Mapping[str, Any] = yaml.load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"),
    yaml.BaseLoader,  # noqa: S506  our own file, and "on" and "no" are words in it
)
#: Scripts whose words are told apart by `\\b`: Latin, Greek, Cyrillic.
_SPACED = re.compile(r"[\x00-\u052f\u1e00-\u1fff\u2019…]*")


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    """Any of the words, whole where their script sets words apart, the longest first; `*` stands
    for an ending, `…` for a few words between."""
    parts = []
    for word in sorted({*words}, key=lambda word: (-len(word), word)):
        part = re.escape(word.rstrip("*")).replace("…", r"[^.!?\n]{1,60}")
        if _SPACED.fullmatch(word):
            part = rf"\b{part}" + ("" if word.endswith("*") else r"\b")
        parts.append(part)
    return re.compile("|".join(parts))


_GROUPS = {
    group: _any_of([word for words in _WORDS["languages"].values() for word in words[group]])
    for group in ("apology", "inability", "service", "self", "empty")
}
_EMPTY = _GROUPS.pop("empty")
_VALUES = frozenset(_WORDS["harness"]["values"])
_PHRASE = re.compile(rf"\b(?:{'|'.join(_WORDS['harness']['phrases'])})")
_MACHINE = re.compile(rf"\b(?:{'|'.join(_WORDS['harness']['words'])})\b")
#: A machine's message begins with a machine's word in brackets or before a colon, or a status code.
_BEGINS = re.compile(
    r"[\[(<{\"'\s*#!]*(?:(?:\w+[\s_-])?(?:error|exception|failure|timeout|traceback|failed)\w*"
    r"|\w+(?:error|exception))\s*(?:[\])>:}\"'!-]|\d{3}\b|$|\(most recent)"
    r"|(?:http\S*\s+)?[45]\d\d[\s:,-]+[a-z ]+[.!]?$"
)
_THINKS = re.compile(r"<(think(?:ing)?|reason(?:ing)?|thought|scratchpad)>", re.IGNORECASE)
_NUMBER = re.compile(r"\d")
_LETTER = re.compile(r"[(\[]?[a-z][)\].:]?")
_GIVES = re.compile(r"\b(?:answer(?: is|:)|choose|choice(?: is|:)|option)\W+\w")
#: Signs after which a sentence is over, in any script; and those after which it goes on.
_ENDS = frozenset(".!?。！？…؟।॥」』”’\"'`)]}>*_|~】）》։။፡")
_GOES_ON = frozenset(",:;(-–—[{=+/&、，：；（\\<،؛")


@dataclass(frozen=True)
class Setting:
    """What a text is compared with.

    Attributes:
        typical: median length of the task's texts.
        ends: share of the model's longer texts that end a sentence.
        vocabulary: references and choices of the task, as `plain` gives them.
        unread: the question's rule read no answer in it; None where there is no rule's verdict, or
            it takes the whole text for the answer.
        opens: other questions with a longer answer that begins with this text.
        answers: questions that this text of the model answers, and their different references.
        right: it was scored as right.
    """

    typical: float = 0.0
    ends: float = 0.0
    vocabulary: frozenset[str] = frozenset()
    unread: bool | None = None
    opens: int = 0
    answers: tuple[int, int] = (1, 1)
    right: bool | None = None


def kind_of(text: str, at: Setting) -> str | None:
    """`stub`, `refusal`, `harness_error`, `constant` or `truncated`; None for an answer, right or
    wrong."""
    said = text.strip()
    low = plain(said) if len(said) <= MESSAGE else ""
    if not said:
        return "stub"
    if low and not at.vocabulary.isdisjoint((low, said.casefold())):
        return None
    if len(said) <= MESSAGE and _is_harness(said.casefold(), low):
        return "harness_error"
    opened = _THINKS.findall(said)
    if opened and not any(f"</{name}>" in said for name in opened):
        return "harness_error"
    if (
        # A refusal that was scored as right is one the more; the text is then all of it.
        len(said) <= (MESSAGE if at.right else REFUSAL)
        and at.unread is not False
        and _refuses(said[:MESSAGE].casefold())
    ):
        return "refusal"
    shaped = _is_answer(low, at)
    repeated = at.answers[0] >= 5 and at.answers[1] >= 3 and not at.right and not shaped
    if len(said) <= SHORT and not shaped and _is_stub(said, low, at, repeated):
        return "stub"
    if repeated and at.answers[0] >= CONSTANT:
        return "constant"
    return "truncated" if len(said) > SHORT and _is_cut(text, said, at) else None


def plain(text: str) -> str:
    """A short text as it is compared: no case, no marks around it, single spaces."""
    return " ".join(text.casefold().split()).strip("*_`\"'.,:;!()[]{}#<>“”‘’ ")


def _is_harness(said: str, low: str) -> bool:
    if said in _VALUES or low in _VALUES:
        return True
    words = len(low.split())
    machine = set(_MACHINE.findall(said))
    if _BEGINS.match(said) or (len(machine) >= 2 and words <= 8 * len(machine)):
        return True
    return words <= 12 and bool(_PHRASE.search(said))


def _refuses(said: str) -> bool:
    found = {group for group, words in _GROUPS.items() if words.search(said)}
    return ("inability" in found and len(found) >= 2) or {"apology", "self"} <= found


def _is_answer(low: str, at: Setting) -> bool:
    """Whether a short text has the shape of an answer: an option, a number, a known reference."""
    if at.unread is not None:
        return not at.unread
    if _LETTER.fullmatch(low):
        return low.strip("([)].:") in at.vocabulary or at.typical <= SHORT
    shaped = _GIVES.search(low) or _NUMBER.search(low)
    return bool(shaped) or any(word in at.vocabulary for word in low.split() if len(word) > 1)


def _is_stub(said: str, low: str, at: Setting, repeated: bool) -> bool:
    bare = not re.search(r"\w", _EMPTY.sub("", low))
    hangs = said[-1] in _GOES_ON
    return (
        bare
        or hangs
        or at.unread is True
        or at.opens >= 3
        or (repeated and len(said) <= SHORT // 2)
        or at.typical > 5 * len(said) + 100
    )


def _is_cut(text: str, said: str, at: Setting) -> bool:
    """Whether a longer text stops before its end: something stays open, or it ends in mid-sentence
    although the model's answers do not."""
    ended = said[-1] in _ENDS or (said[-1] == "$" and said.count("$") % 2 == 0)
    structured = said[0] in "{[<" or said.startswith("```")
    open_ = said.count("```") % 2 == 1 or said.count("\\[") > said.count("\\]")
    if structured or "\\boxed{" in said:
        open_ = open_ or said.count("{") > said.count("}") or said.count("[") > said.count("]")
    if open_ and (not ended or structured):
        return True
    if said[-1] in _GOES_ON and not at.right:
        return True
    return not ended and at.ends >= (0.9 if at.right else 0.6)


class TextFinding(NamedTuple):
    """A finding before it has a place in the report."""

    kind: str
    about: str
    says: str


#: Kind of a text → kind of a finding, and what the texts are.
_KINDS = {
    "stub": ("stub_answers", "stubs without content"),
    "refusal": ("refusals", "refusals"),
    "harness_error": ("harness_errors", "messages of a harness, no answers of the model"),
    "truncated": ("truncated_answers", "cut off"),
    "constant": ("constant_text", "one text for many questions"),
}


def look(connection: Any) -> tuple[dict[str, pa.Table], list[TextFinding]]:
    """Findings about stored texts; the connection holds queries, verdicts, labels and texts.

    Args:
        connection: DuckDB, with `texts` (query_id, model_id, sample, text).

    Returns:
        `texts` (each text that is no answer, with its kind), `readable` (accuracy with and without
        those that are scored as wrong), `both_ways` (one text scored right and wrong).
    """
    connection.execute(question("scored"))
    rows = list(_kinds(connection))
    names = ("model_id", "query_id", "sample", "kind", "text", "scored_right")
    table = pa.table(
        {
            name: pa.array(values, kind)
            for name, values, kind in zip(
                names,
                zip(*rows, strict=True) if rows else [[]] * len(names),
                (pa.string(), pa.string(), pa.int32(), pa.string(), pa.string(), pa.bool_()),
                strict=True,
            )
        }
    )
    connection.register("no_answers", table)
    tables = {
        "texts": table,
        "readable": connection.sql(question("readable")).to_arrow_table(),
        "both_ways": connection.sql(question("both_ways")).to_arrow_table(),
    }
    return tables, _findings(tables)


def _kinds(connection: Any) -> Iterator[tuple[Any, ...]]:
    """(model, query, sample, kind, text, scored right) of every text that is no answer."""
    typical = dict(connection.sql(question("typical")).fetchall())
    ends: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for model, last, count in connection.sql(question("endings")).fetchall():
        ends[model][0] += count * (last in _ENDS)
        ends[model][1] += count
    vocabulary = {
        task: frozenset(form for word in words for form in (plain(word), word.strip().casefold()))
        for task, words in connection.sql(question("vocabulary")).fetchall()
    }
    answers = {
        (model, text): (n, references)
        for model, text, n, references in connection.sql(question("repeated")).fetchall()
    }
    opens = _openings(connection)
    reader = connection.sql(question("looked_at")).to_arrow_reader(5000)
    for batch in reader:
        for row in batch.to_pylist():
            text, model = row["text"], row["model_id"]
            total = ends[model]
            kind = kind_of(
                text,
                Setting(
                    typical.get(row["task"], 0.0),
                    total[0] / total[1] if total[1] else 0.0,
                    vocabulary.get(row["task"], frozenset()),
                    row["unread"],
                    opens.get(plain(text), 0) if len(text) <= SHORT else 0,
                    answers.get((model, text), (1, 1)),
                    row["is_right"],
                ),
            )
            if kind:
                yield model, row["query_id"], row["sample"], kind, text[:200], row["is_right"]


def _openings(connection: Any) -> Counter[str]:
    """Short text → questions, up to a few, to which a longer answer begins with it."""
    short = {plain(text) for (text,) in connection.sql(question("short")).fetchall()}
    found: dict[str, set[str]] = defaultdict(set)
    for query, head in connection.sql(question("heads")).fetchall():
        words = plain(head).split()
        for n in range(1, min(len(words), 8)):
            opening = plain(" ".join(words[:n]))
            if opening in short and len(found[opening]) < 3:
                found[opening].add(query)
    return Counter({opening: len(queries) for opening, queries in found.items()})


def _findings(tables: dict[str, pa.Table]) -> list[TextFinding]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in tables["texts"].to_pylist():
        groups[row["kind"], row["model_id"]].append(row)
    readable = {row["model_id"]: row for row in tables["readable"].to_pylist()}
    found = []
    for (kind, model), rows in sorted(groups.items(), key=lambda one: (*one[0],)):
        of, (name, what) = readable[model], _KINDS[kind]
        shown = Counter(row["text"] for row in rows).most_common(3)
        cut = -30 if kind == "truncated" else 0
        examples = ", ".join(
            f"{'nothing at all' if not text.strip() else repr(text[cut:][:60])} ({n:,} times)"
            for text, n in shown
        )
        left = "unknown" if of["accuracy_readable"] is None else f"{of['accuracy_readable']:.1%}"
        stored = "unknown" if of["accuracy"] is None else f"{of['accuracy']:.1%}"
        wrong = sum(row["scored_right"] is False for row in rows)
        says = (
            f"{len(rows):,} of {of['answers']:,} answers are {what}, {wrong:,} of them scored as "
            f"wrong, such as {examples}: accuracy {stored} as stored, {left} over readable answers"
        )
        found.append(TextFinding(name, model, says))
    for row in tables["both_ways"].to_pylist():
        says = (
            f"{row['text'][:60]!r} is marked right {row['marked_right']:,} times of "
            f"{row['answers']:,} under the same question and reference"
            + (f", in {row['queries']} duplicate rows" if row["queries"] > 1 else "")
        )
        kind = "duplicate_row_contradicts" if row["queries"] > 1 else "same_text_scored_both_ways"
        found.append(TextFinding(kind, row["query_id"], says))
    return found
