"""What changed outside the workspace: revisions at the hub, models and prices at the providers.

A recipe stays what its author wrote: what is found here is reported. A model
counts as retired when its provider listed it at the last release and lists it
no more; nothing follows from a provider that lists nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import BadInput, RecipeError
from routeyard.pipelines.io.staging import write_json
from routeyard.schemas.recipe import Pool, Recipe

#: provider → names it listed.
Listed = dict[str, list[str]]


@dataclass(frozen=True)
class Changes:
    """What was found.

    Attributes:
        rows: One per finding: stage, state (`newer exists`, `follows`, `retired`, `not
            listed`, `new`, `price differs`, `unknown`) and why.
        retired: Models of the pool that their provider lists no more.
        listed: What each provider that answered lists now.
    """

    rows: list[dict[str, str]]
    retired: list[str]
    listed: Listed


def changes(recipe: Recipe, root: Path) -> Changes:
    """Look at the hub and at the providers of a pool that is asked; spends nothing."""
    rows = _revisions(recipe)
    if recipe.collect.provider == "recorded":
        return Changes(rows, [], {})

    pool = recipe.pool
    found, retired, listed = _models(pool, remembered(root, recipe.name))
    return Changes([*rows, *found, *_prices(pool)], retired, listed)


def stop_if_retired(found: Changes, planned: Mapping[str, Any]) -> None:
    """Refuse to spend money on a benchmark that cannot become whole.

    A retired model whose answers are all in the ledger stops nothing.

    Args:
        planned: What `routeyard.flows.plan.plan_build` reports as missing.

    Raises:
        RecipeError: answers of a retired model are missing.
    """
    missing = {m["model_id"]: m["missing"] for m in planned["models"] if m["missing"]}
    gone = {name: missing[name] for name in found.retired if name in missing}
    if gone:
        names = ", ".join(f"{name} ({count:,} answers missing)" for name, count in gone.items())
        raise RecipeError(
            f"{len(gone)} models of the pool are listed by their provider no more: {names}",
            where="pool.models; nothing was asked",
            next_step="take them out of the pool, or give 'endpoint_model' the new name; where "
            f"only the list is wrong, remove runs/{planned['benchmark']}.listed.json",
        )


def remembered(root: Path, name: str) -> Listed:
    """What the providers listed at the last release; empty before the first."""
    path = _file(root, name)
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(k): [str(one) for one in v] for k, v in found.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise BadInput(
            f"the record of listed models is damaged: {error}",
            where=str(path),
            next_step="remove the file; only the search for retired models needs it",
        ) from error


def remember(found: Changes, root: Path, name: str) -> None:
    """Keep what the providers list; one that did not answer keeps its last list."""
    before = remembered(root, name)
    now = before | found.listed
    if now != before:
        write_json(_file(root, name), now)


def _file(root: Path, name: str) -> Path:
    return root / "runs" / f"{name}.listed.json"


def _revisions(recipe: Recipe) -> list[dict[str, str]]:
    from routeyard.pipelines.ingest import revisions

    rows = []
    for one in revisions(recipe.sources):
        source = f"source {one.source!r}"
        if one.newest is None:
            rows.append(_row("ingest", "unknown", f"{source}: {one.why}"))
        elif one.newer_exists:
            why = f"{source} is pinned to {one.wanted}; {one.hub_id} has {one.newest}"
            rows.append(_row("ingest", "newer exists", why))
        elif not one.pinned:
            branch = one.wanted or "the default branch"
            why = f"{source} follows {branch} of {one.hub_id}, now {one.newest}"
            rows.append(_row("ingest", "follows", why))
    return rows


def _models(pool: Pool, before: Listed) -> tuple[list[dict[str, str]], list[str], Listed]:
    """(findings, retired models, what is listed now)."""
    from routeyard.pipelines.calls.model_list import list_models
    from routeyard.pipelines.collect.settings import provider_of

    rows: list[dict[str, str]] = []
    retired: list[str] = []
    now: Listed = {}
    asked = [(m, provider_of(m, pool)) for m in pool.models if m.relay is None]
    for provider in pool.providers:
        found = list_models(provider)
        if found.models is None:
            rows.append(_row("pool", "unknown", f"models of {provider.name!r}: {found.why}"))
            continue
        now[provider.name] = sorted(found.models)
        known = before.get(provider.name, [])
        for model, served_by in asked:
            name = model.endpoint_model or model.model_id
            if served_by.name != provider.name or name in found.models:
                continue
            if name in known:
                retired.append(model.model_id)
                why = f"{model.model_id}: {provider.name!r} lists it no more"
                rows.append(_row("pool", "retired", why))
            else:
                # Aliases and routes ("model:fast") are served and never listed.
                why = f"{model.model_id}: {provider.name!r} does not list it, and never did"
                rows.append(_row("pool", "not listed", why))
        if known and (new := sorted(found.models - set(known))):
            names = ", ".join(new[:20]) + (f" and {len(new) - 20} more" if len(new) > 20 else "")
            rows.append(_row("pool", "new", f"{provider.name!r} now lists {names}"))
    return rows, retired, now


def _prices(pool: Pool) -> list[dict[str, str]]:
    """Where a provider's own price list differs from the pool."""
    from datetime import UTC, datetime

    from routeyard.pipelines.collect.settings import provider_of
    from routeyard.pipelines.metering.price_tables import fetch_prices

    rows = []
    today = datetime.now(UTC).date().isoformat()
    for provider in pool.providers:
        if provider.price_list is None:
            continue
        try:
            table = fetch_prices(provider, read_on=today)
        except BadInput as error:
            rows.append(_row("pool", "unknown", f"prices of {provider.name!r}: {error.what}"))
            continue
        for model in pool.models:
            if model.relay is not None:
                continue
            price = table.find(model.endpoint_model, model.model_id)
            if price is None or provider_of(model, pool).name != provider.name:
                continue
            stated, now = (model.price_in, model.price_out), (price.input, price.output)
            if now != stated and None not in now:
                why = f"{model.model_id}: the pool says {_usd(stated)}, the provider {_usd(now)}"
                rows.append(_row("pool", "price differs", why))
    return rows


def _usd(price: tuple[float | None, float | None]) -> str:
    given, taken = ("unknown" if one is None else f"{one:g}" for one in price)
    return f"{given} in and {taken} out"


def _row(stage: str, state: str, why: str) -> dict[str, str]:
    return {"stage": stage, "state": state, "why": why}
