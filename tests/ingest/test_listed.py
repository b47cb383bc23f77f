"""Options keep their letters: a hole among them, or what is no text, is never taken silently."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest import ingest
from routeyard.schemas.recipe import Source

LISTED = "opts"
COLUMNS = ["{{ a }}", "{{ b }}", "{{ c }}", "{{ d }}"]


def queries(folder: Path, name: str, row: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    path = folder / name
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist([row]), path)
    elif name.endswith(".csv"):
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(row))
            writer.writeheader()
            writer.writerow(row)
    else:
        path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    scorer = fields.pop("scorer", "mcq")
    said = {"name": "s", "path": name, "scorer": scorer, "fields": {"question": "q", **fields}}
    found = ingest([Source.model_validate(said)], base=folder).queries
    return list(found.to_pylist())


def asked(options: list[Any], gold: str = "C") -> tuple[dict[str, Any], dict[str, Any]]:
    """The same row with a list of options and with a column for each."""
    row = {"q": "Which is it?", "gold": gold}
    return {**row, "opts": options}, {**row, **dict(zip("abcd", options, strict=True))}


@pytest.mark.parametrize("empty", [None, "", "  "])
@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet", "x.csv"])
@pytest.mark.parametrize("form", ["list", "columns"])
def test_a_hole_among_the_options_is_an_error_in_every_form(
    tmp_path: Path, empty: str | None, name: str, form: str
) -> None:
    # Trap: without the hole, C is the next option: another answer is right, and nobody sees it.
    listed, columns = asked(["Rome", empty, "Paris", "Oslo"])
    if name == "x.csv" and form == "list":
        listed = {**listed, "opts": json.dumps(listed["opts"])}
    mapped = "{{ opts | from_json }}" if name == "x.csv" else LISTED
    row, choices = (listed, mapped) if form == "list" else (columns, COLUMNS)
    with pytest.raises(SourceError, match=r"option B of 4 has no text") as caught:
        queries(tmp_path, name, row, choices=choices, references="gold")
    assert "row 1, id '0'" in str(caught.value)
    if name == "x.jsonl" and empty != "  ":
        # Both ways out that the error names work as they are written.
        kept, only = re.findall(r'"(\{\{.*?\}\})"', str(caught.value))
        for way, wanted in ((kept, ["Rome", "(empty)", "Paris", "Oslo"]),
                            (only, ["Rome", "Paris", "Oslo"])):  # fmt: skip
            (query,) = queries(tmp_path, name, row, choices=way, references="gold")
            assert query["choices"] == wanted


@pytest.mark.parametrize("empty", [None, "", " ", float("nan")])
def test_empty_options_at_the_end_are_padding(tmp_path: Path, empty: Any) -> None:
    for row, choices in zip(asked(["0", "1", empty, empty], "B"), (LISTED, COLUMNS), strict=True):
        (query,) = queries(tmp_path, "x.jsonl", row, choices=choices, references="gold")
        assert query["choices"] == ["0", "1"]
        # The padding is no option: a reference to it is a fault of the row.
        with pytest.raises(SourceError, match="'C' is not the letter of one of 2 options"):
            queries(tmp_path, "x.jsonl", row | {"gold": "C"}, choices=choices, references="gold")


def test_objects_are_no_options_and_no_references(tmp_path: Path) -> None:
    letters = {"A": "Lima", "B": "Quito"}
    row = {"q": "Capital of Peru?", "options": letters, "gold": "A"}
    # Trap: their keys would be asked ("A. A", "B. B").
    with pytest.raises(SourceError, match=r"fields.choices gives an object \(with 'A', 'B'\)") as e:
        queries(tmp_path, "x.jsonl", row, choices="options", references="gold")
    written = re.search(r'choices: "(.*)"', str(e.value))
    assert written is not None
    (query,) = queries(tmp_path, "x.jsonl", row, choices=written[1], references="gold")
    assert query["choices"] == ["Lima", "Quito"]

    measured = {"q": "How far?", "the answer": {"value": "2", "unit": "m"}}
    with pytest.raises(SourceError, match=r"fields.references gives an object") as e:
        queries(tmp_path, "y.jsonl", measured, references="the answer", scorer="numeric")
    written = re.search(r'references: "(.*)"', str(e.value))
    assert written is not None
    (query,) = queries(tmp_path, "y.jsonl", measured, references=written[1], scorer="numeric")
    assert query["references"] == ["2"]


@pytest.mark.parametrize(
    ("entries", "kind"),
    [
        ([{"key": "A", "text": "Lima"}, {"key": "B", "text": "Quito"}], "an object"),
        ([{"k": "A", "of it": "Lima"}, {"k": "B", "of it": "Quito"}], "an object"),
        ([["A", "Lima"], ["B", "Quito"]], "a list"),
    ],
)
def test_entries_that_are_no_texts_are_an_error_with_the_expression_to_write(
    tmp_path: Path, entries: list[Any], kind: str
) -> None:
    row = {"q": "Capital of Peru?", "meta": {"options": entries}, "gold": "A"}
    for field, more in (("choices", {"references": "gold"}), ("references", {"scorer": "em"})):
        with pytest.raises(SourceError, match=f"entry 1 of the 2 .*{field} gives is {kind}") as e:
            queries(tmp_path, "x.jsonl", row, **{field: "meta.options"}, **more)
        written = re.search(r': "(\{\{.*\}\})"', str(e.value))
        assert written is not None
        (query,) = queries(tmp_path, "x.jsonl", row, **{field: written[1]}, **more)
        assert query[field] == ["Lima", "Quito"]


def test_an_object_in_a_column_of_its_own_is_an_error_too(tmp_path: Path) -> None:
    row = {"q": "Which?", "a": "Rome", "b": {"text": "Paris"}, "gold": "A"}
    with pytest.raises(SourceError, match="entry 2 of the 2") as caught:
        queries(tmp_path, "x.jsonl", row, choices=["{{ a }}", "{{ b }}"], references="gold")
    assert "{{ b['text'] }}" in str(caught.value)
