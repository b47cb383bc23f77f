"""All faults at once, with lines, names and words; every key has a meaning."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from routeyard.flows.cli import run
from routeyard.flows.recipe import load, shipped
from routeyard.flows.recipe_check import faults
from routeyard.pipelines.common.errors import RouteyardError
from routeyard.schemas.recipe.reference import json_schema, reference

BAD = """\
name: My Bench
version: "1.0"
sources:
  - name: sums
    path: nowhere.jsonl
    scorer: numerik
    fields: {question: question, refs: answer}
pool:
  models:
    - model_id: a
      price_in: cheap
      price_date: yesterday
collect: {temprature: 1, samples: 0}
curate:
  - {rule: dedup, treshold: 0.9}
"""


def test_all_faults_are_said_at_once_with_line_and_name(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    found = {(fault.line, fault.place): fault for fault in faults(str(path))}
    assert set(found) == {
        (1, "name"),
        (2, "version"),
        (6, "source 'sums', scorer"),
        (7, "source 'sums', fields.refs"),
        (11, "model 'a', price_in"),
        (12, "model 'a', price_date"),
        (13, "collect.samples"),
        (13, "collect.temprature"),
        (15, "rule 'dedup'"),
    }
    text = "\n".join(map(str, found.values()))
    assert "^[a-z" not in text
    assert r"\d" not in text
    assert "such as 1.0.0" in text
    assert "did you mean 'temperature'" in text
    assert "did you mean 'numeric'" in text
    assert "did you mean 'threshold'" in text


def test_loading_says_the_first_fault_in_the_same_words(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    with pytest.raises(RouteyardError) as caught:
        load(str(path))
    assert "bad.yaml:1: name" in str(caught.value.where)
    assert "recipe check" in str(caught.value)
    assert "small letters" in str(caught.value)


def test_sources_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps({"question": "1+1?", "answer": "2", "k": "a"}))
    text = BAD.replace("numerik", "numeric").replace("nowhere", "q").replace("refs", "references")
    text = text.replace("My Bench", "bench").replace('"1.0"', "1.0.0").replace("cheap", "1")
    text = text.replace("yesterday", "2026-11-01").replace("temprature", "temperature")
    text = text.replace("samples: 0", "samples: 1").replace("treshold", "threshold")
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    # a model that nobody serves cannot be asked
    (unserved,) = faults(str(path))
    assert (unserved.place, "names no provider" in unserved.says) == ("model 'a'", True)
    text = text.replace("pool:", "pool:\n  providers: [{name: p, base_url: http://127.0.0.1:1/v1}]")
    path.write_text(text)
    assert run(["recipe", "check", str(path)]) == 0
    path.write_text(text.replace("    fields:", "    where: {k: b}\n    fields:"))
    assert run(["recipe", "check", str(path)]) == 2
    shown = capsys.readouterr().out
    assert (
        "recipe.yaml:7: source 'sums', where.k: 'where' of source 'sums' matches nothing" in shown
    )
    # `plan` stops at it too.
    assert run(["plan", str(path), "--workspace", str(tmp_path / "yard")]) == 2
    path.write_text(text.replace("references: answer", "references: anwser"))
    assert "did you mean 'answer'" in str(faults(str(path))[0])


def test_what_an_exclude_does_not_do_is_said_before_anything_is_paid_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps({"q": "1+1?", "answer": "2", "kind": "a"}) + "\n")
    path = tmp_path / "recipe.yaml"
    path.write_text(
        "name: b\nversion: 1.0.0\nsources:\n  - {name: s, path: q.jsonl, scorer: numeric,\n"
        "     exclude: {kind: b}, fields: {question: q, references: answer}}\n"
        "pool:\n  providers: [{name: p, base_url: http://127.0.0.1:1/v1}]\n"
        "  models: [{model_id: m}]\n"
    )
    workspace = ["--workspace", str(tmp_path / "yard")]
    # Trap: it stood in stage.json, and at the end of a build whose calls were paid for.
    for command in (
        ["recipe", "check", str(path)],
        ["plan", str(path), *workspace],
        ["build", str(path), *workspace, "--until", "ingest"],
        ["build", str(path), *workspace, "--until", "ingest"],  # what is reused says it again
    ):
        assert run(command) == 0
        shown = capsys.readouterr()
        assert "'exclude' of source 's' leaves nothing out" in shown.out + shown.err, command


def test_answers_that_nobody_would_decide_are_said_before_they_are_paid_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.yaml"
    (tmp_path / "q.jsonl").write_text('{"question": "Why?", "answer": "So."}\n')
    text = """
