"""The outer form of a mathematical answer: set, interval, tuple, matrix, equation, list, scalar.

Two answers of different forms are different, whatever a computer algebra
system makes of them, so the form is settled here and only scalars are handed
on. That removes the known ways in which a symbolic comparison calls different
answers equal (a set and its sum, an open and a closed interval, `x=5` and
`y=5`, the tail of an equation).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from routeyard.pipelines.scorers.patterns import patterns, rewrites

_RE = patterns("math_form")
_SAME = rewrites("math_rewrites")
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_RISING = frozenset({"<", r"\le"})
_TURNED = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}


@dataclass(frozen=True, slots=True)
class Form:
    """One answer's form.

    `kind`: `scalar`, `text`, `set`, `list`, `ordered`, `matrix`, `union`,
    `equation`, `relation`, `named` (a tuple with the names of its parts) or
    `ratio`. `name` is a bracket pair (`(]`), a matrix
    shape, or the left side of an equation; `parts` are the elements.
    """

    kind: str
    text: str
    parts: tuple[Form, ...] = ()
    name: str = ""
    #: The relation that an interval was read from; empty when it was written as one.
    source: str = ""


def form_of(text: str) -> Form:
    """Form of an answer's text."""
    return _form(tidy(text), depth=0)


def tidy(text: str) -> str:
    """One spelling for what has many: fractions, operators, brackets, spaces."""
    text = text.strip().strip('*_`"“”').strip()
    if text.startswith("'") and text.endswith("'"):
        text = text.strip("'")
    if "\\\\" in text and not _RE["single"].search(text):
        text = text.replace("\\\\", "\\")  # every backslash doubled: LaTeX out of a JSON string
    text = _RE["noise"].sub(" ", text) if ("\\" in text or "$" in text or "~" in text) else text
    text = _RE["supers"].sub(lambda m: "^{" + m[0].translate(_SUPER) + "}", text)
    for pattern, replacement in _SAME:
        text = pattern.sub(replacement, text)
    return " ".join(text.split()).rstrip(".,;: ")


def _form(text: str, depth: int) -> Form:
    text = _unwrapped(text.strip())
    if depth > 4 or not text:
        return Form("scalar", text)
    readers = (_matrix, _worded, _union, _listed, _relation, _equation, _bracketed, _ratio)
    forms = (read(text, depth) for read in readers)
    return next(filter(None, forms), None) or Form("scalar", _without_unit(text))


def _of_parts(
    kind: str, text: str, parts: Iterable[str], depth: int, name: str = "", source: str = ""
) -> Form:
    return Form(kind, text, tuple(_form(one, depth + 1) for one in parts), name, source)


def _named(text: str) -> bool:
    return _RE["name"].fullmatch(text.strip()) is not None


def _unwrapped(text: str) -> str:
    """Without a box or group brace around all of it."""
    while text.endswith("}") and (inner := _RE["wrapped"].fullmatch(_outer(text))):
        text = text[slice(*inner.span(1))].strip()
    return text


def _matrix(text: str, depth: int) -> Form | None:
    found = _RE["matrix"].fullmatch(text)
    if found is None:
        return None
    cells = [row.split("&") for row in re.split(r"\\\\|\\cr", found[3]) if row.strip()]
    shape = "x".join(str(len(row)) for row in cells)
    # Round and square brackets mean the same matrix; bars mean its determinant.
    bars = "det" if found[2] in ("vmatrix", "Vmatrix") or found["bar"] else ""
    return _of_parts("matrix", text, (cell for row in cells for cell in row), depth, bars + shape)


def _worded(text: str, depth: int) -> Form | None:
    """The form of an answer in words: no solution, a labelled answer, a word, a letter."""
    plain = _RE["text"].sub(r"\1", text).strip()
    if _RE["nothing"].fullmatch(plain):
        return Form("set", text)
    if labelled := _RE["labelled"].fullmatch(plain):
        return _form(labelled[1], depth + 1)
    quoted = _RE["text"].fullmatch(text) is not None
    word = quoted and len(plain.strip(" ()")) > 1 and not re.search(r"\d", plain)
    if word or re.fullmatch(r"[A-Za-z][a-z' -]{2,}", plain):
        return Form("text", plain.casefold().strip(" .()"))
    if quoted and re.fullmatch(r"\(?[A-Z]\)?", plain):
        return Form("scalar", plain.strip("()"))
    return None


