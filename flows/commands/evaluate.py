"""`routeyard evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.show.options import (
    CACHE,
    ENCODER,
    Cache,
    Cluster,
    Embed,
    Embeddings,
    Encoder,
    Out,
    Pair,
    Release,
    Resamples,
    Scheme,
    Seed,
)


def command(
    release: Release,
    out: Out,
    router: Annotated[
        list[str] | None,
        typer.Option(help="Reference router by name; again for more. Default: six simple ones."),
    ] = None,
    router_from: Annotated[
        list[str] | None,
        typer.Option(help="module:Class of your own router. This RUNS that module."),
    ] = None,
    predictions: Annotated[
        list[Path] | None,
        typer.Option(help="CSV or Parquet: query_id, model_id[, score], or one column per model."),
    ] = None,
    embeddings: Embeddings = None,
    embed: Embed = False,
    encoder: Encoder = ENCODER,
    cache: Cache = CACHE,
    scheme: Scheme = None,
    pair: Pair = None,
    cluster: Cluster = None,
    resamples: Resamples = 10_000,
    seed: Seed = 0,
    seeds: Annotated[int, typer.Option(min=1, help="Fits per router, for mean ± sd.")] = 1,
    ood: Annotated[
        bool, typer.Option("--ood", help="Retrain without each task group and measure the change.")
    ] = False,
    certificate: Annotated[
        bool, typer.Option(help="Put the routability certificate into the report.")
    ] = True,
    only_given: Annotated[
        bool, typer.Option("--only-given", help="Leave the reference routers out.")
    ] = False,
) -> None:
    """Compare routers on a release: metrics with intervals, curves, tests, one HTML page.

    Routers learn from the train questions, choose hyperparameters on the
    validation questions and are measured on the test questions. Everything is
    written to --out; the release stays as it is.

    Examples:

        routeyard evaluate yard/releases/demo/1.0.0 --out results/demo --embed

        routeyard evaluate RELEASE --out results/mine --predictions mine.csv

        routeyard evaluate RELEASE --out results/mine --router-from my_router:MyRouter

    A router in Python is a class with two methods:

        class Mine:
            name = "mine"
            def fit(self, train): self.mean = train.labels.mean(axis=0)
            def scores(self, queries): return [self.mean] * len(queries)
    """
    from flows.actions import evaluate as action
    from flows.actions.entrants import parse_pair
    from flows.actions.evaluate_report import write_evaluation
    from flows.actions.released import core_of, out_folder, read_release, with_embeddings
    from pipelines.evaluate.certificate import certify
    from pipelines.staging import write_json

    tables = read_release(release)
    folder = out_folder(release, out)
    tables = with_embeddings(tables, embeddings, embed, cache, encoder)
    done = action.evaluate_tables(
        tables,
        [] if only_given else router or None,
        router_from=router_from or [],
        predictions=predictions or [],
        scheme=scheme,
        pair=parse_pair(pair),
        pair_routers=not only_given,
        resamples=resamples,
        seed=seed,
        seeds=seeds,
        cluster=cluster,
        ood=ood,
    )
    certified = None
    if certificate:
        found = certify(
            core_of(tables),
            scheme=done.facts["scheme"],
            resamples=resamples,
            seed=seed,
            cluster=cluster,
        )
        certified = found.to_json()
        write_json(folder / "certificate.json", certified)
    page = write_evaluation(folder, release, done, tables, certified)
    for place in done.ranking:
        first, last = place["best_place"], place["worst_place"]
        span = str(first) if first == last else f"{first}-{last}"
        print(f"{place['router']:<20} accuracy {place['value']:.4f}  place {span}")
    if certified:
        print(f"certificate: {certified['verdict']}")
    print(f"report: {page}")
