"""Answers that nobody gave or graded, counted as wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.audit.answers import Answers, Codes, Floats, Found, Mask, counts
from routeyard.schemas.statuses import FAILED_TEXT, status_of

#: What an error's name or message says where the infrastructure failed. A program's own exception
#: (`AssertionError`) is the model's.
FAILED = (
    r"(api|http|server|network|connection|request|service|gateway|proxy|docker|container|sandbox|"
    r"infra\w*|harness|setup|provider|openai|anthropic|bard|bedrock|vertex)[\W_]*\w{0,20}"
    r"(error|issue|exception|fail\w*|refused|reset|aborted|down|crash\w*|unavailable)|"
    r"rate[\W_]?limit|time[\W_]?out|timed[\W_]out|overloaded|quota|too many requests|"
    r"\b(429|50[0-4]|529)\b|(context|token)[\W_](length|limit|window)|out of memory|"
    r"\b(base|setup|env\w*|harness|install|image)_failed"
)
#: Words of a status that say that an answer is wrong, and those that say nobody graded it, beside
#: the ones of `schemas/statuses.py`.
_WRONG = frozenset(["failed", "failure", "fail", "unresolved", "incorrect", "wrong"])
_UNGRADED = frozenset(
    [
        "not_run",
        "not_submitted",
        "not_evaluated",
        "unevaluated",
        "ungradable",
        "no_score",
        "no_grade",
        "no_result",
        "no_verdict",
        "no_generation",
        "unknown",
        "missing",
    ]
)
#: Those of them that say that there is no answer.
_NOT_GIVEN = frozenset(["not_run", "not_submitted", "no_generation", "missing"])
#: Words of a status that say that a limit ended the attempt.
LIMIT = (
    r"\bmax[\W_]?(steps?|turns?|iter\w*|tokens?|rounds?|calls?|length|episode\w*)|"
    r"(steps?|turns?|iterations?|tokens?|budget|cost|length|call)[\W_]?(limit\w*|exceeded|exhausted)|"
    r"^(length|truncated|budget)$|out[\W_]of[\W_](steps|budget|tokens|turns)"
)
#: Length up to which a text can be an error in place of an answer.
_SHORT = 2_000
#: Chance of a run of failures from which it is no chance, and its shortest length.
CHANCE, RUN = 1e-6, 10
#: Share of the other arms that answer a question from which it is one that an arm should answer.
EASY = 0.5


def infrastructure_errors(answers: Answers) -> Iterator[Found]:
    """Attempts that the infrastructure ended, and that count as wrong; by arm."""
    bad = failed(answers) & (answers.score == 0)
    yield from _by_arm(answers, bad, "are errors of the infrastructure, counted as wrong")


def failed(answers: Answers) -> Mask:
    return answers.cached("failed", _find_failed)


def _find_failed(answers: Answers) -> Mask:
    bad = np.zeros(len(answers), bool)
    if answers.has("status"):
        bad |= _with_status(answers, lambda word, told: told in ("error", "timeout"))
        bad |= _matching(answers, "status", FAILED)
    if answers.has("error"):
        bad |= _matching(answers, "error", FAILED)
    if answers.has("text"):
        short = answers.lengths("text") <= _SHORT
        bad |= _matching(answers, "text", FAILED_TEXT) & short
    return bad


def _with_status(answers: Answers, wanted: Callable[[str, str | None], bool]) -> Mask:
    """(n,) rows whose status, as a word and as ours, is wanted."""
    hit = [
        (word := re.sub(r"[\s-]+", "_", name.strip().lower())) not in _WRONG
        and wanted(word, status_of(name))
        for name in answers.names("status")
    ]
    return np.asarray(np.array([*hit, False])[answers.coded("status")])


def _matching(answers: Answers, column: str, pattern: str) -> Mask:
    """(n,) whether a text matches an RE2 pattern; each different text is looked at once."""
    values = answers.different(column)
    told = pc.match_substring_regex(values.dictionary, pattern, ignore_case=True)
    hit = np.append(np.asarray(told, dtype=bool), False)
    return np.asarray(hit[np.asarray(pc.fill_null(values.indices, len(hit) - 1))])


def ungraded(answers: Answers) -> Iterator[Found]:
    """Answers whose status says that nobody gave or graded them, and that count as wrong; by arm.

    Many benchmarks count a question without an answer as wrong: that is a doubt.
    """
    wrong = answers.score == 0
    never = _never_given(answers)
    yield from _by_arm(
        answers, _never_graded(answers) & ~never & wrong, "were never graded and count as wrong"
    )
    for found in _by_arm(answers, never & wrong, "were never given and count as wrong"):
        yield replace(found, severity="doubt")


def _never_graded(answers: Answers) -> Mask:
    words = ("ungraded", "unanswered")
    return _with_status(answers, lambda word, told: told in words or word in _UNGRADED)


def _never_given(answers: Answers) -> Mask:
    return _with_status(answers, lambda word, told: told == "unanswered" or word in _NOT_GIVEN)


def stopped(answers: Answers) -> Iterator[Found]:
    """Answers that a limit of steps, tokens or money ended, and that count as wrong; by arm."""
    bad = _matching(answers, "status", LIMIT) & (answers.score == 0) & ~failed(answers)
    yield from _by_arm(answers, bad, "were stopped at a limit of the benchmark and count as wrong")


def scored_without_answer(answers: Answers) -> dict[str, Mask]:
    """Kind of grave finding → (n,) answers that nobody gave or graded, and that count as wrong."""
    wrong = answers.score == 0
    found = {"infrastructure_errors": failed(answers) & wrong}
    if answers.has("status"):
        never = _never_graded(answers) & ~_never_given(answers) & ~failed(answers)
        found["ungraded_as_wrong"] = never & wrong
    return found


def not_graded(answers: Answers) -> Mask:
    """(n,) answers that the infrastructure ended or nobody graded, and that count as wrong."""
    bad = failed(answers)
    if answers.has("status"):
        bad = bad | _never_graded(answers)
    return np.asarray(bad & (answers.score == 0))


def empty_answers(answers: Answers) -> Iterator[Found]:
    """Empty texts with a score, where the arm has texts elsewhere; by arm.

    A text that is missing altogether is empty only where the arm's right answers all have one.
    """
    trimmed = pc.utf8_length(pc.utf8_trim_whitespace(answers.texts("text")))
    length = np.asarray(pc.fill_null(trimmed, -1))
    right = answers.score >= 0.5
    size = len(answers.arms)
    unkept = counts(answers.arm, size, right & (length < 0)) > 0
    unkept |= counts(answers.arm, size, length > 0) == 0
    empty = (length == 0) | ((length < 0) & ~unkept[answers.arm])
    empty &= ~failed(answers) & ~np.isnan(answers.score)
    yield from _by_arm(answers, empty & ~right, "are empty and count as wrong")
    for found in _by_arm(answers, empty & right, "are empty and count as right"):
        yield Found(found.about, found.says, found.rows, "grave")


def _by_arm(answers: Answers, bad: Mask, says: str) -> Iterator[Found]:
    number = counts(answers.arm, len(answers.arms), bad)
    total = counts(answers.arm, len(answers.arms), ~np.isnan(answers.score))
    for k in np.argsort(-number, kind="stable"):
        if number[k]:
            rows = np.flatnonzero(bad & (answers.arm == k))
            yield Found(
                answers.arms[k], f"{int(number[k]):,} of {int(total[k]):,} answers {says}", rows
            )


def failures_in_a_row(answers: Answers) -> Iterator[Found]:
    """Runs of wrong answers, in the order of the source, to questions that most arms answer.

    Under chance alone the longest of an arm's runs over n such questions is one given run with a
    probability of at most n times the product of its chances of failing each.
    """
    if len(answers.arms) < 3:
        return
    there = (_others(answers) >= EASY) & ~np.isnan(answers.score)
    for arm, name in enumerate(answers.arms):
        rows = np.flatnonzero((answers.arm == arm) & there)
        wrong = answers.score[rows] == 0
        start, length = _longest(wrong)
        if length < RUN:
            continue
        run = np.zeros(len(rows), bool)
        run[start : start + length] = True
        rate = _failing_elsewhere(answers.suite[rows], wrong, run)
        if np.log(len(rows)) + np.log(rate[run]).sum() > np.log(CHANCE):
            continue
        own = np.flatnonzero((answers.arm == arm) & (answers.score == 0))
        says = (
            f"{length} questions in a row that most arms answer are wrong, where it fails "
            f"{100 * wrong[~run].mean():.0f} % of them elsewhere: an outage, not the model"
        )
        yield Found(name, says, own[(own >= rows[start]) & (own <= rows[start + length - 1])])


def _failing_elsewhere(suite: Codes, wrong: Mask, run: Mask) -> Floats:
    """(n,) chance of failing each question, as outside the run on its suite.

    1 where the arm has next to no others of that suite: a suite that an arm fails is no outage.
    Neighbouring questions are alike, so failures are a little contagious.
    """
    size = int(suite.max(initial=0)) + 1
    others = np.bincount(suite[~run], minlength=size)
    failed = np.bincount(suite[~run & wrong], minlength=size)
    rate = np.where(others >= RUN, (failed + 1) / (others + 2), 1.0)
    return np.maximum(rate[suite], _after_failure(wrong[~run]))


def _after_failure(wrong: Mask) -> float:
    before, after = wrong[:-1], wrong[1:]
    return float(after[before].mean()) if before.any() else 0.0


def _others(answers: Answers) -> Floats:
    """(n,) mean score of the other arms on each row's question; NaN where no other has one."""
    score = np.nan_to_num(answers.score)
    known = (~np.isnan(answers.score)).astype(float)
    total = np.bincount(answers.question, weights=score, minlength=answers.n_questions)
    number = np.bincount(answers.question, weights=known, minlength=answers.n_questions)
    left = number[answers.question] - known
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(left > 1, (total[answers.question] - score) / left, np.nan)


def _longest(wrong: Mask) -> tuple[int, int]:
    """(start, length) of the longest run."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], wrong.astype(np.int8), [0]])))
    starts, ends = edges[::2], edges[1::2]
    if not len(starts):
        return 0, 0
    k = int(np.argmax(ends - starts))
    return int(starts[k]), int(ends[k] - starts[k])


# Answers and errors that recur: one arm's same words under many questions, none of them right.

#: Characters of a text that are compared, fewest words of one that nobody answers many questions
#: with, and characters up to which a text may be a refusal or an error.
COMPARED, WORDS, LONGEST = 160, 4, 2_000
#: Questions under which it recurs, and share of wrong answers among them.
FEWEST, WRONG = 10, 0.95
#: Chance that as many of an arm's answers are wrong by its other answers' rate.
REFUSALS_CHANCE = 1e-6
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
        if len(rows) * np.log1p(-min(elsewhere, 0.999)) > np.log(REFUSALS_CHANCE):
            continue
        shown[arm] = shown.get(arm, 0) + 1
        if shown[arm] <= SHOWN:
            yield arm, rows, words.dictionary[int(keys[k] % size)].as_py()[:80]
