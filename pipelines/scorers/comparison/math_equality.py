"""Whether two mathematical answers are the same: by form first, symbolically last."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from routeyard.pipelines.scorers.comparison.algebra import symbolically
from routeyard.pipelines.scorers.comparison.math_form import Form, form_of
from routeyard.pipelines.scorers.comparison.number import numeric_answer
from routeyard.pipelines.scorers.comparison.number_words import UNITS
from routeyard.pipelines.scorers.comparison.one_number import (
    looks_numeric,
    number,
    numbers,
    spoken_number,
)
from routeyard.pipelines.scorers.comparison.quantities import agree
from routeyard.pipelines.scorers.comparison.quantity import Quantity, plain, scan
from routeyard.pipelines.scorers.comparison.units import Measure, measured
from routeyard.pipelines.scorers.patterns import patterns
from routeyard.pipelines.scorers.scorer import ScoringInput

_RE = patterns("math_equality")


def same_answer(one: str, other: str, asked: ScoringInput | None = None) -> bool:
    """Whether two answers are the same; symmetric.

    Raises:
        symbolic.TookTooLong: a symbolic comparison did not end in time.
    """
    if " ".join(one.split()) == " ".join(other.split()):
        return True
    if bool(_RE["denied"].match(one)) != bool(_RE["denied"].match(other)):
        return False
    first, second = number(one), number(other)
    if first is not None and second is not None:
        return agree(first, second, asked)
    for text, read, said in ((one, first, second), (other, second, first)):
        if read is None and said is not None and (third := spoken_number(text, asked)):
            return agree(third, said, asked)
    if bases := _bases(asked.question if asked else ""):
        one, other = _without_base(one, bases), _without_base(other, bases)
    same = _same_quantity(one, other, first, second, asked)
    return _same(form(one), form(other), asked) if same is None else same


def _same_quantity(
    one: str,
    other: str,
    first: Quantity | None,
    second: Quantity | None,
    asked: ScoringInput | None,
) -> bool | None:
    """Whether two answers are the same quantity; null where one of them is no quantity.

    Args:
        first: The number that `one` is, if it is one; `second` for `other`.
    """
    given, wanted = (_measure(text) for text in (one, other))
    if given is not None and wanted is not None:
        return given.same_as(wanted)
    for measure, said, read in ((given, second, first), (wanted, first, second)):
        if read is None and said is not None and measure is not None:
            return len(measure.parts) == 1 and agree(measure.parts[0][0], said, asked)
    if (first is None) != (second is None) and (third := _decimal_comma(one, other, asked)):
        return agree(third, first or second, asked)  # type: ignore[arg-type]
    if second is not None and _in_prose(one):
        first = numeric_answer(one)
    elif first is not None and _in_prose(other):
        second = numeric_answer(other)
    if first is not None and second is not None:
        return agree(first, second, asked)
    return None


def _in_prose(text: str) -> bool:
    """Whether a text holds words or several steps around its number."""
    several = text.count("=") > 1 and (";" in text or ", " in text)
    return bool(_RE["prose"].search(text) or (several and _RE["steps"].fullmatch(text)))


@lru_cache(maxsize=65536)
def form(text: str) -> Form:
    """The form of an answer, once for each text."""
    return form_of(text[:2000]) if len(text) <= 2000 else Form("scalar", text)


def _measure(text: str) -> Measure | None:
    """The text as a quantity with a unit; a letter glued to a number is a variable."""
    if not _RE["united"].search(text) or _RE["variable"].search(text) or _RE["negated"].match(text):
        return None
    return measured(text)


def _decimal_comma(one: str, other: str, asked: ScoringInput | None) -> Quantity | None:
    """The side written with a decimal comma, where its shape or the question shows that it is."""
    for text in (one, other):
        shown = plain(text).strip().strip("()$ ")
        if _RE["comma"].fullmatch(shown) and (
            _RE["surely"].fullmatch(shown) or (asked and _RE["convention"].search(asked.question))
        ):
            found = scan(shown)
            return found[0].quantity if len(found) == 1 and "{" not in text else None
    return None


_BASES = {"binary": 2, "ternary": 3, "octal": 8, "hexadecimal": 16} | {
    word: base for word, base in UNITS.items() if base <= 12
}


@lru_cache(maxsize=4096)
def _bases(question: str) -> frozenset[int]:
    """Bases a question names: "Express 1423 in base 3", "in binary"."""
    found = {int(m[1]) for m in re.finditer(r"\bbase[- ]\$?(\d{1,2})\b", question)}
    for word in re.findall(r"\bbase[- ]([a-z]+)|\b(binary|ternary|octal|hexadecimal)\b", question):
        found |= {_BASES[one] for one in word if one in _BASES}
    return frozenset(found)


def _without_base(text: str, bases: frozenset[int]) -> str:
    subscript = re.fullmatch(r"\s*([\dA-F]+)_\s?\{?(?:\\text\{)?(\w+)\}{0,2}\s*", text.strip(" $"))
    if subscript is None:
        return text
    base = int(subscript[2]) if subscript[2].isdigit() else _BASES.get(subscript[2], 0)
    return subscript[1] if base in bases else text


def _same(one: Form, other: Form, asked: ScoringInput | None) -> bool:
    if one.kind == "equation" and other.kind == "equation" and one.name != other.name:
        return False
    if one.kind == "equation" and other.kind != "relation":
        return _same(one.parts[0], other.parts[0] if other.kind == "equation" else other, asked)
    if other.kind == "equation" and one.kind != "relation":
        return _same(other, one, asked)
    if one.kind == "named" or other.kind == "named":
        return _same_named(one, other, asked)
    if "list" in (one.kind, other.kind) and "ordered" in (one.kind, other.kind):
        listed, ordered = (one, other) if one.kind == "list" else (other, one)
        tuples = _tuples(listed)
        return len(tuples) == 1 and _same(tuples[0], ordered, asked)
    return _same_parts(one, other, asked)


def _same_parts(one: Form, other: Form, asked: ScoringInput | None) -> bool:
    """Whether two forms without equations or names are the same, part by part."""
    kinds = {one.kind, other.kind}
    if kinds <= {"set", "list"} or kinds == {"union"}:
        return _unordered(*_elements(one, other), asked)
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
    if "ratio" in kinds:
        return _same_ratio(one, other, asked)
    if kinds <= {"relation", "equation"} or (
        kinds == {"relation", "ordered"} and (one.source or other.source)
    ):
        return symbolically(one.source or one.text, other.source or other.text)
    if kinds == {"matrix", "scalar"}:
        return symbolically(one.text, other.text)
    return False


def _elements(one: Form, other: Form) -> tuple[tuple[Form, ...], tuple[Form, ...]]:
    """Parts of two sets, lists or unions, in forms that can be compared."""
    kinds = {one.kind, other.kind}
    if kinds == {"set"}:  # {2, 1, 1} is {1, 2}
        return tuple(dict.fromkeys(one.parts)), tuple(dict.fromkeys(other.parts))
    mixed = {part.kind for part in (*one.parts, *other.parts)} == {"equation", "ordered"}
    if kinds == {"list"} and mixed:
        return _tuples(one) or one.parts, _tuples(other) or other.parts
    return one.parts, other.parts


def _same_named(one: Form, other: Form, asked: ScoringInput | None) -> bool:
    """`(p,q) = (3,2)` against itself in another order of names, or against the bare tuple."""
    if {one.kind, other.kind} <= {"named"}:
        left, right = (
            sorted(zip(f.name.split(","), f.parts, strict=False), key=lambda p: p[0])
            for f in (one, other)
        )
        return [n for n, _ in left] == [n for n, _ in right] and all(
            _same(a, b, asked) for (_, a), (_, b) in zip(left, right, strict=True)
        )
    named, bare = (one, other) if one.kind == "named" else (other, one)
    if bare.kind == "list" and len(_tuples(bare)) == 1:  # p = 3, q = 2
        bare = _tuples(bare)[0]
    return (
        bare.kind == "ordered"
        and bare.name in ("()", "")
        and len(named.parts) == len(bare.parts)
        and all(_same(a, b, asked) for a, b in zip(named.parts, bare.parts, strict=True))
    )


def _tuples(listed: Form) -> tuple[Form, ...]:
    """`p=5, q=2; p=7, q=2` as tuples in the order of the alphabet; else empty."""
    names = [part.name for part in listed.parts]
    if any(part.kind != "equation" for part in listed.parts) or len(names) < 2:
        return ()
    width = names.index(names[0], 1) if names[0] in names[1:] else len(names)
    if width < 2 or len(names) % width or names != names[:width] * (len(names) // width):
        return ()
    order = sorted(range(width), key=lambda i: names[i])
    made = []
    for at in range(0, len(names), width):
        parts = tuple(listed.parts[at + i].parts[0] for i in order)
        made.append(Form("ordered", f"({','.join(part.text for part in parts)})", parts, "()"))
    return tuple(made)


def _same_ratio(one: Form, other: Form, asked: ScoringInput | None) -> bool:
    if (same := _same_time(one.text, other.text)) is not None:
        return same
    if one.kind == other.kind:
        values = [[number(part.text) for part in f.parts] for f in (one, other)]
        if len(values[0]) != len(values[1]):
            return False
        if not all(v and isinstance(v.value, Fraction) and v.value for row in values for v in row):
            return all(_same(a, b, asked) for a, b in zip(one.parts, other.parts, strict=True))
        first, second = ([v.value / row[0].value for v in row] for row in values)  # type: ignore
        return bool(first == second)
    ratio, scalar = (one, other) if one.kind == "ratio" else (other, one)
    if scalar.kind != "scalar" or len(ratio.parts) != 2:
        return False
    above, below = (part.text for part in ratio.parts)
    return same_scalar(f"\\frac{{{above}}}{{{below}}}", scalar.text, asked)


def _unordered(one: tuple[Form, ...], other: tuple[Form, ...], asked: ScoringInput | None) -> bool:
    # A solution that is listed twice is one solution; a prime factor is not.
    if {part.kind for part in (*one, *other)} == {"ordered"}:
        one, other = (
            tuple({part.text.replace(" ", ""): part for part in f}.values()) for f in (one, other)
        )
    if len(one) != len(other) or len(one) > 60:
        return False
    left = list(other)
    for part in one:
        hit = next((i for i, candidate in enumerate(left) if _same(part, candidate, asked)), None)
        if hit is None:
            return False
        left.pop(hit)
    return True


def same_scalar(one: str, other: str, asked: ScoringInput | None = None) -> bool:
    """Two scalars: same text, exact numbers, else symbolically."""
    bare, also = one.replace(" ", ""), other.replace(" ", "")
    if bare == also and bare:
        return True
    if (same := _same_time(one, other)) is not None:
        return same
    first, second = number(one), number(other)
    if first is not None and second is not None:
        return agree(first, second, asked)
    if (first is None and looks_numeric(bare)) or (second is None and looks_numeric(also)):
        return False  # digits and separators that fit no convention: 0,111
    if not bare or not also or _RE["base"].fullmatch(bare) or _RE["base"].fullmatch(also):
        return bool(bare) and re.sub("[{}]", "", bare) == re.sub("[{}]", "", also)
    if (same := _same_worded(one, other, first, second, asked)) is not None:
        return same
    return symbolically(one, other)


def _same_worded(
    one: str,
    other: str,
    first: Quantity | None,
    second: Quantity | None,
    asked: ScoringInput | None,
) -> bool | None:
    """The same for what is counted, worked out or about equal; None for other expressions."""
    known, others = ([first] if first else numbers(one)), ([second] if second else numbers(other))
    if known and others:
        return any(agree(a, b, asked) for a in known for b in others)
    if (first or second) and _RE["worded"].search(_RE["group"].sub("", other if first else one)):
        return False
    for text, against in ((one, other), (other, one)):
        if len(parts := _RE["about"].split(text)) > 1:
            return any(same_scalar(part, against, asked) for part in parts)
    return None


def _same_time(one: str, other: str) -> bool | None:
    """Whether two times of day are the same; None where one of the texts is no time."""
    times = [_RE["clock"].fullmatch(text) for text in (one, other)]
    first, second = ((int(t[1]), t[2], (t[3] or "").lower()) if t else None for t in times)
    return first == second if first and second else None
