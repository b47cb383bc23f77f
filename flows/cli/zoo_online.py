"""`routeyard zoo online`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import CACHE
from routeyard.flows.cli.results import Output

_SHARES = Annotated[list[str] | None, typer.Option(metavar="ARM=SHARE")]


def command(
    release: Path,
    router: Annotated[list[str] | None, typer.Option("--router", "-r")] = None,
    worth: float | None = None,
    appear: _SHARES = None,
    retire: _SHARES = None,
    check_error: float = 0.0,
    measure: str | None = None,
    encoder: str = "tfidf",
    shuffles: Annotated[int, typer.Option(min=2)] = 10,
    seed: int = 0,
    cache: Path = CACHE,
) -> Output:
    """Answer the test questions one by one with bandits and a cascade that learn as they go.

    Each sees the score and cost of the answers it asked for and of no other. Prints accuracy,
    cost, answers asked for, and regret against the best fixed arm and the oracle, mean ± sd over
    orders. Questions with an unknown label or cost are left out.

    Examples:

        routeyard zoo online yard/releases/demo/1.0.0 --worth 0.001

        routeyard zoo online yard/releases/demo/1.0.0 --appear sim-atlas-xl=0.5

    Args:
        router: random, epsilon-greedy, thompson, linucb or cascade; all by default.
        worth: What a right answer is worth, in the unit of the cost; without it costs do not count.
        appear: Share of the stream after which an arm appears.
        retire: Share of the stream after which an arm is gone.
        check_error: Share of answers of which a cascade's check says the opposite of the label.
        encoder: tfidf, minilm, a name or a folder.
        shuffles: Orders of the questions.
    """
    from routeyard.flows.traffic.online import online, shares

    found = online(
        release, routers=router or (), encoder=encoder, worth=worth, measure=measure,
        appear=shares(appear or ()), retire=shares(retire or ()), check_error=check_error,
        shuffles=shuffles, seed=seed, cache=cache,
    )  # fmt: skip
    return Output(found.data(), found.lines())
