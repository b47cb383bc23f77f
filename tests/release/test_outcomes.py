"""`outcomes`: labels and costs in one row, whole or in parts, in new releases and old ones."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.release import derived_tables as made
from routeyard.pipelines.release.build import write_release
from routeyard.pipelines.release.database import Streamed
from routeyard.pipelines.release.reader import open_release
from routeyard.schemas import LABELS, OUTCOMES, RESPONSES
from routeyard.schemas.errors import ContractError
from routeyard.schemas.release import Manifest
from tests.support.sound_release import verify_release


def with_gaps(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Two samples of one pair, an unknown cost, a label without response and the reverse."""
    labels, responses = tables["labels"].to_pylist(), tables["responses"].to_pylist()
    labels[1].update(score=None, correct=None, decided_by=None)
    labels[3].update(score=0.25, correct=False)
    responses[0].update(cost_usd=None, cost_source=None, latency_s=None)
    responses.append({**responses[4], "sample": 1, "cost_usd": 0.5, "latency_s": 0.3})
    del labels[6], responses[8]
    verdicts = tables["verdicts"]
    return {
        **tables,
        "verdicts": pa.concat_tables([verdicts.slice(0, 8), verdicts.slice(9)]),
        "labels": LABELS.from_rows(labels),
        "responses": RESPONSES.from_rows(responses),
    }


def joined(tables: dict[str, pa.Table]) -> list[dict[str, Any]]:
    """What outcomes should say, written down with loops."""
    queries = sorted(tables["queries"].column("query_id").to_pylist())
    models = sorted(tables["models"].column("model_id").to_pylist())
    labels = {(r["query_id"], r["model_id"]): r for r in tables["labels"].to_pylist()}
    answers: dict[Any, list[Any]] = {}
    for row in tables["responses"].to_pylist():
        answers.setdefault((row["query_id"], row["model_id"]), []).append(row)
    rows = []
    for q, query in enumerate(queries):
        for m, model in enumerate(models):
            label, given = labels.get((query, model)), answers.get((query, model), [])
            if label is None and not given:
                continue
            row: dict[str, Any] = dict.fromkeys(OUTCOMES.column_names)
            row |= {"query_no": q, "model_no": m, "query_id": query, "model_id": model}
            row["n_responses"] = len(given)
            for name in ("score", "correct", "decided_by", "n_samples", "contested"):
                row[name] = label[name] if label else None
            for name in ("cost_usd", "prompt_tokens", "completion_tokens", "reasoning_tokens"):
                known = [r[name] for r in given if r[name] is not None]
                row[name] = sum(known) if given and len(known) == len(given) else None
            times = [r["latency_s"] for r in given if r["latency_s"] is not None]
            if given and len(times) == len(given):
                row["latency_s"] = pytest.approx(sum(times) / len(times), rel=1e-6)
            rows.append(row)
    return rows


@pytest.mark.parametrize("pairs", [1 << 22, 1])
def test_outcomes_are_labels_and_costs_of_each_pair(write, tables, monkeypatch, pairs):
    # The wide matrix is written in parts of one query too.
    monkeypatch.setattr(made, "_PAIRS", pairs)
    path = write(with_gaps(tables)).path
    with open_release(path) as opened:
        rows = opened.outcomes.order("query_no, model_no").to_arrow_table().to_pylist()
        assert opened.arrow("outcomes").to_pylist() == rows
    assert rows == joined(with_gaps(tables))
    assert sum(row["n_responses"] == 2 for row in rows) == 1
    assert sum(row["n_samples"] is None for row in rows) == 1
    assert verify_release(path, render_card=render) == []


def test_columns_explain_themselves(release):
    schema = pq.read_schema(release / "data/outcomes.parquet")
    for name in ("query_no", "model_no"):
        assert b"of this release only" in schema.field(name).metadata[b"description"]
    assert schema.field("cost_usd").metadata[b"unit"] == b"USD"


def test_summaries_are_sums_of_the_outcomes(write, tables):
    path = write(with_gaps(tables)).path

    def rows(name: str) -> list[tuple[Any, ...]]:
        found = pq.read_table(path / f"numbered/{name}.parquet").to_pylist()
        return [tuple(row.values()) for row in found]

    # query, judged, total, top, solved by, first solver, contested, graded
    assert rows("per_query") == [
        (0, 2, 1.0, 1.0, 1, 0, 1, False),
        (1, 3, 0.25, 0.25, 0, None, 0, True),
        (2, 2, 1.0, 1.0, 1, 1, 0, False),
        (3, 3, 1.0, 1.0, 1, 0, 0, False),
        (4, 3, 2.0, 1.0, 2, 0, 0, False),
        (5, 2, 1.0, 1.0, 1, 0, 0, False),
    ]
    # model, answered, correct, priced, cost: a pair needs a label and an answer
    assert rows("per_model") == [
        (0, 5, 4, 4, pytest.approx(4 * 3e-5)),
        (1, 6, 2, 6, pytest.approx(6 * 2e-5 + 0.5)),
        (2, 4, 0, 4, pytest.approx(4e-5)),
    ]
    # model, task, judged, total
    assert rows("per_task")[:2] == [(0, "even", 2, 2.0), (0, "odd", 3, 2.25)]
    # the same, with its lead over the mean of each question, and the sum of the best scores
    mean = 0.25 / 3
    assert rows("leads")[1] == (0, "odd", pytest.approx(0.25 - mean + 2 / 3 + 0.5), 2.25)
    # model, questions on which it is the cheapest right one, their cost; and how many of them have
    # another right answer of unknown cost
    assert rows("cheapest") == [(0, 2, pytest.approx(6e-5), 0), (1, 2, pytest.approx(4e-5), 0)]
    # word 0 of each model: judged and solved questions whose scores are 0 or 1, question 0 lowest
    assert rows("bits")[0] == (0, 0, 0b111001, 0b111001)


