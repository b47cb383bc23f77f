from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import yaml

from routeyard.datacards.card import cell, hub_license, render, size_category
from routeyard.schemas import DUPLICATES, MODELS, RESPONSES


def _head(release: Path) -> dict:
    return yaml.safe_load((release / "README.md").read_text().split("---\n")[1])


def test_front_matter_is_accepted_by_the_hub_client(release):
    from huggingface_hub import DatasetCard

    card = DatasetCard.load(release / "README.md")
    assert card.data.license == "mit"
    # The client accepts anything: what `load_dataset` needs is checked by hand.
    head = _head(release)
    for config in head["configs"]:
        for entry in config["data_files"]:
            assert (release / entry["path"]).is_file()
    assert [c["config_name"] for c in head["configs"] if c.get("default")] == ["outcomes"]
    assert head["configs"][0]["config_name"] == "outcomes"
    assert {i["config_name"] for i in head["dataset_info"]} == {
        c["config_name"] for c in head["configs"]
    }


LOAD = """
import sys
from datasets import load_dataset
for config in ("labels", "queries", "responses", "models"):
    data = load_dataset(sys.argv[1], config, split="train")
    print(config, data.num_rows, ",".join(data.column_names))
"""


def test_datasets_loads_every_configuration_offline(release, tmp_path):
    import os

    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(release)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=True,
    )
    assert done.stdout.splitlines()[0].startswith("labels 17 query_id,model_id,score")
    assert "queries 6 query_id" in done.stdout


def test_its_sql_runs_and_it_says_what_the_database_holds(release, monkeypatch):
    # Somebody wrote "answers from anywhere", and the table that people load first was not there.
    card = (release / "README.md").read_text()
    monkeypatch.chdir(release)
    blocks = re.findall(r"```sql\n(.*?)```", card, re.S)
    assert len(blocks) == 2
    assert "cost" in blocks[1]
    for block in blocks:
        with duckdb.connect("tiny.duckdb", read_only=True) as connection:
            assert connection.execute(block).fetchall()
    with duckdb.connect("tiny.duckdb", read_only=True) as connection:
        held = connection.execute("SELECT table_name FROM information_schema.tables "
                                  "WHERE table_schema = 'main'").fetchall()  # fmt: skip
    said = re.search(r"^The DuckDB file holds (.*?)\.", card, re.M)
    assert set(re.findall("`([a-z_]+)`", said[1])) == {name for (name,) in held}


def test_numbers_are_those_of_fresh_sql(release):
    card = (release / "README.md").read_text()
    with duckdb.connect() as connection:

        def one(sql: str) -> object:
            row = connection.execute(sql.replace("@", f"{release}/data/")).fetchone()
            return row[0]

        decided = one("SELECT count(score) FROM '@labels.parquet'")
        contested = one("SELECT count(*) FROM '@labels.parquet' WHERE contested")
        oracle = one(
            "SELECT avg(m) FROM (SELECT max(score) m FROM '@labels.parquet' GROUP BY query_id)"
        )
        cost = one("SELECT sum(cost_usd) FROM '@responses.parquet'")
        odd = one(
            "SELECT avg(score) FROM '@labels.parquet' JOIN '@queries.parquet' USING (query_id) "
            "WHERE task = 'odd'"
        )
        rows = one("SELECT count(*) FROM '@labels.parquet'")
        pairs = one("SELECT count(*) FROM '@queries.parquet'") * one(
            "SELECT count(*) FROM '@models.parquet'"
        )
        graded = one("SELECT count(*) FROM '@labels.parquet' WHERE score > 0 AND score < 1")
    # A pair without any answer has no row in `labels`, and is a pair.
    assert pairs > rows
    assert f"| labels | {decided} decided of {pairs} pairs |" in card
    assert ("| model | mean score |" in card) == (graded > 0)
    assert ("| model | accuracy |" in card) == (graded == 0)
    assert f"| contested labels | {contested} |" in card
    assert f"| per-query oracle | {100 * oracle:.1f} % |" in card
    assert f"${cost:,.4f} for 17 of 17" in card
    assert f"| odd | math | numeric | 3 | 8 | {100 * odd:.1f} % |" in card
    assert "| m1 | 50.0 % | 6 |" in card


