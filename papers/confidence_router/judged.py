"""Answer quality of a routed pair: how often a judge has nothing better than the routed answer.

The confidence-driven router paper (section 3.1.2, Table 2) lets a judge name the best of
the routers' answers at an operating point, several where they are equally good, and counts
how often each router is named: Score = 100·S/T. Every routed answer is the small or the large
model's, so who is named follows from the judge's preference between these two: a
router is named where its model won or tied. No further call is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.metrics import tradeoff
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws
from routeyard.pipelines.evaluate.results import ModelPair
from routeyard.pipelines.evaluate.sweep import MetricRow, metric


def opinions(
    preferences: pa.Table, basis: str, pair: ModelPair, query_ids: Sequence[str]
) -> tuple[Floats, Floats]:
    """(n,) 1 where the judge finds nothing better than the small model's answer, and the large's.

    NaN for questions it has not judged.

    Args:
        basis: `judge:<name>`.
        query_ids: of the pair's n questions.

    Raises:
        BadInput: the judge compared the two on none of them.
    """
    part = preferences.filter(pc.equal(preferences.column("basis"), basis))
    at = {query: row for row, query in enumerate(query_ids)}
    small, large = (np.full(len(query_ids), np.nan) for _ in range(2))
    for row in part.to_pylist():
        place = at.get(row["query_id"])
        if place is None or {row["model_a"], row["model_b"]} != set(pair.names):
            continue
        first = row["model_a"] == pair.names[0]
        tie = bool(row["winner_tie"])
        small[place] = tie or bool(row["winner_model_a" if first else "winner_model_b"])
        large[place] = tie or bool(row["winner_model_b" if first else "winner_model_a"])
    if np.isnan(small).all():
        raise BadInput(
            f"{basis} compared {pair.names[0]!r} and {pair.names[1]!r} on no test question",
            next_step="file its verdicts on the test questions as well (rule `preference`)",
        )
    return small, large


def quality_at(
    pair: ModelPair,
    judged: tuple[Floats, Floats],
    draws: Draws,
    split: str,
    router: str,
    wanted: Floats,
    share: float,
) -> MetricRow:
    """Share of judged questions with the best answer, at CPT(share) calls of the large model.

    The operating point is found on all n questions by their labels; the judge's opinion is
    read at that call rate, on the judged questions, by the same order of scores.

    Args:
        judged: from `opinions`. wanted: (n,) how much the large model is wanted.
    """
    seen = ~np.isnan(judged[0])

    def at(counts: Floats | None) -> Floats:
        some = None if counts is None else counts[..., seen]
        x, y = tradeoff.polyline(wanted, pair.small, pair.large, counts)
        rate = tradeoff.cpt(x, y, share)
        xs, ys = tradeoff.polyline(wanted[seen], judged[0][seen], judged[1][seen], some)
        if counts is None:
            return np.asarray(np.interp(rate, xs, ys) if np.isfinite(rate) else np.nan)
        rows = zip(rate, xs, ys, strict=True)
        return np.array([np.interp(r, a, b) if np.isfinite(r) else np.nan for r, a, b in rows])

    found = [at(block) for _, block in draws.blocks()]
    name = f"answer_quality_at_cpt[{100 * share:g}]"
    never = "the large model is no better than the small one"
    return metric(router, name, split, float(at(None)), np.concatenate(found), never)
