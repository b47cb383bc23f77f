"""Expected wrong labels, and accuracies corrected for them, from the scorers' measured rates."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pyarrow as pa

from routeyard.pipelines.label.error_rates import (
    Corrected,
    Kind,
    corrected_accuracy,
    kind_of,
    p_correct,
    rates,
)
from routeyard.pipelines.label.policies import UNREADABLE
from routeyard.pipelines.scorers.scorer import GIVEN
from routeyard.schemas.statuses import NO_CREDIT

#: Labels that are looked at; of a larger release every k-th pair by its hash.
MOST = 200_000
#: (model, deciding scorer, kind, verdict, whether the policy says correct) of one label.
_Cell = tuple[str, str, Kind, str, bool]


def label_errors(queries: pa.Table, responses: pa.Table, labels: pa.Table) -> dict[str, Any]:
    """How many labels are expected to be wrong, and accuracies corrected for that.

    Args:
        queries: QUERIES contract.
        responses: RESPONSES contract; a pair's first sample tells the kind of its answer.
        labels: LABELS contract.

    Returns:
        `expected_wrong` over `covered` labels; `unknown` labels have no measured rates (another
        scorer, too few judged answers of their kind); `corrected`: model → [labelled, corrected,
        low, high], where rates are known for all of a model's labels; `kinds`: of each scorer, kind
        of answer and verdict the labels, and `p_correct`, the probability that an answer with that
        verdict is right (null where too few were judged). Labels that a person or
        the source decided are neither: they are the truth here.
    """
    every = -(-labels.num_rows // MOST)
    cells = Counter(_cells(queries, responses, labels, max(1, every)))
    expected, covered, unknown = 0.0, 0, 0
    for (_, scorer, kind, outcome, correct), n in cells.items():
        right = p_correct(scorer, outcome, kind)
        if right is None:
            unknown += n
        else:
            covered += n
            expected += n * (1 - right if correct else right)
    return {
        "expected_wrong": round(expected * every, 1) if covered else None,
        "covered": covered * every,
        "unknown": unknown * every,
        "corrected": _corrected(cells),
        "kinds": _kinds(cells, every),
    }


def _kinds(cells: Counter[_Cell], every: int) -> list[dict[str, Any]]:
    """Labels of each deciding scorer, kind of answer and verdict, and how probably it is right."""
    found: Counter[tuple[str, Kind, str]] = Counter()
    for (_, scorer, kind, outcome, _), n in cells.items():
        found[scorer, kind, outcome] += n * every
    return [
        {"scorer": scorer, **kind._asdict(), "verdict": outcome, "labels": n}
        | {"p_correct": p_correct(scorer, outcome, kind)}
        for (scorer, kind, outcome), n in sorted(found.items())
    ]


def _corrected(cells: Counter[_Cell]) -> dict[str, list[float]]:
    """Model → [labelled, corrected, low, high]; kinds with the same rates are corrected as one."""
    groups: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    for (model, scorer, kind, outcome, correct), n in cells.items():
        counts = groups[model, scorer, rates(scorer, kind)]
        counts[0] += n * correct
        counts[1] += n
        counts[2] += outcome == "abstain"
    parts: dict[str, list[tuple[int, int, Corrected | None]]] = defaultdict(list)
    for (model, _, found), (right, n, abstained) in groups.items():
        measured = found.with_abstentions if found and abstained else found
        parts[model].append((n, right, corrected_accuracy(right, n, measured)))
    out = {}
    for model, done in sorted(parts.items()):
        total = sum(n for n, _, _ in done)
        if all(one is not None for _, _, one in done):
            mean = sum(n * one.accuracy for n, _, one in done if one) / total
            half = math.sqrt(sum((n * (one.high - one.low) / 2) ** 2 for n, _, one in done if one))
            labelled = sum(right for _, right, _ in done) / total
            bounds = (max(0.0, mean - half / total), min(1.0, mean + half / total))
            out[model] = [round(value, 5) for value in (labelled, mean, *bounds)]
    return out


def _cells(queries: pa.Table, responses: pa.Table, labels: pa.Table, every: int) -> Iterator[_Cell]:
    columns = (queries.column(name).to_pylist() for name in ("scorer", "references", "choices"))
    ids = queries.column("query_id").to_pylist()
    asked = dict(zip(ids, zip(*columns, strict=True), strict=True))
    decided = {
        (query, model): (by, correct)
        for query, model, by, correct in _rows(labels, ["decided_by", "correct"], every)
        if correct is not None and by
    }
    for query, model, text in _rows(responses, ["text"], every):
        by, correct = decided.pop((query, model), (GIVEN, False))
        if text is None or by == GIVEN or by.startswith("human:"):
            continue
        scorer, references, choices = asked[query]
        unread = by == UNREADABLE or by in NO_CREDIT
        scorer = scorer if unread else by
        verdict = "abstain" if unread else "correct" if correct else "incorrect"
        yield (
            model,
            scorer,
            kind_of(scorer, references or [], choices or [], text),
            verdict,
            correct,
        )


def _rows(table: pa.Table, columns: list[str], every: int) -> Iterator[tuple[Any, ...]]:
    """(query_id, model_id, columns) of every k-th pair, by a hash of its ids."""
    for batch in table.select(["query_id", "model_id", *columns]).to_batches(10_000):
        if every > 1:
            pairs = zip(*(batch.column(k).to_pylist() for k in range(2)), strict=True)
            batch = batch.filter(
                pa.array([not crc32(f"{q} {m}".encode()) % every for q, m in pairs])
            )
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
