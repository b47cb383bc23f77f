"""Rule verdicts over one model's responses, and decisions of people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeyard.flows.workspace.reviews import review_files, reviews
from routeyard.flows.workspace.stage_folders import (
    BuildContext,
    StageResult,
    StageWork,
    write_table,
)
from routeyard.flows.workspace.tables import content, read, read_shards
from routeyard.schemas.recipe import Label


def scorer_modules(queries: Path) -> list[str]:
    """Modules of the scorers that a table of queries names."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from routeyard.pipelines.scorers import SCORERS
    from routeyard.pipelines.scorers.scorer import GIVEN

    named = pc.unique(pq.read_table(queries, columns=["scorer"]).column("scorer"))
    return SCORERS.modules([GIVEN, *named.to_pylist()])


def score_responses(
    context: BuildContext, *, label: Label, queries: StageResult, responses: Path
) -> StageWork:
    """Verdicts of the queries' scorers over one model's response file."""
    import pyarrow.parquet as pq

    from routeyard.pipelines.label.rules import file_verdicts, versions

    named = pq.read_table(queries.path("queries"), columns=["scorer"]).column("scorer")
    isolation = label.run_code_without_isolation

    def make(folder: Path) -> Mapping[str, Any]:
        verdicts = file_verdicts(
            read(queries, "queries"),
            read_shards([responses], "responses"),
            options={
                "run_code_without_isolation": isolation,
                "code_modules": label.code_modules,
            },
        )
        write_table(verdicts, folder / "verdicts.parquet")
        return {"verdicts": verdicts.num_rows}

    return StageWork(
        {"run_code_without_isolation": isolation, "scorers": versions(named)},
        {"queries": queries.fingerprint, "responses": content([responses])},
        make,
        scorer_modules(queries.path("queries")),
    )


def read_reviews(context: BuildContext) -> StageWork:
    """What people decided (`routeyard review`), as one more file of verdicts."""

    def make(folder: Path) -> Mapping[str, Any]:
        decisions = reviews(context.root, context.benchmark)
        write_table(decisions, folder / "verdicts.parquet")
        return {"decisions": decisions.num_rows}

    files = review_files(context.root, context.benchmark)
    return StageWork({"benchmark": context.benchmark}, {"reviews": content(files)}, make)
