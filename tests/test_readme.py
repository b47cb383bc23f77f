"""Every block of the README runs, as a new user would run it after the first command."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from routeyard.schemas.recipe import Recipe

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = re.findall(r"<!-- tour -->\s*```(bash|python)\n(.*?)```", TEXT, re.S)


@pytest.mark.parametrize("number", range(len(TOUR)))
def test_tour_blocks_run(number: int, as_a_user: tuple[Path, dict]) -> None:
    language, code = TOUR[number]
    folder, environment = as_a_user
    command = ["bash", "-euo", "pipefail", "-c", code]
    if language == "python":
        command = [str(folder / "bin" / "python"), "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()


def test_the_two_commands_are_what_the_tests_and_ci_run() -> None:
    demo = re.search(r"<!-- demo command -->\s*```bash\n(.*?)```", TEXT, re.S)
    tests = re.search(r"<!-- test command -->\s*```bash\n(.*?)```", TEXT, re.S)
    assert demo
    assert demo[1].rstrip().endswith("routeyard demo --workspace yard")
    assert tests
    assert tests[1].rstrip().endswith("-m pytest")
    assert "<!-- test command -->" in (ROOT / ".ci" / "run").read_text()


def test_the_recipe_in_the_readme_is_one() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", TEXT, re.S)
    recipes = [Recipe.model_validate(yaml.safe_load(block)) for block in blocks]
    assert [recipe.name for recipe in recipes] == ["my_benchmark"]
