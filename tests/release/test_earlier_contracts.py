"""Releases written by an earlier version of a contract open, verify and answer as they did."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.release import build, database
from routeyard.pipelines.release.checks.verify import verify_release
from routeyard.pipelines.release.reader import open_release
from routeyard.pipelines.release.tables import contract_of
from routeyard.schemas import MODELS, RESPONSES
from routeyard.schemas.contract import Contract
from routeyard.schemas.errors import ContractError
from routeyard.schemas.stored import StoredTable, register
from tests.support.small_release import tiny_tables

FIRST = MODELS.of_version(1)


def test_a_release_of_the_first_contract_of_models_verifies_and_opens(
    write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_then(name: str, version: int | None = None) -> Contract:
        return FIRST if name == "models" else contract_of(name, version)

    given = tiny_tables()
    given["models"] = given["models"].select(FIRST.column_names)
    with monkeypatch.context() as earlier:
        for module in (build, database):  # which write the files
            earlier.setattr(module, "contract_of", as_then)
        made: Path = write(given).path
    assert "price_up_to" not in pq.read_schema(made / "data" / "models.parquet").names
    assert verify_release(made, render_card=render) == []
    with open_release(made) as release:
        found = release.arrow("models")
    assert found.column_names == MODELS.column_names
    assert found.column("price_cache_read").null_count == found.num_rows


def test_a_release_without_cached_tokens_verifies_and_opens(
    write, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = RESPONSES.of_version(3)

    def as_then(name: str, version: int | None = None) -> Contract:
        return before if name == "responses" else contract_of(name, version)

    given = tiny_tables()
    given["responses"] = given["responses"].select(before.column_names)
    with monkeypatch.context() as earlier:
        for module in (build, database):
            earlier.setattr(module, "contract_of", as_then)
        made: Path = write(given).path
    assert "cache_read_tokens" not in pq.read_schema(made / "data" / "responses.parquet").names
    assert verify_release(made, render_card=render) == []
    with open_release(made) as release:
        found = release.arrow("responses")
    assert found.column("cache_read_tokens").null_count == found.num_rows


def test_a_later_column_is_null_in_sql_over_an_earlier_table(tmp_path: Path) -> None:
    row = {"model_id": "m", "kind": "real", "simulated": False, "price_in": 1.0, "price_out": 2.0}
    table = FIRST.from_rows([row | {"price_date": "2026-11-01"}])
    pq.write_table(table, tmp_path / "models.parquet")
    sql = "SELECT price_in, price_up_to, base_model FROM models WHERE price_up_to IS NULL"
    for given in (table, StoredTable(tmp_path / "models.parquet")):
        with duckdb.connect() as connection:
            register(connection, "models", given)
            assert connection.execute(sql).fetchall() == [(1.0, None, None)]


def test_only_columns_that_came_later_may_be_absent() -> None:
    table = MODELS.from_rows([{"model_id": "m", "kind": "real", "simulated": False}])
    assert MODELS.conform(table.drop_columns(["price_up_to"])).schema == MODELS.schema
    with pytest.raises(ContractError, match="lacks column"):
        MODELS.conform(table.drop_columns(["price_in"]))
    with pytest.raises(ContractError, match="unknown column"):
        FIRST.conform(table)
    assert isinstance(FIRST.empty(), pa.Table)
    assert MODELS.of_version(MODELS.version) is MODELS
