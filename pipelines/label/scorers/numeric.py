"""`numeric`: the output's last committed answer, read as one number.

What counts as a commitment is listed in `committed`; without one, the number
of the concluding sentence is taken, provided the output was not cut off.
Comparison is exact, over rationals:

- integers and decimals must be equal (`18.0` is 18, `18.4` is not);
- a repeating fraction agrees with its decimal rounded or cut to three or more
  significant digits (1/3 and 0.333), in either direction;
- `metadata["tolerance"]` (relative) or `metadata["absolute_tolerance"]` of a
  query widens this, both inclusive;
- units are compared where the reference names one (`units`); a reference
  without a unit accepts any;
- a missing percent sign is forgiven
  where the question asks for a percentage or the number exceeds 1, and never
  lets 0.5 pass for 0.5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import factorial

from routeyard.pipelines.label.scorers.patterns import patterns
from routeyard.pipelines.label.scorers.quantities import (
    Measure,
    Quantity,
    QuantityMatch,
    agree,
    in_main_clause,
    measure_at,
    measured,
    numeric_answer,
    part_of_more,
    plain,
    rounds_to,
    scan,
    spoken,
)
from routeyard.pipelines.label.scorers.reading import (
    Committed,
    after_draft,
    amount,
    bounds,
    committed,
    cut_within,
    declines,
    denied,
    doubted,
    end_of_answer,
    looks_cut,
    settle,
    supposes,
    unfinished,
    without_closers,
    wonders,
)
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, ScoringInput

_RE = patterns("numeric")


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Reads the last committed number and compares it with the references."""
    known = list(filter(None, map(reference, asked.references)))
    if not known:
        return ScoreResult("error", reason=f"no reference is a number: {list(asked.references)!r}")
    marks = committed(output)
    united = any(measure is not None for _, measure in known)
    readable = _readable(marks, united, asked)
    values = [value for value, _ in known]
    if marks and not readable:
        return _not_a_number(marks[-1], asked, values)
    if not marks and unfinished(output, truncated=asked.truncated):
        return ScoreResult("abstain", reason="cut off or looping, and no committed answer")
    if not (readable := readable or _conclusion(output, asked)):
        return ScoreResult("abstain", reason="no committed answer")
    settled = settle(readable, output, lambda item, other: item.value == other.value)
    last, got = readable[settled.index]
    if why := _no_value(last, output, asked):
        return ScoreResult("abstain", reason=f"{last.kind}: {why} {last.text[:40]!r}")
    span = (last.start, last.end)
    said = output[slice(*span)]
    right = any(_agree(got, said, entry, asked) for entry in known)
    reason = f"{last.kind}: {_shown(got)}"
    if right and not marks and looks_cut(output[: last.end]):
        return ScoreResult("abstain", None, said, span, f"{reason}, where the output may be cut")
    if not right and (how := _almost(got, said, output[: span[0]], known, asked)):
        why = f"{reason}, which is a reference {how}"
        return ScoreResult("abstain", None, said, span, why)
    if settled.conflict:
        reason += "; commits to several answers: " + ", ".join(_shown(q) for _, q in readable)
    return ScoreResult.of(right, said, span, reason, settled.conflict)


def _readable(
    marks: Sequence[Committed], united: bool, asked: ScoringInput
) -> list[tuple[Committed, Quantity]]:
    """The marked answers that are numbers."""
    values = ((mark, _value(mark.text, united, asked.question)) for mark in marks)
    return [(mark, n) for mark, n in values if n is not None]


def _almost(
    got: Quantity,
    said: str,
    before: str,
    known: list[tuple[Quantity, Measure | None]],
    asked: ScoringInput,
) -> str:
    """In what an unequal number may be meant as a reference; else empty."""
    if before.endswith("\n") and said.startswith("- ") and not isinstance(got.value, str):
        turned = replace(got, value=-got.value)  # the dash of a list's item
        if any(_agree(turned, said[2:], item, asked) for item in known):
            return "as the item of a list"
    if any(rounds_to(got, value) for value, _ in known):
        return "when rounded: the source states no tolerance"
    scaled = _scale(said, asked.question) and any(agree(got, value) for value, _ in known)
    return "without its M" if scaled else ""


