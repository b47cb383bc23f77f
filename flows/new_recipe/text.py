"""The text of a recipe that `routeyard init` writes: what was guessed stands in it as comments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from flows.new_recipe.recorded import Answers
from pipelines.ingest.guessing.scorers import ScorerSuggestion
from pipelines.ingest.guessing.values import Guess


def recipe_text(
    name: str,
    source: Mapping[str, Any],
    answers: Answers,
    guess: Guess,
    scorer: ScorerSuggestion,
    lacks: Sequence[str],
    empty: int,
    rows: int,
) -> str:
    """The recipe with what was guessed as comments."""
    recorded = answers.collect.get("provider") == "recorded"
    how = (
        "What they answered. `routeyard recipe check FILE` reads it, and asks nobody."
        if recorded
        else "How they are asked. `routeyard plan FILE` says what it will cost."
    )
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
    release: dict[str, Any] = {"title": name, "description": "", "license": "NOASSERTION"}
    release |= {"waivers": answers.waivers} if answers.waivers else {}
    parts = [
        "\n".join(head),
        _yaml({"name": name, "version": "1.0.0"}),
        "# Where the questions come from. What the columns were taken for:\n"
        + "\n".join(about)
        + "\n"
        + _yaml({"sources": [dict(source)]}),
        f"# Which models answer: {answers.words}.\n" + _yaml({"pool": answers.pool}),
        f"# {how}\n" + _yaml({"collect": answers.collect}),
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