def test_a_simulated_pool_is_said_plainly(write, tables):
    assert "Simulated pool" not in (write().path / "README.md").read_text()
    rows = tables["models"].to_pylist()
    for row in rows:
        row["simulated"] = True
    path = write({**tables, "models": MODELS.from_rows(rows)}, recipe={"version": "2.0.0"}).path
    assert "**Simulated pool.** All 3 models" in (path / "README.md").read_text()


def test_prices_costs_and_leaks_are_told(write, tables):
    rows = tables["models"].to_pylist()
    listed = {"price_in": 1.0, "price_out": 2.0, "price_date": "2026-11-10", "price_up_to": 200_000}
    for row in rows[:2]:
        row |= listed | {"price_source": "genai-prices 0.2.3, openai/a"}
    rows[2] |= {"price_in": 3.0, "price_out": 4.0, "price_date": "2020-01-01", "price_source": None}
    names = [row["model_id"] for row in rows]
    pool = {
        "models": [{"model_id": names[0], "params_b": 7, "params_source": "a page (read today)"}]
    }
    answers = tables["responses"].to_pylist()
    for row in answers:
        if row["model_id"] == "m1":
            row["cost_usd"] = row["cost_source"] = None
    asked = tables["queries"]
    at = asked.schema.get_field_index("prompt")
    prompts = asked.column("prompt").to_pylist()
    prompts[0] = "  " + prompts[1].upper()
    leaking = {
        **tables,
        "queries": asked.set_column(at, asked.schema.field(at), [prompts]),
        "models": MODELS.from_rows(rows),
        "responses": RESPONSES.from_rows(answers),
    }
    card = (write(leaking, recipe={"pool": pool}).path / "README.md").read_text()
    # A model without costs is named, and the others are counted.
    assert "11 of 17 responses with a known cost; not known of m1 |" in card
    assert (
        "Prices were read 2026-11-10 (genai-prices 0.2.3, openai/a: 2 models; of prompts up to "
        "200,000 tokens); 2020-01-01 (as the recipe states them: 1 model)." in card
    )
    assert f"The size of {names[0]}: a page (read today)." in card
    said = "Test questions of scheme dense that are also in its train set: 1 of 2 word for word, "
    # An empty table of near-duplicates is not "none" where the recipe never looked.
    assert said + "near-duplicates not looked for." in card
    ids = asked.column("query_id").to_pylist()
    leaking["duplicates"] = DUPLICATES.from_rows(
        {
            "query_id": q, "encoder": "e", "threshold": 0.99, "group_id": "g", "similarity": 1.0,
            "representative": q == ids[2], "label_conflict": False,
        }
        for q in (ids[2], ids[3])
    )  # fmt: skip
    looked = {"curate": [{"rule": "dedup"}], "version": "1.0.1"}
    card = (write(leaking, recipe=looked).path / "README.md").read_text()
    assert said + "1 as near-duplicates." in card


def test_waivers_and_how_to_cite_it_and_its_sources(write):
    waiver = {"gate": "metering", "reason": "the recordings hold neither prices nor usage"}
    sources = [{"source": "sums", "url": "https://example.org/sums"}, {"source": "odd"}]
    card = (write(sources=sources, waivers=[waiver]).path / "README.md").read_text()
    assert "- **metering**: the recordings hold neither prices nor usage" in card
    assert "## Citation" in card
    assert "@misc{tiny_1_0_0," in card
    assert "Cite what it is made of as well: sums (https://example.org/sums); odd." in card
    assert "from routeyard import open\\_release" not in card
    assert "from routeyard import open_release" in card


