"""Studies about costs where some are unknown, and what a page says of leaked questions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from routeyard.flows.evaluation.evaluate import reference, run_study
from routeyard.papers.paper import read_paper
from routeyard.papers.reproduction import Stand, Studies
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import StudyContext, known_costs, lacking
from tests.studies.test_paper_studies import POOL, release


def changed(tables: dict[str, pa.Table], name: str, column: str, change) -> dict[str, pa.Table]:
    rows = tables[name].to_pylist()
    for k, row in enumerate(rows):
        row[column] = change(k, row[column])
    return {**tables, name: pa.Table.from_pylist(rows, schema=tables[name].schema)}


@pytest.fixture
def partly() -> StudyContext:
    """Six models, the size of the fourth unknown."""
    tables = release("0", POOL)
    lacks = changed(tables, "models", "params_b", lambda k, size: None if k == 3 else size)
    return StudyContext("one", lacks, reference, resamples=50)


def test_a_study_of_costs_is_over_the_models_of_known_cost(
    partly: StudyContext, tmp_path: Path
) -> None:
    study = STUDIES.get("cscr_bands")
    assert not lacking(study, partly)
    run_study("cscr_bands", partly, tmp_path, tmp_path)
    said = (tmp_path / "cscr_bands.md").read_text(encoding="utf-8")
    assert "Figures are over the 5 of 6 models whose params are known." in said
    tables = dict(partly.tables)
    for name in ("models", "labels", "model_splits", "descriptors"):
        ids = tables[name].column("model_id").to_pylist()
        tables[name] = tables[name].take([k for k, one in enumerate(ids) if one != POOL[3]])
    alone = StudyContext("one", tables, reference, resamples=50)
    assert study.cells(known_costs(partly)[0]) == study.cells(alone)
    # What needs no cost is over all of them.
    assert partly.core.n_models == 6
    partly.pair = (POOL[0], POOL[3])
    assert [need for need, _ in lacking(study, partly)] == ["cost"]


def test_the_papers_own_release_with_a_part_of_its_models_is_not_its_data(
    partly: StudyContext, tmp_path: Path
) -> None:
    (tmp_path / "paper.yaml").write_text(
        "title: A paper\nreference: none\n"
        "benchmarks: {Bench: {release: one, get: there}}\n"
        "items: {Figure 1: {where: here, title: Bands, study: cscr_bands}}\n",
        encoding="utf-8",
    )
    made = Studies(
        read_paper(tmp_path), {"Bench": Stand(partly)}, lambda name: None, lambda *said: None
    )
    assert made.study("cscr_bands", "Bench").unlike == "on the 5 of 6 models whose params are known"


def test_a_page_says_how_many_test_questions_stand_in_train(tmp_path: Path) -> None:
    tables = release("0", POOL[:4])
    # Of five questions the last is tested, and the first is learnt from.
    same = changed(tables, "queries", "prompt", lambda k, text: "the same" if k in (0, 4) else text)
    for name, given in {"clean": tables, "leaking": same}.items():
        context = StudyContext("one", given, reference, resamples=50)
        run_study("cscr_bands", context, tmp_path, tmp_path / name)
    said = "1 of 20 test questions are also in train"
    assert said in (tmp_path / "leaking" / "cscr_bands.md").read_text(encoding="utf-8")
    assert "also in train" not in (tmp_path / "clean" / "cscr_bands.md").read_text(encoding="utf-8")
