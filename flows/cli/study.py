"""`routeyard study`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from routeyard.flows.cli.options import CACHE, Embed, Resamples
from routeyard.flows.cli.results import Output


def command(
    name: str,
    release: Annotated[Path | None, typer.Argument()] = None,
    out: Path = Path("studies"),
    router: list[str] | None = None,
    pair: str | None = None,
    scheme: str | None = None,
    join: list[Path] | None = None,
    test_on: list[Path] | None = None,
    embeddings: Path | None = None,
    embed: Embed = False,
    also: list[Path] | None = None,
    encoder: str | None = None,
    cache: Path = CACHE,
    resamples: Resamples = 2_000,
    seed: int = 0,
) -> Output:
    """A paper's table or figure on your own release, with intervals.

    Written as Parquet, Markdown and HTML with a plot; where the paper is about the same data,
    its printed values are beside ours. `pipelines/studies/README.md` lists every table and
    figure of the papers.

    Examples:

        routeyard study list

        routeyard study dominance yard/releases/mmlu_pro/1.0.0 --out results/mmlu_pro

        routeyard study probe_mixture RELEASE --join OTHER --test-on THIRD --also states

        routeyard study all yard/releases/mmlu_pro/1.0.0 --out results/mmlu_pro --embed

    Args:
        name: Study; `list` names them, `all` runs what applies.
        release: A release folder.
        out: Folder for the results; never inside a release.
        router: Router instead of the study's own; again for more.
        join: Release to train on as well; again for more.
        test_on: Release to test on alone; again for more.
    """
    from routeyard.flows.evaluation import study as studies
    from routeyard.flows.evaluation.kept import store_in
    from routeyard.flows.evaluation.released import out_folder, with_embeddings
    from routeyard.flows.evaluation.released import read_with as read
    from routeyard.flows.evaluation.router_specs import parse_pair

    if name == "list":
        rows = studies.listed()
        return Output(
            rows,
            (
                f"{row['name']:<28} {row['paper']}, {row['item']}: {row['title']}\n"
                f"{'':<28} needs {', '.join(row['needs'])}"
                for row in rows
            ),
        )
    where = studies.release_of(name, release)
    how: dict[str, Any] = {
        "embeddings": embeddings,
        "embed": embed,
        "cache": cache,
        "encoder": encoder,
    }
    tables = read(where, also or [])
    folder = out_folder(where, out)
    context = studies.context_of(
        where,
        with_embeddings(tables, **how),
        scheme=scheme,
        pair=parse_pair(pair),
        routers=tuple(router or ()),
        resamples=resamples,
        seed=seed,
        joined={studies.named(o)[0]: read(o, also or [], **how) for o in join or []},
        tested={studies.named(o)[0]: read(o, also or [], **how) for o in test_on or []},
        kept=partial(store_in, cache),
    )
    if name != "all":
        made = studies.run_study(name, context, where, folder)
        return Output(made, str(made["out"]))
    done, left = studies.run_all(context, where, folder)
    rest = [{"study": study, "needs": need, "then": then} for study, need, then in left]
    return Output(
        {"studies": done, "path": folder / "index.md", "not_applicable": rest},
        [
            f"{len(done)} studies in {folder / 'index.md'}",
            *(f"not applicable: {study} needs {need} ({then})" for study, need, then in left),
        ],
    )
