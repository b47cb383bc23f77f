"""`math`: equivalence of mathematical answers, LaTeX or plain.

The last committed answer (`\\boxed{}`, a marked line, a statement) is compared
by form first (`math_forms`): sets and lists unordered, tuples and intervals
ordered and with their brackets, matrices by cell, equations by name and value.
What is left are scalars, settled in this order: same text, exact numbers
(`numeric.agree`), and only then symbolically with math-verify, in a worker
process with a time limit. A comparison that exceeds it is an `error`, not a
verdict.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from pipelines.scorers.answers import symbolic
from pipelines.scorers.answers.commitment import Committed, committed
from pipelines.scorers.answers.math_form import Form, form_of
from pipelines.scorers.answers.plain import numeral
from pipelines.scorers.answers.quantity import Quantity, plain, scan
from pipelines.scorers.answers.run_on import end_of_answer
from pipelines.scorers.numeric import CORRECTION, agree, numeric_answer
from pipelines.scorers.scorer import Asked, Reading, Scorer

#: An output without any mark is an answer only when it is no longer than this.
BARE = 200
_NUMBER_ONLY = re.compile(
    r"[-+]?\s?\$?\s?[-+]?[\d.,'_ ]*\d\.?(?:\s?\(?\d+/\d+\)?|\s?/\s?-?[\d.,]*\d)?"
    r"(?:[eE][-+]?\d+|\s?\*\s?10\s?\^\s?\(?[-+]?\d+\)?)?\s?(?:%|percent)?"
)
# "60 square feet as the average": words around a number, read as `numeric` reads them.
_PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}[ ,]{1,2}(?:[$\d.,%]{1,20} )?[A-Za-z]{2,}")
_BASE = re.compile(r"[\dA-F]+_\{?\d+\}?")  # 12_3: a number in base three
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})\s?(?:([ap])\.?\s?m?\.*)?", re.IGNORECASE)


def read(asked: Asked, output: str) -> Reading:
    """Reads the last committed answer and compares it with every reference."""
    known = [_reference(one) for one in asked.references if one.strip()]
    if not known:
        return Reading("error", reason="there is no reference")
    marked = _marked(output)
    if not marked:
        return Reading("abstain", reason="no committed answer")
    last = marked[-1]
    conflict = False
    try:
        right = any(same_answer(_tail(last), one, asked) for one in known)
        conflict = len(marked) > 1 and _conflicting(marked, output, asked)
    except symbolic.TookTooLong:
        why = f"{last.kind}: comparison took more than {symbolic.LIMIT:g} s"
        return Reading("error", None, last.text, (last.start, last.end), why)
    reason = f"{last.kind}: {last.text[:80]}"
    if conflict:
        reason += "; commits to several answers"
    outcome, score = ("correct", 1.0) if right else ("incorrect", 0.0)
    span = (last.start, last.end)
    return Reading(outcome, score, last.text, span, reason, conflict)  # type: ignore[arg-type]


def _marked(output: str) -> list[Committed]:
    """Commitments that hold an answer; a boxed one outranks a sentence around it."""
    marked = [one for one in committed(output) if _tail(one)]
    boxed = [one for one in marked if one.kind in ("boxed", "field", "hash")]
    if boxed and boxed[-1].start >= marked[-1].start - 80:
        return boxed
    if marked:
        return marked
    end = end_of_answer(output)
    body = output[:end].strip()
    if body and len(body) <= BARE and "\n" not in body:
        start = output.index(body)
        return [Committed("whole output", start, start + len(body), body)]
    return []


def _tail(one: Committed) -> str:
    """The answer inside a commitment: a boxed part, or a formula, or the text."""
    text = one.text
    inner = re.search(r"\\boxed\s?\{", text)
    if one.kind in ("label", "stated") and inner is None:
        formula = re.match(r"[^$\\]{0,40}(?:\$([^$]{1,300})\$|\\\((.{1,300}?)\\\))", text)
        if formula:
            return formula[1] or formula[2]
        text = re.split(r"(?<=[\w)}%])[.!?](?:\s|$)", text, maxsplit=1)[0]
    return text.strip().strip('"').strip()


@lru_cache(maxsize=65536)
def _reference(text: str) -> str:
    """A reference may be the answer or a worked solution that ends in it."""
    if "\\boxed" in text or "####" in text:
        stated = committed(text)
        if stated:
            return stated[-1].text
    return text.strip().lstrip("#").strip()


def _conflicting(marked: list[Committed], output: str, asked: Asked) -> bool:
    return any(
        one.text != other.text
        and not CORRECTION.search(output, one.start, other.start)
        and not same_answer(_tail(one), _tail(other), asked)
        for one, other in pairwise(marked[-6:])
    )


def same_answer(one: str, other: str, asked: Asked | None = None) -> bool:
    """Whether two answers are the same; symmetric.

    Raises:
        symbolic.TookTooLong: a symbolic comparison did not end in time.
    """
    if " ".join(one.split()) == " ".join(other.split()):
        return True
    first, second = number(one), number(other)
    if first is not None and second is not None:
        return agree(first, second, asked)
    if _PROSE.search(one) and second is not None:
        first = numeric_answer(one)
    elif _PROSE.search(other) and first is not None:
        second = numeric_answer(other)
    if first is not None and second is not None:
        return agree(first, second, asked)
    return _same(_form(one), _form(other), asked)


@lru_cache(maxsize=65536)
def _form(text: str) -> Form:
    return form_of(text[:2000]) if len(text) <= 2000 else Form("scalar", text)


def _same(one: Form, other: Form, asked: Asked | None) -> bool:
    if one.kind == "equation" and other.kind == "equation" and one.name != other.name:
        return False
    if one.kind == "equation" and other.kind != "relation":
        return _same(one.parts[0], other.parts[0] if other.kind == "equation" else other, asked)
    if other.kind == "equation" and one.kind != "relation":
        return _same(other, one, asked)
    kinds = {one.kind, other.kind}
    if kinds <= {"set", "list"} or kinds == {"union"}:
        return _unordered(one.parts, other.parts, asked)
    if kinds in ({"ordered"}, {"matrix"}):
        return (
            one.name == other.name
            and len(one.parts) == len(other.parts)
            and all(_same(a, b, asked) for a, b in zip(one.parts, other.parts, strict=True))
        )
    if kinds == {"text"}:
        return one.text == other.text
    if kinds == {"scalar"}:
        return same_scalar(one.text, other.text, asked)
    if kinds <= {"relation", "equation"}:
        return _symbolically(one.text, other.text)
    return False


def _unordered(one: tuple[Form, ...], other: tuple[Form, ...], asked: Asked | None) -> bool:
    if len(one) != len(other) or len(one) > 60:
        return False
    left = list(other)
    for part in one:
        hit = next((i for i, candidate in enumerate(left) if _same(part, candidate, asked)), None)
        if hit is None:
            return False
        left.pop(hit)
    return True


def same_scalar(one: str, other: str, asked: Asked | None = None) -> bool:
    """Two scalars: same text, exact numbers, else symbolically."""
    bare, also = one.replace(" ", ""), other.replace(" ", "")
    if bare == also and bare:
        return True
    if (times := (_CLOCK.fullmatch(one), _CLOCK.fullmatch(other)))[0] and times[1]:
        return _time(times[0]) == _time(times[1])
    first, second = number(one), number(other)
    if first is not None and second is not None:
        return agree(first, second, asked)
    if (first is None and _looks_numeric(bare)) or (second is None and _looks_numeric(also)):
        return False  # digits and separators that fit no convention: 0,111
    if not bare or not also or _BASE.fullmatch(bare) or _BASE.fullmatch(also):
        return bool(bare) and _unbraced(bare) == _unbraced(also)
    return _symbolically(one, other)


def _unbraced(text: str) -> str:
    return text.replace("{", "").replace("}", "")


def _time(clock: re.Match[str]) -> tuple[int, str, str]:
    return int(clock[1]), clock[2], (clock[3] or "").lower()


@lru_cache(maxsize=65536)
def number(text: str) -> Quantity | None:
    """The text as one exact number; None when anything but a number stands there."""
    shown = plain(text).strip()
    if not _NUMBER_ONLY.fullmatch(shown.strip("() ")):
        return None
    found = scan(shown)
    return found[0].quantity if len(found) == 1 else None


def _looks_numeric(text: str) -> bool:
    return bool(re.fullmatch(r"[-+$]*\d[\d,.']*", text))


def _symbolically(one: str, other: str) -> bool:
    # A fixed order makes the verdict symmetric and the cache twice as good.
    first, second = sorted((_latex(one), _latex(other)))
    return symbolic.same(first, second) is True


# "2(3)" is a product; the parser would add. `log_2(8)` and `x^2(…)` keep their digit.
_JUXTAPOSED = re.compile(r"(?<![\w^.{])(\d+(?:\.\d+)?)\s?\((?=[^)])")
_MIXED = re.compile(r"(?<![\w}.])(\d+)\s?\\frac\s?\{(\d+)\}\s?\{(\d+)\}")


def _latex(text: str) -> str:
    """Mixed numbers as sums, percent as hundredths, digit groups joined."""
    text = _MIXED.sub(r"(\1+\\frac{\2}{\3})", text)
    text = re.sub(r"\\?%", r"\\cdot\\frac{1}{100}", text)
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = _JUXTAPOSED.sub(r"\1\\cdot(", text)
    return re.sub(r"\\text\s?\{([^{}]*)\}", r"\\mathrm{\1}", text)


SCORER = Scorer(
    "math",
    "1",
    read,
    instruction=(
        "Work it out step by step, then end with the final answer, "
        "and nothing but the final answer, inside \\boxed{}."
    ),
    canonical=numeral,
    states="\\boxed{{{}}}",
)
