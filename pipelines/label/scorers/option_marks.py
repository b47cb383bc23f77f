"""Where an output names an option: markers, letters and their surroundings.

Every repeat is bounded, and matching starts at a keyword found by plain
search, so reading takes linear time whatever the output holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import filterfalse
from typing import NamedTuple

from routeyard.pipelines.label.scorers.graded import normalise
from routeyard.pipelines.label.scorers.languages import (
    ENGLISH,
    ROWS,
    Words,
    chosen,
    foreign,
    last_noun,
    listed,
    lowered,
    occurrences,
    worded,
)
from routeyard.pipelines.label.scorers.patterns import joined, patterns, table
from routeyard.pipelines.label.scorers.reading import Committed, committed

# Which option a text repeats: word for word, in its first clause, or but for slips of spelling.

_TEXT_RE = patterns("option_text")


#: Letter → normalised text of each option.
Options = Mapping[str, str]


def _most(options: Options) -> int:
    """Signs within which a text can repeat an option, with markup around it."""
    return 3 * max(map(len, options.values()), default=0) + 60


def beginning(text: str, options: Options) -> str:
    """As much of a text as can repeat an option, up to a word's end."""
    most, text = _most(options), text.lstrip()
    return text if len(text) <= most else text[:most].rsplit(None, 1)[0]


def matching(text: str, options: Options) -> str | None:
    """Letter of the option that a text equals, else of the longest one that opens it."""
    said = normalise(beginning(text, options))
    if not said:
        return None
    if said in options.values():
        return equal(text, options)
    opening = [
        (len(content), letter)
        for letter, content in options.items()
        if len(content) > 3 and (said + " ").startswith(content + " ")
    ]
    if not opening and (clause := _TEXT_RE["clause"].match(text)):
        return equal(clause[0], options)
    longest = max(opening, default=(0, ""))
    return longest[1] if [size for size, _ in opening].count(longest[0]) == 1 else None


def contradicts(text: str, letter: str, stop: int, options: Options) -> bool:
    """Whether the text of another option follows a letter: "A: No." where A is "Yes"."""
    behind = labelled(text, stop)
    if behind is None:
        return False
    sentence = _TEXT_RE["sentence"].match(text, behind.end())[0]  # type: ignore[index]
    own = options.get(letter, "") if sentence else ""
    said = normalise(beginning(sentence, options)) if own else ""
    if not said or (said + " ").startswith(own + " "):
        return False
    return any(content == said for other, content in options.items() if other != letter)


def labelled(text: str, stop: int) -> re.Match[str] | None:
    """What is between a letter that ends at `stop` and the text of an option behind it."""
    return _TEXT_RE["label"].match(text, stop, stop + 8)


def equal(text: str, options: Options) -> str | None:
    """Letter of the one option that a text equals."""
    said = normalise(text) if len(text) <= _most(options) else ""
    exact = [letter for letter, content in options.items() if content == said != ""]
    return exact[0] if len(exact) == 1 else None


_MARKS_RE = worded("option_marks")


#: Marks kept of a text that names options again and again.
MOST_OPTIONS = 1000


class NamedOption(NamedTuple):
    """A commitment to the options `letters` (several when the text names several).

    `firm`: the text calls it the answer; weaker statements ("option C is
    correct") count only without a firm one.
    """

    letters: str
    start: int
    end: int
    how: str
    firm: bool


#: Keyword → (kind, expression): weaker statements; verbs that choose are read as they are.
MARKS = {
    keyword: [(how, re.compile(joined(pattern), re.IGNORECASE)) for how, pattern in marks]
    for keyword, marks in table("option_keywords")["keywords"].items()
}
FIRM = tuple(word for word, marks in MARKS.items() if any(" " in how for how, _ in marks))
_CHOOSING = listed("choose", rows=ROWS[1:])
_OTHER = Words(filterfalse(str.isascii, _CHOOSING))
#: Marks that nothing follows but the answer, and those that hold nothing but the answer.
_SURE = frozenset({"field", "hash", "final", "label"})
#: A letter again and again, as some prompts ask: "DDDDD", "D, D, D, D".
REPEATED = _MARKS_RE["repeated"]
_WHOLE = frozenset({"field", "key", "boxed", "hash"})
_STATED = frozenset({"stated", "final"})
#: A longer last sentence says more than a letter.
SHORT = 60


def commitments(text: str, allowed: str, options: Options) -> list[NamedOption]:
    """What the text commits to, in order; only the weak ones when none is firm."""
    marks = [item for item in committed(text, most=MOST_OPTIONS) if item.kind != "bold"]
    held = (_held(mark, text, allowed, options) for mark in marks)
    results = [item for item in held if item is not None]
    starts = {item.start for item in results}
    worded = _worded(text, allowed, options, firm_only=bool(results))
    results += [item for item in worded if item.start not in starts]
    results.sort(key=lambda item: item.start)
    return [entry for entry in results if entry.firm] or results


