"""The command line: every command explains itself; errors have no traceback and right codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.cli import run
from flows.commands import COMMANDS, module_of

ROOT = Path(__file__).parents[2]


def call(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flows", *words], cwd=cwd, capture_output=True, text=True
    )


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Usage" in shown
    # Once in the usage line, and at least once in an example.
    assert shown.count(f"routeyard {name}") >= 2, f"{name}: help shows no example"


def test_every_command_module_is_listed() -> None:
    files = {path.stem for path in (ROOT / "flows" / "commands").glob("*.py")} - {"__init__"}
    assert files == {module_of(name).rpartition(".")[2] for name in COMMANDS}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["biuld"], 2, "did you mean 'build'"),
        (["build"], 2, "recipe"),
        (["build", "no_such"], 2, "there is no recipe"),
        (["build", "demo", "--until", "lable"], 2, "did you mean 'label'"),
        (["build", "demo", "--jbos", "2"], 2, "--jbos"),
        (["recipe", "shwo"], 2, "recipe show"),
    ],
)
def test_bad_input_exits_2_and_says_what_to_do(words: list[str], code: int, says: str) -> None:
    done = call(*words)
    assert done.returncode == code, done.stderr
    assert says in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_recipe_show_prints_every_default_and_is_itself_a_recipe(tmp_path: Path) -> None:
    shown = call("recipe", "show", "demo").stdout
    assert "threshold: 0.999" in shown  # the rule's own default
    assert "seed: 0" in shown
    path = tmp_path / "again.yaml"
    path.write_text(shown)
    again = call("recipe", "show", str(path))
    assert again.stdout == shown, again.stderr


def test_a_prefect_server_that_is_not_there_is_named_without_a_traceback(tmp_path: Path) -> None:
    address = "http://127.0.0.1:9/api"
    done = subprocess.run(
        [sys.executable, "-m", "flows", "deploy", "demo", "--workspace", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PREFECT_API_URL": address, "PREFECT_HOME": str(tmp_path / "prefect")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert address in done.stderr
    assert "prefect server start" in done.stderr
    assert "Traceback" not in done.stderr
