"""Contracts: what they refuse, and that the refusal says enough."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.schemas import CONTRACTS, LABELS
from routeyard.schemas.contracts import StoredTable, register
from routeyard.schemas.errors import ContractError

GOOD = {
    "query_id": "q1",
    "model_id": "m",
    "score": 1.0,
    "correct": True,
    "decided_by": "numeric",
    "contested": False,
    "n_samples": 1,
}


@pytest.mark.parametrize("contract", CONTRACTS.values(), ids=list(CONTRACTS))
def test_every_contract_accepts_its_empty_table_and_describes_each_column(contract) -> None:
    assert contract.check(contract.empty()).num_rows == 0
    for field in contract.schema:
        assert field.metadata[b"description"], field.name
    assert set(contract.key) <= set(contract.column_names)


def test_descriptions_and_units_travel_in_the_file(tmp_path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(CONTRACTS["models"].empty(), tmp_path / "m.parquet")
    field = pq.read_schema(tmp_path / "m.parquet").field("price_in")
    assert field.metadata[b"unit"] == b"USD per 10^6 tokens"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"score": 2.0}, "rule 'score_range'"),
        ({"score": None}, "rule 'decided_whole'"),  # a null score with a decision is a lie
        ({"contested": None}, "'contested' may not be null; 1 row"),
        ({"n_samples": "many"}, "wrong type"),
        ({"colour": "red"}, "no column 'colour'"),
    ],
)
def test_broken_rows_are_refused_by_name(change: dict[str, object], says: str) -> None:
    with pytest.raises(ContractError, match=says):
        LABELS.from_rows([GOOD | change])


def test_the_error_counts_the_rows_and_shows_three() -> None:
    rows = [GOOD | {"query_id": f"q{i}", "score": 5.0} for i in range(7)]
    with pytest.raises(ContractError) as caught:
        LABELS.from_rows(rows)
    assert "7 row(s)" in str(caught.value)
    assert str(caught.value).count("'q") == 3


def test_a_repeated_key_is_refused() -> None:
    with pytest.raises(ContractError, match=r"key \(query_id, model_id\) is repeated"):
        LABELS.from_rows([GOOD, GOOD])


def test_columns_are_put_in_order_and_missing_ones_named() -> None:
    table = LABELS.from_rows([GOOD])
    shuffled = table.select(list(reversed(table.column_names)))
    assert LABELS.check(shuffled).schema.names == LABELS.column_names
    with pytest.raises(ContractError, match=r"lacks column\(s\) correct, contested"):
        LABELS.check(table.drop_columns(["correct", "contested"]))


def test_nulls_in_a_required_column_are_found_even_when_arrow_accepts_them() -> None:
    # Trap: pa.table and validate(full=True) accept nulls in non-nullable columns.
    table = LABELS.from_rows([GOOD])
    at = table.schema.get_field_index("model_id")
    broken = table.set_column(at, LABELS.schema.field(at), pa.array([None], pa.string()))
    with pytest.raises(ContractError, match="'model_id' may not be null"):
        LABELS.check(broken)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("responses", "status"), ("responses", "cost_source"), ("steps", "action"),
        ("verdicts", "outcome"), ("splits", "split"), ("model_splits", "split"), ("models", "kind"),
    ],
)  # fmt: skip
def test_the_values_that_are_allowed_are_said_and_others_refused(name: str, column: str) -> None:
    contract = CONTRACTS[name]
    (one,) = (c for c in contract.columns if c.name == column)
    assert len(one.values) > 1
    text = contract.schema.field(column).metadata[b"description"].decode()
    assert all(f"`{value}` ({means})" in text for value, means in one.values.items())
    known = one.known()
    assert known is not None
    rows = f"(VALUES ('?'), (NULL), ('{min(one.values)}')) v({column})"
    taken = duckdb.sql(f"SELECT {column}, ({known.predicate}) IS TRUE FROM {rows}")
    assert dict(taken.fetchall()) == {"?": False, None: one.nullable, min(one.values): True}


def test_a_value_that_is_not_allowed_breaks_the_contract() -> None:
    row = {"scheme": "dense", "query_id": "q", "split": "tset"}
    with pytest.raises(ContractError, match=r"'split_known'.*1 row"):
        CONTRACTS["splits"].from_rows([row])


def test_optional_columns_that_a_table_lacks_are_null() -> None:
    from routeyard.schemas import STEPS

    row = {
        "query_id": "q", "model_id": "m", "sample": 0, "step": 0, "acted_by": "m",
        "action": "answer", "queries": [], "found": [], "status": "ok", "attempts": 1,
        "request_hash": "h",
    }  # fmt: skip
    before = STEPS.from_rows([row]).drop_columns(list(STEPS.optional))
    now = STEPS.check(before)
    assert now.column_names == STEPS.column_names
    assert all(now.column(name).null_count == 1 for name in STEPS.optional)
    # A column that was always there is still missed.
    with pytest.raises(ContractError, match="lacks column"):
        STEPS.check(before.drop_columns(["action"]))


def test_a_stored_table_is_its_own_file_whatever_signs_its_path_has(tmp_path) -> None:
    for name, value in (("data[1].parquet", 1), ("data1.parquet", 2)):
        pq.write_table(pa.table({"x": [value]}), tmp_path / name)
    with duckdb.connect() as connection:
        register(connection, "own", StoredTable(tmp_path / "data[1].parquet"))
        assert connection.table("own").fetchall() == [(1,)]
