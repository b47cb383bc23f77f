"""`auto`: reads by the shape of the reference, and says in the verdict how it read.

| reference | read as | by |
| --- | --- | --- |
| `(B)`, `B` | option | `mcq`, with the options the question lists |
| yes, True, valid | word of a closed pair | this file |
| `] ) }` | bracket sequence | this file, spaces do not count |
| `[1, 2]`, `'a'` | literal | `literal` |
| 24, 3.5, $5 | number | `numeric` |
| `\\frac{1}{2}`, `x^2` | mathematics | `math` |
| apple banana cherry | word list | this file, in order, commas do not count |
| anything else | short text | `contains` |

The shape is that of the first reference, so all models are read alike.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

from routeyard.pipelines.scorers import contains, literal, mcq, numeric
from routeyard.pipelines.scorers import math as maths
from routeyard.pipelines.scorers.extraction.short_answer import short_answer
from routeyard.pipelines.scorers.patterns import patterns
from routeyard.pipelines.scorers.scorer import LETTERS, Scorer, ScoreResult, ScoringInput

_RE = patterns("auto")

#: Words of which one is the answer.
PAIRS: tuple[tuple[str, ...], ...] = (
    ("yes", "no"), ("true", "false"), ("valid", "invalid"), ("plausible", "implausible"),
    ("possible", "impossible"), ("entailment", "contradiction", "neutral"),
    ("positive", "negative", "neutral"), ("even", "odd"), ("correct", "incorrect"),
)  # fmt: skip


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Reads the output the way its reference asks for."""
    if not asked.references or not any(one.strip() for one in asked.references):
        return ScoreResult("error", reason="there is no reference")
    asked = replace(asked, references=tuple(map(_unwrapped, asked.references)))
    first = asked.references[0].strip()
    letters = LETTERS[: len(listed_options(asked.question))].lower()
    listed = bool(asked.choices) or (len(first) == 1 and first in letters)
    shape = shape_of(asked.references[0], listed)
    reading = _READERS[shape](asked, output)
    return replace(reading, reason=f"read as {shape}: {reading.reason}")


def _unwrapped(reference: str) -> str:
    """The content of a JSON string; Python writes its own with single quotes."""
    text = reference.strip()
    if len(text) > 2 and text[0] == text[-1] == '"' and "'" not in text:
        with contextlib.suppress(ValueError):
            return str(json.loads(text)) or reference
    return reference


@lru_cache(maxsize=65536)
def shape_of(reference: str, has_choices: bool = False) -> str:
    """Shape of a reference: a row of this module's table."""
    text = reference.strip().lstrip("#").strip()
    if has_choices or (_RE["option"].fullmatch(text) and not text[0].islower()):
        return "option"
    if any(text.casefold().rstrip(".") in pair for pair in PAIRS):
        return "word of a closed pair"
    if text[:1] in "[{('\"" and _is_literal(text):  # "[]" as well
        return "literal"
    if _RE["brackets"].fullmatch(text):
        return "bracket sequence"
    if _RE["number"].fullmatch(text):
        return "number"
    if _RE["maths"].search(text) and len(text) <= 300:
        return "mathematics"
    if _RE["words"].fullmatch(text) and text.split() == sorted(text.split()):
        return "word list"
    return "short text"


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True


@lru_cache(maxsize=65536)
def listed_options(question: str) -> tuple[str, ...]:
    """Options a question lists from A on, one a line or in a row; empty where it lists none."""
    found = list(_RE["listed"].finditer(question))
    start = max((i for i, one in enumerate(found) if one[1] in "Aa"), default=len(found))
    run: list[re.Match[str]] = []
    for one in found[start:]:
        if len(run) < 26 and one[1].upper() == LETTERS[len(run)]:
            run.append(one)
    if len(run) < 2:
        return ()
    ends = [*(one.start() for one in run[1:]), len(question)]
    texts = (question[one.end() : end].strip() for one, end in zip(run, ends, strict=True))
    return tuple(text.split("\n")[0].rstrip(" ,;") for text in texts)


def _option(asked: ScoringInput, output: str) -> ScoreResult:
    if asked.choices:
        return mcq.read(asked, output)
    read = [(_RE["option"].fullmatch(one.strip()), one) for one in asked.references]
    letters = tuple((found[1] or found[2]).upper() if found else one for found, one in read)
    choices = listed_options(asked.question)
    return mcq.read(replace(asked, references=letters, choices=choices), output)


def _closed(asked: ScoringInput, output: str) -> ScoreResult:
    wanted = asked.references[0].strip().rstrip(".").casefold()
    pair = next(pair for pair in PAIRS if wanted in pair)
    found = short_answer(output, truncated=asked.truncated)
    if found is None:
        return ScoreResult("abstain", reason="no answer to compare")
    answer, span, conflict = found
    named = _named(answer, pair)
    if named is None:
        return ScoreResult("abstain", reason=f"names none of {', '.join(pair)}: {answer[:60]!r}")
    right = named in {one.strip().rstrip(".").casefold() for one in asked.references}
    return ScoreResult.of(right, output[slice(*span)], span, named, conflict)


def _named(answer: str, pair: tuple[str, ...]) -> str | None:
    """Which word of the pair an answer gives: the one it opens with, else the last it says."""
    opening = _RE["opening"].match(answer)
    if opening and opening[1].casefold() in pair and pair[0] in ("yes", "true"):
        return opening[1].casefold()
    words = "|".join(map(re.escape, pair))
    hits = list(re.finditer(rf"\b(?:{words})\b", answer[-2000:], re.IGNORECASE))
    if len(hits) > 1 and _RE["or"].fullmatch(answer[-2000:], hits[-2].end(), hits[-1].start()):
        return None  # "It could be yes or no."
    if pair == ("yes", "no"):  # "no" is a word of many sentences
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
    found = short_answer(output, truncated=asked.truncated)
    said = parts(found[0]) if found else []
    if found is None or not said:
        return ScoreResult("abstain", reason="no answer to compare")
    _, span, conflict = found
    right = said in map(parts, asked.references)
    return ScoreResult.of(right, output[slice(*span)], span, joint.join(said)[:120], conflict)


def _brackets(text: str) -> list[str]:
    return [one for one in "".join(_RE["bracket_run"].findall(text)) if one not in " ,\n\t"]


def _listed(text: str) -> list[str]:
    text = re.sub(r"[\"'`*\[\]()](?=\W|$)|(?<!\w)[\"'`*\[\]()]", " ", text.casefold()).rstrip(" .")
    return [word for word in _RE["between"].split(f" {text} ") if word]


_READERS: dict[str, Callable[[ScoringInput, str], ScoreResult]] = {
    "option": _option,
    "word of a closed pair": _closed,
    "bracket sequence": partial(_spelled, parts=_brackets, joint=""),
    "literal": literal.read,
    "number": numeric.read,
    "mathematics": maths.read,
    "word list": partial(_spelled, parts=_listed, joint=" "),
    "short text": contains.read,
}
SCORER = Scorer(
    "auto",
    "13",
    read,
    instruction='End with one line of the form "Answer: ...", holding the answer and nothing else.',
)
