"""Every catalog entry is whole, and its rows become the queries it says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs import catalogue as pages
from routeyard.flows.cli import run
from routeyard.pipelines.common.errors import SourceError, UnknownName
from routeyard.pipelines.ingest import ingest
from routeyard.pipelines.ingest.catalog import _PARTS, domains, entry, from_catalog, names
from routeyard.pipelines.ingest.queries import each_item, to_queries
from routeyard.pipelines.ingest.sources import check
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import ScoringInput
from routeyard.schemas.recipe import Source

FOLDER = pages.FOLDER


def taken(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    source = from_catalog(Source(name=name, catalog=name))
    found, _ = to_queries(source, each_item(source, rows, where=name), seen=Counter(), where=name)
    return found


def test_the_catalog_holds_all_sources_of_the_list() -> None:
    assert len(names()) >= 66
    assert sum(len(found) for found in domains().values()) == len(names())


@pytest.mark.parametrize("name", names())
def test_rows_of_an_entry_become_what_it_says(name: str) -> None:
    one = entry(name)
    source = from_catalog(Source(name="mine", catalog=name, limit=3))
    assert (source.name, source.limit) == ("mine", 3)
    assert source.hub_id or source.path
    assert source.license
    assert one.citation
    assert one.evidence
    assert set(one.unconfirmed) <= set(one.columns)
    assert 2 <= len(one.rows) <= 4
    found = [
        {k: q[k] for k in ("question", "choices", "references", "task", "scorer") if q[k] != []}
        for q in taken(name, [dict(row) for row in one.rows])
    ]
    assert found == [dict(query) for query in one.becomes]
    # Each reading of the mapping takes columns of the layout only.
    assert check(one, one.rows).fits
    assert check(one, one.rows).missing == ()


@pytest.mark.parametrize("name", names())
def test_a_reference_is_right_by_its_own_scorer(name: str) -> None:
    for query in entry(name).becomes:
        if query["scorer"] in ("none", "code"):
            continue
        scorer = SCORERS.get(query["scorer"])
        asked = ScoringInput(
            query["question"], tuple(query["references"]), tuple(query.get("choices", ()))
        )
        said = query["references"][0]
        form = f"\\boxed{{{said}}}" if query["scorer"] == "math" else f"Answer: {said}"
        bare = said if query["scorer"] in ("meteor", "rouge_l") else form
        assert scorer.read(asked, bare).outcome == "correct", query


def test_few_columns_are_unconfirmed() -> None:
    entries = [entry(name) for name in names()]
    doubtful = sum(len(one.unconfirmed) for one in entries)
    assert doubtful / sum(len(one.columns) for one in entries) < 0.25


def test_superglue_has_its_own_scorers() -> None:
    used = {q["scorer"] for name in domains()["superglue"] for q in entry(name).becomes}
    assert used == {f"superglue_{t}" for t in (
        "boolq", "cb", "copa", "multirc", "record", "rte", "wic", "wsc")}  # fmt: skip


def test_mt_bench_has_both_turns_and_mmlu_its_subjects() -> None:
    turns = [query["question"] for query in entry("mt_bench").becomes]
    assert len(turns) == 2 * len(entry("mt_bench").rows)
    assert turns[0] in turns[1]
    assert {q["task"] for q in entry("mmlu").becomes} == {
        "mmlu_anatomy", "mmlu_elementary_mathematics"}  # fmt: skip


@pytest.mark.parametrize("domain", domains())
def test_the_page_of_a_domain_is_made_from_its_entries(domain: str) -> None:
    page = (FOLDER / domain / "README.md").read_text(encoding="utf-8")
    assert page == pages.readme(domain), "run `python docs/catalogue.py`"


def test_the_right_answer_does_not_always_stand_first() -> None:
    row = dict(entry("sciq").rows[0])
    places = Counter()
    for number in range(40):
        (query,) = taken("sciq", [row | {"question": f"Q{number}"}])
        letter = query["references"][0]
        assert query["choices"]["ABCD".index(letter)] == row["correct_answer"]
        places[letter] += 1
    assert len(places) == 4


def test_the_page_that_an_error_names_says_what_each_key_holds() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    for part, keys in _PARTS.items():
        for key in keys:
            assert f"| `{part}.{key}` |" in page


def test_an_unknown_entry_suggests_a_known_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'gsm8k'"):
        from_catalog(Source(name="x", catalog="gsm8"))


def test_each_item_of_a_list_is_a_question_and_a_text_is_no_list(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"turns": ["a", "b"], "answers": ["1", "2"]}\n', encoding="utf-8")
    fields = {"question": "{{ _item }}", "references": "{{ [answers[_index]] }}"}
    source = Source.model_validate(
        {"name": "d", "path": str(path), "scorer": "em", "each": "turns", "fields": fields}
    )
    rows = ingest([source], base=tmp_path).queries.to_pylist()
    assert [(r["question"], r["references"]) for r in rows] == [("a", ["1"]), ("b", ["2"])]
    broken = source.model_copy(update={"each": "{{ turns[0] }}"})
    with pytest.raises(SourceError, match="gives no list"):
        ingest([broken], base=tmp_path)


def test_a_check_names_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text("question,answer,level\nWhat is 1+1?,#### 2,easy\n", encoding="utf-8")
    assert run(["sources", "gsm8k", "--check", "--file", str(good)]) == 0
    assert run(["sources", "gsm8k", "--check", "--file", str(good.parent / "goo*.csv")]) == 0
    assert "not in the catalog: level" in capsys.readouterr().out
    bad.write_text("problem,answer\nWhat is 1+1?,#### 2\n", encoding="utf-8")
    assert run(["sources", "gsm8k", "--check", "--file", str(bad)]) == 3
    said = capsys.readouterr().out
    assert "not in the data: question" in said
    assert "not in the catalog: problem" in said


def test_a_reference_that_its_scorer_cannot_use_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "letters.csv"
    path.write_text("question,answer\nWhich one?,#### none at all\n", encoding="utf-8")
    assert run(["sources", "gsm8k", "--check", "--file", str(path)]) == 3
    assert "cannot use the reference" in capsys.readouterr().out


def test_list_and_show_mark_unconfirmed_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sources"]) == 0
    assert "unconfirmed: question, answer" in capsys.readouterr().out
    assert run(["sources", "chemistryqa"]) == 0
    shown = capsys.readouterr().out
    assert "question (unconfirmed)" in shown
    # The first part is a source that a recipe takes as it is.
    (source,) = yaml.safe_load(shown.split("\ncolumns:")[0])
    assert Source.model_validate(source).hub_id == "avaliev/ChemistryQA"


def test_the_example_of_the_page_reads_a_csv(tmp_path: Path) -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    block = page.split("Write in the recipe:\n\n```yaml\n")[1].split("```")[0]
    assert block.count("\n") < 10
    (source,) = yaml.safe_load(block)["sources"]
    (tmp_path / "mine.csv").write_text("question,answer\nCapital of Peru?,Lima\n", encoding="utf-8")
    found = ingest([Source.model_validate(source)], base=tmp_path).queries.to_pylist()
    assert (found[0]["question"], found[0]["references"]) == ("Capital of Peru?", ["Lima"])
