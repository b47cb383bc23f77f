"""`routeyard zoo stream`: MESS+ online over the questions of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import CACHE
from routeyard.flows.cli.results import Output


def command(
    release: Path,
    alpha: Annotated[float, typer.Option()],
    encoder: str = "tfidf",
    trade_off: float = 1e-3,
    explore: float = 0.1,
    measure: str | None = None,
    shuffles: Annotated[int, typer.Option(min=5)] = 5,
    cache: Path = CACHE,
) -> Output:
    """Answer the test questions one by one with MESS+: least cost at a level of service.

    Prints the share answered well, cost per question and share explored, mean ± sd over
    orders, beside each single model. Questions with an unknown label or cost are left out.

    Example:

        routeyard zoo stream yard/releases/demo/1.0.0 --alpha 0.7

    Args:
        alpha: Share of questions to be answered well.
        encoder: tfidf, minilm, a name or a folder.
        trade_off: V: weight of cost against the level.
        explore: c of min(1, c/t^(1/4)).
        shuffles: Orders of the questions.
    """
    from routeyard.flows.evaluation.stream import stream

    found = stream(
        release, alpha=alpha, encoder=encoder, trade_off=trade_off, explore=explore,
        measure=measure, shuffles=shuffles, cache=cache,
    )  # fmt: skip
    head = f"{found['questions']:,} questions, α = {alpha:g}, cost in {found['unit']}"
    rows = (
        f"{row['name']:<40} {row['answered_well']:.3f} ± {row['answered_well_sd']:.3f}   "
        f"cost {row['cost']:.4g} ± {row['cost_sd']:.2g}   explored {row['explored']:.1%}"
        for row in found["rows"]
    )
    return Output(found, [head, *rows])
