"""A bundle read back by the importer of the same layout gives the same labels."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.errors import BadInput, UnknownName
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.write import run_import
from routeyard.pipelines.release import open_release
from routeyard.pipelines.release.exporters import EXPORTERS
from routeyard.pipelines.release.exporters.bundle import export

OPTIONS = {"routellm": {"strong": "m0", "weak": "m1"}}


def test_every_exporter_is_listed():
    folder = Path(__file__).parents[2] / "pipelines/release/exporters"
    defined = {p.stem for p in folder.glob("[!_]*.py") if "EXPORTER = Exporter(" in p.read_text()}
    listed = {target.partition(":")[0].rpartition(".")[2] for target in EXPORTERS.builtin.values()}
    assert defined == listed
    assert all(EXPORTERS.get(name).name == name for name in EXPORTERS.names())


@pytest.mark.parametrize("layout", ["embedllm", "llmrouterbench", "routellm", "ulab"])
def test_round_trip(release, tmp_path, layout):
    with open_release(release) as opened:
        done = export(EXPORTERS.get(layout), opened, tmp_path / "b", OPTIONS.get(layout, {}))
        labels = opened.sql(
            "SELECT prompt, model_id, score FROM labels JOIN queries USING (query_id)"
        ).to_pylist()
    assert all((tmp_path / "b" / name).is_file() for name in done.files)
    back = run_import(IMPORTERS.get(layout), tmp_path / "b", tmp_path / "imports" / layout)
    questions = pq.read_table(back.folder / "queries.parquet").to_pylist()
    prompts = {q["id"]: q["prompt"] for q in questions}
    answers = pq.read_table(back.folder / "responses.parquet").to_pylist()
    found = {(prompts[a["query"]], a["model"]): a["score"] for a in answers}
    models = {"m0", "m1"} if layout == "routellm" else {"m0", "m1", "m2"}
    expected = {(r["prompt"], r["model_id"]): r["score"] for r in labels if r["model_id"] in models}
    assert found == expected
    assert done.rows == len(expected)


def test_a_task_name_cannot_leave_the_folder(write, tables, tmp_path):
    from routeyard.schemas import QUERIES

    rows = tables["queries"].to_pylist()
    for row in rows:
        row["task"] = "../../escaped/" + row["task"]
    path = write({**tables, "queries": QUERIES.from_rows(rows)}).path
    for layout in EXPORTERS.names():
        with open_release(path) as opened:
            target = tmp_path / "deep" / "er" / layout
            export(EXPORTERS.get(layout), opened, target, OPTIONS.get(layout, {}))
    assert not list(tmp_path.glob("**/escaped*"))


def test_bad_options_are_named(release, tmp_path):
    with open_release(release) as opened:
        with pytest.raises(BadInput, match="no strong one"):
            export(EXPORTERS.get("routellm"), opened, tmp_path / "a", {})
        with pytest.raises(UnknownName, match="no model 'm9'"):
            export(
                EXPORTERS.get("routellm"), opened, tmp_path / "a", {"strong": "m9", "weak": "m1"}
            )
        with pytest.raises(BadInput, match="no option"):
            export(EXPORTERS.get("ulab"), opened, tmp_path / "a", {"strong": "m1"})
        assert not (tmp_path / "a").exists()
        (tmp_path / "a").mkdir()
        with pytest.raises(BadInput, match="exists already"):
            export(EXPORTERS.get("ulab"), opened, tmp_path / "a", {})
