"""Which references are probably wrong, judged by which answers models of different skill choose.

A latent-truth model in the manner of Dawid and Skene (1979), with difficulty of questions as in
Rasch's: model m gives the true answer of a question with probability σ(θ_m − b), b ~ N(0, s²);
wrong answers fall on the other options by a Dirichlet-multinomial of concentration α per option,
so that agreement on a tempting wrong one is expected; the reference is the truth but for a share ε.
A model that repeats another's mistakes counts for less. Everything is estimated from the answers
alone, so the result is a probability, not a vote.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

#: Other answers to a question that are considered as its truth, the most frequent first.
_OTHERS = 6
#: Options of a question that lists none.
_OPEN = 10
#: Questions that parameters are estimated from; scoring them is linear in their number.
_SAMPLE = 4000
#: Similarity of wrong answers from which two models are copies of one.
_COPY = 0.9
#: Share of wrong references that is usual in published sets (Gema and others 2024 find 2 to 3 %
#: in MMLU), and of how many questions its weight is.
_USUAL, _PRIOR = 0.02, 50.0
_GRID = np.linspace(-3.5, 3.5, 29)
_MASS = np.log(np.exp(-(_GRID**2) / 2) / np.exp(-(_GRID**2) / 2).sum())


@dataclass(frozen=True)
class _Votes:
    """answers: int8 [q, m], 0 the reference, 1… others by frequency, -1 none; options: [q]."""

    answers: Any
    options: Any
    weight: Any


@dataclass
class _Parameters:
    skill: Any
    spread: float = 2.0
    alpha: float = 0.5
    wrong: Any = 0.02


def wrong_keys(said: pa.Table, *, least: float = 0.1, models: int = 3) -> pa.Table:
    """Questions whose reference is probably wrong, the most probable first.

    Args:
        said: query_id, model_id, task, options (0 where a question lists none), `answer` as it
            is compared, and `right`: whether it is the reference's. One row per model.
        least: Probability from which a question is listed.
        models: Answers that a question needs, and models that err each in their own way.

    Returns:
        query_id, task, answer (what models say instead), agreeing, answered, `probability` that
        the reference is wrong, and `apart`: the most frequent answer has under half of the votes,
        so that the question, not its reference, is in doubt.
    """
    query_ids, tasks, names, votes = _votes(said)
    enough = (votes.answers >= 0).sum(axis=1) >= models
    probability = np.zeros(len(query_ids))
    truth = np.zeros((len(query_ids), _OTHERS + 2))
    at = np.flatnonzero(enough)
    votes.weight[:] = _discount(votes.answers[at[:_SAMPLE]])
    # Copies of one model are one voice: with too few, nobody can say who errs.
    if len(at) >= 2 and votes.weight.sum() > models - 0.5:
        found = _fit(_take(votes, at[:_SAMPLE]))
        wrong = np.full(len(query_ids), found.wrong)
        for _ in range(2):
            for start in range(0, len(at), _SAMPLE):
                part = at[start : start + _SAMPLE]
                truth[part] = _posterior(_take(votes, part), replace(found, wrong=wrong[part]))[0]
            # Subjects differ in how many keys are wrong: each has its own share, drawn to the
            # common.
            wrong = _shares(tasks, truth[:, 0], enough, found.wrong)
        probability[at] = 1 - truth[at, 0]
    other = 1 + truth[:, 1:-1].argmax(axis=1)
    agreeing = (votes.answers == other[:, None]).sum(axis=1)
    answered = (votes.answers >= 0).sum(axis=1)
    top = np.maximum(agreeing, (votes.answers == 0).sum(axis=1))
    listed = np.flatnonzero((probability >= least) & (agreeing >= 2))
    order = listed[np.lexsort((listed, -probability[listed].round(9)))]
    return pa.table(
        {
            "query_id": pa.array(query_ids[order], pa.string()),
            "task": pa.array(tasks[order], pa.string()),
            "answer": pa.array([names[k, other[k]] for k in order.tolist()], pa.string()),
            "agreeing": pa.array(agreeing[order]),
            "answered": pa.array(answered[order]),
            "probability": pa.array(probability[order].round(4)),
            "apart": pa.array((top < answered / 2)[order]),
        }
    )


def _votes(said: pa.Table) -> tuple[Any, Any, dict[tuple[int, int], str], _Votes]:
    """Ids and tasks of questions by id, (row, code) → answer, and the matrix of answers."""
    rows = said.sort_by([("query_id", "ascending"), ("model_id", "ascending")])
    ids, first, q = np.unique(
        rows.column("query_id").to_numpy(), return_index=True, return_inverse=True
    )
    model_ids, m = np.unique(rows.column("model_id").to_numpy(), return_inverse=True)
    right = rows.column("right").to_numpy()
    words = np.where(right, "", rows.column("answer").to_numpy()).astype(str)
    pairs, each, count = np.unique(
        np.rec.fromarrays([q, words]), return_inverse=True, return_counts=True
    )
    # Codes within a question: the reference 0, others from 1 by falling frequency.
    of, word = pairs["f0"], pairs["f1"]
    order = np.lexsort((word, -count, word != "", of))
    start = np.searchsorted(of[order], np.arange(len(ids)))
    code = np.empty(len(pairs), np.int64)
    code[order] = np.arange(len(pairs)) - start[of[order]]
    has_key = np.zeros(len(ids), bool)
    has_key[of[word == ""]] = True
    code += ~has_key[of]
    answers = np.full((len(ids), len(model_ids)), -1, np.int16)
    answers[q, m] = code[each]
    distinct = answers.max(axis=1, initial=0)
    options = rows.column("options").to_numpy()[first]
    options = np.maximum(np.where(options > 1, options, _OPEN), distinct + 2 - (options > 1))
    names = {(int(a), int(b)): str(c) for a, b, c in zip(of, code, word, strict=True)}
    votes = _Votes(answers, np.maximum(options, 2), np.ones(len(model_ids)))
    return ids, rows.column("task").to_numpy()[first], names, votes


def _take(votes: _Votes, at: Any) -> _Votes:
    return _Votes(votes.answers[at], votes.options[at], votes.weight)


def _fit(votes: _Votes) -> _Parameters:
    """Skills, spread, concentration and share of wrong references by alternating maximisation."""
    from scipy.special import expit

    found = _Parameters(_logit((votes.answers == 0).sum(axis=0), (votes.answers >= 0).sum(axis=0)))
    for _ in range(5):
        tried = [
            _Parameters(found.skill, float(spread), float(alpha), found.wrong)
            for spread in found.spread * np.array([0.8, 1.0, 1.25])
            for alpha in found.alpha * np.array([0.7, 1.0, 1.4])
        ]
        found = max(tried, key=lambda one: _posterior(votes, one)[1])
        truth, _ = _posterior(votes, found)
        doubted = float((1 - truth[:, 0]).sum()) + _PRIOR * _USUAL
        found.wrong = min(doubted / (len(truth) + _PRIOR), 0.3)
        seen = votes.answers >= 0
        code = np.clip(votes.answers, 0, _OTHERS)
        hit = np.take_along_axis(truth, code, axis=1) * (seen & (votes.answers <= _OTHERS))
        share = np.clip(hit.sum(axis=0) / np.maximum(seen.sum(axis=0), 1), 0.01, 0.99)
        # The skill whose mean over difficulties is that share, by bisection.
        low, high = np.full(len(share), -12.0), np.full(len(share), 24.0)
        for _ in range(40):
            middle = (low + high) / 2
            mean = expit(middle[:, None] - found.spread * _GRID) @ np.exp(_MASS)
            low, high = np.where(mean < share, middle, low), np.where(mean < share, high, middle)
        found.skill = (low + high) / 2
    return found


def _posterior(votes: _Votes, given: _Parameters) -> tuple[Any, float]:
    """P(truth = code) [q, codes + 1 for an answer that nobody gave], and the log-likelihood."""
    from scipy.special import expit, gammaln, logsumexp

    answers, weight, alpha = votes.answers, votes.weight, given.alpha
    chance = np.clip(expit(given.skill[:, None] - given.spread * _GRID), 1e-6, 1 - 1e-6)
    right, wrong = np.log(chance) * weight[:, None], np.log1p(-chance) * weight[:, None]
    seen = (answers >= 0).astype(float)
    codes = range(max(int(answers.max(initial=0)) + 1, _OTHERS + 1))
    tables = np.stack([((answers == code) * weight).sum(axis=1) for code in codes], axis=1)
    spread = gammaln(alpha + tables) - gammaln(alpha)
    every, total, others = spread.sum(axis=1), tables.sum(axis=1), votes.options - 1
    # The last: an answer that nobody gave.
    chosen = np.column_stack([tables[:, : _OTHERS + 1], np.zeros(len(answers))])
    of_chosen = np.column_stack([spread[:, : _OTHERS + 1], np.zeros(len(answers))])
    likely = np.full((len(answers), _OTHERS + 2), -np.inf)
    for code in range(_OTHERS + 2):
        hit = ((answers == code) & (code <= _OTHERS)).astype(float)
        fits = logsumexp(hit @ right + (seen - hit) @ wrong + _MASS, axis=1)
        # Wrong answers over the other options.
        left = total - chosen[:, code]
        of_wrong = every - of_chosen[:, code]
        of_wrong = of_wrong + gammaln(alpha * others) - gammaln(alpha * others + left)
        known = (code in (0, _OTHERS + 1)) | (chosen[:, code] > 0)
        likely[:, code] = np.where(known, fits + of_wrong, -np.inf)
    given_others = (tables[:, 1:] > 0).sum(axis=1)
    unsaid = np.maximum(votes.options - 1 - given_others, 0)
    with np.errstate(divide="ignore"):
        likely[:, 0] += np.log1p(-np.asarray(given.wrong))
        likely[:, 1:] += np.log(np.asarray(given.wrong) / others)[..., None]
        likely[:, -1] += np.log(unsaid)
    total_of = logsumexp(likely, axis=1)
    return np.exp(likely - total_of[:, None]), float(total_of.sum())


def _discount(answers: Any) -> Any:
    """Weight of each model, mean 1: less, the more of its wrong answers it shares with another.

    Shared: Jaccard similarity of their wrong answers, in excess of the median pair's. Copies of
    one model have the weight of one together.
    """
    m = answers.shape[1]
    same = np.zeros((m, m))
    for code in range(1, int(answers.max(initial=0)) + 1):
        said = (answers == code).astype(float)
        same += said.T @ said
    own = np.diag(same)
    union = own[:, None] + own[None, :] - same
    like = np.divide(same, union, out=np.zeros_like(same), where=union > 0)
    np.fill_diagonal(like, np.nan)
    if m < 3:
        return np.ones(m)
    usual = float(np.nanmedian(like))
    excess = np.nan_to_num(np.clip((like - usual) / max(1 - usual, 1e-9), 0, None))
    weight = 1 / (1 + excess.sum(axis=1))
    copies = 1 + (np.nan_to_num(like) >= _COPY).sum(axis=1)
    return weight / weight.mean() / copies


def _shares(tasks: Any, of_key: Any, enough: Any, common: float) -> Any:
    """Share of wrong references of each question's task, drawn to the common one."""
    _, task = np.unique(tasks, return_inverse=True)
    counted = np.bincount(task, weights=enough.astype(float))
    wrong = np.bincount(task, weights=np.where(enough, 1 - of_key, 0.0))
    share = np.clip((wrong + _PRIOR * common) / (counted + _PRIOR), 1e-4, 0.3)
    return share[task]


def _logit(hits: Any, of: Any) -> Any:
    share = (hits + 0.5) / (of + 1)
    return np.log(share / (1 - share))
