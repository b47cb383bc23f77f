"""Extensions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import CACHE, Map, OptionalWrittenPath, Output, Resamples
from routeyard.schemas.errors import BadInput

# `routeyard compare`.


def compare_command(
    release: Path,
    first: Annotated[str | None, typer.Argument()] = None,
    second: Annotated[str | None, typer.Argument()] = None,
    scheme: str | None = None,
    decision: list[float] | None = None,
    resamples: Resamples = 2_000,
    seed: int = 0,
) -> Output:
    """Compare two routers, or the arms of each model.

    Of two routers accuracy, cost and p50, p95 and p99 on the same questions are printed, paired:
    intervals of the differences resample whole questions, the same for both.

    Without routers: what more effort, longer answers or more samples gain, lose and cost. For each
    model whose pool entry declares axes that is the score of each arm, the questions that only more
    gets right and those that flip back, and USD for each further right answer, with intervals.

    Examples:

        routeyard compare yard/releases/demo/1.0.0 results:ridge always:sim-atlas-xl

        routeyard compare RELEASE mine.csv results:knn --decision 0.05 --decision 0.2

        routeyard compare yard/releases/efforts/1.0.0

    Args:
        first: A router: always:MODEL, RESULTS:ROUTER of a folder that `evaluate` wrote, or a file
            of choices with query_id and model_id.
        second: The router that it is compared with, in the same forms.
        scheme: Split scheme whose test questions count.
        decision: Seconds that the routers take to decide, added to each call; twice: the second's.
    """
    from routeyard.extensions.traffic.compare import FORMS, arms_report, compare_routers

    if first is None:
        result = arms_report(release, resamples=resamples, seed=seed)
        return Output(result.data(), result.lines())
    if second is None:
        raise BadInput("two routers are compared, and one is named", next_step=f"give {FORMS}")
    seconds = decision or [0.0]
    compared = compare_routers(
        release, first, second, scheme=scheme, decision_s=(seconds[0], seconds[-1]),
        resamples=resamples, seed=seed,
    )  # fmt: skip
    return Output(asdict(compared), compared.lines())


# `routeyard latency`.


def latency_command(
    path: Path,
    by: str = "arm",
    limit: float | None = None,
    share: float = 0.95,
    decision: float = 0.0,
    map_: Map = None,
    resamples: Resamples = 2_000,
) -> Output:
    """Print p50, p95 and p99 of recorded calls; who keeps a promise.

    With --limit the calls of later hours say for each arm, and for a rule that was fitted on the
    earlier hours, whether the promise is kept, by how much it fails, and what accuracy and cost
    then are.

    Examples:

        routeyard latency yard/releases/demo/1.0.0 --limit 2

        routeyard latency gateway.jsonl --by hour

    Args:
        path: A release, the folder of an import, a Parquet file of steps, or a gateway's log.
        by: What the percentiles are of: arm, task or hour.
        limit: Seconds that are promised.
        share: Share of the calls that the promise is about.
        decision: Seconds a router takes to decide, added to each call of the rule.
        map_: Which key of a log is what, where not as listed: `arm=engine,session=metadata.run`.
    """
    from routeyard.extensions.traffic.latency import latency_report

    result = latency_report(
        path, by=by, limit_s=limit, share=share, decision_s=decision, named=map_,
        resamples=resamples,
    )  # fmt: skip
    return Output(asdict(result), result.lines())


# `routeyard replay`.


def replay_command(
    steps: Path,
    policy: Annotated[list[str] | None, typer.Option("--policy", "-p")] = None,
    pool: Path | None = None,
    cache: list[str] | None = None,
    map_: Map = None,
    resamples: Resamples = 1_000,
    seed: int = 0,
) -> Output:
    """Compute what recorded steps would have cost with other arms.

    Prompt caches are included: a switch of arms pays the prompt again: each provider's rules (time
    to live, least prefix, price of writes) decide what is read from its cache. Every trajectory is
    taken to be the same under every policy; whether another arm would have succeeded is not said.
    What it assumes is printed.

    Examples:

        routeyard replay yard/imports/tau_bench --pool prices.yaml -p recorded -p always:gpt-4o-mini

        routeyard replay gateway.jsonl --pool prices.yaml -p recorded -p first:3:large:small

    Args:
        steps: A release with steps, the folder of an import, a Parquet file, or a gateway's log.
        policy: recorded, always:ARM, first:N:ARM:THEN, every:N:ARM:ELSE, or a file; again for more.
        pool: YAML file of models with price_in, price_out, price_cache_read, price_cache_write.
        cache: ARM=RULE, or RULE for all arms: anthropic, openai, deepseek, none, …; again for more.
        map_: Which key of a log is what, where not as listed: `arm=engine,session=metadata.run`.
    """
    from routeyard.extensions.traffic.compare import replay_steps

    result = replay_steps(
        steps, policy or ["recorded"], pool=pool, caches=cache or (), named=map_,
        resamples=resamples, seed=seed,
    )  # fmt: skip
    return Output(asdict(result), result.lines())


# `routeyard shadow`.


def shadow_command(
    logs: Path,
    router: Annotated[list[str], typer.Option()],
    after: str | None = None,
    pool: list[Path] | None = None,
    cache: list[str] | None = None,
    map_: Map = None,
    encoder: str | None = None,
    independent: bool = False,
    out: OptionalWrittenPath = None,
    resamples: Resamples = 1_000,
    seed: int = 0,
) -> Output:
    """Compute what a router would have done on a gateway's log.

    What it would have cost and achieved, day by day. Costs count prompt caches. Outcomes are
    estimated where the log holds propensities of its own choices and grades; elsewhere they are
    bounded, or it says why they are unknown.

    With --after the days before choose one of several routers, and the days from then on judge it.

    Examples:

        routeyard shadow gateway.jsonl --router always:small --pool prices.yaml --out page.md

        routeyard shadow gateway.jsonl --router saved_router --pool prices.yaml

        routeyard shadow log.jsonl --router always:small --router always:large --after 2026-11-03

    Args:
        logs: A gateway's log: LiteLLM, OpenRouter, requests with responses, or plain columns.
        router: A saved router's folder, a policy (always:ARM, first:N:ARM:THEN), or a file of arms;
            again for more, of which the past chooses one.
        after: Day from which the router is judged; what was learnt or chosen is of the days before.
        pool: Prices of the arms; a later file holds from its price_date on; again for more.
        cache: ARM=RULE, or RULE for all arms: anthropic, openai, deepseek, none, …; again for more.
        map_: Which key of a log is what, where not as listed: `arm=engine,session=metadata.run`.
        encoder: Encoder of a saved router, where it came from elsewhere.
        independent: State that logged propensities do not depend on earlier outcomes.
        out: Also write the page, in Markdown.
    """
    from routeyard.extensions.traffic.shadow import shadow

    result = shadow(
        logs, router, pools=pool or (), caches=cache or (), named=map_, encoder=encoder,
        after=after, propensities="context" if independent else "test", resamples=resamples,
        seed=seed,
    )  # fmt: skip
    if out is not None:
        out.write_text("\n".join(result.lines()) + "\n", encoding="utf-8")
    return Output(asdict(result), result.lines())


_SHARES = Annotated[list[str] | None, typer.Option(metavar="ARM=SHARE")]


def zoo_online_command(
    release: Path,
    router: Annotated[list[str] | None, typer.Option("--router", "-r")] = None,
    worth: float | None = None,
    appear: _SHARES = None,
    retire: _SHARES = None,
    check_error: float = 0.0,
    alpha: float | None = None,
    trade_off: float = 1e-3,
    explore: float = 0.1,
    measure: str | None = None,
    encoder: str = "tfidf",
    shuffles: Annotated[int | None, typer.Option(min=2)] = None,
    seed: int = 0,
    cache: Path = CACHE,
) -> Output:
    """Answer test questions one by one with routers that learn.

    Bandits and a cascade see the score and cost of the answers they asked for and of no other.
    Prints accuracy, cost, answers asked for, and regret against the best fixed arm and the oracle,
    mean ± sd over orders. Questions with an unknown label or cost are left out.

    With --alpha MESS+ answers instead, at least cost for a level of service: the share answered
    well, cost per question and share explored, beside each single model.

    Examples:

        routeyard zoo online yard/releases/demo/1.0.0 --worth 0.001

        routeyard zoo online yard/releases/demo/1.0.0 --appear sim-atlas-xl=0.5

        routeyard zoo online yard/releases/demo/1.0.0 --alpha 0.7

    Args:
        router: random, epsilon-greedy, thompson, linucb or cascade; all by default.
        worth: What a right answer is worth, in the unit of the cost; without it costs do not count.
        appear: Share of the stream after which an arm appears.
        retire: Share of the stream after which an arm is gone.
        check_error: Share of answers of which a cascade's check says the opposite of the label.
        alpha: MESS+ alone: share of questions to be answered well.
        trade_off: With --alpha: V, weight of cost against the level.
        explore: With --alpha: c of min(1, c/t^(1/4)).
        encoder: tfidf, minilm, a name or a folder.
        shuffles: Orders of the questions; default 10, with --alpha 5.
        seed: Seed of the orders.
    """
    from routeyard.extensions.traffic.online import mess_plus, online, shares

    if alpha is None:
        report = online(
            release, routers=router or (), encoder=encoder, worth=worth, measure=measure,
            appear=shares(appear or ()), retire=shares(retire or ()), check_error=check_error,
            shuffles=shuffles or 10, seed=seed, cache=cache,
        )  # fmt: skip
        return Output(asdict(report), report.lines())
    if router or appear or retire or check_error or seed or worth is not None:
        raise BadInput(
            "--alpha is of MESS+ alone, which takes none of --router, --worth, --appear, --retire, "
            "--check-error and --seed",
            next_step="leave them out",
        )
    result = mess_plus(
        release, alpha=alpha, encoder=encoder, trade_off=trade_off, explore=explore,
        measure=measure, shuffles=shuffles or 5, cache=cache,
    )  # fmt: skip
    head = f"{result['questions']:,} questions, α = {alpha:g}, cost in {result['unit']}"
    rows = (
        f"{row['name']:<40} {row['answered_well']:.3f} ± {row['answered_well_sd']:.3f}   "
        f"cost {row['cost']:.4g} ± {row['cost_sd']:.2g}   explored {row['explored']:.1%}"
        for row in result["rows"]
    )
    return Output(result, [head, *rows])
