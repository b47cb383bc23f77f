"""Where an output marks an answer: every mark, in the order of the text.

An output may commit more than once: in a JSON field or a tag, in `\\boxed{}`,
after `####`, on an `Answer:` line, or in a sentence ("the answer is …"), in
English or in the ten languages of `_ABROAD`. Which of them counts is decided in
`commitment`.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from routeyard.pipelines.scorers.extraction.keywords import lowered, occurrences
from routeyard.pipelines.scorers.extraction.run_on import end_of_answer

#: A stated answer is read no further than this, but for the digits of one long
#: number; longer texts are prose.
LONGEST = 2000
#: Only the last commitments are kept: repetitive outputs state thousands.
MOST = 40
#: Of a longer output only the beginning and the end are searched, so that megabytes
#: of repetition take no longer than this much text.
MOST_READ, HEAD = 400_000, 100_000


@dataclass(frozen=True, slots=True)
class Committed:
    """One commitment: `text[start:end]`, and how it was marked.

    `kind` is a row of `commitment.TRUST`: `field`, `boxed`, `hash`, `final`,
    `label`, `stated` or `bold`. `closed` is False for a box or quote that the
    output ends in the middle of.
    """

    kind: str
    start: int
    end: int
    text: str
    closed: bool = True


_HOW = (
    r"\**\s{1,3}(?:(?:to|for|of)\s[^\n.:]{1,80}?\s)?"
    r"(?:is|was|would be|should be|must be|will be|equals|comes (?:out )?to|=)(?!\w)"
    # A denial, and the announcement of a form ("will be in the form m/n"), commit to nothing.
    r"(?!\s{1,3}(?:n't|never|incorrect|wrong|correct|right|verified)\b)"
    r"(?!\s{1,3}not\b(?!(?:[^.\n]|\.(?=\d)){1,60}\bbut\b))"
    r"(?!\s{1,3}(?:in (?:the|a|its)? ?(?:form|terms|units|format|simplest|lowest)\b|of the form|"
    r"expressed|written|given (?:by|in|as)|found by|obtained by|determined by|rounded|"
    r"a (?:single|positive|negative|whole|non-?negative|rational|real)\b))"
    r"(?:\s{1,3}(?:therefore|thus|simply|then|approximately|about|exactly|just)\b)?\s{0,3}[:：]?"
)
# Keyword → one pattern that matches from the keyword on; its groups are the kinds of mark, in
# order of preference.
_MARKS: dict[str, re.Pattern[str]] = {
    keyword: re.compile(
        "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in marks), re.IGNORECASE
    )
    for keyword, marks in {
        "answer": (
            ("field", r"answer\\?[\"'] {0,4}:"),
            ("tag", r"(?<=[<\[])answer\s?[>\]]"),
            ("label", r"answer(?: \([^)\n]{0,40}\))?[*_]{0,3} {0,2}[:：=][*_]{0,3}"),
            ("stated", "answer" + _HOW),
        ),
        "result": (("stated", "result" + _HOW),),
        "solution": (("stated", "solution" + _HOW),),
        "boxed": (("boxed", r"boxed(?:\s{0,3}\{| (?=[0-9A-Za-z]))"),),
        "fbox": (("boxed", r"fbox\s{0,3}\{"),),
        "####": (("hash", r"#{4}(?!#)(?= {0,3}[^\s#A-Za-z])"),),
        "ans:": (("label", "ans:"),),
        "a:": (("label", "a:"),),
    }.items()
}
# "The answer is" and "Answer:" of ten languages; the verb, colon or particle is wanted.
_ABROAD = {
    "respuesta": r"respuesta(?: (?:correcta|final))?",
    "resposta": r"resposta(?: (?:correta|final))?",
    "risposta": r"risposta(?: (?:corretta|finale))?",
    "antwort": r"antwort",
    "réponse": r"réponse(?: (?:correcte|finale))?",
    "ответ": r"ответ(?:ом)?",
    "答案": "答案", "答え": "答え", "正解": "正解", "解答": "解答", "답": "답(?:변)?",
    "الإجابة": r"الإجابة(?: الصحيحة| النهائية)?", "الجواب": r"الجواب(?: الصحيح| النهائي)?",
}  # fmt: skip
_SAID_ABROAD = (
    r"[*_]{0,3}\s{0,2}(?:[:：=][*_]{0,3}|[—–-](?=\s)|\s?(?:es|é|è|ist|lautet|est|является|هي|هو)(?!\w)"
    r"|是|为|為|は|が|은|는|이)"
)
_MARKS |= {
    keyword: re.compile(f"(?P<stated>(?:{pattern}){_SAID_ABROAD})", re.IGNORECASE)
    for keyword, pattern in _ABROAD.items()
}
_ASCII_MARKS = tuple(keyword for keyword in _MARKS if keyword.isascii())
# The last line, when all of it is bold: "**7**".
_BOLD = re.compile(r"[ \t>]{0,8}(\*\*|__)(?P<said>[^*\n]{1,80}?)\1[ \t.!]{0,4}")
_MARKUP = " \t*_#>-`"
_FINAL = re.compile(r"\bfinal[ *_]{1,4}$", re.IGNORECASE)
_DIGITS = re.compile(r"[\d,]*")
_TAG_END = re.compile(r"[<\[]\s?/\s?answer", re.IGNORECASE)
_IF = re.compile(r"\b(?:if|in which case|had|were)\b", re.IGNORECASE)
# A JSON string, and one whose quotes are themselves escaped because it stands in another.
_QUOTED = re.compile(r'\s{0,40}"((?:[^"\\]|\\.)*)', re.DOTALL)
_QUOTED_TWICE = re.compile(r'\s{0,40}\\"((?:[^"\\\n]|\\[^"\n])*)')
_QUOTED_SINGLE = re.compile(r"\s{0,40}'([^'\n]*)'")
_BARE = re.compile(r"\s{0,40}([^\n}\"]*)")


def committed(text: str) -> list[Committed]:
    """Commitments in the order of the text; drafts and run-on questions are left out."""
    if len(text) > MOST_READ:
        if end_of_answer(text[:HEAD]) < HEAD:
            return committed(text[:HEAD])
        shift = len(text) - (MOST_READ - HEAD)
        return [
            Committed(one.kind, one.start + shift, one.end + shift, one.text, one.closed)
            for one in committed(text[shift:])
        ]
    end = end_of_answer(text)
    found: deque[Committed] = deque(maxlen=MOST)
    floor = after_draft(text, end)
    keywords = _ASCII_MARKS if text.isascii() else _MARKS
    for position, keyword in occurrences(lowered(text), keywords, end):
        if position < floor or not _starts_word(text, position, keyword):
            continue
        mark = _MARKS[keyword].match(text, position, end)
        if mark is None:
            continue
        kind = mark.lastgroup or ""
        start, stop = _extent(kind, text, mark.end(), end)
        if start < stop and not _supposed(kind, text, position):
            found.append(_made(kind, text, position, start, stop))
            # A field or box is read as a whole; sentences may hold a further mark.
            floor = stop if kind in ("field", "tag", "boxed") else mark.end()
    if (last := _bold_line(text, end)) and (not found or found[-1].end < last.start):
        found.append(last)
    return list(found)


def after_draft(text: str, end: int) -> int:
    """Index behind a closed thinking part that something follows; else 0."""
    closed = text.rfind("</think>", 0, end)
    return closed + 8 if closed >= 0 and text[closed + 8 : end].strip() else 0


def _made(kind: str, text: str, position: int, start: int, stop: int) -> Committed:
    closed = kind != "boxed" or text[stop : stop + 9].lstrip()[:1] == "}" or text[start - 1] == " "
    if kind == "tag":
        kind = "field"
    elif kind in ("label", "stated") and _FINAL.search(text, max(0, position - 12), position):
        kind = "final"
    elif kind == "label" and text[text.rfind("\n", 0, position) + 1 : position].strip(_MARKUP):
        kind = "stated"  # "so, answer: 5" within a line
    return Committed(kind, start, stop, text[start:stop], closed)


def _bold_line(text: str, end: int) -> Committed | None:
    stop = len(text[max(0, end - 400) : end].rstrip()) + max(0, end - 400)
    begin = text.rfind("\n", 0, stop) + 1
    line = _BOLD.fullmatch(text, begin, stop)
    # "**Note: …**" and a heading are bold, and no answers.
    if line is None or begin == 0 or ":" in line["said"]:
        return None
    return Committed("bold", line.start("said"), line.end("said"), line["said"])


def _starts_word(text: str, position: int, keyword: str) -> bool:
    before = text[position - 1 : position]
    if keyword == "a:":  # only at the beginning of a line: "A: 45"
        return text[position] == "A" and not text[max(0, position - 8) : position].rpartition("\n")[
            2
        ].strip(" \t*_")
    return not before.isalnum() if keyword.isascii() else not _continues(before, text[position])


def _continues(before: str, sign: str) -> bool:
    """Whether a letter of the same alphabet stands before (scripts without spaces excepted)."""
    return before.isalpha() and before.islower() and sign.islower()


# "had there been 12, the answer would be \\boxed{12}"
_WOULD = re.compile(r"\bwould (?:be|have been|become|equal)[\s:$\\*(\[]{0,6}$")


def _supposed(kind: str, text: str, start: int) -> bool:
    """Whether what is stated holds under a condition only; a box needs a "would" as well."""
    if kind == "boxed" and not _WOULD.search(text, max(0, start - 40), start):
        return False
    return kind in ("stated", "boxed") and _hypothetical(text, start)


def _hypothetical(text: str, start: int) -> bool:
    """Whether the statement stands under an "if" or "in which case" of its own sentence."""
    before = text[max(0, start - 240) : start]
    return bool(_IF.search(before[before.rfind(". ") + 1 :].rpartition("\n")[2]))


def _extent(kind: str, text: str, start: int, end: int) -> tuple[int, int]:
    if kind == "field":
        return _field_extent(text, start, end)
    if kind == "tag":
        close = _TAG_END.search(text, start, min(end, start + LONGEST))
        return trim(text, start, close.start() if close else _line_end(text, start, end))
    if kind == "boxed":
        if text[start - 1] == " ":  # \\boxed 5
            return start, start + 1
        stop = closing_brace(text, start, end)
        return trim(text, start, stop if stop is not None else _line_end(text, start, end))
    stop = _line_end(text, start, end)
    if not text[start:stop].strip(" \t*_:$"):
        # "Answer:" alone on its line: the answer is the next line that says something.
        start, stop = _next_line(text, stop, end)
    return trim(text, start, stop)


def _field_extent(text: str, start: int, end: int) -> tuple[int, int]:
    for pattern in (_QUOTED, _QUOTED_TWICE, _QUOTED_SINGLE, _BARE):
        if found := pattern.match(text, start, min(end, start + LONGEST)):
            first, last = found.span(1)
            if text.startswith('\\"', first) and text.endswith('\\"', first + 2, last):
                first, last = first + 2, last - 2  # "answer": "\\"18\\""
            if text[first:last].strip():
                return trim(text, first, last)
    return start, start


def closing_brace(text: str, start: int, end: int) -> int | None:
    """Index of the brace that closes the one before `start`; None when it never closes."""
    first = text.find("}", start, min(end, start + 20_000))
    if first < 0 or text.find("{", start, first) < 0:
        return first if first >= 0 else None
    depth = 1
    index = start
    stop = min(end, start + LONGEST)
    while index < stop:
        sign = text[index]
        if sign == "\\":
            index += 2
            continue
        if sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return index
        index += 1
    return None


def _line_end(text: str, start: int, end: int) -> int:
    cut = min(start + LONGEST, end)
    stop = text.find("\n", start, cut)
    return stop if stop >= 0 else _DIGITS.match(text, cut, end).end()  # type: ignore[union-attr]


def _next_line(text: str, start: int, end: int) -> tuple[int, int]:
    index = start
    while index < end and text[index] in " \t\r\n*_":
        index += 1
    stop = _line_end(text, index, end)
    line = text[index:stop].strip()
    if line in ("\\[", "$$", "\\("):  # a display formula opens on a line of its own
        inner = stop + 1
        return inner, _line_end(text, inner, end)
    return index, stop


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without surrounding white space."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
