"""Probes come from validation, never from training."""

from __future__ import annotations

import pyarrow as pa
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.signals import select_probes

QUERIES = pa.table({"query_id": [f"q{i:02d}" for i in range(40)], "prompt": ["p"] * 40})


def splits(rows):
    return pa.table(
        {
            "scheme": [scheme for scheme, _, _ in rows],
            "query_id": [query for _, query, _ in rows],
            "split": [split for _, _, split in rows],
        }
    )


def parts(scheme, train, validation):
    return [
        (
            scheme,
            f"q{i:02d}",
            "train" if i in train else "validation" if i in validation else "test",
        )
        for i in range(40)
    ]


def test_seeded_and_independent_of_row_order():
    table = splits(parts("dense", range(20), range(20, 35)))
    first = select_probes(QUERIES, table, n=5, seed=3)
    shuffled = table.take(pa.array(list(range(39, -1, -1))))
    assert first.equals(select_probes(QUERIES, shuffled, n=5, seed=3))
    ids = first.column("query_id").to_pylist()
    assert len(ids) == 5
    assert set(ids) <= {f"q{i:02d}" for i in range(20, 35)}
    assert ids != select_probes(QUERIES, table, n=5, seed=4).column("query_id").to_pylist()


def test_what_any_scheme_trains_on_is_left_out():
    table = splits(
        parts("dense", range(20), range(20, 35)) + parts("ood:math", range(20, 30), range(30, 40))
    )
    ids = select_probes(QUERIES, table, n=40, scheme="dense").column("query_id").to_pylist()
    assert ids == [f"q{i:02d}" for i in range(30, 35)]


def test_no_validation_queries():
    with pytest.raises(BadInput, match="no validation query"):
        select_probes(QUERIES, splits(parts("dense", range(40), [])), n=5)
