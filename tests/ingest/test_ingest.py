"""Ingest: the same queries from every file form, and clear refusals."""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common.errors import RouteyardError, SourceError
from routeyard.pipelines.common.mapping import NoColumn
from routeyard.pipelines.ingest import ingest
from routeyard.pipelines.ingest.queries import query_id
from routeyard.schemas.recipe import Source

ROWS = [
    {"id": "a", "question": "What is 2 + 2?", "answer": "4"},
    {"id": "b", "question": "What is 3 + 4?", "answer": "7"},
    {"id": "c", "question": "What is 2 + 2?", "answer": "4"},  # an exact repeat
]
ROOT = Path(__file__).parents[2]


def source(path: str, **more: object) -> Source:
    fields = {"id": "id", "question": "question", "references": "answer"}
    return Source.model_validate(
        {"name": "s", "path": path, "scorer": "numeric", "fields": fields, **more}
    )


def write(folder: Path, name: str, rows: list[dict[str, str]] = ROWS) -> str:
    path = folder / name
    if ".parquet" in name:
        pq.write_table(pa.Table.from_pylist(rows), path)
        return name
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    if ".csv" in name:
        with open(folder / "plain", "w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        lines = (folder / "plain").read_bytes().decode()
    content = lines.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return name


def test_what_a_source_says_of_percent_decides_how_its_answers_are_read(tmp_path: Path) -> None:
    from routeyard.pipelines.label.scorers import SCORERS
    from routeyard.pipelines.label.scorers.scorer import ScoringInput

    path = write(tmp_path, "q.jsonl", [{"id": "a", "question": "Which share?", "answer": "0.5"}])
    wanted = {None: "correct", "value": "correct", "points": "incorrect"}
    for policy, outcome in wanted.items():
        query = ingest([source(path, percent=policy)], base=tmp_path).queries.to_pylist()[0]
        asked = ScoringInput(query["question"], ("0.5",), metadata=json.loads(query["metadata"]))
        for scorer in ("numeric", "math", "auto"):
            assert SCORERS.get(scorer).read(asked, "Answer: 50%").outcome == outcome, policy


@pytest.mark.parametrize(("ending", "at"), [("jsonl", "line 2"), ("csv", "row 2")])
def test_a_fault_in_one_of_several_files_names_the_file_and_its_own_row(
    tmp_path: Path, ending: str, at: str
) -> None:
    # Trap: rows were counted through all files of a glob, and every file was named.
    write(tmp_path, f"a.{ending}", ROWS[:2])
    write(tmp_path, f"b.{ending}", [ROWS[2], {"id": "d", "question": "", "answer": "4"}])
    with pytest.raises(SourceError, match="without a question") as caught:
        ingest([source(f"*.{ending}")], base=tmp_path)
    assert caught.value.where == f"b.{ending}, {at}"
    # An item of a list is at the place of its row.
    fields = {"question": "{{ _item }}", "references": "answer"}
    each = source(f"*.{ending}", each="{{ [question] }}", fields=fields)
    with pytest.raises(SourceError) as caught:
        ingest([each], base=tmp_path)
    assert caught.value.where == f"b.{ending}, {at}"


def test_a_row_says_itself_what_percent_is_and_a_strange_word_is_refused(tmp_path: Path) -> None:
    rows = [{"id": "a", "question": "Which?", "answer": "5", "percent": "points"}]
    fields = {"id": "id", "question": "question", "references": "answer", "metadata": ["percent"]}
    more = {"percent": "value", "fields": fields}
    made = ingest([source(write(tmp_path, "q.jsonl", rows), **more)], base=tmp_path).queries
    assert json.loads(made.to_pylist()[0]["metadata"])["percent"] == "points"
    rows[0]["percent"] = "per mille"
    with pytest.raises(SourceError, match="per mille"):
        ingest([source(write(tmp_path, "q.jsonl", rows), **more)], base=tmp_path)


@pytest.mark.parametrize("name", ["q.parquet", "q.csv", "q.jsonl", "q.csv.gz", "q.jsonl.gz"])
def test_every_form_gives_the_same_queries(tmp_path: Path, name: str) -> None:
    queries = ingest([source(write(tmp_path, name))], base=tmp_path).queries
    assert queries.column("source_id").to_pylist() == ["a", "b", "c"]
    expected = [query_id(r["question"], [], [r["answer"]], int(i == 2)) for i, r in enumerate(ROWS)]
    assert queries.column("query_id").to_pylist() == expected
    prompt = queries.column("prompt")[0].as_py()
    assert prompt.startswith("What is 2 + 2?\n\n")
    assert "Answer" in prompt  # the answer-format instruction of the scorer


def test_an_id_survives_another_source_order_and_prompt(tmp_path: Path) -> None:
    one = ingest([source(write(tmp_path, "q.jsonl", ROWS[:2]))], base=tmp_path)
    turned = source(write(tmp_path, "r.jsonl", ROWS[1::-1]), name="t", instruction="Be brief.")
    two = ingest([turned], base=tmp_path)
    assert set(one.queries.column("query_id").to_pylist()) == set(
        two.queries.column("query_id").to_pylist()
    )


def test_choices_are_lettered_and_the_reference_is_checked(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text('{"q": "Which?", "o": ["x", "y"], "a": 1}\n')
    fields = {"question": "q", "choices": "o", "references": "{{ a | letter }}"}
    mcq = source("m.jsonl", scorer="mcq", fields=fields)
    queries = ingest([mcq], base=tmp_path).queries
    assert "A. x\nB. y" in queries.column("prompt")[0].as_py()
    assert queries.column("references").to_pylist() == [["B"]]
    # An index where a letter is expected would mark every answer wrong.
    bad = source("m.jsonl", scorer="mcq", fields=fields | {"references": "a"})
    with pytest.raises(SourceError, match="not the letter of one of 2 options"):
        ingest([bad], base=tmp_path)


@pytest.mark.parametrize(
    ("options", "reference", "stored"),
    [
        (["A) Paris", " B) Lyon", "C) Nice"], "B) Lyon", (["Paris", "Lyon", "Nice"], "B")),
        (["(1) Paris", "(2) Lyon"], "Lyon", (["Paris", "Lyon"], "B")),
        # Trap: not the marks of their own places.
        (["B. cereus", "A. niger"], "A. niger", (["B. cereus", "A. niger"], "B")),
        (["A. niger", "E. coli"], "b", (["A. niger", "E. coli"], "B")),
        (["3", "1", "2"], "2", "'2' is not the letter"),  # the second text, or the third place
        (["7", "9"], "9", (["7", "9"], "B")),
        (["12) drummers", "bar"], "A", (["12) drummers", "bar"], "A")),  # not the marks "1", "2"
        (["Lyon", "Lyon"], "Lyon", "'Lyon' is not the letter of one of 2 options, nor the text"),
        (["A) Paris; B) Lyon"], "B", "makes one of a text"),
    ],
)
def test_options_lose_their_marks_and_a_reference_may_be_the_text_of_one(
    tmp_path: Path, options: list[str], reference: str, stored: tuple[list[str], str] | str
) -> None:
    write(tmp_path, "m.jsonl", [{"q": "Which?", "o": options, "a": reference}])
    mcq = source(
        "m.jsonl", scorer="mcq", fields={"question": "q", "choices": "o", "references": "a"}
    )
    if isinstance(stored, str):
        with pytest.raises(SourceError, match=stored):
            ingest([mcq], base=tmp_path)
    else:
        (query,) = ingest([mcq], base=tmp_path).queries.to_pylist()
        assert (query["choices"], query["references"]) == (stored[0], [stored[1]])
        assert f"A. {stored[0][0]}\nB. {stored[0][1]}" in query["prompt"]


def test_texts_that_are_letters_are_not_taken_for_the_letters_of_options(tmp_path: Path) -> None:
    blood = ["O", "A", "B", "AB"]
    fields = {"question": "q", "choices": "o", "references": "a"}
    rows = [{"q": f"{number}?", "o": blood, "a": text} for number, text in enumerate(["A", "AB"])]
    mcq = source(write(tmp_path, "m.jsonl", rows), scorer="mcq", fields=fields)
    with pytest.raises(SourceError, match="a letter is the text of another option") as caught:
        ingest([mcq], base=tmp_path)
    assert "row 1: 'A'" in str(caught.value)
    assert "row 2: 'AB'" in str(caught.value)
    # Letters alone are letters.
    rows = [row | {"a": text} for row, text in zip(rows, "AD", strict=True)]
    write(tmp_path, "m.jsonl", rows)
    assert ingest([mcq], base=tmp_path).queries["references"].to_pylist() == [["A"], ["D"]]


def test_missing_references_stop_or_are_listed(tmp_path: Path) -> None:
    rows = [*ROWS, {"id": "d", "question": "Why?", "answer": ""}]
    name = write(tmp_path, "q.jsonl", rows)
    with pytest.raises(SourceError, match="without a reference") as caught:
        ingest([source(name)], base=tmp_path)
    assert "row 4" in str(caught.value)
    done = ingest([source(name, incomplete="remove")], base=tmp_path)
    assert done.queries.num_rows == 3
    assert done.removed == [("s|d", "no_reference", "q.jsonl, row 4")]


def test_where_selects_and_exclude_is_listed(tmp_path: Path) -> None:
    name = write(tmp_path, "q.jsonl")
    done = ingest([source(name, where={"answer": "4"}, exclude={"id": "c"})], base=tmp_path)
    assert done.queries.column("source_id").to_pylist() == ["a"]
    assert [(key, reason) for key, reason, _ in done.removed] == [("s|c", "excluded")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"id": "a", "question"\n', "line 1 is not JSON"),
        (b"[1]\n", "not a JSON object"),
        (b'{"id": "a", "question": "x", "answr": "1"}\n', "no column 'answer'"),
        (b'{"id": "a", "question": "", "answer": "1"}\n', "without a question"),
        (b'{"id": 1, "question": "x", "answer": "1"}\n' * 2, "1 rows .* have the id of another"),
        (b'{"id": "\xff"}\n', "cannot be read"),
    ],
)
def test_bad_files_say_where(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "q.jsonl").write_bytes(content)
    with pytest.raises(RouteyardError, match=says) as caught:
        ingest([source("q.jsonl")], base=tmp_path)
    assert "q.jsonl" in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("other", [False, True])
def test_all_repeated_ids_are_counted_and_the_step_fits(tmp_path: Path, other: bool) -> None:
    # One at a time, a table with 25 of them took 25 runs.
    rows = [{"id": str(i), "question": f"{i}?", "answer": "1"} for i in range(9)]
    again = [{**row, "answer": "2"} if other else row for row in rows[:5]]
    name = write(tmp_path, "q.jsonl", [*rows, *again])
    with pytest.raises(SourceError) as caught:
        ingest([source(name)], base=tmp_path)
    told = "0 repeat it word for word, 5 say" if other else "5 repeat it word for word, 0 say"
    assert f"5 rows of source 's' have the id of another: {told}" in caught.value.what
    assert "id '0' in rows 0 and 9; id '1' in rows 1 and 10" in str(caught.value.where)
    assert ("map 'id'" in str(caught.value.next_step)) == other
    assert ("out of the file" in str(caught.value.next_step)) != other


@pytest.mark.parametrize("name", ["q.parquet", "q.csv.gz"])
def test_damaged_files_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PAR1 not really")
    with pytest.raises(SourceError, match="cannot be read"):
        ingest([source(name)], base=tmp_path)


def test_an_unset_data_folder_says_which_repository_and_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROUTEYARD_DATA", raising=False)
    with pytest.raises(SourceError) as caught:
        ingest([source("${ROUTEYARD_DATA}/q.parquet")], base=tmp_path)
    assert "WildEval/ZeroEval" in str(caught.value)
    assert "ROUTEYARD_DATA" in str(caught.value)


LOAD = """
import json, sys
from pathlib import Path
from routeyard.pipelines.ingest import ingest, pin
from routeyard.schemas.recipe import Source
out = []
for name, scorer, fields, choices in json.loads(sys.argv[1]):
    for streaming in (False, True):
        source = Source(name=name, hub_id=f"org/{name}", config="main", split="test",
                        streaming=streaming, scorer=scorer, fields=fields)
        done = ingest([source], base=Path("."))
        out.append([done.queries.column("query_id").to_pylist(), done.provenance[0]["revision"]])
print(json.dumps(out))
"""


def test_hub_datasets_load_streamed_or_not_at_a_recorded_commit(tmp_path: Path) -> None:
    from tests.ingest.hub_stand_in import commit_of, serving

    hub = tmp_path / "hub"
    repositories = {
        "qa": ("mcq", {"question": "q", "choices": "o", "references": "{{ a | letter }}"}),
        "maths": ("numeric", {"question": "q", "references": "{{ a.split('####')[-1] | strip }}"}),
        "code": ("code", {"question": "q", "references": "a"}),
    }
    rows = {
        "qa": [{"q": f"Pick {i}", "o": ["x", "y"], "a": i % 2} for i in range(4)],
        "maths": [{"q": f"{i} + {i}?", "a": f"sum #### {2 * i}"} for i in range(4)],
        "code": [{"q": f"Write f{i}.", "a": [f"assert f{i}() == {i}"]} for i in range(4)],
    }
    for name in repositories:
        folder = hub / "org" / name
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "test.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows[name])
        )
        (folder / "README.md").write_text(
            "---\nconfigs:\n- config_name: main\n  data_files:\n"
            "  - split: test\n    path: data/test.jsonl\n---\n"
        )
    asked = [[name, scorer, fields, None] for name, (scorer, fields) in repositories.items()]
    with serving(hub) as endpoint:
        # The hub's address is read when the libraries are imported, so in a process of its own.
        environment = os.environ | {
            "HF_ENDPOINT": endpoint,
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HOME": str(tmp_path / "home"),
            "PYTHONPATH": str(ROOT),
        }
        done = subprocess.run(
            [sys.executable, "-c", LOAD, json.dumps(asked)],
            env=environment,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.splitlines()[-1])
    for number, name in enumerate(repositories):
        plain, streamed = loaded[2 * number : 2 * number + 2]
        assert plain == streamed
        assert len(set(plain[0])) == 4
        assert plain[1] == commit_of(hub / "org" / name)


