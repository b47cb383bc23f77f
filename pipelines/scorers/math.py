"""`math`: equivalence of mathematical answers, LaTeX or plain.

The last committed answer (`\\boxed{}`, a marked line, a statement) is compared
by form first (`math_forms`): sets and lists unordered, tuples and intervals
ordered and with their brackets, matrices by cell, equations by name and value.
What is left are scalars, settled in this order: same text, exact numbers
(`numeric.agree`), and only then symbolically with math-verify, in a worker
process with limits of time, memory and size. An answer that exceeds one is `incorrect`; `error`
is where the reference alone does.
"""

from __future__ import annotations

import re
from functools import lru_cache

from routeyard.pipelines.scorers.comparison import symbolic
from routeyard.pipelines.scorers.comparison.math_equality import (
    evaluable,
    form,
    same_answer,
    scalars,
)
from routeyard.pipelines.scorers.comparison.number import numeric_answer
from routeyard.pipelines.scorers.extraction.clauses import bounds, denied, supposes, wonders
from routeyard.pipelines.scorers.extraction.commitment import (
    adjacent,
    breaks_off,
    cut_within,
    finished,
    settle,
)
from routeyard.pipelines.scorers.extraction.envelopes import after_draft
from routeyard.pipelines.scorers.extraction.marks import MOST_READ, committed
from routeyard.pipelines.scorers.extraction.math_statement import stated_value
from routeyard.pipelines.scorers.extraction.plain import numeral
from routeyard.pipelines.scorers.extraction.run_on import end_of_answer
from routeyard.pipelines.scorers.extraction.statements import Committed
from routeyard.pipelines.scorers.patterns import patterns
from routeyard.pipelines.scorers.scorer import Scorer, ScoreResult, ScoringInput

_RE = patterns("math")


