"""Answers and errors that recur: one arm's same words under many questions, none of them right."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.audit.answers import Answers, Codes, Mask, counts
from routeyard.pipelines.audit.errors import failed
from routeyard.pipelines.audit.finding import Found

#: Characters of a text that are compared, fewest words of one that nobody answers many questions
#: with, and characters up to which a text may be a refusal or an error.
COMPARED, WORDS, LONGEST = 160, 4, 2_000
#: Questions under which it recurs, and share of wrong answers among them.
FEWEST, WRONG = 10, 0.95
#: Chance that as many of an arm's answers are wrong by its other answers' rate.
CHANCE = 1e-6
#: Clusters of one arm that are named.
SHOWN = 3
#: Texts that are looked at together: few enough that memory is used again.
_TOGETHER = 8192
#: Space that is not one space alone: replacing what stays the same takes most of the time.
_SPACE = r"\s\s+|[^\S ]"
#: What differs between two errors of one cause: numbers of requests, hashes, times.
_OWN = r"[0-9a-f]{8,}|\d{3,}"


def recurring_answers(answers: Answers) -> Iterator[Found]:
    """One text under many questions of an arm, wrong under nearly all: a refusal or an error.

    An arm may answer many questions with a letter or a number; it answers them with one sentence
    where it refuses, or where its harness writes the sentence.
    """
    start = pc.utf8_slice_codeunits(answers.texts("text"), 0, COMPARED)
    told = np.asarray(pc.fill_null(pc.count_substring(start, " "), 0))
    fit = (told >= WORDS - 1) & (answers.lengths("text") <= LONGEST) & ~failed(answers)
    for arm, rows, words in _clusters(answers, "text", fit):
        says = f"{len(rows):,} answers are {words!r}, and next to none is right"
        yield Found(answers.arms[arm], f"{says}: a refusal, an error or no answer", rows)


def recurring_errors(answers: Answers) -> Iterator[Found]:
    """One error beside many wrong answers of an arm, and seldom beside any other arm's.

    An exception of the model's own program falls on every arm; one that ends a single arm's
    attempts comes from its set-up.
    """
    wrong = (answers.score == 0) & ~failed(answers)
    total = np.maximum(counts(answers.arm, len(answers.arms), answers.score >= 0), 1)
    if len(answers.arms) < 3:
        return
    words = _words(answers.texts("error"))
    code = np.where(wrong, words.indices.fill_null(-1), -1)
    size = len(words.dictionary)
    each = np.bincount(
        answers.arm[code >= 0] * size + code[code >= 0], minlength=size * len(total)
    ).reshape(len(total), size)
    share = each / total[:, None]
    for arm, k in np.argwhere((each >= FEWEST) & (share >= 0.05)):
        others = np.delete(share[:, k], arm)
        if share[arm, k] <= 5 * max(float(np.max(others)), 0.005):
            continue
        rows = np.flatnonzero((answers.arm == arm) & (code == k))
        says = (
            f"{len(rows):,} of {int(total[arm]):,} answers ended with "
            f"{words.dictionary[int(k)].as_py()[:COMPARED]!r} and count as wrong; no other arm has "
            f"more than {100 * np.max(others):.1f} % of it: its set-up failed"
        )
        yield Found(answers.arms[arm], says, rows)


def _words(texts: pa.Array) -> pa.DictionaryArray:
    """Starts of texts without numbers and hashes, coded."""
    parts = [_start(texts.slice(k, _TOGETHER)) for k in range(0, len(texts), _TOGETHER)]
    return pa.concat_arrays(parts or [texts]).dictionary_encode()


def _start(texts: pa.Array) -> pa.Array:
    lower = pc.utf8_lower(pc.utf8_slice_codeunits(texts, 0, 2 * COMPARED))
    plain = pc.replace_substring_regex(lower, _SPACE, " ")
    plain = pc.utf8_trim_whitespace(pc.replace_substring_regex(plain, _OWN, "…"))
    return pc.utf8_slice_codeunits(plain, 0, COMPARED)


def _clusters(answers: Answers, column: str, fit: Mask) -> Iterator[tuple[int, Codes, str]]:
    """(arm, rows, words) of texts that recur under many questions, nearly all of them wrong."""
    score = answers.score
    usable = np.flatnonzero(fit & ~np.isnan(score))
    if not len(usable):
        return
    starts = pc.utf8_slice_codeunits(answers.texts(column), 0, 2 * COMPARED)
    words = _words(starts.take(pa.array(usable)))
    size = len(words.dictionary)
    key = answers.arm[usable] * size + np.asarray(words.indices)
    order = np.argsort(key, kind="stable")
    keys, starts = np.unique(key[order], return_index=True)
    sizes = np.diff(np.append(starts, len(order)))
    total = counts(answers.arm, len(answers.arms), ~np.isnan(score))
    right = counts(answers.arm, len(answers.arms), score >= 0.5)
    shown: dict[int, int] = {}
    named = sorted(((int(sizes[k]), int(k)) for k in np.flatnonzero(sizes >= FEWEST)), reverse=True)
    for number, k in named:
        rows = np.sort(usable[order[starts[k] : starts[k] + number]])
        arm = int(keys[k] // size)
        own = score[rows] >= 0.5
        if own.mean() > 1 - WRONG or len(np.unique(answers.question[rows])) < FEWEST:
            continue
        rest = total[arm] - len(rows)
        elsewhere = (right[arm] - own.sum() + 0.5) / (rest + 1)
        # As many wrong ones by chance, of any text of the arm.
        if len(rows) * np.log1p(-min(elsewhere, 0.999)) > np.log(CHANCE):
            continue
        shown[arm] = shown.get(arm, 0) + 1
        if shown[arm] <= SHOWN:
            yield arm, rows, words.dictionary[int(keys[k] % size)].as_py()[:80]
