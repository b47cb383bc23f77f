"""Extensions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from routeyard.flows.cli.options import (
    CACHE,
    YARD,
    Embed,
    Output,
    Resamples,
    WrittenPath,
    WrittenWorkspace,
    comma_list,
)


def reproduce_command(
    paper: str,
    on: list[str] | None = None,
    data: Annotated[bool, typer.Option("--data")] = False,
    out: WrittenPath = Path("reproduced"),
    workspace: WrittenWorkspace = YARD,
    also: list[Path] | None = None,
    routers: str = "",
    encoders: str = "",
    search: bool | None = None,
    resamples: Resamples = 2_000,
    cache: Path = CACHE,
) -> Output:
    """Compute a paper's tables and figures beside its printed values.

    Each value has a verdict. A value on the paper's own data is `equal` (within the printed
    precision or the 95 % interval) or `differs`. What is missing is named per cell and the rest
    runs. Without releases the paper's recipes are rehearsed, which shows that everything runs.

    Examples:

        routeyard reproduce list

        routeyard reproduce confidence_router --out reproduced

        routeyard reproduce routing_plateau --on yard/releases/nine_by_30k/1.0.0 --out reproduced

    Args:
        paper: Paper; `list` names them.
        on: Release folder, or BENCHMARK=FOLDER; again for more.
        data: Build and use the recipes over ROUTEYARD_DATA that replace the paper's.
        out: Folder for page, JSON and studies; a run that was stopped goes on there.
        also: Tables beside the releases (descriptors, hidden states, tuned); again for more.
        routers: Of the paper's routers only these, commas between; all by default.
        encoders: Encoders of routers, commas between; the paper's that are here by default.
        search: The paper's search of settings and seeds, or each router's first setting, once;
            by default it searches on releases that are named.
    """
    from routeyard.papers.reproduction import as_json, listed, reproduce, said

    if paper == "list":
        rows = listed()
        return Output(
            rows,
            (
                f"{row['name']:<20} {row['printed']:>4} printed values in "
                f"{row['tables_and_figures']} tables and figures: {row['title']}"
                for row in rows
            ),
        )
    result = reproduce(
        paper, on or (), data=data, out=out, workspace=workspace, also=also or (),
        routers=comma_list(routers), encoders=comma_list(encoders), search=search,
        resamples=resamples, cache=cache,
    )  # fmt: skip
    return Output(as_json(result), said(result, out))


def study_command(
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
    """Make a paper's table or figure from your own release.

    It has intervals. Written as Parquet, Markdown and HTML with a plot; where the paper is about
    the same data, its printed values are beside ours. `pipelines/evaluate/studies/README.md` lists
    every table and figure of the papers.

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
    from functools import partial

    from routeyard.flows.evaluation import evaluate as studies
    from routeyard.flows.evaluation.released import out_folder, read_with, with_embeddings

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
    tables = read_with(where, also or [])
    folder = out_folder(where, out)
    context = studies.context_of(
        where,
        with_embeddings(tables, **how),
        scheme=scheme,
        pair=studies.parse_pair(pair),
        routers=tuple(router or ()),
        resamples=resamples,
        seed=seed,
        joined={studies.named(o)[0]: read_with(o, also or [], **how) for o in join or []},
        tested={studies.named(o)[0]: read_with(o, also or [], **how) for o in test_on or []},
        kept=partial(studies.store_in, cache),
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
