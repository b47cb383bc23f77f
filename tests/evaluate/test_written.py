"""Results in folders of others: read as what their columns say, or refused in words."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.flows.cli import run
from routeyard.flows.site import _evaluations
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.run.tables import metrics_table, read_evaluation
from routeyard.schemas.contracts import RESULTS

RELEASE = SimpleNamespace(
    sql=lambda sql: pa.table({"id": ["q"] if "queries" in sql else ["m"]}),
    manifest=SimpleNamespace(fingerprint="f"),
)
ROW = {"router": "mine", "metric": "accuracy", "split": "test", "value": 0.9}


def results(folder: Path, **changes: object) -> Path:
    folder.mkdir(exist_ok=True)
    rows = [dict.fromkeys(RESULTS["metrics"].names) | ROW | changes]
    columns = {name: [row[name] for row in rows] for name in RESULTS["metrics"].names}
    pq.write_table(pa.table(columns), folder / "metrics.parquet")
    pq.write_table(pa.table({"query_id": ["q"], "model_id": ["m"]}), folder / "choices.parquet")
    told_of = {"release": {"fingerprint": "f"}, "facts": {}, "ranking": []}
    (folder / "evaluation.json").write_text(json.dumps(told_of))
    return folder


def test_results_are_read_with_the_types_they_were_written_with(tmp_path: Path) -> None:
    folder = results(tmp_path / "r")
    found = metrics_table(folder / "metrics.parquet")
    assert found is not None
    assert found.schema.field("low").type == pa.float64()  # all null here
    assert metrics_table(folder / "choices.parquet") is None
    assert read_evaluation(folder)["release"] == {"fingerprint": "f"}
    assert read_evaluation(tmp_path) == {}


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def table(**columns: Any) -> Callable[[Path], object]:
    return lambda path: pq.write_table(pa.table(columns), path)


def said(**changes: object) -> Callable[[Path], object]:
    return lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | changes))


FACTS = {"n_test": 9, "n_train": 9, "n_validation": 0, "n_models": 2, "scheme": "dense"}
FACTS |= {"coverage": 1.0, "resamples": 100, "best_single": "m"}  # all that the first ones said
OOD: dict[str, Any] = {key: [0.5] for key in RESULTS["ood"].names} | {
    "router": ["mine"],
    "group": ["g"],
    "n": [3],
}
SHARES: dict[str, Any] = {"router": ["mine"], "split": ["test"], "model_id": ["m"], "share": [1.0]}
EMPTY: dict[str, Any] = {key: [None] for key in RESULTS["curves"].names}
EMPTY |= {"router": ["mine"], "curve": ["deferral"], "measure": ["usd"], "split": ["test"]}

LAID: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a name that is none": ("metrics.parquet", lambda path: results(path.parent, router=None)),
    "a value that is a text": ("metrics.parquet", lambda path: results(path.parent, value="x")),
    "noise": ("metrics.parquet", lambda path: path.write_bytes(b"noise")),
    "noise beside it": ("curves.parquet", lambda path: path.write_bytes(b"noise")),
    "nested": ("evaluation.json", lambda path: path.write_text("[" * 60_000)),
    "a list": ("evaluation.json", lambda path: path.write_text("[]")),
    "half a sign": ("evaluation.json", lambda path: path.write_text('{"facts": "\\ud800"}')),
    "a pipe": ("evaluation.json", pipe),
    "choices of no model": ("choices.parquet", table(query_id=["q"])),
    "curves of nothing": ("curves.parquet", table(router=["mine"])),
    "a place that is none": ("curves.parquet", table(**EMPTY)),
    "transfer of nobody": ("ood.parquet", table(split=[1], x=[None])),
    "transfer of another": ("ood.parquet", table(**OOD | {"router": ["yours"]})),
    "a change that is none": ("ood.parquet", table(**OOD | {"change": [None]})),
    "another model": ("profiles.parquet", table(**SHARES | {"model_id": ["odd"]})),
    "a share that is none": ("profiles.parquet", table(**SHARES | {"share": [None]})),
    "facts in a list": ("evaluation.json", said(facts=[1, 2])),
    "a fact that lacks": ("evaluation.json", said(facts={"n_test": 9})),
    "a count that is a text": ("evaluation.json", said(facts=FACTS | {"n_test": "9"})),
    "two bands": ("evaluation.json", said(facts=FACTS | {"bands": [0.1, 0.2]})),
    "lacking in numbers": ("evaluation.json", said(facts=FACTS | {"costs_lacking": {"usd": [1]}})),
    "missing in words": ("evaluation.json", said(facts=FACTS | {"missing": "a word"})),
    "a ranking by name": ("evaluation.json", said(ranking={"mine": 1})),
    "a rank without a place": ("evaluation.json", said(ranking=[{"router": "mine"}])),
}


@pytest.mark.parametrize("case", LAID)
def test_what_is_broken_is_said_and_stops_no_other(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each was a traceback of `site` and `leaderboard`, or waited for without end."""
    good, odd = results(tmp_path / "good"), results(tmp_path / "odd")
    name, lay = LAID[case]
    lay(odd / name)
    (found,) = _evaluations(RELEASE, [odd, good])
    assert found.title == "Evaluation of routers (good)"
    assert f"left out: {name}" in capsys.readouterr().err
    if name in ("metrics.parquet", "evaluation.json"):
        assert run(["leaderboard", str(odd)]) == 2
        with pytest.raises(BadInput):
            metrics_table(odd / name) if name.startswith("metrics") else read_evaluation(odd)


@pytest.mark.extensions
def test_a_leaderboard_as_csv_holds_no_formula(tmp_path: Path) -> None:
    folder = results(tmp_path / "r", router="=HYPERLINK(0)\x1b[2J")
    assert run(["leaderboard", str(folder), "--out", str(tmp_path / "board.csv")]) == 0
    with (tmp_path / "board.csv").open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert row["router"] == "'=HYPERLINK(0)\ufffd[2J"
    assert float(row["accuracy"]) == 0.9


@pytest.mark.extensions
def test_the_names_of_a_leaderboard_are_no_formulas_and_keep_their_place(tmp_path: Path) -> None:
    # A metric is named by whoever made the results; two names may be written alike.
    names = ["'=1+1", "=1+1", "accuracy", "router"]
    for name in names:
        results(tmp_path / name, metric=name, value=float(names.index(name)))
    found = [str(tmp_path / name) for name in names]
    assert run(["leaderboard", *found, "--out", str(tmp_path / "board.csv")]) == 0
    with (tmp_path / "board.csv").open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    # An apostrophe is put before what a spreadsheet would run, and before an apostrophe, so that
    # the names stay apart and can be read back.
    assert header[:6] == ["result", "release", "router", "''=1+1", "'=1+1", "accuracy"]
    assert {row[2] for row in rows} == {"mine"}
    assert {row[3] for row in rows} == {"0", ""}
    assert {row[4] for row in rows} == {"1", ""}
