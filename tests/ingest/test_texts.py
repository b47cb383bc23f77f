"""What is asked is a text: a list, an object or bytes are an error that says what to write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.plan import ModelPrompts
from routeyard.pipelines.common.errors import RecipeError, RecordedError, SourceError
from routeyard.pipelines.common.mapping import compile_field, expression, text_of
from routeyard.schemas.recipe.collect import Collect
from routeyard.schemas.recipe.pool import Model
from tests.collect.test_collect import queries as asked_queries
from tests.collect.test_recorded import row as recorded_row
from tests.collect.test_recorded import run as recorded
from tests.ingest.test_listed import queries

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (MESSAGES, "a list"),
        ({"role": "user", "content": "Why?"}, r"an object \(with 'role', 'content'\)"),
        (["Be brief.", "Why?"], "a list"),
        ([["Why?"]], "a list"),
        ({"content": [{"type": "text", "text": "Why?"}]}, r"an object \(with 'content'\)"),
    ],
)
@pytest.mark.parametrize("field", ["question", "prompt", "task", "id"])
def test_the_python_of_a_list_or_an_object_is_never_asked(
    tmp_path: Path, value: Any, kind: str, field: str
) -> None:
    row = {"q": "What?", "their own": value, "gold": "so"}
    said = {"references": "gold", "scorer": "em", field: "their own"}
    with pytest.raises(SourceError, match=f"fields.{field} gives {kind} where a text") as caught:
        queries(tmp_path, "x.parquet", row, **said)
    written = re.search(rf'write {field}: "(.*?)", or', str(caught.value))
    assert written is not None
    (query,) = queries(tmp_path, "x.parquet", row, **said | {field: written[1]})
    assert query["source_id" if field == "id" else field] == "Why?"


def test_an_empty_list_gets_a_mapping_that_takes_it(tmp_path: Path) -> None:
    row = {"q": "What?", "tags": [], "gold": "so"}
    said = {"references": "gold", "scorer": "em"}
    with pytest.raises(SourceError, match=r"fields.domain gives an empty list") as caught:
        queries(tmp_path, "x.jsonl", row, domain="tags", **said)
    written = re.search(r'write domain: "(.*?)", or', str(caught.value))
    assert written is not None
    for tags, domain in (([], "general"), (["law", "tax"], "tax")):
        (query,) = queries(tmp_path, "x.jsonl", row | {"tags": tags}, domain=written[1], **said)
        assert query["domain"] == domain


def test_marked_up_text_is_plain() -> None:
    read = compile_field("{{ name | e }}", where="here")
    found = text_of(read({"name": "a < b"}), "name", "question", "here")
    assert type(found) is str
    assert found + " < c" == "a &lt; b < c"


def test_numbers_are_texts_and_a_null_id_is_none(tmp_path: Path) -> None:
    row = {"q": 7, "gold": "so", "name": None}
    (query,) = queries(tmp_path, "x.jsonl", row, references="gold", scorer="em")
    assert query["question"] == "7"
    # Trap: the id would be the word "None".
    with pytest.raises(SourceError, match="a row without an id"):
        queries(tmp_path, "x.jsonl", row, references="gold", scorer="em", id="name")


def test_a_recorded_answer_is_a_text(tmp_path: Path) -> None:
    # As lm-evaluation-harness keeps them: "[['4']]" would be read as the answer.
    with pytest.raises(RecordedError, match=r"fields.text gives a list") as caught:
        recorded(tmp_path, [recorded_row() | {"output": [["4"]]}])
    assert 'write text: "{{ output[-1][-1] }}"' in str(caught.value)
    with pytest.raises(RecordedError, match=r"fields.model gives an object"):
        recorded(tmp_path, [recorded_row() | {"model": {"name": "m1"}}])


def test_a_frame_gives_a_text() -> None:
    asked = asked_queries(2)
    for frame, what in (
        ("{{ prompt.split() }}", "^prompt gives a list"),  # `pool.models` has no `fields`
        ("{{ none if prompt else prompt }}", "gives no prompt for the question 'What"),
    ):
        made = ModelPrompts(asked, Model(model_id="m", prompt=frame), Collect())
        with pytest.raises(RecipeError, match=what) as caught:
            made.prompt(0)
        assert "pool.models, m" in str(caught.value)


@pytest.mark.parametrize(
    ("mapped", "value"),
    [
        ("name", "Ada"),
        ("meta.model", "m"),
        ("their own", 1),
        ("in", 2),
        ("{{ name }}", "Ada"),
        ("{{ name | upper }}", "ADA"),
        ("{{ name }}/{{ meta.model }}", "Ada/m"),
        ("the {{ name }}", "the Ada"),
        (["{{ name }} {{ name }}", "in"], ["Ada Ada", 2]),
    ],
)
def test_a_mapping_is_written_into_another_expression(mapped: Any, value: Any) -> None:
    row = {"name": "Ada", "meta": {"model": "m"}, "their own": 1, "in": 2}
    read = compile_field(f"{{{{ [{expression(mapped)}] }}}}", where="here")
    assert read(row) == [value]


def test_a_model_with_a_nested_name_is_translated_as_the_step_says(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"id": "a", "meta": {"model": "other"}, "output": "4"}]
    for mapped in ("meta.model", "{{ meta.model }}", "{{ meta.model | lower }}"):
        fields = {"query": "id", "model": mapped, "text": "output"}
        with pytest.raises(RecordedError, match="not in the pool") as caught:
            recorded(tmp_path, rows, fields=fields)
        written = re.search(r'fields.model: "(.*?)"; or', str(caught.value))
        assert written is not None
        fields["model"] = written[1].replace("…", "m1")
        (found,) = recorded(tmp_path, rows, fields=fields).responses.to_pylist()
        assert found["model_id"] == "m1"


def test_bytes_are_texts_where_they_are_utf_8(tmp_path: Path) -> None:
    # Some writers of Parquet say of no column that it holds text: "b'Why?'" would be asked.
    row = {"q": "Què?".encode(), "opts": [b"Rome", None, b"Oslo"], "of": {"gold": b"C"}}
    listed = "{{ opts | map('default', 'none', true) | list }}"
    (query,) = queries(tmp_path, "x.parquet", row, choices=listed, references="of.gold")
    assert query["question"] == "Què?"
    assert (query["choices"], query["references"]) == (["Rome", "none", "Oslo"], ["C"])

    latin = {"q": "Què?".encode("latin-1"), "opts": [b"Rome", b"\xff"], "gold": "A"}
    with pytest.raises(SourceError, match=r"fields.question gives bytes") as caught:
        queries(tmp_path, "y.parquet", latin, choices="opts", references="gold")
    assert "no UTF-8" in str(caught.value)
    with pytest.raises(SourceError, match=r"entry 1 of the 2 .* is bytes"):
        queries(tmp_path, "z.parquet", latin | {"q": "?"}, choices="opts", references="gold")
