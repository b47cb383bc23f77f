"""The documentation builds without a warning and without the network, and its blocks run."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from docs import catalogue
from routeyard.pipelines.evaluate.metrics import METRICS
from routeyard.pipelines.label.scorers.scorer import ScoringInput
from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import Examples, Queries, Router
from routeyard.schemas.recipe import Recipe

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
RUN = re.compile(r"<!-- runs -->\s*```(bash|python)\n(.*?)```", re.S)
#: What a recipe needs beside the keys that a page shows.
LEAST = {
    "name": "shown",
    "version": "1.0.0",
    "sources": [{"name": "gsm8k", "catalog": "gsm8k"}],
    "pool": {"models": [{"model_id": "m"}]},
}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.S | re.M)
#: Pages and parts of pages that a command writes; beside them, the history of versions.
GENERATED = re.compile(
    r"CHANGELOG\.md|benchmarks/\w+\.md|pipelines/ingest/catalog/\w+/README\.md"
    r"|pipelines/evaluate/(studies/(RESULTS|METHODS)\.md|zoo/results/\w+\.md)"
)
PARTS = re.compile(
    r"<!-- ([\w ]+): begin -->.*?<!-- \1: end -->|<!-- (?:root|ordinary user) -->.*?<!-- end -->",
    re.S,
)
#: Longer than a page should be.
LONG = {"docs/labels.md", "pipelines/label/scorers/README.md"}


@pytest.mark.slow  # CI runs `mkdocs build --strict` beside the suite
@pytest.mark.extensions
@pytest.mark.timeout(600)
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    # `strict` turns a dead link, a page outside the navigation or an unknown name into a failure.
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    pages = {path.parent.name for path in tmp_path.rglob("index.html")}
    assert {"commands", "recipe", "tables", "scorers", "metrics", "routers"} <= pages
    html = "".join(path.read_text() for path in tmp_path.rglob("*.html"))
    asked = re.findall(r"""(?:src|href)=["'](https?://[^"']+\.(?:js|css|woff2?))""", html)
    assert asked == [], "a page would ask another host for a part of itself"


@pytest.mark.extensions
def test_pages_are_short() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    words = {
        name: len(PARTS.sub("", (ROOT / name).read_text(encoding="utf-8")).split())
        for name in listed
        if not GENERATED.fullmatch(name)
    }
    assert {name for name, count in words.items() if count > 1_200} <= LONG
    assert sum(words.values()) <= 30_000
    assert sum(count for name, count in words.items() if name.startswith("docs/")) <= 20_000
    assert words["README.md"] <= 900


@pytest.mark.extensions
@pytest.mark.parametrize("page", catalogue.BLOCKS)
def test_tables_of_parts_are_those_of_the_code(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text == catalogue.written(page), "run `python docs/catalogue.py`"


def test_every_figure_of_the_certificate_is_explained() -> None:
    from routeyard.datacards.card import FIGURES
    from routeyard.pipelines.evaluate.certificate import Certificate

    named = re.search(r"by name: (.*?)\.\n", str(Certificate.__doc__), re.S)
    assert named
    page = (ROOT / "docs" / "glossary.md").read_text()
    for name in re.findall(r"[a-z]+_[a-z_]+", named[1]):
        assert f"`{name}`" in page, f"docs/glossary.md does not say what {name} means"
        assert name in FIGURES, f"datacards/templates/certificate.yaml has no sentence for {name}"


def test_the_tour_runs(demo_release: Path, tmp_path: Path) -> None:
    where = tmp_path / "yard" / "releases" / "demo"
    where.mkdir(parents=True)
    (where / "1.0.0").symlink_to(demo_release)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "docs" / "tour.py")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "best single" in done.stdout
    assert "task-mean: " in done.stdout


@pytest.mark.parametrize(
    "page", [*PAGES, *ROOT.glob("*.md"), *(ROOT / "pipelines").rglob("*.md")], ids=lambda p: p.stem
)
def test_no_link_of_a_checkout_is_dead(page: Path) -> None:
    # Pages that only MkDocs makes are not there when somebody reads the repository.
    links = re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if not re.match(r"\w+:", link)]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_block_says_what_it_is(page: Path) -> None:
    for language, code in BLOCK.findall(page.read_text()):
        assert language in ("bash", "python", "yaml", "toml", "text"), (page, language)
        if language == "python":
            compile(code, str(page), "exec")


