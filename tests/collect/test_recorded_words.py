"""What a recording leaves open is said with a count: rewordings, keys left out, ids, prices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.recorded import RecipeQuestion, asks_the_same, import_recorded
from routeyard.pipelines.common.errors import RecipeError, RecordedError
from routeyard.pipelines.common.pool import models_table
from routeyard.schemas.recipe import Pool, Recorded
from tests.collect.test_recorded import FIELDS, queries, row, run

ASKED = FIELDS | {"prompt": "sent"}


def test_answers_that_rest_on_their_ids_alone_are_counted(tmp_path: Path) -> None:
    # The question of an id may be reworded, and its old answers would pass for new ones.
    (note,) = [n for n in run(tmp_path, [row(), row("b"), row(model="m2")]).notes if "ids" in n]
    assert note.startswith("r.jsonl: that its 3 answers were given to these questions")
    rows = [row(sent="Question A")]
    assert not [n for n in run(tmp_path, rows, fields=ASKED).notes if "ids alone" in n]


def test_a_recorded_prompt_that_asks_something_else_stops(tmp_path: Path) -> None:
    rows = [row(sent="question a"), row("b", sent="was asked before")]
    with pytest.raises(RecordedError, match="1 of 2 recorded prompts") as caught:
        run(tmp_path, rows, fields=ASKED)
    assert "line 2 (id 'b')" in str(caught.value)
    left = run(tmp_path, rows, fields=ASKED, other_questions="ignore")
    assert left.responses.num_rows == 1
    assert any("1 answers were given to prompts" in n and "left out" in n for n in left.notes)
    kept = run(tmp_path, rows, fields=ASKED, other_questions="keep")
    assert kept.responses.num_rows == 2
    assert kept.provenance[0]["other_questions"] == 1


@pytest.mark.parametrize(
    ("sent", "same"),
    [
        ("Which is a fruit?", True),
        ("You are careful.\n\n  which IS a fruit?\nThink step by step.", True),
        ([{"role": "user", "content": [{"text": "Which is a fruit? A. apple B. stone"}]}], True),
        ("Which is a fruit? A. pear B. stone", False),  # an option was reworded
        ("Which is a plant?", False),
        ("", False),
    ],
)
def test_what_asks_the_same(sent: Any, same: bool) -> None:
    asked = RecipeQuestion("q", "Which is a fruit?", "…", ["apple", "stone"], ["A"])
    assert asks_the_same(sent, asked) is same


def test_a_key_that_some_rows_leave_out_is_missing_and_counted(tmp_path: Path) -> None:
    rows = [row(tokens=3), {"id": "b", "model": "m1"}, row(model="m2")]
    done = run(tmp_path, rows, fields=FIELDS | {"completion_tokens": "tokens"})
    assert done.responses.column("completion_tokens").to_pylist() == [3, None]
    assert done.provenance[0]["missing"] == 1
    assert "r.jsonl: 2 of 3 rows have no key for fields.completion_tokens: taken as missing" in (
        done.notes
    )


def test_a_key_that_no_row_has_is_a_slip_of_the_mapping(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no column 'outptu'") as caught:
        run(tmp_path, [row(), row("b")], fields=FIELDS | {"text": "outptu"})
    assert "did you mean 'output'" in str(caught.value)


def test_a_row_without_a_needed_key_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="lacks what every row needs") as caught:
        run(tmp_path, [row(), {"id": "b", "output": "4"}])
    assert "r.jsonl, fields.model, line 2" in str(caught.value)
    with pytest.raises(RecordedError, match="names no question") as nameless:
        run(tmp_path, [row(), row(None)])  # type: ignore[arg-type]
    assert "line 2" in str(nameless.value)


def test_ids_that_match_nothing_and_silent_models_are_named(tmp_path: Path) -> None:
    notes = run(tmp_path, [row(), row("zzz")]).notes
    assert any(
        "1 rows are about questions that the recipe does not ask ('zzz')" in n for n in notes
    )
    assert "no answer is recorded of 1 of the pool's models: 'm2'" in notes
    with pytest.raises(RecordedError, match="no row") as caught:
        run(tmp_path, [row("zzz")])
    assert "the file names 'zzz', the questions are 'a', 'b'" in str(caught.value)


def test_tokens_and_the_pools_price_make_the_cost(tmp_path: Path) -> None:
    prices = {"price_in": 1.0, "price_out": 2.0, "price_date": "2026-11-01"}
    models = [{"model_id": "m1", **prices}, {"model_id": "m2"}]
    pool = models_table(Pool.model_validate({"models": models}))
    (tmp_path / "r.csv").write_text(
        "id,model,output,in,out,usd\na,m1,4,10,20,\nb,m1,4,10,20,7\na,m2,4,10,20,\nb,m2,4,10,,\n"
    )
    fields = FIELDS | {"prompt_tokens": "in", "completion_tokens": "out", "cost_usd": "usd"}
    entry = Recorded.model_validate({"path": "r.csv", "fields": fields})
    table = import_recorded(queries(), pool, [entry], base=tmp_path).responses
    found = {
        (row["query_id"][-1], row["model_id"]): (row["cost_usd"], row["cost_source"])
        for row in table.to_pylist()
    }
    assert found == {
        ("0", "m1"): (50e-6, "price_table"),
        ("1", "m1"): (7.0, "provider"),  # what was billed is stated
        ("0", "m2"): (None, None),
        ("1", "m2"): (None, None),
    }
