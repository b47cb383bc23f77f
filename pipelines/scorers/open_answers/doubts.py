"""Whether an answer commits to a reference where it names it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from routeyard.pipelines.scorers.extraction.clauses import wonders
from routeyard.pipelines.scorers.open_answers.dates import is_month, year
from routeyard.pipelines.scorers.open_answers.rivals import (
    candidate,
    names_another,
    offered,
    rivals,
)
from routeyard.pipelines.scorers.open_answers.texts import RE, Text
from routeyard.pipelines.scorers.open_answers.words import Word, fold, is_number, words

#: Words, and signs of scripts without spaces.
_SAID = re.compile(r"[^\W\d_\u3040-\u9fff\uac00-\ud7af]+|[\u3040-\u9fff\uac00-\ud7af]")
#: A word of the question that is no nearer to a value than this tells nothing about it.
_FAR = 5


class Wanted(NamedTuple):
    """What is asked for.

    Attributes:
        question: Its words with content.
        said: All of its words.
        references: Words of the references.
        bound: It may be a bound.
        past: It may be what was so.
        end: It is the end of a span.
        offered: The two names between which it asks to choose, as words.
        supposing: A word of the question begins suppositions elsewhere: "I Can Only Imagine".
    """

    question: frozenset[str]
    said: frozenset[str]
    references: frozenset[str]
    bound: bool
    past: bool
    end: bool
    supposing: bool
    offered: tuple[tuple[frozenset[str], frozenset[str]], ...]


def wanted_of(question: str, references: Sequence[Text]) -> Wanted:
    folded = fold(question)
    return Wanted(
        frozenset(word.form for word in words(folded)),
        frozenset(_SAID.findall(folded.casefold())),
        frozenset(form for one in references for form in one.forms),
        any(map(RE["bound"].search, (folded, *(one.folded for one in references)))),
        RE["asks_past"].search(folded.casefold()) is not None,
        RE["asks_end"].search(folded.casefold()) is not None,
        RE["supposing"].search(folded.casefold()) is not None,
        tuple(
            (frozenset(w.form for w in words(one["a"])), frozenset(w.form for w in words(one["b"])))
            for one in RE["choice"].finditer(folded)
        ),
    )


def doubt(answer: Text, start: int, end: int, wanted: Wanted) -> str:
    """Why a reference that is named is not what the answer commits to; empty where it is."""
    if start < 0:
        return ""
    first, last = answer.words[start], answer.words[end - 1]
    before = answer.folded[max(0, first.start - 200) : first.start]
    after = answer.folded[last.end : last.end + 300]
    said = before.casefold()
    if RE["denied_before"].search(said[-80:]) or RE["denied_after"].search(after.casefold()):
        return "the answer denies the reference"
    if wonders(answer.folded, last.end):
        return "the reference stands in a question"
    if _is_supposed(said, after, wanted) or RE["doubts"].search(said[-110:]):
        return "the answer doubts the reference, supposes it or ascribes it to others"
    if not wanted.bound and _is_bound(first, said, after.casefold()):
        return "the reference is only a bound"
    if not wanted.past and _is_of_the_past(answer.folded, first.start, last.end):
        return "the reference is what was so, and another is so today"
    if _of_another_clause(answer, start, end, wanted):
        return "the question asks for what another clause says"
    if _overruled(answer, start, end, wanted.question):
        return "another number or date of the answer overrules the reference"
    if _alternative(answer, start, end, before, after):
        return "the reference is one of several alternatives"
    if _among_others(answer):
        return "the reference is one of a list"
    return _doubt_of_name(answer, start, end, before, after, wanted)


def _doubt_of_name(
    answer: Text, start: int, end: int, before: str, after: str, wanted: Wanted
) -> str:
    """The same for a reference that is named beside others."""
    first, question = answer.words[start], wanted.question
    if any(offered(answer, start, end, pair, wanted.said) for pair in wanted.offered):
        return "the question offers two, and the answer names both"
    if first.name and names_another(answer, start, end, after, question):
        return "the answer says or concludes that it is another name"
    if RE["conceded"].search(before.casefold()) and RE["main"].match(after):
        return "the reference is named in a clause before another answer"
    reason = RE["reason"].search(before)
    if reason and candidate(answer, start, first.start - len(before) + reason.start(), question):
        return "the reference is named in a clause behind another answer"
    return ""


def _is_supposed(before: str, after: str, wanted: Wanted) -> bool:
    """Whether a clause is a supposition: "Suppose …", "Had Curie lived, she would have"."""
    if wanted.supposing or RE["supposes"].search(before):
        return not wanted.supposing
    return bool(RE["opens_if"].search(before) and RE["would_follow"].search(after.casefold()))


def _is_bound(first: Word, before: str, after: str) -> bool:
    """Whether a number or date is a bound: "at least 57", "before 1957", "57 or more"."""
    if not (is_number(first.form) or is_month(first.form)):
        return False
    early = (year(first.form) or is_month(first.form)) and RE["bounded_in_time"].search(before)
    return bool(early or RE["bounded_before"].search(before) or RE["bounded_after"].match(after))


def _is_of_the_past(text: str, start: int, end: int) -> bool:
    """Whether the clause of `text[start:end]` tells what was so, and another what is so today."""
    text = text.casefold()
    if text[:start].rstrip().endswith("used to be"):
        return True
    if not (RE["formerly"].search(text) and RE["today"].search(text)):
        return False
    begin = max((found.end() for found in RE["clause"].finditer(text, 0, start)), default=0)
    then = RE["clause"].search(text, end)
    own = text[begin : then.start() if then else len(text)]
    return bool(RE["formerly"].search(own)) and not RE["today"].search(own)


def _others_of(answer: Text, start: int, end: int, wanted: Wanted) -> Iterator[int]:
    """Places of other years, months or numbers than the one at `start`, of its kind."""
    kind, known = _kind(answer.words[start]), wanted.question | wanted.references
    dated = [date for date, begin, stop in answer.dates if begin <= start < stop]
    dates = {
        begin
        for date, begin, stop in answer.dates
        if dated and date.excludes(dated[0])
        if not wanted.references.issuperset(answer.forms[begin:stop])
    }
    for place, word in enumerate(answer.words if kind else ()):
        other = word.form not in known or place in dates
        if other and not start <= place < end and kind == _kind(word):
            yield place


def _of_another_clause(answer: Text, start: int, end: int, wanted: Wanted) -> bool:
    """Whether another clause of the sentence says what the question asks, or both are a span.

    "It began in 1914 and ended in 1918" has two dates; the word beside one tells which is asked.
    """
    own = _nearest(answer, start, end, wanted.said)
    kind = _kind(answer.words[start])
    for place in _others_of(answer, start, end, wanted):
        first, then = (end, place) if place >= end else (place + 1, start)
        between = _between(answer, first - 1, then)
        if kind == "year" and first == then and RE["span"].fullmatch(between[:-1]):
            return wanted.end != (place < start)
        if RE["ends"].search(between) or not RE["clause"].search(between):
            continue
        other = _nearest(answer, place, place + 1, wanted.said)
        nearer = other < _FAR and other <= own if place > start else other < own
        if nearer or (kind == "year" and place < start and own == _FAR):
            return True
    return False


def _kind(word: Word) -> str:
    if year(word.form) or is_month(word.form):
        return "year" if is_number(word.form) else "month"
    return "number" * is_number(word.form)


def _nearest(answer: Text, start: int, end: int, asked: frozenset[str]) -> int:
    """How many words away from a place its clause has a word of the question."""
    said, forms = answer.words, answer.forms
    while start > 0 and _kind(said[start - 1]) in ("year", "month", "number"):
        start -= 1
    for away in range(1, _FAR):
        for place, inner in ((start - away, start), (end - 1 + away, end - 1)):
            if 0 <= place < len(said) and forms.count(forms[place]) == 1:
                between = _between(answer, min(place, inner), max(place, inner))
                like = any(_kindred(forms[place], one) for one in asked)
                if like and not RE["clause"].search(between):
                    return away
    return _FAR


def _between(answer: Text, place: int, then: int) -> str:
    return answer.folded[answer.words[place].end : answer.words[then].start + 1].casefold()


def _kindred(form: str, other: str) -> bool:
    """Whether two words begin alike: began, begin; ended, end."""
    form = form.removeprefix("و")
    shorter = min(len(form), len(other))
    same = shorter if not form.isascii() else min(shorter, 3 if shorter < 6 else 4)
    return form[:same] == other[:same] and (shorter > 2 or form == other)


def _alternative(answer: Text, start: int, end: int, before: str, after: str) -> bool:
    """Whether another name or number is joined to the reference by "or"."""
    if RE["renamed"].search(after.casefold()):
        return False
    first, last = answer.words[start], answer.words[end - 1]
    either = RE["either"].search(before.casefold()[-80:])
    other = RE["alternative_after"].search(after)
    if other:
        then = next((word for word in answer.words if word.end > last.end + other.end()), None)
        if either or (then and rivals(last, then)):
            return True
    joined = RE["alternative_before"].search(before.casefold()[-80:])
    named = [word for word in answer.words[max(0, start - 2) : start] if len(word.form) > 2]
    return bool(joined and (either or (named and rivals(first, named[-1]))))


def _overruled(answer: Text, start: int, end: int, question: frozenset[str]) -> bool:
    """Whether a number or date is only what the answer sets another against.

    The other follows a "but" or "so", or the reference follows in brackets.
    """
    first, last = answer.words[start], answer.words[end - 1]
    if not (is_number(first.form) or is_month(first.form)):
        return False
    own = {word.form for word in answer.words[start:end]}
    others = [
        word
        for place, word in enumerate(answer.words)
        if not start <= place < end and word.form not in question | own and rivals(first, word)
    ]
    behind = [answer.folded[last.end : word.start] for word in others if word.start > last.end]
    if any(RE["overrules"].fullmatch(between.casefold()) for between in behind[:4]):
        return True
    opened = answer.folded.rfind("(", 0, first.start)
    within = opened > answer.folded.rfind(")", 0, first.start)
    return within and any(word.end <= opened for word in others)


def _among_others(answer: Text) -> bool:
    """Whether the answer is a bare list of short items, of which the reference is one."""
    items = [item for item in RE["items"].split(answer.folded) if item.strip()]
    few = 3 if RE["rows"].search(answer.folded) else 4
    return len(items) >= few and all(len(item.split()) <= 4 for item in items)
