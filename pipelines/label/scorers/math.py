"""`math`: equivalence of mathematical answers, LaTeX or plain.

The last committed answer (`\boxed{}`, a marked line, a statement) is compared
by form first (`math_forms`): sets and lists unordered, tuples and intervals
ordered and with their brackets, matrices by cell, equations by name and value.
What is left are scalars, settled in this order: same text, exact numbers
(`numeric.agree`), and only then symbolically with math-verify, in a worker
process with limits of time, memory and size. An answer that exceeds one is `incorrect`; `error`
is where the reference alone does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from routeyard.pipelines.label.scorers import symbolic
from routeyard.pipelines.label.scorers.patterns import patterns, rewrites
from routeyard.pipelines.label.scorers.quantities import (
    UNITS,
    Measure,
    Quantity,
    agree,
    measured,
    number,
    numbers,
    numeric_answer,
    plain,
    scan,
    spoken_number,
)
from routeyard.pipelines.label.scorers.reading import (
    MOST_READ,
    Committed,
    adjacent,
    after_draft,
    bounds,
    committed,
    cut_within,
    denied,
    end_of_answer,
    looks_cut,
    numeral,
    settle,
    supposes,
    unfinished,
    wonders,
)
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, ScoringInput

# The mathematical answer inside a sentence that states it.
#
# "The largest $n$ is 34." states 34: what follows the verb, not the first
# formula. Clauses that only qualify ("for all $x>0$", "which is …") are cut off.

_STATEMENT_RE = patterns("math_statement")


def stated_value(text: str) -> str:
    """The answer of a sentence, as LaTeX or plain text without `$`.

    Formulas that follow each other ("$2$ and $3$") are one list.
    """
    text = (
        _STATEMENT_RE["label"].sub("", text.strip(), count=1) if len(text) < 400 else text.strip()
    )
    text = _STATEMENT_RE["not_but"].sub("", text, count=1)
    formulas = list(_STATEMENT_RE["formula"].finditer(text))
    # Formulas are opaque while the sentence around them is read.
    masked = list(text)
    for formula in formulas:
        masked[formula.start() : formula.end()] = "\x00" * (formula.end() - formula.start())
    shown = "".join(masked)
    if sentence := _STATEMENT_RE["sentence"].search(shown):
        shown = shown[: sentence.start()]
        formulas = [item for item in formulas if item.start() < sentence.start()]
    if explained := _STATEMENT_RE["explained"].match(shown):
        return _joined(text, shown, formulas, 0, explained.end())
    words = re.findall(r"[A-Za-z]{2,}", re.sub("\\\\[a-zA-Z]+|\\x00", " ", shown))
    if not words or (
        not _STATEMENT_RE["maths"].search(shown)
        and all(map(_STATEMENT_RE["function"].fullmatch, words))
    ):
        return _joined(text, shown, formulas, 0, len(shown))
    start, stop, last = 0, len(shown), 0
    for verb in _STATEMENT_RE["verb"].finditer(shown):
        last = verb.end()
        if start and verb.start() >= start + len(_main(shown, start, stop)):
            break  # "is 7, attained at x = 8"
        if _STATEMENT_RE["maths"].search(_main(shown, verb.end(), stop)):
            start = verb.end()
            if not _word(verb[0]):
                break
    main = len(_main(shown, start, stop))
    if not main and _STATEMENT_RE["plain"].fullmatch(
        shown, last, stop
    ):  # "one half", "we get: a + b"
        start, main = last, stop - last
    return _joined(text, shown, formulas, start, start + main)


def _word(verb: str) -> bool:
    return verb[:1].isalpha()


def _main(shown: str, start: int, stop: int) -> str:
    """The clause from `start` on, up to what only qualifies its first piece of mathematics."""
    match = _STATEMENT_RE["maths"].search(shown, start, stop)
    if match is None:
        return ""
    cut = _STATEMENT_RE["qualifies"].search(shown, match.end(), stop)
    return shown[start : cut.start() if cut else stop]


def _joined(text: str, shown: str, formulas: list[re.Match[str]], start: int, stop: int) -> str:
    inside = [formula for formula in formulas if start <= formula.start() < stop]
    if not inside:
        return text[start:stop].strip().strip('"').rstrip(".,;:").strip()
    first = inside[0]
    before = shown[start : first.start()]
    if re.search(r"\d", before):  # "5 or $x$": the number counts as well as the formula
        return text[start:stop].replace("$", " ").strip()
    pieces = [_inner(first)]
    end = first.end()
    for item in inside[1:]:
        gap = text[end : item.start()]
        if not _STATEMENT_RE["join"].fullmatch(gap):
            break
        pieces.append(_inner(item))
        end = item.end()
    rest = shown[end:stop].strip(" .,;:")
    if len(pieces) == 1 and rest and re.match(r"(?:%|°|[a-z]{1,12}\b)", rest):
        return f"{pieces[0]} \\text{{ {rest[:40]} }}" if "\x00" not in rest else pieces[0]
    return ", ".join(pieces)


def _inner(formula: re.Match[str]) -> str:
    return next(group for group in formula.groups() if group is not None).strip()


# The outer form of a mathematical answer: set, interval, tuple, matrix, equation, list, scalar.
#
# Two answers of different forms are different, whatever a computer algebra
# system makes of them, so the form is settled here and only scalars are handed
# on. That removes the known ways in which a symbolic comparison calls different
# answers equal (a set and its sum, an open and a closed interval, `x=5` and
# `y=5`, the tail of an equation).

_FORM_RE = patterns("math_form")
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
    if "\\\\" in text and not _FORM_RE["single"].search(text):
        text = text.replace("\\\\", "\\")  # every backslash doubled: LaTeX out of a JSON string
    text = (
        _FORM_RE["noise"].sub(" ", text) if ("\\" in text or "$" in text or "~" in text) else text
    )
    text = _FORM_RE["supers"].sub(lambda m: "^{" + m[0].translate(_SUPER) + "}", text)
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
    return Form(kind, text, tuple(_form(part, depth + 1) for part in parts), name, source)


def _named(text: str) -> bool:
    return _FORM_RE["name"].fullmatch(text.strip()) is not None


def _unwrapped(text: str) -> str:
    """Without a box or group brace around all of it."""
    while text.endswith("}") and (inner := _FORM_RE["wrapped"].fullmatch(_outer(text))):
        text = text[slice(*inner.span(1))].strip()
    return text


def _matrix(text: str, depth: int) -> Form | None:
    match = _FORM_RE["matrix"].fullmatch(text)
    if match is None:
        return None
    cells = [row.split("&") for row in re.split(r"\\\\|\\cr", match[3]) if row.strip()]
    shape = "x".join(str(len(row)) for row in cells)
    # Round and square brackets mean the same matrix; bars mean its determinant.
    bars = "det" if match[2] in ("vmatrix", "Vmatrix") or match["bar"] else ""
    return _of_parts("matrix", text, (cell for row in cells for cell in row), depth, bars + shape)


def _worded(text: str, depth: int) -> Form | None:
    """The form of an answer in words: no solution, a labelled answer, a word, a letter."""
    plain = _FORM_RE["text"].sub(r"\1", text).strip()
    if _FORM_RE["nothing"].fullmatch(plain):
        return Form("set", text)
    if labelled := _FORM_RE["labelled"].fullmatch(plain):
        return _form(labelled[1], depth + 1)
    quoted = _FORM_RE["text"].fullmatch(text) is not None
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
    if len(parts) > 1 and not _FORM_RE["one_number"].fullmatch(text):
        return _of_parts("list", text, (part for part in parts if part.strip()), depth)
    if text.count(r"\pm") == 1:
        left, right = text.split(r"\pm")
        plus = "" if left.strip()[-1:] in ("", "=") else "+"
        return _of_parts("list", text, (left + plus + right, f"{left}-{right}"), depth)
    return None


def _relation(text: str, depth: int) -> Form | None:
    """`1 < x \\le 2` and `x > 3` are the intervals they describe."""
    pieces = [part.strip() for part in _FORM_RE["chain"].split(text)]
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
    sides = [item.strip() for item in _split(text, "equals")]
    if len(sides) < 2 or not all(sides):
        return None
    left, right, two = sides[0], sides[-1], len(sides) == 2
    if two and (names := _FORM_RE["names"].fullmatch(left)):
        value = _form(right, depth + 1)
        if value.kind in ("ordered", "list"):
            return Form("named", text, value.parts, names[1].replace(" ", ""))
    lettered = [_FORM_RE["letters"].search(side) is not None for side in sides]
    if not _named(left) and two and _named(right) and not lettered[0]:  # 2 = x
        left, right = right, left
    if _named(left):
        return _of_parts("equation", text, (right,), depth, left.replace(" ", ""))
    # Steps of a calculation: the last is the value. "7 = 11a + c" calculates nothing.
    return Form("relation", text) if two and any(lettered) else _form(right, depth + 1)


def _bracketed(text: str, depth: int) -> Form | None:
    brackets = _FORM_RE["brackets"].fullmatch(_outer(text))
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
    mask = len(ratio) > 1 and all(item.strip() for item in ratio)
    return _of_parts("ratio", text, ratio, depth) if mask else None


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
    if not _FORM_RE[separator].search(text):
        return [text]
    pieces, last = [], 0
    for match in _FORM_RE[separator].finditer(_outer(text)):
        pieces.append(text[last : match.start()])
        last = match.end()
    return [*pieces, text[last:]]


def _without_unit(text: str) -> str:
    bare = _FORM_RE["unit"].sub("", text)
    return (bare if re.search(r"\d", bare) else text).strip()


# Whether two mathematical answers are the same: by form first, symbolically last.

_EQUAL_RE = patterns("math_equality")


def same_answer(answer: str, other: str, asked: ScoringInput | None = None) -> bool:
    """Whether two answers are the same; symmetric.

    Raises:
        symbolic.TookTooLong: a symbolic comparison exceeds a limit.
    """
    if " ".join(answer.split()) == " ".join(other.split()):
        return True
    if bool(_EQUAL_RE["denied"].match(answer)) != bool(_EQUAL_RE["denied"].match(other)):
        return False
    if bases := _bases(asked.question if asked else ""):
        answer, other = _without_base(answer, bases), _without_base(other, bases)
    first, second = number(answer), number(other)
    if first is not None and second is not None:
        return agree(first, second, asked)
    # One of them may be a number as it is; then the other is read as one, too.
    known, text = first or second, other if first else answer
    if known and (said := spoken_number(text, asked)):
        return agree(said, known, asked)
    amount, wanted = _measure(answer), _measure(other)
    if amount is not None and wanted is not None:
        return amount.same_as(wanted)
    if known:
        if measure := wanted if first else amount:
            return len(measure.parts) == 1 and agree(measure.parts[0][0], known, asked)
        said = _decimal_comma(text, asked) or (numeric_answer(text) if _in_prose(text) else None)
        if said:
            return agree(said, known, asked)
    return _same(form(answer), form(other), asked)


def _in_prose(text: str) -> bool:
    """Whether a text holds words or several steps around its number."""
    several = text.count("=") > 1 and (";" in text or ", " in text)
    return bool(_EQUAL_RE["prose"].search(text) or (several and _EQUAL_RE["steps"].fullmatch(text)))


@lru_cache(maxsize=65536)
def form(text: str) -> Form:
    """The form of an answer, once for each text."""
    return form_of(text[:2000]) if len(text) <= 2000 else Form("scalar", text)


def _measure(text: str) -> Measure | None:
    """The text as a quantity with a unit; a letter glued to a number is a variable."""
    if (
        not _EQUAL_RE["united"].search(text)
        or _EQUAL_RE["variable"].search(text)
        or _EQUAL_RE["negated"].match(text)
    ):
        return None
    return measured(text)


def _decimal_comma(text: str, asked: ScoringInput | None) -> Quantity | None:
    """A number with a decimal comma, where its shape or the question shows that it is one."""
    shown = plain(text).strip().strip("()$ ")
    sure = _EQUAL_RE["surely"].fullmatch(shown) or (
        asked and _EQUAL_RE["convention"].search(asked.question)
    )
    if not sure or "{" in text or not _EQUAL_RE["comma"].fullmatch(shown):
        return None
    result = scan(shown)
    return result[0].quantity if len(result) == 1 else None


_BASES = {"binary": 2, "ternary": 3, "octal": 8, "hexadecimal": 16} | {
    word: base for word, base in UNITS.items() if base <= 12
}


def _base(said: str) -> int:
    return int(said) if said.isdigit() else _BASES.get(said, 0)


@lru_cache(maxsize=4096)
def _bases(question: str) -> frozenset[int]:
    """Bases a question names: "Express 1423 in base 3", "in binary"."""
    said = (match[1] or match[2] for match in _EQUAL_RE["asked_base"].finditer(question))
    return frozenset(map(_base, said)) - {0}


def _without_base(text: str, bases: frozenset[int]) -> str:
    match = _EQUAL_RE["in_base"].fullmatch(text)
    return match[1] if match and _base(match[2]) in bases else text


def _same(answer: Form, other: Form, asked: ScoringInput | None) -> bool:
    kinds = {answer.kind, other.kind}
    if "equation" in kinds and "relation" not in kinds:
        if answer.kind == other.kind and answer.name != other.name:
            return False
        values = [form.parts[0] if form.kind == "equation" else form for form in (answer, other)]
        return _same(values[0], values[1], asked)
    if kinds & {"named", "ordered"}:
        answer, other = _as_tuple(answer), _as_tuple(other)
    answer, other = sorted((answer, other), key=lambda form: form.kind)
    if answer.kind == "named":  # before "ordered"
        return _same_named(answer, other, asked)
    return _same_parts(answer, other, asked)


def _same_parts(answer: Form, other: Form, asked: ScoringInput | None) -> bool:
    """Whether two forms without equations or names are the same, part by part."""
    kinds = {answer.kind, other.kind}
    if kinds <= {"set", "list"} or kinds == {"union"}:
        return _unordered(*_elements(answer, other), asked)
    if kinds in ({"ordered"}, {"matrix"}):
        return answer.name == other.name and _alike(answer.parts, other.parts, asked)
    if kinds == {"text"}:
        return answer.text == other.text
    if kinds == {"scalar"}:
        return same_scalar(answer.text, other.text, asked)
    if answer.kind == "ratio":
        return _same_ratio(answer, other, asked)
    if kinds <= {"relation", "equation"} or (
        kinds == {"relation", "ordered"} and (answer.source or other.source)
    ):
        return symbolically(answer.source or answer.text, other.source or other.text)
    return kinds == {"matrix", "scalar"} and symbolically(answer.text, other.text)


def _alike(parts: tuple[Form, ...], others: tuple[Form, ...], asked: ScoringInput | None) -> bool:
    """Whether parts in their order are the same."""
    return len(parts) == len(others) and all(
        _same(a, b, asked) for a, b in zip(parts, others, strict=True)
    )


def _elements(answer: Form, other: Form) -> tuple[tuple[Form, ...], tuple[Form, ...]]:
    """Parts of two sets, lists or unions, in forms that can be compared."""
    kinds = {answer.kind, other.kind}
    if kinds == {"set"}:  # {2, 1, 1} is {1, 2}
        return tuple(dict.fromkeys(answer.parts)), tuple(dict.fromkeys(other.parts))
    mixed = {part.kind for part in (*answer.parts, *other.parts)} == {"equation", "ordered"}
    if kinds == {"list"} and mixed:
        return _tuples(answer) or answer.parts, _tuples(other) or other.parts
    return answer.parts, other.parts


def _same_named(named: Form, other: Form, asked: ScoringInput | None) -> bool:
    """`(p,q) = (3,2)` against itself in another order of names, or against the bare tuple."""
    if named.kind == other.kind:
        first, second = (
            dict(zip(form.name.split(","), form.parts, strict=False)) for form in (named, other)
        )
        return first.keys() == second.keys() and all(
            _same(part, second[name], asked) for name, part in first.items()
        )
    return (
        other.kind == "ordered"
        and other.name in ("()", "")
        and _alike(named.parts, other.parts, asked)
    )


def _as_tuple(answer: Form) -> Form:
    """The tuple that a list such as `p = 3, q = 2` is; else the form itself."""
    tuples = _tuples(answer) if answer.kind == "list" else ()
    return tuples[0] if len(tuples) == 1 else answer


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


def _same_ratio(ratio: Form, other: Form, asked: ScoringInput | None) -> bool:
    if (same := _same_time(ratio.text, other.text)) is not None:
        return same
    if other.kind == "ratio":
        first, second = _shares(ratio), _shares(other)
        return first == second if first and second else _alike(ratio.parts, other.parts, asked)
    if other.kind != "scalar" or len(ratio.parts) != 2:
        return False
    above, below = (part.text for part in ratio.parts)
    return same_scalar(f"\\frac{{{above}}}{{{below}}}", other.text, asked)


def _shares(ratio: Form) -> list[Fraction] | None:
    """Parts of a ratio by its first; None where one is no number that divides."""
    parts = [item.value for part in ratio.parts if (item := number(part.text))]
    values = [entry for entry in parts if isinstance(entry, Fraction) and entry]
    return [value / values[0] for value in values] if len(values) == len(ratio.parts) else None


def _unordered(
    parts: tuple[Form, ...], others: tuple[Form, ...], asked: ScoringInput | None
) -> bool:
    # A solution that is listed twice is one solution; a prime factor is not.
    if {part.kind for part in (*parts, *others)} == {"ordered"}:
        parts, others = (
            tuple({p.text.replace(" ", ""): p for p in f}.values()) for f in (parts, others)
        )
    if len(parts) != len(others) or len(parts) > 60:
        return False
    left = list(others)
    for part in parts:
        hit = next((i for i, candidate in enumerate(left) if _same(part, candidate, asked)), None)
        if hit is None:
            return False
        left.pop(hit)
    return True


def same_scalar(answer: str, other: str, asked: ScoringInput | None = None) -> bool:
    """Two scalars: same text, exact numbers, else symbolically."""
    bare, also = answer.replace(" ", ""), other.replace(" ", "")
    if bare == also and bare:
        return True
    if (same := _same_time(answer, other)) is not None:
        return same
    first, second = number(answer), number(other)
    if first is not None and second is not None:
        return agree(first, second, asked)
    for text, value in ((bare, first), (also, second)):
        if value is None and _EQUAL_RE["numeric"].fullmatch(text):
            return False  # digits and separators that fit no convention: 0,111
    if (
        not bare
        or not also
        or _EQUAL_RE["base"].fullmatch(bare)
        or _EQUAL_RE["base"].fullmatch(also)
    ):
        return bool(bare) and re.sub("[{}]", "", bare) == re.sub("[{}]", "", also)
    return _same_worded(answer, other, asked)


def _same_worded(answer: str, other: str, asked: ScoringInput | None) -> bool:
    """The same of what is counted, worked out or about equal; else symbolically."""
    first, second = number(answer), number(other)
    known = [first] if first else numbers(answer)
    others = [second] if second else numbers(other)
    if known and others:
        return any(agree(a, b, asked) for a in known for b in others)
    if (first or second) and _EQUAL_RE["worded"].search(
        _EQUAL_RE["group"].sub("", other if first else answer)
    ):
        return False
    for text, against in ((answer, other), (other, answer)):
        if len(parts := _EQUAL_RE["about"].split(text)) > 1:
            return any(same_scalar(part, against, asked) for part in parts)
    return symbolically(answer, other)


def _same_time(answer: str, other: str) -> bool | None:
    """Whether two times of day are the same; None where one of the texts is no time."""
    times = [_EQUAL_RE["clock"].fullmatch(text) for text in (answer, other)]
    first, second = ((int(t[1]), t[2], (t[3] or "").lower()) if t else None for t in times)
    return first == second if first and second else None


def symbolically(answer: str, other: str) -> bool:
    """Whether two expressions or relations are equal to computer algebra; sentences never are.

    Raises:
        symbolic.TookTooLong: the comparison exceeds a limit.
    """
    bare = [_EQUAL_RE["group"].sub("", text) for text in (answer, other)]  # `\\text{…}` is a unit
    words = [set(_EQUAL_RE["word"].findall(text)) for text in bare]
    if any(_EQUAL_RE["wordy"].search(text) for text in bare) or words[0] != words[1]:
        return False
    # A fixed order makes the verdict symmetric and the cache twice as good.
    first, second = sorted((_latex(answer), _latex(other)))
    return symbolic.same(first, second) is True


@lru_cache(maxsize=65536)
def scalars(text: str) -> tuple[str, ...]:
    """The parts of an answer that have none themselves, as LaTeX."""
    parts = [form(text)]
    while any(part.parts for part in parts):
        parts = [item for part in parts for item in part.parts or (part,)]
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
    text = _EQUAL_RE["mixed"].sub(r"(\1+\\frac{\2}{\3})", text)
    text = re.sub(r"\\?%", r"\\cdot\\frac{1}{100}", text)
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = _EQUAL_RE["juxtaposed"].sub(r"\1\\cdot(", text)
    return re.sub(r"\\text\s?\{([^{}]*)\}", r"\\mathrm{\1}", text)


_MATH_RE = patterns("math")


#: An output without any mark is an answer only when it is no longer than this.
BARE = 200
_SEVERAL = frozenset({"list", "set", "ordered"})


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Reads the last committed answer and compares it with every reference."""
    known = [_reference(reference) for reference in asked.references if reference.strip()]
    if not known:
        return ScoreResult("error", reason="there is no reference")
    marked = _marked(output, asked.truncated)
    if not marked:
        return ScoreResult("abstain", reason="no committed answer")
    with symbolic.allowance():
        settled = settle(marked, output, lambda item, other: _not_apart(item, other, asked))
    last, answer = marked[settled.index]
    if cut_within(last, output, truncated=asked.truncated):
        return ScoreResult("abstain", reason=f"{last.kind}: cut off within {last.text[:40]!r}")
    if _is_bound(output, last, answer, asked.question):
        return ScoreResult("abstain", reason=f"{last.kind}: only a bound, {last.text[:40]!r}")
    conflict, span = settled.conflict, (last.start, last.end)
    right, beyond = _is_one_of(known, answer, asked)
    run = adjacent([entry for entry, _ in marked], output, settled.index)
    if not right and _in_parts(run, known, asked):
        right, conflict = True, False
    reason = f"{last.kind}: {answer[:80]}"
    if right and last.kind == "concluding sentence" and looks_cut(output[: last.end]):
        return ScoreResult("abstain", None, last.text, span, f"{reason}, where it may be cut")
    if not right and beyond:
        # The fault of a reference is not the answer's, and whatever answers it, it is one.
        if why := _faulty(beyond):
            return ScoreResult("error", None, last.text, span, why)
        reason += "; its comparison exceeds a limit of time, memory or size"
        return ScoreResult.of(False, last.text, span, reason, conflict)
    if not right and _unread(answer, last.kind) and not any(map(_MATH_RE["worded"].search, known)):
        return ScoreResult("abstain", reason=f"words that are no mathematics: {reason}")
    if conflict:
        reason += "; commits to several answers"
    return ScoreResult.of(right, last.text, span, reason, conflict)


