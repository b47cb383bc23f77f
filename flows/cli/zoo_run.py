"""`routeyard zoo run`: every router on a release under one protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Also, Json, Out


def command(
    release: Annotated[Path, typer.Argument(help="A release directory.")],
    out: Out,
    routers: Annotated[str, typer.Option(help="Names with commas between, or `all`.")] = "all",
    encoders: Annotated[
        str, typer.Option(help="tfidf, minilm, a name, a folder or a hub id; commas between.")
    ] = "minilm",
    own: Annotated[
        list[str] | None,
        typer.Option(
            help="Your own router: module:Class or file.py:Class (this RUNS that code), or a CSV "
            "or Parquet table of predictions. Again for more."
        ),
    ] = None,
    scheme: Annotated[str | None, typer.Option(help="Split scheme.")] = None,
    also: Also = None,
    cache: Annotated[Path, typer.Option(help="Cache of embeddings.")] = Path(
        "yard/cache/embeddings"
    ),
    rule: Annotated[
        list[str] | None,
        typer.Option(
            help="Also read the winners under a selection rule: utility:0.3, query-budget:USD, "
            "sufficient:0.8, mean-budget:USD, batch-budget:USD, threshold:SHARE, similarity:0.3. "
            "Again for more."
        ),
    ] = None,
    runner: Annotated[str, typer.Option(help="threads or dask.")] = "threads",
    workers: Annotated[int, typer.Option(min=1, help="Threads, or Dask processes.")] = 2,
    dask_address: Annotated[
        str | None, typer.Option(help="Scheduler that runs already, tcp://host:8786.")
    ] = None,
    report: Annotated[
        bool, typer.Option(help="Also evaluate the winners: intervals, tests, curves, HTML.")
    ] = True,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 2_000,
    as_json: Json = False,
) -> None:
    """Train and compare routers: at most 15 settings each, the best five again with four seeds.

    Writes cells.parquet (one row per fit), standings.json and table.md, and for each
    encoder a folder with the evaluation of the chosen settings and an HTML report.
    A run that was stopped goes on where it was: cells that are there are not run again.

    Examples:

        routeyard zoo run yard/releases/demo/1.0.0 --routers knn,ridge --encoders tfidf --out zoo

        routeyard zoo run RELEASE --routers all --encoders tfidf,minilm --out zoo --runner dask
    """
    import json

    from flows.cli.results import print_result
    from flows.evaluation import released as read
    from flows.evaluation import zoo
    from pipelines.errors import BadInput
    from pipelines.evaluate.certificate import default_scheme
    from pipelines.matrix.reading import core_of
    from pipelines.zoo.choose import asked
    from pipelines.zoo.router_specs import own as theirs
    from pipelines.zoo.router_specs import registered

    if runner not in ("threads", "dask"):
        raise BadInput(f"there is no runner {runner!r}", next_step="known: threads, dask")
    wanted = None if routers == "all" else [n.strip() for n in routers.split(",") if n.strip()]
    specs = [*registered(wanted), *(theirs(target) for target in own or [])]
    twice = sorted({e.name for e in specs if [x.name for x in specs].count(e.name) > 1})
    if twice:
        raise BadInput(f"two routers are called {twice[0]!r}", next_step="rename one of them")
    rules = [asked(text) for text in rule or []]
    tables = read.with_beside(read.read_release(release), also or [])
    folder = read.out_folder(release, out)
    core = core_of(tables.without("embeddings"))
    chosen = default_scheme(core, scheme)
    names = [name.strip() for name in encoders.split(",") if name.strip()]
    if not names:
        raise BadInput("no encoder is named", next_step="--encoders tfidf needs no weights")
    matrices = zoo.vectors(tables, core, names, scheme=chosen, cache=cache)
    title = f"Routers on {release.resolve().parent.name} {release.resolve().name}"
    done, bench = zoo.run(
        core, chosen, matrices, specs, folder, title=title, runner=runner,  # type: ignore[arg-type]
        workers=workers, dask_address=dask_address, rules=rules,
    )  # fmt: skip
    if report:
        for name in names:
            zoo.write_report(
                core, bench, done, folder, name, release=release, tables=tables, resamples=resamples
            )
    table = (folder / "table.md").read_text(encoding="utf-8")
    standings = json.loads((folder / "standings.json").read_text(encoding="utf-8"))
    print_result({"path": folder, "standings": standings}, as_json, table)
