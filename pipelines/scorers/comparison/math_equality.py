"""Whether two mathematical answers are the same: by form first, symbolically last."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from routeyard.pipelines.scorers.comparison import exact, symbolic
from routeyard.pipelines.scorers.comparison.math_form import Form, form_of
from routeyard.pipelines.scorers.comparison.number import (
    number,
    numbers,
    numeric_answer,
    spoken_number,
)
from routeyard.pipelines.scorers.comparison.number_words import UNITS
from routeyard.pipelines.scorers.comparison.quantities import agree
from routeyard.pipelines.scorers.comparison.quantity import Quantity, plain, scan
from routeyard.pipelines.scorers.comparison.units import Measure, measured
from routeyard.pipelines.scorers.patterns import patterns
from routeyard.pipelines.scorers.scorer import ScoringInput

_RE = patterns("math_equality")


def same_answer(one: str, other: str, asked: ScoringInput | None = None) -> bool:
    """Whether two answers are the same; symmetric.

    Raises:
        symbolic.TookTooLong: a symbolic comparison exceeds a limit.
    """
    if " ".join(one.split()) == " ".join(other.split()):
        return True
    if bool(_RE["denied"].match(one)) != bool(_RE["denied"].match(other)):
        return False
    if bases := _bases(asked.question if asked else ""):
        one, other = _without_base(one, bases), _without_base(other, bases)
    first, second = number(one), number(other)
    if first is not None and second is not None:
        return agree(first, second, asked)
    # One of them may be a number as it is; then the other is read as one, too.
    known, text = first or second, other if first else one
    if known and (said := spoken_number(text, asked)):
        return agree(said, known, asked)
    given, wanted = _measure(one), _measure(other)
    if given is not None and wanted is not None:
        return given.same_as(wanted)
    if known:
        if measure := wanted if first else given:
            return len(measure.parts) == 1 and agree(measure.parts[0][0], known, asked)
        said = _decimal_comma(text, asked) or (numeric_answer(text) if _in_prose(text) else None)
        if said:
            return agree(said, known, asked)
    return _same(form(one), form(other), asked)


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


def _decimal_comma(text: str, asked: ScoringInput | None) -> Quantity | None:
    """A number with a decimal comma, where its shape or the question shows that it is one."""
    shown = plain(text).strip().strip("()$ ")
    sure = _RE["surely"].fullmatch(shown) or (asked and _RE["convention"].search(asked.question))
    if not sure or "{" in text or not _RE["comma"].fullmatch(shown):
        return None
    found = scan(shown)
    return found[0].quantity if len(found) == 1 else None


_BASES = {"binary": 2, "ternary": 3, "octal": 8, "hexadecimal": 16} | {
    word: base for word, base in UNITS.items() if base <= 12
}


def _base(said: str) -> int:
    return int(said) if said.isdigit() else _BASES.get(said, 0)


@lru_cache(maxsize=4096)
def _bases(question: str) -> frozenset[int]:
    """Bases a question names: "Express 1423 in base 3", "in binary"."""
    said = (found[1] or found[2] for found in _RE["asked_base"].finditer(question))
    return frozenset(map(_base, said)) - {0}


def _without_base(text: str, bases: frozenset[int]) -> str:
    found = _RE["in_base"].fullmatch(text)
    return found[1] if found and _base(found[2]) in bases else text


def _same(one: Form, other: Form, asked: ScoringInput | None) -> bool:
    kinds = {one.kind, other.kind}
    if "equation" in kinds and "relation" not in kinds:
        if one.kind == other.kind and one.name != other.name:
            return False
        values = [form.parts[0] if form.kind == "equation" else form for form in (one, other)]
        return _same(values[0], values[1], asked)
    if kinds & {"named", "ordered"}:
        one, other = _as_tuple(one), _as_tuple(other)
    one, other = sorted((one, other), key=lambda form: form.kind)
    if one.kind == "named":  # before "ordered"
        return _same_named(one, other, asked)
    return _same_parts(one, other, asked)


def _same_parts(one: Form, other: Form, asked: ScoringInput | None) -> bool:
    """Whether two forms without equations or names are the same, part by part."""
    kinds = {one.kind, other.kind}
    if kinds <= {"set", "list"} or kinds == {"union"}:
        return _unordered(*_elements(one, other), asked)
    if kinds in ({"ordered"}, {"matrix"}):
        return one.name == other.name and _alike(one.parts, other.parts, asked)
    if kinds == {"text"}:
        return one.text == other.text
    if kinds == {"scalar"}:
        return same_scalar(one.text, other.text, asked)
    if one.kind == "ratio":
        return _same_ratio(one, other, asked)
    if kinds <= {"relation", "equation"} or (
        kinds == {"relation", "ordered"} and (one.source or other.source)
    ):
        return symbolically(one.source or one.text, other.source or other.text)
    return kinds == {"matrix", "scalar"} and symbolically(one.text, other.text)


def _alike(one: Iterable[Form], other: Iterable[Form], asked: ScoringInput | None) -> bool:
    """Whether parts in their order are the same."""
    ones, others = list(one), list(other)
    return len(ones) == len(others) and all(
        _same(a, b, asked) for a, b in zip(ones, others, strict=True)
    )


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
    if one.kind == other.kind:
        first, second = (
            dict(zip(form.name.split(","), form.parts, strict=False)) for form in (one, other)
        )
        return first.keys() == second.keys() and all(
            _same(part, second[name], asked) for name, part in first.items()
        )
    return (
        other.kind == "ordered"
        and other.name in ("()", "")
        and _alike(one.parts, other.parts, asked)
    )


def _as_tuple(one: Form) -> Form:
    """The tuple that a list such as `p = 3, q = 2` is; else the form itself."""
    tuples = _tuples(one) if one.kind == "list" else ()
    return tuples[0] if len(tuples) == 1 else one


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
    if other.kind == "ratio":
        first, second = _shares(one), _shares(other)
        return first == second if first and second else _alike(one.parts, other.parts, asked)
    if other.kind != "scalar" or len(one.parts) != 2:
        return False
    above, below = (part.text for part in one.parts)
    return same_scalar(f"\\frac{{{above}}}{{{below}}}", other.text, asked)


def _shares(ratio: Form) -> list[Fraction] | None:
    """Parts of a ratio by its first; None where one is no number that divides."""
    parts = [one.value for part in ratio.parts if (one := number(part.text))]
    values = [one for one in parts if isinstance(one, Fraction) and one]
    return [one / values[0] for one in values] if len(values) == len(ratio.parts) else None


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
    for text, value in ((bare, first), (also, second)):
        if value is None and _RE["numeric"].fullmatch(text):
            return False  # digits and separators that fit no convention: 0,111
    if not bare or not also or _RE["base"].fullmatch(bare) or _RE["base"].fullmatch(also):
        return bool(bare) and re.sub("[{}]", "", bare) == re.sub("[{}]", "", also)
    return _same_worded(one, other, asked)


def _same_worded(one: str, other: str, asked: ScoringInput | None) -> bool:
    """The same of what is counted, worked out or about equal; else symbolically."""
    first, second = number(one), number(other)
    known, others = ([first] if first else numbers(one)), ([second] if second else numbers(other))
    if known and others:
        return any(agree(a, b, asked) for a in known for b in others)
    if (first or second) and _RE["worded"].search(_RE["group"].sub("", other if first else one)):
        return False
    for text, against in ((one, other), (other, one)):
        if len(parts := _RE["about"].split(text)) > 1:
            return any(same_scalar(part, against, asked) for part in parts)
    return symbolically(one, other)


def _same_time(one: str, other: str) -> bool | None:
    """Whether two times of day are the same; None where one of the texts is no time."""
    times = [_RE["clock"].fullmatch(text) for text in (one, other)]
    first, second = ((int(t[1]), t[2], (t[3] or "").lower()) if t else None for t in times)
    return first == second if first and second else None


def symbolically(one: str, other: str) -> bool:
    """Whether two expressions or relations are equal to computer algebra; sentences never are.

    Raises:
        symbolic.TookTooLong: the comparison exceeds a limit.
    """
    bare = [_RE["group"].sub("", text) for text in (one, other)]  # `\\text{…}` is a unit
    words = [set(_RE["word"].findall(text)) for text in bare]
    if any(_RE["wordy"].search(text) for text in bare) or words[0] != words[1]:
        return False
    # A fixed order makes the verdict symmetric and the cache twice as good.
    first, second = sorted((_latex(one), _latex(other)))
    settled = exact.same(first, second)
    return symbolic.same(first, second) is True if settled is None else settled


@lru_cache(maxsize=65536)
def scalars(text: str) -> tuple[str, ...]:
    """The parts of an answer that have none themselves, as LaTeX."""
    parts = [form(text)]
    while any(part.parts for part in parts):
        parts = [one for part in parts for one in part.parts or (part,)]
    return tuple(_latex(part.source or part.text) for part in parts)


def evaluable(text: str) -> bool:
    """Whether each part of an answer, compared with nothing, can be evaluated within the limits."""
    try:
        for part in scalars(text):
            symbolic.same(part)
    except symbolic.TookTooLong:
        return False
    return True


def _latex(text: str) -> str:
    """Mixed numbers as sums, percent as hundredths, digit groups joined."""
    text = _RE["mixed"].sub(r"(\1+\\frac{\2}{\3})", text)
    text = re.sub(r"\\?%", r"\\cdot\\frac{1}{100}", text)
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = _RE["juxtaposed"].sub(r"\1\\cdot(", text)
    return re.sub(r"\\text\s?\{([^{}]*)\}", r"\\mathrm{\1}", text)
