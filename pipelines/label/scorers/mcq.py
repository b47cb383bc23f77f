"""`mcq`: the option an output commits to, by letter or by content.

Commitments are read in the order of the text: stated ("the answer is (C)"),
boxed, an `Answer: C` line, a JSON field, "option C is correct", or an output
that is nothing but an option. Where a statement names no letter, its text is
compared with the options. The last commitment counts, since a later answer
corrects an earlier one; when different options are committed to without a
word of correction between them, the reading is flagged as a conflict, because
neither "first" nor "last" suits every model. A section that announces a
summary of several answers can raise the flag but is not read. One statement
that names several options where one is asked for is wrong and contested, and
its extracted answer is empty.

A run-on generation is cut at the next question. A letter that is merely the
last one in the text is never taken: that is guessing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.label.scorers.graded import normalise
from routeyard.pipelines.label.scorers.languages import ENGLISH, FOREIGN, OTHER, lowered, worded
from routeyard.pipelines.label.scorers.option_marks import (
    FIRM,
    MARKS,
    SHORT,
    NamedOption,
    Options,
    beyond,
    commitments,
    contradicts,
    equal,
    labelled,
    names_none,
    spelled_out,
    stated_alone,
)
from routeyard.pipelines.label.scorers.patterns import hints, patterns
from routeyard.pipelines.label.scorers.reading import (
    HEAD,
    MOST_READ,
    NEXT,
    SIGNS,
    WORDS,
    after_draft,
    calls,
    dangles,
    declines,
    doubted,
    end_of_answer,
    option,
    retracts,
    supposes,
    unfinished,
)
from routeyard.pipelines.label.scorers.scorer import (
    LETTERS,
    UNMARKED,
    PlainLetter,
    Scorer,
    ScoreResult,
    ScoringInput,
)

# An option named in plain words: "So D.", "not B but C", "A or C, but most likely C", "Es la C".
#
# Only asked where an output marks no answer. Every option letter that is alone
# is a mention; a mention is rejected ("not B", "A and B are wrong"), chosen ("so D",
# "most likely C", "C fits best") or bare. One chosen option is the answer; else the
# only one that is not rejected, when its surroundings show that it is an option at
# all ("vitamin C" does not).

_PLAIN_RE = worded("plain_option")

#: A text longer than this is searched in its last sentences only.
PLAIN_OPTION_SHORT = 300
_CLOSED = (")", "]", "*")


def plainly(text: str, allowed: str) -> tuple[str, int, int] | None:
    """(letters, start, end) of the option a short text or its last sentences name; None for none.

    Two letters mean that the text leaves two options open.
    """
    body = text.rstrip()
    if len(body) <= PLAIN_OPTION_SHORT:
        return _named(body, 0, allowed, chosen_only=False)
    sentences = list(
        _PLAIN_RE["sentence"].finditer(body, len(body) - PLAIN_OPTION_SHORT, len(body) - 1)
    )
    result = sentences and _named(body, sentences[-1].end(), allowed, chosen_only=True)
    return result or None


def _mentions(
    body: str, allowed: str, *, chosen_only: bool
) -> tuple[list[re.Match[str]], list[re.Match[str]], set[str]]:
    """Mentions of options that are chosen, those that are bare, and the rejected letters."""
    chosen: list[re.Match[str]] = []
    bare: list[re.Match[str]] = []
    rejected: set[str] = set()
    for match in _PLAIN_RE["mention"].finditer(body):
        letter, at = _letter(match), match.start()
        alone = match["letter"] and not (match["open"] or match["close"])
        if letter not in allowed or (alone and _PLAIN_RE["word"].match(body, at)):
            continue
        if _PLAIN_RE["formula"].match(body, match.end()):
            continue
        after = body[match.end() : match.end() + 90]
        sentence = _PLAIN_RE["sentence"].split(body[max(0, at - 60) : at])[-1]
        rejects = _PLAIN_RE["rejected_before"].search(sentence) or _PLAIN_RE[
            "rejected_after"
        ].match(after)
        # alone in its sentence; a long text lists its options that way
        whole = not (chosen_only or sentence.strip() or after.strip())
        if rejects or doubted(body, at):
            rejected.add(letter)
        elif not _PLAIN_RE["listed"].match(after) and (
            whole or _chosen_before(sentence) or _PLAIN_RE["chosen_after"].match(after)
        ):
            chosen.append(match)
        else:
            bare.append(match)
    return [item for item in chosen if _letter(item) not in rejected], bare, rejected


def _chosen_before(sentence: str) -> bool:
    """Whether words that choose end a text; not the "A" of "A, B and C"."""
    chooses = _PLAIN_RE["chosen_before"].search(sentence)
    return chooses is not None and not re.match(r"[A-Z]\b", chooses[0])


def _named(
    text: str, start: int, allowed: str, *, chosen_only: bool
) -> tuple[str, int, int] | None:
    body = text[start:]
    chosen, bare, rejected = _mentions(body, allowed, chosen_only=chosen_only)
    either = _PLAIN_RE["either"].search(body) if chosen else None
    if either and either[1] != either[2] and {either[1], either[2]} <= set(allowed):
        # "A or C" leaves both open unless a choice follows.
        chosen = [item for item in chosen if item.start() >= either.end()]
        if not chosen:
            return either[1] + either[2], start + either.start(1), start + either.end(2)
    if chosen:
        last = chosen[-1]
        several = len({_letter(item) for item in chosen}) > 1 and not any(
            _PLAIN_RE["chosen_before"].search(body, max(0, item.start() - 60), item.start())
            for item in chosen
        )  # called right, and none of them chosen
        return None if several else (_letter(last), start + last.start(), start + last.end())
    return None if chosen_only else _left(text, start, bare, rejected, allowed)


def _left(
    text: str, start: int, bare: list[re.Match[str]], rejected: set[str], allowed: str
) -> tuple[str, int, int] | None:
    """The one option that is not rejected: of those that are named, else of all."""
    left, remaining = {_letter(item) for item in bare} - rejected, set(allowed) - rejected
    marked = [m for m in bare if m["letter"] and (m["open"] or m["close"][:1] in _CLOSED)]
    if len(left) == 1 and (marked or rejected):
        last = (marked or [item for item in bare if _letter(item) in left])[-1]
        return left.pop(), start + last.start(), start + last.end()
    if len(remaining) == 1 and len(rejected) > 1:
        return remaining.pop(), start, len(text)
    return None


def _letter(match: re.Match[str]) -> str:
    return match["letter"] or match["cjk"] or match["glued"]


# Many outputs at once: the option that a last sentence states, where nothing else can be read.
#
# Most outputs end with "The answer is (C)." Their last sentences are the same ones again and
# again and are read once each; of what precedes them, one search in native code tells whether it
# could hold a mark, or change how the last one is read. The search finds more than the readers
# do, never less, also where a mark begins in front of the sentence and ends in it; an output
# that it leaves open is for the scorer.

_MARKS = patterns("marks")
_FINAL = [hint for hint in hints(_MARKS["final"].pattern) if hint.isascii()]
_CANNOT = worded("mcq")["cannot"]
#: Letters of other alphabets that look the same, as single letters ("Ответ: С").
STRANGE = "АВСЕНＡＢＣＤＥＦＧＨＩＪ"

#: A longer output is searched in parts by the scorer.
_MOST = 100_000


def _any(words: Sequence[str]) -> str:
    return "|".join(map(re.escape, words))


_NOUNS = [word for word in (*SIGNS, *ENGLISH.nouns) if word[0].isalpha() and word != "a:"]
#: What precedes no plain statement, in the dialect of RE2, whatever the case: words and signs of
#: marks, of envelopes, of drafts and of templates, and the next question.
OPEN = "|".join(
    (
        rf"(?:^|[^a-z0-9])(?:{_any(_NOUNS)})",
        r"####|(?:^|[\s*_])a:",
        _any(FIRM),
        rf"(?s:(?:{_any(_FINAL)}).{{0,16}}\z)",
        r"\{[^:{}\\]*(?:[:：]|\z)",
        r"(?s:(?:finish|submit|answer|question).?(?:[\[(]|\z))",
        r"~~|</|<\||◁|<e|<think|<ans|\[/|\[ans|\[think|\[inst",
        rf"\n[ \t]{{0,8}}[#*]{{0,4}} {{0,2}}(?:{_any(WORDS)})[^a-z\n:：]{{0,12}}[:：]",
    )
)

#: One of these is in every text that marks an answer or an option, or holds a noun that names one.
_MARK = f"{OPEN}|{_any((*ENGLISH.nouns, *FOREIGN, *MARKS))}"


def last_stated(texts: Sequence[str]) -> list[PlainLetter | None]:
    """What each text states, whatever the question's options are; None where that is open.

    A text in ASCII that has nothing of a mark is `UNMARKED`.
    """
    letters: list[PlainLetter | None] = [None] * len(texts)
    places, heads = [], []
    for place, text in enumerate(texts):
        last = len(text.rstrip()) - 1
        start = max(text.rfind(". ", 0, last), text.rfind("\n", 0, last)) + 1
        size = len(text)
        if size - start > SHORT or size > _MOST or (item := _ending(text[start:])) is None:
            continue
        if not text.isascii() and _foreign(text[:start]):
            continue
        letters[place] = PlainLetter(item.letter, item.start + start, item.end + start, item.how)
        places.append(place)
        heads.append(text[:start])
    for place, is_open in zip(places, _matched(heads, OPEN), strict=True):
        if is_open:
            letters[place] = None
    rest = [
        place
        for place, entry in enumerate(letters)
        if entry is None and len(texts[place]) <= _MOST and texts[place].isascii()
    ]
    for place, marked in zip(rest, _matched([texts[entry] for entry in rest], _MARK), strict=True):
        if not marked:
            letters[place] = UNMARKED
    return letters


def _matched(texts: Sequence[str], expression: str) -> list[bool]:
    array = pa.array(texts, pa.string())
    results: list[bool] = pc.match_substring_regex(array, expression, ignore_case=True).to_pylist()
    return results


def _foreign(head: str) -> bool:
    """Whether a text that is not in ASCII has words or letters of other languages that count."""
    signs = OTHER.signs.search(lowered(head)) or any(map(head.__contains__, STRANGE))
    return bool(signs) or _MARKS.hinted("final", head[-16:])


@lru_cache(maxsize=16384)
def _ending(sentence: str) -> PlainLetter | None:
    """What a last sentence states, where it changes nothing in how the text is read."""
    if not sentence.isascii() or any(map(sentence.__contains__, "~<{[")):
        return None
    named = stated_alone(sentence, LETTERS)
    if named is None or len(named.letters) > 1 or NEXT.search("\n" + sentence):
        return None
    if _CANNOT.search(sentence, named.end) or any(True for _ in calls(sentence, 0, len(sentence))):
        return None
    behind = labelled(sentence, named.end)  # the text of an option may follow
    if (behind and sentence[behind.end() :].strip()) or retracts(sentence, named.start):
        return None
    return PlainLetter(named.letters, named.start, named.end, named.how)


_MCQ_RE = worded("mcq")

#: How many letters count when a query lists no choices (MMLU-Pro has up to ten).
DEFAULT_LETTERS = 10


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Reads the option of `output` and compares it with the reference letters."""
    options, wanted = _question(asked.choices, asked.references)
    if not wanted:
        return ScoreResult("error", reason=f"no reference is an option: {list(asked.references)!r}")
    count = len(asked.choices) or max(DEFAULT_LETTERS, *map(LETTERS.index, wanted))
    truncated, allowed = asked.truncated, LETTERS[:count]
    if asked.unmarked:
        whole, shift, text = output, 0, output
        bare_output = _bare_output(text, allowed, options)
    else:
        whole, shift = _readable(output)
        bare_output, text = _marked(whole[: end_of_answer(whole)], allowed, options)
    doubt = _refusal(text, bare_output) if bare_output or not asked.unmarked else ""
    cut = unfinished(whole, truncated=truncated) or dangles(whole)
    if not bare_output and not doubt and not cut:
        bare_output = spelled_out(text, options) or _plain(text, allowed, asked.unmarked)
    if not bare_output and (other := beyond(text, allowed, options)):
        bare_output, doubt = [other], ""
    if doubt or not bare_output:
        return ScoreResult("abstain", reason=doubt or "no option is named")
    last = bare_output[-1]
    if contradicts(text, last.letters, last.end, options):
        why = f"{last.how}: {last.letters} with the text of another option"
        return ScoreResult("abstain", reason=why, conflict=True)
    conflict = _conflicting(bare_output, text)
    result = _compared(bare_output, wanted, text, conflict=conflict)
    if shift and result.span is not None:
        return replace(result, span=(result.span[0] + shift, result.span[1] + shift))
    return result