def _faulty(references: Iterable[str]) -> str:
    """What is wrong with the first reference that cannot be evaluated; empty without one."""
    faulty = next((entry for entry in references if not evaluable(entry)), None)
    says = f"the reference cannot be evaluated within the limits: {(faulty or '')[:80]}"
    return "" if faulty is None else says


def _is_bound(output: str, last: Committed, answer: str, question: str) -> bool:
    number = re.search(r"\d[\d.,]*", answer)
    at = output.find(answer, last.start, last.end + 1)
    return (at >= 0 and bounds(output, at, at + len(answer), question)) or (
        number is not None
        and (denied(answer, *number.span()) or bounds(answer, *number.span(), question))
    )


def _unread(answer: str, kind: str) -> bool:
    """Whether an answer was not read as a whole: words beside its formula, a bracket left open.

    What is in a box, text too, is the whole answer, unless it has sentences.
    """
    if answer.count("{") != answer.count("}") or len(_MATH_RE["open"].findall(answer)) % 2:
        return True
    if kind == "boxed" and not re.search(r"[.?!]\s", answer):
        return False
    if _MATH_RE["scaled"].search(answer):
        return True
    worded = _MATH_RE["worded"].search(_MATH_RE["group"].sub("", answer)) is not None
    several = len(re.findall(r"\d+", answer)) > 1
    return worded and (
        several or bool(_MATH_RE["formula"].search(answer)) or numeric_answer(answer) is None
    )


