"""`routeyard evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import CACHE, ENCODER, Embed, Resamples, WrittenPath
from routeyard.flows.cli.results import Output


def command(
    release: Path,
    out: WrittenPath,
    router: list[str] | None = None,
    router_from: list[str] | None = None,
    predictions: list[Path] | None = None,
    embeddings: Path | None = None,
    embed: Embed = False,
    also: list[Path] | None = None,
    encoder: str = ENCODER,
    cache: Path = CACHE,
    scheme: str | None = None,
    pair: str | None = None,
    cluster: str | None = None,
    resamples: Resamples = 10_000,
    seed: int = 0,
    seeds: Annotated[int, typer.Option(min=1)] = 1,
    ood: Annotated[bool, typer.Option("--ood")] = False,
    ood_group: list[str] | None = None,
    bands: str = "0.25,0.30,0.85,0.95",
    binary_by: str = "confidence",
    basis: str | None = None,
    reference: str | None = None,
    timed: Annotated[bool, typer.Option("--timed")] = False,
    usd_per_hour: Annotated[float | None, typer.Option(min=0)] = None,
    picks: Path | None = None,
    certificate: bool = True,
    only_given: Annotated[bool, typer.Option("--only-given")] = False,
) -> Output:
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

    Args:
        router: Reference router by name; again for more. Default: six simple ones.
        router_from: module:Class or file.py:Class, a router of your own. This RUNS it.
        predictions: CSV or Parquet: query_id, model_id[, score], or one column per model.
        seeds: Fits per router, for mean ± sd.
        ood: Retrain without each task group and measure the change.
        ood_group: name=pattern,pattern, or stem, math, …: hold such tasks out.
        bands: Shares of the gap: LPM ends, MPM begins, low band, high band.
        binary_by: How a pool's router routes a pair: confidence or difference.
        basis: Preferences that pair routers learn from, by basis.
        reference: Model that v_r compares with. Default: best on train.
        timed: Time the routers; such files differ from run to run.
        usd_per_hour: Price of the machine that routes; implies --timed.
        picks: CSV or Parquet: query_id, router: whom a judge preferred.
        certificate: Put the routability certificate into the report.
        only_given: Only the routers named here; no default ones.
    """
    import time

    from routeyard.flows.evaluation import options
    from routeyard.flows.evaluation.evaluate import evaluate_into
    from routeyard.flows.evaluation.router_specs import parse_pair

    done, certified, page = evaluate_into(
        release,
        out,
        router or ([] if only_given else None),
        certificate=certificate,
        also=also or (),
        embeddings=embeddings,
        embed=embed,
        encoder=encoder,
        cache=cache,
        router_from=router_from or (),
        predictions=predictions or (),
        scheme=scheme,
        pair=parse_pair(pair),
        pair_routers=not only_given,
        resamples=resamples,
        seed=seed,
        seeds=seeds,
        cluster=cluster,
        ood=ood,
        ood_groups=options.parse_groups(ood_group),
        bands=options.parse_bands(bands),
        binary_by=binary_by,
        basis=basis,
        # Seconds are never the same twice; without them the same inputs give the same bytes.
        clock=time.perf_counter if timed or usd_per_hour is not None else None,
        usd_per_hour=usd_per_hour,
        reference=reference,
        picks=None if picks is None else options.read_picks(picks),
    )
    lines = []
    for place in done.ranking:
        first, last = place["best_place"], place["worst_place"]
        span = str(first) if first == last else f"{first}-{last}"
        lines.append(f"{place['router']:<20} accuracy {place['value']:.4f}  place {span}")
    if certified:
        lines.append(f"certificate: {certified['verdict']}")
    data = {"ranking": done.ranking, "certificate": certified, "report": page}
    return Output(data, [*lines, f"report: {page}"])
