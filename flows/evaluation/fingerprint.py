"""Fingerprints of models from a release's validation queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from routeyard.flows.console import line
from routeyard.flows.ledgers import ask_prompts, model_to_ask
from routeyard.pipelines.collect.plan import ModelPrompts
from routeyard.pipelines.evaluate.signals import (
    footprints,
    load,
    negative_log_likelihoods,
    parameters_of,
    perplexity_fingerprints,
    select_probes,
    text_footprints,
    tokenised,
    trace_local,
    trace_tokens,
)
from routeyard.pipelines.release.reader import open_release
from routeyard.schemas.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.pipelines.collect.ledger import Attempt
    from routeyard.schemas.recipe import Model, Recipe

# What a local language model will read, known before its weights are loaded.


def report_size(
    model: str, texts: Sequence[str], *, max_length: int | None = None, steps: int = 0
) -> dict[str, Any]:
    """Parameters, texts and tokens, printed as one line; no weights are loaded.

    Args:
        texts: what is read; `steps` tokens are written after each.

    Raises:
        SourceError: there is no such model.
    """
    from transformers import AutoTokenizer

    parameters = parameters_of(model, causal=True)
    read = tokenised(AutoTokenizer.from_pretrained(model), texts, max_length or 1 << 20)
    tokens = sum(map(len, read)) + steps * len(read)
    line(
        "model",
        f"{model}: {parameters / 1e6:,.1f} million parameters; {len(read):,} texts, "
        f"{tokens:,} tokens",
    )
    return {"model": model, "parameters": parameters, "texts": len(read), "tokens": tokens}


@dataclass(frozen=True)
class Probing:
    """What is probed, and how.

    Attributes:
        probes: Most probe prompts (N), drawn with `seed` from the validation
            queries of `scheme` (any scheme when None).
        steps: Greedy steps per probe (T). tokens: Frequent tokens (K).
    """

    probes: int = 192
    steps: int = 10
    tokens: int = 256
    seed: int = 0
    scheme: str | None = None
    top_logprobs: int = 20
    max_tokens: int = 512


@dataclass(frozen=True)
class Described:
    """Which models are described, and from where their answers come.

    Attributes:
        release: The release of the probes and of answers that are not asked for.
        root: Workspace whose ledger keeps what is asked.
        recipe: Recipe whose pool is asked; None to ask nobody.
        models: Names of models; empty for all.
        local: Name → folder of models that are loaded on this machine.
        language_model: Folder or hub id of the model that scores answers.
        device: cpu, cuda or mps; None or auto is a GPU where there is one.
    """

    release: Path
    root: Path = Path("yard")
    recipe: Recipe | None = None
    models: Sequence[str] = ()
    local: Mapping[str, str] = field(default_factory=dict)
    language_model: str | None = None
    device: str | None = None


def probe_queries(release: Path, probing: Probing) -> pa.Table:
    """The probe prompts of a release, ordered by query_id.

    Raises:
        BadInput: the release has no validation queries, or withholds their text.
    """
    from routeyard.schemas.release import WITHHELD

    with open_release(release) as opened:
        queries, splits = opened.arrow("queries"), opened.arrow("splits")
    chosen = select_probes(
        queries, splits, n=probing.probes, seed=probing.seed, scheme=probing.scheme
    )
    withheld = [row for row in chosen.to_pylist() if row["prompt"] == WITHHELD]
    if withheld:
        raise BadInput(
            f"the text of {len(withheld)} probe queries is withheld from the release",
            where=f"query {withheld[0]['query_id']}",
            next_step="use a release whose sources allow their text to be redistributed",
        )
    return chosen


def describe(kind: str, probes: pa.Table, probing: Probing, of: Described) -> pa.Table:
    """The `descriptors` of models: logit footprints, perplexity fingerprints or text footprints.

    Logit footprints are of pool models, asked through their APIs, and of local models; perplexity
    fingerprints of freshly asked greedy answers, or of the released ones; text footprints of the
    released answers, of which `steps` 0 takes the whole.

    Raises:
        BadInput: what this kind needs is missing.
    """
    ids = probes.column("query_id").to_pylist()
    if kind == "text_footprint":
        answers = released_answers(of.release, ids, of.models)
        return text_footprints(answers, ids, k=probing.tokens, steps=probing.steps or None)
    if kind == "logit_footprint":
        if not probing.steps:
            raise BadInput("a logit footprint needs steps", next_step="--steps 10")
        if of.recipe is None and not of.local:
            raise BadInput(
                "no model to probe was named",
                next_step="add --local NAME=FOLDER, or --recipe RECIPE to ask its pool",
            )
        traces = _traces(probes, probing, of)
        return footprints(traces, ids, k=probing.tokens, steps=probing.steps)
    if of.language_model is None:
        raise BadInput(
            "a perplexity fingerprint needs the language model that scores the answers",
            next_step="add --language-model FOLDER (any causal language model, e.g. GPT-2)",
        )
    parameters = {"temperature": 0.0, "max_tokens": probing.max_tokens}
    texts = {
        name: [None if item is None else item.text for item in asked]
        for name, asked in ask_pool(of, probes, parameters).items()
    }
    if of.recipe is None:
        texts = released_answers(of.release, ids, of.models)
    loaded = load(of.language_model, device=of.device)
    scored = {
        name: np.asarray(negative_log_likelihoods(loaded, [text or "" for text in each]))
        for name, each in texts.items()
    }
    on = "" if loaded.device == "cpu" else f" on {loaded.device}"
    return perplexity_fingerprints(scored, ids, loaded.name + on)


def _traces(probes: pa.Table, probing: Probing, of: Described) -> dict[str, Any]:
    """What each model writes after the probes, token by token, with its likeliest tokens."""
    from routeyard.pipelines.common.usage import tokens

    traces: dict[str, Any] = {}
    parameters = {
        "temperature": 0.0,
        "max_tokens": probing.steps,
        "logprobs": True,
        "top_logprobs": probing.top_logprobs,
    }
    for name, answers in ask_pool(of, probes, parameters).items():
        items = [tokens(a.logprobs, where=f"model {name}") for a in answers if a is not None]
        traces[name] = trace_tokens([answer or () for answer in items], steps=probing.steps)
    prompts = probes.column("prompt").to_pylist()
    for name, folder in of.local.items():
        traces[name] = trace_local(load(folder, device=of.device), prompts, steps=probing.steps)
    return traces


def released_answers(
    release: Path, query_ids: Sequence[str], models: Sequence[str]
) -> dict[str, list[str | None]]:
    """Per model, the text of its first sample to each query; None where it has no sample."""
    import pyarrow.compute as pc

    with open_release(release) as opened:
        responses = opened.arrow("responses")
    first = responses.filter(
        pc.and_(pc.equal(responses["sample"], 0), pc.is_valid(responses["text"]))
    )
    known = sorted(set(first.column("model_id").to_pylist()))
    for name in models:
        if name not in known:
            raise BadInput(
                f"the release has no answers of {name!r}",
                where=str(release),
                next_step=did_you_mean(name, known),
            )
    result = {
        (row["model_id"], row["query_id"]): row["text"]
        for row in first.select(["model_id", "query_id", "text"]).to_pylist()
    }
    return {name: [result.get((name, q)) for q in query_ids] for name in models or known}


def asked_models(of: Described) -> list[Model]:
    """The pool models that are asked; none without a recipe."""

    if of.recipe is None:
        return []
    pool = of.recipe.pool
    named = [model_to_ask(pool, name) for name in of.models]
    return named or [model for model in pool.models if model.relay is None]


def ask_pool(
    of: Described, probes: pa.Table, parameters: Mapping[str, Any]
) -> dict[str, list[Attempt | None]]:
    """Greedy answers of pool models, through the workspace's ledger; nothing without a recipe.

    Each is asked the probes in its own frame (`prompt` in the pool).
    """
    if (recipe := of.recipe) is None:
        return {}
    from routeyard.flows.workspace import BuildContext

    pool = {}
    for model in asked_models(of):
        framed = ModelPrompts(probes, model, recipe.collect)
        pool[model.model_id] = ask_prompts(
            BuildContext(recipe.name, of.root, of.root),
            recipe.pool,
            recipe.collect,
            model,
            [framed.prompt(row) for row in range(probes.num_rows)],
            purpose="fingerprint",
            parameters=parameters,
        )
    return pool


# Tokens and calls that describing models takes, known before any is used.


def requirements(kind: str, probes: pa.Table, probing: Probing, of: Described) -> dict[str, Any]:
    """`local`: what each model that is loaded reads; `asked`: calls and most USD."""
    prompts = probes.column("prompt").to_pylist()
    needs: dict[str, Any] = {"kind": kind, "probes": probes.num_rows, "local": [], "asked": []}
    if kind == "text_footprint":
        return needs
    footprint = kind == "logit_footprint"
    limit = probing.steps if footprint else probing.max_tokens
    if footprint:
        needs["local"] = [report_size(folder, prompts, steps=limit) for folder in of.local.values()]
    elif of.language_model is not None:
        ids = probes.column("query_id").to_pylist()
        answers = {} if of.recipe else released_answers(of.release, ids, of.models)
        texts = [text for each in answers.values() for text in each if text]
        # Answers that are yet to be asked may be as long as they are allowed.
        texts = texts or ["word " * limit] * probes.num_rows
        needs["local"] = [report_size(of.language_model, texts)]
    needs["asked"] = [_asked(model, of, probes, limit) for model in asked_models(of)]
    return needs


def _asked(model: Model, of: Described, probes: pa.Table, limit: int) -> dict[str, Any]:
    """Calls and most USD of a model, if the ledger has no answer of it."""
    from routeyard.pipelines.collect.plan import estimate
    from routeyard.pipelines.collect.request import RequestSettings

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
