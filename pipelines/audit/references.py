"""References that answers equal and are rejected against, and references that are damaged."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.audit.answers import Answers, counts, ranks
from routeyard.pipelines.audit.finding import Found

#: Rows of a suite that equal their reference and count as wrong, from which it is a finding.
REJECTED = 3
#: A reference that asks for nothing: an article or a preposition alone, a word for no value, signs
#: alone, a separator at its end, a sign of HTML.
_DAMAGED = (
    r"^\W*(the|an|of|and|or|to|is|in|it|this|that|nan|null|n/a|todo|tbd|undefined)?\W*$|"
    r"[\w)\]][;,:]\s*$|&(amp|lt|gt|quot|nbsp|#\d+);"
)


def rejected(answers: Answers) -> Iterator[Found]:
    """Answers that are the reference, but for a unit and marks, and count as wrong; by suite."""
    wrong = np.flatnonzero((answers.score == 0) & (answers.coded("reference") >= 0))
    text = pc.fill_null(answers.texts("text").take(pa.array(wrong)), "")
    keys = answers.texts("reference").take(pa.array(wrong))
    reference = _plain(keys)
    boxed = pc.if_else(pc.match_substring(text, "\\boxed{"), text, None)
    last = pc.struct_field(pc.extract_regex(boxed, _BOXED), "last")
    # Marks and a unit make a text no more than some times as long.
    most = pc.add(pc.multiply(pc.utf8_length(keys), 4), _MARKS)
    short = pc.if_else(pc.less_equal(pc.utf8_length(text), most), text, None)
    told = _plain(pc.coalesce(last, short))
    same = pc.or_kleene(pc.equal(told, reference), pc.equal(_amount(told), _amount(reference)))
    there = pc.greater(pc.utf8_length(reference), 0)
    bad = wrong[np.asarray(pc.fill_null(pc.and_(same, there), False), dtype=bool)]
    number = counts(answers.suite[bad], len(answers.suites))
    few = number[answers.suite[bad]] < REJECTED
    some = {answers.suites[s] or "all questions": bad[answers.suite[bad] == s]
            for s in np.flatnonzero(number >= REJECTED)}  # fmt: skip
    some |= {"other suites": bad[few]} if few.sum() >= REJECTED else {}
    for about, rows in some.items():
        says = f"{len(rows):,} answers are the reference, but for units and marks, and count as "
        yield Found(about, says + "wrong", rows)


#: Characters of marks around an answer, beside four for each of the reference's own.
_MARKS = 100
#: The last answer in a box of a text; its content may hold one pair of braces.
_BOXED = r"(?s).*\\boxed\{+(?P<last>[^{}]*(?:\{[^{}]*\})?[^{}]*)\}"
#: A number alone, with a currency sign before it or a unit behind it.
_AMOUNT = r"^[-−]?[$€£]? ?(?P<number>\d[\d,]*(?:\.\d+)?) ?(?:[a-z°²³]{1,12}|[%$€£])?$"


def _plain(texts: pa.Array) -> pa.Array:
    """Texts in lower case without signs of LaTeX and marks around them."""
    bare = pc.replace_substring_regex(texts, r"\\(?:text|mathrm|mathbf)\b|[\\{}$]", "")
    return pc.utf8_trim(pc.utf8_lower(bare), " \t\r\n.\"'`*")


def _amount(texts: pa.Array) -> pa.Array:
    """The signed number of a text without its unit; null where the text is not a number."""
    number = pc.struct_field(pc.extract_regex(texts, _AMOUNT), "number")
    sign = pc.if_else(pc.match_substring_regex(texts, "^[-−]"), "-", "")
    bare = pc.replace_substring_regex(pc.replace_substring(number, ",", ""), r"\.0*$", "")
    return pc.binary_join_element_wise(sign, bare, "")


def damaged(answers: Answers) -> Iterator[Found]:
    """References that look cut or empty, and that no arm's answer is right against."""
    best = np.full(answers.n_questions, -1.0)
    np.maximum.at(best, answers.question, np.nan_to_num(answers.score, nan=-1.0))
    asked = answers.texts("reference").take(pa.array(answers.first))
    odd = pc.match_substring_regex(asked, _DAMAGED, ignore_case=True)
    bad = np.flatnonzero(np.asarray(pc.fill_null(odd, False), dtype=bool) & (best == 0))
    if not len(bad) or len(bad) > 0.2 * answers.n_questions:
        return  # signs alone are what such questions ask for
    names = answers.texts("question").take(pa.array(answers.first[bad[:3]])).to_pylist()
    said = [asked[int(k)].as_py()[:40] for k in bad[:3]]
    shown = ", ".join(f"{text!r} of {name}" for text, name in zip(said, names, strict=True))
    says = f"{len(bad):,} references look damaged ({shown}), and no answer is right against them"
    yield Found("references", says, np.flatnonzero(np.isin(answers.question, bad)))


#: Answers of an arm on a suite from which verdicts are compared with lengths, arms that have to
#: agree, and share of pairs (right, wrong) in which the longer, or the shorter, one is right.
LENGTHS, ARMS, FOLLOWS = 40, 3, 0.9


def by_length(answers: Answers) -> Iterator[Found]:
    """Suites on which nearly only the length of an answer decides whether it is right."""
    length = answers.lengths("text")
    usable = ~np.isnan(length) & (length > 0) & ~np.isnan(answers.score)
    for s, suite in enumerate(answers.suites):
        found = []
        for a in range(len(answers.arms)):
            rows = np.flatnonzero(usable & (answers.cell == a * len(answers.suites) + s))
            right = answers.score[rows] > 0.5
            if len(rows) < LENGTHS or min(right.sum(), (~right).sum()) < 0.1 * LENGTHS:
                continue
            below = ranks(length[rows])[right].sum() - right.sum() * (right.sum() + 1) / 2
            found.append(below / (right.sum() * (~right).sum()))
        share = float(np.median(found)) if len(found) >= ARMS else 0.5
        if max(share, 1 - share) < FOLLOWS:
            continue
        which = "longer" if share > 0.5 else "shorter"
        says = (
            f"of a right and a wrong answer the {which} one is right in "
            f"{100 * max(share, 1 - share):.0f} % of the pairs (median of {len(found)} arms): the "
            "verdict follows the length"
        )
        yield Found(suite or "all questions", says, np.flatnonzero(usable & (answers.suite == s)))
