"""The text of a recipe that `routeyard init` writes, with every guess as a comment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.flows.new_recipe.recorded import AnswerSource
from routeyard.pipelines.ingest.guessing.guess import Guess
from routeyard.pipelines.ingest.guessing.scorers import ScorerSuggestion
from routeyard.schemas.near import SIMILARITY
from routeyard.schemas.untrusted_text import in_line

_TEXT = Path(__file__).with_name("recipe.txt").read_text(encoding="utf-8")


def recipe_text(
    name: str,
    source: Mapping[str, Any],
    answers: AnswerSource,
    guess: Guess,
    scorer: ScorerSuggestion,
    lacks: Sequence[str],
    left_out: Sequence[str],
    near_duplicates: bool = True,
) -> str:
    """The recipe with what was guessed as comments."""
    about = [f"{name}: {why}." for name, why in guess.reasons.items()]
    about.append(f"scorer {scorer.scorer}: {scorer.why}{tried(scorer)}.")
    if guess.unused:
        about.append(f"Columns that are not used: {', '.join(guess.unused)}.")
    about += [f"{one}." for one in left_out]
    release: dict[str, Any] = {"title": name, "description": "", "license": "NOASSERTION"}
    release |= {"known_issues": answers.known_issues} if answers.known_issues else {}
    # Ids are not embedded: they would be near-duplicates of each other.
    looks = answers.has_texts and near_duplicates
    curate = [{"rule": "dedup", "threshold": SIMILARITY}] if looks else []
    return _TEXT.format(
        lacks="".join(f"# LACKS: {in_line(one)}\n" for one in lacks),
        head=_yaml({"name": name, "version": "1.0.0"}),
        about="\n".join(f"# {in_line(line)}" for line in about),
        sources=_yaml({"sources": [source]}),
        words=in_line(answers.words),
        pool=_yaml({"pool": answers.pool}),
        how="What they answered. `routeyard recipe check FILE` reads it, and asks nobody."
        if answers.collect.get("provider") == "recorded"
        else "How they are asked. `routeyard plan FILE` prints what it will cost.",
        collect=_yaml({"collect": answers.collect}),
        label=""
        if answers.unreadable is None
        else "# Answers that no scorer can read; without this key they are undecided.\n"
        + _yaml({"label": {"default": {"unreadable": answers.unreadable}}})
        + "\n",
        curate=_yaml({"curate": curate}),
        split=_yaml({"split": {"train": 0.5, "validation": 0.1, "test": 0.4, "seed": 0}}),
        release=_yaml(
            {"release": {**release, **({"waivers": answers.waivers} if answers.waivers else {})}}
        ),
    )


def tried(scorer: ScorerSuggestion) -> str:
    """On how many rows a scorer was tried, in brackets; empty where it was not."""
    if not scorer.tried:
        return ""
    return (
        f" ({scorer.right} of {scorer.tried} references read as right answers to their own "
        f"question, {scorer.wrong} to another's)"
    )


def _yaml(content: Any) -> str:
    import yaml

    return yaml.safe_dump(
        json.loads(json.dumps(content)), sort_keys=False, allow_unicode=True, width=96
    )
