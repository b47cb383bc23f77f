"""Where an output names an option: markers, letters and their surroundings.

Every repeat is bounded, and matching starts at a keyword found by plain
search, so reading takes linear time whatever the output holds.
"""

# ruff: noqa: E501 - the tables and patterns read better in one line
from __future__ import annotations

import re
from dataclasses import dataclass

from routeyard.pipelines.scorers.comparison.words import normalise
from routeyard.pipelines.scorers.extraction.keywords import lowered, occurrences
from routeyard.pipelines.scorers.extraction.option_text import Options, matching, repeats


@dataclass(frozen=True, slots=True)
class NamedOption:
    """A commitment to the options `letters` (several when the text names several).

    `firm`: the text calls it the answer; weaker statements ("option C is
    correct") count only where nothing firm is said.
    """

    letters: str
    start: int
    end: int
    how: str
    firm: bool


_IS = (
    r"(?:\s{1,3}(?:choice|option|letter|statement|response))?"
    r"(?:\s(?:to|for|of|in)\s[^\n.:]{1,80}?)?"
    r"(?:\s{0,2}[*_]{0,3}\s{0,2}[:：=][*_]{0,3}"
    r"|\s{1,3}[*_]{0,3}(?:is|was|would\sbe|should\sbe|must\sbe|will\sbe|are)\b[*_]{0,3})"
)
_MARKS: dict[str, tuple[tuple[str, bool, re.Pattern[str]], ...]] = {
    keyword: tuple((how, firm, re.compile(pattern, re.IGNORECASE)) for how, firm, pattern in marks)
    for keyword, marks in {
        "answer": (
            ("field", True, r"answer\\?[\"']\s{0,3}:"),
            ("tag", True, r"answer\s?[>\]]\s{0,4}"),
            ("stated", True, r"answers?[*_]{0,3}" + _IS),
            ("option", False, r"answers?\s{1,2}(?=[(*]{1,3}[A-Z]\b)"),
        ),
        "boxed": (("boxed", True, r"boxed\s{0,2}\{"),),
        "correct": (
            ("correct", True, r"correct\s(?:choice|option|letter)" + _IS),
            (
                "correct",
                False,
                r"correct\s(?!answer)(?:[a-z-]{1,20}\s){0,3}?(?:is|would be|should be)\b",
            ),
        ),
        "option": (
            ("option", False, r"options?\s{1,2}(?=[(*]{0,3}[A-Z]\b)"),
            ("closest", False, r"option\b[^\n.]{0,60}?\sis:?(?=\s{1,3}[*]{0,2}\([A-Z]\))"),
        ),
        "choice": (
            ("option", False, r"choices?\s{1,2}(?=[(*]{0,3}[A-Z]\b)"),
            ("closest", False, r"choice\b[^\n.]{0,60}?\sis:?(?=\s{1,3}[*]{0,2}\([A-Z]\))"),
        ),
        "choose": (("choose", False, r"choose\b"),),
        "select": (("choose", False, r"select\b"),),
        "go with": (("choose", False, r"go with\b"),),
        "final choice": (("stated", True, r"final choice" + _IS),),
        "答案": (("stated", True, r"答案(?:是|为|：|:|选)"),),
        "选": (("stated", True, r"选(?:择|项)?[:：是为]?(?=\s{0,2}[（(]?[A-Z](?![A-Za-z]))"),),
    }.items()
}
# "The answer is" of other languages, with the article or noun that stands before the letter.
_ABROAD = {
    "respuesta": r"respuesta(?:\s\w{1,12}){0,2}(?:\s(?:es|sería)|\s?[:：])(?:\s(?:la|el))?(?:\s(?:opción|opcion|letra|alternativa))?",
    "resposta": r"resposta(?:\s\w{1,12}){0,2}(?:\s(?:é|seria)|\s?[:：])(?:\s(?:a|o)(?=\s(?:letra|opção|alternativa)))?(?:\s(?:letra|opção|alternativa))?",
    "risposta": r"risposta(?:\s\w{1,12}){0,2}(?:\s(?:è|é|sarebbe)|\s?[:：])(?:\sla)?(?:\s(?:lettera|opzione))?",
    "antwort": r"antwort(?:\s\w{1,12}){0,1}(?:\s(?:ist|lautet|wäre)|\s?[:：])(?:\s(?:die|der|das))?(?:\s(?:option|buchstabe))?",
    "réponse": r"réponse(?:\s\w{1,12}){0,2}(?:\s(?:est|serait)|\s?[:：])(?:\s(?:la|le|l'option))?(?:\s(?:lettre|option))?",
    "ответ": r"ответ(?:ом)?(?:\s?[:：]|\s[—–-]|\s(?:это|является|под))?(?:\s(?:вариант|буква|буквой))?",
    "答え": r"答え(?:は|：|:)", "正解": r"正解(?:は|：|:)", "解答": r"解答(?:は|：|:)",
    "정답": r"정답(?:은|:|：)", "답": r"답(?:은|:|：)",
    "الإجابة": r"الإجابة(?:\sالصحيحة|\sالنهائية)?(?:\s?[:：]|\sهي)(?:\sالخيار|\sالحرف)?",
    "الجواب": r"الجواب(?:\sالصحيح|\sالنهائي)?(?:\s?[:：]|\sهو)(?:\sالخيار|\sالحرف)?",
}  # fmt: skip
_MARKS |= {
    keyword: (("stated", True, re.compile(pattern, re.IGNORECASE)),)
    for keyword, pattern in _ABROAD.items()
}
_ASCII_MARKS = tuple(keyword for keyword in _MARKS if keyword.isascii())
_NOT = re.compile(r"\s{0,2}(?:not\b|n't\b|neither\b|isn't)", re.IGNORECASE)
# The letter behind its filler, brackets, boxes and emphasis, and what closes them.
_OPTION = re.compile(
    r"[\s:：]{0,4}(?:\}\s{0,2})?(?:(?:therefore|thus|simply|then|likely|probably|indeed|most|clearly|definitely|"
    r"either|both|the|an|option|choice|letter|statement|number|answer|is|part)\b[\s:：]{0,4}){0,6}"
    r"(?P<open>(?:[*_`$\"'“‘「【\[(（{<]|\\\(|\\boxed\s{0,2}\{|"
    r"\\(?:text|textbf|mathrm|mathbf|bf|rm)\s{0,2}\{?){0,6})\s{0,2}"
    r"(?P<letters>[A-Z](?:[)\]*]{0,3}(?:\s{0,2}(?:,|&|/)\s{0,2}(?:and\s|or\s)?|\s(?:and|or)\s)[(*]{0,3}"
    r"[A-Z](?![A-Za-z'])[)]?){0,12}|[A-J]{2,10}(?=[)\]}*]))"
    r"(?P<close>[*_`$\"'”’」】\])）}>.:;,]{0,6})(?![A-Za-z0-9'’+=^−])(?!-\w)"
    # "G_th(f) = …", "F(x) = …": a symbol of a formula
    r"(?!_\{?\w)(?!\([^()\n]{1,12}\)\s{0,2}=)",
    re.IGNORECASE,
)
_LETTER = re.compile(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])")
_CONNECTS = re.compile(
    r"\s{0,2}(?:because|since|as\b|for\b|and\b|but\b|which|where|with|that|due|given|so\b|is\b|"
    r"are\b|was\b|or\b|by\b|in\b|from\b|if\b|here|only|correct|[-–—(:,.;!?*=≈$\\])",
    re.IGNORECASE,
)
_AFTER_OPTION = re.compile(
    r"[)\]*:.,]{0,4}\s{1,2}(?:is|would be|must be|seems|appears)\s"
    r"(?:therefore\s|thus\s|the\s|most\s|likely\s|also\s){0,3}"
    r"(?:correct|right|true|answer|best)\b(?!\s(?:if|only if|when))",
    re.IGNORECASE,
)
_SKIP = re.compile(r"[ \t\n:*_\"'`$({]*")
# "The answers are:\n* (E) for the cost.\n* (E) for the number."
_ITEM = re.compile(
    r"[\s:：*]{0,6}\n[ \t]{0,4}(?:[-*•]|\d[.)])[ \t]{1,3}\*{0,2}\((?P<letter>[A-Z])\)[^\n]{0,200}"
)


