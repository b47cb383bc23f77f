"""Rule verdicts over one model's responses, and the court over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from prefect import task

from flows.tasks.recorded import response_files
from flows.tracking.retries import AT_HOME
from flows.workspace.stage_folders import StageResult, run_stage, write_table
from flows.workspace.tables import content, read, read_shards
from pipelines.errors import BadInput
from schemas.recipe import Recipe

_OPTIONS: dict[str, Any] = {"persist_result": True, **AT_HOME}


def scorer_modules(queries: Path) -> list[str]:
    """Modules of the scorers that a table of queries names."""
    import pyarrow.parquet as pq

    from pipelines.scorers import SCORERS
    from pipelines.scorers.scorer import GIVEN

    named = pc.unique(pq.read_table(queries, columns=["scorer"]).column("scorer"))
    return SCORERS.modules([GIVEN, *named.to_pylist()])


def file_model_verdicts(
    recipe: Recipe,
    root: str,
    queries: StageResult,
    responses: str,
    shard: tuple[int, int] | None = None,
) -> StageResult:
    """Rule verdicts over one model's responses, the shard's."""
    import pyarrow.parquet as pq

    from pipelines.label.rules import file_verdicts, versions

    named = pq.read_table(queries.path("queries"), columns=["scorer"]).column("scorer")

    def make(folder: Path) -> Mapping[str, Any]:
        verdicts = file_verdicts(
            read(queries, "queries"),
            read_shards([Path(responses)], "responses"),
            options={
                "run_code_without_isolation": recipe.label.run_code_without_isolation,
                "code_modules": recipe.label.code_modules,
            },
        )
        write_table(verdicts, folder / "verdicts.parquet")
        return {"verdicts": verdicts.num_rows}

    return run_stage(
        Path(root),
        "verdicts",
        parameters={
            "run_code_without_isolation": recipe.label.run_code_without_isolation,
            "scorers": versions(named),
        },
        inputs={"queries": queries.fingerprint, "responses": content([Path(responses)])},
        make=make,
        uses=scorer_modules(queries.path("queries")),
        benchmark=recipe.name,
        shard=shard,
    )


# The plain function keeps its own name: worker processes find it by that.
verdicts_task = task(name="file verdicts", **_OPTIONS)(file_model_verdicts)


@task(name="decide labels", **_OPTIONS)
def labels_task(
    recipe: Recipe,
    root: str,
    queries: StageResult,
    collected: StageResult,
    verdicts: list[StageResult],
) -> StageResult:
    """Verdicts → labels, by the court's policy."""
    from pipelines.label.aggregate import decide

    def make(folder: Path) -> Mapping[str, Any]:
        filed = read_shards([done.path("verdicts") for done in verdicts], "verdicts")
        labels = decide(
            read(queries, "queries"),
            read_shards(response_files(collected), "responses"),
            filed,
            policy=recipe.label,
        )
        undecided = labels.column("score").null_count
        if undecided == labels.num_rows:
            _refuse_errors(filed)
        write_table(filed, folder / "verdicts.parquet")
        write_table(labels, folder / "labels.parquet")
        return {
            "labels": labels.num_rows,
            "undecided": undecided,
            "verdicts": filed.num_rows,
        }

    return run_stage(
        Path(root),
        "label",
        parameters=recipe.label.model_dump(mode="json"),
        inputs={
            "queries": queries.fingerprint,
            "responses": collected.fingerprint,
            "verdicts": ",".join(done.fingerprint for done in verdicts),
        },
        make=make,
        uses=scorer_modules(queries.path("queries")),
        benchmark=recipe.name,
    )


def _refuse_errors(filed: pa.Table) -> None:
    """Stop where no answer has a label because scorers failed: nothing after it could say why.

    Raises:
        BadInput: names the scorers, how often each failed, and its most frequent error.
    """
    failed = Counter(
        (row["scorer"], " ".join((row["reason"] or "no reason given").split())[:200])
        for row in filed.select(["scorer", "outcome", "reason"]).to_pylist()
        if row["outcome"] == "error"
    )
    if not failed:
        return
    scorers = sorted({scorer for scorer, _ in failed})
    named = ", ".join(
        f"{scorer!r} ({sum(n for (name, _), n in failed.items() if name == scorer):,} errors)"
        for scorer in scorers
    )
    (scorer, reason), _ = failed.most_common(1)[0]
    example = filed.filter(pc.equal(filed.column("outcome"), "error")).column("query_id")[0].as_py()
    raise BadInput(
        f"no answer has a label: scorer {named} failed on every question, most often {reason!r}",
        where=f"scorer {scorer!r}, e.g. question {example}",
        next_step="mend fields.references of its source or choose another scorer; the answers "
        "are kept, and no model is asked again",
    )