@pytest.mark.parametrize(
    "page", [p for p in PAGES if "```yaml" in p.read_text()], ids=lambda path: path.stem
)
def test_keys_in_yaml_blocks_are_keys_of_a_recipe(page: Path) -> None:
    for language, code in BLOCK.findall(page.read_text()):
        if language == "yaml":
            Recipe.model_validate({**LEAST, **yaml.safe_load(code)})


def test_reference_pages_hold_our_own_parts_and_what_their_classes_say() -> None:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec
    assert spec.loader
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    METRICS.targets["theirs"] = METRICS.targets["accuracy"]
    try:
        # A package that is installed here came into the project's own page.
        assert "| `theirs` |" not in "\n".join(pages.metrics())
    finally:
        del METRICS.targets["theirs"]
    page = "\n".join(pages.routers())
    for name in ROUTERS.builtin:
        assert inspect.cleandoc(ROUTERS.get(name).__doc__) in page, name


def test_every_attribute_that_a_router_gets_is_explained() -> None:
    page = (ROOT / "docs" / "howto" / "routers.md").read_text()
    for one in (*fields(Examples), *fields(Queries)):
        assert f"\n| `{one.name}` |" in page, f"docs/howto/routers.md has no row for {one.name}"


def test_the_router_in_the_help_is_one() -> None:
    shown = re.search(
        r"^    class .*?(?=\n\n`fit)", inspect.cleandoc(str(Router.__doc__)), re.S | re.M
    )
    assert shown
    made: dict[str, Any] = {"np": np}
    exec(textwrap.dedent(shown[0]), made)
    queries = Queries(("a", "b"), np.array(["t", "t"]), questions=("short", "a longer one"))
    train = Examples(queries, ("x", "y", "z"), np.array([[1.0, np.nan, 0.0], [1.0, 0.5, 0.0]]))
    longer = made["Longer"]()
    longer.fit(train)
    assert longer.scores(queries).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_the_scorer_that_the_page_shows_reads_roman_numerals() -> None:
    page = (ROOT / "docs" / "howto" / "extend.md").read_text()
    codes = [code for language, code in BLOCK.findall(page) if language == "python"]
    made: dict[str, Any] = {}
    for code in codes:
        exec(compile(code, "extend.md", "exec"), made)
    for output, outcome in (
        ("It was XVIII.", "correct"),
        # The page took the first match, and "I" is a numeral.
        ("I think it was XVIII.", "correct"),
        ("XIX + I is XX, less II.\nAnswer: XVIII\nI am sure.", "correct"),
        ("It was XIX.", "incorrect"),
        ("Nobody knows", "abstain"),
        ("", "abstain"),
    ):
        assert made["SCORER"].read(ScoringInput("When?", ("XVIII",)), output).outcome == outcome, (
            output
        )
    data = SimpleNamespace(price=np.array([0.1, 0.9]))
    routed = SimpleNamespace(data=data, choice=np.array([1, 0, 1, 1]), mean=np.mean)
    assert made["METRIC"].compute(routed) == 0.75


def test_both_price_tables_that_the_page_shows_are_read_alike(tmp_path: Path) -> None:
    from routeyard.pipelines.collect.prices import read_prices
    from routeyard.pipelines.common.errors import BadInput

    page = (ROOT / "docs" / "howto" / "money.md").read_text()
    found = []
    for name, text in re.findall(r"cat > (\S+) <<'END'\n(.*?)END\n", page, re.S):
        (tmp_path / name).write_text(text)
        table = read_prices(tmp_path / name)
        found.append({model: (p.input, p.output, p.date) for model, p in table.items()})
    assert len(found) == 2
    assert found[0] == found[1] != {}
    (tmp_path / "p.yaml").write_text("models: [{model_id: a}]")
    with pytest.raises(BadInput, match="price_in, price_out, price_date") as caught:
        read_prices(tmp_path / "p.yaml")
    assert "'prices:'" in str(caught.value)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page", [p for p in PAGES if RUN.search(p.read_text())], ids=lambda path: path.stem
)
def test_the_blocks_of_a_page_run_in_order(page: Path, as_a_user: tuple[Path, dict]) -> None:
    folder, environment = as_a_user
    for language, code in RUN.findall(page.read_text()):
        command = ["bash", "-euo", "pipefail", "-c", code]
        if language == "python":
            command = [str(folder / "bin" / "python"), "-c", code]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{page.name}:\n{code}\n{done.stdout}{done.stderr}"
