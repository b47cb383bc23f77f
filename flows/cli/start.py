"""Start."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from routeyard.flows.cli.build import build_command
from routeyard.flows.cli.options import (
    YARD,
    Json,
    Map,
    Models,
    OptionalWrittenPath,
    Output,
    Workspace,
    WrittenWorkspace,
    print_output,
    sealed_off,
)

if TYPE_CHECKING:
    from routeyard.flows.new_recipe.write import NewRecipe
    from routeyard.pipelines.ingest.results import Results

#: Bootstrap resamples of a first page: `routeyard evaluate` takes five times as many.
RESAMPLES = 2_000


def demo_command(
    workspace: WrittenWorkspace = YARD,
    real: Annotated[bool, typer.Option("--real")] = False,
    scale: float | None = None,
    open_: Annotated[bool, typer.Option("--open/--no-open")] = True,
) -> Output:
    """Build a small benchmark end to end, offline and without a key.

    A few hundred questions that ship with Routeyard are asked, through the real
    client, of a simulated pool behind an HTTP server on this machine; answers are
    labelled, near-duplicates found with real sentence embeddings, and a release is
    written, and a page of it with the reference routers. The pool is simulated: the figures say
    nothing about real models.

    With --real the pool is SmolLM2-135M-Instruct, asked in four ways (`real_tiny`); its weights
    come from the package index, once. About a hundred questions; `routeyard build real_tiny`
    asks three times as many.

    Stop it at any time and run it again: it continues where it was.

    Examples:

        routeyard demo --workspace yard

        routeyard demo --real --workspace yard

    Args:
        real: Ask a real model, on this machine: SmolLM2-135M.
        open_: Open the page where a browser is there.
        scale: Share of the questions, above 0 to 1; only with --real, default 0.3.
    """
    recipe = "demo"
    if real:
        from routeyard.flows.console import line
        from routeyard.flows.demo.real import SCALE, recipe_of_what_is_here

        recipe, left = recipe_of_what_is_here(workspace)
        scale = SCALE if scale is None else scale
        if left:
            line("note", left)
    elif scale is not None:
        from routeyard.schemas.errors import BadInput

        raise BadInput("--scale belongs to --real", next_step="write `routeyard demo --real`")
    built = build_command(recipe, workspace, scale=scale)
    page, _ = page_of(Path(built.data["release"]["path"]), workspace)
    show(page, open_)
    return Output({**built.data, "page": page}, lambda: _print(built, page))


def _print(built: Output, page: Path) -> None:
    print_output(built, False)
    print(f"\npage      {page}")


def try_command(
    path: Path,
    map_: Map = None,
    models: Models = None,
    workspace: WrittenWorkspace = YARD,
    accept: list[str] | None = None,
    open_: Annotated[bool, typer.Option("--open/--no-open")] = True,
) -> Output:
    """Go from answers of models to a page, without a recipe.

    That is init, build, audit and evaluate in one step. Takes a CSV, JSONL or Parquet file, or a
    folder of logs, with one answer or score per question and model, in any layout that `routeyard
    init` reads. Nothing is asked of a model, and no embedding is computed: routers learn from the
    words of the questions.

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
        map_: Which column is what: `arm=COLUMN,question=COLUMN,score=COLUMN`, as `audit` takes it.
        models: Columns of a wide table that hold the scores of one model each.
        accept: Kind of a finding of the audit that is kept as it is; again for more.
        open_: Open the page where a browser is there.
    """
    from routeyard.flows.audits import audit_path, write_page
    from routeyard.flows.console import line
    from routeyard.pipelines.audit.metering import check_gate
    from routeyard.pipelines.ingest.mapping import parse_map
    from routeyard.pipelines.ingest.results import ROLES, as_map

    kinds = sorted({kind.removeprefix("audit:") for kind in accept or ()})
    for kind in kinds:
        check_gate(f"audit:{kind}", where="--accept")
    mapping = parse_map(map_, ROLES, models)
    said = [hashlib.sha256(str(mapping).encode()).hexdigest()[:8]] if mapping else []
    name = "-".join([path.resolve().stem, digest(path), *said, *kinds])
    folder = workspace / "try" / name
    results = answers_at(path, folder, mapping)
    result = audit_path(path, mapping)
    grave = [(f"audit:{finding.kind}", f"{finding.about}: {finding.says}")
             for finding in result.findings if finding.stops]  # fmt: skip
    accepted = {gate: says for gate, says in grave if gate.removeprefix("audit:") in kinds}
    recipe = recipe_of(path, folder, results, accepted)
    audited = write_page(result, folder / "audit")
    n = len(result.findings)
    line("audit", f"{result.verdict}, {n} finding{'s' if n != 1 else ''}: {audited}")
    again = f"routeyard try {path} --workspace {workspace}"
    again = f"{again} {as_map(mapping)}".rstrip()
    _stop_at([item for item in grave if item[0] not in accepted], kinds, audited, recipe, again)
    built = _built(recipe, folder, kinds, again)
    release = Path(built["release"]["path"])
    page, ranking = page_of(release, folder)
    show(page, open_)
    data = {"page": page, "audit": {"verdict": result.verdict, "page": audited}}
    data |= {"release": release, "recipe": recipe, "ranking": ranking}
    lines = [
        f"audit   {audited} ({result.verdict})",
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
    from routeyard.pipelines.common.files import sha256
    from routeyard.schemas.errors import BadInput

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
    files = sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
    lines = [f"{file.relative_to(path)} {sha256(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


def _stop_at(
    grave: list[tuple[str, str]], kinds: list[str], where: object, recipe: Path, again: str
) -> None:
    """Stop at findings that were not accepted.

    Raises:
        GateFailed: names them, and the command that keeps them.
    """
    from routeyard.pipelines.common.errors import GateFailed

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
    from routeyard.pipelines.common.errors import GateFailed

    try:
        built = run_build(str(recipe), str(folder))
    except GateFailed as error:
        results = [item.partition(": ") for item in error.findings if item.startswith("audit:")]
        grave = [(gate, says) for gate, _, says in results]
        if not grave:
            raise
        _stop_at([item for item in grave if item[0].removeprefix("audit:") not in kinds], kinds,
                 error.where, recipe, again)  # fmt: skip
        text = recipe.read_text(encoding="utf-8").rstrip("\n")
        listed = "" if yaml.safe_load(text)["release"].get("waivers") else "  waivers:\n"
        for gate, says in dict(grave).items():
            reason = json.dumps(f"Accepted as it is: {says}")
            listed += f"  - gate: {gate}\n    reason: {reason}\n"
        recipe.write_text(f"{text}\n{listed}", encoding="utf-8", newline="\n")
        built = run_build(str(recipe), str(folder))
    gates = {item["gate"] for item in yaml.safe_load(recipe.read_text("utf-8"))["release"].get(
        "waivers", ())}  # fmt: skip
    for kind in kinds:
        if f"audit:{kind}" not in gates:
            line("note", f"--accept {kind}: nothing was found of it, and nothing is waived")
    return built


def answers_at(path: Path, folder: Path, mapping: Mapping[str, str]) -> Results | None:
    """Answers of models at a path; None where their recipe is there already.

    Raises:
        BadInput: no answers of models are there, only questions.
    """
    from routeyard.flows.new_recipe.from_results import NoResults, recorded_results
    from routeyard.schemas.errors import BadInput

    if _recipe_at(path, folder).exists():
        return None
    results = recorded_results(str(path), mapping, answers=True)
    if isinstance(results, NoResults):
        raise results.error or BadInput(
            results.doubt or "no answers or scores of models were found there",
            where=str(path),
            next_step=f"for questions: routeyard init mine.yaml --from {path}; for answers without "
            "scores, with --recording FILE beside it, the same file where it states the references",
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
    made = start_recipe(recipe, str(path), fields={}, results=results, near_duplicates=False,
                        accepted=accepted)  # fmt: skip
    line("init", f"{made.rows:,} rows: {made.pool}; scorer {made.scorer.scorer}")
    for item in (*made.lacks, *made.known):
        line("note", item)
    return recipe


def page_of(release: Path, folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """The page of a release with the reference routers on it, and their ranking.

    A release without test questions has a page without routers, which a line says.
    """
    from routeyard.datacards.site.release import slug
    from routeyard.flows.console import line
    from routeyard.flows.evaluation.evaluate import evaluate_into
    from routeyard.flows.site import write
    from routeyard.pipelines.evaluate.settings import EvaluationSettings
    from routeyard.schemas.errors import BadInput

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


def init_command(
    recipe: Annotated[Path, typer.Argument(callback=sealed_off)],
    origin: Annotated[str | None, typer.Option("--from")] = None,
    question: str | None = None,
    references: str | None = None,
    choices: str | None = None,
    scorer: str | None = None,
    provider: str | None = None,
    key_env: str | None = None,
    model: list[str] | None = None,
    recording: str | None = None,
    config: str | None = None,
    split: str | None = None,
    map_: Map = None,
    models: Models = None,
    as_json: Json = False,
) -> Output:
    """Write a commented recipe for your own questions; it builds as it is.

    Columns are guessed from names (in several languages) and contents, the scorer is tried
    on some references, and every guess is shown and written into the recipe as a comment. On a
    terminal three questions are asked, with the guess as the answer; without one, none.

    Reads CSV, JSONL, JSON and Parquet. Without a provider (--provider, OPENAI_BASE_URL,
    OPENROUTER_API_KEY or OPENAI_API_KEY) the pool is simulated: it costs nothing, and shows
    the whole way to a release. Answers that exist already come with --recording (one row
    per answer; the same file where its rows state question and reference as well).

    Results that are scored already need no more than their file or folder, in any layout: a
    table with a row per answer or a column per model, maps and lists of ids in JSON, a file
    per answer, logs of Inspect, lm-evaluation-harness and HELM. They are written into
    NAME-data beside the recipe; what a person should confirm is listed. Figures of many
    questions each (leaderboards) are refused.

    Examples:

        routeyard init mine.yaml --from questions.csv

        routeyard init mine.yaml --from data/ --provider https://host/v1 --key-env MY_KEY

        routeyard init gsm8k.yaml --from openai/gsm8k --config main

        routeyard init mine.yaml --from questions.csv --recording answers.csv

        routeyard init mine.yaml --from results/

    Args:
        recipe: Recipe to write; must be new.
        origin: Your questions or results: a file, a folder, or a hub dataset's id.
        question: Column of the questions.
        references: Column of the right answers.
        choices: Column of the options.
        scorer: Scorer; else one is suggested.
        provider: OpenAI-compatible address; its model list and prices fill the pool.
        key_env: Environment variable that holds the provider's key.
        model: A model of the provider; again for more.
        recording: Answers you have already, one row each; its models fill the pool.
        config: Configuration of a hub dataset.
        split: Split of a hub dataset.
        map_: Which column of results is what: `arm=COLUMN,question=COLUMN,score=COLUMN`, as `audit`
            takes it.
        models: Columns of wide results that hold the scores of one model each.
    """
    from routeyard.flows.new_recipe.write import start_recipe
    from routeyard.pipelines.ingest.mapping import parse_map
    from routeyard.pipelines.ingest.results import ROLES
    from routeyard.schemas.errors import BadInput

    fields = {"question": question, "references": references, "choices": choices}
    if origin is None:
        if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise BadInput(
                "no questions are given", next_step="--from FILE, FOLDER or a hub dataset's id"
            )
        origin = typer.prompt("Your questions (file, folder or hub dataset)")
        provider = provider or typer.prompt("Provider's address", default="") or None
        if provider and key_env is None:
            key_env = typer.prompt("Variable that holds its key", default="") or None
    done = start_recipe(
        recipe,
        str(origin),
        fields={name: column for name, column in fields.items() if column},
        scorer=scorer,
        provider=provider,
        key_env=key_env,
        models=model or (),
        config=config,
        split=split,
        recording=recording,
        mapping=parse_map(map_, ROLES, models),
    )
    tried = {n: getattr(done.scorer, n) for n in ("scorer", "why", "right", "wrong", "tried")}
    data: dict[str, Any] = {
        "recipe": str(recipe),
        "fields": done.guess.fields,
        "why": done.guess.reasons,
    }
    data |= {**tried, "pool": done.pool, "lacks": done.lacks, "unread": done.unread}
    data |= {"known_issues": done.known, "waivers": done.waivers}
    data["unused"] = done.guess.unused
    return Output(data, _lines(done))


def _lines(done: NewRecipe) -> Iterator[str]:
    guess, scorer = done.guess, done.scorer
    yield f"{done.rows:,} rows looked at"
    shown = [("not read", item) for item in done.unread]
    shown += [("left out", item) for item in done.left_out]
    for name, value in guess.fields.items():
        columns = ", ".join(value) if isinstance(value, list) else value
        shown.append((name, f"{columns}   ({guess.reasons[name]})"))
    if guess.unused:
        shown.append(("not used", ", ".join(guess.unused)))
    shown.append(("scorer", f"{scorer.scorer}   ({scorer.why})"))
    if scorer.tried:
        shown.append(
            (
                "",
                f"{scorer.right} of {scorer.tried} references read as right "
                f"answers to their own question, {scorer.wrong} to another's",
            )
        )
    yield from (f"  {name:<11} {text}" for name, text in [*shown, ("pool", done.pool)])
    yield from (f"note: {item}" for item in done.known)
    yield from (f"waived: {waiver['gate']}: {waiver['reason']}" for waiver in done.waivers)
    yield f"written: {done.recipe}"
    yield from (f"lacks: {lack}" for lack in done.lacks)
    first = "" if "question" in guess.fields else "add fields.question to the recipe; "
    yield f"next: {first}routeyard recipe check {done.recipe}; routeyard build {done.recipe}"


def doctor_command(workspace: Workspace = YARD) -> Output:
    """List what works on this machine, and how to repair what does not.

    Environment and versions, keys by name (never their values), Prefect, the ledger, the disk
    and the sandbox for code. Asks no model and changes nothing. Exits 1 when something that
    every build needs does not work.

    Example:

        routeyard doctor --workspace yard
    """
    from routeyard.flows.doctor import examine

    rows = examine(workspace)
    lines = []
    for row in rows:
        lines.append(f"{row['state']:<7} {row['what']:<12} {row['says']}")
        if row["next"]:
            lines.append(f"{'':<21}next: {row['next']}")
    return Output(rows, lines, exit_code=int(any(row["state"] == "broken" for row in rows)))


def recipe_check_command(
    recipe: str,
    print_: Annotated[bool, typer.Option("--print")] = False,
    defaults: Annotated[bool, typer.Option("--defaults")] = False,
) -> Output:
    """List all faults of a recipe at once, each with its line.

    Exits 2 when there are any. Keys and values, rules and scorers, the pool file, and local
    sources: a file that is not there, a column that does not exist, a `where` that matches nothing.
    Recorded answers are read as a build reads them: columns that no row has and models that are not
    in the pool, of all recordings; then, once these and the questions are right, ids that match no
    question or occur twice, and what the metering audit would stop. Hub datasets and providers are
    not asked.

    With --print the recipe is printed instead, as YAML without keys that have their default, and
    with --defaults with every key: curation rules show the defaults of their parameters, and
    sources from the catalog are written out. The output is itself a recipe.

    Examples:

        routeyard recipe check my_benchmark.yaml

        routeyard recipe check zeroeval_gsm --defaults

    Args:
        print_: Print the recipe, without keys that have their default.
        defaults: Print the recipe with every key.
    """
    if print_ or defaults:
        return _printed(recipe, defaults)
    from routeyard.flows.recipe_check import faults

    notes: list[str] = []
    result = faults(recipe, notes)
    counted = f"{len(result)} fault{'s' if len(result) > 1 else ''}" if result else "no fault"
    lines = [*(f"note: {note}" for note in notes), *map(str, result), f"{recipe}: {counted}"]
    return Output(result, lines, exit_code=2 if result else 0)


def recipe_schema_command(
    page: Annotated[bool, typer.Option("--page")] = False,
    pool: Annotated[bool, typer.Option("--pool")] = False,
    out: OptionalWrittenPath = None,
) -> Output:
    """Print the JSON Schema of a recipe, or every key as a page.

    It says of each key what it means, its default and limits. An editor that speaks YAML completes
    and checks a recipe whose first line names the file.

    Examples:

        routeyard recipe schema --out recipe.schema.json

        # yaml-language-server: $schema=recipe.schema.json

        routeyard recipe schema --page

    Args:
        page: Print a page for people, mappings of sources included.
        pool: The schema of a pool file.
        out: Write it to this file.
    """
    import json

    from routeyard.pipelines.ingest.queries import page as mappings
    from routeyard.schemas.recipe.reference import json_schema, pool_schema, reference

    schema = pool_schema() if pool else json_schema()
    text = (
        "\n".join([reference(), mappings()])
        if page
        else json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
    )
    if out is None:
        return Output(schema, text.removesuffix("\n"))
    out.write_text(text, encoding="utf-8", newline="\n")
    return Output({"path": out}, str(out))


def _printed(recipe: str, defaults: bool) -> Output:
    """A recipe as YAML, which is itself a recipe."""
    import yaml

    from routeyard.flows.recipe import load, with_defaults

    loaded = load(recipe)[0]
    if defaults:
        shown = with_defaults(loaded)
    else:
        shown = loaded.model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)
    return Output(shown, text.rstrip("\n"))
