"""`routeyard init`: a commented recipe for someone's own questions, that builds as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.actions.start.look import look, one_kind
from flows.actions.start.pool import pool_of
from pipelines.errors import BadInput
from pipelines.ingest.guess import guess_columns
from pipelines.ingest.guess_values import Guess, values
from pipelines.ingest.suggest import Suggested, suggest


@dataclass(frozen=True)
class Started:
    """What was guessed and written; `lacks` says what a person has to add before it builds, and
    `unread` which files of the folder were left aside."""

    recipe: Path
    rows: int
    guess: Guess
    scorer: Suggested
    pool: str
    lacks: list[str]
    unread: list[str]


def start_recipe(
    recipe: Path,
    origin: str,
    *,
    given: Mapping[str, str],
    scorer: str | None = None,
    provider: str | None = None,
    key_env: str | None = None,
    models: Sequence[str] = (),
    config: str | None = None,
    split: str | None = None,
) -> Started:
    """Look at the questions, guess, and write the recipe.

    Args:
        origin: A file, a folder of files of one kind, or the id of a hub dataset.
        given: field → column, where a person knows better.
        provider: Address of an OpenAI-compatible provider; its model list fills the pool.

    Raises:
        BadInput: the recipe exists, nothing can be read, or a column does not exist.
    """
    if recipe.exists():
        raise BadInput(
            f"{recipe} exists already and is not overwritten",
            where=str(recipe),
            next_step="name another file, or remove it",
        )
    source, rows, unread = look(origin, recipe, config, split)
    known = {str(name) for row in rows for name in row}
    for name, column in given.items():
        if column not in known and "{{" not in column:
            raise BadInput(
                f"there is no column {column!r}",
                where=f"{origin}, --{name}",
                next_step="columns: " + ", ".join(sorted(known)),
            )
    guess = guess_columns(rows, given)
    one_kind(rows, guess.fields.get("question"), origin)
    suggested = _scorer(guess, rows, scorer)
    pool, words = pool_of(provider, key_env, models)
    lacks = _lacks(guess, suggested, known)
    source["scorer"] = suggested.scorer
    source["fields"] = guess.fields
    empty = _without_reference(guess, suggested, rows)
    if empty:
        source["missing_reference"] = "remove"
    name = re.sub(r"[^a-z0-9_.-]+", "-", recipe.stem.lower()).strip("-_.") or "benchmark"
    text = _text(name, source, pool, guess, suggested, words, lacks, empty, len(rows))
    recipe.parent.mkdir(parents=True, exist_ok=True)
    recipe.write_text(text, encoding="utf-8", newline="\n")
    return Started(recipe, len(rows), guess, suggested, words, lacks, unread)


def _scorer(guess: Guess, rows: list[dict[str, Any]], named: str | None) -> Suggested:
    if named is not None:
        from pipelines.scorers import SCORERS

        if named != "none":
            SCORERS.get(named, where="--scorer")
        return Suggested(named, "as given")
    if "question" not in guess.fields or "references" not in guess.fields:
        return Suggested("none", "no column holds the answers")
    questions = [str(v or "") for v in values(guess.fields["question"], rows)]
    references = [_texts(v) for v in values(guess.fields["references"], rows)]
    mapped = guess.fields.get("choices")
    choices = [_options(v) for v in values(mapped, rows)] if mapped else [[] for _ in rows]
    holes = sum(any(not text.strip() for text in listed) for listed in choices)
    if holes:
        guess.doubts.append(
            f"the options: {holes} of {len(rows)} rows have an option without a text before others "
            "(fields.choices)"
        )
    return suggest(questions, references, choices)


def _texts(value: Any) -> list[str]:
    if value is None:
        return []
    listed = value if isinstance(value, list | tuple) else [value]
    return [str(one) for one in listed if one is not None]


def _options(value: Any) -> list[str]:
    """Options at their places; empty ones at the end are padding."""
    listed = value if isinstance(value, list | tuple) else [value]
    found = ["" if one is None else str(one) for one in listed]
    while found and not found[-1].strip():
        found.pop()
    return found


def _without_reference(guess: Guess, scorer: Suggested, rows: list[dict[str, Any]]) -> int:
    if scorer.scorer == "none" or "references" not in guess.fields:
        return 0
    found = [_texts(v) for v in values(guess.fields["references"], rows)]
    return sum(not any(text.strip() for text in texts) for texts in found)


def _lacks(guess: Guess, scorer: Suggested, columns: set[str]) -> list[str]:
    told = ", ".join(sorted(columns))
    found = [f"a look at {doubt}" for doubt in guess.doubts]
    if "question" in guess.lacks:
        found.append(f"no column looks like questions: name it with --question ({told})")
    if scorer.scorer == "none":
        found.append(
            f"no column holds the answers: name it with --references ({told}), or a judge under "
            "label.judges and label.default.then"
        )
    if scorer.scorer == "mcq" and scorer.tried and scorer.right < scorer.tried * 0.9:
        found.append(
            f"the answers are not the letters of the options ({scorer.right} of {scorer.tried} "
            "fit): map fields.references to the letter"
        )
    return found


def _text(
    name: str,
    source: Mapping[str, Any],
    pool: Mapping[str, Any],
    guess: Guess,
    scorer: Suggested,
    words: str,
    lacks: Sequence[str],
    empty: int,
    rows: int,
) -> str:
    """The recipe with what was guessed as comments."""
    simulated = any(model.get("simulated") for model in pool["models"])
    head = [
        "# Written by `routeyard init`. `routeyard recipe schema --page` explains every key.",
        "# Next: routeyard recipe check FILE; routeyard plan FILE; routeyard build FILE",
        *(f"# LACKS: {one}" for one in lacks),
    ]
    about = [f"# {name}: {why}." for name, why in guess.reasons.items()]
    tried = (
        f" ({scorer.right} of {scorer.tried} references read as right answers to their own "
        f"question, {scorer.wrong} to another's)"
        if scorer.tried
        else ""
    )
    about.append(f"# scorer {scorer.scorer}: {scorer.why}{tried}.")
    if guess.unused:
        about.append(f"# Columns that are not used: {', '.join(guess.unused)}.")
    if empty:
        about.append(f"# {empty} of {rows} rows looked at have no answer: left out, and listed.")
    waivers = []
    if any(model.get("price_in") is None for model in pool["models"]):
        reason = "The provider lists no prices; fill in price_in and price_out to know the cost."
        waivers = [{"gate": "metering:price_unknown", "reason": reason}]
    if simulated:
        reason = "The simulated pool answers on this machine; its figures say nothing of models."
        waivers = [{"gate": "metering:latency", "reason": reason}]
    release: dict[str, Any] = {"title": name, "description": "", "license": "NOASSERTION"}
    release |= {"waivers": waivers} if waivers else {}
    parts = [
        "\n".join(head),
        _yaml({"name": name, "version": "1.0.0"}),
        "# Where the questions come from. What the columns were taken for:\n"
        + "\n".join(about)
        + "\n"
        + _yaml({"sources": [dict(source)]}),
        f"# Which models are asked: {words}.\n" + _yaml({"pool": dict(pool)}),
        "# How they are asked. `routeyard plan FILE` says what it will cost.\n"
        + _yaml({"collect": {"max_tokens": 1024, "temperature": 0.0, "seed": 0}}),
        "# Questions that nearly repeat each other stay in one split and are told.\n"
        + _yaml({"curate": [{"rule": "dedup", "threshold": 0.999}]}),
        _yaml({"split": {"train": 0.5, "validation": 0.1, "test": 0.4, "seed": 0}}),
        "# What the card says. State the licence of your questions.\n"
        + _yaml({"release": release}),
    ]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _yaml(content: Any) -> str:
    import yaml

    return yaml.safe_dump(
        json.loads(json.dumps(content)), sort_keys=False, allow_unicode=True, width=96
    )
