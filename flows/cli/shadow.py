"""`routeyard shadow`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import OptionalWrittenPath, Resamples
from routeyard.flows.cli.results import Output


def command(
    logs: Path,
    router: Annotated[list[str], typer.Option()],
    after: str | None = None,
    pool: list[Path] | None = None,
    cache: list[str] | None = None,
    session: str | None = None,
    encoder: str | None = None,
    independent: bool = False,
    out: OptionalWrittenPath = None,
    resamples: Resamples = 1_000,
    seed: int = 0,
) -> Output:
    """Compute what a router would have cost and achieved on a gateway's log, day by day.

    Costs count prompt caches. Outcomes are estimated where the log holds propensities of its own
    choices and grades; elsewhere they are bounded, or it says why they are unknown.

    With --after the days before choose one of several routers, and the days from then on judge it.

    Examples:

        routeyard shadow gateway.jsonl --router always:small --pool prices.yaml --out page.md

        routeyard shadow gateway.jsonl --router saved_router --pool prices.yaml

        routeyard shadow log.jsonl --router always:small --router always:large --after 2026-11-03

    Args:
        logs: A gateway's log: LiteLLM, OpenRouter, requests with responses, or plain columns.
        router: A saved router's folder, a policy (always:ARM, first:N:ARM:THEN), or a file of arms;
            again for more, of which the past chooses one.
        after: Day from which the router is judged; what was learnt or chosen is of the days before.
        pool: Prices of the arms; a later file holds from its price_date on; again for more.
        cache: ARM=RULE, or RULE for all arms: anthropic, openai, deepseek, none, …; again for more.
        session: Key that names the trajectory of a call, such as metadata.session_id.
        encoder: Encoder of a saved router, where it came from elsewhere.
        independent: State that logged propensities do not depend on earlier outcomes.
        out: Also write the page, in Markdown.
    """
    from routeyard.flows.traffic.shadow import shadow

    found = shadow(
        logs, router, pools=pool or (), caches=cache or (), session=session, encoder=encoder,
        after=after, propensities="context" if independent else "test", resamples=resamples,
        seed=seed,
    )  # fmt: skip
    if out is not None:
        out.write_text("\n".join(found.lines()) + "\n", encoding="utf-8")
    return Output(found.data(), found.lines())
