"""`routeyard fingerprint`: what describes a model without its weights' names."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


class Kind(StrEnum):
    """Which descriptor is made."""

    logit_footprint = "logit_footprint"
    perplexity_fingerprint = "perplexity_fingerprint"
    text_footprint = "text_footprint"


def command(
    release: Annotated[Path, typer.Argument(help="Release folder; probes are its queries.")],
    kind: Annotated[Kind, typer.Option(help="Which descriptor.")] = Kind.logit_footprint,
    recipe: Annotated[
        str | None, typer.Option(help="Ask the pool of this recipe, through the ledger.")
    ] = None,
    workspace: Annotated[Path, typer.Option(help="Workspace whose ledger is used.")] = Path("yard"),
    model: Annotated[list[str] | None, typer.Option(help="Only this model (repeatable).")] = None,
    local: Annotated[
        list[str] | None,
        typer.Option(help="NAME=FOLDER of a local transformers model (repeatable)."),
    ] = None,
    language_model: Annotated[
        str | None,
        typer.Option(
            help="Folder or hub id of the shared language model (perplexity_fingerprint)."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(callback=sealed_off, help="Parquet file to write.")] = Path(
        "descriptors.parquet"
    ),
    probes: Annotated[int, typer.Option(min=1, help="Probe prompts (N).")] = 192,
    steps: Annotated[
        int, typer.Option(min=0, help="Greedy steps per probe (T); words of a text footprint.")
    ] = 10,
    tokens: Annotated[int, typer.Option(min=1, help="Frequent tokens (K).")] = 256,
    seed: Annotated[int, typer.Option(help="Seed of the draw of probes.")] = 0,
    scheme: Annotated[
        str | None, typer.Option(help="Split scheme whose validation queries are probed.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, …; chosen if not given.")] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what it takes: memory, time, USD; and stop.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Describe models by how they answer probe prompts.

    A logit footprint is the mean probability of frequent tokens over greedy steps: from
    local models, or from the top log-probabilities that APIs return.

        routeyard fingerprint yard/releases/demo/1.0.0 --local small=models/small

        routeyard fingerprint yard/releases/demo/1.0.0 --recipe recipe.yaml --model gpt-x

    A perplexity fingerprint needs answers only: the released ones, or, with --recipe,
    greedy ones asked for it.

        routeyard fingerprint RELEASE --kind perplexity_fingerprint --language-model models/gpt2

    A text footprint needs the released answers and nothing else: how often each of the frequent
    words stands in them (in the first --steps words; 0 for the whole answer).

        routeyard fingerprint RELEASE --kind text_footprint --steps 0

    Probes are validation queries that no split scheme trains on; which, stands in the
    `metadata` column beside the probability mass that a server did not return.
    """
    from flows.cli.results import print_result
    from flows.evaluation.fingerprint import (
        Probing,
        footprint_table,
        perplexity_table,
        probe_queries,
        text_table,
    )
    from flows.evaluation.fingerprint_plan import takes
    from flows.recipe import load
    from flows.workspace.stage_folders import write_table
    from pipelines.errors import BadInput

    probing = Probing(probes, steps, tokens, seed, scheme)
    checked = load(recipe)[0] if recipe else None
    folders = dict(_named(entry) for entry in local or [])
    chosen = probe_queries(release, probing)
    taken = takes(
        kind.value, chosen, probing, release=release, recipe=checked, models=model or [],
        local=folders, language_model=language_model, device=device,
    )  # fmt: skip
    if plan:
        print_result(taken, as_json)
        return
    if kind is Kind.text_footprint:
        table = text_table(chosen, probing, release=release, models=model or [])
    elif kind is Kind.logit_footprint:
        if not steps:
            raise BadInput("a logit footprint needs steps", next_step="--steps 10")
        if checked is None and not folders:
            raise BadInput(
                "no model to probe was named",
                next_step="add --local NAME=FOLDER, or --recipe RECIPE to ask its pool",
            )
        table = footprint_table(
            chosen, probing, recipe=checked, root=workspace, models=model or [], local=folders,
            device=device,
        )  # fmt: skip
    else:
        if language_model is None:
            raise BadInput(
                "a perplexity fingerprint needs the language model that scores the answers",
                next_step="add --language-model FOLDER (any causal language model, e.g. GPT-2)",
            )
        table = perplexity_table(
            chosen, probing, language_model, release=release, recipe=checked, root=workspace,
            models=model or [], device=device,
        )  # fmt: skip
    write_table(table, out)
    said = {"kind": kind.value, "models": table.num_rows, "probes": chosen.num_rows, "path": out}
    text = f"{table.num_rows} × {kind.value} from {chosen.num_rows} probes → {out}"
    print_result(said, as_json, text)


def _named(entry: str) -> tuple[str, str]:
    from pipelines.errors import BadInput

    name, equals, folder = entry.partition("=")
    if not (name and equals and folder):
        raise BadInput(
            f"--local {entry!r} is not NAME=FOLDER", next_step="write --local small=models/small"
        )
    return name, folder
