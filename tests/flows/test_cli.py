"""The command line: every command explains itself; errors have no traceback and right codes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from routeyard.flows.cli import _their_frames, run
from routeyard.flows.cli.tree import GROUPS, OLD, added, commands, core
from tests.conftest import Call

ROOT = Path(__file__).parents[2]


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name.split()[0] in shown for name in commands())
    assert max(map(len, shown.splitlines())) <= 80
    assert len(shown.splitlines()) <= 60
    for word in GROUPS:
        assert run([word, "--help"]) == 0
        shown = capsys.readouterr().out
        of_group = [name for name in commands() if name.startswith(f"{word} ")]
        assert of_group
        assert all(name.split()[1] in shown for name in of_group)


@pytest.mark.parametrize("name", commands())
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Usage" in shown
    # Once in the usage line, and at least once in an example.
    assert shown.count(f"routeyard {name}") >= 2, f"{name}: help shows no example"


#: Commands that nobody may take away, and those of several words or options beside them.
KEPT = {
    "deploy", "status", "plan", "query", "certify", "publish", "export", "import", "review",
    "verify", "sign", "reproduce", "try", "init", "build", "audit", "evaluate", "relabel",
}  # fmt: skip


@pytest.mark.extensions
def test_commands_are_few_and_none_that_people_rely_on_is_lost() -> None:
    assert set(commands()) >= KEPT
    assert len(core()) <= 36
    assert len(added()) <= 10
    assert not set(OLD) & set(commands())


@pytest.mark.extensions
@pytest.mark.parametrize("old", OLD)
def test_an_old_name_ends_with_one_line_that_names_the_new_one(
    old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (old.split(), [*old.split(), "x", "--json"]):
        assert run(words) == 2
        said = capsys.readouterr().err
        assert said == f"error: `routeyard {old}` is now `routeyard {OLD[old]}`\n"
    # The new one is a command, and has the options that the line names.
    new = [word for word in OLD[old].split() if not word.isupper()]
    assert run([*[one for one in new if not one.startswith("--")][:2], "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(one in shown for one in new)


def test_every_command_module_is_listed() -> None:
    written = {
        (f"routeyard.{folder.replace('/', '.')}.{path.stem}", name)
        for folder in (
            "flows/cli",
            "extensions/traffic",
            "extensions/tuning",
            "extensions/leaderboard",
            "papers",
        )
        for path in (ROOT / folder).glob("*.py")
        for name in re.findall(r"^def (\w+_command)\(", path.read_text(), re.MULTILINE)
    }
    assert written == {(one.module, one.function) for one in commands().values()}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["biuld"], 2, "did you mean 'build'"),
        (["build"], 2, "recipe"),
        (["build", "no_such"], 2, "there is no recipe"),
        (["build", "demo", "--until", "lable"], 2, "did you mean 'label'"),
        (["build", "demo", "--jbos", "2"], 2, "did you mean '--jobs'"),
        (["build", "demo", "--jobs", "two"], 2, "where: routeyard build"),
        (["build", "demo", "--jobs"], 2, "routeyard build --help"),
        (["build", "demo", "demo"], 2, "where: routeyard build"),
        (["cost"], 2, "routeyard cost --help"),
        (["score"], 2, "there is no answer to score"),
        (["site", ".", "--out", "site", "--results", "nowhere"], 2, "neither a release"),
        (["recipe", "shecma"], 2, "recipe schema"),
    ],
)
def test_bad_input_exits_2_and_says_what_to_do(
    words: list[str], code: int, says: str, call: Call
) -> None:
    done = call(*words)
    assert done.returncode == code, done.stderr
    assert says in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [[], ["--defaults"]])
def test_recipe_show_prints_what_is_itself_a_recipe(
    tmp_path: Path, words: list[str], call: Call
) -> None:
    shown = call("recipe", "check", "demo", "--print", *words).stdout
    # Defaults, such as a rule's own, are printed when they are asked for.
    assert ("shuffle_seed" in shown) == bool(words)
    assert (shown.count("\n") > 300) == bool(words)
    path = tmp_path / "again.yaml"
    path.write_text(shown)
    again = call("recipe", "check", str(path), "--print", *words)
    assert again.stdout == shown, again.stderr


def test_a_prefect_server_that_is_not_there_is_named_without_a_traceback(
    tmp_path: Path, call: Call
) -> None:
    address = "http://127.0.0.1:9/api"
    environment = {"PREFECT_API_URL": address, "PREFECT_HOME": str(tmp_path / "prefect")}
    done = call("deploy", "demo", "--workspace", tmp_path, env=os.environ | environment)
    assert done.returncode == 1
    assert address in done.stderr
    assert "prefect server start" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_example_keeps_its_lines_however_narrow_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert run(["evaluate", "--help"]) == 0
    shown = capsys.readouterr().out
    line = "routeyard evaluate RELEASE --out results/mine --router-from my_router:MyRouter"
    assert any(one.strip() == line for one in shown.splitlines())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_for_each_shell(shell: str, call: Call) -> None:
    script = call("--show-completion", shell)
    assert script.returncode == 0
    assert "_ROUTEYARD_COMPLETE" in script.stdout
    words = {
        "COMP_WORDS": "routeyard au",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "routeyard au",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        [str(Path(sys.executable).parent / "routeyard")],
        env=os.environ | words | {"_ROUTEYARD_COMPLETE": f"complete_{shell}"},
        capture_output=True,
        text=True,
    )
    assert "audit" in done.stdout + done.stderr, done


def test_where_no_shell_asks_one_is_to_be_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for found in (None, "sh"):
        monkeypatch.setattr("typer._completion_shared._get_shell_name", lambda found=found: found)
        for flag in ("--show-completion", "--install-completion"):
            assert run([flag]) == 2
            said = capsys.readouterr().err
            assert f"routeyard {flag} bash|zsh|fish|powershell" in said
            assert "None" not in said
    assert run(["--show-completion", "tcsh"]) == 2
    assert "'tcsh'" in capsys.readouterr().err


def test_the_workspace_is_given_the_same_way_everywhere(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in commands():
        run([*name.split(), "--help"])
        shown = capsys.readouterr().out
        assert "--quiet" in shown, name
        if "--workspace" in shown.partition("Options:")[2]:
            assert "-w, --workspace" in shown, name
            assert "ROUTEYARD_WORKSPACE" in shown, name


@pytest.mark.parametrize("words", [["recipe", "check", "demo", "--print"], ["--version"]])
def test_a_reader_that_goes_away_is_no_traceback(words: list[str]) -> None:
    # `routeyard … | head -1`: more is written than a buffer holds, or all is flushed at the end.
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "routeyard", *words],
        cwd=ROOT,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(read)
    os.close(write)
    _, said = process.communicate(timeout=600)
    assert "Traceback" not in said
    assert "BrokenPipe" not in said


def test_frames_of_an_environment_that_is_reached_into_are_not_theirs(tmp_path: Path) -> None:
    # Typer's own frames stood before the author's line where a `.pth` file led to it.
    library = tmp_path / "other" / "lib" / "site-packages" / "library.py"
    library.parent.mkdir(parents=True)
    library.write_text("def call(what):\n    return what()\n")
    mine = tmp_path / "mine.py"
    mine.write_text("def wrong():\n    return {}['k']\n")
    made: dict[str, Any] = {}
    for path in (library, mine):
        exec(compile(path.read_text(), str(path), "exec"), made)
    with pytest.raises(KeyError) as caught:
        made["call"](made["wrong"])
    files = [frame.filename for frame in _their_frames(caught.value)]
    assert str(mine) in files
    assert str(library) not in files


def test_an_error_in_a_users_router_shows_their_lines_and_not_ours(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    def __init__(self):\n        self.x = {}['k']\n"
        "    def fit(self, train): ...\n    def scores(self, queries): ...\n"
    )
    done = subprocess.run(
        [sys.executable, "-c",
         "from routeyard.flows.cli import main; "
         "from routeyard.flows.evaluation.evaluate import from_code; "
         "import routeyard.flows.cli as c; c._call = lambda words: from_code('mine:Mine'); "
         "main(['x'])"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "KeyError: 'k'" in done.stderr
    assert "mine.py:3" in done.stderr
    assert "self.x = {}['k']" in done.stderr
    assert "flows" not in done.stderr


def test_a_command_ends_with_its_output_exit_handlers_and_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-c",
         "import atexit, sys, threading, time, routeyard.flows.cli as cli\n"
         "def late(): time.sleep(0.2); print('thread')\n"
         "def call(words):\n"
         "    atexit.register(print, 'handler'); threading.Thread(target=late).start()\n"
         "    print('output', end=' '); return 3\n"
         "cli._call = call\n"
         "cli.main()"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.split() == ["output", "thread", "handler"]


@pytest.mark.parametrize(
    ("words", "list_"),
    [
        (["zoo", "rnu"], "`routeyard zoo` lists them"),
        (["import", "zzz", "x.csv"], "`routeyard import list` lists them"),
        (["try", "x.csv", "--accept", "qqqq"], "`routeyard audit --list` lists all"),
    ],
)
def test_of_many_names_the_nearest_are_named_and_where_the_list_is(
    words: list[str], list_: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    said = capsys.readouterr().err
    assert list_ in said
    # Was a wall of up to 66 names.
    assert len(said) < 350
    assert "the nearest of " in said or "did you mean " in said


def test_a_command_that_is_a_group_too_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["zoo", "knn", "--foo"]) == 2
    assert "where: routeyard zoo\n" in capsys.readouterr().err
