from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datacards.report import report
from datacards.report_lookup import lookup
from datacards.report_plots import plot_all

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


def page(**changes: Any) -> str:
    curve = {
        "router": ["knn", "knn", "oracle", "oracle"],
        "curve": ["deferral"] * 4,
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
        "metrics": pa.table(metrics),
        "curves": pa.table(curve),
        "comparisons": pa.table({"metric": ["accuracy"]}),
        "profiles": pa.table({"router": ["knn"], "model_id": ["large"], "share": [1.0]}),
        "ood": None,
        "ranking": [{"router": "knn", "value": 0.7, "best_place": 1, "worst_place": 1}],
        "facts": {"n_test": 2},
        "certificate": None,
        "lookup": lookup(release(), ["q1", "q2"]),
        **changes,
    }
    return report("Routers <b>on</b> demo", **parts)


def unpacked(text: str) -> dict[str, Any]:
    found = re.search(r'id="data">([^<]*)</script>', text)
    assert found
    content: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found.group(1))))
    return content


def test_nothing_untrusted_stands_in_the_page_as_markup() -> None:
    text = page()
    # Model output and questions are inside the compressed data only.
    assert "onerror=alert" not in text
    assert "Routers &lt;b&gt;on" in text
    assert unpacked(text)["lookup"]["queries"][1]["text"] == NASTY


def test_nothing_is_requested_from_elsewhere() -> None:
    text = page()
    assert "default-src 'none'" in text
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a namespace, never fetched


def test_lookup_shows_missing_as_missing() -> None:
    cells = lookup(release(), ["q1", "q2"])["queries"][1]["cells"]
    # An undecided label of a failed call is neither wrong nor free.
    assert cells[0]["score"] is None
    assert cells[0]["cost"] is None
    assert cells[0]["status"] == "error"


def test_lookup_cuts_answers_to_their_budget_and_keeps_the_end() -> None:
    tables = release()
    found = lookup(tables, ["q1"], budget=200)
    cell = found["queries"][0]["cells"][1]
    assert found["excerpt"] == 100
    assert cell["cut"]
    assert len(cell["text"]) == 100


def test_the_same_evaluation_gives_the_same_bytes() -> None:
    assert page() == page()


def test_plots_are_deterministic(tmp_path: Path) -> None:
    curves = pa.table(
        {
            "router": ["knn"] * 3 + ["oracle"] * 3,
            "curve": ["tradeoff"] * 6,
            "measure": pa.array([None] * 6, pa.string()),
            "x": [0.0, 0.5, 1.0] * 2,
            "y": [0.5, 0.65, 0.7, 0.5, 0.8, 0.7],
            "low": pa.array([0.45, 0.6, 0.65, None, None, None]),
            "high": pa.array([0.55, 0.7, 0.75, None, None, None]),
        }
    )
    profiles = pa.table({"router": ["knn", "knn"], "model_id": ["a", "b"], "share": [0.4, 0.6]})
    ood = pa.table(
        {"router": ["knn"], "group": ["math"], "change": [-0.1], "low": [-0.2], "high": [0.0]}
    )
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files = plot_all(tmp_path / name, curves, profiles, ood, {"measures": []}, (0.5, 0.7))
        written.append({path.name: path.read_bytes() for path in files})
    assert written[0] == written[1]
    assert set(written[0]) == {
        f"{name}.{kind}" for name in ("tradeoff", "selection", "ood") for kind in ("png", "svg")
    }


@pytest.mark.parametrize("missing", ["responses", "verdicts"])
def test_lookup_works_without_answers_or_verdicts(missing: str) -> None:
    tables = release()
    del tables[missing]
    assert lookup(tables, ["q1"])["queries"][0]["cells"][0]["score"] == 1.0
