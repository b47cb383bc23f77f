"""What a card says of answers that were recorded elsewhere: nobody here sent their prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def recorded_words(recipe: Mapping[str, Any], figures: Mapping[str, Any]) -> list[str]:
    """Sentences for card and pages; none where the models were asked.

    Args:
        recipe: As the manifest holds it.
        figures: Figures of the stages; those of `collect` count what the import left open.
    """
    collect = recipe.get("collect") or {}
    if collect.get("provider") != "recorded":
        return []
    told = figures.get("collect") or {}
    rows = [row for row in told.get("recorded") or () if isinstance(row, Mapping)]
    prompts = sum(int(row.get("prompts") or 0) for row in rows)
    sent = (
        f"The recording states what was sent for {prompts:,} answers; it was compared with the "
        "questions and is not kept."
        if prompts
        else "What the models were sent is not known."
    )
    return [
        "The answers were recorded elsewhere and imported: nothing was sent for this release. "
        f"{sent} `queries.prompt` is {_prompt(recipe)}, no record of what was sent.",
        *(f"{note}." for note in map(str, told.get("notes") or ())),
    ]


def _prompt(recipe: Mapping[str, Any]) -> str:
    sources = recipe.get("sources") or ()
    stated = [str(one["name"]) for one in sources if (one.get("fields") or {}).get("prompt")]
    made = "what Routeyard would send"
    if not stated:
        return made
    as_stated = f"the text that {', '.join(stated)} states"
    return as_stated if len(stated) == len(sources) else f"{as_stated}, else {made}"
