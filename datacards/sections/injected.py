"""What a card says of pseudo-specialists: what was put in, and what it is said to cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Figure of the rule → words and unit.
_COSTS = {
    "params_b": "{:g} · 10⁹ parameters",
    "price_in": "{:g} USD per 10⁶ tokens in",
    "price_out": "{:g} USD per 10⁶ tokens out",
    "prompt_tokens": "{:g} prompt tokens",
    "completion_tokens": "{:g} completion tokens",
    "cost_usd": "{:g} USD an answer",
    "latency_s": "{:g} s an answer",
}
_FROM = {"median": "the pool's median", "stated": "the recipe"}


def injected(figures: Mapping[str, Any]) -> list[str]:
    """A sentence per pseudo-specialist, and what they cost with where each value comes from.

    Args:
        figures: A manifest's `figures`.

    Returns:
        Lines of Markdown, values from the rule's own figures; empty where none was injected.
    """
    lines: list[str] = []
    for rule in (figures.get("curate") or {}).get("rules") or []:
        found = rule["figures"]
        if rule["rule"] != "pseudo_specialists" or not found.get("injected"):
            continue
        lines += [
            f"`{one['model_id']}` is simulated: right on {100 * one['accuracy']:.1f} % of task "
            f"{_plain(one['task'])}, where the best real model has {100 * one['best_real']:.1f} %."
            for one in found["injected"]
        ]
        # In this order: a manifest has its keys sorted, and the card is rendered from both.
        said = [
            f"{words.format(one['value'])} ({_FROM.get(one['from'], one['from'])})"
            for name, words in _COSTS.items()
            if (one := found["costs"].get(name) or {"value": None})["value"] is not None
        ]
        lines.append(
            "What a simulated model costs is an assumption: " + "; ".join(said) + "."
            if said
            else "What a simulated model costs is not known."
        )
    return lines


def _plain(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>|" else sign for sign in text)
