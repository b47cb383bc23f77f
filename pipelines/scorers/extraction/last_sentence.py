"""Many outputs at once: the option that a last sentence states, where nothing else can be read.

Most outputs end with "The answer is (C)." Their last sentences are the same ones again and
again and are read once each; of what precedes them, one search in native code tells whether it
could hold a mark, or change how the last one is read. The search finds more than the readers
do, never less, also where a mark begins in front of the sentence and ends in it; an output
that it leaves open is for the scorer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.scorers.extraction.clauses import retracts
from routeyard.pipelines.scorers.extraction.envelopes import calls
from routeyard.pipelines.scorers.extraction.keywords import lowered
from routeyard.pipelines.scorers.extraction.languages import ENGLISH, FOREIGN, OTHER, worded
from routeyard.pipelines.scorers.extraction.marks import SIGNS
from routeyard.pipelines.scorers.extraction.option_marks import FIRM, MARKS, SHORT, stated_alone
from routeyard.pipelines.scorers.extraction.option_text import labelled
from routeyard.pipelines.scorers.extraction.run_on import NEXT, WORDS
from routeyard.pipelines.scorers.patterns import hints, patterns
from routeyard.pipelines.scorers.scorer import LETTERS, UNMARKED, PlainLetter

_MARKS = patterns("marks")
_FINAL = [hint for hint in hints(_MARKS["final"].pattern) if hint.isascii()]
_CANNOT = worded("mcq")["cannot"]
#: Letters of other alphabets that look the same, as single letters ("Ответ: С").
STRANGE = "АВСЕНＡＢＣＤＥＦＧＨＩＪ"

#: A longer output is searched in parts by the scorer.
_MOST = 100_000


def _any(words: Sequence[str]) -> str:
    return "|".join(map(re.escape, words))


_NOUNS = [word for word in (*SIGNS, *ENGLISH.nouns) if word[0].isalpha() and word != "a:"]
#: What precedes no plain statement, in the dialect of RE2, whatever the case: words and signs of
#: marks, of envelopes, of drafts and of templates, and the next question.
OPEN = "|".join(
    (
        rf"(?:^|[^a-z0-9])(?:{_any(_NOUNS)})",
        r"####|(?:^|[\s*_])a:",
        _any(FIRM),
        rf"(?s:(?:{_any(_FINAL)}).{{0,16}}\z)",
        r"\{[^:{}\\]*(?:[:：]|\z)",
        r"(?s:(?:finish|submit|answer|question).?(?:[\[(]|\z))",
        r"~~|</|<\||◁|<e|<think|<ans|\[/|\[ans|\[think|\[inst",
        rf"\n[ \t]{{0,8}}[#*]{{0,4}} {{0,2}}(?:{_any(WORDS)})[^a-z\n:：]{{0,12}}[:：]",
    )
)

#: One of these is in every text that marks an answer or an option, or holds a noun that names one.
_MARK = f"{OPEN}|{_any((*ENGLISH.nouns, *FOREIGN, *MARKS))}"


def last_stated(texts: Sequence[str]) -> list[PlainLetter | None]:
    """What each text states, whatever the question's options are; None where that is open.

    A text in ASCII that has nothing of a mark is `UNMARKED`.
    """
    found: list[PlainLetter | None] = [None] * len(texts)
    places, heads = [], []
    for place, text in enumerate(texts):
        last = len(text.rstrip()) - 1
        start = max(text.rfind(". ", 0, last), text.rfind("\n", 0, last)) + 1
        size = len(text)
        if size - start > SHORT or size > _MOST or (one := _ending(text[start:])) is None:
            continue
        if not text.isascii() and _foreign(text[:start]):
            continue
        found[place] = PlainLetter(one.letter, one.start + start, one.end + start, one.how)
        places.append(place)
        heads.append(text[:start])
    for place, is_open in zip(places, _matched(heads, OPEN), strict=True):
        if is_open:
            found[place] = None
    rest = [
        place
        for place, one in enumerate(found)
        if one is None and len(texts[place]) <= _MOST and texts[place].isascii()
    ]
    for place, marked in zip(rest, _matched([texts[one] for one in rest], _MARK), strict=True):
        if not marked:
            found[place] = UNMARKED
    return found


def _matched(texts: Sequence[str], expression: str) -> list[bool]:
    array = pa.array(texts, pa.string())
    found: list[bool] = pc.match_substring_regex(array, expression, ignore_case=True).to_pylist()
    return found


def _foreign(head: str) -> bool:
    """Whether a text that is not in ASCII has words or letters of other languages that count."""
    signs = OTHER.signs.search(lowered(head)) or any(map(head.__contains__, STRANGE))
    return bool(signs) or _MARKS.hinted("final", head[-16:])


@lru_cache(maxsize=16384)
def _ending(sentence: str) -> PlainLetter | None:
    """What a last sentence states, where it changes nothing in how the text is read."""
    if not sentence.isascii() or any(map(sentence.__contains__, "~<{[")):
        return None
    one = stated_alone(sentence, LETTERS)
    if one is None or len(one.letters) > 1 or any(True for _ in calls(sentence, 0, len(sentence))):
        return None
    if NEXT.search("\n" + sentence) or _CANNOT.search(sentence, one.end):
        return None
    behind = labelled(sentence, one.end)  # the text of an option may follow
    if (behind and sentence[behind.end() :].strip()) or retracts(sentence, one.start):
        return None
    return PlainLetter(one.letters, one.start, one.end, one.how)
