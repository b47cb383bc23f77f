"""`routeyard try PATH`: from somebody's answers to a page."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from routeyard.flows.cli.options import YARD, WrittenWorkspace
from routeyard.flows.cli.results import Output

#: Bootstrap resamples of a first page: `routeyard evaluate` takes five times as many.
RESAMPLES = 2_000


def command(
    path: Path,
    workspace: WrittenWorkspace = YARD,
    open_: Annotated[bool, typer.Option("--open/--no-open")] = True,
) -> Output:
    """Go from answers of models to a page: init, build, audit and evaluate in one step.

    Takes a CSV, JSONL or Parquet file, or a folder of logs, with one answer or score per
    question and model, in any layout that `routeyard init` reads. Nothing is asked of a model,
    and no embedding is computed: routers learn from the words of the questions.

    Everything is written to WORKSPACE/try/NAME-DIGEST. The recipe there is the next step: edit
    it, and build it again.

    Examples:

        routeyard try answers.csv

        routeyard try logs/ --workspace yard --no-open

    Args:
        path: File or folder of answers.
        open_: Open the page where a browser is there.
    """
    from routeyard.flows.audits.anything import audit_path, write_page
    from routeyard.flows.build import run_build
    from routeyard.flows.console import line

    folder = workspace / "try" / f"{path.resolve().stem}-{digest(path)}"
    recipe = recipe_of(path, folder)
    found = audit_path(path)
    audited = write_page(found, folder / "audit")
    n = len(found.findings)
    line("audit", f"{found.verdict}, {n} finding{'s' if n != 1 else ''}: {audited}")
    built = run_build(str(recipe), str(folder))
    release = Path(built["release"]["path"])
    page, ranking = page_of(release, folder)
    show(page, open_)
    data = {"page": page, "audit": {"verdict": found.verdict, "page": audited}}
    data |= {"release": release, "recipe": recipe, "ranking": ranking}
    lines = [
        f"audit   {audited} ({found.verdict})",
        f"page    {page}",
        f"recipe  {recipe}",
        f"next    edit the recipe, then: routeyard build {recipe} --workspace {workspace}",
    ]
    return Output(data, lines)


def digest(path: Path) -> str:
    """Eight letters that change with any file there: other answers never meet older results.

    Raises:
        BadInput: nothing is there.
    """
    from routeyard.pipelines.errors import BadInput
    from routeyard.pipelines.io.files import sha256

    if not path.exists():
        raise BadInput(
            "there is nothing to try", where=str(path), next_step="name a file or folder of answers"
        )
    if (path / "manifest.json").is_file():
        raise BadInput(
            "this is a release, not answers of models",
            where=str(path),
            next_step=f"routeyard evaluate {path} --out results; "
            f"routeyard site {path} --results results --out site",
        )
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    told = [f"{one.relative_to(path)} {sha256(one)}" for one in files]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:8]


def recipe_of(path: Path, folder: Path) -> Path:
    """The recipe of answers, written by `init` where it is not there yet.

    Raises:
        BadInput: no answers of models are there, only questions.
    """
    from routeyard.flows.console import line
    from routeyard.flows.new_recipe.from_results import NoResults, recorded_results
    from routeyard.flows.new_recipe.write import start_recipe
    from routeyard.pipelines.errors import BadInput

    recipe = folder / f"{path.resolve().stem}.yaml"
    if recipe.exists():
        line("init", f"{recipe} (there already)")
        return recipe
    shutil.rmtree(folder, ignore_errors=True)  # what a run that was stopped before it left there
    results = recorded_results(str(path), answers=True)
    if isinstance(results, NoResults):
        raise results.error or BadInput(
            results.doubt or "no answers or scores of models were found there",
            where=str(path),
            next_step=f"for questions: routeyard init mine.yaml --from {path}",
        )
    made = start_recipe(recipe, str(path), given={}, results=results, near_duplicates=False)
    line("init", f"{made.rows:,} rows: {made.pool}; scorer {made.scorer.scorer}")
    for one in made.lacks:
        line("note", one)
    return recipe


def page_of(release: Path, folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """The page of a release with the reference routers on it, and their ranking.

    A release without test questions has a page without routers, which a line says.
    """
    from routeyard.datacards.site.release import slug
    from routeyard.flows.console import line
    from routeyard.flows.evaluation.evaluate import evaluate_into
    from routeyard.flows.site import write
    from routeyard.pipelines.errors import BadInput
    from routeyard.pipelines.experiment.settings import EvaluationSettings

    results = folder / "results" / release.parent.name / release.name / "reference-routers"
    settings = EvaluationSettings(pair_routers=False, embed=True, resamples=RESAMPLES)
    ranking: list[dict[str, Any]] = []
    try:
        done, _, _ = evaluate_into(
            release, results, None, settings,
            certificate=False, page=False, cache=folder / "cache" / "embeddings",
        )  # fmt: skip
        ranking = [dict(row) for row in done.ranking]
    except BadInput as error:
        line("note", f"no routers were compared: {error.what}")
    index = write([release], folder / "pages", results=[results])
    # Pages of other releases of the workspace are beside it.
    own = index.parent / slug(release.parent.name) / slug(release.name) / "index.html"
    return own, ranking


def show(page: Path, wanted: bool) -> None:
    """Open a page where a person sits at a terminal with a browser."""
    import webbrowser

    screen = sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
    if wanted and screen and sys.stdout.isatty():
        webbrowser.open(page.resolve().as_uri())
