"""Semantic entropy of one group of clustered samples, in nat.

Kuhn, Gal and Farquhar 2023, "Semantic Uncertainty: Linguistic Invariances for
Uncertainty Estimation in Natural Language Generation";
Farquhar et al. 2024, "Detecting hallucinations in large language models using
semantic entropy", for the renormalised and the discrete forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

#: The paper's estimator −(1/|C|) Σ log p(Cᵢ | x) on probabilities as they are.
SEQUENCE = "sequence_probability"
#: The same with p(C) renormalised over the clusters that were sampled.
RENORMALISED = "sequence_probability_renormalised"
#: −Σ p log p over those renormalised probabilities: the entropy proper.
RAO_BLACKWELL = "rao_blackwell"
#: −Σ p log p over the clusters' shares of the samples; needs no log-probabilities.
DISCRETE = "discrete"

ESTIMATORS = (SEQUENCE, RENORMALISED, RAO_BLACKWELL, DISCRETE)


def discrete(clusters: npt.NDArray[np.int32]) -> float | None:
    """−Σ p log p over cluster frequencies; 0 for one sample, None for none."""
    if clusters.size == 0:
        return None
    share = np.bincount(clusters) / clusters.size
    share = share[share > 0]
    return max(0.0, float(-(share * np.log(share)).sum()))


def cluster_logprobs(
    clusters: npt.NDArray[np.int32], sequences: Sequence[str], logprobs: Sequence[float]
) -> npt.NDArray[np.float64]:
    """log p(C | x) for each cluster: log-sum-exp over its distinct sequences.

    A sequence that was sampled twice is still one sequence with one
    probability; its first log-probability counts.

    Returns:
        float64 of shape (number of clusters,), not normalised: with
        length-normalised log-probabilities a sum may exceed one.
    """
    members: dict[int, dict[str, float]] = {}
    for number, sequence, value in zip(clusters.tolist(), sequences, logprobs, strict=True):
        members.setdefault(number, {}).setdefault(sequence, value)
    return np.array(
        [_log_sum_exp(np.array(list(members[number].values()))) for number in sorted(members)]
    )


def entropies(
    clusters: npt.NDArray[np.int32],
    sequences: Sequence[str],
    logprobs: Sequence[float | None],
) -> Mapping[str, float | None]:
    """Estimator → entropy. The three that need log-probabilities are left out if one is missing.

    Args:
        clusters: Cluster number per sample, int of shape (n,), numbered from 0 without gaps.
        sequences: The n sampled texts.
        logprobs: log p(s | x) per sample (nat), None where the server gave none.
    """
    found: dict[str, float | None] = {DISCRETE: discrete(clusters)}
    values = [value for value in logprobs if value is not None]
    if clusters.size == 0 or len(values) < len(logprobs):
        return found
    log_p = cluster_logprobs(clusters, sequences, values)
    log_share = log_p - _log_sum_exp(log_p)
    # + 0.0 turns the negative zero of a certain cluster into zero.
    found[SEQUENCE] = float(-log_p.mean()) + 0.0
    found[RENORMALISED] = max(0.0, float(-log_share.mean()))
    found[RAO_BLACKWELL] = max(0.0, float(-(np.exp(log_share) * log_share).sum()))
    return found


def _log_sum_exp(values: npt.NDArray[np.float64]) -> float:
    top = float(values.max())
    return top + float(np.log(np.exp(values - top).sum()))
