"""Pairs of models of one question, for losses that compare two at a time."""

from __future__ import annotations

from typing import Any


def pairs_of(y: Any, known: Any, noise: Any, most: int = 128) -> tuple[Any, Any, Any, Any]:
    """Pairs of models per question: first, second (p,) columns, their sign and weight (b, p).

    All pairs of a small pool; of a large one `most` drawn anew each step, which
    leaves the mean over pairs unbiased.

    Returns:
        first, second: (p,) model positions, first < second.
        sign: (b, p) 1 when the first is better, −1 when the second, 0 for a tie.
        weight: (b, p) 1 where both are labelled.
    """
    import torch

    first, second = torch.triu_indices(y.shape[1], y.shape[1], offset=1)
    if len(first) > most and noise is not None:
        some = torch.randperm(len(first), generator=noise)[:most]
        first, second = first[some], second[some]
    sign = torch.sign(y[:, first] - y[:, second])
    return first, second, sign, known[:, first] * known[:, second]
