"""A plan from what a recipe states: counts, splits and calls, with no network and no data.

Used where a recipe's sources cannot be read here and now (hub datasets, files of
one's own) and every one of them states its `limit`. Reading them can only lower
the counts: a limit is what is taken at most.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flows.workspace.fixtures import MAKERS
from pipelines.curate import RULES
from pipelines.curate.split_counts import apportion
from pipelines.io.environment import expanded
from schemas.recipe import Model, Recipe, Source

#: Tokens a prompt is taken to have where no question can be read.
ASSUMED_PROMPT_TOKENS = 400

Sizes = dict[str, int]


def is_stated(recipe: Recipe, base: Path) -> bool:
    """True when some source cannot be read here without the network, and all state a limit."""
    unread = [source for source in recipe.sources if not _at_hand(source, base)]
    return bool(unread) and all(source.limit is not None for source in recipe.sources)


def stated_plan(recipe: Recipe) -> dict[str, Any]:
    """JSON-ready plan of a recipe whose sources all state a limit.

    `estimated_usd` is null when a price or the longest answer of a model is
    unknown; else an upper estimate: every answer as long as `max_tokens`, every
    prompt `ASSUMED_PROMPT_TOKENS` long.
    """
    counts = {source.name: int(source.limit or 0) for source in recipe.sources}
    queries = sum(counts.values())
    models = _models(recipe, _asked(recipe))
    calls = sum(model["calls"] for model in models)
    costs = [model["cost_usd"] for model in models]
    return {
        "queries": queries,
        "wanted": calls,
        "settled": 0,
        "missing": calls,
        "calls": calls,
        "models": models,
        "cost_usd": None if None in costs else sum(costs),
        "worst_cost_usd": None,
        "stated": True,
        "assumed_prompt_tokens": ASSUMED_PROMPT_TOKENS,
        **summary(recipe, counts),
        "estimated_usd": None if None in costs else sum(costs),
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
            said = {**RULES.get(rule.rule).defaults, **rule.parameters}
            found |= _dense_sparse(said, total, _dense(recipe, counts))
    if found and "split" not in recipe.model_fields_set:
        return found
    found[recipe.split.scheme] = _own(recipe, counts)
    return found


def _own(recipe: Recipe, counts: Mapping[str, int]) -> Sizes:
    split, total = recipe.split, sum(counts.values())
    if split.sources:
        parts = {
            name: (one, min(counts.get(name, 0), one.train + one.validation + one.test))
            for name, one in split.sources.items()
        }
        held = {name: one.validation + one.test for name, (one, _) in parts.items()}
        return {
            "train": sum(
                min(one.train, max(0, counts.get(name, 0) - held[name]))
                for name, (one, _) in parts.items()
            ),
            "validation": sum(one.validation for one in split.sources.values()),
            "test": sum(one.test for one in split.sources.values()),
        }
    if split.counts is not None:
        given = split.counts
        room = max(0, total - given.validation - given.test)
        return {
            "train": min(given.train, room),
            "validation": given.validation,
            "test": given.test,
        }
    # A share of the questions, to one question per task: where it falls is seeded.
    test, validation = round(split.test * total), round(split.validation * total)
    return {"train": total - test - validation, "validation": validation, "test": test}


def _dense_sparse(said: Mapping[str, Any], total: int, dense: int) -> dict[str, Sizes]:
    validation, test, share = int(said["validation"]), int(said["test"]), said["slice_share"]
    inside = dense if share is None else round(float(share) * total)
    outside = total - (validation + test) if share is None else total - inside
    return {
        "dense": {"train": inside - validation - test, "validation": validation, "test": test},
        "sparse": {"train": outside, "validation": validation, "test": test},
    }


def _dense(recipe: Recipe, counts: Mapping[str, int]) -> int:
    return sum(min(source.dense or 0, counts.get(source.name, 0)) for source in recipe.sources)


def _asked(recipe: Recipe) -> list[int]:
    """Questions that each model is asked, in pool order; as even as `covered` makes it."""
    total = sum(source.limit or 0 for source in recipe.sources)
    n = len(recipe.pool.models)
    draws = max(1, round(recipe.collect.coverage.share * n))
    if draws >= n:
        return [total] * n
    dense = _dense(recipe, {source.name: source.limit or 0 for source in recipe.sources})
    spread = apportion({str(k): total for k in range(n)}, (total - dense) * draws)
    return [dense + spread[str(k)] for k in range(n)]


def _models(recipe: Recipe, asked: list[int]) -> list[dict[str, Any]]:
    if recipe.collect.provider == "recorded":
        return []
    limit = recipe.collect.max_tokens
    prompt = ASSUMED_PROMPT_TOKENS + _read_of_an_agent(recipe)
    whole = {model.model_id: model for model in recipe.pool.models}
    rows = []
    for member, questions in zip(recipe.pool.models, asked, strict=True):
        # A relay's own calls are those of the model that takes over.
        model = member if member.relay is None else whole[member.relay.then]
        answers = questions * (member.samples or recipe.collect.samples) * steps_of(member, recipe)
        known = None not in (model.price_in, model.price_out, limit)
        each = (prompt * (model.price_in or 0) + (limit or 0) * (model.price_out or 0)) / 1e6
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
                "completion_tokens": None if limit is None else limit * answers,
                "completion_tokens_source": None if limit is None else "max_tokens",
                "cost_usd": answers * each if known else None,
                "worst_cost_usd": None,
                "price_date": model.price_date,
                "unknown": _unknown(model, limit) if answers else [],
            }
        )
    return rows


def _unknown(model: Model, limit: int | None) -> list[str]:
    """What has to be written into the recipe before this model's cost can be told."""
    found = [f"the model's '{n}'" for n in ("price_in", "price_out") if getattr(model, n) is None]
    return found + (["'collect.max_tokens'"] if limit is None else [])


