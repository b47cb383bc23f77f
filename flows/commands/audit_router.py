"""`routeyard audit router`: is a submission of predictions what it says?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.show.options import Json


def command(
    predictions: Annotated[
        Path,
        typer.Argument(help="CSV or Parquet: query_id, model_id and, if given, cost and tokens."),
    ],
    release: Annotated[Path, typer.Argument(help="The release it was made for.")],
    scheme: Annotated[str | None, typer.Option(help="Split scheme.")] = None,
    as_json: Json = False,
) -> None:
    """Check choices for leaks, constants, foreign prices, gaps and repeats (exit 0 or 3).

    Examples:

        routeyard audit router mine.csv yard/releases/demo/1.0.0
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    from flows.actions.released import read_release
    from flows.show.results import print_result
    from pipelines.errors import BadInput
    from pipelines.evaluate.certificate import default_scheme
    from pipelines.evaluate.reading import core_of
    from pipelines.zoo.audit import audit

    if not predictions.is_file():
        raise BadInput("there is no such predictions file", where=str(predictions))
    try:
        parquet = predictions.suffix == ".parquet"
        table = pq.read_table(predictions) if parquet else csv.read_csv(predictions)
    except pa.ArrowInvalid as error:
        raise BadInput(f"this is no table: {error}", where=str(predictions)) from error
    core = core_of({k: v for k, v in read_release(release).items() if k != "embeddings"})
    found = audit(core, default_scheme(core, scheme), table)
    if not print_result(found, as_json):
        for one in found:
            print(f"{one.level:<5} {one.name}: {one.says}")
    if any(one.level == "fail" for one in found):
        raise SystemExit(3)
