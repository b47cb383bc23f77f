"""List prices of providers' models, as the package `genai-prices` holds them; nothing is fetched.

A price is given for an exact provider and an exact model, else it is unknown: the package also
guesses a model by a part of its name or takes another provider's price, which is not used here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.errors import few
from routeyard.schemas.recipe.pool import Model, Pool, Provider

if TYPE_CHECKING:
    from decimal import Decimal

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
    found = {
        model.model_id: price.columns
        for model in unpriced
        if (price := list_price(_provider(model, pool), _called(model), batch=batch))
    }
    models = [model.model_copy(update=found.get(model.model_id, {})) for model in pool.models]
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
    names = {one.name: one for one in pool.providers}
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
    day, found = day_of_list(), listed_model(provider, model)
    prices = None if found is None or day is None else _prices(found[1], day, batch)
    if found is None or prices is None:
        return None
    source = f"genai-prices {_version()}, {found[0]}/{found[1].id}" + (", batch" if batch else "")
    return Price(date=day, source=source, **prices)


def listed_model(provider: str | None, model: str) -> tuple[str, Any] | None:
    """Id of an exact provider and the package's entry of its exact model; None where not listed."""
    company = None if provider is None or day_of_list() is None else _company(provider)
    if company is None:
        return None
    exact = [one for one in company.models if model.lower() in set(_names(one))]
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
        fitting = [one for one in _companies() if one.id == provider.lower()]
    else:
        fitting = [one for one in _companies() if _serves(one.api_pattern, provider)]
    fitting = [one for one in fitting if one.id not in _OWN_NAMES]
    # Of `openai` and `openai-decisions`, which share an address, the one whose id is the other's
    # beginning is the plain API.
    first = [one for one in fitting if all(x.id.startswith(one.id) for x in fitting)]
    return first[0] if first else None


def _serves(pattern: str, address: str) -> bool:
    """Whether an address is one of the pattern's, and not only begins like one."""
    found = re.match(pattern, address)
    if found is None:
        return False
    rest = address[found.end() :]
    return not rest or rest[0] in "/:" or found.group().endswith("/")


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
    if batch and not any(one.when == context for one in model.price_variants or ()):
        return None
    stated = [_plain(model.get_prices(hour, context)) for hour in hours]
    prices = stated[0]
    if any(other != prices for other in stated) or prices.keys() & set(_BESIDE):
        return None
    if not {"input_mtok", "output_mtok"} <= prices.keys():
        return None
    found = {name: float(_base(prices[key])) for key, name in _TAKEN.items() if key in prices}
    starts = [tier.start for price in prices.values() for tier in getattr(price, "tiers", ())]
    return found | ({"up_to": min(starts)} if starts else {})


def _plain(prices: Any) -> dict[str, Any]:
    return {name: price for name, price in vars(prices).items() if price is not None}


def _base(price: Any) -> Decimal:
    base: Decimal = getattr(price, "base", price)
    return base
