"""The site as a stranger uses it, in a real Chromium: questions, keys, addresses, two models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.datacards.card import render
from routeyard.datacards.files import render as render_files
from routeyard.flows.site import write as write_site
from routeyard.pipelines.release.build import write_release
from routeyard.schemas.contracts import RESULTS
from tests.support import small_release

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CSS = Path(__file__).parents[2] / "datacards/templates/site/site.css"


def results(folder: Path, ids: list[str]) -> Path:
    """An evaluation of two routers as `routeyard evaluate` writes it."""
    folder.mkdir()
    none = {"low": None, "high": None, "reason": None, "n": 60}
    figures: list[tuple[str, float, float]] = [
        ("knn", 0.9, 2e-5), ("mlp", 0.7, 1e-5), ("single:m0", 1.0, 3e-5), ("oracle", 1.0, 1e-5),
    ]  # fmt: skip
    metrics = [
        {"router": router, "metric": metric, "split": "test", "value": value, **none}
        for router, accuracy, cost in figures
        for metric, value in (("accuracy", accuracy), ("mean_cost[usd]", cost))
    ]
    curves = [
        {"router": router, "curve": "deferral", "measure": "usd", "split": "test", "point": k,
         "setting": k / 2, "x": cost * (k + 1) / 3, "y": accuracy * (k + 8) / 10, "low": 0.4,
         "high": 1.0}
        for router, accuracy, cost in figures[:2] for k in range(3)
    ]  # fmt: skip
    pair = {
        "metric": "accuracy", "split": "test", "first": "knn", "second": "mlp", "difference": 0.2,
        "low": 0.1, "high": 0.3, "p": 3.29e-5, "p_adjusted": 3.29e-5, "significant": True,
    }  # fmt: skip
    for name, rows in {"metrics": metrics, "curves": curves, "comparisons": [pair]}.items():
        pq.write_table(pa.Table.from_pylist(rows, RESULTS[name]), folder / f"{name}.parquet")
    choices = {"query_id": ids, "router": ["knn"] * len(ids), "model_id": ["m0"] * len(ids)}
    pq.write_table(pa.table(choices), folder / "choices.parquet")
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """First page of a release with an evaluation: 60 questions of two tasks, three models."""
    root = tmp_path_factory.mktemp("walks")
    tables = small_release.tiny_tables(60)
    release = write_release(
        tables, recipe=small_release.RECIPE, root=root / "releases", render_card=render,
        render_files=render_files, sources=small_release.SOURCES,
    ).path  # fmt: skip
    beside = results(root / "results", tables["queries"].column("query_id").to_pylist())
    site = write_site([release], root / "site", results=[beside]).parent
    return site / "tiny" / "1.0.0" / "index.html"


@pytest.fixture
def page(chromium: Browser, home: Path) -> Iterator[Page]:
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.goto(home.as_uri())
    yield page
    page.close()


def test_five_questions_of_a_stranger_take_two_clicks_each(page: Page, home: Path) -> None:
    # Which router is cheapest at 85 %?
    page.get_by_role("link", name="Cheapest router at an accuracy").click()
    page.get_by_label("Accuracy wanted").fill("85")
    told = page.locator("[data-cheapest]").inner_text()
    assert told.startswith("Cheapest router: knn (0.02 USD per 1,000 questions)")

    # Why is this answer wrong? The hardest question is open, with what was read and by whom.
    page.goto(home.as_uri())
    page.get_by_role("link", name="The hardest questions").click()
    wrong = page.locator("details.answer[open]", has=page.locator(".wrong")).first
    wrong.wait_for()
    assert "numeric (version 1): incorrect" in wrong.inner_text()

    # Which tasks need a specialist?
    page.goto(home.as_uri())
    page.get_by_role("link", name="Which tasks need a specialist?").click()
    assert "needs a specialist" in page.locator("#tasktable thead").inner_text()
    assert page.locator("#tasktable tbody tr").count() == 2

    # Is one surely better than another?
    page.goto(home.as_uri())
    page.get_by_role("link", name="Is one router surely better").click()
    row = page.locator("#e0-pairs tbody tr")
    assert row.inner_text().split("\t") == [
        "knn", "mlp", "accuracy", "+20.0 points", "+10.0 to +30.0", "< 0.001", "yes",
    ]  # fmt: skip
    for words, found in (("mlp knn", 1), ("mlp nobody", 0)):
        page.get_by_label("Show pairs with").fill(words)
        assert page.locator("#e0-pairs tbody tr:visible").count() == found

    # What is doubtful? The contested label is one more click away.
    page.goto(home.as_uri())
    page.get_by_role("link", name="What is doubtful here?").click()
    page.get_by_role("link", name="1 label is contested").click()
    page.locator("#question .answer", has_text="Why contested").wait_for()
    assert page.locator("#found li").count() == 1


def test_oracles_and_single_models_stand_apart_from_routers(page: Page) -> None:
    bodies = [body.inner_text().splitlines()[0] for body in page.locator("#answers tbody").all()]
    assert [text.split(":")[0] for text in bodies] == ["Routers", "Single models", "For comparison"]
    assert "oracle" in page.locator("#answers tr.reference").inner_text()
    page.locator("#answers thead button", has_text="accuracy").click()
    # Sorting stays within a kind.
    assert page.locator("#answers tbody").first.locator("tr").nth(1).inner_text().startswith("knn")


def test_keys_move_through_the_questions_and_the_address_remembers(page: Page, home: Path) -> None:
    page.goto(home.with_name("questions.html").as_uri())
    page.locator("#question details.answer").first.wait_for()
    first = page.locator("#found [aria-current]").inner_text()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    second = page.locator("#found [aria-current]").inner_text()
    assert second != first
    page.keyboard.press("/")
    page.keyboard.type("7+1")
    page.get_by_label("Task").select_option("odd")
    assert "words=7%2B1&task=odd" in page.url
    assert page.locator("#found li").count() == 6  # 7, 17, 27 … 57
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.locator("#question details.answer").first.wait_for()
    assert page.get_by_label("Words or id").input_value() == "7+1"
    assert page.locator("#question").inner_text().count("Question") == 1


def test_two_models_are_compared_and_a_mark_leads_to_its_questions(page: Page, home: Path) -> None:
    page.goto(home.with_name("questions.html").as_uri() + "#a=m0&b=m1&show=a-not-b")
    page.locator("#question details.answer").first.wait_for()
    # m1 is wrong on every odd question of 60.
    assert page.locator("#hits").inner_text() == "30 questions found"
    told = page.locator("#difference").inner_text()
    assert told.startswith("Only the first is right on 30, only the second on 0, both on 30")
    assert "difference +50.0 points (+37.3 to +62.7)" in told
    opened = page.locator("details.answer[open] summary b").all_inner_texts()
    assert opened == ["m0", "m1"]
    page.goto(home.as_uri())
    page.locator("[data-link]", has=page.locator("xpath=self::*")).first.dispatch_event("click")
    page.wait_for_url("**/questions.html#*")
    assert "show=a-wrong" in page.url


def test_what_is_folded_is_made_when_it_is_opened(page: Page, home: Path) -> None:
    from playwright.sync_api import expect

    page.goto(home.with_name("routers.html").as_uri())
    assert page.locator("#e0-figures").count() == 0
    page.get_by_text("8 figures of all routers").click()
    expect(page.locator("#e0-figures tbody tr")).to_have_count(8)
    page.locator("[data-filter=e0-figures]").fill("mlp")
    expect(page.locator("#e0-figures tbody tr")).to_have_count(2)
    assert "2 of 8" in page.locator("[data-count=e0-figures]").inner_text()
    assert page.evaluate("document.querySelectorAll('*').length") < 2_000


def _luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("block", [0, 1, 2], ids=["light", "dark", "print"])
def test_tokens_keep_a_contrast_that_everybody_can_read(block: int) -> None:
    sets: list[dict[str, str]] = [
        dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", part))
        for part in re.findall(r":root \{(.*?)\}", CSS.read_text(), re.S)
        if "--ink" in part
    ]
    tokens: dict[str, Any] = sets[block]
    assert len(sets) == 3
    for ink in ("ink", "soft", "link", "good", "bad", "warn"):
        for ground in ("page", "tint"):
            light, dark = sorted(
                (_luminance(tokens[ink]), _luminance(tokens[ground])), reverse=True
            )
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)
    light, dark = sorted((_luminance(tokens["ink"]), _luminance(tokens["mark"])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_colours_are_named_once() -> None:
    # Everything else says var(--…).
    rules = re.sub(r":root \{.*?\}", "", CSS.read_text(), flags=re.S)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[;\s])", rules) == []