def commitments(text: str, end: int, allowed: str, options: Options) -> list[NamedOption]:
    """What the text commits to, in order; only the weak ones when none is firm."""
    found: list[NamedOption] = []
    floor = 0
    keywords = _ASCII_MARKS if text.isascii() else _MARKS
    for position, keyword in occurrences(lowered(text), keywords, end):
        before = text[position - 1 : position]
        if position < floor or (before.isalpha() and keyword.isascii()):
            continue
        for how, firm, pattern in _MARKS[keyword]:
            mark = pattern.match(text, position, end)
            if mark is None or (how == "tag" and before not in ("<", "[")):
                continue
            choice = _named(text, mark.end(), end, allowed, options, how, firm)
            if choice is not None:
                found.append(choice)
                # A text that was compared with the options may hold a further mark.
                floor = max(mark.end(), 0 if choice.how.endswith("content") else choice.end)
                break
    firm_ones = [one for one in found if one.firm]
    return firm_ones or found


def _named(
    text: str, start: int, end: int, allowed: str, options: Options, how: str, firm: bool
) -> NamedOption | None:
    if _NOT.match(text, start, end):
        return None
    if firm and (items := _items(text, start, end, allowed, how)):
        return items
    option = _OPTION.match(text, start, min(end, start + 300))
    if option is not None:
        # "(a) 0.012, (b) 0.986" are the parts of an option's text, not two options.
        spelled = firm and option["letters"].islower() and options
        if spelled and (repeated := by_content(text, start, end, options, how)):
            return repeated
        choice = _lettered(text, option, end, allowed, options, how, firm)
        if choice is not None:
            return choice
    return by_content(text, start, end, options, how) if firm else None


