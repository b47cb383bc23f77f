"""Scores that decide a pair without entropy: correctness labels and a judge's verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import RecipeError, did_you_mean

Scores = Mapping[tuple[str, str], float | bool | None]


def by_correctness(
    labels: pa.Table | None, models: Sequence[str]
) -> dict[tuple[str, str], bool | None]:
    """(query, model) → label; undecided labels stay None."""
    if labels is None:
        return {}
    rows = _of(labels, models).select(["query_id", "model_id", "correct"]).to_pylist()
    return {(row["query_id"], row["model_id"]): row["correct"] for row in rows}


def judge_scorer(verdicts: pa.Table | None, judge: str | None) -> str:
    """`judge:<name>` as the verdicts spell it; the only judge there is when none is named."""
    names = [] if verdicts is None else verdicts.column("scorer").unique().to_pylist()
    judges = sorted(name for name in names if name.startswith("judge:"))
    wanted = None if judge is None else judge if judge.startswith("judge:") else f"judge:{judge}"
    if wanted in judges:
        return str(wanted)
    if wanted is None and len(judges) == 1:
        return str(judges[0])
    raise RecipeError(
        f"no verdicts of {wanted}"
        if wanted
        else f"{len(judges)} judges recorded verdicts; expected one",
        where="rule 'preference', basis 'judge'",
        next_step=did_you_mean(wanted or "judge:", judges),
    )


def by_judge(
    verdicts: pa.Table | None, models: Sequence[str], scorer: str
) -> dict[tuple[str, str], float | None]:
    """(query, model) → the judge's mean score over samples.

    Abstentions and outages are no scores; of several versions of the judge the
    newest counts.
    """
    if verdicts is None:
        return {}
    table = _of(verdicts, models)
    rows = table.filter(pc.equal(table["scorer"], scorer)).to_pylist()
    newest: dict[tuple[str, str, int], float | None] = {}
    for row in sorted(rows, key=lambda row: (str(row["scorer_version"]), int(row["sample"]))):
        newest[row["query_id"], row["model_id"], row["sample"]] = row["score"]
    scores: dict[tuple[str, str], list[float]] = {}
    for (query_id, model_id, _), score in sorted(newest.items()):
        if score is not None:
            scores.setdefault((query_id, model_id), []).append(score)
    return {key: sum(values) / len(values) for key, values in scores.items()}


def _of(table: pa.Table, models: Sequence[str]) -> pa.Table:
    return table.filter(pc.is_in(table["model_id"], value_set=pa.array(models, pa.string())))
