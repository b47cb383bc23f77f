"""The samples of each (query, model): texts, extracted answers, sequence probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.logprobs import sequence_logprob, tokens


@dataclass(frozen=True, slots=True)
class Samples:
    """Usable answers of one model to one query, by sample number.

    Attributes:
        extracted: What the query's own scorer read in each; None where it read nothing.
        outcomes: That scorer's verdict on each; None where it filed none.
        logprobs: log p(s | x) in nat; None where the server gave none.
    """

    query: Mapping[str, Any]
    model_id: str
    numbers: tuple[int, ...]
    texts: tuple[str, ...]
    extracted: tuple[str | None, ...]
    outcomes: tuple[str | None, ...]
    logprobs: tuple[float | None, ...]


def need(tables: Mapping[str, pa.Table], name: str, rule: str) -> pa.Table:
    """The table a rule reads, or an error that says what is missing."""
    if name not in tables:
        raise BadInput(
            f"rule {rule!r} needs the table {name!r}",
            where=f"tables at hand: {', '.join(sorted(tables)) or 'none'}",
            next_step="put the rule after the stage that makes that table",
        )
    return tables[name]


def gather(
    tables: Mapping[str, pa.Table],
    models: Sequence[str],
    *,
    length_normalised: bool = False,
    statuses: Sequence[str] = ("ok",),
) -> list[Samples]:
    """Samples in the order of `queries`, then of `models`; queries nobody answered are left out.

    Truncated and failed responses are no samples of the model's meaning: their
    answer was never finished.
    """
    queries = {row["query_id"]: row for row in _rows(need(tables, "queries", "preference"), QUERY)}
    responses = need(tables, "responses", "preference")
    wanted = pc.and_(
        pc.is_in(responses["model_id"], value_set=pa.array(models, pa.string())),
        pc.and_(
            pc.is_in(responses["status"], value_set=pa.array(statuses, pa.string())),
            pc.is_valid(responses["text"]),
        ),
    )
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in _rows(responses.filter(wanted), RESPONSE):
        found.setdefault((row["query_id"], row["model_id"]), []).append(row)
    verdicts = _verdicts(tables.get("verdicts"), queries, models)

    result = []
    for query_id, query in queries.items():
        for model in models:
            rows = sorted(found.get((query_id, model), ()), key=lambda row: int(row["sample"]))
            if not rows:
                continue
            read = [verdicts.get((query_id, model, row["sample"]), (None, None)) for row in rows]
            result.append(
                Samples(
                    query,
                    model,
                    tuple(row["sample"] for row in rows),
                    tuple(row["text"] for row in rows),
                    tuple(extracted for extracted, _ in read),
                    tuple(outcome for _, outcome in read),
                    tuple(_logprob(row, length_normalised) for row in rows),
                )
            )
    return result


QUERY = ("query_id", "question", "prompt", "choices", "scorer")
RESPONSE = ("query_id", "model_id", "sample", "text", "logprobs")


def _rows(table: pa.Table, columns: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.select(list(columns)).to_pylist()
    return rows


def _logprob(row: Mapping[str, Any], length_normalised: bool) -> float | None:
    if row["logprobs"] is None:
        return None
    where = f"query {row['query_id']}, model {row['model_id']}, sample {row['sample']}"
    return sequence_logprob(
        tokens(row["logprobs"], where=where), length_normalised=length_normalised
    )


def _verdicts(
    verdicts: pa.Table | None, queries: Mapping[str, Mapping[str, Any]], models: Sequence[str]
) -> dict[tuple[str, str, int], tuple[str | None, str | None]]:
    """(query, model, sample) → (extracted, outcome) of the query's scorer, newest version."""
    if verdicts is None:
        return {}
    table = verdicts.filter(pc.is_in(verdicts["model_id"], value_set=pa.array(models, pa.string())))
    read: dict[tuple[str, str, int], tuple[str | None, str | None]] = {}
    columns = ("query_id", "model_id", "sample", "scorer", "scorer_version", "extracted", "outcome")
    for row in sorted(_rows(table, columns), key=lambda row: str(row["scorer_version"])):
        query = queries.get(row["query_id"])
        if query is not None and query["scorer"] == row["scorer"]:
            key = (row["query_id"], row["model_id"], row["sample"])
            read[key] = (row["extracted"], row["outcome"])
    return read
