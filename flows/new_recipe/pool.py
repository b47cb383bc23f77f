"""The pool of a recipe that `routeyard init` writes: a provider's model list, or a simulation."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from routeyard.flows.new_recipe.recorded import AnswerSource
from routeyard.pipelines.errors import BadInput, did_you_mean
from routeyard.pipelines.matrix.costs import few

if TYPE_CHECKING:
    from routeyard.pipelines.calls.pricing import Price

#: Models taken from a provider's list when nobody names some.
MODELS = 5
#: Variable with a key → address of the provider it is for.
_KNOWN = {
    "OPENROUTER_API_KEY": "https://openrouter.ai/api/v1",
    "OPENAI_API_KEY": "https://api.openai.com/v1",
}


def from_provider(address: str | None, key_env: str | None, models: Sequence[str]) -> AnswerSource:
    """Pool and `collect` for models that are asked: a provider's, else simulated ones."""
    address = address or os.environ.get("OPENAI_BASE_URL")
    if address is None:
        key_env = next((name for name in _KNOWN if os.environ.get(name)), None)
        address = _KNOWN.get(key_env or "")
    if address is None:
        pool, waivers = _simulated(), []
        words = "a SIMULATED pool that answers on this machine; --provider URL takes real models"
    else:
        if key_env is None and os.environ.get("OPENAI_API_KEY"):
            key_env = "OPENAI_API_KEY"
        pool, words = _listed(address, key_env, models)
        waivers = _unpriced(pool["models"])
    how = {"max_tokens": 1024, "temperature": 0.0, "seed": 0}
    # Simulated models know no answers to these questions; undecided, they would give no release.
    unreadable = "incorrect" if address is None else None
    return AnswerSource(pool, how, words, waivers, unreadable=unreadable)


def _unpriced(models: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """The waiver for models without a price, which names how many there are."""
    names = [model["model_id"] for model in models if "price_in" not in model]
    if not names:
        return []
    reason = (
        f"The provider lists no price of {len(names)} of {len(models)} models ({few(names)}); fill "
        "in price_in and price_out to know the cost."
    )
    return [{"gate": "metering:price_unknown", "reason": reason}]


def _listed(address: str, key_env: str | None, models: Sequence[str]) -> tuple[dict[str, Any], str]:
    """The pool of a provider's models with their prices, and where it comes from."""
    from routeyard.pipelines.calls.model_list import list_models
    from routeyard.pipelines.metering.list_prices import day_of_list, list_price, public_address
    from routeyard.pipelines.metering.price_tables import fetch_prices
    from routeyard.schemas.recipe import Provider

    provider = Provider(name="provider", base_url=address, api_key_env=key_env)
    today = datetime.now(UTC).date().isoformat()
    prices = None
    with contextlib.suppress(BadInput):  # not every provider lists prices
        prices = fetch_prices(provider, read_on=today) or None
    found = list_models(provider)
    if found.models is None and not models:
        raise BadInput(
            f"the provider lists no models: {found.why}",
            where=address,
            next_step="name them with --model (again for more), and the key with --key-env",
        )

    def known(name: str) -> Price | None:
        return prices.find(name) if prices else list_price(public_address(provider), name)

    entries = []
    for name in _choose(sorted(found.models or ()), known, models):
        price = known(name)
        entry: dict[str, Any] = {"model_id": name, "provider": "provider"}
        if price is not None and price.input is not None and price.output is not None:
            entry |= {key: one for key, one in price.columns.items() if one is not None}
        entries.append(entry)
    stated = {"name": "provider", "base_url": address}
    stated |= {"api_key_env": key_env} if key_env else {}
    stated |= {"price_list": "openrouter"} if prices is not None else {}
    unpriced = sum("price_in" not in entry for entry in entries)
    words = f"{len(entries)} of {len(found.models or ())} models that {address} lists"
    if not found.models:
        words = f"{len(entries)} models as you name them; {address} lists none"
    if unpriced:
        words += f", {unpriced} of them without a price"
    elif entries:
        words += ", with its prices of today" if prices else f", list prices of {day_of_list()}"
    return {"providers": [stated], "models": entries}, words


def _choose(
    names: list[str], known: Callable[[str], Price | None], wanted: Sequence[str]
) -> list[str]:
    """Those that were named, else some from the cheapest to the dearest."""
    unknown = [name for name in wanted if names and name not in names]
    if unknown:
        raise BadInput(
            f"the provider lists no model {unknown[0]!r}",
            next_step=did_you_mean(unknown[0], names),
        )

    def price(name: str) -> tuple[bool, float, str]:
        found = known(name)
        if found is None or found.output is None:
            return (True, 0.0, name)
        return (False, float(found.output), name)

    ordered = list(wanted) or sorted(names, key=price)
    if wanted or len(ordered) <= MODELS:
        return ordered
    step = (len(ordered) - 1) / (MODELS - 1)
    return [ordered[round(i * step)] for i in range(MODELS)]


def _simulated() -> dict[str, Any]:
    from routeyard.flows.recipe import load

    pool = load("demo")[0].pool
    keep = ("model_id", "provider", "family", "price_in", "price_out", "price_date",
            "price_source", "context_window", "simulated")  # fmt: skip
    models = [m.model_dump(mode="json", include=set(keep)) for m in pool.models]
    chosen = [models[0], models[len(models) // 2], models[-1]]
    address = "${ROUTEYARD_DEMO_URL}"
    return {"providers": [{"name": "demo", "base_url": address}], "models": chosen}
