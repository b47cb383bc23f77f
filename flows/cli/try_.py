"""`routeyard try PATH`: from somebody's answers to a page."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from routeyard.flows.cli.options import YARD, WrittenWorkspace
from routeyard.flows.cli.results import Output

if TYPE_CHECKING:
    from routeyard.pipelines.ingest.results import Results

#: Bootstrap resamples of a first page: `routeyard evaluate` takes five times as many.
RESAMPLES = 2_000


def command(
    path: Path,
    workspace: WrittenWorkspace = YARD,
    accept: list[str] | None = None,
    open_: Annotated[bool, typer.Option("--open/--no-open")] = True,
) -> Output:
    """Go from answers of models to a page: init, build, audit and evaluate in one step.

    Takes a CSV, JSONL or Parquet file, or a folder of logs, with one answer or score per
    question and model, in any layout that `routeyard init` reads. Nothing is asked of a model,
    and no embedding is computed: routers learn from the words of the questions.

    Answers that the audit calls `defective` stop it, exit 3: mend them, or keep a kind of finding
    with --accept, which the page says. What the recipe waives is printed with its count.

    Everything is written to WORKSPACE/try/NAME-DIGEST. The recipe there is the next step: edit
    it, and build it again.

    Examples:

        routeyard try answers.csv

        routeyard try answers.csv --accept infrastructure_errors

        routeyard try logs/ --workspace yard --no-open

    Args:
        path: File or folder of answers.
        accept: Kind of a finding of the audit that is kept as it is; again for more.
        open_: Open the page where a browser is there.
    """
    from routeyard.flows.audits.anything import audit_path, write_page
    from routeyard.flows.console import line
    from routeyard.pipelines.metering.audit import check_gate

    kinds = sorted({kind.removeprefix("audit:") for kind in accept or ()})
    for kind in kinds:
        check_gate(f"audit:{kind}", where="--accept")
    name = "-".join([path.resolve().stem, digest(path), *kinds])
    folder = workspace / "try" / name
    results = answers_at(path, folder)
    found = audit_path(path)
    grave = [(f"audit:{one.kind}", f"{one.about}: {one.says}")
             for one in found.findings if one.stops]  # fmt: skip
    accepted = {gate: says for gate, says in grave if gate.removeprefix("audit:") in kinds}
    recipe = recipe_of(path, folder, results, accepted)
    audited = write_page(found, folder / "audit")
    n = len(found.findings)
    line("audit", f"{found.verdict}, {n} finding{'s' if n != 1 else ''}: {audited}")
    again = f"routeyard try {path} --workspace {workspace}"
    _stop_at([one for one in grave if one[0] not in accepted], kinds, audited, recipe, again)
    built = _built(recipe, folder, kinds, again)
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


def _stop_at(
    grave: list[tuple[str, str]], kinds: list[str], where: object, recipe: Path, again: str
) -> None:
    """Stop at findings that were not accepted.

    Raises:
        GateFailed: names them, and the command that keeps them.
    """
    from routeyard.pipelines.errors import GateFailed

    if not grave:
        return
    says = "; ".join(f"{gate.removeprefix('audit:')}: {what}" for gate, what in grave[:3])
    more = f"; and {len(grave) - 3} more" if len(grave) > 3 else ""
    keep = sorted({*kinds, *(gate.removeprefix("audit:") for gate, _ in grave)})
    raise GateFailed(
        f"these answers are defective, and no page is made of them: {says}{more}",
        where=str(where),
        next_step=f"mend them, or the recipe {recipe} and build it; or keep them, which "
        f"the page will say: {again} " + " ".join(f"--accept {kind}" for kind in keep),
    )


def _built(recipe: Path, folder: Path, kinds: list[str], again: str) -> dict[str, Any]:
    """The build, with a waiver for each accepted kind that only the release's audit finds."""
    import yaml

    from routeyard.flows.build import run_build
    from routeyard.flows.console import line
    from routeyard.pipelines.errors import GateFailed

    try:
        built = run_build(str(recipe), str(folder))
    except GateFailed as error:
        found = [one.partition(": ") for one in error.findings if one.startswith("audit:")]
        grave = [(gate, says) for gate, _, says in found]
        if not grave:
            raise
        _stop_at([one for one in grave if one[0].removeprefix("audit:") not in kinds], kinds,
                 error.where, recipe, again)  # fmt: skip
        text = recipe.read_text(encoding="utf-8").rstrip("\n")
        listed = "" if yaml.safe_load(text)["release"].get("waivers") else "  waivers:\n"
        for gate, says in dict(grave).items():
            reason = json.dumps(f"Accepted as it is: {says}")
            listed += f"  - gate: {gate}\n    reason: {reason}\n"
        recipe.write_text(f"{text}\n{listed}", encoding="utf-8", newline="\n")
        built = run_build(str(recipe), str(folder))
    gates = {one["gate"] for one in yaml.safe_load(recipe.read_text("utf-8"))["release"].get(
        "waivers", ())}  # fmt: skip
    for kind in kinds:
        if f"audit:{kind}" not in gates:
            line("note", f"--accept {kind}: nothing was found of it, and nothing is waived")
    return built


def answers_at(path: Path, folder: Path) -> Results | None:
    """Answers of models at a path; None where their recipe is there already.

    Raises:
        BadInput: no answers of models are there, only questions.
    """
    from routeyard.flows.new_recipe.from_results import NoResults, recorded_results
    from routeyard.pipelines.errors import BadInput

    if _recipe_at(path, folder).exists():
        return None
    results = recorded_results(str(path), answers=True)
    if isinstance(results, NoResults):
        raise results.error or BadInput(
            results.doubt or "no answers or scores of models were found there",
            where=str(path),
            next_step=f"for questions: routeyard init mine.yaml --from {path}",
        )
    return results


def _recipe_at(path: Path, folder: Path) -> Path:
    return folder / f"{path.resolve().stem}.yaml"


def recipe_of(
    path: Path, folder: Path, results: Results | None, accepted: Mapping[str, str]
) -> Path:
    """The recipe of answers, written by `init` where it is not there yet."""
    from routeyard.flows.console import line
    from routeyard.flows.new_recipe.write import start_recipe

    recipe = _recipe_at(path, folder)
    if results is None:
        line("init", f"{recipe} (there already)")
        return recipe
    shutil.rmtree(folder, ignore_errors=True)  # what a run that was stopped before it left there
    made = start_recipe(recipe, str(path), given={}, results=results, near_duplicates=False,
                        accepted=accepted)  # fmt: skip
    line("init", f"{made.rows:,} rows: {made.pool}; scorer {made.scorer.scorer}")
    for one in (*made.lacks, *made.known):
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
