"""Dated price tables: from a file, or from a provider's model list in OpenRouter's form.

A file is YAML, JSON or CSV with rows of `model_id`, `price_in`, `price_out` (USD
per million tokens), `price_date` and, if known, `price_source`, `price_cache_read`,
`price_cache_write`, `price_up_to` (tokens of the longest prompt it holds for); or the JSON that
`GET /models` of OpenRouter answers (USD per token, as text), which needs the day
it was read.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.io.plain_yaml import read_text
from routeyard.pipelines.io.untrusted import short_text
from routeyard.schemas.recipe.pool import Model, Pool, Provider

_MOST_BYTES = 50_000_000
#: USD per million tokens: a dollar for each. Sums of what is dearer are no numbers any more.
_DEAREST = 1_000_000.0


class PriceTable(dict[str, Price]):
    """Model name → newest price."""

    def find(self, *names: str | None) -> Price | None:
        """Price under the first of these names that is listed."""
        for name in names:
            if name is not None and name in self:
                return self[name]
        return None


def read_prices(path: Path, *, read_on: str | None = None) -> PriceTable:
    """Read a price file.

    Args:
        read_on: Day the prices were read (ISO 8601), for rows that give none.

    Raises:
        BadInput: the file cannot be read, or a row has no date or no valid price.
    """

    try:
        text = short_text(path, _MOST_BYTES)
        data: Any
        if path.suffix == ".csv":
            data = list(csv.DictReader(text.splitlines()))
        elif path.suffix == ".json":
            data = json.loads(text)
        else:
            data = read_text(text, where=str(path))
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from None
    return prices_from(data, where=str(path), read_on=read_on, source=path.name)


def prices_from(
    data: Any, *, where: str, read_on: str | None = None, source: str | None = None
) -> PriceTable:
    """Prices from decoded rows, `{prices: rows}` or OpenRouter's `{data: models}`."""
    if isinstance(data, dict) and isinstance(data.get("data"), list):
        rows: Iterable[Any] = (_openrouter(entry) for entry in data["data"])
    elif isinstance(data, dict) and isinstance(data.get("prices"), list):
        rows = data["prices"]
    elif isinstance(data, list):
        rows = data
    else:
        raise _unreadable(Path(where), "no list of prices in it")
    table = PriceTable()
    days: dict[tuple[str, str | None], tuple[float | None, float | None]] = {}
    for number, row in enumerate(rows):
        if row is None:
            continue
        if not isinstance(row, Mapping) or not row.get("model_id"):
            raise _bad_row(where, number, "has no 'model_id'")
        price = Price(
            input=_usd(row.get("price_in"), where, number),
            output=_usd(row.get("price_out"), where, number),
            date=_day(row.get("price_date") or read_on, where, number),
            source=str(row.get("price_source") or source or where),
            cache_read=_usd(row.get("price_cache_read"), where, number),
            cache_write=_usd(row.get("price_cache_write"), where, number),
            up_to=_tokens(row.get("price_up_to"), where, number),
        )
        model, usd = str(row["model_id"]), (price.input, price.output)
        known = table.get(model)
        if days.setdefault((model, price.date), usd) != usd:
            raise _bad_row(where, number, f"gives {model!r} another price for one day")
        # Of several dates the newest counts.
        if known is None or (known.date or "") <= (price.date or ""):
            table[model] = price
    return table


def fetch_prices(provider: Provider, *, read_on: str) -> PriceTable:
    """A provider's own list: `GET {base_url}/models`, in OpenRouter's form.

    Raises:
        BadInput: the list cannot be read.
    """
    from routeyard.pipelines.calls.client import get_json
    from routeyard.pipelines.calls.reply import CallFault

    # As the recipe writes it: what the environment puts into an address is shown nowhere.
    url = provider.base_url.rstrip("/") + "/models"
    try:
        data = get_json(provider, "/models", timeout_s=60.0)
    except CallFault as fault:
        raise BadInput(
            f"the price list of provider {provider.name!r} cannot be read: "
            f"{fault.kind}: {fault.message}",
            where=url,
            next_step="try again, or give prices in the pool",
        ) from None
    return prices_from(data, where=url, read_on=read_on, source=url)


def priced(pool: Pool, tables: Mapping[str | None, PriceTable]) -> Pool:
    """The pool with prices where a model states none.

    Args:
        tables: Provider name → its table; null → the table for all.
    """
    return pool.model_copy(update={"models": [_priced(m, pool, tables) for m in pool.models]})


def _priced(model: Model, pool: Pool, tables: Mapping[str | None, PriceTable]) -> Model:
    if model.price_in is not None or model.price_out is not None:
        return model
    served_by = model.provider or (pool.providers[0].name if len(pool.providers) == 1 else None)
    for table in (tables.get(served_by), tables.get(None)):
        price = table.find(model.endpoint_model, model.model_id) if table else None
        if price is not None:
            return model.model_copy(update=price.columns)
    return model


def _openrouter(entry: Any) -> dict[str, Any] | None:
    """One model of the list; per-token prices become prices per million."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("pricing"), Mapping):
        return None
    pricing = entry["pricing"]
    return {
        "model_id": entry.get("id"),
        "price_in": _per_million(pricing.get("prompt")),
        "price_out": _per_million(pricing.get("completion")),
        "price_cache_read": _per_million(pricing.get("input_cache_read")),
        "price_cache_write": _per_million(pricing.get("input_cache_write")),
    }


def _per_million(value: Any) -> float | None:
    try:
        price = float(value)
    except (TypeError, ValueError):
        return None
    # Minus one means "depends on where it is routed": unknown.
    return round(price * 1e6, 9) if math.isfinite(price) and price >= 0 else None


def _usd(value: Any, where: str, number: int) -> float | None:
    if value is None or value == "":
        return None
    try:
        price = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        price = math.nan
    if not 0 <= price <= _DEAREST:  # not a number either
        raise _bad_row(where, number, f"has the price {value!r}")
    return price


def _tokens(value: Any, where: str, number: int) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not str(value).isascii() or not str(value).isdecimal():
        raise _bad_row(where, number, f"has the 'price_up_to' {value!r}, which is no token count")
    return int(value)


def _day(value: Any, where: str, number: int) -> str:
    try:
        return date.fromisoformat(str(value)[:10]).isoformat()
    except ValueError:
        raise _bad_row(where, number, f"has no day its price was read ({value!r})") from None


def _bad_row(where: str, number: int, what: str) -> BadInput:
    return BadInput(
        f"row {number} {what}",
        where=where,
        next_step="a row is model_id, price_in, price_out (USD per million tokens), "
        "price_date; for a list without dates give --date",
    )


def _unreadable(path: Path, why: str) -> BadInput:
    return BadInput(
        f"the price table cannot be read: {why}",
        where=str(path),
        next_step="give a CSV with the columns model_id, price_in, price_out, price_date, such "
        "rows in YAML or JSON as a list or under 'prices:', or OpenRouter's list of models",
    )
