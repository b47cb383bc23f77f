"""A release or a workspace under another price table, written beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from routeyard.flows.workspace.stage_folders import write_table
from routeyard.pipelines.errors import BadInput, VersionExists
from routeyard.pipelines.io.staging import place, staging, write_json


def reprice_target(
    target: Path, prices: Path, read_on: str | None, out: Path | None
) -> dict[str, Any]:
    """Write `responses`, `models` and `reprice.json` into a new folder; returns its figures.

    Raises:
        BadInput: the target is neither a release nor a workspace with a ledger, or
            the table cannot be read.
        VersionExists: the folder to write is already there.
    """
    from routeyard.pipelines.metering.price_tables import read_prices
    from routeyard.pipelines.metering.reprice import reprice

    table = read_prices(prices, read_on=read_on)
    responses, models, names = _tables(target)
    done = reprice(responses, models, table, names)
    newest = max((p.date or "" for p in table.values()), default="undated")
    folder = out or target.parent / f"{target.resolve().name}.repriced-{newest}"
    if folder.exists():
        raise VersionExists(
            "the folder to write is already there",
            where=str(folder),
            next_step="name another with --out",
        )
    figures = {
        "of": target.name,
        "prices": prices.name,
        "models": done.figures,
        "path": str(folder),
    }
    with staging(folder) as unfinished:
        write_table(done.responses, unfinished / "responses.parquet")
        write_table(done.models, unfinished / "models.parquet")
        write_json(unfinished / "reprice.json", figures)
        place(unfinished, folder)
    return figures


def _tables(target: Path) -> tuple[Any, Any, dict[str, str]]:
    """(responses, models, model_id → endpoint name) of a release or a workspace."""
    import pyarrow.parquet as pq

    from routeyard.pipelines.io.untrusted import RELEASED, bounded
    from routeyard.schemas import MODELS, RESPONSES

    data = target / "data"
    if (data / "responses.parquet").is_file() and (data / "models.parquet").is_file():
        given = {name: data / f"{name}.parquet" for name in ("responses", "models")}
        read = {name: pq.read_table(bounded(path, RELEASED)) for name, path in given.items()}
        return RESPONSES.conform(read["responses"]), MODELS.conform(read["models"]), {}
    if not (target / "stages").is_dir() and not (target / "ledger").is_dir():
        raise BadInput(
            "neither a release nor a workspace with a ledger",
            where=str(target),
            next_step="name a folder like yard or yard/releases/<name>/<version>",
        )
    from routeyard.flows.workspace.ledgers import existing_ledger
    from routeyard.pipelines.ledger.answers_table import answers_table, asked_models
    from routeyard.pipelines.metering.audit import known_of
    from routeyard.pipelines.pool import models_table
    from routeyard.schemas.recipe import Pool

    with existing_ledger(target) as ledger:
        pool = Pool(models=asked_models(ledger))
        answers = answers_table(ledger)
    names = dict(known_of(pool)["names"])
    return answers.select(RESPONSES.column_names), models_table(pool), names


def write_prices(recipe: str, out: Path) -> int:
    """Fetch the price lists of a recipe's providers; returns how many prices were written.

    Raises:
        BadInput: no provider has a price list, one cannot be read, or none of them names a
            model of the pool.
        VersionExists: the file is already there.
    """
    from datetime import UTC, datetime

    import yaml

    from routeyard.flows.recipe import load
    from routeyard.pipelines.metering.price_tables import fetch_prices

    pool = load(recipe)[0].pool
    listing = [p for p in pool.providers if p.price_list]
    if not listing:
        raise BadInput(
            "no provider of the pool has a price list",
            where="pool.providers",
            next_step="set 'price_list: openrouter' on a provider",
        )
    if out.exists():
        raise VersionExists("the file is already there", where=str(out), next_step="name another")
    today = datetime.now(UTC).date().isoformat()
    wanted = {name for m in pool.models for name in (m.model_id, m.endpoint_model) if name}
    rows = [
        {
            "model_id": name,
            "price_in": price.input,
            "price_out": price.output,
            "price_date": price.date,
            "price_source": price.source,
        }
        for provider in listing
        for name, price in sorted(fetch_prices(provider, read_on=today).items())
        if name in wanted
    ]
    if not rows:
        raise BadInput(
            "the price lists of the pool's providers name none of its models",
            where=", ".join(f"{p.base_url} ({p.name})" for p in listing),
            next_step="state price_in, price_out and price_date of each model in the recipe "
            "(USD per million tokens), or name a file of prices: 'pool.prices: FILE'",
        )
    out.write_text(yaml.safe_dump({"prices": rows}, sort_keys=False), encoding="utf-8")
    return len(rows)
