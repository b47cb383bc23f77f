"""A plan from what a recipe states: counts, splits and calls, with no network and no data.

Used where a recipe's sources cannot be read here and now (hub datasets, private
files) and every one of them states its `limit`. Reading them can only lower
the counts: a limit is what is taken at most.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.flows.workspace.fixtures import MAKERS
from routeyard.pipelines.collect.estimate import LEAST_TOKENS, TYPICAL_TOKENS
from routeyard.pipelines.collect.plan import least_of
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.curate.split_counts import apportion
from routeyard.pipelines.io.environment import expanded
from routeyard.schemas.recipe import Model, Parts, Recipe, Source

#: Tokens a prompt is taken to have where no question can be read.
ASSUMED_PROMPT_TOKENS = 400

Sizes = dict[str, int]


def is_stated(recipe: Recipe, base: Path) -> bool:
    """True when some source cannot be read here without the network, and all state a limit."""
    unread = [source for source in recipe.sources if not _at_hand(source, base)]
    return bool(unread) and all(source.limit is not None for source in recipe.sources)


def stated_plan(recipe: Recipe) -> dict[str, Any]:
    """JSON-ready plan of a recipe whose sources all state a limit; the cost as `most_asked`."""
    counts = {source.name: int(source.limit or 0) for source in recipe.sources}
    return {
        "queries": sum(counts.values()),
        "stated": True,
        "assumed_prompt_tokens": ASSUMED_PROMPT_TOKENS,
        **summary(recipe, counts),
        **most_asked(recipe, _asked(recipe, counts)),
    }


def most_asked(recipe: Recipe, asked: Sequence[int]) -> dict[str, Any]:
    """Calls and cost where each model is asked so many questions and the ledger holds nothing.

    The cost is null when a price or the longest answer of a model is unknown; else every answer is
    taken as `TYPICAL_TOKENS` long, or `max_tokens` where that is less, every prompt as
    `ASSUMED_PROMPT_TOKENS`. `worst_cost_usd` takes all answers as `max_tokens` long. For
    agents it is the most that all steps can take: which follow is not known before.
    """
    models = _models(recipe, asked)
    calls, costs = sum(row["calls"] for row in models), [row["cost_usd"] for row in models]
    cost = None if None in costs else sum(costs)
    worst = [row["worst_cost_usd"] for row in models]
    return {
        "wanted": calls,
        "settled": 0,
        "missing": calls,
        "calls": calls,
        "models": models,
        "cost_usd": cost,
        "least_cost_usd": least_of(models),
        "worst_cost_usd": None if None in worst else sum(worst),
        "estimated_usd": cost,
    }


def summary(recipe: Recipe, counts: Mapping[str, int]) -> dict[str, Any]:
    """`queries_per_source`, `splits` of the recipe's own scheme, and `schemes` of all.

    Rules that remove questions are not run: sizes are before curation.
    """
    schemes = split_sizes(recipe, counts)
    own = recipe.split.scheme if recipe.split.scheme in schemes else next(reversed(schemes), None)
    if "split" not in recipe.model_fields_set and schemes:
        own = next(reversed(schemes))
    return {
        "queries_per_source": dict(counts),
        "splits": schemes.get(own, {}) if own else {},
        "schemes": schemes,
    }


def split_sizes(recipe: Recipe, counts: Mapping[str, int]) -> dict[str, Sizes]:
    """Scheme → questions in train, validation and test, before any rule removes some."""
    found: dict[str, Sizes] = {}
    total = sum(counts.values())
    for rule in recipe.curate:
        if rule.rule == "dense_sparse":
            parameters = {**RULES.get(rule.rule).defaults, **rule.parameters}
            found |= _dense_sparse(parameters, total, _dense(recipe, counts))
    published = any(rule.rule == "upstream_split" for rule in recipe.curate)
    if (found or published) and "split" not in recipe.model_fields_set:
        return found  # a published split is known once the questions are read
    found[recipe.split.scheme] = _own(recipe, counts)
    return found


def _own(recipe: Recipe, counts: Mapping[str, int]) -> Sizes:
    split, total = recipe.split, sum(counts.values())
    if split.sources:
        parts = [(one, counts.get(name, 0)) for name, one in split.sources.items()]
        return {
            "train": sum(_train(one, count) for one, count in parts),
            "validation": sum(one.validation for one, _ in parts),
            "test": sum(one.test for one, _ in parts),
        }
    if (given := split.counts) is not None:
        train = _train(given, total)
        return {"train": train, "validation": given.validation, "test": given.test}
    # A share of the questions, to one question per task: where it falls is seeded.
    test, validation = round(split.test * total), round(split.validation * total)
    return {"train": total - test - validation, "validation": validation, "test": test}


def _train(parts: Parts, questions: int) -> int:
    return min(parts.train, max(0, questions - parts.validation - parts.test))


def _dense_sparse(parameters: Mapping[str, Any], total: int, dense: int) -> dict[str, Sizes]:
    validation, test, share = (
        int(parameters["validation"]),
        int(parameters["test"]),
        parameters["slice_share"],
    )
    inside = dense if share is None else round(float(share) * total)
    outside = total - (validation + test) if share is None else total - inside
    return {
        "dense": {"train": inside - validation - test, "validation": validation, "test": test},
        "sparse": {"train": outside, "validation": validation, "test": test},
    }


def _dense(recipe: Recipe, counts: Mapping[str, int]) -> int:
    return sum(min(source.dense or 0, counts.get(source.name, 0)) for source in recipe.sources)


def _asked(recipe: Recipe, counts: Mapping[str, int]) -> list[int]:
    """Questions that each model is asked, in pool order; as even as `covered` makes it."""
    total, n = sum(counts.values()), len(recipe.pool.models)
    draws = max(1, round(recipe.collect.coverage.share * n))
    if draws >= n:
        return [total] * n
    dense = _dense(recipe, counts)
    spread = apportion({str(k): total for k in range(n)}, (total - dense) * draws)
    return [dense + spread[str(k)] for k in range(n)]


def _models(recipe: Recipe, asked: Sequence[int]) -> list[dict[str, Any]]:
    if recipe.collect.provider == "recorded":
        return []
    limit = recipe.collect.max_tokens
    prompt = ASSUMED_PROMPT_TOKENS + _agent_context(recipe)
    whole = {model.model_id: model for model in recipe.pool.models}
    rows = []
    for member, questions in zip(recipe.pool.models, asked, strict=True):
        # A relay's own calls are those of the model that takes over.
        model = member if member.relay is None else whole[member.relay.then]
        answers = questions * (member.samples or recipe.collect.samples) * _steps(member, recipe)
        length = limit
        if limit is not None and recipe.collect.agent is None:
            length = min(limit, TYPICAL_TOKENS)

        def cost(tokens: int | None, model: Model = model, answers: int = answers) -> float | None:
            if tokens is None or model.price_in is None or model.price_out is None:
                return None
            return answers * (prompt * model.price_in + tokens * model.price_out) / 1e6

        rows.append(
            {
                "model_id": member.model_id,
                "provider": model.provider,
                "wanted": answers,
                "settled": 0,
                "missing": answers,
                "calls": answers,
                "prompt_tokens": answers * prompt,
                "prompt_tokens_error": None,
                "prompt_tokens_source": "assumed",
                "completion_tokens": None if length is None else length * answers,
                "completion_tokens_source": _length_source(recipe),
                "cost_usd": cost(length),
                "least_cost_usd": None if length == limit else cost(LEAST_TOKENS),
                "worst_cost_usd": cost(limit),
                "price_date": model.price_date,
                "unknown": _unknown(model, limit) if answers else [],
            }
        )
    return rows


def _length_source(recipe: Recipe) -> str | None:
    if recipe.collect.max_tokens is None:
        return None
    return "typical" if recipe.collect.agent is None else "max_tokens"


def _unknown(model: Model, limit: int | None) -> list[str]:
    """What has to be written into the recipe before this model's cost is known."""
    found = [f"the model's '{n}'" for n in ("price_in", "price_out") if getattr(model, n) is None]
    return found + (["'collect.max_tokens'"] if limit is None else [])


def _agent_context(recipe: Recipe) -> int:
    """Tokens that a step reads beside the question, on average: results of earlier steps.

    Four characters a token, passages as long as they may be.
    """
    agent = recipe.collect.agent
    if agent is None:
        return 0
    each = agent.search.results * agent.search.longest // 4 + (recipe.collect.max_tokens or 0)
    return each * (agent.steps - 1) // 2


def _steps(model: Model, recipe: Recipe) -> int:
    """Calls that one answer of a model takes at most; what a relay shares is another's."""
    if recipe.collect.agent is None:
        return 1
    shared = 0 if model.relay is None else model.relay.steps
    return max(0, recipe.collect.agent.steps - shared)


def _at_hand(source: Source, base: Path) -> bool:
    from routeyard.pipelines.ingest.catalog import from_catalog

    whole = from_catalog(source)
    if whole.kind == "hub" or whole.path is None:
        return False
    names = re.findall(r"\$\{?(\w+)\}?", whole.path)
    unset = [name for name in names if name not in os.environ]
    if unset:
        # A fixture's file is made as soon as the plan reads it.
        return all(name in MAKERS.targets for name in unset)
    path = expanded(os.path.expanduser(whole.path))
    return any(c in path for c in "*?[") or (base / path).exists()