@lru_cache(maxsize=4096)
def stated_alone(sentence: str, allowed: str) -> NamedOption | None:
    """The option that a sentence states with nothing but its letter, whatever precedes it."""
    if last_noun(sentence.lower()) is None:
        return None
    marks = committed(sentence)
    if len(marks) != 1 or marks[0].kind not in _STATED or any(map(sentence.__contains__, "*_|")):
        return None
    begins = sentence.lstrip().lower().startswith(ENGLISH.nouns)
    if begins or ENGLISH.hinted("would", sentence):
        return None
    worded = _worded(sentence, allowed, {}, firm_only=True)
    return None if any(True for _ in worded) else _glued(marks[0], allowed)


def _held(mark: Committed, text: str, allowed: str, options: Options) -> NamedOption | None:
    """The option that a mark holds."""
    if _lists_a(text, mark):
        return None
    stop, before = len(text), len(text[: mark.start].rstrip(" \t\r\n*_-•"))
    if mark.kind in _WHOLE:
        stop, before = min(stop, mark.end + 1), mark.start
    return (
        _glued(mark, allowed)
        or _items(text, before, len(text), allowed, mark.kind)
        or _named(text, mark.start, stop, allowed, options, mark.kind, True)
    )


def _worded(text: str, allowed: str, options: Options, *, firm_only: bool) -> Iterator[NamedOption]:
    """Options that a text chooses or calls correct, in order; weak ones, too, if asked for."""
    floor, lower, end = 0, lowered(text), len(text)
    keywords: Iterable[str] = FIRM
    if not firm_only:
        verbs = filter(_CHOOSING.__contains__, foreign(lower))
        keywords = (*MARKS, *verbs, *_OTHER.of(lower), *chosen(lower))
    for position, keyword in occurrences(lower, keywords, end):
        if position < floor or (text[position - 1 : position].isalpha() and keyword.isascii()):
            continue
        # A keyword without a row is a verb, which chooses as it is.
        stops = [("choose", position + len(keyword))] * (keyword not in MARKS)
        for how, pattern in MARKS.get(keyword, ()):
            if mark := pattern.match(text, position, end):
                stops.append((how, mark.end()))
        for how, stop in stops:
            how, _, firm = how.partition(" ")
            if choice := _named(text, stop, end, allowed, options, how, bool(firm)):
                yield choice
                floor = max(stop, 0 if choice.how.endswith("content") else choice.end)
                break


def names_none(text: str) -> bool:
    """Whether a text marks an answer, and the last one is written where no option can be read."""
    marks = [item for item in committed(text, most=MOST_OPTIONS) if item.kind in _SURE]
    return any(not _lists_a(text, mark) for mark in marks[-1:])


def beyond(text: str, allowed: str, options: Options) -> NamedOption | None:
    """The letter that a text marks last as its answer, where there is no such option.

    The first letter of an option's text may mean that text: "T" for "True".
    """
    marks = [item for item in committed(text, most=MOST_OPTIONS) if item.kind != "bold"]
    letter = _MARKS_RE["only"].fullmatch(marks[-1].text) if marks and options else None
    if letter is None or letter[1] in allowed or _lists_a(text, marks[-1]):
        return None
    if any(content.startswith(letter[1].lower()) for content in options.values()):
        return None
    start = marks[-1].start + letter.start(1)
    return NamedOption(letter[1], start, start + 1, f"{marks[-1].kind}, no such option", True)


def _lists_a(text: str, mark: Committed) -> bool:
    """Whether "A:" in front of a mark is option A and not the abbreviation of "answer"."""
    listed = _MARKS_RE["option_a"].search(text, max(0, mark.start - 8), mark.start)
    return listed is not None and not _MARKS_RE["lone"].match(text, mark.start)


def _glued(mark: Committed, allowed: str) -> NamedOption | None:
    """A letter that is the whole of a mark, or several in the order of the alphabet: "AC"."""
    said = mark.text.strip(" .*`\"'()[]（）$")
    if not said or said[0] not in allowed:
        return None
    again = REPEATED.fullmatch(said)
    ordered = set(said) <= set(allowed) and list(said) == sorted(set(said))
    if len(said) > 1 and not (ordered or again):
        return None
    start = mark.start + mark.text.index(said)
    return NamedOption(again[1] if again else said, start, start + len(said), mark.kind, True)


