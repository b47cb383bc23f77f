"""`routeyard init`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from routeyard.flows.cli.options import Json, sealed_off
from routeyard.flows.cli.results import Output

if TYPE_CHECKING:
    from routeyard.flows.new_recipe.write import NewRecipe


def command(
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
    as_json: Json = False,
) -> Output:
    """Write a commented recipe for your own questions; it builds as it is.

    Columns are guessed from names (in several languages) and contents, the scorer is tried
    on some references, and every guess is shown and written into the recipe as a comment. On a
    terminal three questions are asked, with the guess as the answer; without one, none.

    Reads CSV, JSONL, JSON and Parquet. Without a provider (--provider, OPENAI_BASE_URL,
    OPENROUTER_API_KEY or OPENAI_API_KEY) the pool is simulated: it costs nothing, and shows
    the whole way to a release. Answers that exist already come with --recording (one row
    per answer).

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
    """
    import sys

    from routeyard.flows.new_recipe.write import start_recipe
    from routeyard.pipelines.errors import BadInput

    given = {"question": question, "references": references, "choices": choices}
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
        given={name: column for name, column in given.items() if column},
        scorer=scorer,
        provider=provider,
        key_env=key_env,
        models=model or (),
        config=config,
        split=split,
        recording=recording,
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
    shown = [("not read", one) for one in done.unread]
    shown += [("left out", one) for one in done.left_out]
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
    yield from (f"note: {one}" for one in done.known)
    yield from (f"waived: {one['gate']}: {one['reason']}" for one in done.waivers)
    yield f"written: {done.recipe}"
    yield from (f"lacks: {one}" for one in done.lacks)
    first = "" if "question" in guess.fields else "add fields.question to the recipe; "
    yield f"next: {first}routeyard recipe check {done.recipe}; routeyard build {done.recipe}"
