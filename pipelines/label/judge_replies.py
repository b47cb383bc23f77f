"""What a judge's reply says: a grade, right or wrong, or which of several answers are best."""

from __future__ import annotations

import re

from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("judge_replies")


#: Names of answers that are listed by letter.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def rating_in(text: str, lowest: int = 1) -> float | None:
    """The last `[[n]]`, else the last `Rating: [n]`, with n from `lowest` to 10; decimals count.

    Both are what the prompt of RouterXBench (appendix B.1, Figure 5) leads to. Null
    without one, or when the number is off the scale.
    """
    found = _last(text)
    if found is None:
        single = _RE["rating"].findall(text)
        found = single[-1] if single else None
    if not found or not re.fullmatch(r"\d{1,2}(\.\d{1,4})?", found):
        return None
    n = float(found)
    return n if lowest <= n <= 10 else None


def decision_in(text: str) -> bool | None:
    """The last `[[1]]` or `[[0]]`."""
    return {"1": True, "0": False}.get(_last(text) or "")


def winners_in(text: str, n: int, *, numbered: bool = True) -> frozenset[int] | None:
    """Positions named in the last `[[A, C]]`, none for `[[none]]`; null when unreadable.

    Where answers are numbered, `LLM 1 and LLM 3`, `LLM 1, 3` or `LLMs 1 and 3` without brackets
    is read, the form that the prompt of the confidence-driven router (appendix A.4) asks for.
    """
    found = _last(text)
    if found is None and not numbered:
        return None  # `LLM 2` is no answer's name, but perhaps a word of one
    if found is None:
        lists = " ".join(_RE["numbered"].findall(text))
        places = [int(number) - 1 for number in re.findall(r"\d+", lists)]
        named = frozenset(places)
        return named if named and all(0 <= place < n for place in named) else None
    if found.lower() == "none":
        return frozenset()
    letters = [part.strip().upper() for part in found.split(",")]
    if any(len(letter) != 1 or letter not in LETTERS[:n] for letter in letters):
        return None
    return frozenset(LETTERS.index(letter) for letter in letters)


def _last(text: str) -> str | None:
    found = _RE["brackets"].findall(text)
    return str(found[-1]) if found else None
