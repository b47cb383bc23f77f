"""Prices of models: the recipe's own, else a dated table's, else the list of `genai-prices`.

`reprice` computes costs under another table. All costs are those of `Price.of`.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, Field, PositiveInt, ValidationError, field_validator

from routeyard.pipelines.collect.budget import Price
from routeyard.pipelines.common.errors import few
from routeyard.pipelines.common.files import read_text
from routeyard.pipelines.common.untrusted import short_text
from routeyard.schemas import MODELS, RESPONSES
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe.pool import Model, Pool, Provider

# List prices of providers' models, as the package `genai-prices` holds them; nothing is fetched.
#
# A price is given for an exact provider and an exact model, else it is unknown: the package also
# guesses a model by a part of its name or takes another provider's price, which is not used here.

#: Version of the package → the newest day of which its prices and README speak. A version that
#: is not here has no day, and so gives no prices.
DAYS = {"0.2.3": "2026-11-10"}
#: Days after which a price is called stale: providers change some price about every month.
STALE_DAYS = 90
#: Prices of the package that are taken, and their names here.
_TAKEN = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
}
#: What else may be charged for a text; a model that charges it has no price by these tokens.
_BESIDE = {"requests_kcount", "input_mchars", "output_reasoning_mtok", "output_citation_mtok"}
#: Companies whose customers name their deployments, so that a name is no model.
_OWN_NAMES = ("azure", "databricks", "modal")


def with_list_prices(pool: Pool, *, batch: bool = False) -> Pool:
    """The pool with list prices where a real model states none and its provider is known.

    A provider is known by the address that it is asked at; where a pool has no providers
    (recorded answers), by the name that a model states.

    Args:
        batch: The models are asked by batch files, which have separate prices.
    """

    def listed(model: Model) -> Price | None:
        if model.simulated or model.relay is not None:
            return None
        name = model.endpoint_model or model.model_id
        return list_price(_provider(model, pool), name, batch=batch)

    return _where_unpriced(pool, listed)


def _where_unpriced(pool: Pool, find: Callable[[Model], Price | None]) -> Pool:
    """The pool with these prices where a model states none; itself where none is found."""
    found = {
        model.model_id: price.stated
        for model in pool.models
        if model.price_in is None and model.price_out is None
        if (price := find(model)) is not None
    }
    models = [model.model_copy(update=found.get(model.model_id, {})) for model in pool.models]
    return pool.model_copy(update={"models": models}) if found else pool


def _provider(model: Model, pool: Pool) -> str | None:
    """Address or name of who serves a model; None where nobody's list can hold it."""
    if not pool.providers:
        return model.provider
    names = {provider.name: provider for provider in pool.providers}
    only = pool.providers[0].name if len(pool.providers) == 1 else ""
    served_by = names.get(model.provider or only)
    return None if served_by is None else public_address(served_by)


def public_address(provider: Provider) -> str | None:
    """The address of a provider that may be a company's; None for this machine and `${NAME}`."""
    host = "" if provider.base_url.startswith("$") else urlsplit(provider.base_url).hostname or ""
    # A name with a letter in its last part: neither an address in numbers nor `localhost`.
    return provider.base_url if re.search(r"\.[a-z][a-z0-9-]+$", host) else None


def list_price(provider: str | None, model: str, *, batch: bool = False) -> Price | None:
    """The price of a model in USD per million tokens on the package's day; None unknown.

    Args:
        provider: Address of its API (`https://api.openai.com/v1`), or its id (`openai`).
        model: Its name at the provider, exact but for capitals.
        batch: Its price by batch files instead of the standard one.
    """
    day = day_of_list()
    company = None if provider is None or day is None else _company(provider)
    if company is None or day is None:
        return None
    exact = [item for item in company.models if model.lower() in set(_names(item))]
    # Two entries that name one model contradict each other or follow each other: not one price.
    rates = _rates(exact[0], day, batch) if len(exact) == 1 else None
    if rates is None:
        return None
    source = f"genai-prices {_version()}, {company.id}/{exact[0].id}" + (", batch" if batch else "")
    return Price(date=day, source=source, **rates)


def day_of_list() -> str | None:
    """The day of the installed list (ISO 8601); None where the version is not known here."""
    return DAYS.get(_version())


def stale(day: str | None, today: date | None = None) -> int | None:
    """Age of a price in days where it is more than `STALE_DAYS`, else None."""
    if day is None:
        return None
    age = ((today or datetime.now(UTC).date()) - date.fromisoformat(day[:10])).days
    return age if age > STALE_DAYS else None


def from_list(pool: Pool) -> list[str]:
    """A sentence on the models of a pool whose prices are list prices; none without any."""
    models = [m.model_id for m in pool.models if (m.price_source or "").startswith("genai-prices ")]
    if not models:
        return []
    source = f"genai-prices {_version()}, prices of {day_of_list()}"
    return [f"list prices for {few(models)}: {source}; a price in the recipe wins"]


