"""`mcq`: the option an output commits to, by letter or by content.

Read are, in this order: the marks that every scorer reads (`reading.committed`: "the answer is
(C)", a box, an `Answer: C` line, a field), where a mark may give the text of an option in place of
its letter; an output or a last line that is nothing but an option; and an option that the last
sentences choose in plain words ("So D.", "not B but C"). Which of several marks counts is decided
as for every scorer. One statement that names several options where one is asked for is wrong and
contested, and its extracted answer is empty. An option that does not exist is wrong.

A letter that is merely the last one in the text is never taken: that is guessing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from routeyard.pipelines.label.scorers.graded import normalise
from routeyard.pipelines.label.scorers.languages import worded
from routeyard.pipelines.label.scorers.reading import (
    Committed,
    after_draft,
    committed,
    dangles,
    declines,
    doubted,
    end_of_answer,
    option,
    settle,
    supposes,
    unfinished,
)
from routeyard.pipelines.label.scorers.scorer import (
    LETTERS,
    MARK,
    Scorer,
    ScoreResult,
    ScoringInput,
    without_marks,
)

_RE = worded("mcq")

#: Letter → normalised text of each option.
Options = Mapping[str, str]
#: How many letters count when a query lists no choices (MMLU-Pro has up to ten).
DEFAULT_LETTERS = 10
#: Marks that hold nothing but the answer, and those that nothing follows but the answer.
_WHOLE = frozenset({"field", "key", "boxed", "hash"})
_SURE = frozenset({"field", "hash", "final", "label"})
#: A text longer than this is searched in its last sentences only.
_SHORT = 300
#: A text that puts more letters in front of something than this goes through its options.
_MOST_SPELLED = 12
#: Letters of other alphabets that look the same, as single letters ("Ответ: С").
_STRANGE = "АВСЕНＡＢＣＤＥＦＧＨＩＪ"
_ALIKE = str.maketrans(_STRANGE, "ABCEHABCDEFGHIJ")


class NamedOption(NamedTuple):
    """The options `letters` that a text names at `text[start:end]`, and how."""

    letters: str
    start: int
    end: int
    how: str


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Reads the option of `output` and compares it with the reference letters."""
    choices = without_marks(asked.choices)
    wanted = {letter for text in asked.references if (letter := letter_of(text, asked.choices))}
    if not wanted:
        return ScoreResult("error", reason=f"no reference is an option: {list(asked.references)!r}")
    allowed = LETTERS[: len(choices) or max(DEFAULT_LETTERS, *map(LETTERS.index, wanted))]
    text = _latin(output)
    marks = [item for item in committed(text) if item.kind != "bold" and not _lists_a(text, item)]
    held = ((mark, _held(mark, text, allowed, choices)) for mark in marks)
    named = [(mark, item) for mark, item in held if item is not None]
    differing: list[str] = []
    if named:
        last = named[0][1]
        if len(named) > 1:
            last, differing = _settled(named, text, allowed, choices)
        if _RE["none"].search(text, last.end):
            return ScoreResult("abstain", reason="says that it names no option")
    else:
        cut = unfinished(text, truncated=asked.truncated)
        sure = any(mark.kind in _SURE for mark in marks)
        unmarked = None if cut else _unmarked(text, allowed, choices, sure)
        if unmarked is None:
            why = "the marked answer is not an option" if sure else "no option is named"
            return ScoreResult("abstain", reason=why)
        last = unmarked
    if _contradicted(text, last, choices):
        why = f"{last.how}: {last.letters} with the text of another option"
        return ScoreResult("abstain", reason=why, conflict=True)
    return _compared(last, wanted, differing)


def _settled(
    named: list[tuple[Committed, NamedOption]], text: str, allowed: str, choices: tuple[str, ...]
) -> tuple[NamedOption, list[str]]:
    """Which of several options counts; and the letters of all, where they contradict each other."""
    named = [pair for pair in named if {*pair[1].letters} <= {*allowed}] or named
    end = _next_options(text, named[0][1].end, choices)
    # A word that corrects an option comes behind it.
    named = [(mark._replace(start=item.end), item) for mark, item in named if item.end <= end]
    settled = settle(named, text, lambda item, other: not {*item[0]}.isdisjoint(other[0]))
    last = named[settled.index][1]
    summary = _RE["summary"].search(text, named[0][1].end)
    if summary and summary.start() < last.start:
        last = [item for _, item in named if item.start < summary.start()][-1]
    return last, [item.letters for _, item in named] if settled.conflict else []


