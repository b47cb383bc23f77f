"""`auto`: reads by the kinds of the references, and says in the verdict how it read.

| reference | read as | by |
| --- | --- | --- |
| `(B)`, `B` | option | `mcq`, with the options the question lists |
| yes, True, valid | word of a closed pair | this file |
| `] ) }` | bracket sequence | this file, spaces do not count |
| `[1, 2]`, `'a'` | literal | `literal` |
| 24, 3.5, $5 | number | `numeric` |
| `\\frac{1}{2}`, `x^2` | mathematics | `math` |
| apple banana cherry, of a question that sorts | word list | this file, commas do not count |
| anything else | short text | `contains` |

Each reference is read as its own kind, whatever their order. Where one is a short text,
`contains` reads all of them as well, and its verdict counts unless another reading is `correct`.
The same holds of a number that the question does not ask to compute, in an answer that states it
in prose. Readings of several kinds without a short text are `incorrect` only together. Prose is no
number, formula or word list.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

from routeyard.pipelines.label.scorers import contains, literal, mcq, numeric
from routeyard.pipelines.label.scorers import math as maths
from routeyard.pipelines.label.scorers.contains import accepted
from routeyard.pipelines.label.scorers.literal import values_of
from routeyard.pipelines.label.scorers.patterns import patterns
from routeyard.pipelines.label.scorers.quantities import measured, number, spoken
from routeyard.pipelines.label.scorers.reading import (
    committed,
    looks_cut,
    short_answer,
    unfinished,
)
from routeyard.pipelines.label.scorers.scorer import LETTERS, Scorer, ScoreResult, ScoringInput

_RE = patterns("auto")

#: Words of which one is the answer.
PAIRS: tuple[tuple[str, ...], ...] = (
    ("yes", "no"), ("true", "false"), ("valid", "invalid"), ("plausible", "implausible"),
    ("possible", "impossible"), ("entailment", "contradiction", "neutral"),
    ("positive", "negative", "neutral"), ("even", "odd"), ("correct", "incorrect"),
)  # fmt: skip


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Reads the output the way its references ask for."""
    own, fact = _kinds(asked.references, asked.question, bool(asked.choices))
    if not own:
        return ScoreResult("error", reason="there is no reference")
    if fact and "short text" not in own and _in_prose(output):
        own = own | {"short text": tuple(item for ones in own.values() for item in ones)}
    read_as = {
        shape: _READERS[shape](replace(asked, references=references), output)
        for shape, references in own.items()
    }
    result = next((item for item in read_as.values() if item.outcome == "correct"), None)
    if result is None and "short text" in read_as:
        result = read_as["short text"]
    elif result is None:  # the least sure reading: several kinds are wrong only together
        order = ("abstain", "incorrect", "error")
        result = min(read_as.values(), key=lambda item: order.index(item.outcome))
    return replace(result, reason=f"read as {' or '.join(read_as)}: {result.reason}")


@lru_cache(maxsize=65536)
def _kinds(
    references: tuple[str, ...], question: str, has_choices: bool
) -> tuple[dict[str, tuple[str, ...]], bool]:
    """Shape → the references of that shape, and whether a number among them states a fact.

    A fact is a number that the question gives no other number, and no other year, to compute from.
    """
    known = [_unwrapped(reference) for reference in references if reference.strip()]
    letters = {*LETTERS[: len(listed_options(question))].lower()}
    shapes = [shape_of(text, question, has_choices or text.strip() in letters) for text in known]
    if {*shapes} == {"number", "mathematics"}:
        shapes = ["mathematics"] * len(shapes)
    own = {
        shape: tuple(item for item, of in zip(known, shapes, strict=True) if of == shape)
        for shape in _READERS
        if shape in shapes
    }
    if "short text" in own:
        own["short text"] = tuple(known)
    numbers = own.get("number", ())
    dated = _RE["when"].search(question) and all(map(_RE["year"].fullmatch, numbers))
    match = _RE["year"].search(question) if dated else re.search(r"\d", question)
    fact = numbers and question.strip() and not match and (dated or not spoken(question))
    return own, bool(fact)


def _in_prose(output: str) -> bool:
    """Whether an output is a text without a mark and without working, and more than a number."""
    said = output.strip().rstrip(".")
    bare = _RE["number"].fullmatch(said) or committed(output) or _RE["worked"].search(output)
    bare = bare or _RE["concludes"].match(said.rpartition("\n")[2])
    return not (bare or _RE["code"].search(output) or unfinished(output))


