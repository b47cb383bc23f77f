"""`literal`: program output and data, compared by value and type.

Python and JSON literals: `[1,2]` is `[1, 2]` and not `(1, 2)`, `1` is neither `1.0`
nor `True`, dictionaries and sets have no order, text is exact in case and
space, empty values are values. A reference that is not a literal is what a program
printed and is compared character by character, but for space at the line ends.

Read are, in this order: an output that is nothing but a literal, the text in
`[ANSWER]` or `<answer>` tags, the last fenced block, the right side of the last
`assert … ==`, a marked or stated answer, inline code that ends the text. Prose and
tracebacks are unreadable.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Any

from routeyard.pipelines.label.scorers.languages import ENGLISH
from routeyard.pipelines.label.scorers.patterns import patterns
from routeyard.pipelines.label.scorers.reading import (
    NAMES,
    after_draft,
    committed,
    denied,
    doubted,
    end_of_answer,
    settle,
    supposed,
    trim,
    value,
    without_closers,
    wonders,
)
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, ScoringInput

# Python and JSON literals as values: what a text is, and which two are the same.

#: Longer texts are not parsed.
LONGEST = 200_000
#: What `ast.literal_eval` does not read.
_NAMED: dict[str, Any] = {
    **{f"{kind.__name__}()": kind() for kind in (frozenset, dict, list, tuple)},
    **{name: float(name) for name in ("nan", "inf", "-inf", "NaN", "Infinity", "-Infinity")},
}


def values_of(text: str) -> list[Any]:
    """The Python or JSON value of a text; empty where it has none or is longer than `LONGEST`."""
    text = text.strip().strip("`").strip()
    if not text or len(text) > LONGEST:
        return []
    if text in _NAMED:
        return [_NAMED[text]]
    try:
        return [ast.literal_eval(text)]
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        return []


def _digits(value: float) -> int:
    """Significant digits of a float as it is printed."""
    return len(repr(abs(value)).partition("e")[0].replace(".", "").strip("0"))


def same(first: Any, second: Any) -> bool:
    """Equal in value and type, at every depth; NaN is itself."""
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        if first == second or (math.isnan(first) and math.isnan(second)):
            return True
        # The last digits depend on the order of operations.
        close = math.isclose(first, second, rel_tol=2**-50)
        return close and min(_digits(first), _digits(second)) >= 15
    if isinstance(first, complex):
        return same(first.real, second.real) and same(first.imag, second.imag)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        if len(first) != len(second):
            return False
        keys = {(type(key), key): key for key in second}
        return all(
            (type(key), key) in keys and same(value, second[keys[type(key), key]])
            for key, value in first.items()
        )
    if isinstance(first, set | frozenset):
        return {(type(v), v) for v in first} == {(type(v), v) for v in second}
    return bool(first == second)


_RE = patterns("literal")


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Compares the literal that the output gives with the references, by value and type."""
    if not asked.references:
        return ScoreResult("error", reason="there is no reference")
    wanted = {text: _reference(text) for text in asked.references}
    raw = [text for text, literal in wanted.items() if not literal]
    literals = list(chain(*wanted.values()))
    keys = {str(key) for item in literals if isinstance(item, dict) for key in item}
    for how, start, end in _candidates(output, plain_text=bool(raw), keys=keys):
        said = output[start:end]
        values = _values(how, said, output[start - 1 : start] if start else "")
        if not values and not raw:
            continue
        if not keys and _wrap(values):
            continue  # an envelope whose answer is a separate candidate
        read = (*values, *_listed(how, said))
        right = any(same(value, item) for item in literals for value in read)
        right = right or any(_printed(said, values, text) for text in raw)
        kind = type(values[0]).__name__ if values else "text"
        return ScoreResult.of(right, said, (start, end), f"{how}: {kind} {said[:80]}")
    return ScoreResult("abstain", reason="no literal in the output")


def _wrap(values: list[Any]) -> bool:
    """Whether a dictionary has a key that envelopes have, and not the data of an answer."""
    return any(str(key).lower() in NAMES for v in values if isinstance(v, dict) for key in v)


def _values(how: str, said: str, before: str) -> list[Any]:
    """What a text may mean: its value, and of a JSON string also the string itself."""
    values: list[Any] = []
    spellings = [said]
    if how == "field" and before in ("'", '"'):
        try:
            string = json.loads(f'"{said}"', strict=False)
        except ValueError:
            string = said.replace('\\"', '"')
        bare = string.strip()
        quoted = len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\""
        # The string, its content, and the content of a string that is quoted once more.
        spellings += [string, bare[1:-1] if quoted else "", f'"""{string}"""' if string else ""]
        values.append(string)
    return values + [item for text in dict.fromkeys(spellings) for item in values_of(text)]


def _listed(how: str, said: str) -> list[list[Any]]:
    """The list that words name without brackets: "The answer is 1, 2"; in code it is a tuple."""
    bare = said.strip("`* \t\n")
    if how in ("assertion", "code block", "field") or "," not in bare:
        return []
    lists = [item for item in values_of(f"[{bare}]") if isinstance(item, list)]
    return [part for part in lists if any(same(tuple(part), value) for value in values_of(bare))]


_reference = lru_cache(maxsize=65536)(values_of)


def _printed(said: str, values: list[Any], reference: str) -> bool:
    """Whether a text is what the program printed; quotes around it are the answer's own."""
    return _lines(said) == _lines(reference) or reference in [v for v in values if type(v) is str]


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").rstrip().split("\n")]