def test_words_of_the_recipe_and_unknown_costs(write, tables):
    words = {
        "title": "Tiny",
        "citation": "@misc{x}",
        "known_issues": ["few questions"],
    }
    without = {name: table for name, table in tables.items() if name != "responses"}
    without.pop("verdicts")
    card = (write(without, recipe={"release": words}).path / "README.md").read_text()
    assert "- few questions" in card
    assert "@misc{x}" in card
    # No responses: no cost line at all, rather than a cost of zero.
    assert "cost of the responses" not in card


def test_model_names_cannot_make_markup():
    assert cell("a|b<script>`x`\ny") == "a\\|b\\<script\\>\\`x\\` y"


def test_licences():
    assert hub_license("Apache-2.0", []) == ("apache-2.0", None)
    assert hub_license("NOASSERTION", ["MIT", "MIT"]) == ("mit", None)
    # Nothing stated is unknown, and sources that differ are not summed up in one of them.
    assert hub_license("NOASSERTION", ["NOASSERTION"]) == ("unknown", None)
    assert hub_license("NOASSERTION", ["MIT", "CC-BY-4.0"]) == ("other", "licences-of-the-sources")
    assert hub_license("My Licence 1", []) == ("other", "my-licence-1")


def test_size_categories():
    assert [size_category(n) for n in (999, 1000, 10**9)] == ["n<1K", "1K<n<10K", "n>1B"]


def test_plots_are_part_of_the_release(release):
    card = (release / "README.md").read_text()
    for name in ("accuracy", "cost"):
        assert f"](plots/{name}.svg)" in card
        assert (release / f"plots/{name}.svg").read_text().startswith("<svg")


def test_render_is_pure(release, tables):
    assert isinstance(tables["labels"], pa.Table)
    facts = {
        "name": "tiny",
        "version": "1.0.0",
        "recipe": {},
        "sources": [],
        "waivers": [],
        "figures": {},
        "further": [],
        "files": {f"data/{name}.parquet": {"size": 1} for name in tables},
        "content": "x",
        "content_without_times": "x",
    }
    assert render(tables, facts) == render(tables, facts)


def _kind(**figures):
    kind = {"task": "open question", "format": "name", "length": "short", "script": "Latin"}
    return {"scorer": "contains", **kind, "verdict": "correct", **figures}


def test_what_is_known_of_wrong_labels_and_foreign_prompts_is_told(release, tables):
    facts = {
        "name": "tiny",
        "version": "1.0.0",
        "recipe": {
            "label": {
                "verifiers": [
                    {"name": "xVerify-9B-C", "provider": {"name": "p", "base_url": "http://x/v1"}}
                ]
            }
        },
        "sources": [],
        "waivers": [],
        "figures": {
            "label_errors": {
                "expected_wrong": 12.5,
                "covered": 900,
                "unknown": 100,
                "corrected": {"m": [0.7, 0.72, 0.69, 0.75]},
                "kinds": [
                    _kind(labels=7, p_correct=None),
                    _kind(labels=900, p_correct=0.985),
                ],
            }
        },
        "further": [],
        "files": {f"data/{name}.parquet": {"size": 1} for name in tables},
        "content": "x",
        "content_without_times": "x",
    }
    card = render(tables, facts)
    row = "| contains | open question | name | short | Latin | correct |"
    assert f"{row} 900 | 98.5 % |\n{row} 7 | not measured |" in card
    assert "12.5 of 900 whose scorer has measured error rates, not known of 100" in card
    assert "| m | 70.0 % | 72.0 % | 69.0 % to 75.0 % |" in card
    assert "another prompt than the one it was trained on" in card
    assert "expected to be wrong" not in render(tables, facts | {"figures": {}, "recipe": {}})


def test_the_hub_is_told_tasks_sources_and_who_annotated(release):
    head = _head(release)
    assert head["task_categories"] == ["text-classification", "question-answering"]
    assert head["annotations_creators"] == ["machine-generated"]
    assert head["source_datasets"] == ["original"]
    assert "doi" not in head
