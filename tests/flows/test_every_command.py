"""What every command keeps to: `--json`, and no warning of ours or of a library on its way."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from routeyard.flows.cli import run
from routeyard.flows.cli.options import Output, plain, print_output
from routeyard.flows.cli.tree import command_of, commands, function_of, without_arguments

ROOT = Path(__file__).parents[2]

#: command → why it has no `--json`.
WITHOUT = {"site": "writes a folder of pages, or serves it until it is stopped"}


@pytest.mark.parametrize("name", commands())
def test_every_command_that_prints_a_result_has_json(name: str) -> None:
    flags = {flag for one in command_of(name).params for flag in one.opts}
    assert ("--json" in flags) != (name in WITHOUT), f"{name}: give it --json, or say why not"


@pytest.mark.parametrize("name", commands())
def test_every_option_and_argument_has_a_help(name: str) -> None:
    # Most helps are the docstring's section `Args`, whose names must be those of the parameters.
    without = [one.name for one in command_of(name).params if not getattr(one, "help", "")]
    assert not without, f"{name}: describe {without} under `Args:`"
    text = function_of(name).__doc__ or ""
    _, described = without_arguments(inspect.cleandoc(text))
    assert set(described) <= {one.name for one in command_of(name).params}


def test_a_result_is_json_without_nan_and_with_paths_dates_and_tables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = {
        "path": Path("a/b"),
        "rows": pa.table({"x": [1.5, float("nan"), None]}),
        "number": np.float64(2.5),
        "day": date(2026, 11, 1),
        "at": datetime(2026, 11, 1, tzinfo=UTC),
        "usd": Decimal("0.10"),
        "kinds": {"b", "a"},
        "pair": (1, float("inf")),
    }
    print_output(Output(said, "words"), True)
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == [{"x": 1.5}, {"x": None}, {"x": None}]
    assert (found["path"], found["number"], found["usd"]) == ("a/b", 2.5, "0.10")
    assert (found["day"], found["kinds"], found["pair"]) == ("2026-11-01", ["a", "b"], [1, None])
    print_output(Output(said, ["words", "more"]), False)
    assert capsys.readouterr().out == "words\nmore\n"
    with pytest.raises(TypeError, match="object"):
        plain(object())


def test_no_arrow_is_taken_from_a_db_api_result() -> None:
    """DuckDB copies such rows once more and warns on the user's screen."""
    taken = {"to_arrow_table", "to_arrow_reader", "fetch_arrow_table", "fetch_record_batch"}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("flows", "pipelines", "papers", "datacards", "schemas", "routeyard")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in taken
        and isinstance(node.func.value, ast.Call)
        and isinstance(node.func.value.func, ast.Attribute)
        and node.func.value.func.attr == "execute"
    ]
    assert not found


def test_a_ledger_of_a_workspace_with_questions_is_audited_without_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from routeyard.flows.build import build
    from routeyard.flows.demo.server import running
    from tests.flows.test_shards import recipe_for

    with running(latency=0, faults=0) as url:
        recipe = recipe_for(tmp_path, url)
        build.fn(recipe=str(recipe), workspace=str(tmp_path / "yard"), jobs=1, until="collect")
    capsys.readouterr()
    # Warnings are errors in this suite.
    assert run(["audit", str(tmp_path / "yard"), "--json"]) in (0, 3)
    assert isinstance(json.loads(capsys.readouterr().out), list)