def _unwrapped(reference: str) -> str:
    """The content of a JSON string; Python writes its own with single quotes."""
    text = reference.strip()
    if len(text) > 2 and text[0] == text[-1] == '"' and "'" not in text:
        with contextlib.suppress(ValueError):
            return str(json.loads(text)) or reference
    return reference


@lru_cache(maxsize=65536)
def shape_of(reference: str, question: str = "", has_choices: bool = False) -> str:
    """Shape of a reference to a question: a row of this module's table."""
    text = reference.strip().lstrip("#").strip()
    if has_choices or (_RE["option"].fullmatch(text) and not text[0].islower()):
        return "option"
    if any(text.casefold().rstrip(".") in pair for pair in PAIRS):
        return "word of a closed pair"
    if text[:1] in "[{('\"" and (value := values_of(text)):  # "[]" as well
        if isinstance(value[0], int | float) and type(value[0]) is not bool:
            return "number"  # (1990)
        title = isinstance(value[0], str) and len(value[0].split()) > 1
        return (
            "short text" if title and question and not _RE["code"].search(question) else "literal"
        )
    if _RE["brackets"].fullmatch(text):
        return "bracket sequence"
    if _is_number(text):
        return "number"
    if _is_formula(text, question):
        return "mathematics"
    return "word list" if _is_list(text, question) else "short text"


def _is_number(text: str) -> bool:
    """A number and what it counts: not a date, a name ("12 Angry Men") or several numbers."""
    if not _RE["number"].fullmatch(text):
        spelled = number(text) if text.isascii() and text[:1].isalpha() else None
        return spelled is not None
    if numeric.reference(text) is None or any(
        date.month for item in accepted(text) for date, _, _ in item.dates
    ):
        return False
    named = _RE["name"].search(text) and measured(text) is None
    return not (named or _RE["function"].search(text))


def _is_formula(text: str, question: str) -> bool:
    """An expression of few words; without a sign of mathematics, of the question's letters."""
    if len(text) > 300:
        return False
    words = [word for word in _RE["word"].findall(text) if not _RE["operator"].fullmatch(word)]
    if _RE["maths"].search(text):
        return len(words) <= 3 and not _RE["function"].search(text)
    if words or not _RE["expression"].search(text) or _RE["hyphened"].search(text):
        return False
    letters = set(re.findall(r"(?<![a-z])[a-z](?![a-z])", text))
    return (
        not question
        or not letters
        or any(re.search(rf"(?<![A-Za-z]){letter}(?![A-Za-z])", question) for letter in letters)
    )


def _is_list(text: str, question: str) -> bool:
    """Words of a question that sorts them; without a question, words in alphabetical order."""
    items = _listed(text)
    if len(items) < 3 or (_RE["function"].search(text) and not _RE["sorts"].search(question)):
        return False
    if question:
        return bool(_RE["sorts"].search(question)) and set(items) <= {*_listed(question)}
    return bool(_RE["words"].fullmatch(text)) and items == sorted(items)


@lru_cache(maxsize=65536)
def listed_options(question: str) -> tuple[str, ...]:
    """Options a question lists from A on, one a line or in a row; empty where it lists none."""
    results = list(_RE["listed"].finditer(question))
    start = max((i for i, entry in enumerate(results) if entry[1] in "Aa"), default=len(results))
    run: list[re.Match[str]] = []
    for item in results[start:]:
        if len(run) < 26 and item[1].upper() == LETTERS[len(run)]:
            run.append(item)
    if len(run) < 2:
        return ()
    ends = [*(entry.start() for entry in run[1:]), len(question)]
    texts = (question[entry.end() : end].strip() for entry, end in zip(run, ends, strict=True))
    return tuple(text.split("\n")[0].rstrip(" ,;") for text in texts)


def _option(asked: ScoringInput, output: str) -> ScoreResult:
    if asked.choices:
        return mcq.read(asked, output)
    read = [(_RE["option"].fullmatch(item.strip()), item) for item in asked.references]
    letters = tuple((result[1] or result[2]).upper() if result else item for result, item in read)
    choices = listed_options(asked.question)
    return mcq.read(replace(asked, references=letters, choices=choices), output)


