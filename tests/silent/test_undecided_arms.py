"""An arm that is not counted where it fails, and what pages, files and the audit say of it."""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

Right = Callable[[int], bool | None]


def answers(path: Path, arms: dict[str, Right], questions: int = 40) -> Path:
    """One row per question and arm; an arm that gives None has an error in place of a score."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["question_id", "question", "model", "answer", "score", "status", "cost_usd"])
        for n in range(questions):
            for k, (arm, right) in enumerate(arms.items()):
                score = right(n)
                rows.writerow(
                    [f"q{n}", f"How many stones are in heap {n} of field {n * 7 % 11}?", arm]
                    + (["", "", "error", ""] if score is None else
                       [f"{n} stones, I think", int(score), "ok", 0.001 * (k + 1)])
                )  # fmt: skip
    return path


#: Right on all that it lets be counted: every second question.
EVADES: dict[str, Right] = {
    "honest-one": lambda n: n % 3 != 0,
    "honest-two": lambda n: n % 2 == 0,
    "evader": lambda n: True if n % 4 < 2 else None,
}


@pytest.fixture(scope="module")
def tried(call: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tried")
    file = answers(folder / "answers.csv", EVADES, 150)
    done = call("try", file, "--workspace", folder / "yard", "--no-open", "--json")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    results = next(Path(told["recipe"]).parent.glob("results/*/*/reference-routers"))
    return {**told, "results": results, "printed": done.stderr}


def heading(page: Path) -> str:
    return html.unescape(re.findall(r"<h1[^>]*>(.*?)</h1>", page.read_text())[0])


def test_no_page_calls_the_best_what_was_not_counted(tried: dict[str, Any]) -> None:
    first = heading(Path(tried["page"]))
    assert "evader, best on the train questions" not in first
    assert "None is called best: the order of evader and honest-one" in first
    card = (Path(tried["release"]) / "README.md").read_text()
    assert "| best single model |" not in card
    assert "depends on labels that are missing or undecided" in card
    certificate = json.loads((Path(tried["release"]) / "manifest.json").read_text())
    told = certificate["figures"]["certify"]["certificate"]
    assert "honest-one" in told["order_undecided"]
    assert "the best single model (evader)" not in told["words"]


def test_missing_labels_widen_an_interval_from_all_wrong_to_all_right(
    tried: dict[str, Any],
) -> None:
    told = json.loads((tried["results"] / "evaluation.json").read_text())
    facts = told["facts"]
    assert {"honest-one"} <= set(facts["order_undecided"]["train"])
    rows = pq.read_table(tried["results"] / "metrics.parquet").to_pylist()
    own = {r["router"]: r for r in rows if r["metric"] == "accuracy" and r["split"] == "test"}
    one = own["single:evader"]
    share = one["n"] / facts["n_test"]
    assert one["value"] == 1.0
    assert share < 1
    assert one["low"] < share
    assert one["high"] == 1.0
    assert own["single:honest-one"]["n"] == facts["n_test"]
    # A router that asks it is not surer than it.
    assert own["best-generalist"]["low"] < share


def test_places_are_open_where_missing_labels_could_change_them(tried: dict[str, Any]) -> None:
    told = json.loads((tried["results"] / "evaluation.json").read_text())
    places = {row["router"]: row for row in told["ranking"]}
    assert places["best-generalist"]["worst_place"] == len(places)


def test_the_audit_names_an_arm_of_which_more_is_undecided(call: Any, tmp_path: Path) -> None:
    # It does not lead, so that no ranking shows it.
    arms = {**EVADES, "evader": lambda n: None if n % 3 == 0 else n % 7 == 0}
    done = call("audit", answers(tmp_path / "answers.csv", arms, 90), "--json")
    told = json.loads(done.stdout)
    named = {f["kind"]: f["about"] for f in told["findings"]}
    assert named["undecided_out_of_line"] == "evader"
    assert told["verdict"] != "clean"
    # Arms of which each lacks another answer are in line.
    arms = {name: (lambda n, k=k: None if n == 3 + k else (n + k) % 3 != 0)
            for k, name in enumerate(("a", "b", "c"))}  # fmt: skip
    told = json.loads(call("audit", answers(tmp_path / "few.csv", arms, 90), "--json").stdout)
    assert "undecided_out_of_line" not in {f["kind"] for f in told["findings"]}
