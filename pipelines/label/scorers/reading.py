"""Where an output states its answer, for every scorer."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import chain, pairwise
from operator import itemgetter
from typing import NamedTuple, TypeVar

from routeyard.pipelines.label.scorers.languages import (
    ENGLISH,
    LANGUAGES,
    NOUNS,
    OTHER,
    ROWS,
    Language,
    any_of,
    chosen,
    foreign,
    last_noun,
    listed,
    lowered,
    occurrences,
    worded,
)
from routeyard.pipelines.label.scorers.patterns import hints, patterns, table

# What a clause commits to: nothing where it denies, doubts, supposes, asks or only bounds.
#
# The words of all languages are in `patterns/languages.yaml`.

_CLAUSES_RE = worded("clauses", any_least=any_of(listed("least")))
for _key in ("declines", "retracts"):
    _CLAUSES_RE.hints[_key] = tuple({part for word in listed(_key) for part in hints(word)})
_DOUBTING = {word.lower() for word in listed("doubts", "say")}
_CLAUSES_RE.hints["doubts"] = tuple(_DOUBTING)
_DOUBT_WORDS = frozenset(word.split()[-1] for word in _DOUBTING)


def denied(text: str, start: int, end: int) -> bool:
    """Whether the value `text[start:end]` is denied or compared with, in any language.

    "not 8", "8 değil", "larger than 8".
    """
    return _DENIED.next_to(text, start, end)


def bounds(text: str, start: int, end: int, question: str) -> bool:
    """Whether a value is a bound, "at least 8", "8 以上", where the question asks for none."""
    return _BOUND.next_to(text, start, end) and not _asks_bound(question)


@lru_cache(maxsize=8192)
def _asks_bound(question: str) -> bool:
    return _CLAUSES_RE["asks_bound"].search(question) is not None


def doubted(text: str, start: int) -> bool:
    """Whether the clause before `start` denies, doubts or ascribes to others what follows.

    "I don't think that", "some people say", in any language.
    """
    before = text[max(0, start - 110) : start].lower()
    begin = max(map(before.rfind, ";:.!?\n" if before.isascii() else ";:.!?\n，。；：")) + 1
    clause = before[begin:]
    if clause.isascii() and _DOUBT_WORDS.isdisjoint(clause.replace(",", " ").split()):
        return False
    return _CLAUSES_RE.search("doubts", before, begin, len(before)) is not None


def wonders(text: str, start: int) -> bool:
    """Whether the sentence that holds `start` ends in a question mark."""
    asks = any(map(text.__contains__, "?？؟"))
    return asks and _CLAUSES_RE["wonders"].match(text, start) is not None


def supposed(languages: Iterable[Language], text: str, start: int) -> bool:
    """Whether the statement at `start` holds only under a condition.

    Its sentence has an "if" before it, or is in the mood of "would" behind a "suppose".
    """
    near = f"{text[max(0, start - 240) : start]} {text[start : start + 120]}"
    if not any(lang.hinted("supposed", near) or lang.hinted("would", near) for lang in languages):
        return False
    *before, own = _CLAUSES_RE["sentence"].split(text[max(0, start - 240) : start])
    if any(language.search("supposed", own, 0, len(own)) for language in languages):
        return True
    rest = _CLAUSES_RE["sentence"].split(text[start : start + 120], maxsplit=1)[0]
    whole = f"{own} {rest}"
    both = f"{next(filter(None, reversed(before)), '')} {own}"
    return any(
        item.search("would", whole, 0, len(whole)) and item.search("supposes", both, 0, len(both))
        for item in languages
    )


def supposes(text: str) -> bool:
    """Whether the last sentence tells what the answer would be under a condition."""
    last = last_noun(lowered(text))
    return last is not None and supposed(NOUNS[last[1]], text, last[0])


def declines(text: str) -> bool:
    """Whether a sentence says that it cannot answer, in any language."""
    return _CLAUSES_RE.search("declines", lowered(text), 0, len(text)) is not None


def retracts(text: str, end: int) -> bool:
    """Whether a text ends by taking back what it said before `end`: "… just kidding"."""
    tail = text[max(end, len(text) - 60) :].strip(" \n.)*")
    return len(tail) > 1 and _CLAUSES_RE.search("retracts", tail, 0, len(tail)) is not None


_SIGNS = " \t\n*$`\"'("
_ASIAN = "\u3040-\u9fff\uac00-\ud7af\u0e00-\u0e7f"


class _Sides:
    """Words that change a value in front of it (`before`) or behind it (`after`).

    A text in ASCII is searched for ASCII words only.
    """

    def __init__(self, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        self.keys = (before, after)
        self.words = lru_cache(self._words)

    def _words(self, only_ascii: bool) -> tuple[tuple[str, ...], re.Pattern[str], re.Pattern[str]]:
        """Last words of `before`, and the expressions for both sides; made when first needed."""
        keep = str.isascii if only_ascii else bool
        first, then = (list(filter(keep, listed(*keys))) for keys in self.keys)
        form = rf"(?:(?<!\w)|(?<=[{_ASIAN}]))(?:{any_of(first)})[\s*$`\"'(€£]{{0,3}}"
        ends = tuple({word.lower().split()[-1] for word in first})
        behind = re.compile(rf"[\s)*$}}\"'”’]{{0,3}}(?:{any_of(then)})", re.IGNORECASE)
        boxed = r"(?:\\f?boxed\{)?$"
        return ends, re.compile(form + boxed, re.IGNORECASE), behind

    def next_to(self, text: str, start: int, end: int) -> bool:
        """Whether one of the words is beside `text[start:end]`."""
        if end - start == len(text):
            return False
        begin = max(0, start - 32)
        before, after = text[begin:start], text[end : end + 24]
        before = before.removesuffix("{").removesuffix("\\boxed")
        ends, form, behind = self.words(before.isascii() and after.isascii())
        if before.rstrip(_SIGNS).lower().endswith(ends) and form.search(text, begin, start):
            return True
        said = after.strip(" \n)*$}.")
        return said != "" and behind.match(text, end, end + 24) is not None


_DENIED = _Sides(("not", "than"), ("not_after", "wrong"))
_BOUND = _Sides(("bound",), ("beyond",))


# What an answer is wrapped in: JSON and almost-JSON, tags, blocks of thinking, chat templates.
#
# Names of keys and tags, and examples, are in `patterns/envelopes.yaml`.

_ENVELOPE_RE = patterns("envelope_signs")
STRUCK = _ENVELOPE_RE["struck"]


_TABLE = table("envelopes")
#: Rank of a name that holds the answer: the lowest counts; names in `perhaps` rank behind all.
_SURE = tuple(_TABLE["answer"])
NAMES = {
    name: rank
    for rank, name in enumerate(
        chain(_SURE, (noun for item in LANGUAGES[1:] for noun in item.nouns), _TABLE["perhaps"])
    )
}
_PERHAPS = frozenset(_TABLE["perhaps"])
_DRAFTS = frozenset(_TABLE["reasoning"])
_ENVELOPES_MARKUP = frozenset(_TABLE["markup"])
#: What one of them is in every text that has tags which matter: a closing one, or one left open.
_TAGGED = ("</", "[/", "<think", "<ans", "<ANS", "<Ans", "[ANS", "[ans", "[THINK", "<|", "◁")
#: What one of the actions is in every text that has some, in lower case.
_HANDED = ("finish", "submit", "answer(", "answer[", "answer (", "question(")
_STRING = {quote: re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*", re.DOTALL) for quote in "\"'"}
#: Objects and tags that are looked at; quotes that an almost-JSON string may hold.
_MOST, _ENVELOPES_QUOTES = 200, 60
#: A longer tag of an unknown name holds no short answer.
_SHORT = 200


class Held(NamedTuple):
    """An answer in an envelope: `text[start:end]`, and whether the envelope's name is sure.

    `outer` is the span of the whole envelope; `closed` is False where the output ends within.
    """

    start: int
    end: int
    sure: bool
    closed: bool
    outer: tuple[int, int]
    tag: bool = False


_DROPPED = str.maketrans("", "", " \t_-*`:")


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    return name.translate(_DROPPED).lower()


def objects(text: str, start: int, end: int) -> Iterator[Held]:
    """The answers in JSON-like objects; an object without an answer is read as text."""
    at = start
    for _ in range(_MOST):
        opening = _ENVELOPE_RE["object"].search(text, at, end)
        if opening is None:
            return
        fields: list[tuple[int, str, int, int, bool]] = []
        at, closed = opening.end(), False
        while key := _ENVELOPE_RE["key"].match(text, at, end):
            first, last, at, ended = value(text, key.end(), end)
            name = _plain(key[1])
            if name in NAMES and (first < last or ended):
                fields.append((NAMES[name], name, first, last, ended))
            at = _skipped(text, at, end)
            closed = text.startswith("}", at)
            if closed or at >= end:
                break
        if not fields:
            at = opening.end()
            continue
        _, name, first, last, ended = min(reversed(fields), key=itemgetter(0))
        yield Held(first, last, name not in _PERHAPS, ended, (opening.start(), at + closed))
        at = max(at, last)


def _skipped(text: str, at: int, end: int) -> int:
    return _ENVELOPE_RE["between"].match(text, at, end).end()  # type: ignore[union-attr]


def value(text: str, start: int, end: int) -> tuple[int, int, int, bool]:
    """(start, end, position behind, whether it was closed) of the value at `start`."""
    sign = text[start : start + 1]
    if sign in _STRING and sign:
        at = start + 1
        for _ in range(_ENVELOPES_QUOTES):
            stop = _STRING[sign].match(text, at, end).end()  # type: ignore[union-attr]
            if stop >= end or _ENVELOPE_RE["follows"].match(text, stop + 1, end):
                break
            at = stop + 1  # a quote within, as almost-JSON has it
        first, last = start + 1, stop
        if text.startswith('\\"', first) and text.endswith('\\"', first + 2, last):
            first, last = first + 2, last - 2  # "answer": "\\"18\\""
        return first, last, min(end, stop + 1), stop < end
    if sign and sign in "[{(":
        depth = 0
        for match in _ENVELOPE_RE["bracket"].finditer(text, start, min(end, start + 20_000)):
            depth += (match[0] in "[({") - (match[0] in "])}")
            if depth == 0:
                return start, match.end(), match.end(), True
        return start, end, end, False
    stop = _ENVELOPE_RE["bare"].match(text, start, end).end()  # type: ignore[union-attr]
    last = start + len(text[start:stop].rstrip(" ,\t\r"))
    return start, last, stop, stop < end


def elements(text: str, start: int, end: int) -> Iterator[Held]:
    """The answers in tags: `<answer>…</answer>`, `[ANSWER]…[/ANSWER]`, a last `<pick>…</pick>`."""
    opened: list[tuple[str, int, int]] = []
    spans: list[Held] = []
    for tag in _tags(text, start, end):
        name = _plain(tag["name"] or tag["name2"])
        if not (tag["end"] or tag["end2"]):
            opened.append((name, tag.start(), tag.end()))
            continue
        place = next((i for i in range(len(opened) - 1, -1, -1) if opened[i][0] == name), None)
        if place is None:
            continue
        _, outer, first = opened[place]
        del opened[place:]
        if name in NAMES:
            sure = name not in _PERHAPS or name == "solution"
            spans.append(Held(first, tag.start(), sure, True, (outer, tag.end()), True))
        elif name not in _ENVELOPES_MARKUP and name not in _DRAFTS and tag["name"]:
            last = not text[tag.end() : end].strip(" \t\r\n.*`")
            if last and tag.start() - first <= _SHORT:
                spans.append(Held(first, tag.start(), True, True, (outer, tag.end()), True))
    yield from spans
    for name, outer, first in opened[-1:]:  # never closed
        if name in _SURE and (not spans or spans[-1].end < outer):
            stop = text.find("\n", _skipped(text, first, end), end)
            stop = end if stop < 0 else stop
            yield Held(first, stop, True, False, (outer, stop), True)


def named(text: str, name: str) -> tuple[int, int] | None:
    """Span of what the last tag or JSON key of a name holds; None where the text has none."""
    bare = re.escape(name)
    items = list(re.finditer(rf"<\s?{bare}\s?>|\"{bare}\"\s{{0,4}}:\s{{0,4}}", text, re.IGNORECASE))
    if not items:
        return None
    start = items[-1].end()
    if items[-1][0][0] == '"':
        return value(text, start, len(text))[:2]
    stop = re.compile(rf"<\s?/\s?{bare}\s?>", re.IGNORECASE).search(text, start)
    return start, stop.start() if stop else len(text)


def calls(text: str, start: int, end: int) -> Iterator[Held]:
    """The answers that an agent hands in: `Finish[8]`, `final_answer("8")`."""
    opened = "(" in text or "[" in text
    if not opened or not any(map(lowered(text).__contains__, _HANDED)):
        return
    for call in list(_ENVELOPE_RE["calls"].finditer(text, start, end))[-_MOST:]:
        _, stop, _, closed = value(text, call.end(), end)
        first, last = call.end() + 1, stop - closed
        if text[first : first + 1] in _STRING and text[last - 1 : last] == text[first : first + 1]:
            first, last = first + 1, last - 1
        if first < last:
            yield Held(first, last, True, closed, (call.start(), stop), True)


def _tags(text: str, start: int, end: int) -> list[re.Match[str]]:
    tagged = ("<" in text or "[" in text or "◁" in text) and any(map(text.__contains__, _TAGGED))
    return list(_ENVELOPE_RE["tag"].finditer(text, start, end))[-_MOST:] if tagged else []


def thinking(text: str, start: int, end: int) -> Iterator[tuple[str, bool, tuple[int, int]]]:
    """(name, whether it closes, span) of each tag of thinking, however it is bracketed."""
    for tag in _ENVELOPE_RE["tag"].finditer(text, start, end):
        name = _plain(tag["name"] or tag["name2"])
        if name in _DRAFTS:
            yield name, bool(tag["end"] or tag["end2"]), tag.span()


def drafts(text: str, end: int) -> tuple[list[tuple[int, int]], bool]:
    """Spans of thinking that something follows, and whether the output ends within one."""
    spans = [match.span() for match in STRUCK.finditer(text, 0, end)] if "~~" in text else []
    floor = opening_of(text, end)
    if floor:
        spans.append((0, floor))
    opened: list[tuple[str, int]] = []
    for tag in _tags(text, floor, end):
        name = _plain(tag["name"] or tag["name2"])
        if name not in _DRAFTS:
            continue
        if not (tag["end"] or tag["end2"]):
            opened.append((name, tag.start()))
            continue
        if text[tag.end() : end].strip():
            # Templates may open the block before the output begins.
            own = [place for opener, place in opened if opener == name]
            spans.append((own[-1] if own else 0, tag.end()))
        opened = [item for item in opened if item[0] != name]
    within = any(name.startswith("think") and not text[:at].strip() for name, at in opened)
    return spans, within


def unfinished(text: str, *, truncated: bool = False) -> bool:
    """Whether an output ends in its thinking, in an object without an answer, or at its limit."""
    if truncated or drafts(text, len(text))[1]:
        return True
    opening = _ENVELOPE_RE["object"].search(text) if "{" in text else None
    if opening is None or text[: opening.start()].rstrip("` \n\tjsonJSON"):
        return False
    return "}" not in text[opening.end() :]


def opening_of(text: str, end: int) -> int:
    """Index behind the sign with which a chat template opens the answer, else 0."""
    if not (("<" in text and "<|" in text) or ("[" in text and "[/INST]" in text)):
        return 0
    behind = [match.end() for match in _ENVELOPE_RE["opens"].finditer(text, 0, end)]
    return behind[-1] if behind and text[behind[-1] : end].strip() else 0


def after_draft(text: str, end: int) -> int:
    """Index behind the thinking that an output begins with and that something follows; else 0."""
    floor = 0
    for start, stop in sorted(drafts(text, end)[0]):
        if not text[floor:start].strip():
            floor = max(floor, stop)
    return floor


def without_closers(text: str, start: int, end: int) -> int:
    """The end without signs of templates and closing tags."""
    if text[end - 1 : end] not in (">", "]", "▷"):
        return end
    closers = _ENVELOPE_RE["closers"].search(text, max(start, end - 400), end)
    return closers.start() if closers else end


# Where an answer ends and a run-on generation begins.
#
# A base model that was shown `Question: … Answer: …` examples goes on to invent
# the next question and answers that too. The text after the marker is not an
# answer to our question.

_RUN_ON_RE = patterns("run_on")

WORDS = (
    "Question", "QUESTION", "Q", "Problem", "Exercise", "User", "Human", "Instruction",
    "问题", "题目",
)  # fmt: skip
# "Q" is in "Question" and "QUESTION": each text is searched as few times as can be.
_RUN_ON_FIRST = tuple(word for word in WORDS if word == "Q" or not word.startswith("Q"))
_ASCII = tuple(word for word in _RUN_ON_FIRST if word.isascii())
# Bounded repeats that cannot take each other's characters: linear time. One star with a space
# behind it is a bullet ("* Q: the flow rate"), an item of the answer's own.
NEXT = re.compile(
    r"\n[ \t]{0,8}(?!\* )[#*]{0,4} {0,2}(?:"
    + "|".join(WORDS)
    + r")(?: {0,2}#?\d{1,4})?[*]{0,2} {0,2}[:：]"
)


@lru_cache(maxsize=4)
def end_of_answer(text: str) -> int:
    """Index at which the answer to the first question ends (len(text) if it runs to the end).

    A marker before any content is the model repeating the question it was
    asked, and does not end the answer; nor does one that is announced.
    """
    end = len(text)
    if "<" in text or "[" in text:
        end = _first(_RUN_ON_RE["tokens"], text, opening_of(text, end), end)
    colon = ":" in text or "：" in text
    if colon and any(map(text.__contains__, _ASCII if text.isascii() else _RUN_ON_FIRST)):
        end = _first(NEXT, text, 0, end)
    return end


def _first(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    for match in pattern.finditer(text, start, end):
        before = text[start : match.start()]
        if numbered := _RUN_ON_RE["numbered"].fullmatch(match[0]):
            first = before.lstrip(" \t\n*#")
            if first.startswith(f"{numbered[1]}{int(numbered[2]) - 1}"):
                continue  # "Q1: A", "Q2: B": a list
        if before.strip() and not (len(before) < 400 and _RUN_ON_RE["announced"].search(before)):
            return match.start()
    return end


# The answer that a sentence or a line states: "the answer is 8", "Ответ: 8", "8 is the answer".

_STATED_RE = patterns("marks")

#: A stated answer is read no further than this, but for the digits of one long
#: number; longer texts are prose.
LONGEST = 2000
#: A line that only announces the next one is shorter.
_ANNOUNCED = 60
_STATEMENTS_MARKUP = " \t*_#>-`【["


class Committed(NamedTuple):
    """One commitment: `text[start:end]`, and how it was marked.

    `kind` is a row of `commitment.TRUST`: `field`, `key`, `boxed`, `hash`, `final`,
    `label`, `stated` or `bold`. `closed` is False for a box or quote that the
    output ends in the middle of.
    """

    kind: str
    start: int
    end: int
    text: str
    closed: bool = True


def stated(languages: list[Language], text: str, position: int, end: int) -> Committed | None:
    """The answer that a noun states, behind it or in front of it; None where it is denied."""
    result: Committed | None = None
    for language in languages:
        mark = language["stated"].match(text, position, end)
        if mark is None:
            behind = None if result else _turned(language, text, position, languages)
            result = result or (None if behind and language.of_others(text, position) else behind)
            continue
        if language.of_others(text, position):
            continue
        start, stop = line(text, mark.end(), end)
        if "|" in mark[0]:
            start, stop = _cell(text, position, start, end)
        refused = language.hinted("refused", text[start:stop]) and language["refused"]
        if refused and refused.match(text, start, stop):
            return None
        behind = _behind(language, text, mark, (start, stop), languages)
        if behind and (result is None or len(behind.text) < len(result.text)):
            result = behind  # the language that knows the end of the sentence
    return result


def _behind(
    language: Language,
    text: str,
    mark: re.Match[str],
    span: tuple[int, int],
    languages: list[Language],
) -> Committed | None:
    start, stop = span
    position, label = mark.start(), mark.lastgroup in ("label", "head")
    if mark.lastgroup == "head":  # "### Answer" above it
        begin = max(text.rfind(sign, 0, position) for sign in "\n>") + 1
        if not _STATED_RE["heading"].fullmatch(text, begin, position):
            return None
    if not label and _open(languages, text, position, start):
        return None
    reason, other = language.reason_in(text, lowered(text), start + 1, stop)
    if other or (reason < stop and _STATED_RE["clause"].fullmatch(text, start, reason)):
        start, stop = trim(text, start, reason)
    if mark["chosen"] and (over := _STATED_RE["over"].search(text, start, stop)):
        stop = over.start()
    tail = language.search("tail", text, start, stop)
    if tail and tail.start() > start:
        stop = tail.start()
    if start >= stop:
        return None
    kind = "label" if label else "stated"
    if _STATED_RE.search("final", text, max(0, position - 16), mark.end()):
        kind = "final"
    elif label and text[text.rfind("\n", 0, position) + 1 : position].strip(_STATEMENTS_MARKUP):
        kind = "stated"  # "so, answer: 5" within a line
    return Committed(kind, start, stop, text[start:stop])


def _open(languages: list[Language], text: str, position: int, start: int) -> bool:
    """Whether the statement at `position` is a supposition, a doubt or a question."""
    return supposed(languages, text, position) or doubted(text, position) or wonders(text, start)


def _cell(text: str, position: int, start: int, end: int) -> tuple[int, int]:
    """The cell of a table beside the noun; below it, where the noun heads a column."""
    begin, stop = text.rfind("\n", 0, position) + 1, line_end(text, start, end)
    rule = _STATED_RE["rule"].match(text, stop, end)
    if rule is None:
        cut = text.find("|", start, stop)
        return trim(text, start, cut if cut >= 0 else stop)
    column, start = text.count("|", begin, position), rule.end()
    for _ in range(column):
        start = text.find("|", start, end) + 1
    cut = text.find("|", start, end)
    return trim(text, start, cut if cut >= 0 else line_end(text, start, end))


def _turned(
    language: Language, text: str, position: int, languages: list[Language]
) -> Committed | None:
    """ "8 is the answer": a value, and not any word, in front of the noun."""
    begin = max(text.rfind("\n", 0, position) + 1, position - 80)
    mark = language.search("turned", text, begin, position)
    if mark is None or not _STATED_RE["value"].fullmatch(mark["said"]):
        return None
    if language.search("negation", text, mark.end("said"), position):
        return None
    if _open(languages, text, mark.start("said"), position):
        return None
    start, stop = mark.span("said")
    opened = text.rfind("$", text.rfind("\n", 0, start) + 1, stop - 1)
    if text[stop - 1] == "$" and opened >= 0:  # "$x > 5$ is the answer"
        start = opened
    return Committed("stated", start, stop, text[start:stop])


def line(text: str, start: int, end: int) -> tuple[int, int]:
    """What a mark holds: the rest of its line, else the next line that says something."""
    if struck := STRUCK.match(text, start + (text[start : start + 1] == " "), end):
        start = struck.end()
    stop = line_end(text, start, end)
    before = text.rfind("\n", max(0, start - 8), start)
    if before >= 0 and not text[before:start].strip():
        start, stop = _nextline(text, start, end)
    elif stop - start < _ANNOUNCED and _STATED_RE["announces"].fullmatch(text, start, stop):
        start, stop = _nextline(text, stop, end)
    start, stop = trim(text, start, stop)
    return trim(text, start, without_closers(text, start, stop))


def line_end(text: str, start: int, end: int) -> int:
    cut = min(start + LONGEST, end)
    stop = text.find("\n", start, cut)
    return stop if stop >= 0 else _STATED_RE["digits"].match(text, cut, end).end()  # type: ignore[union-attr]


def _nextline(text: str, start: int, end: int) -> tuple[int, int]:
    index = start
    while index < end and text[index] in " \t\r\n*_":
        index += 1
    stop = line_end(text, index, end)
    line = text[index:stop].strip()
    if line in ("\\[", "$$", "\\("):  # a display formula opens on a separate line
        inner = stop + 1
        return inner, line_end(text, inner, end)
    if fenced := _STATED_RE["fenced"].match(text, index, end):
        return fenced.span("said")
    item = _STATED_RE["item"].match(text, index, stop)
    several = item and _STATED_RE["items"].match(text, min(stop + 1, end), end)
    return (item.end() if item and not several else index), stop


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without surrounding white space."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


# Where an output marks an answer: every mark, in the order of the text.
#
# An output may commit more than once: in a JSON field or a tag (`envelopes`), in
# `\boxed{}`, after `####`, on an `Answer:` line, or in a sentence ("the answer is …"), in
# the languages of `patterns/languages.yaml`. Which of them counts is decided in `commitment`.

_MARKS_RE = patterns("marks")

#: Only the last commitments are kept: repetitive outputs state thousands.
MOST = 40
#: Of a longer output only the beginning and the end are searched, so that megabytes
#: of repetition take no longer than this much text.
MOST_READ, HEAD = 400_000, 100_000


#: Keywords of marks that are no nouns → the kind of mark; the expression has the kind's name.
SIGNS = {"boxed": "boxed", "fbox": "boxed", "####": "hash", "ans:": "label", "a:": "label"}
_MARKS_QUOTES = ('"', "'", "\\")
_MARKS_FIRST = (*SIGNS, *ROWS[0]["answer"])


@lru_cache(maxsize=4)
def committed(text: str, *, empty: bool = False, most: int = MOST) -> tuple[Committed, ...]:
    """Commitments in the order of the text; drafts and run-on questions are left out.

    Args:
        empty: Keep empty fields, which answer with an empty text.
        most: How many are kept, the last ones.
    """
    if len(text) > MOST_READ:
        if end_of_answer(text[:HEAD]) < HEAD:
            return committed(text[:HEAD], empty=empty, most=most)
        shift = len(text) - (MOST_READ - HEAD)
        return tuple(
            item._replace(start=item.start + shift, end=item.end + shift)
            for item in committed(text[shift:], empty=empty, most=most)
        )
    alone = _last_stated(text)
    return _all_marks(text, empty)[-most:] if alone is None else (alone,)


def _all_marks(text: str, empty: bool = False) -> tuple[Committed, ...]:
    end = end_of_answer(text)
    spans, within = drafts(text, end)
    held = _held(text, end, spans)
    lower = lowered(text)
    skipped = [*spans, *(item.outer for item in held)]
    keywords = (*_MARKS_FIRST, *OTHER.of(lower), *chosen(lower))
    results = list(_stated(text, occurrences(lower, keywords, end), end, skipped))
    if not results and not held:
        results = list(_stated(text, occurrences(lower, foreign(lower), end), end, skipped))
    if within:  # what is stated in an unfinished draft is no answer
        results = [item for item in results if item.kind in ("boxed", "hash")]
    for start, stop, sure, closed, _, tag in held:
        if empty or start < stop:
            kind = "field" if sure else "key"
            results.append(Committed(kind, start, stop, text[start:stop], closed or tag))
    results.sort(key=lambda item: item.start)
    last = None if within else _boldline(text, end)
    if last and (not results or results[-1].end < last.start):
        results.append(last)
    return tuple(results)


#: A longer last sentence is read with what precedes it; and signs that change how it is read.
_SENTENCE, _CHANGES = 60, ("*", "_", "|", "~", "<", "{", "[", "?")
#: One of these is in a text in lower case that marks an answer in English: most have none.
_OPENING = {*_MARKS_FIRST, *ROWS[0]["choose"], *_HANDED, "~~", *map(str.lower, _TAGGED)}
_OPEN = [word for word in _OPENING if sum(map(word.__contains__, _OPENING)) == 1]


def _last_stated(text: str) -> Committed | None:
    """The one mark of a text that only its last sentence has; None where others may be.

    Most outputs end with "The answer is (C).": such sentences are read once each.
    """
    last = len(text.rstrip()) - 1
    start = max(text.rfind(". ", 0, last), text.rfind("\n", 0, last)) + 1
    if not start < len(text) <= start + _SENTENCE or end_of_answer(text) < len(text):
        return None
    head = text[:start].lower()
    if any(map(head.__contains__, _OPEN)) or OTHER.of(head):
        return None
    if _STATED_RE.hinted("final", head[-16:]):
        return None
    if "{" in head and _ENVELOPE_RE["object"].search(head):
        return None
    mark = _sentence_states(text[start:])
    return mark and Committed(mark[0], mark[1] + start, mark[2] + start, *mark[3:])


@lru_cache(maxsize=16384)
def _sentence_states(sentence: str) -> Committed | None:
    """What a sentence states with nothing else, whatever precedes it."""
    lower = sentence.lower()
    if not lower.isascii() or any(map(lower.__contains__, _CHANGES)):
        return None
    if any(language.hinted("would", lower) for language in LANGUAGES):
        return None  # what precedes it may be a supposition
    marks = _all_marks(sentence) if not lower.lstrip().startswith(ENGLISH.nouns) else ()
    return marks[0] if len(marks) == 1 and marks[0].kind in ("stated", "final") else None


def _held(text: str, end: int, spans: list[tuple[int, int]]) -> list[Held]:
    """Answers in envelopes, outside drafts and outside each other."""
    every = [*(objects(text, 0, end) if "{" in text else ()), *elements(text, 0, end)]
    every += calls(text, 0, end)
    if len(tags := [entry.outer for entry in every if entry.tag]) > 1:
        # of tags within tags the inner one holds the answer
        every = [
            entry
            for entry in every
            if not (entry.tag and any(entry.start <= a < b <= entry.end for a, b in tags))
        ]
    every.sort(key=lambda entry: (entry.outer[0], -entry.outer[1]))
    held: list[Held] = []
    for item in every:
        start, stop = trim(text, item.start, item.end)
        inside = held and item.outer[0] < held[-1].outer[1]
        if not inside and not _lies_in(start, spans):
            inner = _inner(text, start, stop) if item.tag else None
            if inner is not None:  # "<answer>So the answer is 5.</answer>"
                start, stop = inner.start, inner.end
            held.append(item._replace(start=start, end=stop))
    return held


def _inner(text: str, start: int, stop: int) -> Committed | None:
    """The last mark within a tag."""
    lower = lowered(text)
    keywords = (*_MARKS_FIRST, *foreign(lower), *OTHER.of(lower))
    matches = list(_stated(text, occurrences(lower, keywords, stop), stop, [(0, start)]))
    return matches[-1] if matches and matches[-1].kind != "field" else None


def _lies_in(position: int, spans: list[tuple[int, int]]) -> bool:
    for start, end in spans:  # noqa: SIM110  (any() takes three times as long)
        if start <= position < end:
            return True
    return False


def _stated(
    text: str, places: list[tuple[int, str]], end: int, skipped: list[tuple[int, int]]
) -> Iterator[Committed]:
    """Marks that a keyword opens: boxes, signs, and nouns that name the answer."""
    floor = 0
    for position, keyword in places:
        if position < floor or not _starts_word(text, position, keyword):
            continue
        stop = end
        if skipped:
            if _lies_in(position, skipped):
                continue
            later = (start for start, _ in skipped if start > position and text[start] != "~")
            stop = min(later, default=end)
        if keyword in SIGNS:
            item = _signed(SIGNS[keyword], text, position, stop)
        elif keyword == "answer" and text[position + 6 : position + 7] in _MARKS_QUOTES:
            item = _signed("field", text, position, stop)
        else:
            item = stated(NOUNS[keyword], text, position, stop)
        if item is not None and not _MARKS_RE["fence"].fullmatch(item.text):
            yield item
            # A box is read as a whole; sentences may hold a further mark.
            floor = item.end if item.kind == "boxed" else max(item.start, position + 1)


def _signed(kind: str, text: str, position: int, end: int) -> Committed | None:
    mark = _MARKS_RE[kind].match(text, position, end)
    if mark is None:
        return None
    if kind == "field":  # of an object that is broken, or that is within a string
        span = mark.span("said") if mark["said"] else value(text, mark.end(), end)[:2]
        start, stop = trim(text, *span)
        return Committed("field", start, stop, text[start:stop]) if start < stop else None
    if kind == "boxed":
        start, stop, closed = _box(text, mark.end(), end)
        would = _MARKS_RE["would"].search(text, max(0, position - 40), position)
        opening = position - text.startswith("\\", position - 1)
        if start == stop or (would and supposed((ENGLISH,), text, position)):
            return None
        if doubted(text, opening) or denied(text, opening, stop):
            return None
        return Committed(kind, start, stop, text[start:stop], closed)
    start, stop = line(text, mark.end(), end)
    if start == stop:
        return None
    return Committed(kind, start, stop, text[start:stop])


def _box(text: str, start: int, end: int) -> tuple[int, int, bool]:
    if text[start - 1] == " ":  # \\boxed 5
        return start, start + 1, True
    close = closing_brace(text, start, end)
    stop = close if close is not None else line_end(text, start, end)
    return *trim(text, start, stop), close is not None


def _boldline(text: str, end: int) -> Committed | None:
    tail = text[max(0, end - 400) : end].rstrip()
    if "**" not in tail and "__" not in tail:
        return None
    stop = len(tail) + max(0, end - 400)
    begin = text.rfind("\n", 0, stop) + 1
    line = _MARKS_RE["bold"].fullmatch(text, begin, stop)
    # "**Note: …**" and a heading are bold, and no answers.
    if line is None or begin == 0 or ":" in line["said"]:
        return None
    return Committed("bold", line.start("said"), line.end("said"), line["said"])


def _starts_word(text: str, position: int, keyword: str) -> bool:
    before = text[position - 1 : position]
    if keyword == "a:":  # only at the beginning of a line: "A: 45"
        line = text[max(0, position - 8) : position].rpartition("\n")[2]
        return text[position] == "A" and not line.strip(" \t*_")
    # In a script without spaces any sign may precede.
    joined = (
        before.isalnum() if keyword.isascii() else before.islower() and text[position].islower()
    )
    return not joined


def closing_brace(text: str, start: int, end: int) -> int | None:
    """Index of the brace that closes the one before `start`; None when it never closes."""
    first = text.find("}", start, min(end, start + 20_000))
    if first < 0 or text.find("{", start, first) < 0:
        return first if first >= 0 else None
    depth = 1
    for match in _MARKS_RE["brace"].finditer(text, start, min(end, start + LONGEST)):
        depth += (match[0] == "{") - (match[0] == "}")
        if depth == 0:
            return match.start()
    return None


# What was answered: of all that an output marks as its answer, the one that counts.
#
# Every scorer asks here. `marks` finds the marks, `TRUST` says how far each kind
# is believed, and `settle` applies it; a scorer brings its own reading of a mark's
# text, because a mark that it cannot read does not count.

_COMMIT_RE = patterns("commitment")
CORRECTS = _COMMIT_RE["corrects"]
CHANGES = _COMMIT_RE["changes"]

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Trust:
    """A kind of mark.

    `firm`: yields only to a later firm mark, a later `Answer:` line, or a later
    answer that says it corrects. `overrides`: counts against an earlier firm one.
    """

    kind: str
    firm: bool
    overrides: bool
    reason: str


#: The order of trust. Within a level the last mark counts: later answers correct earlier ones.
TRUST = tuple(Trust(**row) for row in table("trust"))
_FIRM = frozenset(row.kind for row in TRUST if row.firm)
_OVERRIDES = frozenset(row.kind for row in TRUST if row.overrides)

#: A correction is short; a longer text is another sentence that merely follows.
SHORT = 160


@dataclass(frozen=True, slots=True)
class SettledAnswer:
    """The index of the mark that counts, and whether others contradict it."""

    index: int
    conflict: bool


def settle(
    marks: Sequence[tuple[Committed, Value]], text: str, same: Callable[[Value, Value], bool]
) -> SettledAnswer:
    """Which of the readable marks counts (at least one).

    Args:
        marks: Marks in the order of the text, each with the scorer's reading.
        same: Whether two readings are one answer.
    """
    if len(marks) == 1:
        return SettledAnswer(0, False)
    firm = [i for i, (item, _) in enumerate(marks) if item.kind in _FIRM]
    chosen = firm[-1] if firm else len(marks) - 1
    for index in range(chosen + 1, len(marks)) if firm else ():
        earlier, mark = marks[chosen][0], marks[index][0]
        corrects = len(mark.text) <= SHORT and CORRECTS.search(text, earlier.end, mark.start)
        if mark.kind in _OVERRIDES or corrects or _concludes(earlier, mark, text):
            chosen = index
    counted = [
        (item, value)
        for index, (item, value) in enumerate(marks)
        if index <= chosen or (len(item.text) <= SHORT and _says_answer(item, text))
    ]
    return SettledAnswer(chosen, _contradicts(counted, text, same))


def _concludes(earlier: Committed, mark: Committed, text: str) -> bool:
    """Whether a statement ends the output, as the result of working that came after `earlier`.

    Such an answer is short, is drawn in as many words, and follows new equations.
    """
    return (
        mark.kind == "stated"
        and len(mark.text) <= 40
        and not text[mark.end :].strip(" \t\r\n.*`")
        and "=" in text[earlier.end : mark.start]
        and bool(_COMMIT_RE["so"].search(text, max(0, mark.start - 60), mark.start))
    )


def _says_answer(mark: Committed, text: str) -> bool:
    return bool(_COMMIT_RE["answer"].search(text, max(0, mark.start - 60), mark.start))


def _contradicts(
    marks: Sequence[tuple[Committed, Value]], text: str, same: Callable[[Value, Value], bool]
) -> bool:
    """Whether differing answers are side by side without a word of correction between."""
    return any(
        not same(item, other) and not CHANGES.search(text, first.start, second.start)
        for (first, item), (second, other) in pairwise(marks[-8:])
    )


#: A line without an end mark is a short answer up to this length where it is all there is.
_ALONE = 60


def looks_cut(text: str) -> bool:
    """Whether an unmarked text ends within a sentence: no end mark, no result, no short answer."""
    line, alone = text.rstrip().rpartition("\n")[2], "\n" not in text.strip()
    if not line or dangles(line):
        return True
    if (alone and len(line) <= _ALONE) or _COMMIT_RE["result"].search(line):
        return False
    return (line[-1].isalnum() or line[-1] in "-−–—,;+*/\\=(<[&>×÷^") and not line.endswith("**")


def dangles(text: str) -> bool:
    """Whether a text ends in a word or sign that no sentence ends with."""
    return _COMMIT_RE["dangling"].search(text, max(0, len(text) - 40)) is not None


def cut_within(mark: Committed, text: str, *, truncated: bool) -> bool:
    """Whether the mark's own text was cut by the end of the output: "The answer is 1"."""
    ends = not text[mark.end :].strip(" \t\r\n$*")
    return ends and ((truncated and mark.kind != "field") or not mark.closed)


