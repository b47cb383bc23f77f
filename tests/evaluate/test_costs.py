"""Costs are the same figures from outcomes and from responses, and unknown is never free."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.release import make
from routeyard.flows.evaluation.released import read_release
from routeyard.flows.summary import figures as summary
from routeyard.pipelines.common.matrix import core_of
from routeyard.pipelines.release.build import write_release
from routeyard.schemas import RESPONSES


def released(tables: Any, root: Path) -> Path:
    recipe = {"name": "made", "version": "1.0.0"}
    return write_release(tables, recipe=recipe, root=root, render_card=lambda *_: "").path


def test_outcomes_and_responses_give_the_same_costs(tmp_path: Any) -> None:
    tables = make(90, 3)
    rows = tables["responses"].to_pylist()
    rows += [{**row, "sample": 1, "cost_usd": 0.5, "latency_s": 0.123456789} for row in rows[:40]]
    rows[2].update(cost_usd=None, cost_source=None)  # one of two answers
    rows[50].update(latency_s=None, prompt_tokens=None)
    tables["responses"] = RESPONSES.from_rows(rows)
    path = released(tables, tmp_path)
    read = read_release(path)
    one, other = core_of(read), core_of(read.without("outcomes"))
    assert one.costs.keys() == other.costs.keys() >= {"usd", "tokens", "latency"}
    for name, values in one.costs.items():
        assert np.array_equal(values, other.costs[name], equal_nan=True), name
    assert np.isnan(one.costs["usd"]).sum() == 1
    assert np.isnan(one.costs["tokens"]).sum() == 1
    # Texts of answers are not opened.
    (path / "data/responses.parquet").write_bytes(b"no Parquet")
    assert core_of(read_release(path)).costs["usd"].shape == one.costs["usd"].shape


def test_a_model_without_costs_is_named_where_figures_need_them(tmp_path: Any) -> None:
    tables = make(90, 3)
    rows = tables["responses"].to_pylist()
    silent = rows[0]["model_id"]
    for row in rows:
        if row["model_id"] == silent:
            row["cost_usd"] = row["cost_source"] = None
            row["prompt_tokens"] = row["completion_tokens"] = row["latency_s"] = None
    tables["responses"] = RESPONSES.from_rows(rows)
    path = released(tables, tmp_path)
    core = core_of(read_release(path))
    assert core.lacking["usd"] == (silent,)
    assert f"usd: not of {silent}" in core.no_cost
    assert summary(path)["cost_unknown_of"] == [silent]
    known = [row["cost_usd"] for row in summary(path)["per_model"] if row["model"] != silent]
    assert summary(path)["cost_known_usd"] == sum(known) > 0
    assert summary(path)["cost_usd"] is None
