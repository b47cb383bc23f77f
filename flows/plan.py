"""What a build would ask and cost: reads sources and the ledger, calls no model."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from routeyard.flows.build import Completing
from routeyard.flows.console import BuildPlan, printer, table
from routeyard.flows.ledgers import ledger_exists, open_ledger
from routeyard.flows.recipe import load, notes_of, scaled, with_collect
from routeyard.flows.stages import walk
from routeyard.flows.workspace import MAKERS, BuildContext, fixtures, read
from routeyard.pipelines.collect.budget import BudgetLedger
from routeyard.pipelines.collect.plan import (
    LEAST_TOKENS,
    TYPICAL_TOKENS,
    budget_share,
    plan,
    total_costs,
)
from routeyard.pipelines.common.errors import few
from routeyard.pipelines.common.files import expanded, names
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.curate.split import apportion
from routeyard.schemas.questions import looked_for_duplicates
from routeyard.schemas.recipe import Model, Parts, Recipe, Source

# A plan from what a recipe states: counts, splits and calls, with no network and no data.
#
# Used where a recipe's sources cannot be read here and now (hub datasets, private
# files) and every one of them states its `limit`. Reading them can only lower
# the counts: a limit is what is taken at most.

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
    calls = sum(row["calls"] for row in models)
    costs = total_costs(models)
    return {
        **dict.fromkeys(("wanted", "missing", "calls"), calls),
        "settled": 0,
        "models": models,
        **costs,
        "estimated_usd": costs["cost_usd"],
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
    sizes: dict[str, Sizes] = {}
    total = sum(counts.values())
    for rule in recipe.curate:
        if rule.rule == "dense_sparse":
            parameters = {**RULES.get(rule.rule).defaults, **rule.parameters}
            sizes |= _dense_sparse(parameters, total, _dense(recipe, counts))
    published = any(rule.rule == "upstream_split" for rule in recipe.curate)
    if (sizes or published) and "split" not in recipe.model_fields_set:
        return sizes  # a published split is known once the questions are read
    sizes[recipe.split.scheme] = _own(recipe, counts)
    return sizes


def _own(recipe: Recipe, counts: Mapping[str, int]) -> Sizes:
    split, total = recipe.split, sum(counts.values())
    if split.sources:
        parts = [(source, counts.get(name, 0)) for name, source in split.sources.items()]
        return {
            "train": sum(_train(item, count) for item, count in parts),
            "validation": sum(item.validation for item, _ in parts),
            "test": sum(item.test for item, _ in parts),
        }
    if (sizes := split.counts) is not None:
        train = _train(sizes, total)
        return {"train": train, "validation": sizes.validation, "test": sizes.test}
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
    limit, agent = recipe.collect.max_tokens, recipe.collect.agent
    length = limit if limit is None or agent else min(limit, TYPICAL_TOKENS)
    source = None if limit is None else "max_tokens" if agent else "typical"
    prompt = ASSUMED_PROMPT_TOKENS + _agent_context(recipe)
    whole = {model.model_id: model for model in recipe.pool.models}
    rows = []
    for member, questions in zip(recipe.pool.models, asked, strict=True):
        # A relay's own calls are those of the model that takes over.
        model = member if member.relay is None else whole[member.relay.then]
        answers = questions * (member.samples or recipe.collect.samples) * _steps(member, recipe)
        # What has to be written into the recipe before this model's cost is known.
        prices = ("price_in", "price_out")
        lacks = [f"the model's '{name}'" for name in prices if getattr(model, name) is None]
        lacks += ["'collect.max_tokens'"] if limit is None else []
        rows.append(
            {
                "model_id": member.model_id,
                "provider": model.provider,
                **dict.fromkeys(("wanted", "missing", "calls"), answers),
                "settled": 0,
                "prompt_tokens": answers * prompt,
                "prompt_tokens_error": None,
                "prompt_tokens_source": "assumed",
                "completion_tokens": None if length is None else length * answers,
                "completion_tokens_source": source,
                "cost_usd": _cost(model, answers, prompt, length),
                "least_cost_usd": None
                if length == limit
                else _cost(model, answers, prompt, LEAST_TOKENS),
                "worst_cost_usd": _cost(model, answers, prompt, limit),
                "price_date": model.price_date,
                "unknown": lacks if answers else [],
            }
        )
    return rows


def _cost(model: Model, answers: int, prompt: int, tokens: int | None) -> float | None:
    if tokens is None or model.price_in is None or model.price_out is None:
        return None
    return answers * (prompt * model.price_in + tokens * model.price_out) / 1e6


def _agent_context(recipe: Recipe) -> int:
    """Tokens that a step reads beside the question, on average: results of earlier steps.

    Four characters a token, passages as long as they may be.
    """
    agent = recipe.collect.agent
    if agent is None:
        return 0
    from routeyard.pipelines.collect.agent import SHOWN

    each = agent.search.results * SHOWN // 4 + (recipe.collect.max_tokens or 0)
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
    if whole.path is None:
        return False
    unset = [name for name in names(whole.path) if name not in os.environ]
    if unset:
        # A fixture's file is made as soon as the plan reads it.
        return all(name in MAKERS.targets for name in unset)
    path = expanded(os.path.expanduser(whole.path))
    return any(c in path for c in "*?[") or (base / path).exists()


def plan_build(
    recipe: str | Path,
    workspace: str | Path = "yard",
    collect: dict[str, Any] | None = None,
    *,
    scale: float | None = None,
    read_sources: bool = False,
) -> BuildPlan:
    """JSON-ready plan: questions, and per model calls, tokens and USD still to spend.

    Unknown figures are null. For recorded responses there is nothing to ask. Where the
    sources cannot be read without the network and all state a `limit`, the plan is what
    the recipe states (`stated`), unless `read_sources` is set.
    """
    checked, base = load(recipe)
    checked = scaled(with_collect(checked, collect or {}), scale)
    root = Path(workspace).absolute()
    if not read_sources and is_stated(checked, base):
        stated = {**_head(checked, root), **stated_plan(checked), "notes": notes_of(checked)}
        return BuildPlan(_with_budget(stated, checked, root))
    with fixtures(checked, root, serve=False):
        context = BuildContext(checked.name, root, base)
        result = walk(checked, context, Completing(context), until="ingest")
        queries, pool = (results[0] for _, results in result)
    table = read(queries, "queries")
    counted = Counter(table.column("source").to_pylist())
    figures: dict[str, Any] = {
        **_head(checked, root),
        "queries": queries.figures["queries"],
        "models_in_pool": pool.figures["models"],
        "stated": False,
        **summary(checked, {source.name: counted[source.name] for source in checked.sources}),
        "removed": queries.figures["removed"],
        "notes": _notes(checked, queries.figures) + power_of(checked, table.num_rows),
    }
    figures["notes"] += _reworded(table, checked, root) + _longest(table)
    if figures["released"]:
        figures["notes"] += _released(str(recipe), checked, root)
    if checked.collect.provider == "recorded":
        nothing = {"calls": 0, "cost_usd": 0.0, "estimated_usd": 0.0, "models": []}
        return BuildPlan({**figures, **nothing})

    if checked.collect.agent is not None:
        figures["notes"].append(
            f"an agent takes up to {checked.collect.agent.steps} calls for an answer: calls and "
            "cost are the most that all can take, and what the ledger holds is not taken off"
        )
        most = most_asked(checked, [table.num_rows] * len(checked.pool.models))
        return BuildPlan(_with_budget({**figures, **most}, checked, root))

    with open_ledger(root) if ledger_exists(root) else nullcontext() as ledger:
        planned = plan(table, checked.pool, checked.collect, ledger, benchmark=checked.name)
    if checked.collect.strategy == "informative":
        figures["notes"].append(
            "'strategy: informative' asks in rounds and stops early: calls and cost are the most "
            "that it can ask"
        )
    asked = planned.figures()
    figures |= {**asked, "estimated_usd": asked["cost_usd"]}
    return BuildPlan(_with_budget(figures, checked, root))


def _with_budget(figures: dict[str, Any], recipe: Recipe, root: Path) -> dict[str, Any]:
    """The plan with what its budget is enough for, less what earlier runs spent or set aside."""
    budget = recipe.collect.budget
    if not budget.is_set or not figures["calls"] or recipe.collect.provider == "recorded":
        return figures
    spent: dict[str, float] = {}
    if ledger_exists(root):
        with open_ledger(root) as ledger:
            spent = BudgetLedger(budget, ledger, recipe.name).spent()
    expected, worst = budget_share(budget, figures["models"], spent)
    used = sum(spent.values())
    figures["budget"] = {
        **budget.model_dump(mode="json"),
        "spent_usd": used, "share_of_calls": expected, "share_of_calls_at_worst": worst,
    }  # fmt: skip
    limits = {"usd": budget.usd, "per_model_usd": budget.per_model_usd}
    limits |= {f"models.{name}": usd for name, usd in budget.models.items()}
    texts = [f"{usd:g} USD ('collect.budget.{n}')" for n, usd in limits.items() if usd is not None]
    said = few(texts, 5) + (f", of which {used:.4f} USD are spent or set aside" if used else "")
    cost = figures["cost_usd"]
    if expected is None:
        why = "whether it is enough is not known without the cost"
    elif expected * figures["calls"] < 1:
        each = figures["worst_cost_usd"] / figures["calls"]
        why = f"too small for a call, which can cost about {each:.4f} USD: nothing will be asked"
    elif expected < 1:
        why = (
            f"too small for about {cost:.4f} USD: the build will stop after about "
            f"{_percent(expected)} of the calls ({expected * figures['calls']:,.0f} of "
            f"{figures['calls']:,}); raise it, or ask less"
        )
    elif worst is not None and worst < 1:
        why = (
            f"enough for about {cost:.4f} USD; were all answers as long as they may be, the build "
            f"would stop after about {_percent(worst)} of the calls"
        )
    else:
        why = "enough whatever the answers"
    figures["notes"] = [
        *figures["notes"],
        f"budget of {said}: {why}",
        "errors that a provider bills without saying so, such as HTTP 429 without usage, are not "
        "in the budget: compare with its own bill",
    ]
    return figures


def _percent(share: float) -> str:
    return "less than 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def power_of(recipe: Recipe, questions: int) -> list[str]:
    """Which difference between routers the test questions can show, and what smaller ones need."""
    from routeyard.pipelines.evaluate.certificate import difference_shown, questions_needed

    if not (test := _own(recipe, {"": questions})["test"]):
        return []
    needs = ", ".join(f"{points} points {questions_needed(points / 100):,}" for points in (5, 2, 1))
    return [
        f"{test:,} test questions can tell routers apart that differ by "
        f"{100 * difference_shown(test):.1f} points or more (80 % power, when one of two is right "
        f"on 20 % of the questions alone); test questions that smaller differences need: {needs}"
    ]


def _head(recipe: Recipe, root: Path) -> dict[str, Any]:
    return {
        "benchmark": recipe.name,
        "version": recipe.version,
        "provider": recipe.collect.provider,
        "models_in_pool": len(recipe.pool.models),
        "simulated": sum(bool(model.simulated) for model in recipe.pool.models),
        "released": (root / "releases" / recipe.name / recipe.version).is_dir(),
    }


def _notes(recipe: Recipe, ingested: Mapping[str, Any]) -> list[str]:
    """What will be lost or not looked for, as far as it can be known before anything is asked."""
    notes = list(ingested.get("notes") or [])
    if removed := ingested["removed"]:
        notes.append(
            f"{removed:,} questions of the sources are left out; the table `removals` will say why"
        )
    if not looked_for_duplicates(recipe.model_dump(mode="json")):
        notes.append("near-duplicates will not be looked for (no rule 'dedup' under 'curate')")
    notes += notes_of(recipe)
    notes += [f"waived: {waiver.gate}: {waiver.reason}" for waiver in recipe.release.waivers]
    return notes


#: Characters, and share of all prompts, from which on a single prompt is named.
_LONG, _MUCH = 20_000, 0.2


def _longest(queries: Any) -> list[str]:
    """Questions of which one prompt is a large part of all, and so of what asking costs."""
    import pyarrow.compute as pc

    sizes = pc.utf8_length(queries.column("prompt")).to_numpy()
    total = int(sizes.sum())
    named = queries.select(["query_id", "source", "source_id"])
    return [
        f"{row['query_id']} (source {row['source']!r}, id {row['source_id']!r}) has a prompt of "
        f"{sizes[at]:,} characters, {sizes[at] / total:.0%} of those of all {len(sizes):,} "
        "questions: asking costs as much more; `where` of the source can leave it out"
        for at in sizes.argsort(kind="stable")[::-1][:3].tolist()
        if sizes[at] >= max(_LONG, _MUCH * total)
        for row in named.slice(at, 1).to_pylist()
    ]


def _reworded(queries: Any, checked: Recipe, root: Path) -> list[str]:
    """Sources whose prompts differ from those of the last build: their questions are asked anew."""
    from routeyard.flows.label_audits import built
    from routeyard.pipelines.label.rules import rescored, reworded
    from routeyard.schemas.errors import RouteyardError

    try:
        stored = built(checked.name, root)["queries"]
    except RouteyardError:
        return []  # never built up to its labels
    changed = reworded(queries, stored)
    by_id = dict(zip(*(queries.column(n).to_pylist() for n in ("source", "scorer")), strict=True))
    scorers = {item.source: item for item in rescored(stored, by_id)[1]}
    notes = []
    for source, count in changed.items():
        why, wording = "their prompts changed", "instruction:"
        if (scorer := scorers.get(source)) is not None:
            wording = scorer.instruction
            why = (
                f"the scorer changed from {scorer.before!r} to {scorer.after!r}, and with it the "
                "instruction in the prompt"
            )
        notes.append(
            f"source {source!r}: {count:,} questions are other questions than in the last build, "
            f"since {why}; `{wording}` of the source keeps the old wording, and then nothing "
            "is asked again"
        )
    return notes


def _released(recipe: str, checked: Recipe, root: Path) -> list[str]:
    """Whether a build would collide with the version that is there."""
    from routeyard.flows.build import status

    version = f"{checked.name} {checked.version}"
    stale = [row for row in status(recipe, str(root)) if row["state"] == "stale"]
    if not stale:
        return [f"{version} is released already, and nothing it is made of has changed"]
    what = "; ".join(f"{row['stage']}: {_few(row['why'])}" for row in stale)
    return [
        f"{version} is released already and is never overwritten, and this build may give another "
        f"({what}): set a new 'version' in the recipe"
    ]


def _few(why: str) -> str:
    """The first three of many reasons; `routeyard status` lists all."""
    reasons = why.split("; ")
    more = len(reasons) - 3
    return why if more <= 0 else f"{'; '.join(reasons[:3])} and {more} more"


def show(figures: dict[str, Any]) -> None:
    """Print a plan for a person."""
    from rich.box import SIMPLE

    console = printer()
    console.print(
        f"{figures['benchmark']} {figures['version']}: {figures['queries']:,} questions x "
        f"{figures['models_in_pool']} models"
    )
    _show_sizes(console, figures)
    for note in figures.get("notes", []):
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    if figures["provider"] == "recorded":
        console.print(
            "responses are recorded: nothing will be asked; `routeyard recipe check` says what the "
            "recording leaves open",
            soft_wrap=True,
        )
        return
    # Without lines between the columns it fits into 80 columns.
    headings = ("model", "wanted", "there", "calls", "tokens in", "tokens out", "USD")
    console.print(table(headings, map(_cells, figures["models"]), box=SIMPLE))
    if given_up := sum(row.get("unanswered", 0) for row in figures["models"]):
        console.print(f"{given_up:,} pairs are unanswered: billed too often, and not asked again")
    cost, worst = figures["cost_usd"], figures["worst_cost_usd"]
    least = figures.get("least_cost_usd")
    about = "unknown" if cost is None else f"about {cost:.4f} USD"
    if cost is not None and least is not None and worst is not None:
        about += f" ({least:.4f} to {worst:.4f})"
    console.print(
        f"{figures['calls']:,} calls, cost {about}"
        + ("" if worst is None else f", at most {worst:.4f} USD")
    )
    if least is not None:
        console.print(
            f"answers of models that were never metered are taken as {TYPICAL_TOKENS} tokens; the "
            f"range is from {LEAST_TOKENS} tokens each to `max_tokens`, and thinking counts",
            soft_wrap=True,
        )
    if figures["simulated"] and figures["calls"]:
        made_up = "the dollars are made up" if figures["simulated"] == len(figures["models"]) else (
            f"the dollars of {figures['simulated']} of {len(figures['models'])} models are made up"
        )  # fmt: skip
        console.print(f"the pool is SIMULATED: {made_up}, and nothing is paid for them")
    _show_lacking(console, figures)


def _cells(row: Mapping[str, Any]) -> list[str]:
    """What the table of a plan shows of a model."""
    error = row["prompt_tokens_error"] if row["calls"] else None
    return [
        row["model_id"],
        *(f"{row[name]:,}" for name in ("wanted", "settled", "calls")),
        _known(row["prompt_tokens"]) + (f" ±{100 * error:.0f} %" if error else ""),
        _known(row["completion_tokens"]),
        "unknown" if row["cost_usd"] is None else f"{row['cost_usd']:.4f}",
    ]


def _show_lacking(console: Any, figures: dict[str, Any]) -> None:
    """What the recipe has to say before the cost is known, and where prices come from."""
    of = "cost" if figures["cost_usd"] is None else "most it can cost"
    lacking: dict[str, list[str]] = {}
    for row in figures["models"]:
        for what in row.get("unknown", []):
            lacking.setdefault(what, []).append(row["model_id"])
    for what, models in lacking.items():
        console.print(f"the {of} is not known without {what} ({few(models, 5)})", soft_wrap=True)
    if any("price" in what for what in lacking):
        console.print(
            "next: state price_in, price_out and price_date (USD per million tokens) of each model "
            "in the recipe, or in a file that `pool.prices` names; `routeyard cost prices RECIPE "
            "--out prices.yaml` writes that file for providers with a `price_list`",
            soft_wrap=True,
        )


def _show_sizes(console: Any, figures: dict[str, Any]) -> None:
    if figures["stated"]:
        console.print(
            "as the recipe states it; nothing was read (`--read` reads the sources). "
            f"Prompts are taken as {figures['assumed_prompt_tokens']} tokens."
        )
    if len(figures["queries_per_source"]) > 1:
        counts = figures["queries_per_source"].items()
        rows = ((name, f"{count:,}") for name, count in counts)
        console.print(table(("source", "questions"), rows))
    for scheme, sizes in figures["schemes"].items():
        parts = ", ".join(f"{count:,} {name}" for name, count in sizes.items())
        console.print(f"split {scheme!r}, before curation: {parts}")


def _known(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"
