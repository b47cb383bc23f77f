"""What a stored text is, if no answer: stub, refusal, cut off, a harness's message, a constant.

A file of scores is believed too easily. Where the text beside a score is "I do", "[ERROR]
timeout" or ends in mid-sentence, the score says that a harness failed, not that a model did. What
a text is follows from features: its length beside what the task's answers have, how it ends beside
how the model's answers end, whether it opens or repeats others, what a rule read in it, and words
without content (`texts.yaml`); never from one list of openings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from routeyard.pipelines.scorers.extraction.marks import committed
from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("text_kinds")


#: A stub is no longer than this; a message of a harness or a refusal than these.
SHORT, MESSAGE, REFUSAL = 60, 300, 700
#: Questions that one text answers from which it is a constant.
CONSTANT = 20
_WORDS: Mapping[str, Any] = yaml.load(
    Path(__file__).with_name("texts.yaml").read_text(encoding="utf-8"),
    yaml.BaseLoader,  # noqa: S506  our own file, and "on" and "no" are words in it
)
#: Scripts whose words are told apart by `\\b`: Latin, Greek, Cyrillic.
_SPACED = re.compile(r"[\x00-\u052f\u1e00-\u1fff\u2019…]*")


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    """Any of the words, whole where their script sets words apart, the longest first; `*` matches
    an ending, `…` a few words between."""
    parts = []
    for word in sorted({*words}, key=lambda word: (-len(word), word)):
        part = re.escape(word.rstrip("*")).replace("…", r"[^.!?\n]{1,60}")
        if _SPACED.fullmatch(word):
            part = rf"\b{part}" + ("" if word.endswith("*") else r"\b")
        parts.append(part)
    return re.compile("|".join(parts))


_GROUPS = {
    group: _any_of([word for words in _WORDS["languages"].values() for word in words[group]])
    for group in ("apology", "inability", "service", "self", "empty")
}
_EMPTY = _GROUPS.pop("empty")
_VALUES = frozenset(_WORDS["harness"]["values"])
_PHRASE = re.compile(rf"\b(?:{'|'.join(_WORDS['harness']['phrases'])})")
_MACHINE = re.compile(rf"\b(?:{'|'.join(_WORDS['harness']['words'])})\b")
#: Signs after which a sentence is over, in any script; and those after which it goes on.
ENDS = frozenset(".!?。！？…؟।॥」』”’\"'`)]}>*_|~】）》։။፡")
_GOES_ON = frozenset(",:;(-–—[{=+/&、，：；（\\<،؛")


@dataclass(frozen=True)
class Setting:
    """What a text is compared with.

    Attributes:
        typical: median length of the task's texts.
        ends: share of the model's longer texts that end a sentence.
        vocabulary: references and choices of the task, as `plain` gives them.
        unread: the question's rule read no answer in it; None where there is no rule's verdict, or
            it takes the whole text for the answer.
        opens: other questions with a longer answer that begins with this text.
        answers: questions that this text of the model answers, and their different references.
        right: it was scored as right.
    """

    typical: float = 0.0
    ends: float = 0.0
    vocabulary: frozenset[str] = frozenset()
    unread: bool | None = None
    opens: int = 0
    answers: tuple[int, int] = (1, 1)
    right: bool | None = None


def kind_of(text: str, at: Setting) -> str | None:
    """`stub`, `refusal`, `harness_error`, `constant` or `truncated`; None for an answer, right or
    wrong."""
    said = text.strip()
    low = plain(said) if len(said) <= MESSAGE else ""
    if not said:
        return "stub"
    if low and not at.vocabulary.isdisjoint((low, said.casefold())):
        return None
    if _is_harness(said, low):
        return "harness_error"
    # A refusal that was scored as right is one the more; the text is then all of it.
    longest = MESSAGE if at.right else REFUSAL
    if at.unread is not False and len(said) <= longest and _refuses(said[:MESSAGE].casefold()):
        return "refusal"
    n, references = at.answers
    repeated = n >= 5 and references >= 3 and not at.right
    if len(said) <= SHORT:
        if _is_answer(low, at):
            return None
        if _is_stub(said, low, at, repeated):
            return "stub"
    if repeated and n >= CONSTANT:
        return "constant"
    return "truncated" if len(said) > SHORT and _is_cut(said, at) else None


def plain(text: str) -> str:
    """A short text as it is compared: no case, no marks around it, single spaces."""
    return " ".join(text.casefold().split()).strip("*_`\"'.,:;!()[]{}#<>“”‘’ ")


def _is_harness(said: str, low: str) -> bool:
    """Whether a harness wrote it, or reasoning was opened and never closed."""
    if any(f"</{name}>" not in said for name in _RE["thinks"].findall(said)):
        return True
    if len(said) > MESSAGE:
        return False
    folded, words = said.casefold(), len(low.split())
    machine = len({*_MACHINE.findall(folded)})
    return (
        folded in _VALUES
        or low in _VALUES
        or bool(_RE["begins"].match(folded))
        or (machine >= 2 and words <= 8 * machine)
        or (words <= 12 and bool(_PHRASE.search(folded)))
    )


def _refuses(said: str) -> bool:
    """Whether a text names an inability beside another sign of a refusal, or a model apologises."""
    if _GROUPS["inability"].search(said):
        return any(said_of.search(said) for name, said_of in _GROUPS.items() if name != "inability")
    return bool(_GROUPS["apology"].search(said) and _GROUPS["self"].search(said))


def _is_answer(low: str, at: Setting) -> bool:
    """Whether a short text has the shape of an answer: an option, a number, a known reference."""
    if at.unread is not None:
        return not at.unread
    if _RE["letter"].fullmatch(low):
        return low.strip("([)].:") in at.vocabulary or at.typical <= SHORT
    shaped = _RE["gives"].search(low) or _RE["number"].search(low)
    return bool(shaped) or any(word in at.vocabulary for word in low.split() if len(word) > 1)


def _is_stub(said: str, low: str, at: Setting, repeated: bool) -> bool:
    bare = not re.search(r"\w", _EMPTY.sub("", low))
    hangs = said[-1] in _GOES_ON
    return (
        bare
        or hangs
        or at.unread is True
        or at.opens >= 3
        or (repeated and len(said) <= SHORT // 2)
        or at.typical > 5 * len(said) + 100
    )


def _is_cut(said: str, at: Setting) -> bool:
    """Whether a longer text stops before its end: something stays open, or it ends in mid-sentence
    although the model's answers do not, or without an answer before it."""
    ended = said[-1] in ENDS or (said[-1] == "$" and said.count("$") % 2 == 0)
    structured = said[0] in "{[<" or said.startswith("```")
    open_ = said.count("```") % 2 == 1 or said.count("\\[") > said.count("\\]")
    if structured or "\\boxed{" in said:
        open_ = open_ or said.count("{") > said.count("}") or said.count("[") > said.count("]")
    if open_ and (not ended or structured):
        return True
    if said[-1] in _GOES_ON and not at.right:
        return True
    if ended or (at.unread is not True and _closes_with_answer(said)):
        return False
    return at.unread is True or at.ends >= (0.9 if at.right else 0.6)


def _closes_with_answer(said: str) -> bool:
    """Whether the last line is a marked answer ("Answer: Wednesday"), which needs no stop."""
    line = said.rpartition("\n")[2]
    return any(
        one.kind not in ("stated", "bold")
        and one.closed
        and len(one.text) <= SHORT
        and len(line) - one.end <= 4
        for one in committed(line)
    )
