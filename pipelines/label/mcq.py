"""`mcq`: the option an output commits to, by letter or by content.

Commitments are read in the order of the text: stated ("the answer is (C)"),
boxed, an `Answer: C` line, a JSON field, "option C is correct", or an output
that is nothing but a letter. Where a statement names no letter, its text is
compared with the options. The last commitment counts, since a later answer
corrects an earlier one; when different options are committed to without a
word of correction between them, the reading is flagged as a conflict, because
neither "first" nor "last" suits every model.

A run-on generation is cut at the next question. A letter that is merely the
last one in the text is never taken: that is guessing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from pipelines.label.reading import Asked, Reading, Scorer
from pipelines.label.runon import end_of_answer
from pipelines.label.words import normalise

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: How many letters count when a query lists no choices (MMLU-Pro has up to ten).
DEFAULT_LETTERS = 10

# Filler between "answer" and the option; bounded, and no two parts can take the same text.
_TO = r"(?:\s(?:to|for|of|in)\s[^\n.:]{1,80}?)?"
_IS = (
    r"(?:\s{1,3}(?:choice|option|letter|statement|response))?" + _TO +
    r"(?:\s{0,2}[*_]{0,3}\s{0,2}[:：=][*_]{0,3}|"
    r"\s{1,3}[*_]{0,3}(?:is|was|would\sbe|should\sbe|must\sbe|will\sbe|are)\b[*_]{0,3})"
)  # fmt: skip
_STATED = re.compile(
    r"""
      (?P<stated>\banswers?[*_]{0,3}""" + _IS + r""")
    | (?P<field>\\?["']answer\\?["']\s{0,3}:)
    | (?P<boxed>\\(?:boxed|fbox)\s{0,2}\{)
    | (?P<correct>\bcorrect\s(?:[a-z-]{1,20}\s){0,3}?(?:is|would\ be|should\ be|must\ be)\b)
    | (?P<choose>\b(?:choose|select|pick|I(?:'d|\ would|'ll|\ will)?\s(?:go\ with|answer))\b)
    | (?P<option>\b(?:option|choice|statement)s?\s{1,2}(?=[(*]{0,3}[A-Z]\b))
    | (?P<chinese>(?:正确)?(?:答案|选项)(?:是|为|：|:)|故?选(?:择)?[:：]?(?=\s{0,2}[（(]?[A-Z]))
    """,
    re.VERBOSE | re.IGNORECASE,
)  # fmt: skip
# The option after the marker: letters inside their brackets, boxes and emphasis.
_OPTION = re.compile(
    r"\s{0,4}[:：]?(?:\s{0,3}(?:therefore|thus|simply|then|likely|probably|indeed|most\slikely|clearly|"
    r"definitely|either|both|the|an|option|choice|letter|statement|number|answer|is|part)\b)*[\s:：]{0,4}"
    r"(?P<open>(?:[*_`$\"'“‘「【\[(（{<]|\\\(|\\boxed\s{0,2}\{|\\(?:text|textbf|mathrm|mathbf|bf|rm)\s{0,2}\{?){0,6})\s{0,2}"
    r"(?P<letter>[A-Za-z](?:\s{0,2}(?:,|&|\band\b|\bor\b|/|,\sand\b|,\sor\b)\s{0,2}[(*]{0,3}[A-Z](?![A-Za-z']))*)"
    r"(?P<close>[*_`$\"'”’」】\])）}>.:;,]{0,6})(?P<rest>(?![A-Za-z0-9'’+=^−-]).|$|\n)",
    re.IGNORECASE | re.DOTALL,
)
_NOT = re.compile(r"\s{0,2}(?:not\b|n't\b|neither\b|isn't)", re.IGNORECASE)
_WHOLE = re.compile(
    r"[\s*_`\"'$(（\[\\]{0,6}(?P<letter>[A-Za-z])(?P<close>[*_`\"'$)）\]]{0,6}(?:[.:)、-]|\s|$))"
)
_CONNECTS = re.compile(
    r"\s{0,2}(?:because|since|as\b|for\b|and\b|but\b|which|where|with|that|due|given|so\b|is\b|are\b|"
    r"was\b|or\b|by\b|in\b|from\b|if\b|here|only|correct|[-–—(:,.;!?*=≈$\\])",
    re.IGNORECASE,
)
_AFTER_OPTION = re.compile(
    r"[)\]*:.,]{0,4}\s{1,2}(?:is|would be|must be|seems|appears)\s"
    r"(?:therefore\s|thus\s|the\s|most\s|likely\s|also\s){0,3}"
    r"(?:correct|right|true|answer|best)\b(?!\s(?:if|only if|when))",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"\b(?:wait|actually|sorry|apolog\w+|mistake\w*|correction|correct(?:ed|ing)|error|incorrect\w*|"
    r"re-?(?:check|calculat|evaluat|consider|comput|examin|visit|think|read|assess)\w*|instead|however|"
    r"on second thought|misread\w*|misunder\w+|wrong|hmm|oops|no,|should have been|upon)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Choice:
    """A commitment to the options `letters` (several when the text names several)."""

    letters: str
    start: int
    end: int
    how: str


def read(asked: Asked, output: str) -> Reading:
    """Reads the option of `output` and compares it with the reference letters."""
    options = _options(asked.choices)
    wanted = {letter for one in asked.references if (letter := _letter_of(one, asked.choices))}
    if not wanted:
        return Reading("error", reason=f"no reference is an option: {list(asked.references)!r}")
    allowed = LETTERS[: len(asked.choices) or max(DEFAULT_LETTERS, *(ord(w) - 64 for w in wanted))]
    end = end_of_answer(output)
    found = _commitments(output, end, allowed, options) or _fallback(output, end, allowed, options)
    if not found:
        return Reading("abstain", reason="no option is named")
    last = found[-1]
    conflict = _conflicting(found, output)
    span = (last.start, last.end)
    reason = f"{last.how}: {last.letters}"
    if conflict:
        listed = ", ".join(dict.fromkeys(one.letters for one in found))
        reason += f"; commits to several options: {listed}"
    if len(last.letters) > 1:
        if set(last.letters) == wanted:
            return Reading("correct", 1.0, output[slice(*span)], span, reason, conflict)
        if len(wanted) == 1:
            why = f"{last.how}: names several options, {last.letters}"
            return Reading("incorrect", 0.0, output[slice(*span)], span, why, True)
    right = last.letters in wanted
    return Reading(
        "correct" if right else "incorrect",
        1.0 if right else 0.0,
        last.letters,
        span,
        reason,
        conflict,
    )


def _commitments(
    text: str, end: int, allowed: str, options: tuple[tuple[str, str], ...]
) -> list[_Choice]:
    found: list[_Choice] = []
    position = 0
    while marker := _STATED.search(text, position, end):
        position = marker.end()
        how = str(marker.lastgroup)
        if _NOT.match(text, position):
            continue
        option = _OPTION.match(text, position, min(end, position + 400))
        choice = None
        if option is not None:
            choice = _lettered(text, option, allowed, options, how, end)
        if choice is None and how in ("stated", "field", "boxed", "chinese"):
            choice = _by_content(text, position, end, options, how)
        if choice is not None:
            found.append(choice)
            position = max(position, choice.end)
    return found


def _lettered(
    text: str,
    option: re.Match[str],
    allowed: str,
    options: tuple[tuple[str, str], ...],
    how: str,
    end: int,
) -> _Choice | None:
    raw = option["letter"]
    bracketed = bool(option["open"].strip()) or option["close"][:1] in tuple(")）]}*")
    letters = "".join(dict.fromkeys(re.findall(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])", raw))).upper()
    if not letters or any(letter not in allowed for letter in letters):
        return None
    start, stop = option.start("letter"), option.end("letter")
    if how == "option":
        if not _AFTER_OPTION.match(text, stop, end):
            return None
        return _Choice(letters, start, stop, how)
    rest = text[stop : min(end, stop + 80)].lstrip(" \t")
    if not bracketed and rest and rest[0].isalnum():
        # "answer is a matter of …", "is I think", "is C major": a word follows the bare letter.
        content = dict(options).get(letters[0], "")
        follows = normalise(rest)
        names_it = content and (
            follows.startswith(content[:12]) or content.startswith(follows[:12])
        )
        if not names_it and (raw in "aAiI" or raw.islower() or not _CONNECTS.match(rest)):
            return None
    marked = bracketed or how in ("field", "boxed")
    if raw.islower() and not marked and rest[:1] not in ("", ".", "\n", ",", ":"):
        return None
    return _Choice(letters, start, stop, how)


def _by_content(
    text: str, start: int, end: int, options: tuple[tuple[str, str], ...], how: str
) -> _Choice | None:
    """The option whose text the statement repeats, when exactly one is repeated."""
    if not options:
        return None
    while start < end and text[start] in " \t\n:*_\"'`$({":
        start += 1
    stop = text.find("\n", start, end)
    stop = min(end if stop < 0 else stop, start + 400)
    said = normalise(text[start:stop])
    if not said:
        return None
    letter = _matching(said, options)
    return _Choice(letter, start, stop, how + ", by content") if letter else None


def _matching(said: str, options: tuple[tuple[str, str], ...]) -> str | None:
    exact = [letter for letter, content in options if content == said]
    if exact:
        return exact[0] if len(exact) == 1 else None
    # The longest option that opens the statement, at a word's end.
    opening = [
        (len(content), letter)
        for letter, content in options
        if len(content) > 3 and (said + " ").startswith(content + " ")
    ]
    if not opening:
        return None
    longest = max(opening)
    return longest[1] if sum(size == longest[0] for size, _ in opening) == 1 else None


def _fallback(
    text: str, end: int, allowed: str, options: tuple[tuple[str, str], ...]
) -> list[_Choice]:
    """An output that is only an option, or whose last line is one."""
    start = 0
    while start < end and text[start].isspace():
        start += 1
    stop = end
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    if start == stop:
        return []
    line = text.rfind("\n", start, stop) + 1
    if line <= start:
        whole = stop - start <= 600 and _bare(text, start, stop, allowed, options, "whole output")
        return [whole] if whole else []
    before = _WHOLE.match(text, text.rfind("\n", start, line - 1) + 1, line)
    choice = _bare(text, line, stop, allowed, options, "last line") if stop - line <= 400 else None
    if choice and before and ord(before["letter"].upper()) == ord(choice.letters) - 1:
        return []  # the options repeated, one a line
    return [choice] if choice else []


def _bare(
    text: str, start: int, stop: int, allowed: str, options: tuple[tuple[str, str], ...], how: str
) -> _Choice | None:
    whole = _WHOLE.match(text, start, stop)
    if whole and whole["letter"].upper() in allowed:
        letter = whole["letter"].upper()
        rest = normalise(text[whole.end() : stop])
        content = dict(options).get(letter, "")
        marked = whole["close"].strip() != "" or text[start] in "(*[（"
        if (
            not rest
            or (content and rest.startswith(content))
            or (marked and whole["letter"].isupper() and how == "whole output")
        ):
            return _Choice(letter, whole.start("letter"), whole.end("letter"), how)
    said = normalise(text[start:stop])
    exact = [letter for letter, content in options if content and content == said]
    return _Choice(exact[0], start, stop, how + ", by content") if len(exact) == 1 else None


def _conflicting(found: list[_Choice], text: str) -> bool:
    for one, other in pairwise(found):
        if set(one.letters).isdisjoint(other.letters) and not _CORRECTION.search(
            text, one.end, other.start
        ):
            return True
    return False


@lru_cache(maxsize=65536)
def _options(choices: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((LETTERS[index], normalise(text)) for index, text in enumerate(choices[:26]))


@lru_cache(maxsize=65536)
def _letter_of(reference: str, choices: tuple[str, ...]) -> str | None:
    """Letter of a reference given as letter, `(B)`, or the text of a choice."""
    bare = reference.strip().strip("().* ").upper()
    if len(bare) == 1 and bare in LETTERS[: len(choices) or 26]:
        return bare
    said = normalise(reference)
    letters = [letter for letter, content in _options(choices) if content == said]
    return letters[0] if len(letters) == 1 else None


SCORER = Scorer("mcq", "1", read)
