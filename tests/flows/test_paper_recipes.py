"""The papers' recipes are planned offline, and shrink in proportion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routeyard.flows.cli import run
from routeyard.flows.plan import plan_build
from routeyard.flows.recipe import load, scaled
from routeyard.pipelines.common.errors import BadInput


@pytest.fixture(autouse=True)
def _no_workspace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The ledger of a `yard/` that lies where the suite is started would count in the plans."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that looks anything up on the hub fails here."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the plan asked the hub")

    monkeypatch.setattr("routeyard.pipelines.ingest.sources.resolve", refuse)
    monkeypatch.setattr("routeyard.pipelines.ingest.sources.hub_rows", refuse)


def planned(name: str, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert run(["plan", name, "--json", *more]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_nine_by_30k_is_the_papers_table(capsys: pytest.CaptureFixture[str]) -> None:
    said = planned("nine_by_30k", capsys)
    counts = said["queries_per_source"]
    assert (len(counts), sum(counts.values()), said["queries"]) == (57, 31_027, 31_027)
    # Table 7 of the paper, one of each group.
    printed = {
        "mmlu": 1323, "asdiv": 246, "livecodebench": 50, "searchqa": 4404, "cloze_test": 935,
        "chess_instruct": 13,
    }  # fmt: skip
    assert {name: counts[name] for name in printed} == printed
    assert said["splits"] == {"train": 23_027, "validation": 3_000, "test": 5_000}
    assert said["calls"] == 9 * 31_027
    assert said["estimated_usd"] is None  # the pool states no prices


def test_questions_that_a_maker_brings_are_read_and_not_planned_as_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # With `limit` everywhere and the maker's variable unset, the ledger was left out of the plan.
    monkeypatch.delenv("ROUTEYARD_HOPS", raising=False)
    recipe = (Path(__file__).parents[2] / "flows" / "recipes" / "agent_demo.yaml").read_text()
    (tmp_path / "one.yaml").write_text(
        recipe.replace("format: jsonl", "format: jsonl\n    limit: 6")
    )
    said = planned(str(tmp_path / "one.yaml"), capsys)
    assert (said["stated"], said["queries"]) == (False, 6)


@pytest.mark.parametrize("name", ["triple_perspective", "confidence_pairs", "nine_by_30k"])
def test_a_cost_that_is_not_known_says_what_would_make_it_known(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # "cost unknown" stood alone, with no word on prices or the length of answers.
    assert run(["plan", name]) == 0
    shown = capsys.readouterr().out
    assert "not known without 'collect.max_tokens'" in shown
    # Both models of this one have a list price.
    unpriced = name != "confidence_pairs"
    assert ("not known without the model's 'price_in'" in shown) == unpriced
    assert ("routeyard cost prices RECIPE --out" in shown) == unpriced


def test_nine_by_300k_holds_the_dense_slice_and_a_third_of_the_pool_beyond(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = planned("nine_by_300k", capsys)
    assert said["queries"] == 310_371
    assert said["splits"] == {"train": 302_371, "validation": 3_000, "test": 5_000}
    assert said["schemes"]["dense"] == {"train": 23_027, "validation": 3_000, "test": 5_000}
    assert said["calls"] == 9 * 31_027 + 3 * (310_371 - 31_027)


def test_the_small_recipe_is_a_prefix_of_the_large_one() -> None:
    small, large = load("nine_by_30k")[0], load("nine_by_300k")[0]
    assert [s.name for s in small.sources] == [s.name for s in large.sources]
    for one, other in zip(small.sources, large.sources, strict=True):
        assert (one.limit, one.shuffle_seed) == (other.dense, other.shuffle_seed)


@pytest.mark.parametrize("scale", [0.1, 0.01, 0.0001])
def test_everything_shrinks_in_proportion(scale: float) -> None:
    recipe = load("nine_by_30k")[0]
    small = scaled(recipe, scale)
    total = sum(s.limit or 0 for s in small.sources)
    assert all(
        s.limit == max(1, round((o.limit or 0) * scale))
        for s, o in zip(small.sources, recipe.sources, strict=True)
    )
    assert small.split.train + small.split.validation + small.split.test == total
    assert small.split.test == pytest.approx(5000 / 31_027 * total, abs=1)
    assert f"--scale {scale:g}" in small.release.known_issues[-1]
    assert small.pool == recipe.pool


def test_a_price_and_a_limit_make_an_estimate(tmp_path: Path) -> None:
    text = """
name: priced
version: 1.0.0
sources:
  - {name: a, catalog: gsm8k, limit: 100}
pool:
  providers: [{name: p, base_url: "http://127.0.0.1:9/v1"}]
  models:
    - {model_id: m, price_in: 1, price_out: 2, price_date: "2026-11-01"}
collect: {max_tokens: 1000, samples: 3}
"""
    path = tmp_path / "priced.yaml"
    path.write_text(text, encoding="utf-8")
    said = plan_build(str(path), str(tmp_path / "yard"))
    assert said["calls"] == 300
    assert said["estimated_usd"] == pytest.approx(300 * (400 * 1 + 120 * 2) / 1e6)
    assert said["least_cost_usd"] == pytest.approx(300 * (400 * 1 + 5 * 2) / 1e6)
    assert said["worst_cost_usd"] == pytest.approx(300 * (400 * 1 + 1000 * 2) / 1e6)


def test_a_recipe_without_counts_cannot_be_scaled() -> None:
    with pytest.raises(BadInput, match="states no 'limit'"):
        scaled(load("zeroeval_gsm")[0], 0.1)
    with pytest.raises(BadInput, match="not in"):
        scaled(load("nine_by_30k")[0], 2)


@pytest.mark.parametrize(
    ("name", "queries", "splits"),
    [
        ("triple_perspective", 51_000, {"train": 9_600, "validation": 2_400, "test": 39_000}),
        ("confidence_pairs", 12_247, {"train": 9_798, "validation": 1_225, "test": 1_224}),
        ("routerbench_plus", 35_673, {"train": 29_673, "validation": 3_000, "test": 3_000}),
        ("cscr", 35_673, {"train": 29_673, "validation": 3_000, "test": 3_000}),
    ],
)
def test_every_papers_recipe_is_planned_offline(
    name: str,
    queries: int,
    splits: dict[str, int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ROUTEYARD_EMBEDLLM", raising=False)
    said = planned(name, capsys)
    assert (said["queries"], said["splits"]) == (queries, splits)
    assert sum(said["queries_per_source"].values()) == queries
    small = planned(name, capsys, "--scale", "0.01")
    assert small["queries"] == pytest.approx(queries / 100, abs=len(small["queries_per_source"]))
