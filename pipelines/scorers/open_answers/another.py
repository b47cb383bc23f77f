"""Whether an answer commits to something else than the references."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence, Set
from itertools import pairwise

from routeyard.pipelines.scorers.open_answers.dates import Date
from routeyard.pipelines.scorers.open_answers.texts import RE, Text, is_date
from routeyard.pipelines.scorers.open_answers.words import Word, is_number

#: Whole numbers below it are counts and years.
_YEARS = 2200
#: Words with content, not in the question, up to which an answer that shares no word with a
#: reference of this kind is another answer and not the same one in other words.
_COMMITS = {"names": 400, "number": 60, "name": 60, "phrase": 13}


def _kind(reference: Text) -> str:
    if any(is_number(form) for form in reference.forms):
        return "number"
    if not all(word.name for word in reference.words):
        return "phrase"
    return "names" if len(reference.words) > 1 else "name"


def another_answer(accepted: Sequence[Text], answer: Text, question: frozenset[str]) -> str:
    """What the answer says in place of any reference; empty where it may say the same."""
    new = [word for word in answer.words if word.form not in question]
    if not new or not _same_script(accepted, new):
        return ""
    if declined := _declines(accepted, answer, new):
        return declined
    if all(map(is_date, accepted)):
        return _other_date([date for one in accepted for date, _, _ in one.dates], answer)
    if said := _counted_otherwise(accepted, answer, question):
        return f"another number of {said!r}"
    wanted = {form for one in accepted for form in one.forms} - question
    if _shares(wanted, answer) or _glued(accepted, answer):
        return ""
    return f"{new[0].form!r} … shares no word with a reference" if _commits(accepted, new) else ""


def _declines(accepted: Sequence[Text], answer: Text, new: Sequence[Word]) -> str:
    """That the answer knows none: it says so, and has no date or number if one is asked for."""
    said = answer.folded.casefold().replace("’", "'")
    if not RE["declined"].search(said) or len(new) > 40:
        return ""
    dated, counted = all(map(is_date, accepted)), {_kind(one) for one in accepted} == {"number"}
    none = (dated and not answer.dates) or (
        counted and not any(is_number(word.form) for word in new)
    )
    return "the answer says that it knows none" if none or not RE["concedes"].search(said) else ""


def _commits(accepted: Sequence[Text], new: Sequence[Word]) -> bool:
    """Whether words so few are an answer of the references' kinds, and of numbers another one."""
    kinds = {_kind(one) for one in accepted}
    if "number" in kinds and not _other_number(accepted, new):
        return False
    return len(new) <= min(_COMMITS[kind] for kind in kinds)


def _counted_otherwise(accepted: Sequence[Text], answer: Text, question: frozenset[str]) -> str:
    """A word of every reference that is beside another number: "18th century" for the 19th."""
    values = {form for one in accepted for form in one.forms if is_number(form)}
    if values & set(answer.forms) or len(set(filter(is_number, answer.forms)) - question) != 1:
        return ""
    beside = [
        {(step, other) for step, form, other in _beside(one) if is_number(form)} for one in accepted
    ]
    wanted = set.intersection(*beside) if beside else set()
    found = [
        other
        for step, form, other in _beside(answer)
        if (step, other) in wanted and is_number(form) and not _is_rounded(form, values)
    ]
    return found[0] if found else ""


def _is_rounded(form: str, values: Set[str]) -> bool:
    said = _value(form)
    known = [value for one in values if (value := _value(one)) is not None]
    return said is None or any(_rounded(said, value) for value in known)


def _beside(text: Text) -> list[tuple[int, str, str]]:
    """(step, word, the word before or behind it) of each word."""
    forms = text.forms
    pairs = list(pairwise(forms))
    return [(1, a, b) for a, b in pairs] + [(-1, b, a) for a, b in pairs]


def _glued(accepted: Sequence[Text], answer: Text) -> bool:
    """Whether a reference's letters are within glued words: "the groupTLC1"."""
    return any(len(one.letters) > 2 and one.letters in answer.letters for one in accepted)


def _shares(wanted: Set[str], answer: Text) -> bool:
    """Whether the answer has one of these words, or another form of it."""
    starts = {_start(form) for form in answer.forms if not is_number(form)}
    return any(
        form in answer.forms or (len(form) > 3 and _start(form) in starts) for form in wanted
    )


def _start(form: str) -> str:
    """The stem of a word, whose other forms count as overlap."""
    return form[: 4 if form.isascii() else 3]


def _other_date(wanted: Sequence[Date], answer: Text) -> str:
    vague = RE["vague"].search(answer.folded.casefold())
    if vague or not answer.dates:
        return ""
    if all(said.excludes(date) for said, _, _ in answer.dates for date in wanted):
        return "another date"
    return ""


def _other_number(accepted: Sequence[Text], new: Sequence[Word]) -> bool:
    """Whether the answer has a number, and none that is a reference's when rounded."""
    said = [value for word in new if (value := _value(word.form)) is not None]
    known = [value for one in accepted for form in one.forms if (value := _value(form)) is not None]
    return bool(said) and not any(_rounded(a, b) for a in said for b in known)


def _rounded(a: float, b: float) -> bool:
    """Whether two numbers may be one, rounded; years and counts are not rounded."""
    exact = a == int(a) and b == int(b) and max(a, b) < _YEARS
    return a == b if exact else abs(a - b) <= 0.05 * max(abs(a), abs(b))


def _value(form: str) -> float | None:
    try:
        value = float(form)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _same_script(accepted: Sequence[Text], new: Sequence[Word]) -> bool:
    """Whether a word of the answer is written in the script of a reference."""
    wanted = {_script(form) for one in accepted for form in one.forms}
    return any(_script(word.form) in wanted or is_number(word.form) for word in new)


def _script(form: str) -> str:
    return unicodedata.name(form[0], "?").split()[0]
