"""What an injected model costs: what the recipe states, else the medians of the real pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas import RESPONSES

#: What stands on responses, one by one; the rest stands on models.
PER_ANSWER = ("prompt_tokens", "completion_tokens", "latency_s", "cost_usd")


@dataclass(frozen=True)
class Stated:
    """name → value (None when neither stated nor known of any real model), and where it is from."""

    values: Mapping[str, Any]
    source: Mapping[str, str]

    def figures(self) -> dict[str, Any]:
        """Values with their sources, for the card."""
        return {
            name: {"value": self.values[name], "from": self.source[name]} for name in self.values
        }


def stated_costs(
    tables: Mapping[str, pa.Table], real: Sequence[str], given: Mapping[str, Any]
) -> Stated:
    """The recipe's figures, and medians over the real models where it gives none.

    A median of answers is that of the models' medians, so that a model with many
    answers counts once. USD per answer follow from prices and tokens where both
    are known, else they are the pool's median.
    """
    values, source = dict(given), {}
    for name in given:
        found = None if given[name] is not None else _of_pool(tables, real, name)
        if given[name] is None:
            values[name] = found
        source[name] = (
            "stated" if given[name] is not None else "unknown" if found is None else "median"
        )
    if values["price_in"] is None and values["price_out"] is None:
        values["price_date"], source["price_date"] = None, "unknown"
    parts = [values[k] for k in ("price_in", "price_out", "prompt_tokens", "completion_tokens")]
    if all(part is not None for part in parts):
        price_in, price_out, prompt, completion = parts
        values["cost_usd"] = (prompt * price_in + completion * price_out) / 1e6
        source["cost_usd"] = "prices and tokens"
    else:
        values["cost_usd"] = _of_pool(tables, real, "cost_usd")
        source["cost_usd"] = "unknown" if values["cost_usd"] is None else "median"
    return Stated(values, source)


def _of_pool(tables: Mapping[str, pa.Table], real: Sequence[str], name: str) -> Any:
    if name == "price_date":
        dates = [row[name] for row in _models(tables, real) if row[name] is not None]
        return max(dates, default=None)
    if name not in PER_ANSWER:
        known = [row[name] for row in _models(tables, real) if row[name] is not None]
        return float(median(known)) if known else None
    responses = tables.get("responses")
    if responses is None:
        return None
    usable = responses.filter(
        pc.and_(
            pc.is_in(responses.column("model_id"), value_set=pa.array(real, pa.string())),
            pc.is_valid(responses.column(name)),
        )
    )
    by_model: dict[str, list[float]] = {}
    for model, value in zip(
        usable.column("model_id").to_pylist(), usable.column(name).to_pylist(), strict=True
    ):
        by_model.setdefault(model, []).append(float(value))
    if not by_model:
        return None
    found = float(median(median(values) for values in by_model.values()))
    return round(found) if name.endswith("_tokens") else found


def _models(tables: Mapping[str, pa.Table], real: Sequence[str]) -> list[dict[str, Any]]:
    return [row for row in tables["models"].to_pylist() if row["model_id"] in set(real)]


def simulated_responses(
    tables: Mapping[str, pa.Table], labels: Sequence[Mapping[str, Any]], stated: Stated
) -> pa.Table | None:
    """`responses` with one row per label of an injected model: costs, a given score and no text.

    None where there is no table of responses or nothing of an answer is known.
    """
    per_answer = {name: stated.values[name] for name in PER_ANSWER}
    if (
        "responses" not in tables
        or not labels
        or not any(value is not None for value in per_answer.values())
    ):
        return None
    rows = [
        {
            **per_answer,
            "query_id": label["query_id"],
            "model_id": label["model_id"],
            "sample": 0,
            "status": "ok",
            "attempts": 0,
            "given_score": label["score"],
            "cost_source": None if per_answer["cost_usd"] is None else "stated",
        }
        for label in labels
    ]
    return pa.concat_tables([RESPONSES.conform(tables["responses"]), RESPONSES.from_rows(rows)])
