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


def plainly(text: str, start: int, end: int, allowed: str) -> tuple[str, int, int] | None:
    """(letters, start, end) of the option a short text or its last sentences name; None for none.

    Two letters mean that the text leaves two options open.
    """
    body = text[start:end].rstrip()
    if len(body) > SHORT:
        cut = max(
            (m.end() for m in _RE["sentence"].finditer(body, len(body) - SHORT, len(body) - 1)),
            default=-1,
        )
        last = None if cut < 0 else _named(body[cut:], start + cut, allowed, chosen_only=True)
        return last or _only_one(body, start, allowed)
    return _named(body, start, allowed, chosen_only=False)


def _only_one(body: str, offset: int, allowed: str) -> tuple[str, int, int] | None:
    """The one option in brackets that a long text names, where it says that something is it."""
    named = set(_RE["in_brackets"].findall(body))
    one = _RE["is_one"].search(body)
    if len(named) != 1 or one is None or one["letter"] not in allowed:
        return None
    return one["letter"], offset + one.start("letter"), offset + one.end("letter")


def _mentions(
    body: str, allowed: str, *, chosen_only: bool
) -> tuple[list[re.Match[str]], list[re.Match[str]], set[str]]:
    """Mentions of options that are chosen, those that are bare, and the rejected letters."""
    chosen: list[re.Match[str]] = []
    bare: list[re.Match[str]] = []
    rejected: set[str] = set()
    for one in _RE["mention"].finditer(body):
        letter, at = _letter(one), one.start()
        if letter not in allowed or _is_word(one, body) or _RE["formula"].match(body, one.end()):
            continue
        before, after = body[max(0, at - 60) : at], body[one.end() : one.end() + 90]
        sentence = _RE["sentence"].split(before)[-1]
        rejects = _RE["rejected_before"].search(sentence) or _RE["rejected_after"].match(after)
        if rejects or doubted(body, at):
            rejected.add(letter)
        elif _RE["listed"].match(after):
            bare.append(one)
        elif (
            _chosen_before(sentence)
            or _RE["chosen_after"].match(after)
            # alone in its sentence; a long text lists its options that way
            or (not chosen_only and not sentence.strip() and not after.strip())
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
    body: str, offset: int, allowed: str, *, chosen_only: bool
) -> tuple[str, int, int] | None:
    chosen, bare, rejected = _mentions(body, allowed, chosen_only=chosen_only)
    either = _RE["either"].search(body) if chosen else None
    if either and either[1] != either[2] and {either[1], either[2]} <= set(allowed):
        # "A or C" leaves both open unless a choice follows.
        chosen = [one for one in chosen if one.start() >= either.end()]
        if not chosen:
            return either[1] + either[2], offset + either.start(1), offset + either.end(2)
    if chosen:
        last = chosen[-1]
        span = (offset + last.start(), offset + last.end())
        return None if _several_right(chosen, body) else (_letter(last), *span)
    return None if chosen_only else _left(body, offset, bare, rejected, allowed)


def _left(
    body: str, offset: int, bare: list[re.Match[str]], rejected: set[str], allowed: str
) -> tuple[str, int, int] | None:
    """The one option that is not rejected: of those that are named, else of all."""
    left = {_letter(one) for one in bare} - rejected
    marked = [
        one
        for one in bare
        if one["letter"] and (one["open"] or one["close"][:1] in (")", "]", "*"))
    ]
    if len(left) == 1 and (marked or rejected):
        last = (marked or [one for one in bare if _letter(one) in left])[-1]
        return left.pop(), offset + last.start(), offset + last.end()
    remaining = set(allowed) - rejected
    if len(remaining) == 1 and len(rejected) > 1:
        return remaining.pop(), offset, offset + len(body)
    return None


def _several_right(chosen: list[re.Match[str]], body: str) -> bool:
    """Whether several options are called right, and none of them is chosen."""
    return len({_letter(one) for one in chosen}) > 1 and not any(
        _RE["chosen_before"].search(body, max(0, one.start() - 60), one.start()) for one in chosen
    )


def _letter(one: re.Match[str]) -> str:
    return one["letter"] or one["cjk"] or one["glued"]


def _is_word(one: re.Match[str], body: str) -> bool:
    """Whether "A" is an article or "I" a pronoun."""
    if one["letter"] not in ("A", "I", "O", "E", "Y") or one["open"] or one["close"]:
        return False
    after = body[one.end() : one.end() + 3]
    if one["letter"] in ("A", "I"):
        follows = re.match(
            r"\s?(?:,|;|and\b|n?or\b|is\b|are\b|$|/|-)", body[one.end() : one.end() + 6]
        )
        return follows is None
    return bool(re.match(r"\s[a-zà-ÿ]", after)) and one.start() > 0