def _not_apart(answer: str, other: str, asked: ScoringInput) -> bool:
    """Whether two marks are one answer, or too slow to compare: then no conflict is shown."""
    try:
        return same_answer(answer, other, asked)
    except symbolic.TookTooLong:
        return True


def _is_one_of(known: list[str], answer: str, asked: ScoringInput) -> tuple[bool, list[str]]:
    """Whether an answer is a reference, and those with which the comparison exceeds a limit."""
    beyond: list[str] = []
    hopeless = False
    for item in sorted({*known}):  # in whatever order the source has them
        try:
            with symbolic.allowance(0 if hopeless else symbolic.LIMIT * len(scalars(item))):
                if same_answer(answer, item, asked):
                    return True, []
        except symbolic.TookTooLong:
            beyond.append(item)
            hopeless = hopeless or (len(known) > 1 and not evaluable(answer))
    return False, beyond


def _in_parts(run: list[Committed], known: list[str], asked: ScoringInput) -> bool:
    """Whether adjacent boxes together are a reference that is a list, tuple or set."""
    together = ", ".join(item.text for item in run)
    several = [item for item in known if len(run) > 1 and form(item).kind in _SEVERAL]
    return any(_is_one_of(several, item, asked)[0] for item in (together, f"({together})"))


def _marked(output: str, truncated: bool) -> list[tuple[Committed, str]]:
    """Commitments with the answers they hold; without any, the concluding sentence."""
    marked = [(entry, answer) for entry in committed(output) if (answer := _tail(entry))]
    if marked:
        return marked
    if unfinished(output, truncated=truncated) or len(output) > MOST_READ:
        return []
    end = end_of_answer(output)
    first = after_draft(output, end)
    body = output[first:end].strip()
    if not body:
        return []
    start = output.index(body, first)
    if len(body) <= BARE and "\n\n" not in body:
        item, answer = Committed("whole output", start, start + len(body), body), _said_alone(body)
        # A box that marks no answer is one that is denied, doubted or supposed.
        unsaid = "boxed{" in body or wonders(body, 0) or supposes(body)
        return [(item, answer)] if answer and not unsaid else []
    return _concluded(output, start, start + len(body))


