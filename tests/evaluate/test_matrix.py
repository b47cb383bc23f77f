"""A core read from outcomes is that of labels and responses, and holds no long table."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.flows.evaluation.released import read_release
from routeyard.pipelines.common.matrix import core_of, from_tables
from routeyard.pipelines.release.build import write_release
from routeyard.schemas import LABELS, MODELS, QUERIES, RESPONSES


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven questions, three models: graded and missing labels, unknown costs, two samples."""
    ids, rng = [f"q{i:020x}" for i in range(7)], np.random.default_rng(0)
    same = {"source": "s", "task": "t", "domain": "math", "question": "?", "prompt": "?"}
    same |= {"scorer": "numeric", "metadata": "{}"}
    asked = [
        {"query_id": i, "source_id": i, "choices": [], "references": ["1"], **same} for i in ids
    ]
    labels, responses = [], []
    for number, query in enumerate(ids):
        for model in ("a", "b", "c"):
            if (number, model) == (3, "b"):
                continue
            score = None if (number, model) == (2, "a") else float(rng.choice([0, 0.5, 1]))
            labels.append(
                {
                    "query_id": query, "model_id": model, "score": score,
                    "correct": None if score is None else score >= 0.5,
                    "decided_by": None if score is None else ["numeric", "unreadable"][number % 2],
                    "contested": number == 4, "n_samples": 2,
                }
            )  # fmt: skip
            responses += [
                {
                    "query_id": query, "model_id": model, "sample": sample, "text": "",
                    "status": "ok", "attempts": 1, "prompt_tokens": 7 + number,
                    "completion_tokens": None if (number, model) == (5, "c") else 3 + sample,
                    "cost_usd": float(rng.random()), "latency_s": float(rng.random()),
                    "cost_source": "price_table",
                }
                for sample in range(2)
            ]  # fmt: skip
    tables = {
        "queries": QUERIES.from_rows(asked),
        "models": MODELS.from_rows(
            [{"model_id": m, "kind": "real", "simulated": True, "params_b": 1.0} for m in "abc"]
        ),
        "labels": LABELS.from_rows(labels),
        "responses": RESPONSES.from_rows(responses),
    }
    recipe = {"name": "small", "version": "1.0.0"}
    released = write_release(
        tables, recipe=recipe, root=tmp_path_factory.mktemp("r"), render_card=lambda *_: ""
    )
    return released.path


def test_outcomes_say_what_labels_and_responses_say(small: Path) -> None:
    tables = read_release(small)
    ours = core_of(tables)
    names = ("queries", "models", "labels", "responses")
    plain = from_tables(**{name: tables[name] for name in names})
    for name in ("labels", "correct"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(plain, name))
    assert ours.costs.keys() == plain.costs.keys() >= {"usd", "tokens", "latency", "params"}
    for name, costs in plain.costs.items():
        np.testing.assert_allclose(ours.costs[name], costs, rtol=1e-6)
    assert (ours.contested, ours.unreadable) == (plain.contested, plain.unreadable)
    assert ours.contested
    assert ours.unreadable


def test_a_table_in_memory_reads_like_the_file(small: Path) -> None:
    tables = read_release(small)
    given = {name: tables[name] for name in ("queries", "models", "outcomes")}
    in_memory, on_disk = core_of(given), core_of(tables)
    np.testing.assert_array_equal(in_memory.labels, on_disk.labels)
    np.testing.assert_array_equal(in_memory.costs["usd"], on_disk.costs["usd"])


def test_neither_labels_nor_responses_are_opened(small: Path, tmp_path: Path) -> None:
    small = shutil.copytree(small, tmp_path / "small")
    for name in ("labels", "responses"):
        (small / "data" / f"{name}.parquet").write_bytes(b"no Parquet")
    core = core_of(read_release(small))
    assert core.labels.shape == (7, 3)
    assert np.isnan(core.labels).sum() == 2


def test_plain_labels_stand_in_memory_once(small: Path) -> None:
    outcomes = pq.read_table(small / "data/outcomes.parquet")
    right = pa.array(
        [score is not None and score >= 0.5 for score in outcomes["score"].to_pylist()]
    )
    for name, values in (("score", right.cast(pa.int8()).cast(pa.float64())), ("correct", right)):
        at = outcomes.schema.get_field_index(name)
        outcomes = outcomes.set_column(at, outcomes.schema.field(name), values)
    tables = read_release(small)
    core = core_of({"queries": tables["queries"], "models": tables["models"], "outcomes": outcomes})
    half = core.take(np.arange(3)).with_models(("c", "a"))
    for one in (core, half):
        assert one.correct is one.labels
    at = [core.model_ids.index(name) for name in ("c", "a")]
    np.testing.assert_array_equal(half.decided, core.decided[:3][:, at])
