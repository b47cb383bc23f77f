"""Memory, time and calls that describing models takes, known before any is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.console import line
from flows.evaluation.fingerprint import Probing, released_answers
from flows.evaluation.local_models import report_size

if TYPE_CHECKING:
    import pyarrow as pa

    from schemas.recipe import Recipe


def requirements(
    kind: str,
    probes: pa.Table,
    probing: Probing,
    *,
    release: Path,
    recipe: Recipe | None,
    models: Sequence[str],
    local: Mapping[str, str],
    language_model: str | None,
    device: str | None,
) -> dict[str, Any]:
    """`local`: memory and time of each model that is loaded; `asked`: calls and most USD."""
    prompts = probes.column("prompt").to_pylist()
    found: dict[str, Any] = {"kind": kind, "probes": probes.num_rows, "local": [], "asked": []}
    if kind == "text_footprint":
        return found
    limit = probing.steps if kind == "logit_footprint" else probing.max_tokens
    if kind == "logit_footprint":
        for folder in local.values():
            found["local"].append(report_size(folder, prompts, device=device, steps=probing.steps))
    elif language_model is not None:
        answers = {} if recipe else released_answers(release, _ids(probes), models)
        texts = [text for each in answers.values() for text in each if text]
        # Answers that are yet to be asked may be as long as they are allowed.
        texts = texts or ["word " * limit] * probes.num_rows
        found["local"].append(report_size(language_model, texts, device=device))
    if recipe is not None:
        found["asked"] = _asked(recipe, models, probes, limit)
    return found


def _asked(
    recipe: Recipe, models: Sequence[str], probes: pa.Table, limit: int
) -> list[dict[str, Any]]:
    """Calls and most USD of each model, if the ledger has none of them."""
    import numpy as np

    from flows.workspace.prompts import model_to_ask
    from pipelines.calls.request import RequestSettings
    from pipelines.collect.estimate import estimate
    from pipelines.collect.model_prompts import ModelPrompts

    wanted = [model_to_ask(recipe.pool, name) for name in models] or [
        one for one in recipe.pool.models if one.relay is None
    ]
    rows = []
    for model in wanted:
        worst = estimate(
            ModelPrompts(probes, model, recipe.collect),
            np.arange(probes.num_rows, dtype=np.int32),
            np.ones((probes.num_rows, 1), dtype=bool),
            model,
            RequestSettings("", "", model.model_id, {"max_tokens": limit}),
            None,
        ).worst_cost_usd
        rows.append({"model_id": model.model_id, "calls": probes.num_rows, "most_usd": worst})
        most = "at an unknown price" if worst is None else f"at most {worst:.4f} USD"
        line("ask", f"{model.model_id}: {probes.num_rows:,} calls, {most}")
    return rows


def _ids(probes: pa.Table) -> list[str]:
    return [str(q) for q in probes.column("query_id").to_pylist()]
