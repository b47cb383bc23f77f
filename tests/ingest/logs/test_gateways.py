"""Exports of gateways and outputs of batches, each record by hand after its documentation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from routeyard.pipelines.ingest.logs import read_log

RECORDS = yaml.safe_load(Path(__file__).with_name("gateways.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_of(name: str, tmp_path: Path) -> None:
    form, record, wanted = RECORDS[name].values()
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(record) + "\n")
    log = read_log(path)
    assert dict(log.formats) == {form: 1}
    (row,) = log.steps.to_pylist()
    for key, value in {"prompt_tokens": 50, "completion_tokens": 5, **wanted}.items():
        assert row[key] == (pytest.approx(value) if isinstance(value, float) else value), key


def test_a_batch_says_that_its_prices_are_others(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(RECORDS["openai batch"]["record"]) + "\n")
    assert any("1 calls are of a batch" in doubt for doubt in read_log(path).doubts)
