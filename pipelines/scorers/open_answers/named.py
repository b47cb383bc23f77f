"""Where an answer names a reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from routeyard.pipelines.scorers.comparison.words import normalise
from routeyard.pipelines.scorers.open_answers.dates import Date
from routeyard.pipelines.scorers.open_answers.texts import RE, Text, is_date
from routeyard.pipelines.scorers.open_answers.words import VERDICTS, is_number

#: Words that name a part of what follows.
_PARTS = frozenset(("early", "late", "mid", "middle", "half", "quarter", "second", "first"))
#: Letters and digits from which a name is found although spaces around it were lost.
_LONG = 8


def named(reference: Text, answer: Text, known: Sequence[Date] = ()) -> list[tuple[int, int, str]]:
    """Places (first word, end) of a reference as it is given, and how; (-1, -1) for no place.

    Args:
        known: Dates of all references: a more exact one counts before its year.
    """
    wanted, said, n = reference.forms, answer.forms, len(reference.forms)
    if is_date(reference):
        return _dated(reference, answer, known)
    if RE["signs"].search(reference.folded):  # x+1 has the words of x-1
        same = f" {normalise(reference.folded)} " in f" {normalise(answer.folded)} "
        return [(-1, -1, "the signs and words")] if same else []
    short = n == 1 and (wanted[0] in VERDICTS or (len(wanted[0]) == 1 and not wanted[0].isdigit()))
    if not n or short:  # such words occur in any text
        return [(-1, -1, "the whole answer")] if bare(reference) == bare(answer) else []
    places = [
        (start, start + n, "the words")
        for start, form in enumerate(said)
        if form == wanted[0] and said[start : start + n] == wanted
    ]
    letters = n > 1 and len(reference.letters) >= _LONG and reference.letters in answer.letters
    return places or [(-1, -1, "the letters")] * letters


def _dated(reference: Text, answer: Text, known: Sequence[Date]) -> list[tuple[int, int, str]]:
    """Places of the first date of a reference; none where one of its dates is nowhere."""
    found = [
        [
            (start, end, "a date")
            for one, start, end in answer.dates
            if one.within(date) and not _missed(one, date, known)
        ]
        for date, _, _ in reference.dates
    ]
    return found[0] if all(found) else []


def _missed(said: Date, date: Date, known: Sequence[Date]) -> bool:
    """Whether more exact dates of `date` are known, and the stated one is not among them."""
    exact = [one for one in known if one != date and one.within(date)]
    return bool(exact) and all(said.excludes(one) for one in exact)


def bare(text: Text) -> str:
    """A text without case and the signs around it."""
    return text.folded.casefold().strip(" .,;:!?\"'“”‘’*_`$()[]")


def loosely(
    reference: Text, answer: Text, question: frozenset[str]
) -> Iterable[tuple[int, int, str]]:
    """Places that name a reference in other forms; what the question says proves nothing."""
    wanted, said, n = reference.forms, answer.forms, len(reference.forms)
    if not n or not _has_other_forms(reference):
        return
    names = all(word.name for word in reference.words)
    numbers = set(filter(is_number, wanted))
    own = set(wanted) - question
    if n == 1:
        for place, word in enumerate(answer.words):
            if names and word.name and _same_stem(word.form, wanted[0]):
                yield place, place + 1, "the name in another form"
        return
    for place, form in enumerate(said):
        near = set(said[max(0, place - n - 2) : place + n + 3])
        if form == wanted[-1] and len(own) > 1 and near.issuperset(wanted):
            yield place, place + 1, "the words, near each other"
        elif form == wanted[-1] and _is_the_name(reference, answer, place, question):
            yield place, place + 1, "the name"
        elif form in numbers and _with_word(said, place, numbers, own):
            yield place, place + 1, "the number with a word"


def _has_other_forms(reference: Text) -> bool:
    """Whether other words can name it: no date, formula or signs of a script without spaces."""
    if is_date(reference) or RE["signs"].search(reference.folded):
        return False
    return all(len(form) > 1 or form.isascii() for form in reference.forms)


def _with_word(said: Sequence[str], place: int, numbers: set[str], own: set[str]) -> bool:
    """Whether a reference's numbers and one of its words are within two words of a place."""
    near, words = set(said[max(0, place - 2) : place + 3]), own - numbers
    few = len(words) <= 3 and words & _PARTS <= near  # "the late 12th century" is no 12th century
    return few and near.issuperset(numbers) and bool(near & words)


def _is_the_name(reference: Text, answer: Text, place: int, question: frozenset[str]) -> bool:
    """Whether the last word of a name names it: with its first one, or alone."""
    if _is_last_name(reference, answer, question):
        return True
    names = all(word.name for word in reference.words)
    known = question & {reference.forms[0], reference.forms[-1]}
    return names and not known and _same_person(reference.forms, answer.forms, place)


def _is_last_name(reference: Text, answer: Text, question: frozenset[str]) -> bool:
    """Whether an answer says nothing new but a name's last word, and others of its words."""
    new = [word for word in answer.words if word.form not in question]
    return (
        reference.words[-1].name
        and reference.forms[-1] not in question
        and len(new) <= 3
        and all(word.name and word.form in reference.forms for word in new)
    )


def _same_stem(form: str, name: str) -> bool:
    """Whether two long names begin alike and end in an ending: Himalayan, Himalayas."""
    return len(name) > 5 and form[:5] == name[:5] and abs(len(form) - len(name)) < 3


def _same_person(name: Sequence[str], said: Sequence[str], last: int) -> bool:
    """First and last name (middle names left out), or initials for all given names."""
    before = said[max(0, last - 3) : last]
    given = said[max(0, last - len(name) + 1) : last]
    initials = len(given) == len(name) - 1 and all(
        a[0] == b[0] and (1 in (len(a), len(b)) or a == b)
        for a, b in zip(given, name, strict=False)
    )
    short = len(name[0]) > 2 and bool(before) and before[-1][:3] == name[0][:3]
    return name[0] in before or initials or short
