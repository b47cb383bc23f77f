"""Contracts: what they refuse, and that the refusal says enough."""

from __future__ import annotations

import pyarrow as pa
import pytest

from schemas import CONTRACTS, LABELS
from schemas.errors import ContractError

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
