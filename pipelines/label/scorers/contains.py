"""`contains`: whether an answer in free text names a reference, as whole words or as one value.

The answer is the marked one where there is one, else the whole output. It is `correct` where it
names a reference: the words in one run, without case, accents, articles, titles and plurals; all of
them near each other; a name without its middle names; a date or an amount of the same value. A
letter beside a word of the reference is named as well ("s-block", "hepatitis C"). It is
`incorrect` where it commits to something else of the reference's kind (another date, number or
name) and shares none of the reference's words. All else is `abstain`: a reference that is denied
("it is not Paris") or one of several ("Paris or Lyon"), a partial match, other words for a phrase.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from routeyard.pipelines.label.scorers.graded import normalise
from routeyard.pipelines.label.scorers.languages import worded
from routeyard.pipelines.label.scorers.patterns import table
from routeyard.pipelines.label.scorers.reading import short_answer, wonders
from routeyard.pipelines.label.scorers.scorer import Outcome, Scorer, ScoreResult, ScoringInput

# Words of short free text in a form in which equal answers have equal words.
#
# Folded are: case, accents, articles and other words without content, plurals, number words,
# ordinals and Roman numerals, thousands separators, footnote digits after a word or an amount.
# Scripts without spaces (Han, kana, hangul, Thai, …) are read sign by sign; katakana in runs.

_MARKS = "".join(
    chr(code) for code in range(0x300, 0xAC00) if unicodedata.category(chr(code))[0] == "M"
)
_SIGNS = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u309f\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
_WORD = re.compile(
    f"[\u30a0-\u30ff]+|(?<![^\\W_])[A-Z]{{1,3}}\\d{{1,3}}[A-Z]?(?![^\\W_])|[{_SIGNS}]|\\d{{3}}0s\\b|(?<![\\w)\\]}}])[-−]?\\d+(?:[.,:]\\d+)*|\\d+(?:[.,:]\\d+)*"
    f"|(?:(?![{_SIGNS}\u30a0-\u30ff])[^\\W\\d_][{_MARKS}]*)"
    f"(?:['’]?(?![{_SIGNS}\u30a0-\u30ff])[^\\W\\d_][{_MARKS}]*)*"
)
#: 75,0001: an amount, and the footnote that follows it.
_GROUPED = re.compile(r"(-?\d{1,3}(?:,\d{3})+(?:\.\d+)?)\d{0,2}")
#: 1.9 and 1,9: other signs make no amount that can be multiplied.
_DECIMAL = re.compile(r"-?\d+(?:[.,]\d+)?")
#: Where a space was lost: onSeptember.
_GLUED = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
#: "l'Angleterre", "Ankara'dır"
_ELIDED = re.compile(r"^(?:[ldjmnstc]|qu|dell|nell|all|dall|sull|un)'(?=\w{2})")
_ENDING = re.compile(r"(?<=\w{3})'(?!s$)\w{1,5}$")
_LATIN = re.compile("([A-Za-zͰ-ϿЀ-ӿ])[\u0300-\u036f]+")
_LETTERS = str.maketrans({"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i"})
WORDS = table("open_words")
_SAME = [(re.compile(rf"\b(?:{row})(?!\d?[^\W\d]|-)"), row.split("|")[-1]) for row in WORDS["same"]]
#: Words that answer a question alone → whether they affirm.
VERDICTS = {word: yes for yes in (True, False) for word in WORDS[yes].split()}
_CASE = re.compile(WORDS["case"])
_SOFTENED: dict[str, str] = WORDS["softened"]
#: Letters of which a text in an inflecting language has one.
_INFLECTING = re.compile(WORDS["inflecting"])
#: 28. 10. 1918
_SPACED_DATE = re.compile(r"\b(\d{1,2})\.\s(\d{1,2})\.\s(\d{4})\b")
_TENS = frozenset(str(10 * n) for n in range(2, 10))


class Word(NamedTuple):
    """A word with content: its folded form, its place, and whether it is written as a name."""

    form: str
    start: int
    end: int
    name: bool


def fold(text: str) -> str:
    """The text in lower-case compatible forms, without the accents of alphabets that drop them."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_LETTERS)
        text = _LATIN.sub(r"\1", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFC", text)
    for pattern, item in _SAME:
        text = pattern.sub(item, text)
    return _SPACED_DATE.sub(r"\1.\2.\3", text)


def _words_folded(rows: Iterable[str]) -> frozenset[str]:
    return frozenset(fold(" ".join(rows)).casefold().split())


EMPTY = _words_folded(WORDS["empty"])
TITLES = _words_folded(WORDS["titles"])
_SPELLED = table("number_words")
_VALUES = _SPELLED["units"] | _SPELLED["tens"] | WORDS["numbers"]
_NUMBERS = {word: str(value) for word, value in _VALUES.items()}
#: hundred, thousand, …
_SCALES: dict[str, int] = {"hundred": 100} | _SPELLED["scales"]


@lru_cache(maxsize=8192)
def words(text: str, inflected: bool = False) -> tuple[Word, ...]:
    """The words with content, of a text that went through `fold`."""
    results: list[Word] = []
    for match in _WORD.finditer(text):
        raw = match[0]
        form = form_of(raw, inflected)
        if not form or form in EMPTY:
            continue
        before = results[-1] if results else None
        if before and form in _SCALES and _DECIMAL.fullmatch(before.form):
            value = float(before.form.replace(",", ".")) * _SCALES[form]
            results[-1] = before._replace(form=f"{value:.15g}", end=match.end())
        elif (
            before and before.form in _TENS and len(form) == 1 and form.isdigit() and raw.isalpha()
        ):
            results[-1] = before._replace(form=str(int(before.form) + int(form)), end=match.end())
        else:
            results.append(Word(form, match.start(), match.end(), raw[0].isupper()))
    return tuple(results)


def form_of(raw: str, inflected: bool = False) -> str:
    """A word of a folded text as it is compared; of an inflecting language, its stem."""
    word = raw.casefold().replace("’", "'")
    word = word.replace("−", "-")
    if is_number(word):
        word = word.removesuffix(":00")
        grouped = _GROUPED.fullmatch(word)
        return grouped[1].replace(",", "") if grouped else word
    if "'" in word:
        word = _ELIDED.sub("", word)
        # Ankara'da: an ending behind a name
        word = (raw[0].isupper() and _ENDING.sub("", word)) or word
    word = word.removesuffix("'s").replace("'", "")
    if not inflected:
        return _NUMBERS.get(word) or _singular(word)
    return word if _month(word) else (raw.isupper() and _NUMBERS.get(word)) or _stem(word)


def _stem(word: str) -> str:
    """The word without an ending of Slavic case, and with one form of what changes before it."""
    ending = _CASE.search(word) if len(word) > 3 and word not in EMPTY else None
    if ending is None or word in VERDICTS:
        return word
    stem = word[: ending.start()]
    stem = stem[:-1] + _SOFTENED.get(stem[-1], stem[-1])  # Praha, Praze
    return stem[:-2] + stem[-1] if len(stem) > 4 and stem[-2] == "e" else stem  # Karel, Karla


def _singular(word: str) -> str:
    """The word without the ending of an English plural (Harman 1991, the S stemmer)."""
    if len(word) > 4 and word.endswith("ies") and word[-4] not in "ae":
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith("es") and word[-3] in "sxzh":
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "su" else word


#: What tells a name from the one without it, which is no family name: North Korea, Lake Michigan.
_APART = {form for word in _words_folded(WORDS["apart"]) for form in (word, _stem(word))}


def forms(text: str) -> list[str]:
    """The folded words with content."""
    return [word.form for word in words(fold(text))]


def squashed(text: str) -> str:
    """Letters and digits alone: what is left where spaces were lost."""
    return "".join(filter(str.isalnum, fold(text).casefold()))


def is_number(form: str) -> bool:
    """Whether a word is written with digits."""
    return form.lstrip("-")[:1].isdigit()


def unglued(folded: str) -> str:
    """The text with the spaces that were lost before a capital: onSeptember."""
    return _GLUED.sub(" ", folded)


# Dates in free text, as far as they are given: "May 2018", "11 May 2018", "2018-05-11".

_FOOTNOTED_YEAR = re.compile(r"([12]\d{3})[1-9]\d?")
_DAY_MONTH_YEAR = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
#: What follows the parts of a date in Chinese, Japanese and Korean.
_UNITS = tuple("年月日년월일")
_MONTHS = {
    word: place
    for place, row in enumerate(WORDS["months"], start=1)
    for word in fold(row).casefold().split()
}


class Date(NamedTuple):
    """A date as far as it is given."""

    year: int | None
    month: int | None
    day: int | None

    def within(self, other: Date) -> bool:
        """Whether this states all that `other` states, and the same."""
        return all(theirs in (None, mine) for mine, theirs in zip(self, other, strict=True))

    def excludes(self, other: Date) -> bool:
        """Whether the two cannot be one day."""
        return any(None not in (a, b) and a != b for a, b in zip(self, other, strict=True))


def year(form: str) -> int | None:
    """The year that a number can be, also one with a footnote's digit behind it."""
    if len(form) == 4 and form.isdigit() and form[0] in "12":
        return int(form)
    footnoted = _FOOTNOTED_YEAR.fullmatch(form)
    return int(footnoted[1]) if footnoted else None


def dates(tokens: Sequence[Word]) -> list[tuple[Date, int, int]]:
    """The dates and years among words, in their order, each with its first word and its end."""
    places = [
        place
        for place, word in enumerate(tokens)
        if word.form not in _UNITS or not place or not is_number(tokens[place - 1].form)
    ]
    read = _dates([tokens[place].form for place in places])
    return [(date, places[start], places[end - 1] + 1) for date, start, end in read]


def _dates(row: Sequence[str]) -> Iterator[tuple[Date, int, int]]:
    index = 0
    while index < len(row):
        start, month = index, _month(row[index])
        index += 1
        if month:
            before, after = _day(row, start - 1), _day(row, start + 1)
            index += after is not None
            when = year(row[index]) if index < len(row) else None
            index += when is not None
            for day in {before, after} - {None} or {None} if before or after or when else ():
                yield Date(when, month, day), start - (before is not None), index
        elif match := _DAY_MONTH_YEAR.fullmatch(row[start]):
            yield Date(*map(int, reversed(match.groups()))), start, index
        elif (when := year(row[start])) is not None:
            month, day = _day(row, index), _day(row, index + 1)
            if month and day and month <= 12:  # 2018-05-11
                index += 2
                yield Date(when, month, day), start, index
            else:
                yield Date(when, None, None), start, index


def is_month(form: str) -> bool:
    """Whether a word is the name of a month."""
    return _month(form) is not None


def _month(form: str) -> int | None:
    return _MONTHS.get(form) or _MONTHS.get(form + "s")


def _day(row: Sequence[str], index: int) -> int | None:
    form = row[index] if 0 <= index < len(row) else ""
    return int(form) if form.isdigit() and len(form) <= 2 and 1 <= int(form) <= 31 else None


# Answers and references of open questions in the forms in which they are compared.


def _texts_folded(word: str) -> str:
    """A word as a folded text has it; "si" is "sí" there, which affirms, and "an" "än"."""
    form = fold(word).casefold()
    ambiguous = form != word.casefold() and (form in VERDICTS or len(form) < 3)
    return "(?!)" if ambiguous else form


#: What surrounds a reference; <not> and its like are the words of all languages, folded.
RE = worded("contains", _texts_folded)
RE.pieces["doubts"] = table("clauses")["doubts"]


class Text(NamedTuple):
    """A text in the forms in which it is compared; `words` are those with content."""

    folded: str
    words: tuple[Word, ...]
    forms: tuple[str, ...]
    dates: tuple[tuple[Date, int, int], ...]
    letters: str


def text_of(raw: str, *, titles: bool = True, inflected: bool = False) -> Text:
    folded = fold(raw)
    tokens = words(folded, inflected)
    if not titles:
        tokens = tuple(word for word in tokens if word.form not in TITLES) or tokens
    text = tuple(word.form for word in tokens)
    return Text(folded, tokens, text, tuple(dates(tokens)), squashed(folded))


@lru_cache(maxsize=8192)
def accepted(reference: str, inflected: bool = False) -> tuple[Text, ...]:
    """A reference, the same without and within its brackets, and the parts between its `or`s."""
    parts = [reference, *RE["or"].split(reference)]
    parts += [RE["bracketed"].sub(" ", reference), *RE["bracketed"].findall(reference)]
    parts += RE["placed"].findall(reference)
    every = dict.fromkeys(parts)
    result = (text_of(part, titles=False, inflected=inflected) for part in every)
    return tuple(item for item in result if item.folded.strip())


@lru_cache(maxsize=8192)
def lettered(reference: str) -> frozenset[tuple[str, str]]:
    """A folded reference's words with the single letter beside them that tells names apart."""
    return frozenset(pair for m in RE["lettered"].finditer(reference) for pair in _pairs(m[0]))


def has_letters(reference: Text, answer: Text) -> bool:
    """Whether an answer has the letters of a reference: "d-block" is no "s-block"."""
    wanted = lettered(reference.folded)
    return not wanted or wanted <= _pairs(answer.folded)


def _pairs(folded: str) -> set[tuple[str, str]]:
    return set(pairwise(map(form_of, re.findall(r"\w+", folded))))


def is_date(text: Text) -> bool:
    """Whether a text is a date and nothing else."""
    return bool(text.dates) and all(form.isdigit() or is_month(form) for form in text.forms)


# Where an answer names a reference.

#: Words that name a part of what follows.
_PARTS = frozenset(("early", "late", "mid", "middle", "half", "quarter", "second", "first"))
#: Letters and digits from which a name is found although spaces around it were lost.
_LONG = 8


def named(reference: Text, answer: Text, known: Sequence[Date] = ()) -> list[tuple[int, int, str]]:
    """Places (first word, end) of a reference as it is given, and how; (-1, -1) for no place.

    Args:
        known: Dates of all references: a more exact one counts before its year.
    """
    wanted, said, n = reference.forms, answer.forms, len(reference.forms)
    if is_date(reference):
        return _dated(reference, answer, known)
    if RE["signs"].search(reference.folded):  # x+1 has the words of x-1
        same = f" {normalise(reference.folded)} " in f" {normalise(answer.folded)} "
        return [(-1, -1, "the signs and words")] if same else []
    short = n == 1 and (wanted[0] in VERDICTS or (len(wanted[0]) == 1 and not wanted[0].isdigit()))
    if not n or short:  # such words occur in any text
        return [(-1, -1, "the whole answer")] if bare(reference) == bare(answer) else []
    places = [
        (start, start + n, "the words")
        for start, form in enumerate(said)
        if form == wanted[0] and said[start : start + n] == wanted
    ]
    letters = n > 1 and len(reference.letters) >= _LONG and reference.letters in answer.letters
    return places or [(-1, -1, "the letters")] * letters


def _dated(reference: Text, answer: Text, known: Sequence[Date]) -> list[tuple[int, int, str]]:
    """Places of the first date of a reference; none where one of its dates is nowhere."""
    results = [
        [
            (start, end, "a date")
            for item, start, end in answer.dates
            if item.within(date) and not _missed(item, date, known)
        ]
        for date, _, _ in reference.dates
    ]
    return results[0] if all(results) else []


def _missed(said: Date, date: Date, known: Sequence[Date]) -> bool:
    """Whether more exact dates of `date` are known, and the stated one is not among them."""
    exact = [item for item in known if item != date and item.within(date)]
    return bool(exact) and all(said.excludes(item) for item in exact)


def bare(text: Text) -> str:
    """A text without case and the signs around it."""
    return text.folded.casefold().strip(" .,;:!?\"'“”‘’*_`$()[]")


def loosely(
    reference: Text, answer: Text, question: frozenset[str]
) -> Iterable[tuple[int, int, str]]:
    """Places that name a reference in other forms; what the question says proves nothing."""
    wanted, said, n = reference.forms, answer.forms, len(reference.forms)
    if not n or not _has_other_forms(reference):
        return
    if n == 1:
        return
    numbers = set(filter(is_number, wanted))
    own = set(wanted) - question
    for place, form in enumerate(said):
        near = set(said[max(0, place - n - 2) : place + n + 3])
        if form == wanted[-1] and len(own) > 1 and near.issuperset(wanted):
            yield place, place + 1, "the words, near each other"
        elif form == wanted[-1] and _is_the_name(reference, answer, place, question):
            yield place, place + 1, "the name"
        elif form in numbers and _with_word(said, place, numbers, own):
            yield place, place + 1, "the number with a word"


def _has_other_forms(reference: Text) -> bool:
    """Whether other words can name it: no date, formula or signs of a script without spaces."""
    if is_date(reference) or RE["signs"].search(reference.folded):
        return False
    return all(len(form) > 1 or form.isascii() for form in reference.forms)


def _with_word(said: Sequence[str], place: int, numbers: set[str], own: set[str]) -> bool:
    """Whether a reference's numbers and one of its words are within two words of a place."""
    near, words = set(said[max(0, place - 2) : place + 3]), own - numbers
    few = len(words) <= 3 and words & _PARTS <= near  # "the late 12th century" is no 12th century
    return few and near.issuperset(numbers) and bool(near & words)


def _is_the_name(reference: Text, answer: Text, place: int, question: frozenset[str]) -> bool:
    """Whether the last word of a name names it: with its first one, or alone."""
    if _is_last_name(reference, answer, question):
        return True
    names = all(word.name for word in reference.words)
    known = question & {reference.forms[0], reference.forms[-1]}
    return names and not known and _same_person(reference.forms, answer.forms, place)


def _is_last_name(reference: Text, answer: Text, question: frozenset[str]) -> bool:
    """Whether an answer says nothing new but a name's last word, and others of its words."""
    new = [word for word in answer.words if word.form not in question]
    return (
        _APART.isdisjoint(reference.forms[:-1])
        and reference.words[-1].name
        and reference.forms[-1] not in question
        and len(new) <= 3
        and all(word.name and word.form in reference.forms for word in new)
    )


def _same_person(name: Sequence[str], said: Sequence[str], last: int) -> bool:
    """First and last name (middle names left out), or initials for all given names."""
    before = said[max(0, last - 3) : last]
    given_names = said[max(0, last - len(name) + 1) : last]
    initials = len(given_names) == len(name) - 1 and all(
        a[0] == b[0] and (1 in (len(a), len(b)) or a == b)
        for a, b in zip(given_names, name, strict=False)
    )
    short = len(name[0]) > 2 and bool(before) and before[-1][:3] == name[0][:3]
    return name[0] in before or initials or short


# Whether an answer commits to something else than the references.

#: Whole numbers below it are counts and years.
_YEARS = 2200
#: Words with content, not in the question, up to which an answer that shares no word with a
#: reference of this kind is another answer. A phrase may be said in other words: only an answer
#: that is marked, or as short as `_SHORT` words, is another one.
_COMMITS = {"names": 400, "number": 60, "name": 60, "phrase": 13, "signs": 13}
_SHORT = 3


def _another_kind(reference: Text) -> str:
    if any(is_number(form) for form in reference.forms):
        return "number"
    if not all(word.name for word in reference.words):
        cased = reference.folded.lower() != reference.folded.upper()
        return "phrase" if cased else "signs"  # of a script without capitals: a name, perhaps
    return "names" if len(reference.words) > 1 else "name"


def another_answer(
    accepted: Sequence[Text], answer: Text, question: frozenset[str], marked: bool
) -> str:
    """What the answer says in place of any reference; empty where it may say the same."""
    new = [word for word in answer.words if word.form not in question]
    if not new or not _same_script(accepted, new):
        return ""
    if declined := _declines(accepted, answer, new):
        return declined
    if all(map(is_date, accepted)):
        return _other_date([date for item in accepted for date, _, _ in item.dates], answer)
    wanted = {form for item in accepted for form in item.forms} - question
    if _shares(wanted, answer) or _glued(accepted, answer):
        return ""
    short = marked or len(answer.words) <= _SHORT
    commits = _commits(accepted, new, short)
    return f"{new[0].form!r} … shares no word with a reference" if commits else ""


def _declines(accepted: Sequence[Text], answer: Text, new: Sequence[Word]) -> str:
    """That the answer knows none: it says so, and has no date or number if one is asked for."""
    said = answer.folded.casefold().replace("’", "'")
    if not RE["declined"].search(said) or len(new) > 40:
        return ""
    dated, counted = (
        all(map(is_date, accepted)),
        {_another_kind(item) for item in accepted} == {"number"},
    )
    none = (dated and not answer.dates) or (
        counted and not any(is_number(word.form) for word in new)
    )
    return "the answer says that it knows none" if none or not RE["concedes"].search(said) else ""


def _commits(accepted: Sequence[Text], new: Sequence[Word], short: bool) -> bool:
    """Whether words so few are an answer of the references' kinds, and of numbers another one."""
    kinds = {_another_kind(item) for item in accepted}
    if any(len(item.letters) == 1 and item.letters.isalpha() for item in accepted):
        return False  # a letter that the answer may have in any word
    if ("number" in kinds and not _other_number(accepted, new)) or (
        kinds == {"phrase"} and not short
    ):
        return False
    return len(new) <= min(_COMMITS[kind] for kind in kinds)


def _glued(accepted: Sequence[Text], answer: Text) -> bool:
    """Whether a reference's letters are within glued words: "the groupTLC1"."""
    return any(len(item.letters) > 2 and item.letters in answer.letters for item in accepted)


def _shares(wanted: Set[str], answer: Text) -> bool:
    """Whether the answer has one of these words, or another form of it."""
    starts = {_start(form) for form in answer.forms if not is_number(form)}
    return any(
        form in answer.forms or (len(form) > 3 and _start(form) in starts) for form in wanted
    )


def _start(form: str) -> str:
    """The stem of a word, whose other forms count as overlap."""
    return form[: 4 if form.isascii() else 3]


def _other_date(wanted: Sequence[Date], answer: Text) -> str:
    vague = RE["vague"].search(answer.folded.casefold())
    if vague or not answer.dates:
        return ""
    if all(said.excludes(date) for said, _, _ in answer.dates for date in wanted):
        return "another date"
    return ""


def _other_number(accepted: Sequence[Text], new: Sequence[Word]) -> bool:
    """Whether the answer has a number, and none that is a reference's when rounded."""
    said = [n for word in new if (n := _value(word.form)) is not None]
    known = [n for text in accepted for form in text.forms if (n := _value(form)) is not None]
    return bool(said) and not any(_rounded(a, b) for a in said for b in known)


def _rounded(a: float, b: float) -> bool:
    """Whether two numbers may be one, rounded; years and counts are not rounded."""
    exact = a == int(a) and b == int(b) and max(a, b) < _YEARS
    return a == b if exact else abs(a - b) <= 0.05 * max(abs(a), abs(b))


def _value(form: str) -> float | None:
    try:
        value = float(form)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _same_script(accepted: Sequence[Text], new: Sequence[Word]) -> bool:
    """Whether a word of the answer is written in the script of a reference."""
    wanted = {_script(form) for item in accepted for form in item.forms}
    return any(_script(word.form) in wanted or is_number(word.form) for word in new)


def _script(form: str) -> str:
    return unicodedata.name(form[0], "?").split()[0]


# Whether an answer names a rival of the reference: another name, number or date.


def names_another(answer: Text, start: int, end: int, after: str, question: frozenset[str]) -> bool:
    """Whether a clause names another as what is asked for, or as what follows from the rest.

    "The capital is Ottawa", "Adams came before Jefferson, so Adams."
    """
    own = set(answer.forms[start:end])
    concluded = RE["concluded"].search(after)
    if concluded and own.isdisjoint(word.form for word in words(concluded["name"])):
        return True
    for said in RE["says"].finditer(answer.folded):
        names = {word.form for word in words(said["name"])}
        asked = not question.isdisjoint(word.form for word in words(said["what"]))
        if asked and names and names.isdisjoint(own | question):
            return True
    return False


def offered(
    answer: Text,
    start: int,
    end: int,
    both: tuple[frozenset[str], frozenset[str]],
    asked: frozenset[str],
) -> bool:
    """Whether the answer has both names that a question offers, the reference not as its subject.

    The subject of the last sentence that has one is the answer, where its comparative is the
    question's: to "Which is older, A or B?" "A is younger than B" leaves it open.
    """
    own = frozenset(answer.forms[start:end])
    rival = next((pair[1] - pair[0] for pair in (both, both[::-1]) if own <= pair[0]), frozenset())
    places = [place for place, form in enumerate(answer.forms) if form in own | rival]
    if not rival or not rival <= set(answer.forms):
        return False
    at = answer.words[places[-1]].start
    begin = max((match.end() for match in RE["ends"].finditer(answer.folded, 0, at)), default=0)
    subject = next(place for place in places if answer.words[place].start >= begin)
    compared = RE["compared"].findall(answer.folded, begin)
    return answer.forms[subject] not in own or not asked.issuperset(compared)


def candidate(answer: Text, start: int, clause: int, question: frozenset[str]) -> bool:
    """Whether the sentence has a word like the reference's before the clause that names it."""
    sentence = max(answer.folded.rfind(end, 0, clause) for end in (". ", "\n", "? ", "! "))
    said = [word for word in answer.words[:start] if sentence < word.start < clause]
    wanted = answer.words[start]
    return any(rivals(wanted, word) for word in said if word.form not in question)


def rivals(word: Word, other: Word) -> bool:
    """Whether both are numbers (or dates) or both names: candidates for one answer."""
    numbers = [is_number(form) or is_month(form) for form in (word.form, other.form)]
    return all(numbers) or (not any(numbers) and word.name and other.name)


# Whether an answer commits to a reference where it names it.

#: Words, and signs of scripts without spaces.
_SAID = re.compile(r"[^\W\d_\u3040-\u9fff\uac00-\ud7af]+|[\u3040-\u9fff\uac00-\ud7af]")
#: A word of the question that is no nearer to a value than this tells nothing about it.
_FAR = 5


class Wanted(NamedTuple):
    """What is asked for.

    Attributes:
        question: Its words with content.
        said: All of its words.
        references: Words of the references.
        bound: It may be a bound.
        past: It may be what was so.
        end: It is the end of a span.
        supposing: A word of the question begins suppositions elsewhere: "I Can Only Imagine".
    """

    question: frozenset[str]
    said: frozenset[str]
    references: frozenset[str]
    bound: bool
    past: bool
    end: bool
    supposing: bool
    offered: tuple[tuple[frozenset[str], frozenset[str]], ...]


def wanted_of(question: str, references: Sequence[Text], inflected: bool) -> Wanted:
    folded = fold(question)
    return Wanted(
        frozenset(word.form for word in words(folded, inflected)),
        frozenset(_SAID.findall(folded.casefold())),
        frozenset(form for reference in references for form in reference.forms),
        any(map(RE["bound"].search, (folded, *(reference.folded for reference in references)))),
        RE["asks_past"].search(folded.casefold()) is not None,
        RE["asks_end"].search(folded.casefold()) is not None,
        RE["supposing"].search(folded.casefold()) is not None,
        tuple(
            (frozenset(w.form for w in words(m["a"])), frozenset(w.form for w in words(m["b"])))
            for m in RE["choice"].finditer(folded)
        ),
    )


def doubt(answer: Text, start: int, end: int, wanted: Wanted) -> str:
    """Why a reference that is named is not what the answer commits to; empty where it is."""
    if start < 0:
        return ""
    first, last = answer.words[start], answer.words[end - 1]
    before = answer.folded[max(0, first.start - 200) : first.start]
    after = answer.folded[last.end : last.end + 300]
    said = before.casefold()
    if RE["denied_before"].search(said[-80:]) or RE["denied_after"].search(after.casefold()):
        return "the answer denies the reference"
    if wonders(answer.folded, last.end):
        return "the reference stands in a question"
    if _is_supposed(said, after, wanted) or RE["doubts"].search(said[-110:]):
        return "the answer doubts the reference, supposes it or ascribes it to others"
    if not wanted.bound and _is_bound(first, said, after.casefold()):
        return "the reference is only a bound"
    if not wanted.past and _is_of_the_past(answer.folded, first.start, last.end):
        return "the reference is what was so, and another is so today"
    if _of_another_clause(answer, start, end, wanted):
        return "the question asks for what another clause says"
    if _overruled(answer, start, end, wanted.question):
        return "another number or date of the answer overrules the reference"
    if _alternative(answer, start, end, before, after):
        return "the reference is one of several alternatives"
    if _among_others(answer):
        return "the reference is one of a list"
    return _doubt_of_name(answer, start, end, before, after, wanted)


def _doubt_of_name(
    answer: Text, start: int, end: int, before: str, after: str, wanted: Wanted
) -> str:
    """The same for a reference that is named beside others."""
    first, question = answer.words[start], wanted.question
    if any(offered(answer, start, end, pair, wanted.said) for pair in wanted.offered):
        return "the question offers two, and the answer names both"
    if first.name and names_another(answer, start, end, after, question):
        return "the answer says or concludes that it is another name"
    if RE["conceded"].search(before.casefold()) and RE["main"].match(after):
        return "the reference is named in a clause before another answer"
    reason = RE["reason"].search(before)
    if reason and candidate(answer, start, first.start - len(before) + reason.start(), question):
        return "the reference is named in a clause behind another answer"
    return ""


def _is_supposed(before: str, after: str, wanted: Wanted) -> bool:
    """Whether a clause is a supposition: "Suppose …", "Had Curie lived, she would have"."""
    if wanted.supposing or RE["supposes"].search(before):
        return not wanted.supposing
    return bool(RE["opens_if"].search(before) and RE["would_follow"].search(after.casefold()))


def _is_bound(first: Word, before: str, after: str) -> bool:
    """Whether a number or date is a bound: "at least 57", "before 1957", "57 or more"."""
    if not (is_number(first.form) or is_month(first.form)):
        return False
    early = (year(first.form) or is_month(first.form)) and RE["bounded_in_time"].search(before)
    return bool(early or RE["bounded_before"].search(before) or RE["bounded_after"].match(after))


def _is_of_the_past(text: str, start: int, end: int) -> bool:
    """Whether the clause of `text[start:end]` tells what was so, and another what is so today."""
    text = text.casefold()
    if text[:start].rstrip().endswith("used to be"):
        return True
    if not (RE["formerly"].search(text) and RE["today"].search(text)):
        return False
    begin = max((match.end() for match in RE["clause"].finditer(text, 0, start)), default=0)
    then = RE["clause"].search(text, end)
    own = text[begin : then.start() if then else len(text)]
    return bool(RE["formerly"].search(own)) and not RE["today"].search(own)


def _others_of(answer: Text, start: int, end: int, wanted: Wanted) -> Iterator[int]:
    """Places of other years, months or numbers than the one at `start`, of its kind."""
    kind, known = _doubts_kind(answer.words[start]), wanted.question | wanted.references
    dated = [date for date, begin, stop in answer.dates if begin <= start < stop]
    dates = {
        begin
        for date, begin, stop in answer.dates
        if dated and date.excludes(dated[0])
        if not wanted.references.issuperset(answer.forms[begin:stop])
    }
    for place, word in enumerate(answer.words if kind else ()):
        other = word.form not in known or place in dates
        if other and not start <= place < end and kind == _doubts_kind(word):
            yield place


def _of_another_clause(answer: Text, start: int, end: int, wanted: Wanted) -> bool:
    """Whether another clause of the sentence says what the question asks, or both are a span.

    "It began in 1914 and ended in 1918" has two dates; the word beside one tells which is asked.
    """
    own = _nearest(answer, start, end, wanted.said)
    kind = _doubts_kind(answer.words[start])
    for place in _others_of(answer, start, end, wanted):
        first, then = (end, place) if place >= end else (place + 1, start)
        gap = _text_between(answer, first - 1, then)
        if kind == "year" and first == then and RE["span"].fullmatch(gap[:-1]):
            return wanted.end != (place < start)
        if RE["ends"].search(gap) or not RE["clause"].search(gap):
            continue
        other = _nearest(answer, place, place + 1, wanted.said)
        nearer = other < _FAR and other <= own if place > start else other < own
        if nearer or (kind == "year" and place < start and own == _FAR):
            return True
    return False


def _doubts_kind(word: Word) -> str:
    if year(word.form) or is_month(word.form):
        return "year" if is_number(word.form) else "month"
    return "number" * is_number(word.form)


def _nearest(answer: Text, start: int, end: int, asked: frozenset[str]) -> int:
    """How many words away from a place its clause has a word of the question."""
    said, forms = answer.words, answer.forms
    while start > 0 and _doubts_kind(said[start - 1]) in ("year", "month", "number"):
        start -= 1
    for away in range(1, _FAR):
        for place, inner in ((start - away, start), (end - 1 + away, end - 1)):
            if 0 <= place < len(said) and forms.count(forms[place]) == 1:
                gap = _text_between(answer, min(place, inner), max(place, inner))
                like = any(_kindred(forms[place], item) for item in asked)
                if like and not RE["clause"].search(gap):
                    return away
    return _FAR


def _text_between(answer: Text, place: int, then: int) -> str:
    return answer.folded[answer.words[place].end : answer.words[then].start + 1].casefold()


def _kindred(form: str, other: str) -> bool:
    """Whether two words begin alike: began, begin; ended, end."""
    form = form.removeprefix("و")
    shorter = min(len(form), len(other))
    same = shorter if not form.isascii() else min(shorter, 3 if shorter < 6 else 4)
    return form[:same] == other[:same] and (shorter > 2 or form == other)


def _alternative(answer: Text, start: int, end: int, before: str, after: str) -> bool:
    """Whether another name or number is joined to the reference by "or"."""
    if RE["renamed"].search(after.casefold()):
        return False
    first, last = answer.words[start], answer.words[end - 1]
    either = RE["either"].search(before.casefold()[-80:])
    other = RE["alternative_after"].search(after)
    if other:
        then = next((word for word in answer.words if word.end > last.end + other.end()), None)
        if either or (then and rivals(last, then)):
            return True
    joined = RE["alternative_before"].search(before.casefold()[-80:])
    named = [word for word in answer.words[max(0, start - 2) : start] if len(word.form) > 2]
    return bool(joined and (either or (named and rivals(first, named[-1]))))


def _among_others(answer: Text) -> bool:
    """Whether the answer is a bare list of short items, of which the reference is one."""
    items = [item for item in RE["items"].split(answer.folded) if item.strip()]
    few = 3 if RE["rows"].search(answer.folded) else 4
    return len(items) >= few and all(len(item.split()) <= 4 for item in items)


def _overruled(answer: Text, start: int, end: int, question: frozenset[str]) -> bool:
    """Whether a number or date is only what the answer sets another against.

    The other follows a "but" or "so", or the reference follows in brackets.
    """
    first, last = answer.words[start], answer.words[end - 1]
    if not (is_number(first.form) or is_month(first.form)):
        return False
    own = {word.form for word in answer.words[start:end]}
    others = [
        word
        for place, word in enumerate(answer.words)
        if not start <= place < end and word.form not in question | own and rivals(first, word)
    ]
    behind = [answer.folded[last.end : word.start] for word in others if word.start > last.end]
    if any(RE["overrules"].fullmatch(item.casefold()) for item in behind[:4]):
        return True
    opened = answer.folded.rfind("(", 0, first.start)
    within = opened > answer.folded.rfind(")", 0, first.start)
    return within and any(word.end <= opened for word in others)


#: Places of one reference that are looked at: an answer that is right names it early.
_PLACES = 8


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """The reading of one output; `abstain` where it is neither the same nor another answer."""
    if not any(map(accepted, asked.references)):
        return ScoreResult("error", reason="every reference is empty")
    result = short_answer(output, truncated=asked.truncated)
    if result is None:
        return ScoreResult("abstain", reason="no answer to compare")
    value, span, conflict = result
    outcome, reason = compared(asked, value, span, output)
    said = output[slice(*span)]
    if outcome == "abstain":
        return ScoreResult("abstain", None, said, span, reason, conflict)
    return ScoreResult.of(outcome == "correct", said, span, reason, conflict)


def compared(
    asked: ScoringInput, raw: str, span: tuple[int, int], output: str
) -> tuple[Outcome, str]:
    """`correct`, `incorrect` or `abstain` for the answer `output[slice(*span)]`, and why."""
    marked = "answer_in" in asked.metadata or span[1] - span[0] < len(output.strip(" \n.\"'*"))
    inflected = _INFLECTING.search(f"{asked.question} {raw}") is not None
    references = [item for said in asked.references for item in accepted(said, inflected)]
    answer = text_of(raw, inflected=inflected)
    if any(bare(item) == bare(answer) != "" for item in references):
        return "correct", "the whole answer"
    if all(len(item.forms) == 1 and item.forms[0] in VERDICTS for item in references):
        return _yes_or_no(references, answer)
    doubts = ""
    known = [date for item in references for date, _, _ in item.dates]
    wanted = wanted_of(asked.question, references, inflected)
    for text in (answer, *_unglued(answer, inflected)):
        for reference in (item for item in references if has_letters(item, text)):
            places = named(reference, text, known) or loosely(reference, text, wanted.question)
            for start, end, how in islice(places, _PLACES):
                doubts = doubt(text, start, end, wanted)
                if not doubts:
                    return "correct", f"{how}: {reference.folded[:80]!r}"
    if doubts:
        return "abstain", doubts
    reason = another_answer(references, answer, wanted.question, marked)
    return ("incorrect", reason) if reason else ("abstain", "neither the reference nor another")


def _yes_or_no(references: Sequence[Text], answer: Text) -> tuple[Outcome, str]:
    """Yes and no occur in any text: only the first word of an answer is one."""
    said = VERDICTS.get(answer.forms[0]) if answer.forms else None
    if said is None:
        return "abstain", "the answer does not begin with yes or no"
    right = said in {VERDICTS.get(reference.forms[0]) for reference in references}
    return "correct" if right else "incorrect", f"begins with {answer.forms[0]!r}"


def _unglued(answer: Text, inflected: bool) -> Iterable[Text]:
    parted = unglued(answer.folded)
    return [text_of(parted, inflected=inflected)] if parted != answer.folded else []


SCORER = Scorer(
    "contains",
    "10",
    read,
    instruction="Answer in one short sentence.",
    escalate_on="not_correct",
)