def _no_value(last: Committed, output: str, asked: ScoringInput) -> str:
    """Why a mark's number does not count; empty where it does."""
    if cut_within(last, output, truncated=asked.truncated):
        return "cut off within"
    boxed = last.kind == "boxed"
    return "only a bound," * (boxed and bounds(output, last.start, last.end, asked.question))


def _not_a_number(last: Committed, asked: ScoringInput, known: list[Quantity]) -> ScoreResult:
    span = (last.start, last.end)
    if any(last.text.strip() == reference.strip() for reference in asked.references):
        return ScoreResult.of(True, last.text, span, f"{last.kind}: same text")
    numbers = scan(plain(last.text))
    text = plain(_committed_numbers(last.text, asked.question))
    unsure = _RE["unsure"].search(last.text.lower()) or (numbers and not scan(text))
    several = len(_RE["sentence"].split(last.text)) > 1 and len(numbers) > 1
    # π/2 may be 1.57, and is not 2.
    decimal = any(isinstance(item.value, Fraction) and item.value.denominator > 1 for item in known)
    formula = decimal and _RE["formula"].search(last.text)
    offered = _RE["offers"].search(last.text) and len(scan(text)) > 1
    if numbers and not (unsure or several or formula or offered):
        return ScoreResult.of(False, last.text, span, f"{last.kind}: not one number")
    why = "declines to answer" if unsure else "not one number"
    return ScoreResult("abstain", reason=f"{last.kind}: {why} in {last.text[:80]!r}")


@lru_cache(maxsize=65536)
def reference(text: str) -> tuple[Quantity, Measure | None] | None:
    """A reference may be the number, a quantity, or a worked solution that ends in it."""
    stated = committed(text)
    last = stated[-1].text if stated else text.lstrip("# ")
    got = _value(last, united=True, question=None)
    return None if got is None else (got, measured(last))


def _value(text: str, united: bool, question: str | None) -> Quantity | None:
    """The number of a text; of "2 h 30 min", where units are compared, the first."""
    if text[:1] in ("{", "[") and len({item.quantity for item in scan(plain(text))}) > 1:
        return None  # an object or a list of several numbers
    committed = _committed_numbers(text, question) if len(text) <= 200 else text
    if committed != text and not _RE["digits"].search(committed):
        return None  # the "ten" of "ten minste 57" is no number
    got = _said_first(committed)
    if got is None and " or " in text and len(text) <= 200:
        said = [measured(part) for part in text.split(" or ")]
        first = said[0]
        if first is not None and all(item is not None and item.same_as(first) for item in said):
            return first.parts[0][0]  # "225 minutes or 3 hours 45 minutes": one amount, said twice
    if got is None and united and (measure := measured(text)) is not None:
        return measure.parts[0][0]
    return got


def _said_first(text: str) -> Quantity | None:
    """The number of a text; of "6; 3 is half of it" the first, which is alone."""
    first = _RE["first"].match(text)
    alone = first and not _RE["goes_on"].search(text, first.end())
    return numeric_answer(first[0] if first and alone else text)


def _agree(
    got: Quantity, said: str, reference: tuple[Quantity, Measure | None], asked: ScoringInput
) -> bool:
    """Whether the number agrees, and the unit where the reference and the answer name one."""
    value, wanted = reference
    if wanted is not None:
        measure = measured(said) or measure_at(said, got)
        if measure is not None:
            return measure.same_as(wanted)
    if isinstance(got.value, Fraction) and (scale := _scale(said, asked.question)):
        return agree(Quantity(got.value * scale), value, asked)
    if agree(got, value, asked):
        return True
    # "8!" is an exclamation, or 40320.
    return (
        isinstance(got.value, Fraction)
        and bool(_RE["factorial"].fullmatch(said))
        and Quantity(Fraction(factorial(int(got.value)))) == value
    )


