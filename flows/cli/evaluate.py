"""`routeyard evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import CACHE, WrittenPath
from routeyard.flows.cli.results import Output
from routeyard.flows.cli.settings_options import with_settings
from routeyard.pipelines.experiment.settings import EvaluationSettings


@with_settings()
def command(
    release: Path,
    out: WrittenPath,
    settings: EvaluationSettings,
    router: list[str] | None = None,
    router_from: list[str] | None = None,
    predictions: list[Path] | None = None,
    embeddings: Path | None = None,
    also: list[Path] | None = None,
    cache: Path = CACHE,
    picks: Path | None = None,
    certificate: bool = True,
    only_given: Annotated[bool, typer.Option("--only-given")] = False,
) -> Output:
    """Compare routers on a release: metrics with intervals, curves, tests, one HTML page.

    Routers learn from the train questions, choose hyperparameters on the
    validation questions and are measured on the test questions. Everything is
    written to --out; the release stays as it is. What a router predicts is kept
    in --cache: a stopped run goes on, and routers that `zoo run` fitted with the
    same encoder, setting and seed are not fitted again.

    Examples:

        routeyard evaluate yard/releases/demo/1.0.0 --out results/demo --embed

        routeyard evaluate RELEASE --out results/mine --predictions mine.csv

        routeyard evaluate RELEASE --out results/mine --router-from my_router:MyRouter

    A router in Python is a class with two methods:

        class Mine:
            name = "mine"
            def fit(self, train): self.mean = train.labels.mean(axis=0)
            def scores(self, queries): return [self.mean] * len(queries)

    Args:
        router: Reference router by name; again for more. Default: six simple ones.
        router_from: module:Class or file.py:Class, a router of your own. This RUNS it.
        predictions: CSV or Parquet: query_id, model_id[, score], or one column per model; and, if
            you know it, decision_cost_usd, what the router itself costs on the question.
        picks: CSV or Parquet: query_id, router: whom a judge preferred.
        certificate: Put the routability certificate into the report.
        only_given: Only the routers named here; no default ones.
    """
    from routeyard.flows.evaluation import options
    from routeyard.flows.evaluation.evaluate import evaluate_into

    if only_given:
        settings = settings.but(pair_routers=False)
    done, certified, page = evaluate_into(
        release,
        out,
        router or ([] if only_given else None),
        settings,
        certificate=certificate,
        router_from=router_from or (),
        predictions=predictions or (),
        also=also or (),
        embeddings=embeddings,
        cache=cache,
        picks=None if picks is None else options.read_picks(picks),
    )
    figures = {(r["router"], r["metric"]): r["value"] for r in done.metrics.to_pylist()}
    lines = []
    for place in done.ranking:
        first, last = place["best_place"], place["worst_place"]
        span = str(first) if first == last else f"{first}-{last}"
        words = f"{place['router']:<20} accuracy {place['value']:.4f}"
        if done.facts["headline"] != "accuracy":
            words += f" without leaked, {figures[place['router'], 'accuracy']:.4f} on all rows"
        over = figures.get((place["router"], "accuracy_split_sd"))
        words += "" if over is None else f" ± {over:.4f} over {settings.splits} splits"
        lines.append(f"{words}  place {span}")
    if certified:
        lines.append(f"certificate: {certified['verdict']}")
    data = {"ranking": done.ranking, "certificate": certified, "report": page}
    data |= {"settings": done.settings.to_json(), "not_read": done.facts.get("not_read", {})}
    return Output(data, [*lines, f"report: {page}"])
