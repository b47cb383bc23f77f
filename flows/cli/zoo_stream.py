"""`routeyard zoo stream`: MESS+ online over the questions of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    release: Annotated[Path, typer.Argument(help="A release directory.")],
    alpha: Annotated[float, typer.Option(help="Share of questions to be answered well.")],
    encoder: Annotated[str, typer.Option(help="tfidf, minilm, a name or a folder.")] = "tfidf",
    trade_off: Annotated[float, typer.Option(help="V: weight of cost against the level.")] = 1e-3,
    explore: Annotated[float, typer.Option(help="c of min(1, c/t^(1/4)).")] = 0.1,
    measure: Annotated[str | None, typer.Option(help="usd, tokens, latency or params.")] = None,
    shuffles: Annotated[int, typer.Option(min=5, help="Orders of the questions.")] = 5,
    cache: Annotated[Path, typer.Option(help="Cache of embeddings.")] = Path(
        "yard/cache/embeddings"
    ),
    as_json: Json = False,
) -> None:
    """Answer the test questions one by one with MESS+: least cost at a level of service.

    Prints the share answered well, cost per question and share explored, mean ± sd over
    orders, beside each single model. Questions with an unknown label or cost are left out.

    Example:

        routeyard zoo stream yard/releases/demo/1.0.0 --alpha 0.7
    """
    from flows.cli.results import print_result
    from flows.evaluation.stream import stream

    found = stream(
        release, alpha=alpha, encoder=encoder, trade_off=trade_off, explore=explore,
        measure=measure, shuffles=shuffles, cache=cache,
    )  # fmt: skip
    if print_result(found, as_json):
        return
    print(f"{found['questions']:,} questions, α = {alpha:g}, cost in {found['unit']}")
    for row in found["rows"]:
        print(
            f"{row['name']:<40} {row['answered_well']:.3f} ± {row['answered_well_sd']:.3f}   "
            f"cost {row['cost']:.4g} ± {row['cost_sd']:.2g}   explored {row['explored']:.1%}"
        )
