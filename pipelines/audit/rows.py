"""Rows that are not the arm's own, rows that come twice, rows that contradict one another."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from routeyard.pipelines.audit.answers import Answers, Codes, counts
from routeyard.pipelines.audit.finding import Found
from routeyard.pipelines.model_names import same_model

#: Characters from which a text is an answer that no two models give word for word.
LONG = 80
#: Answers that two arms share from which, and share of an arm's long answers from which, its rows
#: are another's.
SHARED, SHARE = 5, 0.02
#: Part of a name that two arms have in common from which they are of one model, and share of equal
#: answers from which that explains nothing.
ALIKE, MANY = 0.6, 0.1


def served(answers: Answers) -> Iterator[Found]:
    """Answers that another model than the arm's served, by arm and name."""
    names = answers.texts("served_model").dictionary_encode()
    known, code = names.dictionary.to_pylist(), np.asarray(pc.fill_null(names.indices, -1))
    for k, arm in enumerate(answers.arms):
        mine = answers.arm == k
        total = int(np.sum(mine & (code >= 0)))
        for c in np.unique(code[mine & (code >= 0)]):
            rows = np.flatnonzero(mine & (code == c))
            if same_model(arm, known[c]) or _spelled(known[c]) in _spelled(arm):
                continue
            # An arm may be named otherwise than any model: then one name serves all of it.
            if len(rows) == total and known[c] not in answers.arms:
                continue
            says = f"{len(rows):,} of {total:,} answers are {known[c]!r}'s, as their rows say"
            yield Found(arm, says, rows)


def _spelled(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.rsplit("/", 1)[-1].lower())


def copies(answers: Answers) -> Iterator[Found]:
    """Answers of an arm that are word for word another arm's answers to the same questions.

    Arms of one family share a few; a pair is a finding when it shares far more than the arms'
    other pairs do. Of arms of one model, by their names, a few are only a note.
    """
    groups = _equal_answers(answers)
    size = len(answers.arms)
    pairs = np.zeros((size, size))
    for rows in groups:
        own = np.unique(answers.arm[rows])
        pairs[np.ix_(own, own)] += 1
    total = counts(answers.arm, size, answers.lengths("text") >= LONG)
    share = pairs / np.maximum(np.minimum(total[:, None], total[None, :]), 1)
    np.fill_diagonal(share, 0)
    for a, b in np.argwhere(np.triu(pairs >= SHARED, 1) & (share > SHARE)):
        rest = np.delete(np.concatenate([share[a], share[b]]), [a, b, size + a, size + b])
        if len(rest) and share[a, b] <= 3 * np.quantile(rest, 0.75):
            continue
        shared = [one[np.isin(answers.arm[one], (a, b))] for one in groups]
        both = [one for one in shared if len(np.unique(answers.arm[one])) > 1]
        names = answers.arms[a], answers.arms[b]
        common = difflib.SequenceMatcher(None, *names).find_longest_match().size
        alike = common >= ALIKE * min(map(len, names)) and share[a, b] < MANY
        says = (
            f"{int(pairs[a, b]):,} long answers to the same questions ({100 * share[a, b]:.0f} %) "
            "are equal word for word: rows of one are stored under the other, or both are one model"
        )
        found = np.sort(np.concatenate(both))
        yield Found(f"{names[0]} and {names[1]}", says, found, "note" if alike else None)


def _equal_answers(answers: Answers) -> list[Codes]:
    """Rows of several arms with one long text under one question, and under no other question."""
    rows = np.flatnonzero(answers.lengths("text") >= LONG)
    text, question = answers.equal("text")[rows], answers.question[rows]
    order, starts = _grouped(text, question)
    size = np.diff(np.append(starts, len(order)))
    # A refusal or a template answers many questions.
    questions_of_text = np.bincount(text[order][starts]) if len(starts) else np.empty(0)
    wanted = (size > 1) & (questions_of_text[text[order][starts]] == 1) if len(starts) else []
    found = [rows[order[k : k + n]] for k, n in zip(starts[wanted], size[wanted], strict=True)]
    return [one for one in found if len(np.unique(answers.arm[one])) > 1]


def _grouped(a: Codes, b: Codes) -> tuple[Codes, Codes]:
    """Order that sorts by (a, b), and where each pair starts in it."""
    order = np.lexsort((b, a))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(a[order]) != 0) | (np.diff(b[order]) != 0)
    return order, np.flatnonzero(new)


def repeated(answers: Answers) -> Iterator[Found]:
    """Rows that answer what another row has answered: one arm, question and sample."""
    sample = np.nan_to_num(answers.table.column("sample").to_numpy(zero_copy_only=False), nan=-1)
    key = answers.arm * answers.n_questions + answers.question
    order, starts = _grouped(key, sample.astype(np.int64))
    size = np.diff(np.append(starts, len(order)))
    if size.max(initial=0) < 2:
        return
    inside = np.repeat(np.arange(len(starts)), size)
    again = order[size[inside] > 1]
    score = np.nan_to_num(answers.score[order], nan=-1)
    low = np.minimum.reduceat(score, starts)
    differ = (np.maximum.reduceat(score, starts) != low) & (size > 1)
    if (size == size[0]).all() and not answers.has("sample"):
        says = f"every question has {size[0]} rows of each arm that nothing numbers: samples?"
        yield Found("sample", says, again, "note")
        return
    says = (
        f"{len(again):,} rows come {int(size.max())} times or twice: one arm, question and sample"
    )
    if differ.any():
        says += f"; {int(differ.sum()):,} of them with different scores"
    yield Found("rows", says, np.sort(again), "grave" if differ.any() else None)


def both_ways(answers: Answers) -> Iterator[Found]:
    """The same answer to the same question, right in one row and wrong in another."""
    score = answers.score
    text = answers.equal("text")
    rows = np.flatnonzero(((score == 0) | (score == 1)) & (text >= 0))
    key = answers.question
    if answers.has("reference"):
        key = key * (int(answers.coded("reference").max()) + 2) + answers.coded("reference") + 1
    order, starts = _grouped(key[rows], text[rows])
    number = np.diff(np.append(starts, len(order)))
    if not len(rows):
        return
    right = np.add.reduceat(score[rows][order], starts)
    differ = (right > 0) & (right < number)
    if not differ.any():
        return
    inside = np.repeat(differ, number)
    found = rows[order][inside]
    minority = np.repeat(right * 2 <= number, number)[inside]
    odd = found[np.where(minority, score[found] == 1, score[found] == 0)]
    empty = int(np.sum(np.nan_to_num(answers.lengths("text")[odd]) == 0))
    says = (
        f"{int(differ.sum()):,} answers are right in one row and wrong in another under the same "
        f"question{f' ({empty} of them empty)' if empty else ''}"
    )
    yield Found("grades", says, np.sort(odd))
