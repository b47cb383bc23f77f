"""The import rules can fail, and start-up stays light.

ruff, mypy and import-linter run as separate steps in `.ci/run`, before pytest.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
import tomllib
from argparse import Namespace
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from benchmarks.structure import run
from tests.mutation.__main__ import AREAS

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
PACKAGES = ("routeyard", "schemas", "pipelines", "papers", "extensions", "flows", "datacards")
#: Named, because an environment may be in the checkout under any name.
OWN = [*PACKAGES, "benchmarks", "docs", "tests"]


def test_the_tools_read_every_file_of_ours() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert {name.partition("/")[0] for name in listed} == set(OWN)


@pytest.mark.parametrize("area", AREAS)
def test_what_mutation_testing_names_exists(area: str) -> None:
    modules, tests = AREAS[area]
    assert all(any(ROOT.glob(name)) for name in modules)
    for name in tests:
        file, _, test = name.partition("::")
        assert f"def {test.partition('[')[0]}" in (ROOT / file).read_text(encoding="utf-8"), name


@pytest.mark.extensions
def test_a_planted_wrong_import_is_caught(tmp_path: Path) -> None:
    # The rules must be able to fail: a stage that imports a later one.
    for package in PACKAGES:
        subprocess.run(["cp", "-r", str(ROOT / package), str(tmp_path)], check=True)
    wrong = tmp_path / "pipelines" / "ingest" / "wrong.py"
    wrong.write_text("from routeyard.pipelines.label.policies import decide\n")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    done = subprocess.run([str(BIN / "lint-imports")], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "routeyard.pipelines.ingest.wrong" in done.stdout


def test_every_dependency_says_what_it_is_for() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    start = lines.index("dependencies = [")
    for line in lines[start + 1 : lines.index("]", start)]:
        stripped = line.strip()
        assert stripped.startswith("#") or "#" in stripped, line


def test_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.extensions
def test_packages_are_typed_and_tests_have_no_init() -> None:
    assert all((ROOT / package / "py.typed").is_file() for package in PACKAGES)
    assert not list((ROOT / "tests").rglob("__init__.py"))


@pytest.mark.parametrize(
    "module", ["routeyard.flows.cli", "routeyard.pipelines.common.errors", "routeyard"]
)
def test_start_up_imports_nothing_heavy(module: str) -> None:
    code = (
        f"import {module}, sys; heavy = {{'torch', 'prefect', 'duckdb', 'pandas', 'datasets', "
        "'openai', 'sentence_transformers', 'typer', 'pyarrow', 'numpy', 'pydantic', 'jinja2', "
        "'yaml'} & set(sys.modules); "
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_help_of_a_command_loads_no_tables() -> None:
    """Options and their helps are in light modules: `COMMAND --help` answers at once."""
    names = [f"routeyard.flows.cli.{path.stem}" for path in (ROOT / "flows/cli").glob("[a-z]*.py")]
    names += [f"{one.value}.commands" for one in entry_points(group="routeyard.commands")]
    code = (
        f"import {', '.join(names)}, sys; heavy = {{'numpy', 'pyarrow', 'duckdb', 'jinja2', "
        "'prefect'} & set(sys.modules); sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.extensions
def test_the_structure_stays_plain() -> None:
    """No import cycle, no upward import, and no function that branches too often."""
    found = run(Namespace(tree=ROOT))
    for name in (
        "cycles_of_packages", "cycles_of_files", "imports_upward", "functions_above_complexity_20",
    ):  # fmt: skip
        assert found[name] == [], name
    assert found["boxes"] <= 24
    assert found["arrows"] <= 90
    assert {name for name in found["modules_for_one_other"] if not name.startswith(APART)} == set()


#: Modules that a single other one imports and that stay apart from it: parts of a registry; what a
#: command loads only when it runs; stages, whose code is hashed one by one.
APART = (
    "pipelines.label.scorers.", "pipelines.evaluate.metrics.", "pipelines.ingest.importers.",
    "pipelines.routers.", "pipelines.verify.", "extensions.leaderboard.submit",
    "extensions.traffic.", "flows.cli.tree", "flows.doctor", "flows.recipe_check", "flows.tasks.",
)  # fmt: skip


#: Words that say nothing of who does what, in comments, docstrings, messages and pages.
EMPTY_WORDS = re.compile(
    r"\b(?:[Ss]tands\b(?!:)|stood\b|stand (?:for|beside|behind|under|in for)\b"
    r"|(?:is|are) none\b(?! of)|(?:is|are) (?:said|told)\b(?! apart| from)"
    r"|by (?:itself|themselves)\b|gives? up its\b"
    r"|ends? in words\b|of (?:its|their|one's) own(?=[.,:;)]))"
)
#: Kept, since a release stores it with each verdict.
STORED = "the reference stands in a question"


def _prose(name: str, text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of a page, or of the comments and strings of a module."""
    if not name.endswith(".py"):
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.start[0], " ".join(token.string.split())


def _empty_words(name: str, text: str) -> list[str]:
    """The places of a file that have one of `EMPTY_WORDS`."""
    if not EMPTY_WORDS.search(" ".join(text.split())):
        return []
    return [
        f"{name}:{line}: {found[0]!r}"
        for line, prose in _prose(name, text)
        if STORED not in prose and (found := EMPTY_WORDS.search(prose))
    ]


@pytest.mark.extensions
def test_words_say_who_does_what() -> None:
    assert _empty_words("a.py", "# What stands here is none.\nstands = 1\n") == ["a.py:1: 'stands'"]
    pages = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md", "docs/*.md"]
    listed = subprocess.run(
        ["git", "ls-files", *(f"{package}/*.py" for package in PACKAGES), *pages],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    found = [one for name in listed for one in _empty_words(name, (ROOT / name).read_text())]
    assert not found, "say who does what ('is stored in', 'is missing'): " + "\n".join(found)