def _marked(text: str, allowed: str, options: Options) -> tuple[list[NamedOption], str]:
    """The options that marks name, else a bare one; and the text up to an invented question."""
    result = commitments(text, allowed, options)
    if len(result) > 1:
        text = text[: _next_options(text, result[0].end, options)]
        return [item for item in result if item.end <= len(text)], text
    return result or _bare_output(text, allowed, options), text


def _compared(
    options: list[NamedOption], wanted: set[str], text: str, *, conflict: bool
) -> ScoreResult:
    """The option that counts among those named, against the reference letters."""
    last = _before_summary(options, text) if len(options) > 1 else options[0]
    if conflict and last.how == "option" and _MCQ_RE["called_true"].match(text, last.end):
        named = "".join(dict.fromkeys("".join(item.letters for item in options)))
        last = last._replace(letters=named)  # "Option E is true. Option F is true as well."
    reason = f"{last.how}: {last.letters}"
    right = last.letters in wanted
    extracted: str | None = last.letters
    if len(last.letters) > 1:
        right = set(last.letters) == wanted
        reason = f"{last.how}: names several options, {last.letters}"
        if len(wanted) == 1:  # contested: no one option was read
            conflict, extracted = True, None
    elif conflict:
        listed = ", ".join(dict.fromkeys(item.letters for item in options))
        reason += f"; commits to several options: {listed}"
    return ScoreResult.of(right, extracted, (last.start, last.end), reason, conflict)