#: Characters between two adjacent boxes at most.
NEAR = 90


def adjacent(marks: Sequence[Committed], text: str, index: int) -> list[Committed]:
    """The run of boxes that ends with `marks[index]`, with joining words at most between them.

    "The solutions are \\boxed{3} and \\boxed{4}." answers a list; "\\boxed{3} …
    Correction: … \\boxed{4}" does not.
    """
    run = [marks[index]]
    for mark in reversed(marks[:index]):
        if not _joined(mark, run[0], text):
            break
        run.insert(0, mark)
    return run


def _joined(mark: Committed, other: Committed, text: str) -> bool:
    if mark.kind != "boxed" or other.kind != "boxed":
        return False
    gap = text[mark.end : other.start]
    return len(gap) <= NEAR and not _COMMIT_RE["apart"].search(gap)


# The short answer of a long output, for scorers that compare words.
#
# A marked answer (`Answer: …`, `\boxed{}`, a JSON field, a tag, `####`) counts; of
# several the one that `commitment` settles on. An output without any mark is the
# answer itself, as a whole: guessing a part of it would be the scorer's answer,
# not the model's.

_SHORT_RE = patterns("short_answer")

#: An unmarked output longer than this is not a short answer.
LONGEST_WHOLE = 20_000
#: Words of a longer text are not compared: 200,000 characters are a book.
LONGEST_TEXT = 200_000
_SHORT_QUOTES = "\"'`*_“”‘’「」《》$ \t"


