"""Results in folders of others: read as what their columns say, or refused in words."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.actions.site import _evaluations
from flows.cli import run
from pipelines.errors import BadInput
from pipelines.evaluate.rows import METRICS_SCHEMA
from pipelines.evaluate.run.written import metrics_table, told

ROW = {"router": "mine", "metric": "accuracy", "split": "test", "value": 0.9}


def results(folder: Path, **changes: object) -> Path:
    folder.mkdir(exist_ok=True)
    rows = [dict.fromkeys(METRICS_SCHEMA.names) | ROW | changes]
    columns = {name: [row[name] for row in rows] for name in METRICS_SCHEMA.names}
    pq.write_table(pa.table(columns), folder / "metrics.parquet")
    pq.write_table(pa.table({"query_id": ["q"], "model_id": ["m"]}), folder / "choices.parquet")
    said = {"release": {"fingerprint": "f"}, "facts": {}, "ranking": []}
    (folder / "evaluation.json").write_text(json.dumps(said))
    return folder


def test_results_are_read_with_the_types_they_were_written_with(tmp_path: Path) -> None:
    folder = results(tmp_path / "r")
    found = metrics_table(folder / "metrics.parquet")
    assert found is not None
    assert found.schema.field("low").type == pa.float64()  # all null here
    assert metrics_table(folder / "choices.parquet") is None
    assert told(folder)["release"] == {"fingerprint": "f"}
    assert told(tmp_path) == {}


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


LAID: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a name that is none": ("metrics.parquet", lambda path: results(path.parent, router=None)),
    "a value that is a text": ("metrics.parquet", lambda path: results(path.parent, value="x")),
    "noise": ("metrics.parquet", lambda path: path.write_bytes(b"noise")),
    "noise beside it": ("curves.parquet", lambda path: path.write_bytes(b"noise")),
    "nested": ("evaluation.json", lambda path: path.write_text("[" * 60_000)),
    "a list": ("evaluation.json", lambda path: path.write_text("[]")),
    "half a sign": ("evaluation.json", lambda path: path.write_text('{"facts": "\\ud800"}')),
    "a pipe": ("evaluation.json", pipe),
}


@pytest.mark.parametrize("case", LAID)
def test_what_is_broken_is_said_and_stops_no_other(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each was a traceback of `site` and `leaderboard`, or waited for without end."""
    good, odd = results(tmp_path / "good"), results(tmp_path / "odd")
    name, lay = LAID[case]
    lay(odd / name)
    release = SimpleNamespace(
        sql=lambda sql: pa.table({"id": ["q"] if "queries" in sql else ["m"]}),
        manifest=SimpleNamespace(fingerprint="f"),
    )
    (found,) = _evaluations(release, [odd, good])
    assert found.title == "Evaluation of routers (good)"
    assert f"left out: {name}" in capsys.readouterr().err
    if name != "curves.parquet":
        assert run(["leaderboard", str(odd)]) == 2
        with pytest.raises(BadInput):
            metrics_table(odd / name) if name.startswith("metrics") else told(odd)


def test_a_leaderboard_as_csv_holds_no_formula(tmp_path: Path) -> None:
    folder = results(tmp_path / "r", router="=HYPERLINK(0)\x1b[2J")
    assert run(["leaderboard", str(folder), "--out", str(tmp_path / "board.csv")]) == 0
    with (tmp_path / "board.csv").open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert row["router"] == "'=HYPERLINK(0)\ufffd[2J"
    assert float(row["accuracy"]) == 0.9
