"""The site in a real Chromium: what it asks for, what axe says, hostile text, three questions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import axe_playwright_python
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.datacards.card import render
from routeyard.datacards.files import render as render_files
from routeyard.datacards.reports.health import health_report
from routeyard.datacards.reports.study import page as study_page
from routeyard.datacards.reports.study import plot as study_plot
from routeyard.flows.site import write as write_site
from routeyard.flows.web import SiteServer
from routeyard.pipelines.release.build import write_release
from routeyard.schemas import CONTRACTS
from routeyard.schemas.contracts import RESULTS
from tests.support import small_release

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
#: Runs if anything takes it for markup, a link, a template or a Vega expression.
NASTY = (
    "</script><script>globalThis.hacked=1</script><img src=x onerror=globalThis.hacked=1>"
    "<svg onload=globalThis.hacked=1>[a](javascript:globalThis.hacked=1)"
    "\"'`${globalThis.hacked=1}{{7*7}}\x1b\u2028&#x3c;"
)


def hostile() -> dict[str, pa.Table]:
    """The tiny release; every name and text of it tries to become markup."""
    tables = dict(small_release.tiny_tables())
    for name, table in tables.items():
        rows = table.to_pylist()
        for row in rows:
            if row.get("model_id") == "m1":
                row["model_id"] = f"m1{NASTY}"
            for column in ("prompt", "question", "task", "domain", "text", "reason", "extracted"):
                if isinstance(row.get(column), str):
                    row[column] = f"{row[column]}{NASTY}"
        tables[name] = CONTRACTS[name].from_rows(rows)
    return tables


def results(folder: Path, tables: dict[str, pa.Table]) -> Path:
    """An evaluation, a zoo table and a study as their commands write them, with hostile names."""
    folder.mkdir()
    router = f"knn{NASTY}"
    none = {"low": None, "high": None, "reason": None}
    figures = [(router, "accuracy", 0.9), (router, "mean_cost[usd]", 2e-5),
               ("single:m0", "accuracy", 1.0), ("single:m0", "mean_cost[usd]", 9e-5)]  # fmt: skip
    metrics = [
        {"router": r, "metric": m, "split": "test", "value": v, **none} for r, m, v in figures
    ]
    pq.write_table(pa.Table.from_pylist(metrics, RESULTS["metrics"]), folder / "metrics.parquet")
    curves = [
        {"router": r, "curve": "deferral", "measure": "usd", "split": "test", "point": k,
         "setting": k / 2, "x": 1e-5 * (k + 1), "y": 0.5 + 0.2 * k, "low": 0.4, "high": 0.9}
        for r in (router, "oracle") for k in range(3)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(curves, RESULTS["curves"]), folder / "curves.parquet")
    ids = tables["queries"].column("query_id").to_pylist()
    choices = {"query_id": ids, "router": [router] * len(ids), "model_id": ["m0"] * len(ids)}
    pq.write_table(pa.table(choices), folder / "choices.parquet")
    pq.write_table(pa.table({"a": [1]}), folder / "cells.parquet")
    zoo = f"# Routers on tiny 1.0.0\n\n| router | accuracy |\n| --- | ---: |\n| {NASTY} | 9 |\n"
    (folder / "table.md").write_text(zoo, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Site of a hostile release with results, and beside it a health and a study page."""
    root = tmp_path_factory.mktemp("pages")
    tables = hostile()
    release = write_release(
        tables,
        recipe={**small_release.RECIPE, "release": {"title": f"T{NASTY}", "description": NASTY}},
        root=root / "releases",
        render_card=render,
        render_files=render_files,
        sources=small_release.SOURCES,
    ).path
    beside = results(root / "results", tables)
    folder = write_site([release], root / "site", results=[beside]).parent
    (folder / "health.html").write_text(_health(), encoding="utf-8")
    (folder / "study.html").write_text(_study(), encoding="utf-8")
    return folder


def _health() -> str:
    facts: dict[str, Any] = {
        "queries": 1, "tasks": 1, "models": 1, "pseudo_specialists": 0, "labels": 1,
        "coverage": 1.0, "unlimited_budget": True, "cost_kind": None, "simulated": False,
        "budgets": 1, "skipped_budgets": 0,
        "generalists": [NASTY], "models_without_cost": [], "encoder": None,
        "duplicate_groups": None, "conflicting_groups": None, "not_measured": [],
    }  # fmt: skip
    tables = {
        "tasks": pa.table({"task": [NASTY, "u"], "specialist_score": [0.1, -0.1]}),
        "coverage": pa.table({"model_id": [NASTY], "task": [NASTY], "labels": [1], "queries": [2]}),
        "query_difficulty": pa.table({"difficulty": [0.5, 1.0]}),
    }
    return health_report(NASTY, tables, facts).html


