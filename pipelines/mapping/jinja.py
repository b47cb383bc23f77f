"""Field mappings: sandboxed Jinja expressions over one row of a source.

A recipe may come from a stranger, so expressions run in Jinja's immutable
sandbox: no attribute that starts with an underscore, no mutation, and no
operator that can make a huge value out of a small one.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2 import StrictUndefined, TemplateError, Undefined
from jinja2.exceptions import SecurityError, UndefinedError
from jinja2.filters import FILTERS
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pipelines.errors import RecipeError, did_you_mean
from pipelines.mapping import limits

Row = Mapping[str, Any]
Field = Callable[[Row], Any]

_WHOLE = re.compile(r"\A\s*\{\{(?P<expression>(?:(?!\}\}|\{\{).)*)\}\}\s*\Z", re.S)
_LONGEST = 10_000_000
#: How Jinja says that there is no such filter or test.
_UNKNOWN = re.compile(r"No (filter|test) named '([^']*)'")


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
    r"""Content of the last `\boxed{…}`; empty when there is none."""
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


_ENVIRONMENT = _environment()


class NoColumn(RecipeError):
    """A mapping reads a column or key that the row does not have."""


def compile_field(text: str, *, where: str) -> Field:
    """A function of a row: a plain name takes the column, `{{ … }}` is evaluated.

    A text that is one `{{ expression }}` gives the expression's own value (a
    list stays a list); any other text with `{{` or `{%` gives a string. NaN,
    which is how data frames write that there is nothing, gives None.

    Raises:
        RecipeError: at compile time for bad syntax; when called, for an expression that fails.
        NoColumn: when called, for a column that the row does not have.
    """
    if "{{" not in text and "{%" not in text:
        return lambda row: _known(_column(row, text, where))
    try:
        evaluate = evaluator(text)
        plain = limits.is_plain(_ENVIRONMENT.parse(text))
    except TemplateError as error:
        unknown, then = (
            _UNKNOWN.match(str(error)),
            "correct the expression in the recipe's 'fields'",
        )
        if unknown is not None:
            known = _ENVIRONMENT.filters if unknown[1] == "filter" else _ENVIRONMENT.tests
            shown = "`routeyard recipe schema --page` shows what a mapping may say"
            then = f"{did_you_mean(unknown[2], known)} ({shown})"
        raise RecipeError(
            f"the mapping {text!r} is not a valid expression: {error}",
            where=where,
            next_step=then,
        ) from error

    def read(row: Row) -> Any:
        try:
            # What can grow without end is evaluated where it can take nothing of ours.
            value = evaluate(row) if plain else limits.evaluate(text, row)
        except UndefinedError as error:
            raise _no_column(row, str(error), where) from error
        except limits.TooMuch as error:
            raise RecipeError(
                f"the mapping {text!r} does not end: {error}",
                where=where,
                next_step="simplify the expression in the recipe's 'fields'",
            ) from error
        except Exception as error:  # any fault of a stranger's expression is a recipe error
            said = str(error)
            if isinstance(error, limits.Failed):
                if said.startswith("UndefinedError: "):
                    raise _no_column(row, said.partition(": ")[2], where) from error
            else:
                said = f"{type(error).__name__}: {error}"
            raise RecipeError(
                f"the mapping {text!r} fails: {said}",
                where=where,
                next_step="correct the expression in the recipe's 'fields'",
            ) from error
        if isinstance(value, str) and len(value) > _LONGEST:
            raise RecipeError(f"the mapping {text!r} gives over {_LONGEST} characters", where=where)
        return _known(value)

    return read


def whole(text: str) -> str | None:
    """The expression of a mapping that is one `{{ expression }}`; None for any other."""
    found = _WHOLE.match(text)
    return found["expression"].strip() if found else None


def words() -> tuple[list[str], list[str]]:
    """Names of filters and functions that a mapping may use: ours, and Jinja's own."""
    ours = [name for name, made in _ENVIRONMENT.filters.items() if FILTERS.get(name) is not made]
    theirs = [name for name in _ENVIRONMENT.filters if name not in ours]
    return sorted([*ours, *_ENVIRONMENT.globals]), sorted(theirs)


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def evaluator(text: str) -> Field:
    """A function of a row for a mapping with `{{` or `{%`, without limits of time and memory.

    Raises:
        TemplateError: bad syntax.
    """
    compiled: Callable[..., Any]
    if (inside := whole(text)) is not None:
        compiled = _ENVIRONMENT.compile_expression(inside, undefined_to_none=False)
    else:
        compiled = _ENVIRONMENT.from_string(text).render

    def evaluate(row: Row) -> Any:
        value = compiled(**{str(k): v for k, v in row.items()}, _row=row)
        if isinstance(value, Undefined):
            value._fail_with_undefined_error()
        return value

    return evaluate


def _column(row: Row, name: str, where: str) -> Any:
    here, rest = row, name
    while rest not in here:
        head, _, rest = rest.partition(".")
        if not rest or not isinstance(here.get(head), Mapping):
            raise _no_column(row, f"there is no column {name!r}", where, name)
        here = here[head]
    return here[rest]


def _no_column(row: Row, what: str, where: str, name: str = "") -> NoColumn:
    columns = ", ".join(map(str, row))
    suggestion = did_you_mean(name, map(str, row)) if name else f"the columns are: {columns}"
    line, place = getattr(row, "line", None), getattr(row, "place", None)
    at = f"{where}, line {line}" if line else where
    at = f"{where}, in {place}" if place else at
    return NoColumn(what, where=at, next_step=f"{suggestion} (columns: {columns})")


class Sparse:
    """Fields of rows that may leave keys out, as JSON lines do: missing is null, and counted.

    Wraps the readers of one source or recording; `check` and `notes` follow the last row.
    """

    def __init__(self) -> None:
        self._read: Counter[str] = Counter()
        self._without: Counter[str] = Counter()
        self._first: dict[str, NoColumn] = {}

    def optional(self, name: str, read: Field) -> Field:
        """None where the row has no such key."""

        def of(row: Row) -> Any:
            self._read[name] += 1
            try:
                return read(row)
            except NoColumn as error:
                self._without[name] += 1
                self._first.setdefault(name, error)
                return None

        return of

    def needed(self, name: str, read: Field) -> Field:
        """An error where the row has no such key.

        Raises:
            RecipeError: when called. The mapping is wrong where the first row already lacks the
                key, and the row where others had it.
        """

        def of(row: Row) -> Any:
            self._read[name] += 1
            try:
                return read(row)
            except NoColumn as error:
                if self._read[name] == 1:
                    raise
                raise RecipeError(
                    f"a row lacks what every row needs: {error.what}",
                    where=error.where,
                    next_step="add the key to that row, or take the row out of the file",
                ) from error

        return of

    def check(self, *names: str) -> None:
        """Stop at a mapped key that no row so far had: that is a slip of the mapping.

        Args:
            names: Fields to look at; all by default.

        Raises:
            NoColumn: names the column.
        """
        for name in names or self._without:
            if 0 < self._without[name] == self._read[name]:
                raise self._first[name]

    def notes(self) -> list[str]:
        """One sentence per field that some rows have no key for."""
        return [
            f"{count:,} of {self._read[name]:,} rows have no key for fields.{name}: "
            "taken as missing"
            for name, count in sorted(self._without.items())
            if count
        ]
