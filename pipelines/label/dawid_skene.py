"""Truth behind several fallible verdicts, each weighed by its estimated errors."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Steps of the algorithm, and the change of a probability at which it ends.
_STEPS, _ENOUGH = 200, 1e-9

#: Verdicts (abstain, correct, incorrect) on right and on wrong answers, counted before any is seen:
#: a scorer is better than chance until its verdicts say otherwise.
_PRIOR = (np.array([1, 3, 1]), np.array([1, 1, 3]))


def dawid_skene(verdicts: Any) -> Any:
    """Probability that each answer is right, by EM over the verdicts of several scorers.

    Dawid and Skene 1979: each scorer has a probability of each verdict on right and on wrong
    answers (an abstention is a verdict too: it may say more about one of them). It starts from the
    share of `correct` among the verdicts that decide; `_PRIOR` is added to the counts. Rows with
    equal verdicts are counted together, so the order of rows changes nothing.

    Args:
        verdicts: int (scorers, answers); 0 abstain, 1 correct, 2 incorrect.

    Returns:
        float64 (answers,), in [0, 1].
    """
    patterns, back, counts = np.unique(
        np.asarray(verdicts).T, axis=0, return_inverse=True, return_counts=True
    )
    said = patterns[:, :, None] == np.arange(3)  # (patterns, scorers, verdicts)
    yes, no = said[:, :, 1].sum(axis=1), said[:, :, 2].sum(axis=1)
    right = np.where(yes + no > 0, yes / np.maximum(yes + no, 1), 0.5)
    for _ in range(_STEPS):
        logs = []
        for chance, prior in zip((right, 1 - right), _PRIOR, strict=True):
            weight = chance * counts
            of_verdict = np.einsum("p,psv->sv", weight, said) + prior
            of_verdict /= of_verdict.sum(axis=1, keepdims=True)
            logs.append(
                np.log((weight.sum() + 1) / (counts.sum() + 2))
                + np.einsum("psv,sv->p", said, np.log(of_verdict))
            )
        before, right = right, 1 / (1 + np.exp(np.clip(logs[1] - logs[0], -700, 700)))
        if np.abs(right - before).max(initial=0.0) < _ENOUGH:
            break
    return right[back.ravel()]