def _candidates(output: str, *, plain_text: bool, keys: set[str]) -> Iterator[tuple[str, int, int]]:
    """(how, start, end) of texts that may be the answer, the most trusted first.

    An envelope whose key is a key of the reference is the answer itself.
    """
    end = end_of_answer(output[: 2 * LONGEST])
    first = after_draft(output, end)
    body = trim(output, first, without_closers(output, first, end))
    marked = [(item, item.text) for item in committed(output, empty=True)]
    firm = [item for item, _ in marked if item.kind == "field" and not NAMES.keys() & keys]
    if firm:
        span = _within_quotes(output, firm[-1].start, firm[-1].end)
        yield from _asserted(output, *span)
        yield "field", *span
    if values_of(output[slice(*body)]):
        yield "whole output", *body
    if _RE["traceback"].search(output, first, end) and not firm:
        return
    fences = list(_RE["fence"].finditer(output, first, end))
    if len(fences) >= 2:
        span = (min(fences[-2].end() + 1, fences[-1].start()), fences[-1].start())
        span = (_behind_prompt(output, *span), span[1])
        yield from _asserted(output, *span)
        yield "code block", *(trim(output, *span) if not plain_text else span)
    yield from _asserted(output, first, end)
    if marked:
        last = marked[settle(marked, output, lambda a, b: a == b).index][0]
        yield last.kind, *_bare(output, last.start, last.end)
        if stop := _literal_end(output, last.start, last.end):
            yield last.kind, last.start, stop
    elif plain_text and body[0] < body[1]:
        yield "whole output", *body
    elif "\n" in output[slice(*body)]:
        line = output.rfind("\n", *body) + 1
        if values_of(output[line : body[1]]):
            yield "last line", line, body[1]
    if not plain_text:
        yield from _in_prose(output, first, end, marked=bool(marked))


def _in_prose(output: str, first: int, end: int, *, marked: bool) -> Iterator[tuple[str, int, int]]:
    """What the last sentence says, else the inline code that ends an unmarked text."""
    yield from _said(output, first, end)
    code = None if marked else _RE["inline"].search(output, max(first, end - 600), end)
    if code and not denied(output, *code.span()):
        yield "inline code", *code.span(1)


def _behind_prompt(output: str, start: int, end: int) -> int:
    """Behind the last line of a session that begins with `>>>`, where there is one."""
    prompt = output.rfind(">>>", start, end)
    return start if prompt < 0 else output.find("\n", prompt, end) + 1 or end


def _said(output: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """What the last sentence says that a program returns or prints."""
    for says in reversed(list(_RE["says"].finditer(output, max(start, end - 2000), end))):
        stop = _literal_end(output, says.end(), end)
        if stop and _RE["rest"].fullmatch(output, stop, end):
            at = says.start()
            said = not (denied(output, at, at) or doubted(output, at) or wonders(output, stop))
            if said and not supposed((ENGLISH,), output, at):
                yield "stated", says.end(), stop
            return


def _literal_end(output: str, start: int, end: int) -> int | None:
    """Where a literal that begins at `start` ends, if no more of an expression follows."""
    match = _RE["atom"].match(output, start, end)
    stop = match.end() if match else value(output, start, end)[2] if start < end else start
    if not start < stop <= end or not values_of(output[start:stop]):
        return None
    return stop if _RE["ends"].match(output, stop, end) else None


def _within_quotes(output: str, start: int, end: int) -> tuple[int, int]:
    """The span with the space up to the quotes around it, which counts in a string."""
    first = len(output[:start].rstrip(" "))
    last = end + len(output[end:]) - len(output[end:].lstrip(" "))
    quoted = first and output[first - 1] in "'\"" and output[last : last + 1] == output[first - 1]
    return (first, last) if quoted else (start, end)


def _asserted(output: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Right side of the last `assert f(…) == value` (one line)."""
    result = [start, *(m.start() for m in _RE["assert"].finditer(output, start, end))][-20:]
    for at in reversed(result):
        stop = output.find("\n", at, end)
        stop = end if stop < 0 else stop
        line = output[at:stop].strip(" \t>`*")
        if len(line) > LONGEST:
            continue
        try:
            parsed = ast.parse(line.rstrip(".`* ")).body[0]
        except (SyntaxError, ValueError, MemoryError, RecursionError, IndexError):
            continue
        test = parsed.test if isinstance(parsed, ast.Assert) else getattr(parsed, "value", None)
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
            right = ast.get_source_segment(line, test.comparators[-1])
            if right and (place := output.rfind(right, at, stop)) >= 0:
                if isinstance(test.comparators[-1], ast.Tuple) and output[place - 1] == "(":
                    yield "assertion", place - 1, place + len(right) + 1
                yield "assertion", place, place + len(right)
                return


def _bare(output: str, start: int, end: int) -> tuple[int, int]:
    """Without markup and the full stop of the sentence."""
    start, end = trim(output, start, end)
    start = end - len(output[start:end].lstrip("`*$ "))
    end = start + len(output[start:end].rstrip("`*$ "))
    # "5." is a float where it is alone, and a sentence's end where it is stated.
    if start < end and output[end - 1] == ".":
        end -= 1
    ticked = start < end and output[end - 1] == "`"
    return (start, end - 1) if ticked else trim(output, start, end)


SCORER = Scorer(
    "literal",
    "14",
    read,
    instruction=(
        "End with the value and nothing else between [ANSWER] and [/ANSWER], "
        "written as a Python literal."
    ),
    symmetric=True,
    states="[ANSWER]{}[/ANSWER]",
)