def _bytes(path: Path) -> dict[str, str]:
    return {
        p.relative_to(path).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in path.rglob("*")
        # The database is not the same to the byte, so its checksum is not either.
        if p.is_file() and not p.name.endswith((".duckdb", ".duckdb.sha256"))
    }


def _by_model(path, schema):
    """A table in a file of any order, one model at a time."""
    rows = pq.read_table(path).cast(schema)
    models = sorted(rows.column("model_id").unique().to_pylist(), key=str.encode)
    return Streamed(lambda: (rows.filter(pc.field("model_id") == model) for model in models))


def test_parts_give_the_bytes_of_the_whole(tmp_path):
    from benchmarks.release import make, stream

    recipe = {"name": "made", "version": "1.0.0"}
    whole = make(3_000, 3)
    for number, name in enumerate(("labels", "responses")):
        # Staged files in no order at all are read one model at a time.
        pq.write_table(whole[name].take(pa.array(range(2_999, -1, -1))), tmp_path / f"{number}")
    staged = {
        "labels": _by_model(tmp_path / "0", LABELS.schema),
        "responses": _by_model(tmp_path / "1", RESPONSES.schema),
    }
    found = [
        _bytes(write_release(given, recipe=recipe, root=root, render_card=render).path)
        for given, root in (
            (whole, tmp_path / "whole"),
            (stream(3_000, 3), tmp_path / "parts"),
            ({**whole, **staged}, tmp_path / "staged"),
        )
    ]
    assert found[0] == found[1] == found[2]
    assert "data/outcomes.parquet" in found[0]


def test_parts_that_overlap_are_refused(write, tables):
    twice = Streamed(lambda: iter([tables["labels"], tables["labels"]]))
    with pytest.raises(ContractError, match="overlap"):
        write({**tables, "labels": twice})


def test_a_label_of_an_unknown_question_is_no_outcome_and_verify_names_it(write, tables):
    fewer = tables["queries"].slice(1)
    path = write({**tables, "queries": fewer, "splits": tables["splits"].slice(1)}).path
    with open_release(path) as opened:
        assert opened.outcomes.count("*").fetchall() == [(14,)]
    found = verify_release(path, render_card=render)
    assert "reference" in {finding.check for finding in found}
    assert {finding.where for finding in found if finding.check == "reference"} >= {"labels"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda told: told["tables"]["outcomes"].update(contract=99), "outcomes.*version 99"),
        (lambda told: told["tables"]["responses"].update(contract=3), "responses.*version 3"),
        (lambda told: told.update(format=99), "format 99"),
        (lambda told: told.update(format=9), "format 9"),
        (lambda told: told["tables"].pop("outcomes"), "no table `outcomes`"),
    ],
)
def test_a_release_of_another_format_is_refused(release, change, says):
    told = json.loads((release / "manifest.json").read_text())
    change(told)
    (release / "manifest.json").write_text(Manifest.model_validate(told).sealed().to_json())
    with pytest.raises(SourceError, match=says):
        open_release(release)
    assert {one.check for one in verify_release(release, render_card=render)} == {"manifest"}


def test_a_first_version_of_a_contract_goes_without_saying(release):
    told = json.loads((release / "manifest.json").read_text())
    assert {name: t["contract"] for name, t in told["tables"].items() if "contract" in t} == {
        "models": 3,
        "responses": 4,
    }
    manifest = Manifest.model_validate(told)
    assert manifest.expected_digest() == manifest.digest


def test_summaries_that_were_changed_are_found(release):
    with duckdb.connect(str(release / "tiny.duckdb")) as connection:
        connection.execute("UPDATE numbered.per_query SET solved_by = 3")
    digest = hashlib.sha256((release / "tiny.duckdb").read_bytes()).hexdigest()
    (release / "tiny.duckdb.sha256").write_text(f"{digest}  tiny.duckdb\n")
    found = verify_release(release, render_card=render)
    (says,) = [f.says for f in found]
    assert says.startswith("its table numbered.per_query is not that of the release")


def test_a_summary_that_was_sealed_with_another_figure_is_found(write, tables):
    path = write(with_gaps(tables)).path
    file = path / "numbered/per_query.parquet"
    rows = pq.read_table(file)
    at = rows.schema.get_field_index("solved_by")
    more = pa.array([n + 1 for n in rows.column("solved_by").to_pylist()], pa.int32())
    pq.write_table(rows.set_column(at, "solved_by", more), file)
    told = json.loads((path / "manifest.json").read_text())
    data = file.read_bytes()
    told["files"]["numbered/per_query.parquet"] = {
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
    }
    (path / "manifest.json").write_text(Manifest.model_validate(told).sealed().to_json())
    found = verify_release(path, render_card=render)
    (says,) = [f.says for f in found if f.where == "numbered/per_query.parquet"]
    assert says.startswith("says something else than labels and responses, e.g. row ")
    # A release asked before it is verified answers from what was sealed, and from nothing else.
    file.write_bytes(data[:-1])
    with pytest.raises(SourceError, match="per_query"):
        open_release(path)