def agent_plan(recipe: Recipe, questions: int) -> dict[str, Any]:
    """The most that agents can ask of so many questions, and what that costs.

    What the ledger holds already is not taken off: which steps follow is not known before.
    """
    models = _models(recipe, [questions] * len(recipe.pool.models))
    calls, costs = sum(row["calls"] for row in models), [row["cost_usd"] for row in models]
    cost = None if None in costs else sum(costs)
    return {
        "wanted": calls, "settled": 0, "missing": calls, "calls": calls, "models": models,
        "cost_usd": cost, "worst_cost_usd": None,
    }  # fmt: skip


def _read_of_an_agent(recipe: Recipe) -> int:
    """Tokens that a step reads beside the question, on average: what earlier steps found and said.

    Four characters a token, passages as long as they may be.
    """
    agent = recipe.collect.agent
    if agent is None:
        return 0
    each = agent.search.results * agent.search.longest // 4 + (recipe.collect.max_tokens or 0)
    return each * (agent.steps - 1) // 2


def steps_of(model: Model, recipe: Recipe) -> int:
    """Calls that one answer of a model takes at most; what a relay shares is another's."""
    if recipe.collect.agent is None:
        return 1
    shared = 0 if model.relay is None else model.relay.steps
    return max(0, recipe.collect.agent.steps - shared)


def _at_hand(source: Source, base: Path) -> bool:
    from pipelines.ingest.catalog import from_catalog

    whole = from_catalog(source)
    if whole.kind == "hub" or whole.path is None:
        return False
    names = re.findall(r"\$\{?(\w+)\}?", whole.path)
    unset = [name for name in names if name not in os.environ]
    if unset:
        # What a maker stands behind is there as soon as the plan reads it.
        return all(name in MAKERS.targets for name in unset)
    path = expanded(os.path.expanduser(whole.path))
    return any(c in path for c in "*?[") or (base / path).exists()
