"""Test questions that stand in train are counted, and every figure is given without them too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.certificate import leaks
from routeyard.pipelines.evaluate.run import evaluate
from routeyard.pipelines.routers import ROUTERS

TOLD = "test questions are also in train"


def planted(core: Core, *, duplicates_known: bool) -> tuple[Core, np.ndarray, np.ndarray]:
    """(release, rows with the words of a train question, rows in a group with one)."""
    train, test = core.rows("dense", "train"), core.rows("dense", "test")
    prompts = [f"Question {i}: {i} + 1?" for i in range(core.n_queries)]
    groups = np.arange(core.n_queries)
    verbatim, near = test[:7], test[5:11]
    for k, row in enumerate(verbatim):
        prompts[row] = prompts[train[k]].upper().replace(" ", "  ")
    groups[near] = groups[train[20]]
    made = replace(core, prompts=tuple(prompts), groups=groups, duplicates_known=duplicates_known)
    return made, verbatim, near


@pytest.mark.parametrize("duplicates_known", [False, True])
def test_both_figures_are_given(core: Core, duplicates_known: bool) -> None:
    made, verbatim, near = planted(core, duplicates_known=duplicates_known)
    out = set(verbatim) | (set(near) if duplicates_known else set())
    assert leaks(made, "dense") == {
        "test": len(core.rows("dense", "test")),
        "verbatim": 7,
        "near_duplicates": 6 if duplicates_known else None,
    }
    made_by = {"knn": lambda seed: ROUTERS.get("knn")()}
    done = evaluate(made, made_by, resamples=30, points=5)
    found = {(r["router"], r["metric"]): r for r in done.metrics.to_pylist()}
    chosen = {r["query_id"]: r["score"] for r in done.choices.to_pylist() if r["router"] == "knn"}
    left = [core.query_ids[row] for row in core.rows("dense", "test") if row not in out]
    row = found["knn", "accuracy_without_leaks"]
    assert row["value"] == pytest.approx(np.mean([chosen[name] for name in left]))
    assert (row["n"], found["knn", "accuracy"]["n"]) == (len(left), len(chosen))
    assert found["knn", "accuracy"]["value"] == pytest.approx(np.mean(list(chosen.values())))
    assert found["best single", "accuracy_without_leaks"]["n"] == len(left)
    assert {"oracle", "task oracle"} <= {r for r, m in found if m == "accuracy_without_leaks"}
    assert done.facts["leaked"] == len(out)
    # The ranking is by the clean figure; by all rows where all presets are of the authors.
    assert (done.facts["headline"], done.ranking[0]["value"]) == (row["metric"], row["value"])
    compared = {r["metric"]: r for r in done.comparisons.to_pylist()}
    single = found["best single", "accuracy_without_leaks"]["value"]
    gain = compared["accuracy_without_leaks"]
    assert gain["difference"] == pytest.approx(single - row["value"])
    theirs = {"knn": lambda seed: ROUTERS.get("knn")(preset="code")}
    published = evaluate(made, theirs, resamples=30, points=5)
    assert published.facts["headline"] == "accuracy"
    plain = {r["metric"]: r["value"] for r in published.metrics.to_pylist() if r["router"] == "knn"}
    assert published.ranking[0]["value"] == plain["accuracy"]
    (words,) = (one for one in done.facts["missing"] if TOLD in one)
    assert words.startswith(f"{len(out)} of {len(chosen)} ")


def test_where_nothing_leaks_nothing_is_said(core: Core) -> None:
    done = evaluate(core, {"knn": lambda seed: ROUTERS.get("knn")()}, resamples=30, points=5)
    assert done.facts["leaked"] == 0
    assert "accuracy_without_leaks" not in done.metrics.column("metric").to_pylist()
    assert not any(TOLD in words for words in done.facts["missing"])
