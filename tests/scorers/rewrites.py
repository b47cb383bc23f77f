"""Rewrites of a reference: a dozen ways that keep its meaning, a dozen that change it, by form.

A rewrite is `way(reference, other)`, where `other` is a reference of the same form with
another meaning; it gives an output, or None where it does not apply.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from typing import Any

Rewrite = Callable[[str, str], str | None]

#: Ways to say an answer, whatever it is. `{m}` stands in dollars where it is mathematics.
SAID = [
    "The answer is {m}.",
    "\\boxed{{{r}}}",
    "So we get\n\\[ \\boxed{{{r}}} \\]",
    "<answer>{r}</answer>",
    "**Final Answer:** {m}",
    "Answer: {m}",
    "**Answer:** {m}",
    "First $1 + 1 = 2$.\n\nTherefore, the final answer is {m}.",
    "The answer is {o}. Wait, I made a mistake. The answer is {m}.",
    "It seems to be {o}, but that is wrong.\n\n### Answer: {m}",
    "\\boxed{{{p}}}\n\nOn reflection that is wrong. The correct answer is\n\\boxed{{{r}}}",
]


def _mathematics(text: str) -> str:
    return f"${text}$" if re.search(r"[\\^_{]", text) else text


def said(form: str) -> Rewrite:
    """The rewrite that puts the reference (`r`, `m`) or the other (`p`, `o`) into a sentence."""

    def way(reference: str, other: str) -> str:
        return form.format(r=reference, m=_mathematics(reference), p=other, o=_mathematics(other))

    return way


def swapped(form: str) -> Rewrite:
    """The same sentence about the other reference."""

    def way(reference: str, other: str) -> str:
        return said(form)(other, reference)

    return way


def boxed(change: Callable[[str], str | None]) -> Rewrite:
    """A box around the changed reference; None where the change does not apply."""

    def way(reference: str, other: str) -> str | None:
        changed = change(reference)
        return None if changed is None or changed == reference else f"\\boxed{{{changed}}}"

    return way


def answered(reference: str, other: str) -> str:
    return json.dumps({"reasoning": "1 + 1 = 2", "answer": reference})


_NUMBER = re.compile(r"(?<![\d._\\])\d+(?![\d]*\.)")


def _bumped(which: int) -> Callable[[str], str | None]:
    def change(text: str) -> str | None:
        found = list(_NUMBER.finditer(text))
        if len(found) <= abs(which) - (which < 0):
            return None
        one = found[which]
        return f"{text[: one.start()]}{int(one[0]) + 1}{text[one.end() :]}"

    return change


def _if(pattern: str, form: str) -> Callable[[str], str | None]:
    return lambda text: form.format(text) if re.search(pattern, text) else None


def _elements(text: str) -> list[str] | None:
    """Elements of a tuple, set or list without nested brackets."""
    inner = text.strip("()[]{}\\ ")
    return inner.split(",") if "," in inner and not re.search(r"[()\[\]{}]", inner) else None


def _around(text: str, made: list[str]) -> str:
    inner = text.strip("()[]{}\\ ")
    return text.replace(inner, ",".join(made))


def _without_last(text: str) -> str | None:
    made = _elements(text)
    return _around(text, made[:-1]) if made and len(made) > 1 else None


def _with_another(text: str) -> str | None:
    made = _elements(text)
    return _around(text, [*made, " 9973"]) if made else None


def _reversed_tuple(text: str) -> str | None:
    made = _elements(text)
    ordered = text.startswith("(") and made and made[0].strip() != made[-1].strip()
    return _around(text, made[::-1]) if made and ordered else None


def _fractions(text: str) -> str | None:
    return text.replace("\\frac", "\\dfrac") if "\\frac" in text else None


#: Mathematics: whatever its form.
MATH_KEPT: list[Rewrite] = [
    *map(said, SAID),
    answered,
    boxed(lambda r: f" {r} "),
    boxed(lambda r: r.replace("(", "\\left(").replace(")", "\\right)")),
    boxed(_fractions),
    boxed(lambda r: f"\\displaystyle {r}"),
    boxed(lambda r: re.sub(r"(?<=[\w)}])([-+])(?=[\w\\(])", r" \1 ", r) if "^" not in r else None),
    boxed(lambda r: r.replace(",", ",\\ ") if re.search(r",(?!\d{3})", r) else None),
]
#: A single value: no list, tuple, relation or equation.
SCALAR_KEPT: list[Rewrite] = [
    boxed(lambda r: f"({r})"),
    boxed(lambda r: f"x = {r}"),
    boxed(lambda r: f"\\frac{{2\\cdot({r})}}{{2}}"),
    boxed(lambda r: f"1 + ({r}) - 1"),
]
MATH_CHANGED: list[Rewrite] = [
    *map(swapped, SAID),
    boxed(_bumped(0)),
    boxed(_bumped(-1)),
    boxed(lambda r: f"{r}, 9973"),
    boxed(lambda r: f"\\text{{not }} {r}"),
    boxed(_without_last),
    boxed(_with_another),
    boxed(_reversed_tuple),
    boxed(_if(r"^\([^()]*,[^()]*\)$", "\\{{{}\\}}")),
]
SCALAR_CHANGED: list[Rewrite] = [
    boxed(lambda r: f"-({r})"),
    boxed(lambda r: f"({r}) + 1"),
    boxed(lambda r: f"2\\cdot({r})"),
    boxed(lambda r: f"({r})\\sqrt{{2}}"),
    boxed(lambda r: f"({r})i"),
    boxed(lambda r: f"x > {r}"),
    boxed(lambda r: f"({r}, {r})"),
    boxed(lambda r: f"({r}) + z"),
]
SAID_NUMBER = [form for form in SAID if "\\[" not in form]


def _grouped(text: str) -> str | None:
    found = re.fullmatch(r"(-?)(\d{4,})(\.\d+)?", text)
    return f"{found[1]}{int(found[2]):,}{found[3] or ''}" if found else None


def _shifted(text: str) -> str | None:
    """1.25 as 1.250, 7 as 7.0."""
    if re.fullmatch(r"-?\d+", text):
        return text + ".0"
    return text + "0" if re.fullmatch(r"-?\d+\.\d+", text) else None


NUMBER_KEPT: list[Rewrite] = [
    *map(said, SAID_NUMBER),
    answered,
    lambda r, o: f"#### {r}",
    lambda r, o: f"1 + 1 = 2\n\n**{r}**",
    lambda r, o: f"The answer is not {o} but {r}.",
    boxed(_grouped),
    boxed(_shifted),
    boxed(lambda r: made.replace(",", ",\\!") if (made := _grouped(r)) else None),
    boxed(lambda r: f"\\text{{{r}}}"),
]
NUMBER_CHANGED: list[Rewrite] = [
    *map(swapped, SAID_NUMBER),
    boxed(_if(r"^-?\d+$", "{}.5")),
    boxed(_bumped(0)),
    boxed(_if(r"^-?[\d.]+$", "{}\\sqrt{{2}}")),
    boxed(_if(r"^-?[\d.]+$", "{}i")),
    boxed(_if(r"^-?[\d.]+$", "{}x")),
    boxed(_if(r"^-?[\d.]+$", "{}\\pi")),
    lambda r, o: f"Answer: x > {r}",
    lambda r, o: f"Answer: {r} + sqrt(3)",
    lambda r, o: f"The answer is {r} or {o}.",
    lambda r, o: f"The answer is not {r} but {o}.",
    boxed(lambda r: None if r.startswith("-") else f"-{r}"),
]


def _value(text: str) -> Any:
    return ast.literal_eval(text)


def _json(text: str) -> str | None:
    """The JSON spelling, where it means the same: no tuples, sets, numbers as keys."""
    value = _value(text)
    try:
        made = json.dumps(value)
        return made if json.loads(made) == value and "(" not in repr(value) else None
    except TypeError:
        return None


def _literal(form: str, change: Callable[[str], str | None] | None = None) -> Rewrite:
    def way(reference: str, other: str) -> str | None:
        made = change(reference) if change else reference
        return None if made is None or (change and made == reference) else form.format(made)

    return way


def _typed(change: Callable[[Any], Any]) -> Callable[[str], str | None]:
    """The repr of a changed value; None where the change leaves it or does not apply."""

    def made(text: str) -> str | None:
        value = _value(text)
        changed = change(value)
        return None if changed is None else repr(changed)

    return made


def _respaced(text: str) -> str | None:
    return None if "'" in text or '"' in text else text.replace(" ", "").replace(",", " , ")


def _requoted(text: str) -> str | None:
    return text.replace("'", '"') if "'" in text and '"' not in text and "\\" not in text else None


LITERAL_KEPT: list[Rewrite] = [
    _literal("{}"),
    _literal("[ANSWER]{}[/ANSWER]"),
    _literal("[ANSWER]\n{}\n[/ANSWER]"),
    _literal("<answer>{}</answer>"),
    _literal("Stepping through it gives:\n```python\n{}\n```"),
    _literal("```\n{}\n```"),
    _literal("[ANSWER]assert f(1) == {}[/ANSWER]"),
    _literal("The loop runs twice.\n\nassert f([1, 2]) == {}"),
    _literal("The function returns a value.\n\nAnswer: {}"),
    _literal("First it is None.\n\nThe answer is `{}`."),
    _literal("  {}\n"),
    _literal("[ANSWER]{}[/ANSWER]", _respaced),
    _literal("[ANSWER]{}[/ANSWER]", _requoted),
    _literal("[ANSWER]{}[/ANSWER]", _json),
    _literal("[ANSWER]{}[/ANSWER]", lambda r: f"({r})"),
    lambda r, o: f"```python\n{o}\n```\nNo, that is wrong.\n```python\n{r}\n```",
]
LITERAL_CHANGED: list[Rewrite] = [
    *(
        _literal("[ANSWER]{}[/ANSWER]", change)
        for change in (
            _typed(lambda v: tuple(v) if isinstance(v, list) else None),
            _typed(lambda v: list(v) if isinstance(v, tuple) else None),
            _typed(lambda v: float(v) if type(v) is int else None),
            _typed(lambda v: v + 1 if type(v) in (int, float) else None),
            _typed(lambda v: int(v) if isinstance(v, bool) else None),
            _typed(lambda v: not v if isinstance(v, bool) else None),
            _typed(lambda v: str(v) if not isinstance(v, str) else None),
            _typed(lambda v: v + " " if isinstance(v, str) else None),
            _typed(lambda v: v.swapcase() if isinstance(v, str) and v.swapcase() != v else None),
            _typed(lambda v: v[::-1] if isinstance(v, list | str) and v[::-1] != v else None),
            _typed(lambda v: v[:-1] if isinstance(v, list | tuple | str) and v else None),
            _typed(lambda v: [*v, None] if isinstance(v, list) else None),
            _typed(lambda v: [v]),
            _typed(lambda v: (v,)),
            _typed(lambda v: {"answer": v}),
            _typed(lambda v: Ellipsis if v is not None else None),
        )
    ),
    lambda r, o: f"[ANSWER]{o}[/ANSWER]",
    lambda r, o: f"```python\n{r}\n```\nNo, that is wrong.\n```python\n{o}\n```",
    lambda r, o: f"assert f(1) == {o}",
    lambda r, o: f"The answer is `{o}`.",
    lambda r, o: "It returns something that I cannot work out.",
    lambda r, o: f"Traceback (most recent call last):\n  File 'a.py'\nValueError: {r}",
    lambda r, o: "",
]