name: r
version: 1.0.0
sources:
  - {name: open, path: q.jsonl, scorer: none, fields: {question: question}}
pool:
  providers: [{name: p, base_url: "http://localhost:1/v1"}]
  models: [{model_id: m, provider: p}]
"""
    path.write_text(text)
    notes: list[str] = []
    assert faults(str(path), notes) == []
    assert any("source 'open' has 'scorer: none'" in note for note in notes)
    judge = "label: {default: {then: [judge]}, judges: [{name: j, model_id: m, provider: p}]}"
    path.write_text(text + judge)
    faults(str(path), notes := [])
    assert not any("scorer: none" in note for note in notes)


def test_an_unknown_scorer_is_one_fault_and_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps({"question": "1+1?", "answer": "2"}) + "\n")
    path = tmp_path / "recipe.yaml"
    path.write_text(
        "name: b\nversion: 1.0.0\nsources:\n  - name: s\n    path: q.jsonl\n    scorer: numerik\n"
        "    fields: {question: question, references: anwser}\n"
        "pool:\n  providers: [{name: p, base_url: http://127.0.0.1:1/v1}]\n"
        "  models: [{model_id: m}]\n"
    )
    found = [(fault.place, fault.says) for fault in faults(str(path))]
    assert [place for place, _ in found] == [
        "source 's', scorer", "source 's', fields.references"
    ], found  # fmt: skip


@pytest.mark.parametrize("day", ["yesterday", "2026-13-01", "01.11.2026"])
def test_a_price_date_is_a_day(tmp_path: Path, day: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(BAD.replace("yesterday", f'"{day}"'))
    assert any(f.place == "model 'a', price_date" for f in faults(str(path)))
    path.write_text(BAD.replace("yesterday", "2026-11-01"))  # YAML reads it as a date
    assert not any(f.place == "model 'a', price_date" for f in faults(str(path)))


def test_every_key_has_a_meaning_in_schema_and_reference() -> None:
    schema = json_schema()
    parts = {"Recipe": schema, **schema["$defs"]}
    without = [
        f"{name}.{key}"
        for name, part in parts.items()
        for key, said in part.get("properties", {}).items()
        if not said.get("description")
    ]
    assert without == []  # a text below the key in schemas/recipe/
    page = reference()
    for key in ("hub_id", "cache_unwritten", "api_key_env", "escalate_on", "waivers"):
        assert f"| `{key}` |" in page


def test_the_command_that_the_readme_names_prints_every_key(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Trap: `recipe check --print` needs a recipe, and prints its keys only.
    said = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    named = re.search(r"`routeyard ([^`]+)`\s+prints\s+every\s+key", said)
    assert named
    assert run(named[1].split()) == 0
    shown = capsys.readouterr().out
    for key in ("hub_id", "cache_unwritten", "api_key_env", "escalate_on", "waivers"):
        assert f"| `{key}` |" in shown
    assert "| letter }}" in shown.replace("\\", "")  # and what a mapping may say


def test_the_schema_takes_what_loads_and_refuses_what_does_not() -> None:
    from jsonschema import Draft202012Validator

    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    check = Draft202012Validator(schema)
    good = {
        "name": "b",
        "version": "1.0.0",
        "sources": [{"name": "s", "path": "q.csv", "fields": {"question": "q"}}],
        "pool": {"models": [{"model_id": "m"}]},
        "curate": [{"rule": "dedup", "threshold": 0.9}],
    }
    assert check.is_valid(good)
    assert not check.is_valid(good | {"sorces": []})
    assert not check.is_valid(good | {"version": "1"})


@pytest.mark.parametrize("name", shipped())
def test_shipped_recipes_point_editors_at_the_schema(name: str) -> None:
    from routeyard.flows.recipe import find

    assert "yaml-language-server: $schema=" in find(name).read_text()


def test_the_schemas_beside_the_recipes_are_those_of_the_code() -> None:
    # Written by `routeyard recipe schema [--pool] --out flows/recipes/<name>.schema.json`.
    from importlib.resources import files

    from routeyard.schemas.recipe.reference import pool_schema

    folder = files("routeyard.flows").joinpath("recipes")
    for name, schema in (("recipe", json_schema()), ("pool", pool_schema())):
        there = json.loads(folder.joinpath(f"{name}.schema.json").read_text(encoding="utf-8"))
        assert there == schema, f"run `routeyard recipe schema` again for {name}.schema.json"


def test_a_waiver_of_nothing_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    text = BAD.partition("curate:")[0] + (
        "release:\n  waivers:\n    - {gate: 'metering:usage', reason: no meter on this server}\n"
    )
    path.write_text(text)
    (fault,) = (one for one in faults(str(path)) if "gate" in one.says)
    assert "there is no gate 'metering:usage' to waive" in fault.says
    assert "metering:usage_missing" in str(fault)
    path.write_text(text.replace("metering:usage", "metering:usage_missing"))
    assert not [one for one in faults(str(path)) if "gate" in one.says]


_SMALL = """\
name: small
version: 1.0.0
sources:
  - {{name: s, path: q.jsonl, task: t, scorer: numeric, fields: {{question: q, references: a}}}}
