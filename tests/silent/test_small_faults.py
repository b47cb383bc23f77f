"""Small faults: tracebacks, names that forge messages, formulas in CSV, keys in base64, memory."""

from __future__ import annotations

import base64
import csv
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.calls.loopback import Loopback, answer, completion
from tests.conftest import ROOT, Call

KEY = "sk-proj-Zk3vQ9fT7bLw2Xy8"


def recipe(folder: Path, **changes: Any) -> Path:
    questions = folder / "questions.csv"
    if not questions.exists():
        questions.write_text("question,answer\nWhat is 1+1?,2\n")
    content = {
        "name": "small",
        "version": "1.0.0",
        "sources": [
            {
                "name": "own",
                "path": str(questions),
                "scorer": "numeric",
                "domain": "math",
                "license": "MIT",
                "fields": {"question": "question", "references": "answer"},
            }
        ],
        "pool": {
            "providers": [{"name": "p", "base_url": "${SMALL_URL}", "api_key_env": "SMALL_KEY"}],
            "models": [{"model_id": "m"}],
        },
        "release": {"title": "Small", "description": "Small.", "license": "MIT"},
        **changes,
    }
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_view_on_a_port_in_use_says_so(call: Call, demo_release: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = call("site", demo_release, "--serve", "--port", port, "--no-open")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert f"port {port}" in ended.stderr
    assert "next:" in ended.stderr


@pytest.mark.parametrize(
    "address", ["http://user:pw@127.0.0.1:9/v1", "http://user@127.0.0.1:9/v1", "http://a b/v1"]
)
def test_an_address_that_cannot_be_asked_is_named_and_not_shown(
    address: str, call: Call, tmp_path: Path
) -> None:
    env = {**os.environ, "SMALL_URL": address, "SMALL_KEY": KEY}
    ended = call("build", recipe(tmp_path), "--workspace", tmp_path / "yard", env=env)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert "'p'" in ended.stderr
    assert "user" not in ended.stderr.replace("user name", "")


def test_names_begin_no_line_of_a_message(call: Call, tmp_path: Path) -> None:
    lost = tmp_path / "a\nerror: all is well.csv"
    for words in (["audit", lost], ["verify", lost], ["recipe", "check", lost], ["plan", lost]):
        said = call(*words).stderr.splitlines()
        assert len([line for line in said if line.startswith("error:")]) <= 1
        assert not any(line.startswith("error: all is well") for line in said), said


def test_names_write_no_key_of_a_recipe(call: Call, tmp_path: Path) -> None:
    # The name stood in a comment of the recipe: its second line was a key.
    table = tmp_path / "a\nrelease: {title: forged}.csv"
    table.write_text("x,y\n1,2\n")
    call("init", tmp_path / "made.yaml", "--from", table)
    written = (tmp_path / "made.yaml").read_text()
    assert "\nrelease: {title: forged}" not in written


FORMULA = "=cmd|'/c calc'!A1"


def test_exported_csv_holds_no_formula_and_is_read_back(
    call: Call, demo_release: Path, tmp_path: Path
) -> None:
    from tests.proof.lies import BEST, WORST, added
    from tests.proof.resealed import put, resealed, where

    def named(tables: Any, facts: Any) -> None:
        for name in ("models", "responses", "verdicts", "labels"):
            rows = where(tables[name], "model_id", BEST)
            tables[name] = put(tables[name], rows, model_id=FORMULA)
        pair = {
            "id": "1", "query_id": tables["queries"].column("query_id")[0].as_py(),
            "model_a": FORMULA, "model_b": WORST, "prompt": "p", "response_a": "=1",
            "response_b": "b", "winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0,
            "basis": "correctness", "n_turns": 1,
        }  # fmt: skip
        added("preferences", lambda tables: [pair])(tables, facts)

    release = resealed(demo_release, tmp_path / "lied", named)
    pairs, bundle = tmp_path / "pairs.csv", tmp_path / "bundle"
    for words in (
        ["export", "embedllm", release, bundle],
        ["export", "preferences", release, pairs],
        ["import", "preferences", pairs, "-w", tmp_path / "yard"],
    ):
        ended = call(*words)
        assert ended.returncode == 0, ended.stderr
    for path in (pairs, *bundle.glob("*.csv")):
        with path.open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [one for one in cells if one.lstrip().startswith(("=", "@"))], path
    from pyarrow import parquet

    (back,) = parquet.read_table(
        tmp_path / "yard/imports/preferences/preferences.parquet"
    ).to_pylist()
    assert (back["model_a"], back["response_a"]) == (FORMULA, "=1")


def in_base64(key: str) -> str:
    """A key as a server may repeat it: alone and behind other words, in both alphabets."""
    ways = [f"{before}{key}".encode() for before in ("", "Bearer ", "user:", "k=")]
    said = [e(one).decode() for one in ways for e in (base64.b64encode, base64.urlsafe_b64encode)]
    return " ".join([*said, *(one.rstrip("=") for one in said)])


def test_a_key_in_base64_behind_other_words_is_stored_nowhere(call: Call, tmp_path: Path) -> None:
    said = answer(completion(f"2 {in_base64(KEY)}"))
    where = ["--workspace", tmp_path / "yard"]
    with Loopback(lambda body, seen: said) as server:
        env = {**os.environ, "SMALL_URL": server.base_url, "SMALL_KEY": KEY}
        ended = call("build", recipe(tmp_path), *where, "--until", "collect", env=env)
    assert KEY.encode() in server.headers[-1]
    assert ended.returncode == 0, ended.stderr
    # Of each of the three places that the key may have within groups of three bytes.
    inner = [base64.b64encode(b"x" * n + KEY.encode()).decode()[4:-4] for n in range(3)]
    files = [one for one in (tmp_path / "yard").rglob("*") if one.is_file()]
    assert files
    for path in files:
        held = path.read_bytes()
        assert not [one for one in inner if one.encode() in held], path
    from pyarrow import parquet

    (answers,) = (tmp_path / "yard").rglob("stages/**/responses/*.parquet")
    (text,) = parquet.read_table(answers).column("text").to_pylist()
    assert text.startswith("2 ")


def test_a_build_and_a_verification_within_a_limit_of_address_space(tmp_path: Path) -> None:
    # Plots alone reserve 71 GB: nothing was built, and a sound release was not verified.
    limit = 16 << 30

    def limited(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "routeyard", *map(str, words)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )

    answers = tmp_path / "answers.csv"
    answers.write_text("q,m,text\n" + "".join(f"{n},{m},2\n" for n in range(4) for m in "ab"))
    questions = tmp_path / "questions.csv"
    questions.write_text(
        "id,question,answer\n" + "".join(f"{n},1+1 (no. {n})?,2\n" for n in range(4))
    )
    recorded = {"path": str(answers), "fields": {"query": "q", "model": "m", "text": "text"}}
    source = {
        "name": "own", "path": str(questions), "scorer": "numeric", "domain": "math",
        "license": "MIT", "fields": {"id": "id", "question": "question", "references": "answer"},
    }  # fmt: skip
    path = recipe(
        tmp_path,
        sources=[source],
        pool={"models": [{"model_id": "a"}, {"model_id": "b"}]},
        collect={"provider": "recorded", "recorded": [recorded]},
        release={
            "title": "Small", "description": "Small.", "license": "MIT",
            "waivers": [{"gate": "metering", "reason": "Nothing was metered."},
                        {"gate": "audit", "reason": "The answers are made up."}],
        },
    )  # fmt: skip
    ended = limited("build", path, "--workspace", tmp_path / "yard")
    assert ended.returncode == 0, ended.stderr
    assert "plots are left out" in ended.stderr
    release = tmp_path / "yard/releases/small/1.0.0"
    assert not (release / "plots").exists()
    ended = limited("verify", release)
    assert ended.returncode == 0, ended.stderr


def test_a_plan_names_the_question_that_is_nearly_all_of_it(call: Call, tmp_path: Path) -> None:
    (tmp_path / "questions.csv").write_text(
        "question,answer\n" + "".join(f"What is {n}+{n}?,{n + n}\n" for n in range(40))
        + f'"{"word " * 60_000}",1\n'
    )  # fmt: skip
    env = {**os.environ, "SMALL_URL": "http://127.0.0.1:9/v1", "SMALL_KEY": KEY}
    ended = call("plan", recipe(tmp_path), "--workspace", tmp_path / "yard", env=env)
    assert ended.returncode == 0, ended.stderr
    assert "has a prompt of 300," in ended.stdout