def stale_prices(pool: Pool, today: date | None = None) -> list[str]:
    """A sentence for each day and source of prices in a pool that are stale."""
    aged: dict[tuple[int, str, str], list[str]] = defaultdict(list)
    for model in pool.models:
        age = None if model.simulated else stale(model.price_date, today)
        if age is not None:
            source = model.price_source or "the recipe"
            aged[age, str(model.price_date), source].append(model.model_id)
    return [
        f"prices of {few(names)} are "
        f"{age} days old (read {day}, {source}); more than {STALE_DAYS} days: read them again"
        for (age, day, source), names in sorted(aged.items())
    ]


@cache
def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("genai-prices")
    except PackageNotFoundError:
        return ""


def _company(provider: str) -> Any:
    """The package's provider of this id or address; None where none or several fit."""
    from genai_prices.data import providers

    fitting = [
        company
        for company in providers
        if company.id not in _OWN_NAMES
        if (
            _serves(company.api_pattern, provider)
            if "://" in provider
            else company.id == provider.lower()
        )
    ]
    # Of `openai` and `openai-decisions`, which share an address, the one whose id is the other's
    # beginning is the plain API.
    first = [item for item in fitting if all(x.id.startswith(item.id) for x in fitting)]
    return first[0] if first else None


def _serves(pattern: str, address: str) -> bool:
    """Whether an address is one of the pattern's, and not only begins like one."""
    match = re.match(pattern, address)
    if match is None:
        return False
    rest = address[match.end() :]
    return not rest or rest[0] in "/:" or match.group().endswith("/")


def _names(model: Any) -> Iterator[str]:
    """Names that the package takes for a model and that are whole names."""
    yield model.id.lower()
    parts = [model.match]
    while parts:
        part = parts.pop()
        if (name := getattr(part, "equals", None)) is not None:
            yield name.lower()
        parts.extend(getattr(part, "or_", ()))


def _rates(model: Any, day: str, batch: bool) -> dict[str, Any] | None:
    """A model's prices on a day; None where they depend on the hour, or on more than tokens."""
    hours = [datetime.fromisoformat(day).replace(hour=hour, tzinfo=UTC) for hour in range(24)]
    context = {"processing": "batch"} if batch else None
    if batch and not any(item.when == context for item in model.price_variants or ()):
        return None
    stated = [model.get_prices(hour, context) for hour in hours]
    prices = {name: price for name, price in vars(stated[0]).items() if price is not None}
    if any(other != stated[0] for other in stated) or prices.keys() & _BESIDE:
        return None
    if not {"input_mtok", "output_mtok"} <= prices.keys():
        return None
    return _by_length({_TAKEN[key]: price for key, price in prices.items() if key in _TAKEN})


def _by_length(prices: Mapping[str, Any]) -> dict[str, Any]:
    """The package's prices as those of `Price`, with what a longer prompt costs."""
    rates: dict[str, Any] = {name: float(getattr(p, "base", p)) for name, p in prices.items()}
    tiers = {name: getattr(price, "tiers", []) for name, price in prices.items()}
    starts = {tier.start for listed in tiers.values() for tier in listed}
    if starts:
        rates["up_to"] = min(starts)
    if len(starts) == 1:  # of several the second has no place here, and is unknown
        dear: dict[str, Any] = {n: float(t[0].price) if t else rates[n] for n, t in tiers.items()}
        rates["beyond"] = Price(**dear)
    return rates


# Dated price tables: from a file, or from a provider's model list in OpenRouter's form.

_MOST_BYTES = 50_000_000
#: USD per million tokens, at most a dollar for each: sums of more are no numbers any more.
_Usd = Annotated[float | None, Field(ge=0, le=1_000_000.0, allow_inf_nan=False)]


