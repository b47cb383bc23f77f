"""The metering audit of a ledger, of a recording, or as the last build left it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeyard.flows.ledgers import existing_ledger, ledger_exists, prompts
from routeyard.flows.recipe import load
from routeyard.flows.workspace import last_builds, write_table
from routeyard.pipelines.audit.metering import (
    MeteringFinding,
    apply_waivers,
    audit,
    audited,
    names_of,
)
from routeyard.pipelines.collect.ledger import answers_table, asked_models
from routeyard.pipelines.collect.prices import fetch_prices, read_prices, reprice
from routeyard.pipelines.common.errors import VersionExists
from routeyard.pipelines.common.pool import models_table
from routeyard.pipelines.common.staging import place, staging, write_json
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe import Pool, Waiver

if TYPE_CHECKING:
    from routeyard.schemas.recipe import Recipe


@dataclass(frozen=True, slots=True)
class MeteringAudit:
    """What an audit found, and over what.

    Attributes:
        of: What was looked at.
        places: (query_id, model_id, sample) → where a person finds the answer.
    """

    unresolved: tuple[MeteringFinding, ...]
    waived: tuple[tuple[MeteringFinding, Waiver], ...]
    of: str
    places: Mapping[tuple[str, str, int], str]

    def rows(self, finding: MeteringFinding, most: int) -> list[str]:
        """The first rows of a finding, as a person finds them."""
        keys = [(query, finding.model_id, sample) for query, sample in finding.rows[:most]]
        return [self.places.get(key, f"{key[0]}/{key[2]}") for key in keys]


def audit_workspace(workspace: Path, recipe: str | None) -> MeteringAudit:
    """Audit a recipe's recording, or else the ledger; without both, the last build's recording.

    Raises:
        BadInput: there is neither ledger nor recording nor a build.
    """

    if recipe is None and not ledger_exists(workspace):
        recipe = next((item["recipe"] for item in reversed(last_builds(workspace).values())), None)
    checked, base = load(recipe) if recipe else (None, workspace)
    if checked is not None and checked.collect.provider == "recorded" and checked.collect.recorded:
        return audit_recording(checked, base)
    unresolved, waived = audit_ledger(workspace, checked)
    return MeteringAudit(unresolved, waived, "the ledger", {})


def audit_recording(recipe: Recipe, base: Path) -> MeteringAudit:
    """The audit over a recipe's recorded answers, which are read as a build reads them."""
    from routeyard.pipelines.collect.recorded import import_recorded
    from routeyard.pipelines.ingest import ingest

    queries, models = ingest(recipe.sources, base=base).queries, models_table(recipe.pool)
    imported = import_recorded(queries, models, recipe.collect.recorded, base=base)
    unresolved, waived = audited(recipe, imported.responses, queries, models)
    return MeteringAudit(unresolved, waived, "the recording", imported.places)


def audit_ledger(
    workspace: Path, checked: Recipe | None
) -> tuple[tuple[MeteringFinding, ...], tuple[tuple[MeteringFinding, Waiver], ...]]:
    """(unresolved findings, findings the recipe waives) over all answers of a ledger."""
    from routeyard.pipelines.collect.collect import canary_answers
    from routeyard.schemas.recipe.collect import Metering

    with existing_ledger(workspace) as ledger:
        pool = checked.pool if checked else Pool(models=asked_models(ledger))
        answers = answers_table(ledger)
        canaries = canary_answers(ledger)
    findings = audit(
        answers,
        models_table(pool),
        checked.collect.metering if checked else Metering(),
        queries=prompts(workspace),
        canaries=canaries,
        names=names_of(pool),
    )
    return apply_waivers(findings, checked.release.waivers if checked else ())


# A release or a workspace under another price table, written beside it.


def reprice_target(
    target: Path, prices: Path, read_on: str | None, out: Path | None
) -> dict[str, Any]:
    """Write `responses`, `models` and `reprice.json` into a new folder; returns its figures.

    Raises:
        BadInput: the target is neither a release nor a workspace with a ledger, or
            the table cannot be read.
        VersionExists: the folder to write is already there.
    """

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

    from routeyard.pipelines.common.untrusted import RELEASED, bounded
    from routeyard.schemas import MODELS, RESPONSES

    data = target / "data"
    if (data / "responses.parquet").is_file() and (data / "models.parquet").is_file():
        paths = {name: data / f"{name}.parquet" for name in ("responses", "models")}
        read = {name: pq.read_table(bounded(path, RELEASED)) for name, path in paths.items()}
        return RESPONSES.conform(read["responses"]), MODELS.conform(read["models"]), {}
    if not (target / "stages").is_dir() and not (target / "ledger").is_dir():
        raise BadInput(
            "neither a release nor a workspace with a ledger",
            where=str(target),
            next_step="name a folder like yard or yard/releases/<name>/<version>",
        )

    with existing_ledger(target) as ledger:
        pool = Pool(models=asked_models(ledger))
        answers = answers_table(ledger)
    return answers.select(RESPONSES.column_names), models_table(pool), names_of(pool)


def write_prices(recipe: str, out: Path) -> int:
    """Fetch the price lists of a recipe's providers; returns how many prices were written.

    Raises:
        BadInput: no provider has a price list, one cannot be read, or none of them names a
            model of the pool.
        VersionExists: the file is already there.
    """
    from datetime import UTC, datetime

    import yaml

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
