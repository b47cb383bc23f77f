"""Router ability, two routers at a time: the difference of their AUROC on the same questions."""

from __future__ import annotations

import numpy as np

from pipelines.evaluate import tradeoff
from pipelines.evaluate.bootstrap import Draws, interval
from pipelines.evaluate.pairs import Pair
from pipelines.routers.base import Floats


def auroc_difference(
    pair: Pair, draws: Draws, first: Floats, second: Floats
) -> tuple[float, float, float]:
    """(difference, low, high): AUROC of the first less that of the second, paired.

    Args:
        first, second: (n,) how much the large model is wanted (RouterXBench, section 3.3).
        draws: resamples of the pair's n questions, the same for both.
    """
    value = float(tradeoff.auroc(first, pair.correct)) - float(tradeoff.auroc(second, pair.correct))
    drawn = np.concatenate(
        [
            tradeoff.auroc(first, pair.correct, counts)
            - tradeoff.auroc(second, pair.correct, counts)
            for _, counts in draws.blocks()
        ]
    )
    low, high = interval(drawn)
    return value, low, high
