"""Field mappings of recipes: a stranger's expressions over rows, within limits, and their texts."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, TemplateError, Undefined, nodes
from jinja2.exceptions import SecurityError, UndefinedError
from jinja2.filters import FILTERS
from jinja2.sandbox import ImmutableSandboxedEnvironment

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.isolation import (
    FunctionFailed,
    LimitExceeded,
    Limits,
    ProcessEnded,
    Worker,
)
from routeyard.pipelines.common.usage import MOST_TOKENS
from routeyard.schemas.errors import BadInput, RecipeError, did_you_mean
from routeyard.schemas.text import own_table

# Sandboxed Jinja expressions over one row of a source.
#
# A recipe may come from a stranger, so expressions run in Jinja's immutable
# sandbox: no attribute that starts with an underscore, no mutation, and no
# operator that can make a huge value out of a small one.

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
    match = _WHOLE.match(text)
    return match["expression"].strip() if match else None


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


# Which mappings can take without end: those are evaluated by a process with limits.
#
# A mapping that only reads columns, takes them apart and puts them together once gives
# at most its own length times the row's: it runs here. A loop, a name that is set, a
# filter applied to each of many or with the row's own text can grow without end, and
# runs in a process with limits of computing time and memory for each row.

#: What a mapping may take on one row. Computing time, so that a busy machine changes nothing.
LIMITS = Limits(memory=256 << 20, wall_s=60.0, cpu_s=2.0, answer=256 << 20)

_LIMITS_PLAIN = own_table(Path(__file__).with_name("limits.yaml"))
_PLAIN_NODES = tuple(getattr(nodes, name) for name in _LIMITS_PLAIN["nodes"])
_PLAIN_FILTERS, _PLAIN_METHODS = (
    frozenset(_LIMITS_PLAIN["filters"]),
    frozenset(_LIMITS_PLAIN["methods"]),
)


def is_plain(tree: nodes.Template) -> bool:
    """Whether what the mapping gives is bounded by its own length times the row's."""
    return all(_limits_plain(node) for node in _all(tree))


def _all(node: nodes.Node) -> list[nodes.Node]:
    results = [node]
    for item in results:
        results += item.iter_child_nodes()
    return results


def _limits_plain(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Filter):
        # With the row's own text as an argument the result may be its square.
        return node.name in _PLAIN_FILTERS and _fixed(node)
    if isinstance(node, nodes.Call):
        named = node.node
        method = isinstance(named, nodes.Getattr) and named.attr in _PLAIN_METHODS
        together = isinstance(named, nodes.Name) and named.name == "zip"
        return together or (method and _fixed(node))
    if isinstance(node, nodes.Name):
        return node.ctx == "load"
    return isinstance(node, _PLAIN_NODES)


def _fixed(node: nodes.Filter | nodes.Call) -> bool:
    arguments = [*node.args, *(kwarg.value for kwarg in node.kwargs)]
    fixed = all(isinstance(item, nodes.Const | nodes.Neg) for item in arguments)
    # `shuffled(by=id)` only orders, and `default(other)` only chooses.
    chooses = isinstance(node, nodes.Filter) and node.name in ("shuffled", "default", "d")
    return (fixed or chooses) and node.dyn_args is None and node.dyn_kwargs is None


_known: dict[str, Field] = {}


def _prepare() -> None:
    """What the limited process runs first: the imports of this module."""


def _value(text: str, row: dict[str, Any]) -> Any:
    """Value of a mapping on a row, in the limited process."""
    if text not in _known:
        _known[text] = evaluator(text)
    return _plain_value(_known[text](row))


