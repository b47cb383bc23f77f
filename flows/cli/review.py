"""`routeyard review`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import YARD, Json, OptionalWrittenPath, WrittenWorkspace
from routeyard.flows.cli.results import Output


def command(
    benchmark: str,
    workspace: WrittenWorkspace = YARD,
    csv: OptionalWrittenPath = None,
    take: Path | None = None,
    by: str | None = None,
    limit: Annotated[int, typer.Option(min=1)] = 200,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    as_json: Json = False,
) -> Output:
    """Decide doubtful labels by hand, the most consequential first.

    The queue holds labels that are contested, undecided or rest on a suspect
    reference, of the questions and models that curation left, ordered by how many
    pairs of models change their order when the label flips. Without `--csv` or
    `--take` a page opens on this machine (loopback only).
    Decisions are kept in the workspace as verdicts of scorer `human:<name>`; the
    next build, and `routeyard relabel`, take them over every other verdict.

    Examples:

        routeyard review zeroeval_gsm --csv queue.csv

        routeyard review zeroeval_gsm --take queue.csv --by ada

        routeyard review zeroeval_gsm --by ada

    Args:
        csv: Write the queue to this file.
        take: Read decisions from a filled-in file.
        by: Your name, for `--take` and the page.
        limit: Answers in the queue at most.
        port: Port of the page; 0: any.
    """
    from routeyard.flows.audits.labels import Review
    from routeyard.flows.console import line
    from routeyard.pipelines.errors import BadInput
    from routeyard.pipelines.label.audit.review import to_csv

    if csv is None and by is None:
        raise BadInput(
            "a decision needs a name",
            next_step="add --by NAME, or --csv FILE to only write the queue",
        )
    review = Review(benchmark, workspace, str(by))
    if take is not None:
        count, path = review.take(take)
        then = f"next: routeyard relabel {review.name} --workspace {workspace}"
        data = {"decisions": count, "path": path}
        return Output(data, [f"{count} decisions kept in {path}", then])
    rows = review.queue(limit)
    if csv is not None:
        csv.write_text(to_csv(rows), encoding="utf-8")
        data = {"answers": len(rows), "path": csv}
        if not rows:
            return Output(
                data,
                f"no answer of {review.name} is in doubt: no label is contested, undecided or "
                f"rests on a suspect reference; {csv} has no row",
            )
        return Output(data, f"{len(rows)} answers to decide in {csv}")
    from routeyard.flows.web.review_page import ReviewPage

    page = ReviewPage(rows, review.keep, port=port)
    if as_json:
        line("review", page.address)
    else:
        print(f"{len(rows)} answers to decide: {page.address}  (Ctrl-C when done)", flush=True)
    page.serve()
    return Output({"decisions": review.count}, f"{review.count} decisions kept")
