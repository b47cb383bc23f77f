"""`routeyard study`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import (
    CACHE,
    ENCODER,
    Also,
    Cache,
    Embed,
    Embeddings,
    Encoder,
    Json,
    Pair,
    Resamples,
    Scheme,
    Seed,
)


def command(
    name: Annotated[str, typer.Argument(help="Study; `list` names them, `all` runs what applies.")],
    release: Annotated[Path | None, typer.Argument(help="A release directory.")] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the results; never inside a release.")
    ] = Path("studies"),
    router: Annotated[
        list[str] | None, typer.Option(help="Router instead of the study's own; again for more.")
    ] = None,
    pair: Pair = None,
    scheme: Scheme = None,
    join: Annotated[
        list[Path] | None, typer.Option(help="Release to train on as well; again for more.")
    ] = None,
    test_on: Annotated[
        list[Path] | None, typer.Option(help="Release to test on alone; again for more.")
    ] = None,
    embeddings: Embeddings = None,
    embed: Embed = False,
    also: Also = None,
    encoder: Encoder = ENCODER,
    cache: Cache = CACHE,
    resamples: Resamples = 2_000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """A paper's table or figure on your own release, with intervals.

    Written as Parquet, Markdown and HTML with a plot; where the paper is about the same data,
    its printed values stand beside ours. `pipelines/studies/README.md` lists every table and
    figure of the papers.

    Examples:

        routeyard study list

        routeyard study dominance yard/releases/mmlu_pro/1.0.0 --out results/mmlu_pro

        routeyard study probe_mixture RELEASE --join OTHER --test-on THIRD --also states

        routeyard study all yard/releases/mmlu_pro/1.0.0 --out results/mmlu_pro --embed
    """
    from flows.cli.results import print_result
    from flows.evaluation import study as do
    from flows.evaluation.released import out_folder, read_release, with_beside, with_embeddings
    from flows.evaluation.router_specs import parse_pair

    if name == "list":
        rows = do.listed()
        if print_result(rows, as_json):
            return
        for row in rows:
            print(f"{row['name']:<28} {row['paper']}, {row['item']}: {row['title']}")
            print(f"{'':<28} needs {', '.join(row['needs'])}")
        return
    where = do.names_of(name, release)
    tables = with_beside(read_release(where), also or [])
    folder = out_folder(where, out)
    tables = with_embeddings(tables, embeddings, embed, cache, encoder)
    joined, tested = (
        {
            do.named(other)[0]: with_embeddings(
                with_beside(read_release(other), also or []), embeddings, embed, cache, encoder
            )
            for other in others or []
        }
        for others in (join, test_on)
    )
    given = do.given_of(
        where,
        tables,
        scheme=scheme,
        pair=parse_pair(pair),
        routers=tuple(router or ()),
        resamples=resamples,
        seed=seed,
        joined=joined,
        tested=tested,
    )
    if name == "all":
        done, left = do.run_all(given, where, folder)
        said = {"studies": done, "path": folder / "index.md"}
        rest = [{"study": study, "needs": need, "then": then} for study, need, then in left]
        if print_result({**said, "not_applicable": rest}, as_json):
            return
        print(f"{len(done)} studies in {folder / 'index.md'}")
        for study, need, then in left:
            print(f"not applicable: {study} needs {need} ({then})")
        return
    made = do.run_study(name, given, where, folder)
    print_result(made, as_json, str(made["out"]))
