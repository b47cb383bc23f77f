"""The collect stage of models behind an API: ask what the ledger lacks."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from routeyard.flows import console
from routeyard.flows.console import collecting
from routeyard.flows.ledgers import (
    at_server,
    collector_slot,
    collectors,
    open_ledger,
    provider_slots,
    share,
    sharers,
)
from routeyard.flows.tracking import AFTER_CALLS, Deferred, each, log
from routeyard.flows.workspace import (
    BuildContext,
    PendingAnswers,
    StageResult,
    StageWork,
    content,
    read,
    slug,
    write_table,
)
from routeyard.pipelines.common import files
from routeyard.pipelines.common.arrays import Array, dense_rows
from routeyard.pipelines.common.errors import (
    BudgetReached,
    GateFailed,
    ProviderError,
    RecordedError,
)
from routeyard.schemas.images import IMAGES
from routeyard.schemas.recipe import Collect, Pool
from routeyard.schemas.recipe.collect import UNANSWERED_AFTER
from routeyard.schemas.recipe.pool import Provider

if TYPE_CHECKING:
    from routeyard.pipelines.collect.informative import RankedModels

# What the three ways of collecting have in common: one file per model, and when a build stops.

#: Entries of a list that an error shows.
_LISTED = 3
#: Kinds of refusals → what mends them.
_MENDS = {
    "http_401 http_403 http_407": "correct the key in {key}, or its rights",
    "http_402 insufficient_quota": "pay into the account",
    "http_404 http_410": "correct 'base_url' ({address}), 'model_id' or 'endpoint_model'",
    "http_405 redirect": "correct 'base_url' ({address})",
    "*": "correct what the message names",
}


def asked_about(context: BuildContext, queries: StageResult) -> dict[str, Any]:
    """Arguments of a plan beside questions, pool and settings: the benchmark, and its images."""
    return {"benchmark": context.benchmark, "images": Path(queries.folder) / IMAGES}


def write_by_model(responses: Any, folder: Path) -> None:
    """`responses/<model>.parquet`, so that later stages work model by model."""
    for model_id in sorted(pc.unique(responses.column("model_id")).to_pylist()):
        part = responses.filter(pc.equal(responses.column("model_id"), model_id))
        write_table(part, folder / "responses" / f"{slug(model_id)}.parquet")


def answers_fingerprint(responses: Any) -> str:
    """What was answered, whenever it was: measured times do not enter."""
    from routeyard.pipelines.release.manifest import content
    from routeyard.schemas.release import MEASURED_COLUMNS

    return content(responses, without=MEASURED_COLUMNS)


def check_complete(
    context: BuildContext,
    missing: Mapping[str, int],
    why: Iterable[str],
    *,
    what: str = "answers are still missing ({models})",
    out_of_budget: bool,
    refused: Mapping[str, str],
    pool: Pool,
    collect: Collect,
    wanted: int,
) -> None:
    """Stop when answers are missing: a label matrix has no holes that nobody asked for.

    Args:
        missing: Model → answers that asking again may bring.
        why: Why nothing more was asked.
        refused: Model → what came back where a key, an address or the model was refused.
        wanted: Answers wanted of all models.

    Raises:
        BudgetReached, ProviderError: name the models and how to go on.
        GateFailed: keys, addresses or models were refused, for more than the recipe allows.
    """
    if refused:
        from routeyard.pipelines.collect.plan import provider_of

        served = {m.model_id: provider_of(m, pool) for m in pool.models if m.model_id in refused}
        check_refused(context, refused, missing, served, collect, wanted, "answers")
        missing = {model: count for model, count in missing.items() if model not in refused}
    if not missing:
        return
    models = ", ".join(f"{model} {n:,}" for model, n in sorted(missing.items()))
    raise (BudgetReached if out_of_budget else ProviderError)(
        f"{sum(missing.values()):,} {what.format(models=models)}: "
        f"{'; '.join(dict.fromkeys(why)) or 'calls failed'}",
        where=f"benchmark {context.benchmark}; what arrived is in the ledger",
        next_step="remove the cause and run the same command again: only what is missing is "
        f"asked (--workspace {context.root})",
    )


def check_refused(
    context: BuildContext,
    refused: Mapping[str, str],
    missing: Mapping[str, int],
    served: Mapping[str, Provider],
    collect: Collect,
    wanted: int,
    what: str,
) -> None:
    """Stop where keys, addresses or models were refused: nothing of it is settled.

    Args:
        refused: Model → what came back.
        missing: Model → answers that are missing.
        served: Model → who serves it.
        collect: Its `unanswered.refused_share` is the share of `wanted` that may be missing.

    Raises:
        GateFailed: more is missing than the recipe allows.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for model, words in sorted(refused.items()):
        alike.setdefault((served[model].name, words), []).append(model)
    lines = []
    for (provider, words), models in sorted(alike.items()):
        count = sum(missing[model] for model in models)
        named = ", ".join(models[:3]) + (f" and {len(models) - 3} more" if models[3:] else "")
        mend = _mends(words, served[models[0]])
        lines.append(f"{provider}/{named}: {count:,}, {words.rstrip('.')}; {mend}")
    total, share = sum(missing[model] for model in refused), collect.unanswered.refused_share
    least = -(-total * 100 // wanted) / 100
    text = f"{total:,} of {wanted:,} {what} are missing by a fault of set-up"
    allowed = total <= share * wanted
    for line in lines if allowed or len(lines) > _LISTED else []:
        console.line("refused", line)
    log(context.benchmark, "collect", "; ".join([text, *lines]))
    if allowed:
        console.line("note", f"{text}, which 'collect.unanswered.refused_share' allows")
        return
    without = f"; or release without: 'unanswered: {{refused_share: {least:g}}}'"
    without = without if least < 1 else ""
    more = [f"and {len(lines) - _LISTED + 1} more, listed above"] if len(lines) > _LISTED else []
    shown = lines[: _LISTED - 1] if more else lines
    raise GateFailed(
        "\n  ".join([text, *shown, *more]),
        where=f"benchmark {context.benchmark}; what arrived is in the ledger",
        next_step=f"mend it and run the same command again: only what is missing is asked{without}",
    )


def _mends(words: str, provider: Provider) -> str:
    """What a person does about a refusal."""
    kind = words.partition(":")[0]
    mend = next((mend for kinds, mend in _MENDS.items() if kind in kinds.split()), _MENDS["*"])
    key = provider.api_key_env or "the variable that 'api_key_env' has to name"
    return mend.format(key=key, address=provider.base_url)


def check_answered(context: BuildContext, collect: Collect, responses: Any) -> None:
    """Report pairs that were given up, and stop where the recipe releases none of them.

    Raises:
        GateFailed: there are such pairs, and `collect.unanswered.release` is `stop`.
    """
    gone = responses.filter(pc.equal(responses.column("status"), "unanswered"))
    if not gone.num_rows:
        return
    counts = Counter(gone.column("model_id").to_pylist())
    models = ", ".join(f"{model} {count:,}" for model, count in sorted(counts.items()))
    policy = collect.unanswered
    often = f"{gone.num_rows:,} pairs were billed {UNANSWERED_AFTER} times"
    gave_up = f"{often} and never answered ({models})"
    if policy.release == "go_on":
        log(
            context.benchmark,
            "collect",
            f"{gave_up}: unanswered, counted neither as right nor as wrong",
        )
        return
    raise GateFailed(
        gave_up,
        where=f"benchmark {context.benchmark}, collect.unanswered.release: stop",
        next_step="give --reask unanswered to ask them again, write 'release: go_on' to "
        f"release without them, or take the queries out (--workspace {context.root})",
    )


# Recorded answers → responses, one file per model.


def import_answers(
    context: BuildContext,
    *,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    models: StageResult,
) -> StageWork:
    """Recorded files → responses."""
    from routeyard.pipelines.collect.recorded import import_recorded

    inputs = {"queries": queries.fingerprint, "pool": models.fingerprint}
    for number, entry in enumerate(collect.recorded):
        result = files.expand(entry.path, base=context.base, where="collect.recorded")
        inputs[f"recorded.{number}"] = content(result)

    def make(folder: Path) -> Mapping[str, Any]:
        questions, arms = read(queries, "queries"), read(models, "models")
        imported = import_recorded(questions, arms, collect.recorded, base=context.base)
        if not imported.responses.num_rows:
            raise RecordedError(
                "no recorded row that the recipe asks for has a text or a score: there is nothing "
                "to grade",
                where=", ".join(item["file"] for item in imported.provenance),
                next_step="record the answers or their outcomes; what the calls of an import cost "
                "needs none: routeyard replay FOLDER --pool prices.yaml",
            )
        write_by_model(imported.responses, folder)
        return {
            "responses": imported.responses.num_rows,
            "recorded": imported.provenance,
            "notes": imported.notes,
        }

    return StageWork(collect.model_dump(mode="json"), inputs, make)


# The collect stage of an agent: trajectories step by step, into `responses` and `steps`.


def walk_trajectories(
    context: BuildContext,
    *,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    models: StageResult,
) -> StageWork | PendingAnswers:
    """Every trajectory to its end; what arrived is in the ledger when a run stops before.

    Raises:
        BudgetReached, ProviderError: steps are missing.
    """
    from routeyard.pipelines.collect.agent import AgentRun, corpus_of, tables_of, walk

    agent = collect.agent
    assert agent is not None
    table = read(queries, "queries")
    corpus = corpus_of(table, agent.search, base=context.base)

    def walked(pool: Pool, show: Any = None, *, send: bool) -> AgentRun:
        how = {"benchmark": context.benchmark, "send": send, "on_progress": show}
        with open_ledger(context.root) as ledger:
            return walk(table, pool, collect, ledger, corpus, **how)

    def work(done: AgentRun) -> StageWork:
        tables = tables_of(done.trajectories, pool)
        responses, steps = tables["responses"], tables["steps"]
        check_answered(context, collect, responses)

        def make(folder: Path) -> Mapping[str, Any]:
            write_by_model(responses, folder)
            write_table(steps, folder / "steps.parquet")
            return {
                "responses": responses.num_rows,
                "steps": steps.num_rows,
                "passages": len(corpus.passages),
            }

        inputs = {
            "queries": queries.fingerprint,
            "pool": models.fingerprint,
            "answers": answers_fingerprint(responses),
            "steps": answers_fingerprint(steps),
        }
        if (file := agent.search.file) is not None:
            result = files.expand(file, base=context.base, where="collect.agent.search.file")
            inputs["corpus"] = ",".join(files.sha256(item) for item in result)
        return StageWork(collect.model_dump(mode="json"), inputs, make)

    def ask() -> StageWork:

        ours, tell = at_server(pool), partial(log, context.benchmark, "collect")
        made_up = [model.model_id for model in pool.models if model.simulated]
        with provider_slots(ours), collecting(also=tell, simulated=made_up) as show:
            done = walked(ours, show, send=True)
        what = "steps are still missing ({models}), and those that follow them"
        gate: dict[str, Any] = {"pool": pool, "collect": collect, "wanted": len(done.trajectories)}
        gate |= {"out_of_budget": done.out_of_budget, "refused": done.refused}
        check_complete(context, done.missing, done.stopped, what=what, **gate)
        return work(done)

    stored = walked(pool, send=False)
    return PendingAnswers(sum(stored.missing.values()), ask) if stored.missing else work(stored)


def kept_steps(steps: Any, responses: Any) -> Any:
    """Steps of the answers that curation kept, in their order."""
    import pyarrow as pa

    keys = ["query_id", "model_id", "sample"]
    answer_keys = set(zip(*(responses.column(name).to_pylist() for name in keys), strict=True))
    named = zip(*(steps.column(name).to_pylist() for name in keys), strict=True)
    return steps.filter(pa.array([key in answer_keys for key in named], pa.bool_()))


# Collection in rounds (`collect.strategy: informative`): ask, label, choose what to ask next.


def ask_in_rounds(
    context: BuildContext,
    *,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    complete: Callable[[list[list[int]]], tuple[StageResult, StageResult]],
) -> StageResult:
    """Responses to what the rounds asked; the figures hold estimates beside plain means.

    What a round asked is in the ledger, so that a run that was stopped replays its rounds
    without a call and goes on.

    Args:
        complete: Rows of the questions per model → results of collect and label for them.
    """
    from routeyard.pipelines.collect.informative import collect_informatively
    from routeyard.pipelines.common.matrix import scatter

    table = read(queries, "queries")
    ids = table.column("query_id").to_pylist()
    models = [model.model_id for model in pool.models]
    _, tasks = np.unique(table.column("task").to_pylist(), return_inverse=True)
    responses: StageResult | None = None

    def answer(asked: Array) -> Array:
        nonlocal responses
        rows = [np.flatnonzero(asked[:, m]).tolist() for m in range(len(models))]
        responses, labels = complete(rows)
        if not responses.reused:
            text = f"{int(asked.sum()):,} of {asked.size:,} pairs asked so far"
            console.line("rounds", text)
            log(context.benchmark, "collect", text)
        scores = read(labels, "labels")
        return scatter(scores, "score", queries=ids, models=models, dtype=np.float64).values

    ranking = collect_informatively(
        tasks, len(models), collect.informative, answer, always=dense_rows(table)
    )
    assert responses is not None  # the pilot asks at least two questions of every model
    figures = {**responses.figures, "informative": figures_of(ranking, models, collect)}
    return responses.model_copy(update={"figures": figures})


def figures_of(ranking: RankedModels, models: list[str], collect: Collect) -> dict[str, Any]:
    """JSON-ready: per model the plain mean, the weighted estimate and its interval, and
    what each round asked."""
    from routeyard.pipelines.collect.informative import Z

    plan = collect.informative
    half = Z * ranking.standard_error
    rows = [
        {
            "model_id": model,
            "asked": int(ranking.asked[:, m].sum()),
            "plain": _number(ranking.plain[m]),
            "weighted": _number(ranking.weighted[m]),
            "low": _number(ranking.weighted[m] - half[m]),
            "high": _number(ranking.weighted[m] + half[m]),
        }
        for m, model in enumerate(models)
    ]
    return {
        "resolve": plan.resolve,
        "asked": int(ranking.asked.sum()),
        "pairs": int(ranking.asked.size),
        "unresolved": int(ranking.unresolved(plan.resolve).sum()) // 2,
        "models": rows,
        "rounds": [
            {"models": len(r.models), "questions": len(r.drawn), "unresolved": r.unresolved}
            for r in ranking.rounds
        ],
    }


def _number(value: float) -> float | None:
    # Twelve digits: the last ones of a product of matrices depend on the machine.
    return float(f"{value:.12g}") if np.isfinite(value) else None


def ask_models(
    context: BuildContext,
    *,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    models: StageResult,
    rows: list[list[int]] | None = None,
) -> StageWork | PendingAnswers:
    """Answers of the pool to the questions, one response file per model.

    Args:
        rows: Rows of the questions that each model of the pool is asked; null for what
            the recipe's coverage says.
    """
    from routeyard.pipelines.collect.client import check_served
    from routeyard.pipelines.collect.collect import collect as ask_pool
    from routeyard.pipelines.collect.collect import responses_table
    from routeyard.pipelines.collect.plan import plan
    from routeyard.pipelines.collect.request import identity_of

    table = read(queries, "queries")
    # Part of every request's hash; without it `verify` could not make the hash again.
    named = {item.name: identity_of(item) for item in pool.providers if item.id_in_environment}
    facts: dict[str, Any] = {"addresses": named} if named else {}
    if collect.larger_limit is not None:
        facts["reask_truncated"] = collect.larger_limit
    drawn = None if rows is None else [np.array(row, dtype=np.int32) for row in rows]
    how: dict[str, Any] = {"rows": drawn, **asked_about(context, queries)}

    def work(responses: Any) -> StageWork:
        check_answered(context, collect, responses)

        def make(folder: Path) -> Mapping[str, Any]:
            write_by_model(responses, folder)
            return {"responses": responses.num_rows, **facts}

        inputs = {
            "queries": queries.fingerprint,
            "pool": models.fingerprint,
            "answers": answers_fingerprint(responses),
        }
        return StageWork(collect.model_dump(mode="json"), inputs, make)

    def ask() -> StageWork:

        ours, asking = share(at_server(pool), collect, count := collectors())
        tell = partial(log, context.benchmark, "collect")
        made_up = [model.model_id for model in pool.models if model.simulated]
        with open_ledger(context.root) as ledger:
            planned = plan(table, ours, asking, ledger, **how)
            check_served(ledger, ours.providers, context.benchmark)
            with (
                collector_slot(count),
                provider_slots(ours),
                collecting(also=tell, simulated=made_up) as show,
            ):
                done = ask_pool(planned, ledger, on_progress=show)
            why = [*([done.stopped] if done.stopped else []), *done.paused.values()]
            gate: dict[str, Any] = {"pool": pool, "collect": collect, "wanted": planned.wanted}
            gate |= {"out_of_budget": done.out_of_budget, "refused": done.refused}
            check_complete(context, done.missing, why, **gate)
            return work(responses_table(planned, ledger))

    with open_ledger(context.root) as ledger:
        planned = plan(table, pool, collect, ledger, **how)
        if planned.missing:
            return PendingAnswers(planned.missing, ask)
        return work(responses_table(planned, ledger))


# Collection in shards: one task per model and range of queries, on any task runner.
#
# Each shard takes an equal share of its provider's limits, and holds as much of
# the provider's Prefect limit while it asks, so that the limits hold in sum over
# all workers. What is asked of whom does not depend on the shards, and nothing is
# asked twice: every shard goes through the ledger, which also lets one that was
# killed go on where it was.


def ask_in_shards(
    context: BuildContext,
    *,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    models: StageResult | None = None,
) -> None:
    """Ask what the ledger lacks, each model's queries in `context.shards` ranges.

    `context.jobs` shards work at the same time. What is still missing afterwards is left to
    the collect stage, which runs next and finds nothing to ask when every shard was answered.
    """
    from routeyard.pipelines.collect.collect import END, START, ask_canaries
    from routeyard.pipelines.collect.plan import cuts, plan

    if collect.transport == "batch":
        why = "not cut into shards: batches are cut by requests"
        log(context.benchmark, "collect", why)
        return
    pool = at_server(pool)
    run = uuid.uuid4().hex[:12]
    with open_ledger(context.root) as ledger:
        table = read(queries, "queries")
        planned = plan(table, pool, collect, ledger, **asked_about(context, queries))
        parts = [
            (model.model.model_id, start, stop)
            for model in planned.models
            for start, stop in cuts(len(model.rows), context.shards)
            if model.missing[start:stop].any()
        ]
        if not parts:
            return
        with collector_slot(count := collectors()):
            ask_canaries(planned, ledger, run, START)
            quiet = collect.but(canary=[])
            arguments = [
                {
                    "context": context,
                    "pool": pool,
                    "collect": quiet,
                    "queries": queries,
                    "model_id": model_id,
                    "rows": (start, stop),
                    "sharers": sharers(_served(pool, model_id), collect, count, context.jobs),
                    "shard": (number, len(parts)),
                }
                for number, (model_id, start, stop) in enumerate(parts, 1)
            ]
            with console.counter("collect", "shards") as count_shards:
                each(ask_shard_task, arguments, processes=context.jobs, on_done=count_shards)
            ask_canaries(planned, ledger, run, END)


def ask_shard(
    context: BuildContext,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    model_id: str,
    rows: tuple[int, int],
    sharers: int,
    shard: tuple[int, int],
) -> dict[str, Any]:
    """Ask one model a range of the queries it covers; JSON-ready figures of what came.

    Args:
        rows: First and one past the last, counted among the model's covered queries.
        sharers: Shards among which the provider's limits are divided.
    """
    from routeyard.pipelines.collect.collect import collect as ask_planned
    from routeyard.pipelines.collect.plan import covered, plan

    table = read(queries, "queries")
    # Coverage is drawn over the whole pool.
    number = [model.model_id for model in pool.models].index(model_id)
    drawn = covered(table, len(pool.models), collect.coverage)[number][slice(*rows)]
    ours, asking = share(_served(pool, model_id), collect, sharers)
    # The bound is the benchmark's and is kept in the ledger; other models' own bounds are not ours.
    own = {name: usd for name, usd in asking.budget.models.items() if name == model_id}
    asking = asking.but(budget=asking.budget.but(models=own))
    with open_ledger(context.root) as ledger, provider_slots(ours):
        planned = plan(table, ours, asking, ledger, rows=[drawn], **asked_about(context, queries))
        text = f"{model_id}: {planned.missing:,} answers to ask"
        log(context.benchmark, "collect", text, shard=shard)
        done = ask_planned(planned, ledger)
    missing = sum(done.missing.values())
    why = "; ".join(done.paused.values())
    text = f"{model_id}: {planned.missing - missing:,} answers, {missing:,} missing"
    log(context.benchmark, "collect", f"{text} ({why})" if why else text, shard=shard)
    return done.figures


# The plain function keeps its own name: worker processes find it by that.
ask_shard_task = Deferred(
    "task", ask_shard, {"name": "collect shard", "timeout_seconds": 24 * 3600.0, **AFTER_CALLS}
)


def _served(pool: Pool, model_id: str) -> Pool:
    """The pool of one model and its provider."""
    from routeyard.pipelines.collect.plan import provider_of

    model = next(item for item in pool.models if item.model_id == model_id)
    return pool.but(models=[model], providers=[provider_of(model, pool)])
