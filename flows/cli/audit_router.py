"""`routeyard audit router`: is a submission of predictions what it says?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    predictions: Annotated[
        Path,
        typer.Argument(help="CSV or Parquet: query_id, model_id and, if given, cost and tokens."),
    ],
    release: Annotated[Path, typer.Argument(help="The release it was made for.")],
    scheme: Annotated[str | None, typer.Option(help="Split scheme.")] = None,
    arena: Annotated[
        Path | None,
        typer.Option(
            callback=sealed_off,
            help="Also write RouterArena's layout here, if nothing fails; its score "
            "is read back off the file.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check choices for leaks, constants, foreign prices, gaps and repeats (exit 0 or 3).

    Examples:

        routeyard audit router mine.csv yard/releases/demo/1.0.0

        routeyard audit router mine.csv RELEASE --arena mine-arena.json
    """
    from flows.cli.results import print_result
    from flows.evaluation.released import read_release
    from pipelines.evaluate.certificate import default_scheme
    from pipelines.evaluate.run.predictions import read_predictions
    from pipelines.matrix.reading import core_of
    from pipelines.zoo import arena as submission
    from pipelines.zoo.audit import Suspicion, audit, choices

    table = read_predictions(predictions)
    tables = read_release(release)
    core = core_of(tables.without("embeddings"))
    chosen = default_scheme(core, scheme)
    found = audit(core, chosen, table)
    if arena is not None and all(one.level != "fail" for one in found):
        test = core.take(core.rows(chosen, "test"))
        choice = choices(test, table)
        score = submission.write(arena, submission.rows(tables, test, choice), test, choice)
        found.append(
            Suspicion("RouterArena", "ok", f"{len(choice)} rows, Arena score {score:.6f} → {arena}")
        )
    if not print_result(found, as_json):
        for one in found:
            print(f"{one.level:<5} {one.name}: {one.says}")
    if any(one.level == "fail" for one in found):
        raise SystemExit(3)
