"""The mathematical answer inside a sentence that states it.

"The largest $n$ is 34." states 34: what stands behind the verb, not the first
formula. Clauses that only qualify ("for all $x>0$", "which is …") are cut off.
"""

# ruff: noqa: E501 - the tables and patterns read better in one line
from __future__ import annotations

import re

_FORMULA = re.compile(
    r"\$\$(.{1,600}?)\$\$|\$((?:[^$\\]|\\.){1,400})\$|\\\((.{1,400}?)\\\)|\\\[(.{1,600}?)\\\]",
    re.DOTALL,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|equals?|be|becomes?|gives?|comes (?:out )?to|obtain|get|have|that)\b(?! (?:not|also)\b)"
    r"|[:=](?=\s|$)",
    re.IGNORECASE,
)
_QUALIFIES = re.compile(
    r"[,;]?\s(?:which|where|since|because|when|whenever|if|as|so that|that|who|with|for (?:all|every|any|some|each)|"
    r"on|by|after|before|per|in order|such)\b|\.\s|;\s",
    re.IGNORECASE,
)
# "35%, as there are 7 of 20": the answer stands first, a clause of its own explains it.
_EXPLAINED = re.compile(
    r"[-−$]{0,2}(?:\d|\x00)[^,;:=\n]{0,40}(?:,\d{3}[^,;:=\n]{0,40}){0,3},\s(?=(?:which|as|since|because)\s)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[\w)}%\]°])[.!?](?:\s|$)|(?<=\$)[.!?](?:\s|$)")
_MATHS = re.compile(r"\d|\\[a-z]{2,}|[∞πØ∅√]|\x00")
_LABEL = re.compile(
    r"^\W{0,4}(?:(?:so|thus|hence|therefore|then)[,: ]{1,2})?(?:the |my )?(?:final |correct )?(?:answer|ans|result|solution)"
    r"\W{0,3}(?:is|=|:)?\s{0,2}(?:[:=]\s{0,2})?",
    re.IGNORECASE,
)
# "not 5/6 but 1/10": what is rejected goes.
_NOT_BUT = re.compile(r"^not\s[^\n;]{1,80}?,?\sbut\s(?:rather\s)?", re.IGNORECASE)
_FUNCTION = re.compile(r"(?:arc)?(?:pi|sin|cos|tan|log|ln|exp|sqrt|det|lim|max|min|cot|sec|csc)h?")
_JOIN = re.compile(r"[\s,;]{0,4}(?:and|or|,|;)?[\s,;]{0,4}")


def stated_value(text: str) -> str:
    """The answer of a sentence, as LaTeX or plain text without `$`.

    Formulas that follow each other ("$2$ and $3$") are one list.
    """
    text = _LABEL.sub("", text.strip(), count=1) if len(text) < 400 else text.strip()
    text = _NOT_BUT.sub("", text, count=1)
    formulas = list(_FORMULA.finditer(text))
    # Formulas are opaque while the sentence around them is read.
    masked = list(text)
    for one in formulas:
        masked[one.start() : one.end()] = "\x00" * (one.end() - one.start())
    shown = "".join(masked)
    if sentence := _SENTENCE.search(shown):
        shown = shown[: sentence.start()]
        formulas = [one for one in formulas if one.start() < sentence.start()]
    if explained := _EXPLAINED.match(shown):
        return _joined(text, shown, formulas, 0, explained.end())
    words = re.findall(r"[A-Za-z]{2,}", _without_commands(shown))
    if not words or (not _MATHS.search(shown) and all(map(_FUNCTION.fullmatch, words))):
        return _joined(text, shown, formulas, 0, len(shown))
    start, stop = 0, len(shown)
    for verb in _VERB.finditer(shown):
        if _MATHS.search(_main(shown, verb.end(), stop)):
            start = verb.end()
            if not _word(verb[0]):
                break
    stop = start + len(_main(shown, start, stop))
    return _joined(text, shown, formulas, start, stop)


def _word(verb: str) -> bool:
    return verb[:1].isalpha()


def _without_commands(text: str) -> str:
    return re.sub(r"\\[a-zA-Z]+|\x00", " ", text)


def _main(shown: str, start: int, stop: int) -> str:
    """The clause from `start` on, up to what only qualifies its first piece of mathematics."""
    found = _MATHS.search(shown, start, stop)
    if found is None:
        return ""
    cut = _QUALIFIES.search(shown, found.end(), stop)
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
        if not _JOIN.fullmatch(between):
            break
        pieces.append(_inner(one))
        end = one.end()
    rest = shown[end:stop].strip(" .,;:")
    if len(pieces) == 1 and rest and re.match(r"(?:%|°|[a-z]{1,12}\b)", rest):
        return f"{pieces[0]} \\text{{ {rest[:40]} }}" if "\x00" not in rest else pieces[0]
    return ", ".join(pieces)


def _inner(formula: re.Match[str]) -> str:
    return next(group for group in formula.groups() if group is not None).strip()