class _Row(BaseModel, coerce_numbers_to_str=True):
    """A row of a price table: USD per million tokens."""

    model_id: Annotated[str, Field(min_length=1)]
    price_in: _Usd = None
    price_out: _Usd = None
    price_date: date
    price_source: str | None = None
    price_cache_read: _Usd = None
    price_cache_write: _Usd = None
    price_up_to: PositiveInt | None = None
    price_in_beyond: _Usd = None
    price_out_beyond: _Usd = None
    price_cache_read_beyond: _Usd = None
    price_cache_write_beyond: _Usd = None

    @field_validator("*", mode="before")
    @classmethod
    def _is_written(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("true and false are no prices")
        return None if value == "" else value


class PriceTable(dict[str, Price]):
    """Model name → newest price."""

    def find(self, *names: str | None) -> Price | None:
        """Price under the first of these names that is listed."""
        return next((self[name] for name in names if name is not None and name in self), None)


def read_prices(path: Path, *, read_on: str | None = None) -> PriceTable:
    """Read a price file: YAML, JSON or CSV with the rows of `_Row`, or OpenRouter's list of models.

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
        raise _unreadable(str(path), str(error)) from None
    return prices_from(data, where=str(path), read_on=read_on, source=path.name)


def prices_from(
    data: Any, *, where: str, read_on: str | None = None, source: str | None = None
) -> PriceTable:
    """Prices from decoded rows, `{prices: rows}` or OpenRouter's `{data: models}`."""
    rows = data
    if isinstance(data, dict):
        listed = data.get("data")
        rows = list(map(_openrouter, listed)) if isinstance(listed, list) else data.get("prices")
    if not isinstance(rows, list):
        raise _unreadable(where, "no list of prices in it")
    table = PriceTable()
    days: dict[tuple[str, str | None], tuple[float | None, float | None]] = {}
    for number, said in enumerate(rows):
        if said is None:
            continue
        row = _row(said, f"row {number}", where, read_on)
        price = Price.of_row(row | {"price_source": row["price_source"] or source or where})
        model, usd = row["model_id"], (price.input, price.output)
        known = table.get(model)
        if days.setdefault((model, price.date), usd) != usd:
            raise _bad_row(f"row {number} gives {model!r} another price for one day", where)
        # Of several dates the newest counts.
        if known is None or (known.date or "") <= (price.date or ""):
            table[model] = price
    return table


def _row(said: Any, name: str, where: str, read_on: str | None) -> dict[str, Any]:
    """A row of a table, checked."""
    if not isinstance(said, Mapping):
        raise _bad_row(f"{name} has no 'model_id'", where)
    day = said.get("price_date") or read_on
    try:
        row = _Row.model_validate({**said, "price_date": str(day)[:10]})
    except ValidationError as error:
        first = error.errors()[0]
        key, value, why = first["loc"][0], first["input"], first["msg"]
        what = f"{name} has the price {value!r} in {key!r}: {why}"
        if key == "price_date":
            what = f"{name} has no day its price was read ({day!r})"
        elif key == "model_id":
            what = f"{name} has no 'model_id'"
        raise _bad_row(what, where) from None
    return row.model_dump(mode="json")


def fetch_prices(provider: Provider, *, read_on: str) -> PriceTable:
    """A provider's own list: `GET {base_url}/models`, in OpenRouter's form.

    Raises:
        BadInput: the list cannot be read.
    """
    from routeyard.pipelines.collect.client import get_json
    from routeyard.pipelines.collect.reply import CallFault

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


def priced(pool: Pool, table: PriceTable) -> Pool:
    """The pool with a table's prices where a model states none."""
    return _where_unpriced(pool, lambda model: table.find(model.endpoint_model, model.model_id))


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


def _bad_row(what: str, where: str) -> BadInput:
    return BadInput(
        what,
        where=where,
        next_step="a row is model_id, price_in, price_out (USD per million tokens), "
        "price_date; for a list without dates give --date",
    )


def _unreadable(where: str, why: str) -> BadInput:
    return BadInput(
        f"the price table cannot be read: {why}",
        where=where,
        next_step="give a CSV with the columns model_id, price_in, price_out, price_date, such "
        "rows in YAML or JSON as a list or under 'prices:', or OpenRouter's list of models",
    )


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


#: What a cost is computed from.
_COUNTS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")
#: Answers that are priced at once.
_ROWS = 65_536


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
    asked = models.sort_by("model_id").to_pylist()
    listed = {
        row["model_id"]: price
        for row in asked
        if (price := prices.find(row["model_id"], (names or {}).get(row["model_id"]))) is not None
    }
    after: list[float | None] = []
    for batch in responses.select(["model_id", "cost_usd", *_COUNTS]).to_batches(_ROWS):
        for name, stated, *counts in zip(*batch.to_pydict().values(), strict=True):
            after.append(listed[name].of(*counts) if name in listed else stated)
    costs = pa.array(after, pa.float64())
    new = pc.is_in(responses["model_id"], pa.array([*listed], pa.string()))
    source = pc.if_else(new, "price_table", responses["cost_source"])
    table = responses
    for name, column in (
        ("cost_usd", costs),
        ("cost_source", pc.if_else(costs.is_valid(), source, None)),
    ):
        table = table.set_column(table.column_names.index(name), name, column)
    usd = {"model_id": table["model_id"], "before": responses["cost_usd"], "after": costs}
    null = pc.CountOptions("only_null")
    wanted: list[Any] = [([], "count_all"), ("before", "sum"), ("after", "sum")]
    wanted += [("before", "count", null), ("after", "count", null)]
    summed = pa.table(usd).group_by("model_id", use_threads=False).aggregate(wanted).to_pylist()
    of_model = {row["model_id"]: row for row in summed}
    figures = []
    for row in asked:
        mine, price = of_model.get(row["model_id"], {}), listed.get(row["model_id"])
        figures.append(
            {
                "model_id": row["model_id"],
                "answers": mine.get("count_all", 0),
                "usd_before": mine.get("before_sum"),
                "usd_after": mine.get("after_sum"),
                "unknown_before": mine.get("before_count", 0),
                "unknown_after": mine.get("after_count", 0),
                "price_date_before": row["price_date"],
                "price_date_after": row["price_date"] if price is None else price.date,
                "kept": price is None,
            }
        )
        row |= {} if price is None else price.columns
    return Repriced(RESPONSES.conform(table), MODELS.from_rows(asked), figures)
