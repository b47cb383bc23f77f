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
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from routeyard.pipelines.scorers.comparison.words import normalise
from routeyard.pipelines.scorers.extraction.clauses import declines, supposes
from routeyard.pipelines.scorers.extraction.commitment import breaks_off
from routeyard.pipelines.scorers.extraction.envelopes import after_draft
from routeyard.pipelines.scorers.extraction.languages import worded
from routeyard.pipelines.scorers.extraction.last_sentence import STRANGE, last_stated
from routeyard.pipelines.scorers.extraction.marks import HEAD, MOST_READ
from routeyard.pipelines.scorers.extraction.option_marks import (
    NamedOption,
    commitments,
    names_none,
    spelled_out,
)
from routeyard.pipelines.scorers.extraction.option_text import (
    Options,
    ReadOptions,
    contradicts,
    equal,
)
from routeyard.pipelines.scorers.extraction.plain import option
from routeyard.pipelines.scorers.extraction.plain_option import plainly
from routeyard.pipelines.scorers.extraction.run_on import end_of_answer
from routeyard.pipelines.scorers.scorer import LETTERS, Scorer, ScoreResult, ScoringInput

_RE = worded("mcq")

#: How many letters count when a query lists no choices (MMLU-Pro has up to ten).
DEFAULT_LETTERS = 10

