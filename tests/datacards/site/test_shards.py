"""Shards: what a browser reads back, and answers cut around what was read."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from routeyard.datacards.site import shards
from routeyard.datacards.site import shards as answers
from routeyard.datacards.site.shards import questions, write_shards


def unpacked(path: Path) -> Any:
    found = re.fullmatch(r'routeyard\("\w+",\d+,"([A-Za-z0-9+/=]*)"\);\n', path.read_text("ascii"))
    assert found, "a shard is one call with base64 and nothing else"
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


@pytest.mark.parametrize(
    ("text", "span", "longest", "expected"),
    [
        (None, (0, 1), 10, {"text": None}),
        ("so: 42.", (4, 6), 10, {"text": ["so: ", "42", "."]}),
        ("so: 42.", None, 10, {"text": ["so: 42."]}),
        # An emoji is one character here and two in a browser: pieces need no offsets.
        ("🎉🎉 42", (3, 5), 10, {"text": ["🎉🎉 ", "42", ""]}),
        # Offsets that do not fit the text mark nothing.
        ("short", (4, 90), 10, {"text": ["short"]}),
        # Without a span the end is kept, where an answer commits itself.
        ("a" * 20 + "END", None, 10, {"text": ["a" * 7 + "END"], "cut": [13, 0]}),
        ("a" * 9 + "X" + "b" * 90, (9, 10), 10, {"text": ["aaaaaaa", "X", "bb"], "cut": [2, 88]}),
    ],
)
def test_pieces(text: str | None, span: Any, longest: int, expected: dict[str, Any]) -> None:
    book = Asked(1)
    book.answer(text, span)
    (found,) = questions(
        book.ask, ["q000"], ["a", "b"], has=["responses", "verdicts"], longest=longest,
        longest_prompt=100,
    )  # fmt: skip
    (sample,) = json.loads(found)["cells"][0]["samples"]
    assert {k: v for k, v in sample.items() if v is not None or k == "text"} == {
        "status": "ok", **expected, "verdicts": sample["verdicts"],
    }  # fmt: skip
    assert [one["scorer"] for one in sample["verdicts"]] == ["first", "second"]


class Asked:
    """A release of `n` questions and two models that are asked in SQL, as a book asks it."""

    def __init__(self, n: int) -> None:
        self.connection = duckdb.connect()
        ids = [f"q{i:03d}" for i in range(n)]
        queries = {
            "query_id": ids,
            "task": ["t"] * n,
            "domain": ["d"] * n,
            "source": ["s"] * n,
            "source_id": ids,
        }
        queries |= {"question": ids, "prompt": ids, "scorer": ["numeric"] * n}
        queries |= {"choices": [[""]] * n, "references": [["1"]] * n}
        pairs = {"query_id": ids * 2, "model_id": ["a"] * n + ["b"] * n}
        outcomes = {**pairs, "score": [1.0] * n + [0.0] * n, "correct": [True] * n + [False] * n}
        outcomes |= {"decided_by": ["numeric"] * 2 * n, "contested": [False] * 2 * n}
        for name in ("cost_usd", "prompt_tokens", "completion_tokens", "latency_s"):
            outcomes[name] = [1.0] * 2 * n
        answers = {**pairs, "sample": [0] * 2 * n, "status": ["ok"] * 2 * n}
        answers["text"] = [f"{model} on {query}" for model in "ab" for query in ids]
        tables = {"queries": queries, "outcomes": outcomes, "responses": answers}
        tables["models"] = {"model_id": ["a", "b"]}
        for name, columns in tables.items():
            self.connection.register(name, pa.table(columns))
        rows = SimpleNamespace(rows=n)
        self.manifest = SimpleNamespace(tables={"queries": rows, "responses": rows})

    def answer(self, text: str | None, span: tuple[int, int] | None) -> None:
        """Give q000 of model a this text, read there by the second of two scorers."""
        pair = {"query_id": ["q000"], "model_id": ["a"], "sample": [0]}
        answers = {**pair, "status": ["ok"], "text": pa.array([text], pa.string())}
        self.connection.register("responses", pa.table(answers))
        starts, ends = zip((None, None), span or (None, None), strict=True)
        told = {
            **{name: column * 2 for name, column in pair.items()},
            "scorer": ["second", "first"], "scorer_version": ["1", "1"], "score": [1.0, 1.0],
            "outcome": ["correct"] * 2, "extracted": ["x"] * 2, "reason": [None, None],
            "span_start": pa.array(starts[::-1], pa.int64()),
            "span_end": pa.array(ends[::-1], pa.int64()), "cost_usd": [0.0, 0.0],
        }  # fmt: skip
        self.connection.register("verdicts", pa.table(told))

    def ask(self, sql: str) -> pa.Table:
        return self.connection.sql(sql).to_arrow_table()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return self.ask(sql).to_pylist()


def test_answers_read_in_large_steps_stand_at_their_questions_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"MOST": 25, "ANSWERED": 4}.items():
        monkeypatch.setattr(shards, name, value)
    for name, value in {"READ": 10, "AT_ONCE": 3}.items():
        monkeypatch.setattr(answers, name, value)
    meta = write_shards(Asked(31), tmp_path)
    assert (meta["questions"], meta["of"]) == (25, 31)
    (index,) = tmp_path.glob("index-*.js")
    assert unpacked(index)["id"] == [f"q{i:03d}" for i in range(25)]
    parts = sorted(tmp_path.glob("answers-*.js"), key=lambda path: int(path.stem.split("-")[1]))
    said = {
        question["query_id"]: [cell["samples"][0]["text"] for cell in question["cells"]]
        for part in parts
        for question in unpacked(part)
    }
    assert said == {f"q{i:03d}": [[f"a on q{i:03d}"], [f"b on q{i:03d}"]] for i in range(25)}
