"""YAML of strangers: what it may not hold is said with its place, at once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from routeyard.flows.cli import run
from routeyard.pipelines.common.errors import RecipeError
from routeyard.pipelines.common.files import DEEPEST, read_text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 50_000, "levels deep"),
        ("{a: " * 50_000, "levels deep"),
        ("- " * 50_000, "levels deep"),
        ("a: 1\nb: 2\na: 3", "the key 'a' occurs twice"),
        ("a: {b: {c: 1, c: 2}}", "the key 'c' occurs twice"),
        ("a: .inf", "inf is no number"),
        ("a: [1, {b: -.inf}]", "-inf is no number"),
        ("a: .nan", "nan is no number"),
        ("a: 1.0e+400", "inf is no number"),
        ("a: !!float foo", "not what it says"),
        ("a: !!bool foo", "not what it says"),
        ("a: !!timestamp foo", "not what it says"),
        ("a: 2020-13-45", "not what it says"),
        ("a: " + "9" * 6_000, "not what it says"),
        ("a: &x 1\nb: *x", "aliases"),
        ("a: !!python/name:os.system", "not valid YAML"),
        ("? [a]\n: b", "not valid YAML"),
        ("a: \x00", "not valid YAML"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    started = time.process_time()
    with pytest.raises(RecipeError, match=says) as caught:
        read_text(text, where="mine.yaml")
    assert "mine.yaml" in str(caught.value)
    assert time.process_time() - started < 5


def test_what_stays() -> None:
    assert read_text("a: {b: [1, 2.5, x]}", where="x") == {"a": {"b": [1, 2.5, "x"]}}
    deep = "[" * DEEPEST + "]" * DEEPEST
    assert read_text(deep, where="x")


RECIPE = """name: {name}
version: "1.0.0"
sources:
  - name: one
    path: rows.jsonl
    scorer: numeric
    fields: {{question: q, references: a}}
pool:
  providers: [{{name: p, base_url: "{url}"}}]
  models:
    - {{model_id: "{model}", provider: p, price_in: {price}, price_date: "2026-01-01"}}
{more}
"""


@pytest.mark.parametrize(
    "given",
    [
        {"price": ".inf"},
        {"price": ".nan"},
        {"url": "https://user:secret-word@host/v1"},
        {"url": "https://host/v1?key=secret-word"},
        {"name": "n" * 300},
        {"name": "a/../../b"},
        {"model": "m" * 5_000},
        {"model": "a\\x1b[2Jb"},
        {"more": "name: again"},
        {"more": "collect: {budget: {usd: .inf}}"},
        {"more": "extra: " + "[" * 50_000},
        {"more": "curate: [{rule: dedup, threshold: .inf}]"},
    ],
    ids=lambda given: next(iter(given)) + ":" + next(iter(given.values()))[:16],
)
def test_a_strangers_recipe_is_answered_in_words(given, tmp_path: Path, capsys) -> None:
    plain = {"name": "x", "url": "https://host/v1", "model": "m", "price": "1", "more": ""}
    (tmp_path / "rows.jsonl").write_text('{"q": "1+1?", "a": "2"}\n', encoding="utf-8")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE.format(**{**plain, **given}), encoding="utf-8")
    code = run(["plan", str(recipe), "--workspace", str(tmp_path / "yard")])
    said = capsys.readouterr()
    assert code == 2, said.out + said.err
    assert "error:" in said.err
    assert "next:" in said.err
    assert "secret-word" not in said.out + said.err
    assert "\x1b" not in said.out + said.err
