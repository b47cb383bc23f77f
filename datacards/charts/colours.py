"""Colour and sign of every model or router: safe for the colour-blind, the same everywhere."""

from __future__ import annotations

from collections.abc import Iterable

#: Okabe and Ito's hues, shifted until each keeps a contrast of 3:1 on white and on #14181d.
COLOURS = (
    "#0a7bc2", "#d0570a", "#0b8f6a", "#b8608f", "#a8780a", "#8a63b8", "#8b7043", "#4a83b0",
)  # fmt: skip
SIGNS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
#: What routers and models are compared with is dashed and without hue.
REFERENCES = ("oracle", "task oracle", "random mix", "best single", "uniform random")
GREY = "#808890"


def colours(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Name → (colour, sign), by the place among the sorted names of a release.

    Eight hues carry six signs each: 48 names are told apart, later ones share both
    and are told apart by their labels.
    """
    return {
        name: (COLOURS[k % len(COLOURS)], SIGNS[k // len(COLOURS) % len(SIGNS)])
        for k, name in enumerate(sorted(set(names)))
    }


def fill(colour: str, sign: str, *, of: int = 0) -> str:
    """The colour of a bar: paler where hues come round again, since a bar has no sign; one colour
    for all where `of` names are more than hues and their paler ones can tell apart."""
    if of > 2 * len(COLOURS):
        return COLOURS[0]
    if sign == SIGNS[0]:
        return colour
    parts = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{(part + 2 * 208) // 3:02x}" for part in parts)