def short_answer(
    output: str, *, truncated: bool = False
) -> tuple[str, tuple[int, int], bool] | None:
    """(answer, span, conflict), or None for an empty, endless or cut-off output.

    `conflict`: marked answers differ.
    """
    marked = [
        (item, clean(item.text))
        for item in committed(output)
        if item.kind not in ("stated", "final") or len(item.text) <= 120 or _is_list(item.text)
    ]
    if marked:
        settled = settle(marked, output, lambda item, other: item == other)
        last = marked[settled.index][0]
        if cut_within(last, output, truncated=truncated):
            return None
        start, end = _unquoted(output, *_whole_list(output, last))
        if start < end:
            return clean(output[start:end]), (start, end), settled.conflict
    if len(output) > MOST_READ or unfinished(output, truncated=truncated):
        return None
    stop = end_of_answer(output)
    start, end = _unquoted(output, after_draft(output, stop), stop)
    if not start < end <= start + LONGEST_WHOLE:
        return None
    return clean(output[start:end]), (start, end), False


def whole_answer(output: str) -> tuple[str, tuple[int, int], bool] | None:
    """The text that is the answer: a field, what follows `Answer:`, else the output.

    Without surrounding space, drafts and run-on questions; of a text longer than
    `LONGEST_TEXT` the beginning.
    """
    end = end_of_answer(output[: 2 * MOST_READ])
    fields = [item for item in committed(output) if item.kind in ("field", "boxed")]
    if fields:
        start, end = fields[-1].start, fields[-1].end
    else:
        start = after_draft(output, end)
        announced = [m.end() for m in _SHORT_RE["announced"].finditer(output, start, end)]
        if announced and output[announced[-1] : end].strip():
            start = announced[-1]
    start, end = trim(output, start, min(end, start + LONGEST_TEXT))
    return (output[start:end], (start, end), False) if start < end else None