FIELDS = {"id": "id", "question": "question", "references": "answer", "metadata": ["level"]}


def test_nan_is_nothing_and_no_text(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "question": "Which?", "answer": "5", "level": float("nan")},
        {"id": "b", "question": "Whose?", "answer": float("nan"), "level": 2},
    ]
    path = write(tmp_path, "q.jsonl", rows)
    with pytest.raises(SourceError, match="without a reference"):
        ingest([source(path, fields=FIELDS)], base=tmp_path)
    made = ingest([source(path, fields=FIELDS, incomplete="remove")], base=tmp_path)
    assert [json.loads(text) for text in made.queries.column("metadata").to_pylist()] == [
        {"level": None}
    ]
    endless = [rows[0] | {"level": float("inf")}]
    with pytest.raises(SourceError, match=r"metadata of a question cannot be kept"):
        ingest([source(write(tmp_path, "e.jsonl", endless), fields=FIELDS)], base=tmp_path)


def test_a_misspelt_column_of_the_metadata_is_a_slip(tmp_path: Path) -> None:
    path = write(tmp_path, "q.jsonl", [{"id": "a", "question": "Which?", "answer": "5"}])
    with pytest.raises(NoColumn, match="level"):
        ingest([source(path, fields=FIELDS)], base=tmp_path)