_ALIKE = str.maketrans(STRANGE, "ABCEHABCDEFGHIJ")


def _readable(output: str) -> tuple[str, int]:
    """The part that is searched, its letters made Latin, and where it begins in the output."""
    shift = after_draft(output, len(output))
    if len(output) - shift > MOST_READ and end_of_answer(output[:HEAD]) == HEAD:
        shift = len(output) - (MOST_READ - HEAD)
    text = output[shift : shift + MOST_READ]
    if not text.isascii() and any(map(text.__contains__, STRANGE)):
        text = _MCQ_RE["strange"].sub(lambda m: m[0].translate(_ALIKE), text)
    return text, shift


def _next_options(text: str, start: int, options: Options) -> int:
    """Where, behind an answer, an invented next question lists its options; else the end."""
    ours = list(options.values())[:2]
    for match in _MCQ_RE["list"].finditer(text, start) if len(ours) == 2 else ():
        said = [normalise(match["a"]), normalise(match["b"])]
        alike = any(a.startswith(b) or b.startswith(a) for a, b in zip(said, ours, strict=True))
        if not alike and not _MCQ_RE["explains"].search(match[0]):
            return match.start()
    return len(text)


def _plain(text: str, allowed: str, unmarked: bool) -> list[NamedOption]:
    open_ = declines(text[-200:]) or (not unmarked and supposes(text))
    named = None if open_ else plainly(text, allowed)
    return [NamedOption(*named, "plain statement", True)] if named else []