def clean(text: str) -> str:
    """The text without LaTeX text wrappers, quotes, markdown and a closing full stop."""
    if len(_SHORT_RE["item"].findall(text)) > 1 and _SHORT_RE["item"].match(text):
        text = _SHORT_RE["item"].sub(", ", text).strip(", ")
    text = _SHORT_RE["text"].sub(r"\1", text).strip(_SHORT_QUOTES)
    return text[:-1].rstrip(_SHORT_QUOTES) if text.endswith((".", "。")) else text


def _is_list(text: str) -> bool:
    """Whether a long text lists words or short items, and is no sentence."""
    if _SHORT_RE["sentence"].search(text):
        return False
    items = _SHORT_RE["separator"].split(text)
    if len(items) > 3:
        return all(len(item.split()) <= 5 for item in items)
    return not _SHORT_RE["function"].search(text)


def _whole_list(output: str, mark: Committed) -> tuple[int, int]:
    """The span of a mark, of a list of items, one a line, where its text is the first of them."""
    begin = output.rfind("\n", 0, mark.start) + 1
    if mark.kind in ("stated", "final", "label") and begin:
        for kind in ("items", "lines"):
            if (match := _SHORT_RE[kind].match(output, begin)) and match.end() > mark.end:
                return begin, match.end()
    return mark.start, mark.end


