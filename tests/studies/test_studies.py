"""Every study is listed and whole; cells carry intervals and the paper's values beside ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from routeyard.flows.cli import run
from routeyard.flows.evaluation.evaluate import reference
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.metrics import METRICS
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import (
    NEEDS,
    Study,
    StudyContext,
    check,
    declared,
    table_of,
)
from routeyard.schemas import LABELS, MODELS, QUERIES

DOMINANCE: Study = STUDIES.get("dominance")


def tables(right: dict[str, list[float]], tasks: list[str]) -> dict[str, Any]:
    """Labels of a small matrix: model → 0/1 per question."""
    names = [f"q{i:020x}" for i in range(len(tasks))]
    queries = QUERIES.from_rows(
        {
            "query_id": name, "source": "s", "source_id": name, "task": task, "domain": "general",
            "question": name, "prompt": name, "choices": [], "references": ["1"],
            "scorer": "em", "metadata": "{}",
        }
        for name, task in zip(names, tasks, strict=True)
    )  # fmt: skip
    labels = LABELS.from_rows(
        {
            "query_id": name, "model_id": model, "score": value, "correct": value >= 0.5,
            "decided_by": "em", "contested": False, "n_samples": 1,
        }
        for model, values in right.items()
        for name, value in zip(names, values, strict=True)
    )  # fmt: skip
    models = MODELS.from_rows({"model_id": m, "kind": "real", "simulated": False} for m in right)
    return {"queries": queries, "models": models, "labels": labels}


def given(name: str = "mine") -> StudyContext:
    tasks = ["a"] * 40 + ["b"] * 40
    first = [1.0] * 23 + [0.0] * 17
    second = [0.0] * 20 + [1.0] * 20
    right = {"strong": first + first, "weak": second + second, "b-only": [0.0] * 40 + [1.0] * 40}
    return StudyContext(name, tables(right, tasks), reference, resamples=100)


@pytest.mark.parametrize("name", STUDIES.names())
def test_a_study_is_whole_and_bears_its_name(name: str) -> None:
    study: Study = STUDIES.get(name)
    assert study.name == name
    assert study.paper
    assert study.item
    assert study.title
    for need in study.needs:
        assert need in NEEDS or need.startswith("router:")
    assert (study.plot in ("bars", "dots")) == (study.plot_column is not None)


@pytest.mark.parametrize("name", sorted(declared()))
def test_the_columns_of_a_study_are_metrics(name: str) -> None:
    # Trap: a column of a misspelt metric is "not measured" in every table, and nothing fails.
    cells = declared()[name].get("cells")
    columns = cells.get("columns", {}) if isinstance(cells, dict) else {}
    unknown = [one for one in columns if one.partition("[")[0] not in METRICS.builtin]
    assert not unknown, f"no metric is called {', '.join(unknown)}: see pipelines/evaluate/metrics"


@pytest.mark.extensions
def test_the_list_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["study", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == sorted(STUDIES.names())
    assert all({"name", "paper", "item", "needs"} <= row.keys() for row in rows)


def test_ranks_have_intervals_that_hold_them() -> None:
    cells = {(c.row, c.column): c for c in DOMINANCE.cells(given())}
    # Task a: strong, weak, b-only; task b: b-only, strong, weak.
    assert cells["strong", "mean rank"].value == 1.5
    assert cells["b-only", "mean rank"].value == 2.0
    assert cells["strong", "tasks won"].value == 1
    for (_, column), cell in cells.items():
        if column == "mean rank":
            assert cell.low is not None
            assert cell.high is not None
            assert cell.value is not None
            assert cell.low <= cell.value <= cell.high
    weak = cells["weak", "mean rank"]
    # Weak is right on other questions than strong, and nearly as often: draws turn them round.
    assert weak.low is not None
    assert weak.low < 2.5


def test_printed_values_stand_only_beside_the_same_data() -> None:
    study = Study(
        name="s", paper="p", item="Table 1", title="t", cells=DOMINANCE.cells,
        printed={"mine": {("strong", "mean rank"): 1.4, ("absent", "mean rank"): 9.0}},
    )  # fmt: skip
    here = {
        (r["row"], r["column"]): r
        for r in table_of(study, study.cells(given()), "mine").to_pylist()
    }
    assert here["strong", "mean rank"]["printed"] == 1.4
    assert here["absent", "mean rank"]["value"] is None
    other = table_of(study, study.cells(given("other")), "other")
    assert other.column("printed").null_count == other.num_rows


def test_what_is_missing_is_named_with_a_remedy() -> None:
    study: Study = STUDIES.get("router_accuracy")
    with pytest.raises(BadInput, match="needs splits, which mine does not have") as caught:
        check(study, given())
    assert "split" in str(caught.value)


@pytest.mark.extensions
def test_a_study_writes_parquet_markdown_html_and_svg(tmp_path: Path) -> None:
    release = tmp_path / "toy"
    (release / "data").mkdir(parents=True)
    for name, table in given().tables.items():
        pq.write_table(table, release / "data" / f"{name}.parquet")
    out = tmp_path / "out"
    for _ in range(2):
        assert (
            run(["study", "dominance", str(release), "--out", str(out), "--resamples", "100"]) == 0
        )
    cells = pq.read_table(out / "dominance.parquet").to_pylist()
    assert {"row", "column", "value", "low", "high", "printed"} <= cells[0].keys()
    text = (out / "dominance.md").read_text(encoding="utf-8")
    assert r"| strong | 1.500 \[" in text
    page = (out / "dominance.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "<script src" not in page
    assert "default-src 'none'" in page
    before = (out / "dominance.svg").read_bytes()
    assert run(["study", "dominance", str(release), "--out", str(out), "--resamples", "100"]) == 0
    assert (out / "dominance.svg").read_bytes() == before


def test_names_in_a_table_are_no_markup(tmp_path: Path) -> None:
    from routeyard.datacards.reports.study import page

    about = {
        "name": "x", "paper": "p", "item": "i", "title": "<b>t</b>", "rows": "model",
        "plot": None, "plot_column": None, "axes": ("", ""), "notes": [], "release": "r",
        "version": "1",
    }  # fmt: skip
    base = given()
    cells = table_of(DOMINANCE, DOMINANCE.cells(base), "mine")
    assert "<b>t</b>" not in page(about, cells, None)
    assert np.isfinite(cells.column("value").to_numpy(zero_copy_only=False)).any()