def _plain_value(value: Any) -> Any:
    """The value as JSON holds it; what it does not know is text."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(key): _plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain_value(item) for item in value]
    return str(value)


_WORKER = Worker(LIMITS, _prepare)


def evaluate_limited(text: str, row: Row) -> Any:
    """Value of a mapping on a row, found in the limited process.

    Raises:
        LimitExceeded, ProcessEnded: it took more than `LIMITS`.
        FunctionFailed: the mapping raised something.
    """
    return _WORKER.call(_value, text, dict(row))


# Field mappings: a column by its name, or an expression over one row of a source.

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
        plain = is_plain(ENVIRONMENT.parse(text))
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
            value = evaluate(row) if plain else evaluate_limited(text, row)
        except UndefinedError as error:
            raise _no_column(row, str(error), where) from error
        except (LimitExceeded, ProcessEnded) as error:
            raise RecipeError(
                f"the mapping {text!r} does not end: it takes more than {LIMITS.cpu_s:g} s "
                f"or {LIMITS.memory >> 20} MB for one row",
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


# What a mapping gives has to be a text; and the mapping to write where it gives something else.

#: The next step where bytes are no UTF-8: what is, is read as text.
BYTES = "store the column as text: its bytes are no UTF-8"
#: Keys under which objects keep the text of an option, answer or message, the most telling first.
_TEXT_KEYS = ("text", "value", "content", "answer", "option", "label", "name")
_TEXTS_PLAIN = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
#: Names that mean something else within an expression.
_WORDS = frozenset(
    ["and", "else", "false", "False", "if", "in", "is", "none", "None", "not", "or", "true", "True"]
)
#: Lists and objects within each other that an expression leads through.
_DEEPEST = 6


def text_of(
    value: Any,
    mapped: str,
    field: str,
    place: str,
    *,
    within: str = "fields.",
    error: type[BadInput] = SourceError,
) -> str:
    """The text of what a mapping gave; null is empty, a number is written out.

    A list or an object is no text: its Python would be asked, or read as an answer.

    Args:
        mapped: The mapping, and `field`, its key: for the error.
        place: File and row.
        within: Where in the recipe the key is.
        error: Raised where it is no text.
    """
    if value is None:
        return ""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)  # of marked-up text, too, the plain one
    read = expression(mapped)
    kind, result = "a list", f"{read}{_inner(value)}"
    if isinstance(value, Mapping):
        kind = f"an object (with {keys(value)})" if value else "an empty object"
    elif isinstance(value, bytes):
        kind = "bytes"
    elif not list(value):
        kind, result = "an empty list", f"({read} or [''])[-1]"
    step = f'write {field}: "{{{{ {result} }}}}", or another expression that gives a text'
    step = BYTES if kind == "bytes" else step
    says = f"{within}{field} gives {kind} where a text is needed"
    raise error(says, where=place, next_step=step)


def expression(mapped: str | Sequence[str]) -> str:
    """What a mapping reads, to be written inside another expression.

    A name with dots is read as keys within keys.
    """
    if not isinstance(mapped, str):
        return f"[{', '.join(map(expression, mapped))}]"
    if (inside := whole(mapped)) is not None:
        return inside if _texts_plain(inside) else f"({inside})"
    if "{%" in mapped:
        return "…"  # statements have no place in an expression
    if "{{" not in mapped:
        return mapped if _texts_plain(mapped) else f"_row[{mapped!r}]"
    parts = re.split(r"\{\{(.*?)\}\}", mapped, flags=re.S)
    results = [repr(part) if at % 2 == 0 else f"({part.strip()})" for at, part in enumerate(parts)]
    return f"({' ~ '.join(part for part in results if part != repr(''))})"


def text_key(record: Mapping[Any, Any]) -> str:
    """The key that most likely holds the text: by its name, else the longest text."""
    for key in _TEXT_KEYS:
        if key in record:
            return key
    return str(max(record, key=lambda key: len(str(record[key])), default="text"))


def keys(record: Mapping[Any, Any]) -> str:
    """The first keys, quoted."""
    shown = ", ".join(repr(key) for key in list(record)[:5])
    return f"{shown}, …" if len(record) > 5 else shown


def _texts_plain(name: str) -> bool:
    return bool(_TEXTS_PLAIN.fullmatch(name)) and name.partition(".")[0] not in _WORDS


def _inner(value: Any, depth: int = 0) -> str:
    """The way from a value to a text within it: the last entry of a list, the key of a text."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable) or depth >= _DEEPEST:
        return ""
    if isinstance(value, Mapping):
        key = text_key(value)
        return f"[{key!r}]{_inner(value.get(key), depth + 1)}"
    items = list(value)
    return f"[-1]{_inner(items[-1], depth + 1)}" if items else "[0]"


# What a row says in numbers; null where it says nothing.


def number(value: Any, where: str) -> float | None:
    """A number; None for null, NaN and empty text.

    Raises:
        SourceError: it is something else.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return float(value.strip().lower() == "true")
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.inf
    if math.isinf(result):
        raise SourceError(f"{repr(value)[:60]} is not a number", where=where)
    return None if math.isnan(result) else result


def count(value: Any, where: str) -> int | None:
    """A whole number of tokens; None for null.

    Raises:
        SourceError: it is true or false, below zero, no whole number, or more than any call takes.
    """
    result = amount(value, where)
    if result is not None and (result > MOST_TOKENS or result != math.floor(result)):
        says = f"expected a whole number of tokens; found {str(value)[:60]!r}"
        raise SourceError(says, where=where)
    return None if result is None else int(result)


def amount(value: Any, where: str) -> float | None:
    """An amount, such as seconds; None for null.

    Raises:
        SourceError: it is true or false, or below zero.
    """
    result = number(value, where)
    if isinstance(value, bool) or (result is not None and result < 0):
        raise SourceError(f"expected an amount of 0 or more; found {value!r}", where=where)
    return result


def score(value: Any, where: str, *, low: float = 0.0, high: float = 1.0) -> float | None:
    """A score in [0, 1], from a scale of `low` to `high`; None for null.

    Raises:
        SourceError: it is no number of the scale.
    """
    result = number(value, where)
    if result is None:
        return None
    if not low <= result <= high:
        says = f"the score {value!r} is not a number in [{low:g}, {high:g}]"
        raise SourceError(says, where=where)
    return (result - low) / (high - low)
