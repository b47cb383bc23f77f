"""An option named in plain words: "So D.", "not B but C", "A or C, but most likely C", "Es la C".

Only asked where an output marks no answer. Every option letter that is alone
is a mention; a mention is rejected ("not B", "A and B are wrong"), chosen ("so D",
"most likely C", "C fits best") or bare. One chosen option is the answer; else the
only one that is not rejected, when its surroundings show that it is an option at
all ("vitamin C" does not).
"""

from __future__ import annotations

import re

from routeyard.pipelines.scorers.extraction.clauses import doubted
from routeyard.pipelines.scorers.extraction.languages import worded

_RE = worded("plain_option")

#: A text longer than this is searched in its last sentences only.
SHORT = 300
_CLOSED = (")", "]", "*")


def plainly(text: str, allowed: str) -> tuple[str, int, int] | None:
    """(letters, start, end) of the option a short text or its last sentences name; None for none.

    Two letters mean that the text leaves two options open.
    """
    body = text.rstrip()
    if len(body) <= SHORT:
        return _named(body, 0, allowed, chosen_only=False)
    sentences = list(_RE["sentence"].finditer(body, len(body) - SHORT, len(body) - 1))
    found = sentences and _named(body, sentences[-1].end(), allowed, chosen_only=True)
    if found:
        return found
    named = {*_RE["in_brackets"].findall(body)}
    only = len(named) == 1 and named <= {*allowed}  # the only one in brackets
    one = _RE["is_one"].search(body) if only else None
    return (one["letter"], *one.span("letter")) if one else None


def _mentions(
    body: str, allowed: str, *, chosen_only: bool
) -> tuple[list[re.Match[str]], list[re.Match[str]], set[str]]:
    """Mentions of options that are chosen, those that are bare, and the rejected letters."""
    chosen: list[re.Match[str]] = []
    bare: list[re.Match[str]] = []
    rejected: set[str] = set()
    for one in _RE["mention"].finditer(body):
        letter, at = _letter(one), one.start()
        alone = one["letter"] and not (one["open"] or one["close"])
        if letter not in allowed or (alone and _RE["word"].match(body, at)):
            continue
        if _RE["formula"].match(body, one.end()):
            continue
        after = body[one.end() : one.end() + 90]
        sentence = _RE["sentence"].split(body[max(0, at - 60) : at])[-1]
        rejects = _RE["rejected_before"].search(sentence) or _RE["rejected_after"].match(after)
        # alone in its sentence; a long text lists its options that way
        whole = not (chosen_only or sentence.strip() or after.strip())
        if rejects or doubted(body, at):
            rejected.add(letter)
        elif not _RE["listed"].match(after) and (
            whole or _chosen_before(sentence) or _RE["chosen_after"].match(after)
        ):
            chosen.append(one)
        else:
            bare.append(one)
    return [one for one in chosen if _letter(one) not in rejected], bare, rejected


def _chosen_before(sentence: str) -> bool:
    """Whether words that choose end a text; not the "A" of "A, B and C"."""
    chooses = _RE["chosen_before"].search(sentence)
    return chooses is not None and not re.match(r"[A-Z]\b", chooses[0])


def _named(
    text: str, start: int, allowed: str, *, chosen_only: bool
) -> tuple[str, int, int] | None:
    body = text[start:]
    chosen, bare, rejected = _mentions(body, allowed, chosen_only=chosen_only)
    either = _RE["either"].search(body) if chosen else None
    if either and either[1] != either[2] and {either[1], either[2]} <= set(allowed):
        # "A or C" leaves both open unless a choice follows.
        chosen = [one for one in chosen if one.start() >= either.end()]
        if not chosen:
            return either[1] + either[2], start + either.start(1), start + either.end(2)
    if chosen:
        last = chosen[-1]
        several = len({_letter(one) for one in chosen}) > 1 and not any(
            _RE["chosen_before"].search(body, max(0, one.start() - 60), one.start())
            for one in chosen
        )  # called right, and none of them chosen
        return None if several else (_letter(last), start + last.start(), start + last.end())
    return None if chosen_only else _left(text, start, bare, rejected, allowed)


def _left(
    text: str, start: int, bare: list[re.Match[str]], rejected: set[str], allowed: str
) -> tuple[str, int, int] | None:
    """The one option that is not rejected: of those that are named, else of all."""
    left, remaining = {_letter(one) for one in bare} - rejected, set(allowed) - rejected
    marked = [one for one in bare if one["letter"] and (one["open"] or one["close"][:1] in _CLOSED)]
    if len(left) == 1 and (marked or rejected):
        last = (marked or [one for one in bare if _letter(one) in left])[-1]
        return left.pop(), start + last.start(), start + last.end()
    if len(remaining) == 1 and len(rejected) > 1:
        return remaining.pop(), start, len(text)
    return None


def _letter(one: re.Match[str]) -> str:
    return one["letter"] or one["cjk"] or one["glued"]
