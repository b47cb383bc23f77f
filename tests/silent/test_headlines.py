"""The first sentence of a page, and the encoder that its figures rest on."""

from __future__ import annotations

import csv
import html
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import routeyard


def told_by(results: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((results / "evaluation.json").read_text())
    return found


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


def first_sentence(page: Path) -> str:
    return html.unescape(re.findall(r'<h1 class="answer-line">(.*?)</h1>', page.read_text())[0])


@pytest.fixture(scope="module")
def tied(call: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two models are equally good and equally dear; no question tells where."""
    folder = tmp_path_factory.mktemp("tied")
    with (folder / "answers.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["question_id", "question", "model", "answer", "score", "cost_usd"])
        for n in range(60):
            for model, right in (
                ("zeta", n % 2 == 0),
                ("alpha", n % 2 == 1),
                ("weak", n % 6 == 0),
            ):
                words = f"Is heap {n * 37 % 61} of field {n * 7 % 11} larger than that before?"
                rows.writerow([f"q{n}", words, model, f"I say {n}", int(right), 0.002])
    done = call("try", folder / "answers.csv", "--workspace", folder / "y", "--no-open", "--json")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    results = next(Path(told["recipe"]).parent.glob("results/*/*/reference-routers"))
    return {**told, "results": results, "folder": folder}


def test_the_chosen_router_is_said_to_be_chosen_and_a_tie_names_all(tied: dict[str, Any]) -> None:
    words = first_sentence(Path(tied["page"]))
    assert "on the validation questions" in words
    assert "best-generalist" not in words
    validation = told_by(tied["results"])["facts"]["validation"]
    tried = {k: v for k, v in validation.items() if k not in ("random", "best-generalist")}
    best = [name for name, value in tried.items() if value == max(tried.values())]
    assert all(name in words for name in best)
    assert not any(name in words.split(";")[0] for name in set(tried) - set(best))


def test_two_models_that_are_equally_good_are_both_the_best(tied: dict[str, Any]) -> None:
    card = (Path(tied["release"]) / "README.md").read_text()
    assert "| best single models | alpha and zeta (50.0 %) |" in card


def test_an_own_routers_report_speaks_of_it(call: Any, tied: dict[str, Any]) -> None:
    asked = pq.read_table(tied["results"] / "choices.parquet").column("query_id").to_pylist()
    lines = [f"{name},alpha" for name in sorted(set(asked))]
    mine = tied["folder"] / "mine.csv"
    mine.write_text("\n".join(["query_id,model_id", *lines]) + "\n")
    out = tied["folder"] / "mine"
    done = call(
        "evaluate", tied["release"], "--out", out, "--predictions", mine, "--no-certificate",
        "--cache", tied["folder"] / "cache",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert first_sentence(out / "report.html").startswith("Your router mine answers ")
    assert told_by(out)["facts"]["own"] == ["mine"]
    # The release has no vectors and none were asked for: the page says so.
    assert told_by(out)["facts"]["encoder"] is None
    assert "encoder: none" in text_of(out / "report.html")


def test_pages_give_one_price_of_the_cheapest_router(tied: dict[str, Any]) -> None:
    page = Path(tied["page"])
    prices = [
        re.findall(r"Cheapest router: .*? questions\)\.", text_of(page.with_name(name)))
        for name in ("index.html", "routers.html")
    ]
    assert prices[0]
    assert prices[0] == prices[1]


def test_a_page_names_the_encoder_and_a_named_one_is_used(tied: dict[str, Any]) -> None:
    assert told_by(tied["results"])["facts"]["encoder"] == "tfidf"
    for name in ("index.html", "routers.html"):
        assert "tfidf" in text_of(Path(tied["page"]).with_name(name))


def test_page_evaluation_and_certificate_of_a_release_with_vectors_read_the_same(
    demo_yard: Path, demo_release: Path, tmp_path: Path
) -> None:
    stored = pq.read_table(demo_release / "data" / "embeddings.parquet", columns=["encoder"])
    own = set(stored.column("encoder").to_pylist())
    manifest = json.loads((demo_release / "manifest.json").read_text())
    assert {manifest["figures"]["certify"]["certificate"]["encoder"]} == own
    facts = told_by(demo_yard / "results" / "demo" / "1.0.0" / "reference-routers")["facts"]
    assert {facts["encoder"]} == own
    name = facts["encoder"].removesuffix(":float32")
    page = demo_yard / "pages" / "demo" / "1.0.0"
    assert all(name in text_of(page / file) for file in ("index.html", "routers.html"))
    assert name in (demo_release / "README.md").read_text().split("## Routability")[1]
    less = {"resamples": 50, "points": 3, "cache": tmp_path}
    done = routeyard.evaluate(demo_release, ["knn"], **less)
    knn = [r for r in done.metrics.to_pylist() if (r["router"], r["metric"]) == ("knn", "accuracy")]
    assert done.facts["encoder"] in own
    figures = pq.read_table(demo_yard / "results/demo/1.0.0/reference-routers/metrics.parquet")
    assert knn[0]["value"] in [
        r["value"] for r in figures.to_pylist() if (r["router"], r["metric"]) == ("knn", "accuracy")
    ]
    # One that is named is used, though the release has another.
    assert (
        routeyard.evaluate(demo_release, ["knn"], encoder="tfidf", **less).facts["encoder"]
        == "tfidf"
    )