#: A response that broke off among more commitments than this, to three options or more, had
#: settled on none; so had one among fewer that went away from its first.
_CIRCLE, _SHORT_CIRCLE = 8, 3


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Reads the option of `output` and compares it with the reference letters."""
    options, wanted = _question(asked.choices, asked.references)
    if not wanted:
        return ScoreResult("error", reason=f"no reference is an option: {list(asked.references)!r}")
    count = len(asked.choices) or max(DEFAULT_LETTERS, *map(LETTERS.index, wanted))
    truncated, allowed = asked.truncated, LETTERS[:count]
    if asked.unmarked:
        whole, shift, text = output, 0, output
        found = _bare_output(text, allowed, options)
    else:
        whole, shift = _readable(output)
        found, text = _marked(whole[: end_of_answer(whole)], allowed, options)
    doubt = _refusal(text, found) if found or not asked.unmarked else ""
    if not found and not doubt and not breaks_off(whole, truncated=truncated):
        found = spelled_out(text, options) or _plain(text, allowed, asked.unmarked)
    if doubt or not found:
        return ScoreResult("abstain", reason=doubt or "no option is named")
    last = found[-1]
    if contradicts(text, last.letters, last.end, options):
        why = f"{last.how}: {last.letters} with the text of another option"
        return ScoreResult("abstain", reason=why, conflict=True)
    conflict = _conflicting(found, text)
    if conflict and _circling(found) and breaks_off(whole, truncated=truncated):
        why = "runs in circles through several options"
        return ScoreResult("abstain", reason=why, conflict=True)
    result = _compared(found, wanted, text, conflict=conflict)
    if shift and result.span is not None:
        return replace(result, span=(result.span[0] + shift, result.span[1] + shift))
    return result


def _marked(text: str, allowed: str, options: Options) -> tuple[list[NamedOption], str]:
    """The options that marks name, else a bare one; and the text up to an invented question."""
    found = commitments(text, allowed, options)
    if len(found) > 1:
        text = text[: _next_options(text, found[0].end, options)]
        return [one for one in found if one.end <= len(text)], text
    return found or _bare_output(text, allowed, options), text


def _compared(
    found: list[NamedOption], wanted: set[str], text: str, *, conflict: bool
) -> ScoreResult:
    """The option that counts among those named, against the reference letters."""
    last = _before_summary(found, text) if len(found) > 1 else found[0]
    if conflict and last.how == "option" and _RE["called_true"].match(text, last.end):
        named = "".join(dict.fromkeys("".join(one.letters for one in found)))
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
        listed = ", ".join(dict.fromkeys(one.letters for one in found))
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
        text = _RE["strange"].sub(lambda m: m[0].translate(_ALIKE), text)
    return text, shift


def _next_options(text: str, start: int, options: Options) -> int:
    """Where, behind an answer, an invented next question lists its options; else the end."""
    ours = list(options.values())[:2]
    for one in _RE["list"].finditer(text, start) if len(ours) == 2 else ():
        said = [normalise(one["a"]), normalise(one["b"])]
        alike = any(a.startswith(b) or b.startswith(a) for a, b in zip(said, ours, strict=True))
        if not alike and not _RE["explains"].search(one[0]):
            return one.start()
    return len(text)


def _plain(text: str, allowed: str, unmarked: bool) -> list[NamedOption]:
    open_ = declines(text[-200:]) or (not unmarked and supposes(text))
    named = None if open_ else plainly(text, allowed)
    return [NamedOption(*named, "plain statement", True)] if named else []


def _before_summary(found: list[NamedOption], text: str) -> NamedOption:
    summary = _RE["summary"].search(text, found[0].end)
    return [one for one in found if summary is None or one.start < summary.start()][-1]


def _conflicting(found: list[NamedOption], text: str) -> bool:
    return any(
        set(one.letters).isdisjoint(other.letters)
        and not _RE["correction"].search(text, one.end, other.start)
        for one, other in pairwise(found)
    )


def _refusal(text: str, found: list[NamedOption]) -> str:
    """What a text says after its last option, or as its marked answer, that it names none."""
    if not found:
        return "the marked answer is none of the options" if names_none(text) else ""
    last = found[-1]
    if not last.firm and _RE["none"].search(text, last.end):
        return "says that no option is the answer"
    cannot = _RE["cannot"].search(text, max(last.end, len(text) - 200))
    return "says that it cannot answer" if cannot else ""


def _circling(found: list[NamedOption]) -> bool:
    most = _SHORT_CIRCLE if found[-1].letters != found[0].letters else _CIRCLE
    return len(found) > most and len({one.letters for one in found[-_CIRCLE:]}) > 2


def _bare_output(text: str, allowed: str, options: Options) -> list[NamedOption]:
    """An output that is only an option, or whose last line is one."""
    body = text.rstrip()
    start = len(body) - len(body.lstrip())
    line, most, how = body.rfind("\n", start) + 1, 400, "last line"
    if line <= start:
        named = _RE["named"].match(text, start, len(body))
        line = start = named.end() if named else start
        most, how = 600, "whole output"
    if len(body) - line > most or body.count("$$", start, line) % 2:
        return []  # too long, or within a formula that was cut
    choice = _bare(text, line, len(body), allowed, options, how)
    before = _RE["bare"].match(text, body.rfind("\n", start, line - 1) + 1, line)
    above = before and line > start and chr(ord(before["letter"].upper()) + 1)
    if choice and choice.letters == above:
        return []  # the options repeated, one a line
    return [choice] if choice else []


def _goes_on(bare: re.Match[str], rest: str, content: str, text: str, stop: int, how: str) -> bool:
    """Whether what follows a letter explains it or repeats its option, and denies neither."""
    if bare["letter"].upper() == "A" and _RE["part_b"].search(text, bare.end(), stop):
        return False
    behind = rest.removeprefix(content).lstrip()
    if _RE["denied"].match(behind):
        return False
    repeated = bool(content) and rest.startswith(content)
    listed = how == "whole output" and bare["letter"].isupper() and bool(bare["close"].strip())
    return repeated or (listed and not _RE["denied"].match(rest))


def _bare(
    text: str, start: int, stop: int, allowed: str, options: Options, how: str
) -> NamedOption | None:
    bare = _RE["bare"].match(text, start, stop)
    letter = bare["letter"].upper() if bare else ""
    if bare and letter in allowed:
        rest = normalise(text[bare.end() : stop])
        if not rest or _goes_on(bare, rest, options.get(letter, ""), text, stop, how):
            return NamedOption(letter, *bare.span("letter"), how, True)
    if (repeated := _repeated(text, start, stop, options)) is None:
        return None
    if bare and _RE["labels"].match(text, bare.end("letter"), stop):
        # "A ) light", where B is light: both are named
        return NamedOption(letter, *bare.span("letter"), how, True)
    return NamedOption(repeated, start, stop, how + ", by content", True)


def _repeated(text: str, start: int, stop: int, options: Options) -> str | None:
    """Letter of the option whose text the answer is, but for a reason behind it."""
    if not options:
        return None
    letter = equal(text[start:stop], options)
    reason = None if letter else _RE["reason"].search(text, start, stop)
    if reason is None:
        return letter
    letter = equal(text[start : reason.start()], options)  # "Cherry, because it is red."
    rest = f" {normalise(text[reason.end() : stop])} " if letter else ""
    return None if any(f" {content} " in rest for content in options.values()) else letter


@lru_cache(maxsize=65536)
def _question(choices: tuple[str, ...], references: tuple[str, ...]) -> tuple[Options, set[str]]:
    """The options, and the letters of references given as letter, `(B)`, or text of a choice."""
    options = ReadOptions(LETTERS, choices)
    wanted = set()
    for reference in references:
        bare = reference.strip().strip("().* ").upper()
        listed = len(bare) == 1 and bare in LETTERS[: len(choices) or 26]
        wanted.add(bare if listed else equal(reference, options))
    return options, {letter for letter in wanted if letter}


SCORER = Scorer(
    "mcq",
    "14",
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