def _before_summary(options: list[NamedOption], text: str) -> NamedOption:
    summary = _MCQ_RE["summary"].search(text, options[0].end)
    return [item for item in options if summary is None or item.start < summary.start()][-1]


def _conflicting(options: list[NamedOption], text: str) -> bool:
    return any(
        set(item.letters).isdisjoint(other.letters)
        and not _MCQ_RE["correction"].search(text, item.end, other.start)
        for item, other in pairwise(options)
    )


def _refusal(text: str, options: list[NamedOption]) -> str:
    """What a text says after its last option, or as its marked answer, that it names none."""
    if not options:
        return "the marked answer is none of the options" if names_none(text) else ""
    last = options[-1]
    if not last.firm and _MCQ_RE["none"].search(text, last.end):
        return "says that no option is the answer"
    cannot = _MCQ_RE["cannot"].search(text, max(last.end, len(text) - 200))
    return "says that it cannot answer" if cannot else ""


def _bare_output(text: str, allowed: str, options: Options) -> list[NamedOption]:
    """An output that is only an option, or whose last line is one."""
    body = text.rstrip()
    start = len(body) - len(body.lstrip())
    line, most, how = body.rfind("\n", start) + 1, 400, "last line"
    if line <= start:
        named = _MCQ_RE["named"].match(text, start, len(body))
        line = start = named.end() if named else start
        most, how = 600, "whole output"
    if len(body) - line > most or body.count("$$", start, line) % 2:
        return []  # too long, or within a formula that was cut
    choice = _bare(text, line, len(body), allowed, options, how)
    before = _MCQ_RE["bare"].match(text, body.rfind("\n", start, line - 1) + 1, line)
    above = before and line > start and chr(ord(before["letter"].upper()) + 1)
    if choice and choice.letters == above:
        return []  # the options repeated, one a line
    return [choice] if choice else []


