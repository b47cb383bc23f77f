"""Sandboxed Jinja expressions over one row of a source.

A recipe may come from a stranger, so expressions run in Jinja's immutable
sandbox: no attribute that starts with an underscore, no mutation, and no
operator that can make a huge value out of a small one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2 import StrictUndefined, Undefined
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.sandbox import ImmutableSandboxedEnvironment

Row = Mapping[str, Any]
Field = Callable[[Row], Any]

_WHOLE = re.compile(r"\A\s*\{\{(?P<expression>(?:(?!\}\}|\{\{).)*)\}\}\s*\Z", re.S)


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["*", "**", "%"])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        # Only numbers of ordinary size: 'a' * 10**9 or 9**9**9 would eat the machine.
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if not numbers or (operator == "**" and (abs(left) > 1e6 or abs(right) > 64)):
            raise SecurityError(f"operator {operator} takes two numbers of ordinary size here")
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> None:
        # Jinja would hand out its own `format` before the attribute is judged.
        return None

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        # Padding methods make a huge text from a short mapping.
        padding = {"center", "ljust", "rjust", "zfill", "expandtabs", "format", "format_map"}
        if isinstance(obj, str) and attr in padding:
            return False
        return super().is_safe_attribute(obj, attr, value)


def letter(index: Any) -> str:
    """0 → `A`, 1 → `B`, …: the letter of an option's index."""
    number = int(index)
    if not 0 <= number < 26:
        raise ValueError(f"option index {number} has no letter")
    return chr(ord("A") + number)


def shuffled(items: Sequence[Any], by: str) -> list[Any]:
    """The items in an order that `by` fixes: for sources that always list the right one first."""
    keys = [hashlib.sha256(f"{by}\0{position}".encode()).digest() for position in range(len(items))]
    return [item for _, item in sorted(zip(keys, items, strict=True), key=lambda pair: pair[0])]


def boxed(text: str) -> str:
    r"""Content of the last `\boxed{…}`; empty without one."""
    start = text.rfind("\\boxed{")
    depth = 0
    for end in range(start, len(text)) if start >= 0 else ():
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if text[end] == "}" and depth == 0:
            return text[start + len("\\boxed{") : end]
    return ""


def _environment() -> _Sandbox:
    environment = _Sandbox(undefined=StrictUndefined, keep_trailing_newline=True)
    for unsafe in ("center", "indent", "wordwrap", "format", "pprint", "xmlattr", "urlize"):
        environment.filters.pop(unsafe, None)
    environment.globals.clear()
    environment.globals["zip"] = lambda *lists: list(zip(*lists, strict=False))
    environment.filters |= {"letter": letter, "shuffled": shuffled, "boxed": boxed}
    environment.filters["from_json"] = json.loads
    environment.filters["split"] = lambda text, by=None: str(text).split(by)
    environment.filters["strip"] = lambda text, chars=None: str(text).strip(chars)
    return environment


ENVIRONMENT = _environment()


def whole(text: str) -> str | None:
    """The expression of a mapping that is one `{{ expression }}`; None for any other."""
    found = _WHOLE.match(text)
    return found["expression"].strip() if found else None


def words() -> tuple[list[str], list[str]]:
    """Names of filters and functions that a mapping may use: ours, and Jinja's own."""
    ours = [name for name, made in ENVIRONMENT.filters.items() if FILTERS.get(name) is not made]
    theirs = [name for name in ENVIRONMENT.filters if name not in ours]
    return sorted([*ours, *ENVIRONMENT.globals]), sorted(theirs)


def evaluator(text: str) -> Field:
    """A function of a row for a mapping with `{{` or `{%`, without limits of time and memory.

    Raises:
        TemplateError: bad syntax.
    """
    compiled: Callable[..., Any]
    if (inside := whole(text)) is not None:
        compiled = ENVIRONMENT.compile_expression(inside, undefined_to_none=False)
    else:
        compiled = ENVIRONMENT.from_string(text).render

    def evaluate(row: Row) -> Any:
        value = compiled(**{str(k): v for k, v in row.items()}, _row=row)
        if isinstance(value, Undefined):
            value._fail_with_undefined_error()
        return value

    return evaluate
