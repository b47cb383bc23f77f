"""The mathematical answer inside a sentence that states it.

"The largest $n$ is 34." states 34: what follows the verb, not the first
formula. Clauses that only qualify ("for all $x>0$", "which is …") are cut off.
"""

from __future__ import annotations

import re

from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("math_statement")


def stated_value(text: str) -> str:
    """The answer of a sentence, as LaTeX or plain text without `$`.

    Formulas that follow each other ("$2$ and $3$") are one list.
    """
    text = _RE["label"].sub("", text.strip(), count=1) if len(text) < 400 else text.strip()
    text = _RE["not_but"].sub("", text, count=1)
    formulas = list(_RE["formula"].finditer(text))
    # Formulas are opaque while the sentence around them is read.
    masked = list(text)
    for one in formulas:
        masked[one.start() : one.end()] = "\x00" * (one.end() - one.start())
    shown = "".join(masked)
    if sentence := _RE["sentence"].search(shown):
        shown = shown[: sentence.start()]
        formulas = [one for one in formulas if one.start() < sentence.start()]
    if explained := _RE["explained"].match(shown):
        return _joined(text, shown, formulas, 0, explained.end())
    words = re.findall(r"[A-Za-z]{2,}", _without_commands(shown))
    if not words or (not _RE["maths"].search(shown) and all(map(_RE["function"].fullmatch, words))):
        return _joined(text, shown, formulas, 0, len(shown))
    start, stop, last = 0, len(shown), 0
    for verb in _RE["verb"].finditer(shown):
        last = verb.end()
        if start and verb.start() >= start + len(_main(shown, start, stop)):
            break  # "is 7, attained at x = 8"
        if _RE["maths"].search(_main(shown, verb.end(), stop)):
            start = verb.end()
            if not _word(verb[0]):
                break
    main = len(_main(shown, start, stop))
    if not main and _RE["plain"].fullmatch(shown, last, stop):  # "one half", "we get: a + b"
        start, main = last, stop - last
    return _joined(text, shown, formulas, start, start + main)


def _word(verb: str) -> bool:
    return verb[:1].isalpha()


def _without_commands(text: str) -> str:
    return re.sub(r"\\[a-zA-Z]+|\x00", " ", text)


def _main(shown: str, start: int, stop: int) -> str:
    """The clause from `start` on, up to what only qualifies its first piece of mathematics."""
    found = _RE["maths"].search(shown, start, stop)
    if found is None:
        return ""
    cut = _RE["qualifies"].search(shown, found.end(), stop)
    return shown[start : cut.start() if cut else stop]


def _joined(text: str, shown: str, formulas: list[re.Match[str]], start: int, stop: int) -> str:
    inside = [one for one in formulas if start <= one.start() < stop]
    if not inside:
        return text[start:stop].strip().strip('"').rstrip(".,;:").strip()
    first = inside[0]
    before = shown[start : first.start()]
    if re.search(r"\d", before):  # "5 or $x$": the number counts as well as the formula
        return text[start:stop].replace("$", " ").strip()
    pieces = [_inner(first)]
    end = first.end()
    for one in inside[1:]:
        between = text[end : one.start()]
        if not _RE["join"].fullmatch(between):
            break
        pieces.append(_inner(one))
        end = one.end()
    rest = shown[end:stop].strip(" .,;:")
    if len(pieces) == 1 and rest and re.match(r"(?:%|°|[a-z]{1,12}\b)", rest):
        return f"{pieces[0]} \\text{{ {rest[:40]} }}" if "\x00" not in rest else pieces[0]
    return ", ".join(pieces)


def _inner(formula: re.Match[str]) -> str:
    return next(group for group in formula.groups() if group is not None).strip()
