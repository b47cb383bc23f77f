"""Columns of a stranger's table: costs are read in any spelling, and what is not read is named."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import routeyard

MODELS = ("gpt-4o", "claude-3")


def wide(
    path: Path, cost: str, score: str = "{m}_correct", models: tuple[str, ...] = MODELS
) -> Path:
    """A row per question, two columns per model; the mean cost is 0.015 USD in `cost`'s unit."""
    unit = 100 if "cents" in cost or "¢" in cost else 1
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["question", *(score.format(m=m) for m in models),
                         *(cost.format(m=m) for m in models)])  # fmt: skip
        for k in range(30):
            spent = [unit * (0.01 + 0.01 * ((k * 7 + n) % 11) / 10) for n in range(len(models))]
            writer.writerow([f"What is {k}?", *((k + n) % 2 for n in range(len(models))), *spent])
    return path


@pytest.mark.parametrize(
    ("cost", "score"),
    [
        ("{m}_usd", "{m}_correct"),
        ("cost ($) {m}", "correct {m}"),
        ("usd_{m}", "{m}_correct"),
        ("cost_{m}_usd", "{m}_correct"),
        ("{m} ($)", "{m}_correct"),
        ("$ {m}", "{m} score"),
        ("cents {m}", "{m} acc"),
        ("cost (¢) {m}", "score_{m}"),
        ("Cost {m} (USD)", "{m}_correct"),
        ("{m}_usd", "{m}"),
        ("{m}_fee", "{m}_correct"),
        ("{m} Kosten", "{m} richtig"),
        ("{m} coût", "{m}"),
        ("{m} (cost, cents)", "{m} (correct)"),
    ],
)
def test_costs_named_with_the_model_in_any_order_are_read(
    cost: str, score: str, tmp_path: Path
) -> None:
    for models in (MODELS, ("gpt-3.5-turbo", "gpt-3.5-turbo-16k")):
        found = routeyard.audit(wide(tmp_path / "w.csv", cost, score, models))
        assert found.looked_at["arms"] == 2  # no column of costs is a third model
        assert "zero_cost" not in found.not_checked  # its costs were looked at
        spent = [row for one in found.findings if one.kind == "odd_cost" for row in one.rows]
        assert not spent
        assert not any("not read" in note for note in found.notes)


@pytest.mark.parametrize("score", ["{m}", "{m}_correct", "{m} richtig"])
@pytest.mark.parametrize("figure", ["{m} Aufwand", "{m} Kosten je Frage"])
def test_a_further_figure_of_each_model_is_no_model(
    score: str, figure: str, tmp_path: Path
) -> None:
    found = routeyard.audit(wide(tmp_path / "w.csv", figure, score))
    assert found.looked_at["arms"] == 2
    assert sum(figure.format(m="gpt-4o") in note for note in found.notes) == 1


def test_costs_are_read_in_their_unit_and_reach_the_recipe(tmp_path: Path, call: Any) -> None:
    path = wide(tmp_path / "w.csv", "cost (¢) {m}", models=("gpt-3.5-turbo", "llama-3.1-8b"))
    assert call("init", tmp_path / "w.yaml", "--from", path).returncode == 0
    spent = pq.read_table(tmp_path / "w-data" / "responses.parquet").column("cost_usd").to_pylist()
    assert sum(spent) / len(spent) == pytest.approx(0.015, rel=0.05)
    assert "cost_usd: cost_usd" in (tmp_path / "w.yaml").read_text()


@pytest.mark.parametrize("cost", ["cost (€) {m}", "{m} cost per 1k tokens", "spent on {m}"])
def test_costs_that_are_not_understood_are_named_and_not_denied(
    cost: str, tmp_path: Path, call: Any
) -> None:
    path = wide(tmp_path / "w.csv", cost)
    found = routeyard.audit(path)
    named = [note for note in found.notes if cost.format(m="gpt-4o") in note]
    assert len(named) == 1
    made = call("init", tmp_path / "w.yaml", "--from", path, "--json")
    written = " ".join((tmp_path / "w.yaml").read_text().split())
    assert "does not state prompt_tokens, completion_tokens, cost_usd" not in written, made.stdout
    assert cost.format(m="gpt-4o") in written


def test_every_column_that_is_not_read_is_named_once(tmp_path: Path, call: Any) -> None:
    rows = [
        {"question_id": f"q{k}", "model": m, "response": str(k), "correct": k % 2, "mood": "fine",
         "tokens_of_thought": 5}
        for k in range(30) for m in MODELS
    ]  # fmt: skip
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    told = call("audit", tmp_path / "a.jsonl").stdout
    assert (told.count("'mood'"), told.count("'tokens_of_thought'")) == (1, 1)
    data = json.loads(call("audit", tmp_path / "a.jsonl", "--json").stdout)
    assert any("'mood'" in note for note in data["notes"])
    made = json.loads(
        call("init", tmp_path / "a.yaml", "--from", tmp_path / "a.jsonl", "--json").stdout
    )
    assert any("'mood'" in one for one in made["unread"])


