"""The outer form of a mathematical answer: set, interval, tuple, matrix, equation, list, scalar.

Two answers of different forms are different, whatever a computer algebra
system makes of them, so the form is settled here and only scalars are handed
on. That removes the known ways in which a symbolic comparison calls different
answers equal (a set and its sum, an open and a closed interval, `x=5` and
`y=5`, the tail of an equation).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from routeyard.pipelines.scorers.comparison.math_spelling import tidy
from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("math_form")

_OPEN, _CLOSE = "([{", ")]}"


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


def _form(text: str, depth: int) -> Form:
    text = _unwrapped(text.strip())
    if depth > 4 or not text:
        return Form("scalar", text)
    matrix = _RE["matrix"].fullmatch(text)
    if matrix:
        return _matrix(matrix, depth)
    worded = _worded(text, depth)
    if worded is not None:
        return worded
    unions = _split(text, (r"\cup",))
    if len(unions) > 1:
        return Form("union", text, tuple(_form(one, depth + 1) for one in unions))
    member = _split(text, (r"\in",))
    if len(member) == 2 and _RE["name"].fullmatch(member[0].strip()):
        return _form(member[1], depth + 1)
    listed = _listed(text, depth)
    if listed is not None:
        return listed
    relation = _relation(text, depth)
    if relation is not None:
        return relation
    sides = _split(text, ("=",))
    if len(sides) >= 2 and all(one.strip() for one in sides):
        return _equation(text, sides, depth)
    bracketed = _bracketed(text, depth)
    return bracketed if bracketed is not None else _plain(text, depth)


def _plain(text: str, depth: int) -> Form:
    """A ratio, or else a scalar."""
    ratio = _split(text, (":",))
    if len(ratio) > 1 and all(one.strip() for one in ratio):
        return Form("ratio", text, tuple(_form(one, depth + 1) for one in ratio))
    return Form("scalar", _without_unit(text))


def _worded(text: str, depth: int) -> Form | None:
    """The form of an answer in words: no solution, a labelled answer, a word, a letter."""
    plain = _RE["text"].sub(r"\1", text).strip()
    if re.fullmatch(r"\\emptyset|\\\{\s?\\\}|no (?:real )?solutions?|none", plain, re.IGNORECASE):
        return Form("set", text)
    if labelled := _RE["labelled"].fullmatch(plain):
        return _form(labelled[1], depth + 1)
    word = (
        _RE["text"].fullmatch(text) and len(plain.strip(" ()")) > 1 and not re.search(r"\d", plain)
    )
    if word or re.fullmatch(r"[A-Za-z][a-z' -]{2,}", plain):
        return Form("text", plain.casefold().strip(" .()"))
    if re.fullmatch(r"\(?[A-Z]\)?", plain) and _RE["text"].fullmatch(text):
        return Form("scalar", plain.strip("()"))
    return None


def _listed(text: str, depth: int) -> Form | None:
    """The form of several answers: separated, or two in one as `±`."""
    parts = _split(
        text,
        (",", ";", r"\text{ and }", r"\text{ or }", r"\text{and}", r"\text{or}", " and ", " or "),
    )
    if len(parts) > 1 and not _one_number(text):
        return Form("list", text, tuple(_form(one, depth + 1) for one in parts if one.strip()))
    if r"\pm" in text and text.count(r"\pm") == 1:
        both = tuple(_form(_signed(text, sign), depth + 1) for sign in ("+", "-"))
        return Form("list", text, both)
    return None


def _unwrapped(text: str) -> str:
    """Without a box or group brace around all of it."""
    box = re.match(r"\\boxed\s?\{", text)
    if box and text.endswith("}") and _match(text, box.end() - 1) == len(text) - 1:
        return _unwrapped(text[box.end() : -1].strip())
    if text.startswith("{") and _match(text, 0) == len(text) - 1:
        return _unwrapped(text[1:-1].strip())
    return text


def _matrix(found: re.Match[str], depth: int) -> Form:
    rows = [row for row in re.split(r"\\\\|\\cr", found[3]) if row.strip()]
    cells = [row.split("&") for row in rows]
    shape = "x".join(str(len(row)) for row in cells)
    # Round and square brackets mean the same matrix; bars mean its determinant.
    bars = "det" if found[2] in ("vmatrix", "Vmatrix") or found["bar"] else ""
    parts = tuple(_form(cell, depth + 1) for row in cells for cell in row)
    return Form("matrix", found[0], parts, bars + shape)


def _relation(text: str, depth: int) -> Form | None:
    """`1 < x \\le 2` and `x > 3` are the intervals they describe."""
    pieces = _RE["chain"].split(text)
    if len(pieces) == 3:
        left, sign, right = (one.strip() for one in pieces)
        if not _RE["name"].fullmatch(left):
            left, right = right, left
            sign = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}[sign]
        if not _RE["name"].fullmatch(left):
            return Form("relation", text)
        if sign in ("<", r"\le"):
            made = _interval(r"-\infty", right, "(", "]" if sign == r"\le" else ")", depth)
        else:
            made = _interval(right, r"\infty", "[" if sign == r"\ge" else "(", ")", depth)
        return Form("ordered", made.text, made.parts, made.name, text)
    if len(pieces) == 5 and _RE["name"].fullmatch(pieces[2].strip()):
        low, first, _, second, high = (one.strip() for one in pieces)
        if first in (">", r"\ge") and second in (">", r"\ge"):
            low, high, first, second = high, low, second.replace("g", "l"), first.replace("g", "l")
            first, second = first.replace(">", "<"), second.replace(">", "<")
        if first in ("<", r"\le") and second in ("<", r"\le"):
            opening, closing = "[" if first == r"\le" else "(", "]" if second == r"\le" else ")"
            made = _interval(low, high, opening, closing, depth)
            return Form("ordered", made.text, made.parts, made.name, text)
    if r"\neq" in text:
        return Form("relation", text)
    return Form("relation", text) if len(pieces) > 1 else None


def _interval(low: str, high: str, opening: str, closing: str, depth: int) -> Form:
    parts = (_form(low, depth + 1), _form(high, depth + 1))
    return Form("ordered", f"{opening}{low},{high}{closing}", parts, opening + closing)


def _equation(text: str, sides: list[str], depth: int) -> Form:
    left, right = sides[0].strip(), sides[-1].strip()
    if (names := _RE["names"].fullmatch(left)) and len(sides) == 2:
        value = _form(right, depth + 1)
        if value.kind in ("ordered", "list"):
            return Form("named", text, value.parts, names[1].replace(" ", ""))
    if _RE["name"].fullmatch(left):
        return Form("equation", text, (_form(right, depth + 1),), left.replace(" ", ""))
    if (
        len(sides) == 2 and _RE["name"].fullmatch(right) and not _RE["letters"].search(left)
    ):  # 2 = x
        return Form("equation", text, (_form(left, depth + 1),), right.replace(" ", ""))
    # Steps of a calculation: the last is the value. "7 = 11a + c" calculates nothing.
    if not any(_RE["letters"].search(side) for side in sides) or len(sides) > 2:
        return _form(right, depth + 1)
    return Form("relation", text)


def _bracketed(text: str, depth: int) -> Form | None:
    for opening, closing in ((r"\{", r"\}"), ("(", ")"), ("[", "]"), ("(", "]"), ("[", ")")):
        if not (text.startswith(opening) and text.endswith(closing)):
            continue
        if _match(text, len(opening) - 1) != len(text) - 1:
            continue
        inner = text[len(opening) : -len(closing)]
        parts = _split(inner, (",", ";"))
        if opening == r"\{":
            bar = _split(inner, (r"\mid", ":", "|"))
            if len(bar) > 1:
                return Form("relation", text)
            return Form("set", text, tuple(_form(one, depth + 1) for one in parts))
        if len(parts) > 1:
            elements = tuple(_form(one, depth + 1) for one in parts)
            return Form("ordered", text, elements, opening + closing)
        return _form(inner, depth + 1) if (opening, closing) == ("(", ")") else None
    return None


def _match(text: str, start: int) -> int:
    """Index of the bracket that closes the one at `start`; brackets of any shape may close it."""
    depth = 0
    for index in range(start, len(text)):
        if text[index] in _OPEN:
            depth += 1
        elif text[index] in _CLOSE:
            depth -= 1
            if depth == 0:
                return index
    return -1


def _split(text: str, separators: tuple[str, ...]) -> list[str]:
    """Pieces between separators outside all brackets."""
    if not any(separator in text for separator in separators):
        return [text]
    pieces, last, depth, index = [], 0, 0, 0
    while index < len(text):
        sign = text[index]
        if depth == 0:
            hit = next((s for s in separators if text.startswith(s, index)), None)
            word = (
                hit
                and hit[-1].isalpha()
                and text[index + len(hit) : index + len(hit) + 1].isalpha()
            )
            if hit and not word:
                pieces.append(text[last:index])
                index += len(hit)
                last = index
                continue
        if sign in _OPEN:
            depth += 1
        elif sign in _CLOSE:
            depth -= 1
        index += 1
    return [*pieces, text[last:]]


def _one_number(text: str) -> bool:
    return bool(
        re.fullmatch(r"[-+$\\ ]{0,4}\d{1,3}(?:,\d{3})+(?:\.\d+)?(?:[ \\%A-Za-z{}^]{0,40})", text)
    ) and (not re.match(r"[-+$\\ ]{0,4}0", text))


def _signed(text: str, sign: str) -> str:
    left, right = text.split(r"\pm")
    if left.rstrip().endswith(("=", "")) and (not left.strip() or left.rstrip().endswith("=")):
        return f"{left}{'-' if sign == '-' else ''}{right}"
    return f"{left}{sign}{right}"


def _without_unit(text: str) -> str:
    bare = _RE["unit"].sub("", text)
    return (bare if re.search(r"\d", bare) else text).strip()
