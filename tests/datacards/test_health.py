from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest

from routeyard.datacards.reports.health import health_report

HOSTILE = "<img src=x onerror=alert(1)>|[a](http://evil.invalid)"

FACTS: dict[str, Any] = {
    "queries": 4, "tasks": 2, "models": 2, "pseudo_specialists": 1, "labels": 7, "coverage": 0.875,
    "unlimited_budget": False, "cost_kind": "params", "simulated": False, "budgets": 1,
    "skipped_budgets": 1, "generalists": [HOSTILE],
    "models_without_cost": ["b"], "weighting": "query", "encoder": "e", "trade_off": None,
    "duplicate_groups": 1, "conflicting_groups": 0, "not_measured": ["task similarity"],
}  # fmt: skip


@pytest.fixture
def tables() -> dict[str, pa.Table]:
    models = [HOSTILE, "b"]
    return {
        "tasks": pa.table(
            {"task": ["t", "u$"], "queries": [2, 2], "specialist_score": [0.1, None],
             "difficulty": [0.5, None], "best_model": ["b", None]}
        ),
        "models": pa.table(
            {"model_id": models, "accuracy": [0.5, 0.75], "cluster_order": [1, 0]}
        ),
        "jaccard": pa.table(
            {"model_a": [models[0]] * 2 + [models[1]] * 2, "model_b": models * 2,
             "similarity": [1.0, 0.4, 0.4, 1.0]}
        ),
        "coverage": pa.table(
            {"model_id": models * 2, "task": ["t", "t", "u$", "u$"], "labels": [2, 2, 1, 2],
             "queries": [2, 2, 2, 2]}
        ),
        "query_difficulty": pa.table(
            {"query_id": ["1", "2"], "task": ["t", "t"], "models": [2, 0],
             "difficulty": [0.5, None]}
        ),
        "duplicates_by_source": pa.table({"source": ["s"], "queries": [4], "in_groups": [2]}),
        "test_in_train": pa.table(
            {"scheme": ["upstream"], "test": [500], "verbatim": [119], "near_duplicates": [None]}
        ),
    }  # fmt: skip


def test_the_page_asks_for_nothing_and_runs_nothing(tables: dict[str, pa.Table]) -> None:
    page = health_report("demo", tables, FACTS).html
    found: list[tuple[str, dict[str, str | None]]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, dict(attrs)))

    Reader().feed(page)
    policy = next(a["content"] for _, a in found if a.get("http-equiv")) or ""
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    for _, attributes in found:
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith(("data:", "#"))
        assert not any(name.startswith("on") for name in attributes)
    # The name of a model is text, never markup.
    assert "<img src=x" not in page


def test_markdown_holds_the_same_rows_and_no_markup_from_outside(
    tables: dict[str, pa.Table],
) -> None:
    report = health_report("demo", tables, FACTS)
    assert "](http" not in report.markdown.replace("\\]", "")
    assert not re.search(r"(?<!\\)<img", report.markdown)
    rows = [line for line in report.markdown.splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in rows[:4]}
    assert len(widths) == 1
    for name in re.findall(r"\(plots/(\w+)\.svg\)", report.markdown):
        assert name in report.plots
    assert "| u$ | 2 | – | – | – |" in report.markdown
    # Test questions that stand in train; near-duplicates nobody looked for are not 0.
    assert "| upstream | 500 | 119 | – |" in report.markdown


def test_the_head_of_the_costs_says_what_they_are_in(tables: dict[str, pa.Table]) -> None:
    # Parameters in 10⁹ were shown as "cost", under a sentence on USD.
    tables["models"] = tables["models"].append_column("cost", pa.array([405.0, None]))
    for kind, simulated, head in (
        ("params", False, "cost (parameters, 10⁹)"),
        ("usd", False, "cost (USD per answer)"),
        ("usd", True, "cost (simulated USD per answer)"),
    ):
        facts = {**FACTS, "cost_kind": kind, "simulated": simulated}
        report = health_report("demo", tables, facts)
        assert f"| {head} |" in report.markdown
        assert f">{head}</th>" in report.html
    assert "| 50.0 % | 1 | 405 |" in report.markdown


def test_same_tables_same_bytes(tables: dict[str, pa.Table]) -> None:
    assert health_report("d", tables, FACTS) == health_report("d", tables, FACTS)


def test_bars_of_the_histogram_begin_at_zero() -> None:
    """Trap: without an orientation the bars were ticks at their height, on an axis from -10."""
    from routeyard.datacards.charts import histogram

    drawn = histogram([0.1] * 40 + [0.6] * 10, name="d", title="D", x="x", y="y")
    heights = [float(one) for one in re.findall(r"h[\d.]+v([\d.]+)h-[\d.]+Z", drawn)]
    assert sorted(heights)[-3:] == [55, 220, 220]  # the last is the frame
    # Each share of nine models has a bar of its own; of hundred, there are twenty steps.
    for parts, bars in ((9, 10), (100, 20)):
        shares = [k / parts for k in range(parts + 1)]
        drawn = histogram(shares, name="d", title="D", x="x", y="y")
        heights = [float(one) for one in re.findall(r"h[\d.]+v([\d.]+)h-[\d.]+Z", drawn)]
        assert sum(height > 50 for height in heights) == bars + 1


def test_backticks_of_a_sentence_are_code_and_everything_is_escaped() -> None:
    from routeyard.datacards.site.language import code

    assert code("`real` <b>") == "<code>real</code> &lt;b&gt;"
    assert code("`<b>`") == "<code>&lt;b&gt;</code>"
    assert code("a ` b") == "a ` b"