def test_recorded_answers_and_questions_of_a_recipe_name_what_nobody_reads(
    tmp_path: Path, call: Any
) -> None:
    asked = [
        {"id": f"q{k}", "question": f"What is {k}?", "ref": str(k), "hint": "h"} for k in (1, 2)
    ]
    said = [{"id": one["id"], "model": "m", "out": one["ref"], "usd_spent": 0.5} for one in asked]
    for name, rows in (("q", asked), ("r", said)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    fields = {"id": "id", "question": "question", "references": "{{ ref }}"}
    recipe = {
        "name": "r", "version": "1.0.0",
        "sources": [{"name": "s", "path": "q.jsonl", "scorer": "numeric", "fields": fields}],
        "pool": {"models": [{"model_id": "m"}]},
        "collect": {"provider": "recorded", "recorded": [
            {"path": "r.jsonl", "fields": {"query": "id", "model": "model", "text": "out"}}]},
        "release": {"waivers": [{"gate": "metering", "reason": "Recorded without usage."}]},
    }  # fmt: skip
    (tmp_path / "r.yaml").write_text(json.dumps(recipe))
    told = call("recipe", "check", tmp_path / "r.yaml").stdout
    assert "columns that were not read: 'hint'" in told
    assert "columns that were not read: 'usd_spent'" in told
    assert "'ref'" not in told  # an expression reads it


@pytest.mark.extensions
def test_keys_of_a_log_that_nobody_reads_are_named(tmp_path: Path, call: Any) -> None:
    calls = [
        {"id": f"c{k}", "call_type": "acompletion", "startTime": f"2026-11-01T00:00:{k:02}Z",
         "endTime": f"2026-11-01T00:00:{k + 1:02}Z", "model": "m", "session_id": f"s{k % 3}",
         "spend": 0.01, "prompt_tokens": 9, "completion_tokens": 3, "surcharge_usd": 0.5}
        for k in range(9)
    ]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in calls))
    pool = {"models": [{"model_id": "m", "price_in": 1.0, "price_out": 2.0}]}
    (tmp_path / "pool.yaml").write_text(json.dumps(pool))
    told = call("replay", tmp_path / "log.jsonl", "--pool", tmp_path / "pool.yaml", "--json")
    assert "surcharge_usd" in told.stdout, told.stderr


def metrics(release: Path, *files: Path) -> tuple[dict[tuple[str, str], float], Any]:
    done = routeyard.evaluate(
        release,
        [],
        predictions=list(files),
        resamples=100,
        pair_routers=False,
        cache=None,
        all=True,
    )
    return {(one["router"], one["metric"]): one["value"] for one in done.metrics.to_pylist()}, done


def test_what_a_router_itself_costs_is_counted_per_decision(
    demo_release: Path, tmp_path: Path
) -> None:
    with routeyard.open_release(demo_release) as release:
        ids = release.arrow("queries").column("query_id").to_pylist()
        model = release.arrow("models").column("model_id").to_pylist()[0]
    rows = pa.table({"query_id": ids, "model_id": [model] * len(ids)})
    priced = rows.append_column("decision_cost_usd", pa.array([0.002] * len(ids)))
    priced = priced.append_column("mood", pa.array(["fine"] * len(ids)))
    pq.write_table(rows, tmp_path / "free.parquet")
    pq.write_table(priced, tmp_path / "paid.parquet")
    found, done = metrics(demo_release, tmp_path / "free.parquet", tmp_path / "paid.parquet")
    more = found["paid", "mean_cost[usd]"] - found["free", "mean_cost[usd]"]
    assert more == pytest.approx(0.002)
    assert found["paid", "decision_cost"] == pytest.approx(2.0)  # USD per 1,000 decisions
    assert found["paid", "arena_score"] < found["free", "arena_score"]
    assert found["paid", "accuracy"] == found["free", "accuracy"]
    assert done.facts["not_read"] == {"paid": ["mood"]}
    # A cost that is missing is not free.
    gaps = pa.array([None] * len(ids), pa.float64())
    pq.write_table(priced.set_column(2, "decision_cost_usd", gaps), tmp_path / "gaps.parquet")
    with pytest.raises(Exception, match="decision_cost_usd"):
        metrics(demo_release, tmp_path / "gaps.parquet")


def test_audit_router_names_the_columns_that_nobody_reads(
    call: Any, demo_release: Path, tmp_path: Path
) -> None:
    with routeyard.open_release(demo_release) as release:
        ids = release.arrow("queries").column("query_id").to_pylist()
        model = release.arrow("models").column("model_id").to_pylist()[0]
    rows = pa.table({"query_id": ids, "model_id": [model] * len(ids)})
    for name in ("decision_cost_usd", "routing_cost_usd"):
        rows = rows.append_column(name, pa.array([0.5] * len(ids)))
    pq.write_table(rows, tmp_path / "mine.parquet")
    said = call("audit", tmp_path / "mine.parquet", "--release", demo_release).stdout
    assert "'routing_cost_usd'" in said
    assert "'decision_cost_usd'" not in said
