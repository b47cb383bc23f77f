"""Recorded responses: matched by id, never invented, never silently merged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routeyard.pipelines.collect.recorded import import_recorded
from routeyard.pipelines.common.errors import RecordedError
from routeyard.pipelines.common.pool import models_table
from routeyard.pipelines.label.rules import file_verdicts
from routeyard.schemas import QUERIES
from routeyard.schemas.recipe import Pool, Recorded

POOL = models_table(Pool.model_validate({"models": [{"model_id": "m1"}, {"model_id": "m2"}]}))
FIELDS = {"query": "id", "model": "model", "text": "output"}


def queries():
    rows = [
        {
            "query_id": f"q{i:020x}",
            "source": "s",
            "source_id": name,
            "task": "t",
            "domain": "d",
            "question": f"question {name}",
            "prompt": f"question {name}",
            "choices": [],
            "references": ["4"],
            "scorer": "numeric",
            "metadata": "{}",
        }
        for i, name in enumerate("ab")
    ]
    return QUERIES.from_rows(rows)


def run(folder: Path, rows: list[dict[str, object]], models=None, **more: object):
    (folder / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    entry = Recorded.model_validate({"path": "r.jsonl", "fields": FIELDS, **more})
    return import_recorded(queries(), models or POOL, [entry], base=folder)


def row(query: str = "a", model: str = "m1", output: str | None = "4", **more: object):
    return {"id": query, "model": model, "output": output, **more}


def test_missing_answers_stay_missing(tmp_path: Path) -> None:
    done = run(tmp_path, [row(), row("b", output=None), row("zzz")])
    assert done.responses.num_rows == 1  # not three, and none of them empty
    assert done.provenance[0]["missing"] == 1
    assert done.provenance[0]["not_asked"] == 1


def test_all_duplicate_responses_are_counted_with_places(tmp_path: Path) -> None:
    # One at a time, a recording with 25 of them took 25 runs.
    rows = [row(), row(output="5"), row("b"), row("b"), row("b")]
    with pytest.raises(RecordedError) as caught:
        run(tmp_path, rows)
    assert "3 rows answer" in caught.value.what
    assert "2 repeat it word for word, 1 say something else" in caught.value.what
    assert "line 2 and r.jsonl, line 1 (id 'a', model 'm1')" in str(caught.value)
    assert "line 5 and r.jsonl, line 3" in str(caught.value)
    assert "map 'fields.sample'" in str(caught.value.next_step)
    with pytest.raises(RecordedError) as caught:  # nothing is a sample that says the same
        run(tmp_path, rows[2:])
    assert "fields.sample" not in str(caught.value.next_step)


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        ("first", {"a": "4", "b": "7"}),
        ("last", {"a": "6", "b": "7"}),
        ("missing", {"b": "7"}),  # the row that repeats another contradicts nobody
    ],
)
def test_which_of_several_answers_counts_is_said(
    policy: str, kept: dict[str, str], tmp_path: Path
) -> None:
    rows = [row("b", output="7"), row(), row(output="5"), row("b", output="7"), row(output="6")]
    done = run(tmp_path, rows, duplicates=policy)
    ids = {query: f"q{i:020x}" for i, query in enumerate("ab")}
    found = {r["query_id"]: r["text"] for r in done.responses.to_pylist()}
    assert found == {ids[query]: text for query, text in kept.items()}
    (note,) = [note for note in done.notes if "word for word" in note]
    assert "1 rows repeat another" in note
    assert "2 rows say something else" in note
    # An answer that gave way to a later one is no response, whatever stood there first.
    (counts,) = done.provenance
    assert counts["responses"] == done.responses.num_rows
    assert counts["responses"] + counts["repeated"] == len(rows)
    assert any(f"that its {counts['responses']} answers" in note for note in done.notes)


def test_an_answer_that_gives_way_to_one_of_a_later_file_is_counted_there(tmp_path: Path) -> None:
    for name, output in (("1.jsonl", "4"), ("2.jsonl", "5")):
        (tmp_path / name).write_text(json.dumps(row(output=output)) + "\n")
    said = {"path": "*.jsonl", "fields": FIELDS, "duplicates": "last"}
    done = import_recorded(queries(), POOL, [Recorded.model_validate(said)], base=tmp_path)
    assert [one["responses"] for one in done.provenance] == [0, 1]
    assert [one["repeated"] for one in done.provenance] == [1, 0]


def test_a_model_outside_the_pool_is_refused_or_ignored_on_request(tmp_path: Path) -> None:
    with pytest.raises(RecordedError, match="not in the pool") as caught:
        run(tmp_path, [row(model="m3")])
    assert "known: m1, m2" in str(caught.value)
    done = run(tmp_path, [row(), row(model="m3")], other_models="ignore")
    assert done.provenance[0]["other_models"] == 1


def test_a_file_that_matches_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordedError, match=r"no row of r\.jsonl matches"):
        run(tmp_path, [row("x")])


@pytest.mark.parametrize(("given", "score"), [(True, 1.0), ("False", 0.0), (0.25, 0.25)])
def test_scores_are_carried(tmp_path: Path, given: object, score: float) -> None:
    fields = {"query": "id", "model": "model", "score": "right"}
    done = run(tmp_path, [row(right=given)], fields=fields)
    assert done.responses.column("given_score").to_pylist() == [score]
    assert done.responses.column("text").to_pylist() == [None]


def test_a_score_outside_the_unit_interval_is_refused(tmp_path: Path) -> None:
    fields = {"query": "id", "model": "model", "score": "right"}
    with pytest.raises(RecordedError, match=r"not a number in \[0, 1\]"):
        run(tmp_path, [row(right=7)], fields=fields)


def test_the_reference_of_a_run_is_kept_where_it_differs(tmp_path: Path) -> None:
    rows = [row(gold="4"), row("b", gold="5")]
    done = run(tmp_path, rows, fields=FIELDS | {"graded_against": "gold"})
    assert done.responses.column("graded_against").to_pylist() == [None, ["5"]]


def test_an_empty_cell_is_unknown_not_zero(tmp_path: Path) -> None:
    # CSV writes "nothing" as an empty text; 0 tokens would look metered and free.
    (tmp_path / "r.csv").write_text("id,model,output,tokens,usd\na,m1,4,,\nb,m1,4,12,0.5\n")
    fields = FIELDS | {"prompt_tokens": "tokens", "cost_usd": "usd"}
    entry = Recorded.model_validate({"path": "r.csv", "fields": fields})
    table = import_recorded(queries(), POOL, [entry], base=tmp_path).responses
    assert table.column("prompt_tokens").to_pylist() == [None, 12]
    assert table.column("cost_usd").to_pylist() == [None, 0.5]
    assert table.column("cost_source").to_pylist() == [None, "provider"]


def test_not_a_number_is_unknown_and_without_end_is_an_error(tmp_path: Path) -> None:
    # `json.dumps` writes what pandas calls missing as NaN.
    fields = FIELDS | {"prompt_tokens": "tokens", "cost_usd": "usd"}
    nan = float("nan")
    table = run(tmp_path, [row(tokens=nan, usd=nan)], fields=fields).responses
    assert table.column("prompt_tokens").to_pylist() == [None]
    assert table.column("cost_usd").to_pylist() == [None]
    for odd in ({"tokens": 3, "usd": float("inf")}, {"tokens": float("-inf"), "usd": 0.5}):
        with pytest.raises(RecordedError, match="inf is not a number"):
            run(tmp_path, [row(**odd)], fields=fields)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt_tokens", True), ("prompt_tokens", 20.5), ("prompt_tokens", 10**17),
        ("prompt_tokens", -1), ("latency_s", -0.5), ("cost_usd", -1e-6), ("latency_s", True),
    ],
)  # fmt: skip
def test_amounts_that_cannot_be_are_refused_with_the_row(
    tmp_path: Path, field: str, value: object
) -> None:
    # 20.5 tokens became 20, true became 1, and a time below zero was taken.
    with pytest.raises(RecordedError, match="expected a") as error:
        run(
            tmp_path,
            [row(), row("b", odd=value)],
            fields=FIELDS | {field: "{{ odd | default(none) }}"},
        )
    assert "r.jsonl" in str(error.value)
    assert "2" in str(error.value.where)


def test_an_empty_cell_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("id,model,output\na,m1,\nb,m1,4\n")
    entry = Recorded.model_validate({"path": "r.csv", "fields": FIELDS})
    found = import_recorded(queries(), POOL, [entry], base=tmp_path)
    assert found.responses.column("text").to_pylist() == ["4"]
    assert "1 rows hold neither text nor score" in " ".join(found.notes)
    found = run(tmp_path, [row("a", output=""), row("b", output=float("nan"))])  # type: ignore[arg-type]
    assert found.responses.column("text").to_pylist() == [""]


def test_one_answer_recorded_with_two_latencies_is_one_answer(tmp_path: Path) -> None:
    fields = FIELDS | {"latency_s": "took"}
    found = run(tmp_path, [row(took=1.0), row(took=1.2)], fields=fields, duplicates="missing")
    assert found.responses.column("text").to_pylist() == ["4"]


@pytest.mark.parametrize(
    ("word", "output", "status", "text"),
    [
        ("success", "4", "ok", "4"),
        ("max_tokens", "4 and", "truncated", "4 and"),
        ("content_filter", None, "refused", None),
        ("ok", "  ", "empty", "  "),
        ("Timed out", "[ERROR] timeout", "timeout", None),
        ("InvalidRequestError", "too long", "error", None),
        ("skipped", None, "unanswered", None),
        ("pending", "4", "ungraded", "4"),
    ],
)
def test_the_status_of_a_recording_is_mapped(
    tmp_path: Path, word: str, output: str | None, status: str, text: str | None
) -> None:
    # A harness error that was graded 0 is no wrong answer of the model.
    fields = {**FIELDS, "status": "status", "score": "score"}
    rows = [row(output=output, status=word, score=None if status == "ungraded" else 0)]
    (answer,) = run(tmp_path, rows, fields=fields).responses.to_pylist()
    assert (answer["status"], answer["text"]) == (status, text)
    if status in ("timeout", "error"):
        assert answer["error"] == output


def test_an_unknown_status_stops_the_import_and_names_the_known_ones(tmp_path: Path) -> None:
    known = "'graded by hand' is not one of ok, truncated"
    with pytest.raises(RecordedError, match=known) as caught:
        run(tmp_path, [row(status="graded by hand")], fields={**FIELDS, "status": "status"})
    assert "fields.status" in str(caught.value)


def test_a_recipe_says_what_a_status_counts_as(tmp_path: Path) -> None:
    # One benchmark counts what stops at a limit as wrong, another as missing.
    fields = {**FIELDS, "status": "status", "score": "score"}
    rows = [row(status="Max-Steps", score=1), row("b", status="timeout", score=0)]
    found = run(tmp_path, rows, fields=fields, statuses={"max_steps": "wrong", "timeout": "scored"})
    told = {r["query_id"][-1]: (r["status"], r["given_score"])
            for r in found.responses.to_pylist()}  # fmt: skip
    assert set(told.values()) == {("truncated", 0.0), ("ok", 0.0)}
    assert any("1 answers that ended as 'Max-Steps' count as wrong" in n for n in found.notes)
    found = run(tmp_path, rows, fields=fields, statuses={"max_steps": "missing"})
    assert "unanswered" in found.responses.column("status").to_pylist()


def test_a_finish_reason_and_an_empty_text_give_a_status(tmp_path: Path) -> None:
    fields = {**FIELDS, "finish_reason": "why"}
    rows = [row(output="", why="stop"), row("b", why="max_tokens"), row("b", "m2", why="safety")]
    done = run(tmp_path, rows, fields=fields).responses
    assert done.column("status").to_pylist() == ["empty", "truncated", "refused"]


def test_a_timeout_of_a_recording_gets_no_verdict(tmp_path: Path) -> None:
    # Upstream counts it as wrong; nobody knows what the model would have answered.
    fields = {**FIELDS, "status": "status", "score": "score"}
    rows = [row(status="timeout", score=0), row("b", status="ok", score=1)]
    done = run(tmp_path, rows, fields=fields).responses
    verdicts = file_verdicts(queries(), done)
    assert {v["query_id"][-1] for v in verdicts.to_pylist()} == {"1"}


def test_a_cost_of_0_beside_an_answer_is_unknown_unless_the_price_is_0(tmp_path: Path) -> None:
    # Harnesses write 0 where nothing was metered; a ranking by cost would crown such a model.
    rows = [row(usd=0, tokens=0, s=0.0), row("b", usd=0.25, tokens=7, s=1.5)]
    fields = FIELDS | {"cost_usd": "usd", "prompt_tokens": "tokens", "latency_s": "s"}
    table = run(tmp_path, rows, fields=fields).responses
    for name, known in (("cost_usd", 0.25), ("prompt_tokens", 7), ("latency_s", 1.5)):
        assert table.column(name).to_pylist() == [None, known]
    priced = {"model_id": "m1", "price_in": 0, "price_out": 0, "price_date": "2026-11-01"}
    free = models_table(Pool.model_validate({"models": [priced]}))
    table = run(tmp_path, rows, fields=fields, models=free).responses
    assert table.column("cost_usd").to_pylist() == [0, 0.25]
