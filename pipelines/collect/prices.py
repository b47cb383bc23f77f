"""List prices, dated price tables, and costs under another table without a call."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.collect.budget import Price
from routeyard.pipelines.common.errors import few
from routeyard.pipelines.common.files import read_text
from routeyard.pipelines.common.untrusted import short_text
from routeyard.schemas import MODELS, RESPONSES
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe.pool import Model, Pool, Provider

if TYPE_CHECKING:
    from decimal import Decimal

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
_BESIDE = ("requests_kcount", "input_mchars", "output_reasoning_mtok", "output_citation_mtok")
#: Companies whose customers name their deployments, so that a name is no model.
_OWN_NAMES = ("azure", "databricks", "modal")


def with_list_prices(pool: Pool, *, batch: bool = False) -> Pool:
    """The pool with list prices where a real model states none and its provider is known.

    A provider is known by the address that it is asked at; where a pool has no providers
    (recorded answers), by the name that a model states.

    Args:
        batch: The models are asked by batch files, which have separate prices.
    """
    unpriced = [model for model in pool.models if _lacks_price(model) and _provider(model, pool)]
    if not unpriced:
        return pool
    result = {
        model.model_id: price.columns
        for model in unpriced
        if (price := list_price(_provider(model, pool), _called(model), batch=batch))
    }
    models = [model.model_copy(update=result.get(model.model_id, {})) for model in pool.models]
    return pool.model_copy(update={"models": models})


def _lacks_price(model: Model) -> bool:
    return (
        model.price_in is None and model.price_out is None
        and not model.simulated and model.relay is None
    )  # fmt: skip


def _called(model: Model) -> str:
    return model.endpoint_model or model.model_id


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
    day, result = day_of_list(), listed_model(provider, model)
    prices = None if result is None or day is None else _prices(result[1], day, batch)
    if result is None or prices is None:
        return None
    source = f"genai-prices {_version()}, {result[0]}/{result[1].id}" + (", batch" if batch else "")
    return Price(date=day, source=source, **prices)


def listed_model(provider: str | None, model: str) -> tuple[str, Any] | None:
    """Id of an exact provider and the package's entry of its exact model; None where not listed."""
    company = None if provider is None or day_of_list() is None else _company(provider)
    if company is None:
        return None
    exact = [item for item in company.models if model.lower() in set(_names(item))]
    # Two entries that name one model contradict each other or follow each other: not one price.
    return (company.id, exact[0]) if len(exact) == 1 else None


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
    aged: dict[tuple[int, str, str], list[str]] = {}
    for model in pool.models:
        age = None if model.simulated else stale(model.price_date, today)
        if age is not None:
            source = model.price_source or "the recipe"
            aged.setdefault((age, str(model.price_date), source), []).append(model.model_id)
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


@cache
def _companies() -> tuple[Any, ...]:
    from genai_prices.data import providers

    return tuple(providers)


def _company(provider: str) -> Any:
    """The package's provider of this id or address; None where none or several fit."""
    if "://" not in provider:
        fitting = [company for company in _companies() if company.id == provider.lower()]
    else:
        fitting = [company for company in _companies() if _serves(company.api_pattern, provider)]
    fitting = [item for item in fitting if item.id not in _OWN_NAMES]
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


def _prices(model: Any, day: str, batch: bool) -> dict[str, Any] | None:
    """A model's prices on a day; None where they depend on the hour, or on more than tokens."""
    hours = [datetime.fromisoformat(day).replace(hour=hour, tzinfo=UTC) for hour in range(24)]
    context = {"processing": "batch"} if batch else None
    if batch and not any(item.when == context for item in model.price_variants or ()):
        return None
    stated = [_plain(model.get_prices(hour, context)) for hour in hours]
    prices = stated[0]
    if any(other != prices for other in stated) or prices.keys() & set(_BESIDE):
        return None
    if not {"input_mtok", "output_mtok"} <= prices.keys():
        return None
    result = {name: float(_base(prices[key])) for key, name in _TAKEN.items() if key in prices}
    starts = [tier.start for price in prices.values() for tier in getattr(price, "tiers", ())]
    return result | ({"up_to": min(starts)} if starts else {})


def _plain(prices: Any) -> dict[str, Any]:
    return {name: price for name, price in vars(prices).items() if price is not None}


def _base(price: Any) -> Decimal:
    base: Decimal = getattr(price, "base", price)
    return base


# Dated price tables: from a file, or from a provider's model list in OpenRouter's form.
#
# A file is YAML, JSON or CSV with rows of `model_id`, `price_in`, `price_out` (USD
# per million tokens), `price_date` and, if known, `price_source`, `price_cache_read`,
# `price_cache_write`, `price_up_to` (tokens of the longest prompt it holds for); or the JSON that
# `GET /models` of OpenRouter answers (USD per token, as text), which needs the day
# it was read.

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


_REPRICED = Path(__file__).with_name("reprice.sql")
_PRICE_COLUMNS = (
    "model_id", "price_in", "price_out", "price_cache_read", "price_cache_write", "price_up_to",
)  # fmt: skip


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
    import duckdb

    names = names or {}
    result = {
        row["model_id"]: prices.find(row["model_id"], names.get(row["model_id"]))
        for row in models.to_pylist()
    }
    listed = {model_id: price for model_id, price in result.items() if price is not None}
    priced = pa.Table.from_pylist(
        [{"model_id": name, **price.columns} for name, price in listed.items()],
        schema=pa.schema([MODELS.schema.field(name) for name in _PRICE_COLUMNS]),
    )
    with duckdb.connect() as connection:
        connection.register("priced", priced)
        connection.register(
            "responses", responses.append_column("place", pa.array(range(len(responses))))
        )
        table = connection.sql(_REPRICED.read_text(encoding="utf-8")).to_arrow_table()
    costs = {
        "model_id": table.column("model_id"),
        "before": responses.column("cost_usd"),
        "after": table.column("cost_usd"),
    }
    null = pc.CountOptions("only_null")
    wanted: list[Any] = [([], "count_all"), ("before", "sum"), ("after", "sum")]
    wanted += [("before", "count", null), ("after", "count", null)]
    summed = pa.table(costs).group_by("model_id", use_threads=False).aggregate(wanted).to_pylist()
    of_model = {row["model_id"]: row for row in summed}
    new_models = MODELS.from_rows(
        row | (price.columns if (price := listed.get(row["model_id"])) else {})
        for row in models.to_pylist()
    )
    figures = []
    for row in models.sort_by("model_id").to_pylist():
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
    return Repriced(RESPONSES.conform(table), new_models, figures)