def _named(
    text: str, start: int, end: int, allowed: str, options: Options, how: str, firm: bool
) -> NamedOption | None:
    if _MARKS_RE["not"].match(text, start, end):
        return None
    if firm and (items := _items(text, start, end, allowed, how)):
        return items
    option = _MARKS_RE["option"].match(text, start, min(end, start + 300))
    if option is not None:
        # "(a) 0.012, (b) 0.986" are the parts of an option's text, not two options.
        spelled = firm and option["letters"].islower() and options
        if spelled and (repeated := by_content(text, start, end, options, how)):
            return repeated
        choice = _lettered(text, option, end, allowed, options, how, firm)
        if choice is not None:
            return choice
    return by_content(text, start, end, options, how) if firm else None


def _items(text: str, start: int, end: int, allowed: str, how: str) -> NamedOption | None:
    """The options that the items of a list begin with, where a statement is such a list."""
    letters, first, stop = "", 0, start
    while (item := _MARKS_RE["item"].match(text, stop, end)) and item["letter"] in allowed:
        first = first or item.start("letter")
        letters += "" if item["letter"] in letters else item["letter"]
        stop = item.end()
    return NamedOption(letters, first, stop, how, True) if letters else None


def _is_part_of_prose(raw: str, rest: str, content: str) -> bool:
    """Whether a word follows the bare letter: "is a matter of …", "is I think", "is C major"."""
    if not rest or not rest[0].isalnum():
        return False
    follows = normalise(rest)
    names_it = content and (follows.startswith(content[:12]) or content.startswith(follows[:12]))
    return not names_it and (
        raw in "aAiI" or raw.islower() or not _MARKS_RE["connects"].match(rest)
    )


def _lettered(
    text: str, option: re.Match[str], end: int, allowed: str, options: Options, how: str, firm: bool
) -> NamedOption | None:
    raw = option["letters"]
    glued = len(raw) > 1 and raw.isascii() and raw.isalpha()  # "(BFI)": three options
    letters = "".join(dict.fromkeys(raw if glued else _MARKS_RE["letter"].findall(raw))).upper()
    if not letters or any(letter not in allowed for letter in letters):
        return None
    start, stop = option.start("letters"), option.end("letters")
    if how == "option" and not _MARKS_RE["after_option"].match(text, stop, end):
        return None
    bracketed = bool(option["open"].strip()) or option["close"][:1] in tuple(")）]}*")
    rest = text[stop : min(end, stop + 80)].lstrip(" \t")
    if not bracketed and _is_part_of_prose(raw, rest, options.get(letters[0], "")):
        return None
    marked = bracketed or how in _WHOLE
    if raw.islower() and not marked and rest[:1] not in ("", ".", "\n", ",", ":"):
        return None
    if len(letters) == 1 and (other := _and_another(text, stop, end, letters, options)):
        letters += other
    return NamedOption(letters, start, stop, how, firm)


def _and_another(text: str, start: int, end: int, letter: str, options: Options) -> str:
    """The letter that is joined by "and" to an option whose text follows its own."""
    content = options.get(letter, "")
    stop = min(end, start + len(content) + 60)
    for other in _MARKS_RE["and"].finditer(text, start, stop) if content else ():
        if normalise(text[start : other.start()]) == content and other["letter"] != letter:
            return other["letter"] if other["letter"] in options else ""
    return ""


def by_content(text: str, start: int, end: int, options: Options, how: str) -> NamedOption | None:
    """The option whose text the statement repeats, when exactly one is repeated."""
    if not options:
        return None
    start = _MARKS_RE["skip"].match(text, start, min(end, start + 40)).end()  # type: ignore[union-attr]
    stop = text.find("\n", start, min(end, start + 400))
    stop = min(end, start + 400) if stop < 0 else stop
    said = text[start:stop]
    letter = matching(said, options)
    return NamedOption(letter, start, stop, how + ", by content", True) if letter else None


#: A text that puts more letters in front of something than this goes through its options.
_MOST_SPELLED = 12


def spelled_out(text: str, options: Options) -> list[NamedOption]:
    """The one option that an unmarked text names by its letter and its whole text.

    A text that spells out two different ones discusses them; one refused nearby does not count.
    """
    contents = {letter: content for letter, content in options.items() if len(content) > 3}
    result: dict[str, NamedOption] = {}
    for count, match in enumerate(_MARKS_RE["before_content"].finditer(text)):
        if count >= _MOST_SPELLED:
            return []
        letter, (start, end) = match["letter"], match.span()
        content = contents.get(letter, "")
        said = text[end : end + 2 * len(content) + 60] if content else ""
        if not said or not (normalise(said) + " ").startswith(content + " "):
            continue
        after = end + len(content)
        near = ((max(0, start - 40), start), (after, after + 60))
        if any(_MARKS_RE["refused"].search(text, *span) for span in near):
            return []
        result[letter] = NamedOption(letter, *match.span("letter"), "letter and text", True)
    return list(result.values()) if len(result) == 1 else []