def _union(text: str, depth: int) -> Form | None:
    """The form of a union, or of the set that a variable is in."""
    if len(unions := _split(text, "union")) > 1:
        return _of_parts("union", text, unions, depth)
    member = _split(text, "member")
    return _form(member[1], depth + 1) if len(member) == 2 and _named(member[0]) else None


def _listed(text: str, depth: int) -> Form | None:
    """The form of several answers: separated, or two in one as `±`."""
    parts = _split(text, "several")
    if len(parts) > 1 and not _RE["one_number"].fullmatch(text):
        return _of_parts("list", text, (one for one in parts if one.strip()), depth)
    if text.count(r"\pm") == 1:
        left, right = text.split(r"\pm")
        plus = "" if left.strip()[-1:] in ("", "=") else "+"
        return _of_parts("list", text, (left + plus + right, f"{left}-{right}"), depth)
    return None


def _relation(text: str, depth: int) -> Form | None:
    """`1 < x \\le 2` and `x > 3` are the intervals they describe."""
    pieces = [one.strip() for one in _RE["chain"].split(text)]
    if len(pieces) == 1:
        return Form("relation", text) if r"\neq" in text else None
    low = first = second = high = ""
    if len(pieces) == 3:
        left, sign, right = pieces
        if not _named(left):
            left, sign, right = right, _TURNED[sign], left
        if _named(left):
            below, above = (r"-\infty", "<", sign, right), (right, _TURNED[sign], "<", r"\infty")
            low, first, second, high = below if sign in _RISING else above
    elif len(pieces) == 5 and _named(pieces[2]):
        low, first, _, second, high = pieces
        if first not in _RISING:
            low, first, second, high = high, _TURNED[second], _TURNED[first], low
    if not {first, second} <= _RISING:
        return Form("relation", text)
    brackets = ("[" if first == r"\le" else "(") + ("]" if second == r"\le" else ")")
    shown = f"{brackets[0]}{low},{high}{brackets[1]}"
    return _of_parts("ordered", shown, (low, high), depth, brackets, text)


def _equation(text: str, depth: int) -> Form | None:
    sides = [one.strip() for one in _split(text, "equals")]
    if len(sides) < 2 or not all(sides):
        return None
    left, right, two = sides[0], sides[-1], len(sides) == 2
    if two and (names := _RE["names"].fullmatch(left)):
        value = _form(right, depth + 1)
        if value.kind in ("ordered", "list"):
            return Form("named", text, value.parts, names[1].replace(" ", ""))
    lettered = [_RE["letters"].search(side) is not None for side in sides]
    if not _named(left) and two and _named(right) and not lettered[0]:  # 2 = x
        left, right = right, left
    if _named(left):
        return _of_parts("equation", text, (right,), depth, left.replace(" ", ""))
    # Steps of a calculation: the last is the value. "7 = 11a + c" calculates nothing.
    return Form("relation", text) if two and any(lettered) else _form(right, depth + 1)


def _bracketed(text: str, depth: int) -> Form | None:
    brackets = _RE["brackets"].fullmatch(_outer(text))
    if brackets is None or (brackets["set"] and not text.endswith(r"\}")):
        return None
    inner = text[slice(*brackets.span("inner"))]
    parts, pair = _split(inner, "commas"), text[0] + text[-1]
    if brackets["set"]:
        described = len(_split(inner, "bar")) > 1
        return Form("relation", text) if described else _of_parts("set", text, parts, depth)
    if len(parts) > 1:
        return _of_parts("ordered", text, parts, depth, pair)
    return _form(inner, depth + 1) if pair == "()" else None


def _ratio(text: str, depth: int) -> Form | None:
    ratio = _split(text, "colon")
    told = len(ratio) > 1 and all(one.strip() for one in ratio)
    return _of_parts("ratio", text, ratio, depth) if told else None


def _outer(text: str) -> str:
    """The text with null signs within brackets; brackets of any shape close each other."""
    depth, signs = 0, []
    for sign in text:
        depth -= sign in ")]}"
        signs.append("\0" if depth else sign)
        depth += sign in "([{"
    return "".join(signs)


def _split(text: str, separator: str) -> list[str]:
    """Pieces between separators outside all brackets."""
    if not _RE[separator].search(text):
        return [text]
    pieces, last = [], 0
    for found in _RE[separator].finditer(_outer(text)):
        pieces.append(text[last : found.start()])
        last = found.end()
    return [*pieces, text[last:]]


def _without_unit(text: str) -> str:
    bare = _RE["unit"].sub("", text)
    return (bare if re.search(r"\d", bare) else text).strip()