def _closed(asked: ScoringInput, output: str) -> ScoreResult:
    wanted = {reference.strip().rstrip(".").casefold() for reference in asked.references}
    pairs = [pair for pair in PAIRS if not wanted.isdisjoint(pair)]
    words = tuple(dict.fromkeys(word for pair in pairs for word in pair))
    result = short_answer(output, truncated=asked.truncated)
    if result is None:
        return ScoreResult("abstain", reason="no answer to compare")
    answer, span, conflict = result
    cut = not committed(output) and looks_cut(output)
    named = None if cut else _named(answer, words)
    if named is None:
        return ScoreResult("abstain", reason=f"names none of {', '.join(words)}: {answer[:60]!r}")
    return ScoreResult.of(named in wanted, output[slice(*span)], span, named, conflict)


def _named(answer: str, pair: tuple[str, ...]) -> str | None:
    """Which word of the pair an answer gives: the one it opens with, else the last it says."""
    opening = _RE["opening"].match(answer)
    if opening and opening[1].casefold() in pair and pair[0] in ("yes", "true"):
        return opening[1].casefold()
    words = "|".join(map(re.escape, pair))
    hits = list(re.finditer(rf"\b(?:{words})\b", answer[-2000:], re.IGNORECASE))
    if len(hits) > 1 and _RE["or"].fullmatch(answer[-2000:], hits[-2].end(), hits[-1].start()):
        return None  # "It could be yes or no."
    if "no" in pair:  # "no" is a word of many sentences
        hits = [h for h in hits if not re.match(r"\s[a-z]", answer[-2000:][h.end() : h.end() + 2])]
    if not hits:
        return None
    last = hits[-1]
    word = last[0].casefold()
    if _RE["negated"].search(answer[-2000:][: last.start()]):
        return pair[1 - pair.index(word)] if len(pair) == 2 else None
    return word


def _spelled(
    asked: ScoringInput, output: str, *, parts: Callable[[str], list[str]], joint: str
) -> ScoreResult:
    """Whether the signs or words of the answer are a reference's, in their order."""
    result = short_answer(output, truncated=asked.truncated)
    said = parts(result[0]) if result else []
    if result is None or not said:
        return ScoreResult("abstain", reason="no answer to compare")
    answer, span, conflict = result
    right = said in map(parts, asked.references)
    if not right and joint and _RE["function"].search(answer) and not committed(output):
        return ScoreResult("abstain", reason=f"a sentence, and no list: {answer[:60]!r}")
    return ScoreResult.of(right, output[slice(*span)], span, joint.join(said)[:120], conflict)


def _brackets(text: str) -> list[str]:
    return [item for item in "".join(_RE["bracket_run"].findall(text)) if item not in " ,\n\t"]


def _listed(text: str) -> list[str]:
    text = re.sub(r"[\"'`*\[\]()](?=\W|$)|(?<!\w)[\"'`*\[\]()]", " ", text.casefold()).rstrip(" .")
    return [word for word in _RE["between"].split(f" {text} ") if word]


def _number(asked: ScoringInput, output: str) -> ScoreResult:
    result = numeric.read(asked, output)
    if result.outcome == "incorrect" and _in_prose(output):
        text = contains.read(asked, output)
        if text.outcome == "correct":
            why = f"{result.reason}, beside a reference"
            return replace(result, outcome="abstain", score=None, reason=why)
    return result


def _text(asked: ScoringInput, output: str) -> ScoreResult:
    text = contains.read(asked, output)
    rows = [_RE["numeral"].findall(item) for item in asked.references if _RE["row"].fullmatch(item)]
    if text.outcome == "correct" and len(rows) == len(asked.references):
        said = _RE["numeral"].findall(text.extracted or "")
        if not any(said[at : at + len(row)] == row for row in rows for at in range(len(said))):
            return replace(text, outcome="abstain", score=None, reason="numbers in another order")
    return text


_READERS: dict[str, Callable[[ScoringInput, str], ScoreResult]] = {
    "option": _option,
    "word of a closed pair": _closed,
    "bracket sequence": partial(_spelled, parts=_brackets, joint=""),
    "literal": literal.read,
    "number": _number,
    "mathematics": maths.read,
    "word list": partial(_spelled, parts=_listed, joint=" "),
    "short text": _text,
}
SCORER = Scorer(
    "auto",
    "17",
    read,
    instruction='End with one line of the form "Answer: ...", holding the answer and nothing else.',
)