def _scale(said: str, question: str) -> int:
    """What "M" and "B" make of "1.2M"; 0 where they are no factors, or the question has them."""
    scaled = _RE["scaled"].search(said)
    return (
        10 ** (6 if scaled[1] == "M" else 9)
        if scaled and not _RE["unscaled"].search(question)
        else 0
    )


def _conclusion(output: str, asked: ScoringInput) -> list[tuple[Committed, Quantity]]:
    """The concluding sentence of an output without a marked answer, and its number."""
    end = end_of_answer(output)
    start = max(after_draft(output, end), end - 1500, 0)
    start += len(output[start:end]) - len(output[start:end].lstrip())
    text = output[start : without_closers(output, start, end)].rstrip()
    line_start = text.rfind("\n") + 1
    line = text[line_start:]
    if supposes(text) or declines(line) or _RE["program"].search(line):
        return []
    if _RE["cut"].search(line) or (end < len(output) and looks_cut(text)):
        return []
    line = _committed_numbers(line, asked.question)
    shown = plain(line)
    numbers = scan(shown)
    if (
        not (numbers or spoken(line))
        or (not line_start and _RE["case"].match(line) and _only_a_case(line))
        or _RE["announces"].search(line)
        or _RE["comments"].search(line)
    ):
        return []
    got = _computed(text[:line_start], shown) if "=" not in line else None
    got = got or numeric_answer(line) or _said_of(numbers, shown)
    if got is None:
        return []
    start += line_start
    return [(Committed("concluding sentence", start, start + len(line), line), got)]


def _said_of(numbers: list[QuantityMatch], line: str) -> Quantity | None:
    """The last number where the text equates it with the one before: "$0.10 is 10 cents"."""
    if len(numbers) < 2 or part_of_more(line, numbers[-1]):
        return None
    said = _RE["is"].search(line, numbers[-2].end, numbers[-1].start)
    return numbers[-1].quantity if said else None


def _committed_numbers(line: str, question: str | None) -> str:
    """The line with spaces in place of numbers that it denies, doubts or only compares with.

    A bound stays where the question asks for one; a reference (no question) may be one.
    """
    for match in reversed(list(_RE["digits"].finditer(line))):
        start, end = match.span()
        if end - start < len(line) and (
            denied(line, start, end)
            or doubted(line, start)
            or wonders(line, end)
            or (question is not None and bounds(line, start, end, question))
            or (question is not None and _in_base(line, end, question))
        ):
            line = line[:start] + " " * (end - start) + line[end:]
    return line


def _in_base(line: str, end: int, question: str) -> bool:
    """Whether the digits before `end` are of a base that the question does not name."""
    return _RE["based"].match(line, end) is not None and not _RE["asks_base"].search(question)


def _only_a_case(line: str) -> bool:
    """ "If x = 4, then n is 3" is a case; "If there are 4, then there are 2 + 4 = 6" is worked."""
    _, then, rest = line.partition(" then ")
    return bool(then) and not _RE["worked"].search(rest)


def _computed(before: str, line: str) -> Quantity | None:
    """The number of a sentence that the last equation before it came to, if there are several."""
    worked = before.rpartition("=")[2]
    results = scan(plain(worked[:60])) if len(worked) < len(before) else []
    named = in_main_clause(line)
    if not results or results[0].quantity is None or len(named) < 2:
        return None
    computed = results[0].quantity.value
    items = [n for n in named if n.quantity is not None and n.quantity.value == computed]
    # "so $0.10 per pump is 10 cents": what was computed is only the subject.
    if not items or _RE["is"].search(line, items[0].end, named[-1].start):
        return None
    return items[0].quantity


def _shown(quantity: Quantity) -> str:
    text = str(quantity.value)
    return (text if len(text) <= 60 else text[:57] + "...") + ("%" if quantity.percent else "")


SCORER = Scorer(
    "numeric",
    "17",
    read,
    instruction=(
        "Work it out, then end with one line of the form "
        '"Answer: N", where N is a single number without further words.'
    ),
    symmetric=True,
    canonical=amount,
)
