"""`routeyard fingerprint`: what describes a model without its weights' names."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer

from routeyard.flows.cli.options import YARD, Plan, Workspace, WrittenPath
from routeyard.flows.cli.results import Output


def command(
    release: Path,
    kind: Literal[
        "logit_footprint", "perplexity_fingerprint", "text_footprint"
    ] = "logit_footprint",
    recipe: str | None = None,
    workspace: Workspace = YARD,
    model: list[str] | None = None,
    local: list[str] | None = None,
    language_model: str | None = None,
    out: WrittenPath = Path("descriptors.parquet"),
    probes: Annotated[int, typer.Option(min=1)] = 192,
    steps: Annotated[int, typer.Option(min=0)] = 10,
    tokens: Annotated[int, typer.Option(min=1)] = 256,
    seed: int = 0,
    scheme: str | None = None,
    device: str | None = None,
    plan: Plan = False,
) -> Output:
    """Describe models by how they answer probe prompts.

    A logit footprint is the mean probability of frequent tokens over greedy steps: from
    local models, or from the top log-probabilities that APIs return.

        routeyard fingerprint yard/releases/demo/1.0.0 --local small=models/small

        routeyard fingerprint yard/releases/demo/1.0.0 --recipe recipe.yaml --model gpt-x

    A perplexity fingerprint needs answers only: the released ones, or, with --recipe,
    greedy ones asked for it.

        routeyard fingerprint RELEASE --kind perplexity_fingerprint --language-model models/gpt2

    A text footprint needs the released answers and nothing else: how often each of the frequent
    words occurs in them (in the first --steps words; 0 for the whole answer).

        routeyard fingerprint RELEASE --kind text_footprint --steps 0

    Probes are validation queries that no split scheme trains on; the column `metadata` lists
    them beside the probability mass that a server did not return.

    Args:
        kind: Which descriptor.
        recipe: Ask the pool of this recipe, through the ledger.
        model: Only this model (repeatable).
        local: NAME=FOLDER of a local transformers model (repeatable).
        language_model: Folder or hub id of the shared language model
            (perplexity_fingerprint).
        out: Parquet file to write.
        probes: Number of probe prompts (N).
        steps: Greedy steps per probe (T); words of a text footprint.
        tokens: Number of frequent tokens (K).
        seed: Seed of the draw of probes.
    """
    from routeyard.flows.evaluation.fingerprint import Described, Probing, describe, probe_queries
    from routeyard.flows.evaluation.fingerprint_plan import requirements
    from routeyard.flows.recipe import load
    from routeyard.flows.workspace.fixtures import fixtures
    from routeyard.flows.workspace.stage_folders import write_table

    probing = Probing(probes, steps, tokens, seed, scheme)
    chosen = probe_queries(release, probing)
    checked = load(recipe)[0] if recipe else None
    of = Described(
        release,
        workspace,
        recipe=checked,
        models=model or (),
        local=dict(_named(entry) for entry in local or ()),
        language_model=language_model,
        device=device,
    )
    needs = requirements(kind, chosen, probing, of)
    if plan:
        return Output(needs)
    with nullcontext() if checked is None else fixtures(checked, workspace):
        table = describe(kind, chosen, probing, of)
    write_table(table, out)
    return Output(
        {"kind": kind, "models": table.num_rows, "probes": chosen.num_rows, "path": out},
        f"{table.num_rows} × {kind} from {chosen.num_rows} probes → {out}",
    )


def _named(entry: str) -> tuple[str, str]:
    from routeyard.pipelines.errors import BadInput

    name, equals, folder = entry.partition("=")
    if not (name and equals and folder):
        raise BadInput(
            f"--local {entry!r} is not NAME=FOLDER", next_step="write --local small=models/small"
        )
    return name, folder