#: What the slow run calls: each command once, on the demo's workspace. `{r}` is its release,
#: `{y}` its workspace, `{t}` an empty folder.
CALLS = {
    "plan": "plan demo -w {y} --json",
    "build": "build demo -w {y} --json",
    "status": "status demo -w {y} --json",
    "cost ledger": "cost ledger -w {y} --json",
    "cost reprice": "cost reprice {y} --prices {t}/prices.yaml --out {t}/repriced --json",
    "init": "init {t}/mine.yaml --from {t}/q.csv --json",
    "doctor": "doctor -w {y} --json",
    "recipe check": "recipe check demo --json",
    "recipe schema": "recipe schema --json",
    "evaluate": "evaluate {r} --out {t}/results --resamples 100 --router best-generalist --json",
    "study": "study list --json",
    "zoo": "zoo --json",
    "compare": "compare {r} always:sim-atlas-xl always:sim-tern-mini --json",
    "zoo online": "zoo online {r} --router cascade --shuffles 2 --json",
    "certify": "certify {r} --out {t}/certified --resamples 200 --json",
    "leaderboard": "leaderboard {t}/results --json",
    "sources": "sources gsm8k --json",
    "import": "import list --json",
    "health": "health {r} --out {t}/health --json",
    "verify": "verify {r} --json",
    "query": "query {r} @accuracy --json",
    "diff": "diff {r} {r} --json",
    "export": "export embedllm {r} {t}/bundle --json",
    "publish": "publish {r} --to {t}/public --dry-run --json",
    "relabel": "relabel demo -w {y} --json",
    "audit": "audit {r} --json",
    "review": "review demo -w {y} --csv {t}/queue.csv --json",
    "score": "score --scorer numeric --reference 18 --output 18 --json",
}
#: command → where it runs instead, or why it cannot run here.
ELSEWHERE = {
    "demo": "the workspace that the others read",
    "try": "tests/flows/test_try.py",
    "reproduce": "tests/papers/test_reproduce.py",
    "replay": "reads a log of steps: tests/flows/traffic/test_replay_command.py",
    "shadow": "reads a gateway's log: tests/flows/traffic/test_shadow.py",
    "latency": "the demo states none: tests/flows/traffic/test_latency_command.py",
    "cost prices": "asks a provider: tests/flows/test_metering_commands.py",
    "submit": "tests/flows/leaderboard",
    "zoo run": "tests/flows/test_zoo_command.py",
    "zoo tune": "tests/tuning/test_tune_command.py",
    "zoo fetch": "tests/test_fetch_weights.py",
    "yank": "changes the release that the others read: tests/release",
    "fingerprint": "needs a model's weights: tests/signals",
    "hidden-states": "needs a model's weights: tests/signals",
    "deploy": "needs a Prefect server: tests/flows/test_prefect.py",
    "route": "needs a saved router: tests/routers",
    "sign": "changes the release that the others read: tests/release",
    "site": "tests/datacards",
}

_RUN = """
import contextlib, io, json, sys
from routeyard.flows.cli import run
said = {}
for name, line in json.loads(sys.stdin.read()).items():
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            code = run(line.split())
        said[name] = [code, out.getvalue()]
    except Warning as warning:
        said[name] = [f"{type(warning).__name__}: {warning}", ""]
print(json.dumps(said))
"""


def test_every_command_is_called_or_says_where() -> None:
    assert set(CALLS) | set(ELSEWHERE) >= set(commands())
    assert not set(CALLS) & set(ELSEWHERE)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_command_once_with_warnings_as_errors(demo_yard: Path, tmp_path: Path) -> None:
    release = demo_yard / "releases" / "demo" / "1.0.0"
    questions = "".join(f"What is {i} + 1?,{i + 1}\n" for i in range(8))
    (tmp_path / "q.csv").write_text("question,answer\n" + questions)
    (tmp_path / "prices.yaml").write_text(
        "- {model_id: sim-tern-mini, price_in: 1, price_out: 2, price_date: '2026-11-01'}\n"
    )
    places = {"y": demo_yard, "r": release, "t": tmp_path}
    lines = {name: line.format(**places) for name, line in CALLS.items()}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _RUN],
        input=json.dumps(lines),
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert {name: code for name, (code, _) in said.items() if code != 0} == {}, done.stderr[-3000:]
    for name, (_, text) in said.items():
        assert isinstance(json.loads(text), list | dict), name