def _goes_on(bare: re.Match[str], rest: str, content: str, text: str, stop: int, how: str) -> bool:
    """Whether what follows a letter explains it or repeats its option, and denies neither."""
    if bare["letter"].upper() == "A" and _MCQ_RE["part_b"].search(text, bare.end(), stop):
        return False
    behind = rest.removeprefix(content).lstrip()
    if _MCQ_RE["denied"].match(behind):
        return False
    repeated = bool(content) and rest.startswith(content)
    listed = how == "whole output" and bare["letter"].isupper() and bool(bare["close"].strip())
    return repeated or (listed and not _MCQ_RE["denied"].match(rest))


def _bare(
    text: str, start: int, stop: int, allowed: str, options: Options, how: str
) -> NamedOption | None:
    bare = _MCQ_RE["bare"].match(text, start, stop)
    letter = bare["letter"].upper() if bare else ""
    if bare and letter in allowed:
        rest = normalise(text[bare.end() : stop])
        if not rest or _goes_on(bare, rest, options.get(letter, ""), text, stop, how):
            return NamedOption(letter, *bare.span("letter"), how, True)
    if (repeated := _repeated(text, start, stop, options)) is None:
        return None
    if bare and _MCQ_RE["labels"].match(text, bare.end("letter"), stop):
        # "A ) light", where B is light: both are named
        return NamedOption(letter, *bare.span("letter"), how, True)
    return NamedOption(repeated, start, stop, how + ", by content", True)


def _repeated(text: str, start: int, stop: int, options: Options) -> str | None:
    """Letter of the option whose text the answer is, but for a reason behind it."""
    if not options:
        return None
    letter = equal(text[start:stop], options)
    reason = None if letter else _MCQ_RE["reason"].search(text, start, stop)
    if reason is None:
        return letter
    letter = equal(text[start : reason.start()], options)  # "Cherry, because it is red."
    rest = f" {normalise(text[reason.end() : stop])} " if letter else ""
    return None if any(f" {content} " in rest for content in options.values()) else letter


@lru_cache(maxsize=65536)
def _question(choices: tuple[str, ...], references: tuple[str, ...]) -> tuple[Options, set[str]]:
    """The options, and the letters of references given as letter, `(B)`, or text of a choice."""
    options = dict(zip(LETTERS, map(normalise, choices), strict=False))
    wanted = set()
    for reference in references:
        bare = reference.strip().strip("().* ").upper()
        listed = len(bare) == 1 and bare in LETTERS[: len(choices) or 26]
        wanted.add(bare if listed else equal(reference, options))
    return options, {letter for letter in wanted if letter}


SCORER = Scorer(
    "mcq",
    "15",
    read,
    instruction=(
        "Think it through, then end with one line of the form "
        '"Answer: X", where X is the letter of the one option you choose.'
    ),
    lettered=True,
    symmetric=True,
    canonical=option,
    at_once=last_stated,
)
