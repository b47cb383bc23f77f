"""Costs under another dated price table, without a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.metering.price_tables import PriceTable
from routeyard.schemas import MODELS, RESPONSES


@dataclass(frozen=True)
class Repriced:
    """Tables with new costs.

    Attributes:
        figures: Per model: answers, USD before and after, how many are unknown
            before and after, old and new price date; `kept` for a model that the
            table does not list.
    """

    responses: pa.Table
    models: pa.Table
    figures: list[dict[str, Any]]


def reprice(
    responses: pa.Table, models: pa.Table, prices: PriceTable, names: dict[str, str] | None = None
) -> Repriced:
    """Replace each cost by tokens × the table's price.

    A listed model's costs all come from the table, also where the provider had
    given a figure: one benchmark, one dated table. Without metered tokens, or for a prompt longer
    than the price holds for, a cost is unknown. A model that is not listed keeps its costs and
    says so.

    Args:
        responses: `responses` table.
        models: `models` table.
        names: model_id → name in the table, where it differs.
    """
    names = names or {}
    found = {
        row["model_id"]: prices.find(row["model_id"], names.get(row["model_id"]))
        for row in models.to_pylist()
    }
    listed = {model_id: price for model_id, price in found.items() if price is not None}
    ids = responses.column("model_id")
    computed = _computed(responses, listed)
    is_listed = np.asarray(pc.is_in(ids, value_set=pa.array(list(listed), type=pa.string())))
    old = _floats(responses.column("cost_usd"))
    cost = np.where(is_listed, computed, old)
    unknown = np.isnan(cost)
    old_source = responses.column("cost_source").to_pylist()
    source = [
        None if none else ("price_table" if new else was)
        for none, new, was in zip(unknown, is_listed, old_source, strict=True)
    ]
    table = _replace(responses, "cost_usd", pa.array(cost, type=pa.float64(), mask=unknown))
    table = _replace(table, "cost_source", pa.array(source, type=pa.string()))
    new_models = MODELS.from_rows(
        row | (price.columns if (price := listed.get(row["model_id"])) else {})
        for row in models.to_pylist()
    )
    dates = dict(
        zip(*(new_models.column(n).to_pylist() for n in ("model_id", "price_date")), strict=True)
    )
    figures = []
    model_of = np.asarray(ids.to_pylist(), dtype=object)
    for row in models.sort_by("model_id").to_pylist():
        mine = model_of == row["model_id"]
        figures.append(
            {
                "model_id": row["model_id"],
                "answers": int(mine.sum()),
                "usd_before": _sum(old[mine]),
                "usd_after": _sum(cost[mine]),
                "unknown_before": int(np.isnan(old[mine]).sum()),
                "unknown_after": int(unknown[mine].sum()),
                "price_date_before": row["price_date"],
                "price_date_after": dates[row["model_id"]],
                "kept": row["model_id"] not in listed,
            }
        )
    return Repriced(RESPONSES.conform(table), new_models, figures)


def _computed(responses: pa.Table, listed: dict[str, Price]) -> Any:
    """USD of each answer by the table, as `Price.of` computes it; NaN unknown."""
    rate_in, rate_out, up_to, *cached_rates = (
        _per_row(responses.column("model_id"), {m: getattr(p, n) for m, p in listed.items()})
        for n in ("input", "output", "up_to", "cache_read", "cache_write")
    )
    prompt, completion, *cached = (
        _floats(responses.column(name))
        for name in ("prompt_tokens", "completion_tokens", "cache_read_tokens",
                     "cache_write_tokens")
    )  # fmt: skip
    fresh, usd = prompt.copy(), np.zeros(len(prompt))
    for tokens, rate in zip((np.nan_to_num(one) for one in cached), cached_rates, strict=True):
        fresh -= tokens
        # What is free to read is free from the cache; other prices of it are stated or unknown.
        rate = np.where(np.isnan(rate) & (rate_in == 0), 0.0, rate)
        usd += np.where(tokens > 0, tokens * rate, 0.0)
    computed = (fresh * rate_in + usd + completion * rate_out) / 1e6
    computed[(prompt > up_to) | (fresh < 0)] = np.nan
    return computed


def _per_row(ids: pa.ChunkedArray, rates: dict[str, float | None]) -> Any:
    """Each row's rate; NaN where it is unknown."""
    encoded = ids.combine_chunks().dictionary_encode()
    by_code = [rates.get(name) for name in encoded.dictionary.to_pylist()]
    values = np.asarray([np.nan if rate is None else rate for rate in by_code], dtype=np.float64)
    return values[np.asarray(encoded.indices)] if len(values) else np.empty(0)


def _floats(column: pa.ChunkedArray) -> Any:
    """float64 with NaN for null."""
    return column.cast(pa.float64()).to_numpy(zero_copy_only=False)


def _sum(values: Any) -> float | None:
    """Sum of what is known; null when nothing is."""
    known = values[~np.isnan(values)]
    return float(known.sum()) if len(known) else None


def _replace(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)
