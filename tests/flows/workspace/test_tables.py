"""Tables that stages left in the workspace."""

from __future__ import annotations

import pyarrow as pa

from routeyard.flows.workspace import of_models


def test_rows_of_all_models_are_no_copy() -> None:
    table = pa.table({"model_id": ["a", "b", "a"]})
    assert of_models(table, pa.table({"model_id": ["b", "a"]})) is table
    assert of_models(table, pa.table({"model_id": ["a"]})).num_rows == 2
    assert of_models(table.slice(0, 0), pa.table({"model_id": ["a"]})).num_rows == 0