#: An output without any mark is an answer only when it is no longer than this.
BARE = 200
_SEVERAL = frozenset({"list", "set", "ordered"})


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Reads the last committed answer and compares it with every reference."""
    known = [_reference(one) for one in asked.references if one.strip()]
    if not known:
        return ScoreResult("error", reason="there is no reference")
    marked = _marked(output, asked.truncated)
    if not marked:
        return ScoreResult("abstain", reason="no committed answer")
    with symbolic.allowance():
        settled = settle(marked, output, lambda one, other: _not_apart(one, other, asked))
    last, answer = marked[settled.index]
    if cut_within(last, output, truncated=asked.truncated):
        return ScoreResult("abstain", reason=f"{last.kind}: cut off within {last.text[:40]!r}")
    if _is_bound(output, last, answer, asked.question):
        return ScoreResult("abstain", reason=f"{last.kind}: only a bound, {last.text[:40]!r}")
    conflict, span = settled.conflict, (last.start, last.end)
    right, beyond = _is_one_of(known, answer, asked)
    run = adjacent([one for one, _ in marked], output, settled.index)
    if not right and _in_parts(run, known, asked):
        right, conflict = True, False
    reason = f"{last.kind}: {answer[:80]}"
    if not right and beyond:
        # The fault of a reference is not the answer's, and whatever answers it, it is one.
        if faulty := [one for one in beyond if not evaluable(one)]:
            why = f"the reference cannot be evaluated within the limits: {faulty[0][:80]}"
            return ScoreResult("error", None, last.text, span, why)
        reason += "; its comparison exceeds a limit of time, memory or size"
        return ScoreResult.of(False, last.text, span, reason, conflict)
    if not right and _unread(answer) and not any(map(_RE["worded"].search, known)):
        return ScoreResult("abstain", reason=f"words that are no mathematics: {reason}")
    if conflict:
        reason += "; commits to several answers"
    return ScoreResult.of(right, last.text, span, reason, conflict)


def _is_bound(output: str, last: Committed, answer: str, question: str) -> bool:
    number = re.search(r"\d[\d.,]*", answer)
    at = output.find(answer, last.start, last.end + 1)
    return (at >= 0 and bounds(output, at, at + len(answer), question)) or (
        number is not None
        and (denied(answer, *number.span()) or bounds(answer, *number.span(), question))
    )


def _unread(answer: str) -> bool:
    """Whether an answer was not read as a whole: words beside its formula, a bracket left open."""
    if answer.count("{") != answer.count("}") or len(_RE["open"].findall(answer)) % 2:
        return True
    if _RE["scaled"].search(answer):
        return True
    worded = _RE["worded"].search(_RE["group"].sub("", answer)) is not None
    several = len(re.findall(r"\d+", answer)) > 1
    return worded and (
        several or bool(_RE["formula"].search(answer)) or numeric_answer(answer) is None
    )


def _not_apart(one: str, other: str, asked: ScoringInput) -> bool:
    """Whether two marks are one answer, or too slow to compare: then no conflict is shown."""
    try:
        return same_answer(one, other, asked)
    except symbolic.TookTooLong:
        return True


def _is_one_of(known: list[str], answer: str, asked: ScoringInput) -> tuple[bool, list[str]]:
    """Whether an answer is a reference, and those with which the comparison exceeds a limit."""
    beyond: list[str] = []
    hopeless = False
    for one in sorted({*known}):  # in whatever order the source has them
        try:
            with symbolic.allowance(0 if hopeless else symbolic.LIMIT * len(scalars(one))):
                if same_answer(answer, one, asked):
                    return True, []
        except symbolic.TookTooLong:
            beyond.append(one)
            hopeless = hopeless or (len(known) > 1 and not evaluable(answer))
    return False, beyond


def _in_parts(run: list[Committed], known: list[str], asked: ScoringInput) -> bool:
    """Whether adjacent boxes together are a reference that is a list, tuple or set."""
    together = ", ".join(one.text for one in run)
    several = [one for one in known if len(run) > 1 and form(one).kind in _SEVERAL]
    return any(_is_one_of(several, one, asked)[0] for one in (together, f"({together})"))


def _marked(output: str, truncated: bool) -> list[tuple[Committed, str]]:
    """Commitments with the answers they hold; without any, the concluding sentence."""
    marked = [(one, answer) for one in committed(output) if (answer := _tail(one))]
    if marked:
        return marked
    if breaks_off(output, truncated=truncated) or len(output) > MOST_READ:
        return []
    end = end_of_answer(output)
    first = after_draft(output, end)
    body = output[first:end].strip()
    if not body:
        return []
    start = output.index(body, first)
    if len(body) <= BARE and "\n\n" not in body:
        one, answer = Committed("whole output", start, start + len(body), body), _said_alone(body)
        # A box that marks no answer is one that is denied, doubted or supposed.
        unsaid = "boxed{" in body or wonders(body, 0) or supposes(body)
        return [(one, answer)] if answer and not unsaid else []
    return _concluded(output, start, start + len(body))


def _said_alone(body: str) -> str:
    """A whole output that is an answer, or a sentence that gives one."""
    words = re.search(r"(?<![\\A-Za-z])[A-Za-z]{3,}[ ,:]", body)
    return stated_value(body) if words else body.strip('"')


def _concluded(output: str, start: int, end: int) -> list[tuple[Committed, str]]:
    """The last sentence, when it says that it concludes and holds mathematics."""
    line = max(output.rfind("\n", start, end), start - 1) + 1
    if not finished(output[line:end], alone=line == start):
        return []
    found = [m.start() for m in _RE["concludes"].finditer(output, max(line, end - 600), end)]
    if not found:
        return []
    text = output[found[-1] : end]
    answer = stated_value(_RE["concludes"].sub("", text, count=1))
    if not re.search(r"\d|\\[a-z]", answer) or len(answer) > 120:
        return []
    return [(Committed("concluding sentence", found[-1], end, text), answer)]


def _tail(one: Committed) -> str:
    """The answer inside a commitment: a formula or the text behind the verb."""
    text = one.text.strip()
    if one.kind in ("label", "stated", "final", "bold") and not _RE["box"].search(text):
        text = stated_value(text)
    elif one.kind == "field":
        text = text.replace('\\"', '"')  # 67\", an escaped inch mark
    wrapped = _RE["wrapped"].fullmatch(text)
    return (wrapped[1] if wrapped else text).strip('"').strip()


@lru_cache(maxsize=65536)
def _reference(text: str) -> str:
    """A reference may be the answer or a worked solution that ends in it."""
    if "\\boxed" in text or "####" in text:
        stated = committed(text)
        if stated:
            run = adjacent(stated, text, len(stated) - 1)
            return ", ".join(one.text for one in run) if len(run) > 1 else stated[-1].text
    return text.strip().lstrip("#").strip()


SCORER = Scorer(
    "math",
    "15",
    read,
    instruction=(
        "Work it out step by step, then end with the final answer, "
        "and nothing but the final answer, inside \\boxed{}."
    ),
    canonical=numeral,
    states="\\boxed{{{}}}",
)