def _items(text: str, start: int, end: int, allowed: str, how: str) -> NamedOption | None:
    """The options that the items of a list begin with, where a statement is such a list."""
    letters, first, stop = "", 0, start
    while (item := _ITEM.match(text, stop, end)) and item["letter"] in allowed:
        first = first or item.start("letter")
        letters += "" if item["letter"] in letters else item["letter"]
        stop = item.end()
    return NamedOption(letters, first, stop, how, True) if letters else None


def _is_part_of_prose(raw: str, rest: str, content: str) -> bool:
    """Whether a word follows the bare letter: "is a matter of …", "is I think", "is C major"."""
    if not rest or not rest[0].isalnum():
        return False
    follows = normalise(rest)
    names_it = content and (follows.startswith(content[:12]) or content.startswith(follows[:12]))
    return not names_it and (raw in "aAiI" or raw.islower() or not _CONNECTS.match(rest))


def _lettered(
    text: str,
    option: re.Match[str],
    end: int,
    allowed: str,
    options: Options,
    how: str,
    firm: bool,
) -> NamedOption | None:
    raw = option["letters"]
    glued = len(raw) > 1 and raw.isalpha()  # "(BFI)": three options
    letters = "".join(dict.fromkeys(raw if glued else _LETTER.findall(raw))).upper()
    if not letters or any(letter not in allowed for letter in letters):
        return None
    start, stop = option.start("letters"), option.end("letters")
    if how == "option" and not _AFTER_OPTION.match(text, stop, end):
        return None
    bracketed = bool(option["open"].strip()) or option["close"][:1] in tuple(")）]}*")
    rest = text[stop : min(end, stop + 80)].lstrip(" \t")
    if not bracketed and _is_part_of_prose(raw, rest, dict(options).get(letters[0], "")):
        return None
    marked = bracketed or how in ("field", "boxed", "tag")
    if raw.islower() and not marked and rest[:1] not in ("", ".", "\n", ",", ":"):
        return None
    if len(letters) == 1 and (other := _and_another(text, stop, end, letters, options)):
        letters += other
    return NamedOption(letters, start, stop, how, firm)


# "B. New varieties** and **D. Less oversight"
_AND = re.compile(r"\W{0,4}\s(?:and|&)\s[(*]{0,4}(?P<letter>[A-Z])[*)]{0,2}[.):]\**\s")


def _and_another(text: str, start: int, end: int, letter: str, options: Options) -> str:
    """The letter that is joined by "and" to an option whose text stands behind its own."""
    content = dict(options).get(letter, "")
    stop = min(end, start + len(content) + 60)
    for joined in _AND.finditer(text, start, stop) if content else ():
        if normalise(text[start : joined.start()]) == content and joined["letter"] != letter:
            return joined["letter"] if joined["letter"] in dict(options) else ""
    return ""


def by_content(text: str, start: int, end: int, options: Options, how: str) -> NamedOption | None:
    """The option whose text the statement repeats, when exactly one is repeated."""
    if not options:
        return None
    start = _SKIP.match(text, start, min(end, start + 40)).end()  # type: ignore[union-attr]
    stop = text.find("\n", start, min(end, start + 400))
    stop = min(end, start + 400) if stop < 0 else stop
    said = text[start:stop]
    letter = matching(said, options)
    return NamedOption(letter, start, stop, how + ", by content", True) if letter else None


# "F. Individual counseling", "(F) Individual counseling": a letter in front of an option's text.
_BEFORE_CONTENT = re.compile(
    r"(?<![\w'’])[(\[*]{0,3}(?P<letter>[A-Z])[)\]*]{0,3}[.:)]\*{0,2}\s{1,2}"
)
_REFUSED = re.compile(
    r"\b(?:not|n't|n’t|incorrect|wrong|false|eliminate\w*|rule\w* out|excluded?|unlikely)\b",
    re.IGNORECASE,
)
#: A text that puts more letters in front of something than this goes through its options.
_MOST_SPELLED = 12


def spelled_out(text: str, end: int, options: Options) -> list[NamedOption]:
    """The one option that an unmarked text names by its letter and its whole text.

    A text that spells out two different ones discusses them; one that is refused nearby is none.
    """
    contents = {letter: content for letter, content in options if len(content) > 3}
    found: dict[str, NamedOption] = {}
    for count, one in enumerate(_BEFORE_CONTENT.finditer(text, 0, end)):
        if count >= _MOST_SPELLED:
            return []
        content = contents.get(one["letter"], "")
        stop = min(end, one.end() + 2 * len(content) + 60)
        if not content or not repeats(normalise(text[one.end() : stop]), one["letter"], contents):
            continue
        if _REFUSED.search(text, max(0, one.start() - 40), one.start()):
            return []
        after = one.end() + len(content)
        if _REFUSED.search(text, min(after, end), min(after + 60, end)):
            return []
        start = one.start("letter")
        found[one["letter"]] = NamedOption(one["letter"], start, start + 1, "letter and text", True)
    return list(found.values()) if len(found) == 1 else []