pool:
  prices: {prices}
  providers: [{{name: p, base_url: "http://127.0.0.1:9/v1"}}]
  models: [{{model_id: m, provider: p}}]
label:
  judges:
    - name: j
      endpoint_model: j
      provider: {{name: p, base_url: "http://127.0.0.1:9/v1"}}
      template: {template}
release: {{zoo: {zoo}}}
"""
_PRICE = "model_id,price_in,price_out,price_date\nm,{},1,2026-01-01\n"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        # A file without a place for an answer was taken for a path, and shown as one, after
        # all answers had been paid for.
        ("prompt.txt", "TOKEN=private", "never shows the answer"),
        ("prompt.txt", None, "no regular file"),
        ("zoo.json", "[" * 60_000, "no zoo.json: RecursionError"),
        (
            "zoo.json",
            '{"data": "d", "scheme": "s", "rows": [], "references": {"a": 1e999}}',
            "no zoo",
        ),
        ("zoo.json", None, "no regular file"),
        ("prices.csv", None, "no regular file"),
        ("prices.csv", _PRICE.format("1e308"), "has the price '1e308'"),
        ("prices.csv", _PRICE.format("1") + "m,2,1,2026-01-01\n", "another price for one day"),
    ],
)
def test_files_that_a_recipe_names_are_read_by_the_check(
    tmp_path: Path, name: str, content: str | None, says: str
) -> None:
    """Each was no fault, a traceback, or waited for without end (None: a pipe)."""
    (tmp_path / "q.jsonl").write_text('{"q": "What is 2 + 2?", "a": "4"}\n')
    (tmp_path / "prompt.txt").write_text("Is {{answer}} right?")
    (tmp_path / "prices.csv").write_text(_PRICE.format("1"))
    (tmp_path / "zoo.json").write_text('{"data":"d","scheme":"s","rows":[],"references":{}}')
    path = tmp_path / "small.yaml"
    path.write_text(_SMALL.format(prices="prices.csv", template="prompt.txt", zoo="zoo.json"))
    assert faults(str(path)) == []
    (tmp_path / name).unlink()
    (tmp_path / name).write_text(content) if content else os.mkfifo(tmp_path / name)
    (found,) = faults(str(path))
    assert says in found.says
    assert name in found.says
    assert "private" not in str(found)


def test_an_xverify_model_without_its_own_prompt_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps({"q": "1+1?", "answer": "2"}) + "\n")
    (tmp_path / "own.txt").write_text("Theirs: {question} {output} {answer}")
    path = tmp_path / "recipe.yaml"
    written = (
        "name: b\nversion: 1.0.0\nsources:\n  - {name: s, path: q.jsonl, scorer: numeric,\n"
        "     fields: {question: q, references: answer}}\n"
        "pool:\n  providers: [{name: p, base_url: http://127.0.0.1:1/v1}]\n"
        "  models: [{model_id: m}]\n"
        "label:\n  verifiers:\n"
        "    - name: xVerify-0.5B-I\n      provider: {name: v, base_url: http://127.0.0.1:1/v1}\nTEMPLATE\n"
    )
    commands = (["recipe", "check"], ["plan", "--workspace", str(tmp_path / "yard")])
    for template, warned in (("", True), ("      template: own.txt\n", False)):
        path.write_text(written.replace("TEMPLATE", template))
        for command in commands:
            assert run([*command, str(path)]) == 0
            shown = capsys.readouterr()
            said = "is asked with another prompt" in " ".join((shown.out + shown.err).split())
            assert said == warned, (command, template)
