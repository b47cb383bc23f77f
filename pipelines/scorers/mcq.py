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
nothing stands as its extracted answer.

A run-on generation is cut at the next question. A letter that is merely the
last one in the text is never taken: that is guessing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from routeyard.pipelines.scorers.comparison.words import normalise
from routeyard.pipelines.scorers.extraction.commitment import breaks_off
from routeyard.pipelines.scorers.extraction.marks import HEAD, MOST_READ, after_draft
from routeyard.pipelines.scorers.extraction.option_marks import (
    NamedOption,
    commitments,
    spelled_out,
)
from routeyard.pipelines.scorers.extraction.option_text import Options
from routeyard.pipelines.scorers.extraction.plain import option
from routeyard.pipelines.scorers.extraction.plain_option import plainly
from routeyard.pipelines.scorers.extraction.run_on import end_of_answer
from routeyard.pipelines.scorers.scorer import Scorer, ScoreResult, ScoringInput

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: How many letters count when a query lists no choices (MMLU-Pro has up to ten).
DEFAULT_LETTERS = 10

_BARE = re.compile(
    r"[\s*_`\"'$(（\[\\]{0,6}(?P<letter>[A-Za-z])"
    r"(?P<close>[*_`\"'$)）\]]{0,6}(?:[.:)、-]|\s|$))"
)
_DENIED = re.compile(
    r"(?:is|was|would be|seems) (?:wrong|incorrect|false|not|unlikely)|isnt|and|or\b"
)
# "A) The pH is … B) The hydrogen …": the parts of a question, not the first option.
_PART_B = re.compile(r"(?<![\w(])\(?B[).:]\s")
#: A response that broke off among more commitments than this, to three options or more, had
#: settled on none; so had one among fewer that went away from its first.
_CIRCLE, _SHORT_CIRCLE = 8, 3
# "The answer is not among the options": the option said to come closest is no answer.
_NONE = re.compile(
    r"\banswer (?:is|was) not (?:among|one of|any of|listed|included|present|given|in) "
    r"[^.\n]{0,30}(?:options|choices)",
    re.IGNORECASE,
)
# "(B) (J) (E). The last question needs more information. Therefore, I cannot provide an answer."
_CANNOT = re.compile(
    r"\b(?:cannot|can't|can’t|unable to|not possible to) (?:provide|give|determine|select|choose)"
    r" (?:an?|the|any) (?:\w{1,12} ){0,1}answer\b(?! with| without| key)[^.\n]{0,60}[.!]?\s{0,20}$",
    re.IGNORECASE,
)
_TRUE = re.compile(r"[)\]*]{0,3}\sis\s(?:also\s|therefore\s)?true\b", re.IGNORECASE)
_CORRECTION = re.compile(
    r"\b(?:wait|actually|sorry|apolog\w+|mistake\w*|correction|correct(?:ed|ing)|error|"
    r"incorrect\w*|re-?(?:check|calculat|evaluat|consider|comput|examin|visit|think|read|assess)"
    r"\w*|instead|however|on second thought|misread\w*|misunder\w+|wrong|hmm|oops|no,|"
    r"should have been|upon)\b",
    re.IGNORECASE,
)
# "Now, let's summarize all the answers:" begins a list of answers to several questions.
_SUMMARY = re.compile(
    r"\b(?:summari[sz]\w{1,3}|combin(?:e|ing)|considering|总结)\b[^\n]{0,30}\b(?:answers|questions)\b"
    r"|总结[^\n]{0,12}(?:答案|问题)"
)


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Reads the option of `output` and compares it with the reference letters."""
    options = _options(asked.choices)
    wanted = {letter for one in asked.references if (letter := _letter_of(one, asked.choices))}
    if not wanted:
        return ScoreResult("error", reason=f"no reference is an option: {list(asked.references)!r}")
    count = len(asked.choices) or max(DEFAULT_LETTERS, *map(LETTERS.index, wanted))
    output, shift = _readable(output)
    end = end_of_answer(output)
    allowed = LETTERS[:count]
    found = commitments(output, end, allowed, options)
    if len(found) > 1 and (cut := _next_options(output, found[0].end, end, options)) < end:
        end, found = cut, [one for one in found if one.end <= cut]
    found = found or _bare_output(output, end, allowed, options)
    if found and (refusal := _refusal(output, found[-1], end)):
        return ScoreResult("abstain", reason=refusal)
    if not found and not breaks_off(output, truncated=asked.truncated):
        found = spelled_out(output, end, options) or _plain(output, end, allowed)
    if not found:
        return ScoreResult("abstain", reason="no option is named")
    conflict = _conflicting(found, output)
    if conflict and _circling(found) and breaks_off(output, truncated=asked.truncated):
        return ScoreResult(
            "abstain", reason="runs in circles through several options", conflict=True
        )
    result = _compared(found, wanted, output, end, conflict=conflict)
    assert result.span is not None
    return replace(result, span=(result.span[0] + shift, result.span[1] + shift))


def _compared(
    found: list[NamedOption], wanted: set[str], output: str, end: int, *, conflict: bool
) -> ScoreResult:
    """The option that counts among those named, against the reference letters."""
    last = _before_summary(found, output) if len(found) > 1 else found[0]
    if conflict and last.how == "option" and _TRUE.match(output, last.end, end):
        named = "".join(dict.fromkeys("".join(one.letters for one in found)))
        last = replace(last, letters=named)  # "Option E is true. Option F is true as well."
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
    outcome, score = ("correct", 1.0) if right else ("incorrect", 0.0)
    span = (last.start, last.end)
    return ScoreResult(outcome, score, extracted, span, reason, conflict)  # type: ignore[arg-type]


# Letters of other alphabets that look the same, where they stand alone ("Ответ: С").
_ALIKE = str.maketrans("АВСЕНＡＢＣＤＥＦＧＨＩＪ", "ABCEHABCDEFGHIJ")
_STRANGE = re.compile(r"(?<!\w)[АВСЕН](?!\w)|[Ａ-Ｊ](?!\w)")


def _readable(output: str) -> tuple[str, int]:
    """The part that is searched, its letters made Latin, and where it begins in the output."""
    shift = after_draft(output, len(output))
    if len(output) - shift > MOST_READ and end_of_answer(output[:HEAD]) == HEAD:
        shift = len(output) - (MOST_READ - HEAD)
    text = output[shift : shift + MOST_READ]
    if not text.isascii():
        text = _STRANGE.sub(lambda m: m[0].translate(_ALIKE), text)
    return text, shift


# Two options, one a line, as a question lists them.
_LIST = re.compile(
    r"^[ \t]{0,4}\(?A[.):][ \t]{1,4}(?P<a>\S[^\n]{0,400})\n{1,3}"
    r"[ \t]{0,4}\(?B[.):][ \t]{1,4}(?P<b>\S[^\n]{0,400})",
    re.MULTILINE,
)
_EXPLAINS = re.compile(
    r"\b(?:because|since|correct|incorrect|wrong|right|true|false|not|option)\b", re.IGNORECASE
)


def _next_options(text: str, start: int, end: int, options: Options) -> int:
    """Where, behind an answer, the options of an invented next question are listed; else `end`."""
    ours = [content for _, content in options[:2]]
    if len(ours) < 2:
        return end
    for one in _LIST.finditer(text, start, end):
        said = [normalise(one["a"]), normalise(one["b"])]
        alike = any(a.startswith(b) or b.startswith(a) for a, b in zip(said, ours, strict=True))
        if not alike and not _EXPLAINS.search(one[0]):
            return one.start()
    return end


def _plain(text: str, end: int, allowed: str) -> list[NamedOption]:
    named = plainly(text, 0, end, allowed)
    return [NamedOption(*named, "plain statement", True)] if named else []


def _before_summary(found: list[NamedOption], output: str) -> NamedOption:
    summary = _SUMMARY.search(output, found[0].end)
    if summary is None:
        return found[-1]
    return [one for one in found if one.start < summary.start()][-1]


def _conflicting(found: list[NamedOption], text: str) -> bool:
    return any(
        set(one.letters).isdisjoint(other.letters)
        and not _CORRECTION.search(text, one.end, other.start)
        for one, other in pairwise(found)
    )


def _refusal(text: str, last: NamedOption, end: int) -> str | None:
    """What a text says after its last option that takes the answer back; None where nothing."""
    if not last.firm and _NONE.search(text, last.end, end):
        return "says that no option is the answer"
    if _CANNOT.search(text, max(last.end, end - 200), end):
        return "says that it cannot answer"
    return None


def _circling(found: list[NamedOption]) -> bool:
    most = _SHORT_CIRCLE if found[-1].letters != found[0].letters else _CIRCLE
    return len(found) > most and len({one.letters for one in found[-_CIRCLE:]}) > 2


def _bare_output(text: str, end: int, allowed: str, options: Options) -> list[NamedOption]:
    """An output that is only an option, or whose last line is one."""
    body = text[:end].rstrip()
    start = len(body) - len(body.lstrip())
    line = body.rfind("\n", start) + 1
    if line <= start:
        whole = len(body) - start <= 600 and _bare(
            text, start, len(body), allowed, options, "whole output"
        )
        return [whole] if whole else []
    if len(body) - line > 400:
        return []
    if body.count("$$", start, line) % 2:
        return []  # within a formula that was cut
    choice = _bare(text, line, len(body), allowed, options, "last line")
    before = _BARE.match(text, body.rfind("\n", start, line - 1) + 1, line)
    if choice and before and ord(before["letter"].upper()) == ord(choice.letters) - 1:
        return []  # the options repeated, one a line
    return [choice] if choice else []


def _bare(
    text: str, start: int, stop: int, allowed: str, options: Options, how: str
) -> NamedOption | None:
    bare = _BARE.match(text, start, stop)
    if bare and (letter := bare["letter"].upper()) in allowed:
        rest = normalise(text[bare.end() : stop])
        content = dict(options).get(letter, "")
        listed = how == "whole output" and bare["letter"].isupper() and bare["close"].strip()
        listed = listed and not (letter == "A" and _PART_B.search(text, bare.end(), stop))
        behind = rest.removeprefix(content).lstrip()
        listed = listed and not (_DENIED.match(rest) or _DENIED.match(behind))
        repeated = content and rest.startswith(content) and not _DENIED.match(behind)
        if not rest or listed or repeated:
            return NamedOption(letter, bare.start("letter"), bare.end("letter"), how, True)
    said = normalise(text[start:stop])
    exact = [letter for letter, content in options if content and content == said]
    return (
        NamedOption(exact[0], start, stop, how + ", by content", True) if len(exact) == 1 else None
    )


@lru_cache(maxsize=65536)
def _options(choices: tuple[str, ...]) -> Options:
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


SCORER = Scorer(
    "mcq",
    "6",
    read,
    instruction=(
        "Think it through, then end with one line of the form "
        '"Answer: X", where X is the letter of the one option you choose.'
    ),
    lettered=True,
    symmetric=True,
    canonical=option,
)