def _next_options(text: str, start: int, choices: tuple[str, ...]) -> int:
    """Where, behind an answer, an invented next question lists its options; else the end."""
    ours = list(_options(choices).values())[:2]
    for match in _RE["list"].finditer(text, start) if len(ours) == 2 else ():
        said = zip(map(normalise, match.groups()), ours, strict=True)
        if not any(a.startswith(b) or b.startswith(a) for a, b in said):
            return match.start()
    return len(text)


def _compared(last: NamedOption, wanted: set[str], differing: list[str]) -> ScoreResult:
    """The option that counts against the reference letters; `differing` ones are named as well."""
    reason, conflict = f"{last.how}: {last.letters}", bool(differing)
    extracted: str | None = last.letters
    if len(last.letters) > 1:
        reason = f"{last.how}: names several options, {last.letters}"
        if len(wanted) == 1:  # contested: no one option was read
            conflict, extracted = True, None
    elif differing:
        reason += f"; commits to several options: {', '.join(dict.fromkeys(differing))}"
    right = {*last.letters} == wanted or last.letters in wanted
    return ScoreResult.of(right, extracted, (last.start, last.end), reason, conflict)


def _latin(text: str) -> str:
    """The text with letters of options that only look Latin made so: "Ответ: С"."""
    if text.isascii() or not any(map(text.__contains__, _STRANGE)):
        return text
    return _RE["strange"].sub(lambda m: m[0].translate(_ALIKE), text)


def _contradicted(text: str, named: NamedOption, choices: tuple[str, ...]) -> bool:
    """Whether the text of another option follows a letter: "A. No", where A is "Yes"."""
    behind = _RE["label"].match(text, named.end, named.end + 8)
    if behind is None:
        return False
    sentence = _RE["sentence_of"].match(text, behind.end())[0]  # type: ignore[index]
    said = sentence and normalise(sentence)
    if not said:
        return False
    options = _options(choices)
    return said != options.get(named.letters) and said in options.values()


_normal = lru_cache(maxsize=65536)(normalise)


@lru_cache(maxsize=65536)
def _options(choices: tuple[str, ...]) -> Options:
    return dict(zip(LETTERS, map(_normal, choices), strict=False))


def _content(letter: str, choices: tuple[str, ...]) -> str:
    """The normalised text of one option; without choices the empty one."""
    place = LETTERS.index(letter)
    return _normal(choices[place]) if place < len(choices) else ""


@lru_cache(maxsize=65536)
def letter_of(reference: str, choices: tuple[str, ...]) -> str | None:
    """Letter of a reference given as letter, `(B)`, or text of one choice, with its mark or
    without; None of any other.
    """
    bare = reference.strip().strip("().* ").upper()
    if len(bare) == 1 and bare in LETTERS[: len(choices) or 26]:
        return bare
    mark, choices = MARK.match(reference), without_marks(choices)
    if mark and option_of(reference[mark.end() :], choices) == mark[1].upper():
        return mark[1].upper()
    return option_of(reference, choices)


# The option that a mark, a line or an output is: its letter, several letters, or its text.


def _lists_a(text: str, mark: Committed) -> bool:
    """Whether "A:" in front of a mark is option A and not the abbreviation of "answer"."""
    if mark.kind != "label":
        return False
    listed = _RE["option_a"].search(text, max(0, mark.start - 8), mark.start) is not None
    return listed and not _RE["lone"].match(text, mark.start)


def _held(mark: Committed, text: str, allowed: str, choices: tuple[str, ...]) -> NamedOption | None:
    """The option that a mark holds; one that does not exist, where it holds nothing else."""
    if letters := _letters(mark.text, allowed):
        start = mark.start + mark.text.index(letters[0])
        return NamedOption(letters, start, start + len(letters), mark.kind)
    if _RE["not"].match(text, mark.start):
        return None
    stop = min(len(text), mark.end + 1) if mark.kind in _WHOLE else len(text)
    named = _lettered(text, mark.start, stop, allowed, choices, mark.kind)
    named = named or _by_content(text, mark.start, stop, choices, mark.kind)
    letter = _RE["only"].fullmatch(mark.text) if named is None and choices else None
    if letter is None or letter[1] in allowed:
        return named
    if any(content.startswith(letter[1].lower()) for content in _options(choices).values()):
        return None  # "T" for "True"
    start = mark.start + letter.start(1)
    return NamedOption(letter[1], start, start + 1, f"{mark.kind}, no such option")


