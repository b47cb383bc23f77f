"""Field mappings: a column by its name, or an expression over one row of a source."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from jinja2 import TemplateError
from jinja2.exceptions import UndefinedError

from routeyard.pipelines.errors import RecipeError, did_you_mean
from routeyard.pipelines.isolation import FunctionFailed, LimitExceeded, ProcessEnded
from routeyard.pipelines.mapping import limits
from routeyard.pipelines.mapping.expressions import ENVIRONMENT, Field, Row, evaluator

_LONGEST = 10_000_000
#: Columns that were not read which a note names.
_SHOWN = 30
#: How Jinja says that there is no such filter or test.
_UNKNOWN = re.compile(r"No (filter|test) named '([^']*)'")


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
    if is_column(text):
        return lambda row: not_nan(_column(row, text, where))
    try:
        evaluate = evaluator(text)
        plain = limits.is_plain(ENVIRONMENT.parse(text))
    except TemplateError as error:
        unknown, then = (
            _UNKNOWN.match(str(error)),
            "correct the expression in the recipe's 'fields'",
        )
        if unknown is not None:
            known = ENVIRONMENT.filters if unknown[1] == "filter" else ENVIRONMENT.tests
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
        except (LimitExceeded, ProcessEnded) as error:
            raise RecipeError(
                f"the mapping {text!r} does not end: it takes more than {limits.LIMITS.cpu_s:g} s "
                f"or {limits.LIMITS.memory >> 20} MB for one row",
                where=where,
                next_step="simplify the expression in the recipe's 'fields'",
            ) from error
        except Exception as error:  # any fault of a stranger's expression is a recipe error
            kind = type(error).__name__
            fault = str(error) if isinstance(error, FunctionFailed) else f"{kind}: {error}"
            if fault.startswith("UndefinedError: "):
                raise _no_column(row, fault.partition(": ")[2], where) from error
            raise RecipeError(
                f"the mapping {text!r} fails: {fault}",
                where=where,
                next_step="correct the expression in the recipe's 'fields'",
            ) from error
        if isinstance(value, str) and len(value) > _LONGEST:
            raise RecipeError(f"the mapping {text!r} gives over {_LONGEST} characters", where=where)
        return not_nan(value)

    return read


def is_column(text: str) -> bool:
    """Whether a mapping is a name, and no expression."""
    return "{{" not in text and "{%" not in text


def mentions(mapped: str, column: str) -> bool:
    """Whether a text of mappings names a column."""
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", mapped) is not None


def not_nan(value: Any) -> Any:
    """The value, or None for NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


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

    Wraps the readers of one source or recording; `check` and `notes` follow the last row. Columns
    that hold something and that no mapping names are noted.

    Args:
        mapped: Names and expressions that are read; None notes no columns.
    """

    def __init__(self, mapped: Iterable[str] | None = None) -> None:
        self._mapped = None if mapped is None else " ".join(mapped)
        self._known: set[str] = set()
        self._empty: set[str] = set()
        self._unread: set[str] = set()
        self._read: Counter[str] = Counter()
        self._without: Counter[str] = Counter()
        self._first: dict[str, NoColumn] = {}

    def reader(self, name: str, read: Field, *, needed: bool) -> Field:
        """The reader of a field, which gives None, or raises, where the row has no such key.

        Raises:
            RecipeError: when called, where the field is needed. The mapping is wrong where the
                first row already lacks the key, and the row where others had it.
        """

        def of(row: Row) -> Any:
            self._read[name] += 1
            try:
                return read(row)
            except NoColumn as error:
                if needed and self._read[name] > 1:
                    raise RecipeError(
                        f"a row lacks what every row needs: {error.what}",
                        where=error.where,
                        next_step="add the key to that row, or take the row out of the file",
                    ) from error
                if needed:
                    raise
                self._without[name] += 1
                self._first.setdefault(name, error)
                return None

        return of

    def see(self, row: Row) -> None:
        """Look at a row for columns that no mapping names."""
        if self._mapped is None:
            return
        if not self._known.issuperset(row):
            new = [name for name in row if name not in self._known]
            self._known.update(new)
            self._empty.update(name for name in new if not mentions(self._mapped, str(name)))
        if self._empty:
            filled = [name for name in self._empty if row.get(name) not in (None, "")]
            self._unread.update(map(str, filled))
            self._empty.difference_update(filled)

    def whole(self, names: Iterable[str]) -> None:
        """Count a row that has a key for each of some fields, read without their readers."""
        for name in names:
            self._read[name] += 1

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
        """One sentence per field that some rows have no key for, and one on unread columns."""
        unread = sorted(self._unread)
        more = f" and {len(unread) - _SHOWN:,} more" if len(unread) > _SHOWN else ""
        named = f"columns that were not read: {', '.join(map(repr, unread[:_SHOWN]))}{more}"
        return [named] * bool(unread) + [
            f"{count:,} of {self._read[name]:,} rows have no key for fields.{name}: "
            "taken as missing"
            for name, count in sorted(self._without.items())
            if count
        ]
