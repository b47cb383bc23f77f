"""Logit-based signals of a response: entropy, margin, largest logit, perplexity.

Computed from token log-probabilities as servers return them: the generated
token and a few alternatives. What was not returned is reported, and enters
the entropy as one outcome, which makes it a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.logprobs import Token, tokens
from routeyard.schemas import SIGNALS


def token_signals(found: Sequence[Token]) -> dict[str, float | None]:
    """Means over tokens; a signal that no token allows is None.

    Entropy and unreturned mass need alternatives, the margin at least two.
    """
    entropies, margins, largest, unreturned = [], [], [], []
    for token in found:
        alternatives = [value for _, value in token.top]
        if all(name != token.token for name, _ in token.top):
            # A sampled token need not be among the most likely ones.
            alternatives.append(token.logprob)
        ranked = sorted(alternatives, reverse=True)
        if token.top:
            p = [math.exp(value) for value in ranked]
            rest = max(0.0, 1.0 - math.fsum(p))
            entropies.append(-math.fsum(x * math.log(x) for x in (*p, rest) if x > 0))
            unreturned.append(rest)
            largest.append(ranked[0])
        if len(ranked) > 1:
            margins.append(max(0.0, math.exp(ranked[0]) - math.exp(ranked[1])))
    generated = _mean([token.logprob for token in found])
    return {
        "entropy": _mean(entropies),
        "margin": _mean(margins),
        "max_logit": _mean(largest),
        "perplexity": math.exp(-generated)
        if generated is not None and -700 < generated < math.inf
        else None,
        "unreturned_mass": _mean(unreturned),
    }


def signal_table(
    queries: pa.Table,
    responses: pa.Table,
    model: str,
    assess: Callable[[Sequence[tuple[str, str]]], Sequence[float | None]] | None = None,
) -> pa.Table:
    """`signals` rows of one model's responses, ordered by key.

    A response without log-probabilities has a row only when the model was
    asked about it (`assess` returns one probability or None per (question, answer)).
    """
    chosen = responses.filter(
        pc.and_(pc.equal(responses["model_id"], model), pc.is_valid(responses["text"]))
    )
    columns = ["query_id", "model_id", "sample", "text", "logprobs"]
    rows: list[dict[str, Any]] = chosen.select(columns).to_pylist()
    rows.sort(key=lambda row: (row["query_id"], row["sample"]))
    asked = queries.select(["query_id", "prompt"]).to_pylist()
    prompts = {row["query_id"]: row["prompt"] for row in asked}
    rows = [row for row in rows if row["query_id"] in prompts]
    assessed: Sequence[float | None] = [None] * len(rows)
    if assess is not None:
        assessed = assess([(prompts[row["query_id"]], row["text"]) for row in rows])
    result = []
    for row, certainty in zip(rows, assessed, strict=True):
        where = f"query {row['query_id']}, model {model}, sample {row['sample']}"
        found = tokens(row["logprobs"], where=where)
        if found is None and certainty is None:
            continue
        result.append(
            {
                "query_id": row["query_id"],
                "model_id": model,
                "sample": row["sample"],
                "n_tokens": len(found or ()),
                **token_signals(found or ()),
                "self_assessment": certainty,
            }
        )
    return SIGNALS.from_rows(result)


def _mean(values: Sequence[float]) -> float | None:
    if not values:
        return None
    mean = math.fsum(values) / len(values) if all(map(math.isfinite, values)) else None
    return mean