@lru_cache(maxsize=1024)
def _letters(text: str, allowed: str) -> str:
    """The letters that a text is, where it is nothing else: "(C).", "AC", "DDDDD"."""
    said = text.strip(" .*`\"'()[]（）$")
    again = _RE["repeated"].fullmatch(said)  # as some prompts ask
    letters = again[1] if again else said
    return letters if {*letters} <= {*allowed} and list(letters) == sorted({*letters}) else ""


def _lettered(
    text: str, start: int, end: int, allowed: str, choices: tuple[str, ...], how: str
) -> NamedOption | None:
    """The letters that a statement begins with, where they are no word of a sentence."""
    found = _RE["option"].match(text, start, min(end, start + 300))
    if found is None:
        return None
    raw, (start, stop) = found["letters"], found.span("letters")
    if raw.islower() and choices and (content := _by_content(text, start - 1, end, choices, how)):
        return content  # "(a) 0.012, (b) 0.986" are the parts of an option's text
    glued = len(raw) > 1 and raw.isascii() and raw.isalpha()  # "(BFI)": three options
    letters = "".join(dict.fromkeys(raw if glued else _RE["letter"].findall(raw))).upper()
    if len(letters) == 1:
        letters += _further(text, start, stop, letters, choices)
    if not letters or not {*letters} <= {*allowed}:
        return None
    bracketed = bool(found["open"].strip()) or found["close"][:1] in tuple(")）]}*")
    rest = text[stop : min(end, stop + 80)].lstrip(" \t")
    if not bracketed and rest[:1].isalnum() and _in_prose(raw, rest, _content(letters[0], choices)):
        return None  # "is a matter of …", "is I think", "is C major"
    if raw.islower() and not (bracketed or how in _WHOLE) and rest[:1] not in ("", *".\n,:"):
        return None
    return NamedOption(letters, start, stop, how)


def _further(text: str, start: int, stop: int, letter: str, choices: tuple[str, ...]) -> str:
    """Letters that a list's next items begin with, or that "and" joins behind an option's text."""
    found, at = "", stop
    if _RE["in_list"].search(text, max(0, start - 12), start):
        while item := _RE["next_item"].match(text, at):
            found, at = found + item["letter"], item.end()
    for joined in _RE["joined"].finditer(text, stop, stop + 400) if choices else ():
        if normalise(text[stop : joined.start()]) == _content(letter, choices):
            found += joined["letter"]
    return "".join(dict.fromkeys(found.replace(letter, "")))


def _in_prose(raw: str, rest: str, content: str) -> bool:
    """Whether a word follows a bare letter that neither goes on with its option nor explains it."""
    follows = normalise(rest)
    if content and (follows.startswith(content[:12]) or content.startswith(follows[:12])):
        return False
    return raw in "aAiI" or raw.islower() or not _RE["connects"].match(rest)


def _by_content(
    text: str, start: int, end: int, choices: tuple[str, ...], how: str
) -> NamedOption | None:
    """The option whose text a statement repeats, when exactly one is repeated."""
    if not choices:
        return None
    start = _RE["skip"].match(text, start, min(end, start + 40)).end()  # type: ignore[union-attr]
    stop = text.find("\n", start, min(end, start + 400))
    stop = min(end, start + 400) if stop < 0 else stop
    letter = _matching(text[start:stop], choices)
    return NamedOption(letter, start, stop, how + ", by content") if letter else None


def _most(choices: tuple[str, ...]) -> int:
    """Signs within which a text can repeat an option, with markup around it."""
    return 3 * max(map(len, choices), default=0) + 60


def _matching(text: str, choices: tuple[str, ...]) -> str | None:
    """Letter of the option that a text equals, else of the longest one that opens it."""
    most = _most(choices)
    said = normalise(text if len(text) <= most else text[:most].rsplit(None, 1)[0])
    if said in _options(choices).values():
        return option_of(text, choices)
    opening = [
        (len(content), letter)
        for letter, content in _options(choices).items()
        if len(content) > 3 and (said + " ").startswith(content + " ")
    ]
    if not opening and (clause := _RE["clause"].match(text)):
        return option_of(clause[0], choices)
    longest = max(opening, default=(0, ""))
    return longest[1] if [size for size, _ in opening].count(longest[0]) == 1 else None


