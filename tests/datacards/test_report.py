"""The report: pure parts, and the page in a real browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.datacards.reports.evaluation import lookup, plot_all, report
from routeyard.datacards.site.evaluation import EvaluationTables
from routeyard.flows.evaluation.released import Tables
from routeyard.schemas import CONTRACTS
from routeyard.schemas.errors import ContractError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NASTY = "</script><img src=x onerror=alert(1)> & \u2028 {{ 7*7 }}"


def release() -> dict[str, pa.Table]:
    ids, models = ["q1", "q2"], ["large", "small"]
    pairs = [(q, m) for q in ids for m in models]
    return {
        "queries": pa.table(
            {
                "query_id": ids,
                "task": ["sums", "words"],
                "prompt": ["What is 2+2?", NASTY],
                "references": [["4"], ["x"]],
            }
        ),
        "models": pa.table({"model_id": models}),
        "labels": pa.table(
            {
                "query_id": [q for q, _ in pairs],
                "model_id": [m for _, m in pairs],
                "score": pa.array([1.0, 0.0, None, 1.0]),
                "correct": pa.array([True, False, None, True]),
                "decided_by": pa.array(["numeric", "numeric", None, "numeric"]),
            }
        ),
        "responses": pa.table(
            {
                "query_id": [q for q, _ in pairs],
                "model_id": [m for _, m in pairs],
                "sample": pa.array([0] * 4, pa.int32()),
                "status": ["ok", "ok", "error", "ok"],
                "cost_usd": pa.array([0.002, 0.001, None, 0.001]),
                "text": pa.array(["The answer is 4", "5" * 9000, None, NASTY]),
            }
        ),
        "verdicts": pa.table(
            {
                "query_id": ["q1"],
                "model_id": ["large"],
                "sample": pa.array([0], pa.int32()),
                "scorer": ["numeric"],
                "outcome": ["correct"],
                "extracted": ["4"],
            }
        ),
    }


CHOICES = pa.table({"query_id": ["q1"], "router": ["knn"], "model_id": ["large"]})


def page(*, simulated: bool = False, **changes: Any) -> str:
    curve = {
        "router": ["knn", "knn", "oracle", "oracle"],
        "curve": ["deferral"] * 4,
        "point": [0, 1] * 2,
        "measure": ["usd"] * 4,
        "x": [1.0, 2.0, 1.0, 2.0],
        "y": [0.5, 0.7, 0.6, 0.9],
        "low": pa.array([0.4, 0.6, None, None]),
        "high": pa.array([0.6, 0.8, None, None]),
    }
    metrics = {
        "router": ["knn"],
        "metric": ["accuracy"],
        "split": ["test"],
        "value": [0.7],
        "low": [0.6],
        "high": [0.8],
        "reason": pa.array([None], pa.string()),
    }
    parts: dict[str, Any] = {
        "title": "Routers <b>on</b> demo",
        "metrics": pa.table(metrics),
        "curves": pa.table(curve),
        "profiles": pa.table(
            {"router": ["knn"], "split": ["test"], "model_id": ["large"], "share": [1.0]}
        ),
        "ranking": [{"router": "knn", "value": 0.7, "best_place": 1, "worst_place": 1}],
        **changes,
    }
    return report(
        EvaluationTables(**parts),
        models=["large", "small"],
        simulated=simulated,
        certificate=None,
        lookup=lookup(release(), ["q1", "q2"], CHOICES),
    )


def unpacked(text: str, name: str) -> Any:
    found = re.search(f'id="shard-{name}">([^<]*)</script>', text)
    assert found
    return json.loads(gzip.decompress(base64.b64decode(found.group(1))))


def test_simulated_money_is_called_so() -> None:
    text = page(simulated=True)
    assert 'data-unit="simulated USD per 1,000 questions"' in text
    assert "simulated USD" not in page()


def test_nothing_untrusted_stands_in_the_page_as_markup() -> None:
    text = page()
    # Model output and questions are inside the compressed data only.
    assert "onerror=alert" not in text
    assert "Routers &lt;b&gt;on" in text
    assert unpacked(text, "answers-0")[1]["prompt"] == NASTY


def test_nothing_is_requested_from_elsewhere() -> None:
    text = page()
    assert "default-src 'none'; script-src 'sha256-" in text
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a namespace, never fetched


def test_lookup_shows_missing_as_missing() -> None:
    found = lookup(release(), ["q1", "q2"])
    cell = json.loads(found["answers"][0])[1]["cells"][0]
    # An undecided label of a failed call is neither wrong nor free.
    assert cell["score"] is None
    assert cell["cost"] is None
    assert cell["samples"][0]["status"] == "error"
    assert found["index"]["missing"] == [0, 1]


def test_lookup_cuts_answers_to_their_budget_and_keeps_the_end() -> None:
    tables = release()
    found = lookup(tables, ["q1"], budget=200)
    sample = json.loads(found["answers"][0])[0]["cells"][1]["samples"][0]
    assert found["meta"]["longest"] == 100
    assert sample["cut"] == [8900, 0]
    assert sample["text"] == ["5" * 100]


def test_lookup_shows_answers_on_disk_as_those_in_memory(tmp_path: Path) -> None:
    tables, path = release(), tmp_path / "responses.parquet"
    contract = CONTRACTS["responses"]
    answers = tables["responses"]
    for column in contract.columns:
        if column.name not in answers.column_names:
            answers = answers.append_column(column.name, pa.nulls(len(answers), column.type))
    whole = answers.select(contract.column_names)
    readers: dict[str, Any] = {name: partial(tables.__getitem__, name) for name in tables}
    pq.write_table(whole, path)
    readers["responses"] = partial(pytest.fail, "the whole table was read")
    stored = Tables(readers, {path.stem: path})
    for wanted in (["q1", "q2"], ["q2"]):
        assert lookup(stored, wanted) == lookup(tables, wanted)
    pq.write_table(whole.drop_columns("text"), path)
    with pytest.raises(ContractError, match="lacks column"):
        lookup(stored, ["q1"])


def test_the_same_evaluation_gives_the_same_bytes() -> None:
    assert page() == page()


def test_plots_are_deterministic(tmp_path: Path) -> None:
    curves = pa.table(
        {
            "router": ["knn"] * 3 + ["oracle"] * 3,
            "curve": ["tradeoff"] * 6,
            "point": [0, 1, 2] * 2,
            "measure": pa.array([None] * 6, pa.string()),
            "x": [0.0, 0.5, 1.0] * 2,
            "y": [0.5, 0.65, 0.7, 0.5, 0.8, 0.7],
            "low": pa.array([0.45, 0.6, 0.65, None, None, None]),
            "high": pa.array([0.55, 0.7, 0.75, None, None, None]),
        }
    )
    profiles = pa.table(
        {
            "router": ["knn"] * 2,
            "split": ["test"] * 2,
            "model_id": ["a", "b"],
            "share": [0.4, 0.6],
            "hard_share": [0.0, 1.0],
        }
    )
    ood = pa.table(
        {"router": ["knn"], "group": ["math"], "change": [-0.1], "low": [-0.2], "high": [0.0]}
    )
    level = {"metric": "accuracy", "split": "test", "low": None, "high": None, "reason": None}
    metrics = pa.Table.from_pylist(
        [
            {"router": "knn", "value": 0.7, **level},
            {"router": "small:a", "value": 0.5, **level},
            {"router": "large:b", "value": 0.7, **level},
        ]
    )
    one = EvaluationTables(title="t", metrics=metrics, curves=curves, profiles=profiles, ood=ood)
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files = plot_all(tmp_path / name, one, ["a", "b"], simulated=False)
        written.append({path.name: path.read_bytes() for path in files})
    assert written[0] == written[1]
    assert set(written[0]) == {
        f"{name}.{kind}"
        for name in ("tradeoff", "selection", "selection_hard", "ood")
        for kind in ("png", "svg")
    }
    assert b"HCR" in written[0]["tradeoff.svg"]


@pytest.mark.parametrize("missing", ["responses", "verdicts"])
def test_lookup_works_without_answers_or_verdicts(missing: str) -> None:
    tables = release()
    del tables[missing]
    (text,) = lookup(tables, ["q1"])["answers"]
    assert json.loads(text)[0]["cells"][0]["score"] == 1.0


def test_curves_are_switched_and_a_question_is_found(chromium: Browser, tmp_path: Path) -> None:
    facts = {
        "n_test": 2, "n_train": 3, "n_validation": 1, "n_models": 2, "scheme": "dense", "seed": 0,
        "resamples": 100, "clustered_by": None, "coverage": 1.0, "best_single": "large",
    }  # fmt: skip
    row = {
        "metric": "accuracy", "split": "test", "first": "knn", "second": "mlp", "difference": 0.1,
        "low": 0.05, "high": 0.15, "p": 0.01, "p_adjusted": 0.02, "significant": True,
    }  # fmt: skip
    file = tmp_path / "report.html"
    compared = pa.Table.from_pylist([row])
    file.write_text(page(facts=facts, comparisons=compared), encoding="utf-8")
    tab = chromium.new_page()
    asked: list[str] = []
    wrong: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    tab.goto(file.as_uri())
    # A band, a line and two dots of knn; the same once more with a linear axis.
    drawn = tab.locator("[data-scale-is=log] [data-series='0']:not(.off)")
    assert drawn.count() == 4
    tab.get_by_role("checkbox", name="knn").uncheck()
    assert drawn.count() == 0
    assert tab.locator("[data-scale-is=log] [data-series='1']:not(.off)").count() > 0
    tab.get_by_role("checkbox", name="knn").check()
    assert drawn.count() == 4
    assert "knn (1,000 USD per 1,000 questions)" in tab.locator("[data-cheapest]").inner_text()
    tab.get_by_label("Accuracy wanted").fill("65")
    assert "knn (2,000 USD per 1,000 questions)" in tab.locator("[data-cheapest]").inner_text()
    tab.get_by_label("Words or id").fill("2+2")
    tab.locator("#found button").click()
    tab.locator("#question details.answer").first.wait_for()
    # Answers are open without a click.
    tab.locator("#question summary", has_text="What the routers chose").click()
    shown = tab.locator("#question").inner_text()
    for word in ("The answer is 4", "numeric", "correct", "$0.002", "right", "wrong", "large"):
        assert word in shown
    # The other question is markup; it must be shown, not obeyed.
    tab.get_by_label("Words or id").fill("onerror")
    tab.locator("#found button").click()
    tab.locator("#question [aria-label=Prompt]", has_text="onerror=alert(1)").wait_for()
    assert tab.locator("img").count() == 0
    assert asked == [file.as_uri()]
    assert wrong == []


def test_right_is_what_the_court_says_and_no_threshold_of_the_page() -> None:
    tables = release()
    columns = tables["labels"].to_pydict() | {"score": [0.7, 0.3, None, 1.0]}
    # By a recipe's threshold 0.7 can be wrong, and 0.3 right.
    tables["labels"] = pa.table(columns | {"correct": [False, True, None, True]})
    found = lookup(tables, ["q1"])
    cells = json.loads(found["answers"][0])[0]["cells"]
    assert [(cell["score"], cell["correct"]) for cell in cells] == [(0.7, False), (0.3, True)]
    assert found["index"]["total"] == [1]
    page = Path(__file__).parents[2] / "datacards" / "templates" / "site" / "questions.js"
    assert "score >=" not in page.read_text(encoding="utf-8")


def test_a_model_over_fewer_questions_is_marked() -> None:
    facts = {
        "n_test": 20, "n_train": 3, "n_validation": 1, "n_models": 2, "scheme": "dense", "seed": 0,
        "resamples": 100, "clustered_by": None, "coverage": 0.9, "best_single": "large",
        "missing": ["labels missing of large"],
    }  # fmt: skip
    row = {"split": "test", "metric": "accuracy", "low": 0.6, "high": 0.8, "reason": None}
    rows = [
        {**row, "router": "knn", "value": 0.7, "n": 20},
        {**row, "router": "single:large", "value": 0.8, "n": 17},
    ]
    made = page(facts=facts, metrics=pa.Table.from_pylist(rows))
    assert made.count("(labels on 17 of 20)") == 1
    assert "labels missing of large" in made