def _said_alone(body: str) -> str:
    """A whole output that is an answer, or a sentence that gives one."""
    words = re.search(r"(?<![\\A-Za-z])[A-Za-z]{3,}[ ,:]", body)
    return stated_value(body) if words else body.strip('"')


def _concluded(output: str, start: int, end: int) -> list[tuple[Committed, str]]:
    """The last sentence, when it says that it concludes and holds mathematics."""
    line = max(output.rfind("\n", start, end), start - 1) + 1
    results = [m.start() for m in _MATH_RE["concludes"].finditer(output, max(line, end - 600), end)]
    if not results:
        return []
    text = output[results[-1] : end]
    answer = stated_value(_MATH_RE["concludes"].sub("", text, count=1))
    if not re.search(r"\d|\\[a-z]", answer) or len(answer) > 120:
        return []
    return [(Committed("concluding sentence", results[-1], end, text), answer)]


def _tail(mark: Committed) -> str:
    """The answer inside a commitment: a formula or the text behind the verb."""
    text = mark.text.strip()
    if mark.kind in ("label", "stated", "final", "bold") and not _MATH_RE["box"].search(text):
        text = stated_value(text)
    elif mark.kind == "field":
        text = text.replace('\\"', '"')  # 67\", an escaped inch mark
    wrapped = _MATH_RE["wrapped"].fullmatch(text)
    return (wrapped[1] if wrapped else text).strip('"').strip()


@lru_cache(maxsize=65536)
def _reference(text: str) -> str:
    """A reference may be the answer or a worked solution that ends in it."""
    if "\\boxed" in text or "####" in text:
        stated = committed(text)
        if stated:
            run = adjacent(stated, text, len(stated) - 1)
            return ", ".join(item.text for item in run) if len(run) > 1 else stated[-1].text
    return text.strip().lstrip("#").strip()


SCORER = Scorer(
    "math",
    "17",
    read,
    instruction=(
        "Work it out step by step, then end with the final answer, "
        "and nothing but the final answer, inside \\boxed{}."
    ),
    canonical=numeral,
    states="\\boxed{{{}}}",
)
