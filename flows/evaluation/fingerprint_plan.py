"""Memory, time and calls that describing models takes, known before any is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routeyard.flows.console import line
from routeyard.flows.evaluation.fingerprint import (
    Described,
    Probing,
    asked_models,
    released_answers,
)
from routeyard.flows.evaluation.local_models import report_size

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.schemas.recipe import Model


def requirements(kind: str, probes: pa.Table, probing: Probing, of: Described) -> dict[str, Any]:
    """`local`: memory and time of each model that is loaded; `asked`: calls and most USD."""
    prompts = probes.column("prompt").to_pylist()
    found: dict[str, Any] = {"kind": kind, "probes": probes.num_rows, "local": [], "asked": []}
    if kind == "text_footprint":
        return found
    footprint = kind == "logit_footprint"
    limit = probing.steps if footprint else probing.max_tokens
    if footprint:
        found["local"] = [
            report_size(folder, prompts, device=of.device, steps=limit)
            for folder in of.local.values()
        ]
    elif of.language_model is not None:
        ids = probes.column("query_id").to_pylist()
        answers = {} if of.recipe else released_answers(of.release, ids, of.models)
        texts = [text for each in answers.values() for text in each if text]
        # Answers that are yet to be asked may be as long as they are allowed.
        texts = texts or ["word " * limit] * probes.num_rows
        found["local"] = [report_size(of.language_model, texts, device=of.device)]
    found["asked"] = [_asked(model, of, probes, limit) for model in asked_models(of)]
    return found


def _asked(model: Model, of: Described, probes: pa.Table, limit: int) -> dict[str, Any]:
    """Calls and most USD of a model, if the ledger has no answer of it."""
    import numpy as np

    from routeyard.pipelines.calls.request import RequestSettings
    from routeyard.pipelines.collect.estimate import estimate
    from routeyard.pipelines.collect.model_prompts import ModelPrompts

    assert of.recipe is not None
    worst = estimate(
        ModelPrompts(probes, model, of.recipe.collect),
        np.arange(probes.num_rows, dtype=np.int32),
        np.ones((probes.num_rows, 1), dtype=bool),
        model,
        RequestSettings("", "", model.model_id, {"max_tokens": limit}),
        None,
    ).worst_cost_usd
    most = "at an unknown price" if worst is None else f"at most {worst:.4f} USD"
    line("ask", f"{model.model_id}: {probes.num_rows:,} calls, {most}")
    return {"model_id": model.model_id, "calls": probes.num_rows, "most_usd": worst}