def _unquoted(text: str, start: int, end: int) -> tuple[int, int]:
    start, end = trim(text, start, end)
    while start < end and text[start] in _SHORT_QUOTES:
        start += 1
    while end > start and text[end - 1] in _SHORT_QUOTES:
        end -= 1
    return start, end


# Answers whose value is plain: one numeral, one letter. Everything else is for `read`.

# Plain numerals; more decimals than five are left to the scorer, which may round.
_NUMERAL = re.compile(r"(-?)(\d{1,30}|[1-9]\d{0,2}(?:,\d{3}){1,9})(\.\d{1,5})?", re.ASCII)
_LETTER = re.compile(r"[A-Z]")


def numeral(answer: str) -> Hashable | None:
    """A numeral's value.

    Two plain numerals are one answer to `numeric` and `math` exactly when their
    values are equal; fractions, units and LaTeX are not plain.
    """
    match = _NUMERAL.fullmatch(answer)
    if match is None:
        return None
    sign, whole, decimals = match.groups()
    return Decimal(f"{sign}{whole.replace(',', '')}{decimals or ''}")


def amount(answer: str) -> Hashable | None:
    """A numeral's value, with or without a dollar sign."""
    return numeral(answer.removeprefix("$"))


def option(answer: str) -> Hashable | None:
    """An option's letter."""
    return answer if _LETTER.fullmatch(answer) else None
