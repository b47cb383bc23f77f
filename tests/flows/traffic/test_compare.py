"""`routeyard compare`: two routers on the same questions, or a reason why not."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.datacards.card import render
from routeyard.datacards.files import render as render_files
from routeyard.extensions.traffic.compare import compare_routers
from routeyard.flows.cli import run
from routeyard.pipelines.common.errors import BadInput, UnknownName
from routeyard.pipelines.release.build import write_release
from routeyard.pipelines.release.reader import open_release
from routeyard.schemas import RESPONSES
from routeyard.schemas.release import usual_scheme
from tests.support.small_release import RECIPE, SOURCES, qid, tiny_tables


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 questions: m0 is always right, m1 on even ones; m1 is quick, times out on a quarter."""
    tables = tiny_tables(80)
    rows = tables["responses"].to_pylist()
    for row in rows:
        number = int(row["query_id"][1:], 16)
        row["latency_s"] = (1.0 + number / 100) if row["model_id"] == "m0" else 0.5
        if row["model_id"] == "m1" and number % 4 == 2:
            row |= {"status": "timeout", "latency_s": 60.0, "text": None}
    tables["responses"] = RESPONSES.from_rows(rows)
    done = write_release(
        tables, recipe=RECIPE, root=tmp_path_factory.mktemp("releases"), render_card=render,
        render_files=render_files, sources=SOURCES,
    )  # fmt: skip
    return done.path


def test_differences_on_the_test_questions(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compare_routers(release, "always:m0", "always:m1", resamples=200)
    with open_release(release) as opened:
        rows = opened.arrow("splits").to_pylist()
    scheme = usual_scheme({one["scheme"] for one in rows})
    asked = {r["query_id"] for r in rows if (r["scheme"], r["split"]) == (scheme, "test")}
    odd = sum(int(one[1:], 16) % 2 for one in asked)
    assert (found.questions, found.same) == (len(asked), 0)
    assert (found.only_first, found.only_second) == (odd, 0)
    assert found.accuracy.difference[0] == pytest.approx(odd / len(asked))
    assert found.accuracy.difference[1] > 0
    assert run(["compare", str(release), "always:m0", "always:m1", "--json",
                "--resamples", "200", "--decision", "0.5", "--decision", "0"]) == 0  # fmt: skip
    slower = json.loads(capsys.readouterr().out)["latency"][0]["first"]["value"]
    assert slower == pytest.approx(found.latency[0].first.value + 0.5)


def test_files_and_evaluations_are_routers(release: Path, tmp_path: Path) -> None:
    ids = [qid(k) for k in range(80)]
    mine = tmp_path / "mine.csv"
    mine.write_text("query_id,model_id\n" + "".join(f"{one},m1\n" for one in ids))
    rows = [{"query_id": one, "router": "a:b", "model_id": "m1", "score": 1.0} for one in ids]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "choices.parquet")
    found = compare_routers(release, str(mine), f"{tmp_path}:a:b", resamples=100)
    assert found.same == found.questions
    assert found.accuracy.difference == found.cost_usd.difference == (0.0, 0.0, 0.0)
    assert any("are of no test question" in note for note in found.notes)
    assert any("calls of" in note and "failed" in note for note in found.notes)
    assert any("cannot be told: p99 needs 368" in line for line in found.lines())
    for bad, error in (
        ("always:m9", UnknownName), (f"{tmp_path}:c", UnknownName), ("sometimes", BadInput)
    ):  # fmt: skip
        with pytest.raises(error):
            compare_routers(release, bad, str(mine))
    with pytest.raises(BadInput, match="a release is expected"):
        compare_routers(tmp_path, "always:m0", "always:m1")
