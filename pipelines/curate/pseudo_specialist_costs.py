"""What an injected model costs: the recipe's figures, else the medians of the real pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.schemas import RESPONSES

#: Columns of `models`, and of `responses`, that an injected model gets.
PER_MODEL = ("params_b", "price_in", "price_out", "price_date")
PER_ANSWER = ("prompt_tokens", "completion_tokens", "latency_s", "cost_usd")

Costs = dict[str, dict[str, Any]]


def specialist_costs(
    tables: Mapping[str, pa.Table], real: Sequence[str], stated: Mapping[str, Any]
) -> Costs:
    """{name: {value, from}} of an injected model; a value is None when no real model has one.

    A median of answers is that of the models' medians, so that a model with many
    answers counts once. USD per answer follow from prices and tokens where both
    are known, else they are the pool's median.

    Args:
        real: Ids of the models whose medians are taken.
        stated: The recipe's figures by name; None takes the median.
    """
    costs = {
        name: _median(tables, real, name) if value is None else {"value": value, "from": "stated"}
        for name, value in stated.items()
    }
    if costs["price_in"]["value"] is None and costs["price_out"]["value"] is None:
        costs["price_date"] = {"value": None, "from": "unknown"}
    names = ("price_in", "price_out", "prompt_tokens", "completion_tokens")
    price_in, price_out, prompt, completion = values = [costs[name]["value"] for name in names]
    costs["cost_usd"] = _median(tables, real, "cost_usd")
    if None not in values:
        usd = (prompt * price_in + completion * price_out) / 1e6
        costs["cost_usd"] = {"value": usd, "from": "prices and tokens"}
    return costs


def _median(tables: Mapping[str, pa.Table], real: Sequence[str], name: str) -> dict[str, Any]:
    source = tables["models"] if name in PER_MODEL else tables.get("responses")
    if source is None:
        return {"value": None, "from": "unknown"}
    wanted = pc.is_in(source.column("model_id"), value_set=pa.array(real, pa.string()))
    known = source.filter(wanted).select(["model_id", name]).to_pandas().dropna()
    if known.empty:
        return {"value": None, "from": "unknown"}
    if name == "price_date":
        return {"value": known[name].max(), "from": "median"}
    value = float(known.groupby("model_id")[name].median().median())
    return {"value": round(value) if name.endswith("_tokens") else value, "from": "median"}


def simulated_responses(
    tables: Mapping[str, pa.Table], labels: Sequence[Mapping[str, Any]], costs: Costs
) -> pa.Table | None:
    """`responses` with one row per label of an injected model: costs, a given score and no text.

    None where there is no table of responses or nothing of an answer is known.
    """
    per_answer = {name: costs[name]["value"] for name in PER_ANSWER}
    if (
        "responses" not in tables
        or not labels
        or not any(v is not None for v in per_answer.values())
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