def _study() -> str:
    about = {
        "name": "x", "paper": "p", "item": "Table 1", "title": f"t{NASTY}", "rows": "model",
        "plot": "bars", "plot_column": "c", "axes": ("", ""), "notes": [NASTY], "release": "r",
        "version": "1",
    }  # fmt: skip
    cell = {"row": NASTY, "column": "c", "unit": "percent", "value": 0.5, "low": 0.4, "high": 0.6,
            "text": None, "printed": 0.55, "note": None}  # fmt: skip
    cells = pa.Table.from_pylist([cell], RESULTS["study_cells"])
    return study_page(about, cells, study_plot(about, cells, None))


class Watched:
    """A tab, the addresses it asked for, and everything that went wrong in it."""

    def __init__(self, page: Page):
        self.page, self.asked, self.wrong = page, list[str](), list[str]()
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on(
            "console",
            lambda said: self.wrong.append(said.text) if said.type != "log" else None,
        )

    def unharmed(self) -> None:
        assert self.page.evaluate("globalThis.hacked") is None
        assert self.page.locator("main img, main script:not([type]), main iframe").count() == 0
        assert self.page.locator("a[href^=javascript]").count() == 0
        assert self.wrong == []


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Watched]:
    page = chromium.new_page()
    yield Watched(page)
    page.close()


def pages(site: Path) -> list[Path]:
    found = sorted(site.rglob("*.html"))
    assert len(found) == 7
    return found


def test_no_page_asks_for_anything_but_the_site_and_nothing_hostile_runs(
    site: Path, tab: Watched
) -> None:
    for file in pages(site):
        tab.page.goto(file.as_uri())
        tab.page.evaluate(
            "for (const part of document.querySelectorAll('details')) part.open = true"
        )
        tab.page.mouse.move(200, 300)
        if file.name == "questions.html":
            for button in tab.page.locator("#found button").all():
                button.click()
                tab.page.locator("#question details.answer").first.wait_for()
        tab.unharmed()
    assert len(tab.asked) > len(pages(site))
    assert [u for u in tab.asked if not u.startswith((site.as_uri() + "/", "data:,"))] == []


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        pytest.param("light", 1280, marks=pytest.mark.slow),
        ("dark", 390),
        pytest.param("light", 390, marks=pytest.mark.slow),
        pytest.param("dark", 1280, marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_and_no_page_is_wider_than_its_window(
    site: Path, chromium: Browser, scheme: Any, width: int
) -> None:
    context = chromium.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, reduced_motion="reduce"
    )
    page = context.new_page()
    found = []
    for file in pages(site):
        page.goto(file.as_uri() + ("#contested" if file.name == "questions.html" else ""))
        if file.name == "questions.html":
            page.locator("#found button").first.click()
            page.locator("#question details.answer").first.wait_for()
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        page.evaluate(f"{AXE}; 0")
        said = page.evaluate(
            "axe.run(document, {resultTypes: ['violations'], preload: false})"
            ".then(r => r.violations.map(v => [v.id, v.nodes[0].html, v.nodes[0].failureSummary]))"
        )
        found += [(file.name, *one) for one in said]
        assert page.evaluate("document.documentElement.scrollWidth") <= width, file.name
    context.close()
    assert found == []


def test_from_the_index_one_finds_the_cheapest_router_the_specialists_and_a_contested_label(
    site: Path, tab: Watched
) -> None:
    page = tab.page
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link", name="Routers").click()
    page.get_by_label("Accuracy wanted").fill("70")
    told = page.locator("[data-cheapest]").inner_text()
    assert told.startswith("Cheapest router: knn")
    assert "(0.02 USD per 1,000 questions)" in told
    assert "Cheapest single model: always m0 (0.09 USD" in told
    page.get_by_label("Accuracy wanted").fill("95")
    assert "Cheapest router: none reaches it" in page.locator("[data-cheapest]").inner_text()

    page.get_by_role("link", name="All benchmarks").click()
    page.get_by_role("link", name="Tasks and specialists").click()
    heads = page.locator("#tasktable thead th").all_inner_texts()
    assert "needs a specialist" in heads
    column = heads.index("needs a specialist")
    cells = page.locator(f"#tasktable tbody tr td:nth-child({column + 1})").all_inner_texts()
    assert set(cells) <= {"yes", "no", "–"}

    page.get_by_role("link", name="All benchmarks").click()
    page.get_by_role("link", name="contested labels").click()
    page.locator("#found button").first.click()
    page.locator("#question details.answer[open]", has_text="Why contested").wait_for()
    tab.unharmed()


def test_the_served_site_is_asked_for_on_loopback_alone(site: Path, tab: Watched) -> None:
    server = SiteServer(site)
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        tab.page.goto(server.address)
        tab.page.get_by_role("link", name="Questions").click()
        tab.page.locator("#found button").first.click()
        tab.page.locator("#question details.answer").first.wait_for()
        assert [u for u in tab.asked if not u.startswith((server.address, "data:,"))] == []
        tab.unharmed()
    finally:
        server.end()