def option_of(text: str, choices: tuple[str, ...]) -> str | None:
    """Letter of the one option that a text equals."""
    if len(text) > _most(choices):
        return None
    said = normalise(text)
    least = max(1, len(said) // 2)  # a normal form is hardly longer
    long = [item for item in zip(LETTERS, choices, strict=False) if len(item[1]) >= least]
    exact = [letter for letter, choice in long if _normal(choice) == said != ""]
    return exact[0] if len(exact) == 1 else None


def _unmarked(
    text: str, allowed: str, choices: tuple[str, ...], marked: bool
) -> NamedOption | None:
    """The option that an output, its last line or, unmarked, its last sentences are or choose."""
    body = text[: end_of_answer(text)].rstrip()
    start = after_draft(body, len(body))
    start += len(body[start:]) - len(body[start:].lstrip())
    line, how = body.rfind("\n", start) + 1, "last line"
    if line <= start:
        named = _RE["named"].match(text, start, len(body))
        line, how = named.end() if named else start, "whole output"
    # Not of a line that is long, or within a formula that was cut.
    short = len(body) - line <= 600 and not body.count("$$", start, line) % 2
    bare = _bare(body, line, allowed, choices, how) if short else None
    if bare or marked or declines(body[-200:]) or dangles(text):
        return bare
    if spelled := _spelled_out(body, start, choices):
        return spelled
    if supposes(text):
        return None
    plain = plainly(body, allowed, start)
    return NamedOption(*plain, "plain statement") if plain else None


def _spelled_out(body: str, start: int, choices: tuple[str, ...]) -> NamedOption | None:
    """The one option that a text names by its letter and its whole text, and does not refuse."""
    result: dict[str, NamedOption] = {}
    for count, match in enumerate(_RE["before_content"].finditer(body, start)):
        letter, end = match["letter"], match.end()
        content = _content(letter, choices)
        said = normalise(body[end : end + 2 * len(content) + 60]) if len(content) > 3 else ""
        if not (said + " ").startswith(content + " ") or not said:
            continue
        after = end + len(content)
        near = ((max(0, match.start() - 40), match.start()), (after, after + 60))
        if count >= _MOST_SPELLED or any(_RE["refused"].search(body, *span) for span in near):
            return None
        result[letter] = NamedOption(letter, *match.span("letter"), "letter and text")
    return next(iter(result.values())) if len(result) == 1 else None


def _bare(
    body: str, line: int, allowed: str, choices: tuple[str, ...], how: str
) -> NamedOption | None:
    """The option that the last line of an output is: a letter, its text, or both."""
    before = _RE["bare"].match(body, body.rfind("\n", 0, max(0, line - 1)) + 1, line)
    bare = _RE["bare"].match(body, line)
    letter = bare["letter"].upper() if bare else ""
    if bare and letter in allowed:
        if before and line and letter == chr(ord(before["letter"].upper()) + 1):
            return None  # the options repeated, one a line
        rest, content = normalise(body[bare.end() :]), _content(letter, choices)
        goes_on = rest.startswith(content) if content else False
        goes_on |= (
            how == "whole output" and bare["letter"].isupper() and bool(bare["close"].strip())
        )
        denied = _RE["denied"].match(rest.removeprefix(content).lstrip())
        if not rest or (goes_on and not denied and not _RE["part_b"].search(body, bare.end())):
            return NamedOption(letter, *bare.span("letter"), how)
    said, reason = body[line:], _RE["reason"].search(body, line)
    repeated = option_of(said, choices)
    if repeated is None and reason:  # "Cherry, because it is red."
        repeated = option_of(body[line : reason.start()], choices)
        rest = f" {normalise(body[reason.end() :])} "
        if any(f" {content} " in rest for content in _options(choices).values()):
            return None
    return NamedOption(repeated, line, len(body), how + ", by content") if repeated else None


# An option named in plain words: "So D.", "not B but C", "A or C, but most likely C", "Es la C".
#
# Only asked where an output marks no answer. Every option letter that is alone is a mention; it is
# rejected ("not B", "A and B are wrong"), chosen ("so D", "C fits best") or bare. One chosen option
# is the answer; else the only one that is not rejected, when its surroundings show that it is an
# option at all ("vitamin C" does not).


#: An option's letter, its place, and whether a word chooses it or it is in brackets.
_Mention = tuple[str, int, int, bool]


def plainly(text: str, allowed: str, start: int = 0) -> tuple[str, int, int] | None:
    """(letters, start, end) of the option that `text[start:]` names; None for none.

    Of a text that is not short the last sentences are read.

    Two letters mean that the text leaves two options open.
    """
    body = text.rstrip()
    whole = len(body) - start <= _SHORT
    if not whole:
        sentences = list(_RE["sentence"].finditer(body, len(body) - _SHORT, len(body) - 1))
        if not sentences:
            return None
        start = sentences[-1].end()
    chosen, bare, rejected = _mentions(body, start, allowed, whole)
    either = _RE["either"].search(body, start) if chosen else None
    if either and either[1] != either[2] and {either[1], either[2]} <= {*allowed}:
        # "A or C" leaves both open unless a choice follows.
        chosen = [item for item in chosen if item[1] >= either.end()]
        if not chosen:
            return either[1] + either[2], either.start(1), either.end(2)
    if chosen:
        several = len({item[0] for item in chosen}) > 1
        return None if several and not any(item[3] for item in chosen) else chosen[-1][:3]
    return _left(bare, {*allowed} - rejected, rejected, (start, len(text))) if whole else None


def _left(
    bare: list[_Mention], remaining: set[str], rejected: set[str], span: tuple[int, int]
) -> tuple[str, int, int] | None:
    """The one option that is not rejected: of those that are named, else of all."""
    marked = [item for item in bare if item[3]]
    if len({item[0] for item in bare} - rejected) == 1 and (marked or rejected):
        return (marked or [item for item in bare if item[0] not in rejected])[-1][:3]
    if len(remaining) == 1 and len(rejected) > 1:
        return remaining.pop(), *span
    return None


def _is_no_option(mention: re.Match[str], body: str) -> bool:
    """Whether a letter is an article, a pronoun or part of a formula."""
    at, end = mention.span()
    alone = mention["letter"] and not (mention["open"] or mention["close"])
    return bool((alone and _RE["word"].match(body, at)) or _RE["formula"].match(body, end))


def _rejects(before: str, after: str) -> bool:
    """Whether the words around an option reject it: "not B", "B is wrong"."""
    rejected = _RE["rejected_before"].search(before) or _RE["rejected_after"].match(after)
    return rejected is not None


def _mentions(
    body: str, start: int, allowed: str, whole: bool
) -> tuple[list[_Mention], list[_Mention], set[str]]:
    """Options that are chosen (and by a word before?), bare (and in brackets?), and rejected."""
    chosen: list[_Mention] = []
    bare: list[_Mention] = []
    rejected: set[str] = set()
    for match in _RE["mention"].finditer(body, start):
        letter, (at, end) = match["letter"] or match["cjk"] or match["glued"], match.span()
        if letter not in allowed or _is_no_option(match, body):
            continue
        after = body[end : end + 90]
        sentence = _RE["sentence"].split(body[max(start, at - 60) : at])[-1]
        chooses = _RE["chosen_before"].search(sentence)
        right = _RE["chosen_after"].match(after)  # which is true of several options
        before = not right and chooses is not None and not re.match(r"[A-Z]\b", chooses[0])
        alone = whole and not (sentence.strip() or after.strip())
        if _rejects(sentence, after) or doubted(body, at):
            rejected.add(letter)
        elif not _RE["listed"].match(after) and (alone or before or right):
            chosen.append((letter, at, end, before))
        else:
            bracketed = bool(
                match["letter"] and (match["open"] or match["close"][:1] in tuple(")]*"))
            )
            bare.append((letter, at, end, bracketed))
    return [item for item in chosen if item[0] not in rejected], bare, rejected


SCORER = Scorer(
    "mcq",
    "17",
    read,
    instruction=(
        "Think it through, then end with one line of the form "
        '"Answer: X", where X is the letter of the one option you choose.'
    ),
    lettered=True,
    symmetric=True,
    canonical=option,
)
