"""`routeyard review`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off

#: Bytes of a filled-in queue.
_MOST = 100_000_000


def command(
    benchmark: Annotated[str, typer.Argument(help="Name of a built benchmark, or its recipe.")],
    workspace: Annotated[
        Path, typer.Option(callback=sealed_off, help="Workspace of the build.")
    ] = Path("yard"),
    csv: Annotated[
        Path | None, typer.Option(callback=sealed_off, help="Write the queue to this file.")
    ] = None,
    take: Annotated[Path | None, typer.Option(help="Read decisions from a filled-in file.")] = None,
    by: Annotated[str | None, typer.Option(help="Your name, for `--take` and the page.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Answers in the queue at most.")] = 200,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0: any.")] = 0,
    as_json: Json = False,
) -> None:
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
    """
    from datetime import UTC, datetime

    from flows.audits.review import built
    from flows.cli.results import print_result
    from flows.workspace.reviews import keep_review, reviews
    from pipelines.errors import BadInput
    from pipelines.io.untrusted import short_text
    from pipelines.label.audit.audit import audit
    from pipelines.label.audit.review import decisions, from_csv, review_queue, to_csv
    from pipelines.label.escalate import add

    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    found = built(benchmark, workspace)
    if csv is None and by is None:
        raise BadInput(
            "a decision needs a name",
            next_step="add --by NAME, or --csv FILE to only write the queue",
        )
    if take is not None:
        try:
            text = short_text(take, _MOST)
        except UnicodeDecodeError as error:
            raise BadInput(f"this is no text: {error}", where=str(take)) from error
        verdicts = from_csv(text, by=str(by), at=now)
        if not verdicts.num_rows:
            raise BadInput(
                "no decision is filled in", where=str(take), next_step="fill in `decision`"
            )
        path = keep_review(workspace, found.name, verdicts, at=now)
        print_result(
            {"decisions": verdicts.num_rows, "path": path},
            as_json,
            f"{verdicts.num_rows} decisions kept in {path}",
            f"next: routeyard relabel {found.name} --workspace {workspace}",
        )
        return
    queries, responses = found.queries, found.responses
    verdicts = add(found.verdicts, reviews(workspace, found.name))
    labels = found.labels
    policy = None if found.recipe is None else found.recipe.label
    doubted = audit(queries, responses, verdicts, labels, policy=policy)
    suspects = doubted.tables["suspect_gold"]
    # A pruned model or a removed question is nobody's work: no decision on it can show.
    shown = found.released_labels
    rows = review_queue(queries, responses, verdicts, shown, suspects, limit=limit)
    if csv is not None:
        csv.write_text(to_csv(rows), encoding="utf-8")
        said = {"answers": len(rows), "path": csv}
        print_result(said, as_json, f"{len(rows)} answers to decide in {csv}")
        return
    from flows import console
    from flows.web.review_page import Page

    count = 0

    def keep(key: tuple[str, str, int], decision: str, note: str) -> None:
        nonlocal count
        at = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        one = decisions([(key, decision, note, "")], by=str(by), at=at)
        keep_review(workspace, found.name, one, at=at)
        count += 1

    page = Page(rows, keep, port=port)
    if not as_json:
        print(f"{len(rows)} answers to decide: {page.address}  (Ctrl-C when done)", flush=True)
    else:
        console.line("review", page.address)
    try:
        page.serve()
    except KeyboardInterrupt:
        print_result({"decisions": count}, as_json, f"{count} decisions kept")
    finally:
        page.server.server_close()
