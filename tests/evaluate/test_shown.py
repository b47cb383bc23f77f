"""Signals, hidden states and descriptors: from tables to the routers that read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.flows.evaluation.released import with_beside
from routeyard.flows.evaluation.route import route
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Core, descriptors_of, signals_of, states_of
from routeyard.pipelines.evaluate import fit as inputs
from routeyard.pipelines.evaluate.held_out import newcomers
from routeyard.pipelines.evaluate.signals import text_footprints
from routeyard.pipelines.routers import ROUTERS
from routeyard.schemas import DESCRIPTORS, ENTROPIES, HIDDEN_STATES, SIGNALS
from tests.evaluate.cores import core_of

IDS = pa.array(["q0", "q1", "q2"], pa.string())
MODELS = pa.array(["a", "b"], pa.string())
PROMPTS = tuple(f"What is {k}?" for k in range(120))


def signals(rows: list[tuple[str, str, int, float | None]]) -> pa.Table:
    return SIGNALS.from_rows(
        {
            "query_id": q, "model_id": m, "sample": s, "n_tokens": 3, "margin": margin,
        }
        for q, m, s, margin in rows
    )  # fmt: skip


def states(rows: list[tuple[str, str, int, list[float]]]) -> pa.Table:
    return HIDDEN_STATES.from_rows(
        {"query_id": q, "model_id": m, "layer": layer, "vector": v} for q, m, layer, v in rows
    )


def test_signals_are_means_over_samples_and_missing_is_missing() -> None:
    table = signals([("q0", "a", 0, 0.2), ("q0", "a", 1, 0.4), ("q1", "a", 0, None),
                     ("gone", "a", 0, 0.9), ("q2", "b", 0, 1.0)])  # fmt: skip
    found = signals_of(table, None, IDS, MODELS)
    assert list(found) == ["margin"]
    want = [[0.3, np.nan], [np.nan, np.nan], [np.nan, 1.0]]
    assert np.allclose(found["margin"], want, equal_nan=True)


def test_entropies_stand_apart_by_estimator_and_one_backend_counts() -> None:
    rows = [
        {
            "query_id": "q0", "model_id": "a", "estimator": estimator, "backend": backend,
            "n_samples": 4, "n_clusters": 2, "semantic_entropy": value,
        }
        for estimator, backend, value in (
            ("discrete", "scorer", 0.5), ("discrete", "entails", 0.7), ("rao_blackwell", "x", 0.1),
        )
    ]  # fmt: skip
    found = signals_of(None, ENTROPIES.from_rows(rows), IDS, MODELS)
    assert found["semantic_entropy[discrete]"][0, 0] == 0.7
    assert found["semantic_entropy[rao_blackwell]"][0, 0] == 0.1
    assert np.isnan(found["semantic_entropy[discrete]"][1:]).all()


def test_hidden_states_stand_by_layer_and_half_read_questions_are_refused() -> None:
    rows = [("q2", "m", 1, [5.0, 6.0]), ("q2", "m", 0, [3.0, 4.0]), ("q0", "m", 0, [1.0, 2.0])]
    with pytest.raises(BadInput, match="1 questions lack some layers of 'm', such as q0"):
        states_of(states(rows), IDS)
    found, name = states_of(states([*rows, ("q0", "m", 1, [7.0, 8.0])]), IDS)
    assert name == "m"
    assert found is not None
    assert found[2].tolist() == [[3, 4], [5, 6]]
    assert np.isnan(found[1]).all()
    with pytest.raises(BadInput, match="differ in length"):
        states_of(states([("q0", "m", 0, [1.0]), ("q1", "m", 0, [1.0, 2.0])]), IDS)


def describe(rows: dict[str, list[float]], kind: str = "text_footprint") -> pa.Table:
    return DESCRIPTORS.from_rows(
        {"model_id": m, "kind": kind, "vector": v, "metadata": "{}"} for m, v in rows.items()
    )


def test_a_model_without_a_descriptor_has_none() -> None:
    found = descriptors_of(describe({"b": [1.0, 2.0], "gone": [9.0, 9.0]}), MODELS)
    assert np.allclose(found["text_footprint"], [[np.nan] * 2, [1, 2]], equal_nan=True)


def core(n: int = 120, m: int = 5, seed: int = 0) -> Core:
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, m, n)
    vectors = np.eye(8, dtype=np.float32)[kind] + 0.05 * rng.normal(size=(n, 8))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    labels = (rng.random((n, m)) < np.where(kind[:, None] == np.arange(m), 0.95, 0.2)).astype(float)
    split = np.array(["train", "train", "train", "validation", "test"] * (n // 5))
    return core_of(
        labels,
        ["t"] * n,
        model_ids=tuple("abcde"[:m]),
        costs={"usd": np.tile(np.linspace(1, 1.1, m), (n, 1))},
        splits={"dense": split},
        embeddings=vectors,
        signals={"margin": rng.random((n, m))},
        hidden=rng.normal(size=(n, 3, 4)).astype(np.float32),
        hidden_of="a",
        descriptors={"text_footprint": np.eye(m, 8, dtype=np.float32)},
    )


def test_every_cut_of_the_core_cuts_what_models_show_as_well() -> None:
    whole = core()
    rows = np.array([7, 2])
    part = whole.with_models(("d", "b")).take(rows)
    assert np.array_equal(part.signals["margin"], whole.signals["margin"][rows][:, [3, 1]])
    assert np.array_equal(part.hidden, whole.hidden[rows])
    assert np.array_equal(
        part.descriptors["text_footprint"], whole.descriptors["text_footprint"][[3, 1]]
    )
    examples = whole.examples().take(rows)
    assert np.array_equal(examples.queries.signal("margin"), whole.signals["margin"][rows])
    assert np.array_equal(examples.queries.states(), whole.hidden[rows])
    assert examples.descriptors.keys() == {"text_footprint"}
    both = examples.queries.followed_by(whole.take(np.array([0])).queries())
    assert both.query_ids == ("q007", "q002", "q000")
    assert np.array_equal(both.states(), whole.hidden[[7, 2, 0]])
    assert np.array_equal(both.signal("margin"), whole.signals["margin"][[7, 2, 0]])
    bare = replace(whole.queries(), hidden=None, signals={})
    assert whole.queries().followed_by(bare).hidden is None


def test_a_bench_carries_it_to_every_cell(tmp_path: Path) -> None:
    whole = replace(core(), prompts=PROMPTS, questions=PROMPTS[::-1])
    written = inputs.write(tmp_path, whole, "dense", {})
    found = inputs.read(tmp_path, written.data, "", written.texts)
    assert (found.prompts, found.questions) == (PROMPTS, PROMPTS[::-1])
    # Equal labels, costs, tasks and splits are equal data, whatever was asked.
    reworded = inputs.write(tmp_path, replace(whole, prompts=PROMPTS[::-1]), "dense", {})
    assert (reworded.data, reworded.texts == written.texts) == (written.data, False)
    assert inputs.read(tmp_path, written.data, "").prompts == ()
    assert np.array_equal(found.hidden, whole.hidden)
    assert found.hidden_of == "a"
    assert np.array_equal(found.signals["margin"], whole.signals["margin"])
    assert np.array_equal(found.descriptors["text_footprint"], whole.descriptors["text_footprint"])


def test_files_beside_a_release_are_known_by_their_columns(tmp_path: Path) -> None:
    one, other = describe({"a": [1.0]}), describe({"b": [2.0]})
    pq.write_table(one, tmp_path / "anything.parquet")
    folder = tmp_path / "states"
    folder.mkdir()
    pq.write_table(states([("q0", "m", 0, [1.0])]), folder / "part-0.parquet")
    pq.write_table(states([("q1", "m", 0, [2.0])]), folder / "part-1.parquet")
    found = with_beside({"descriptors": other}, [tmp_path / "anything.parquet", folder])
    assert sorted(found["descriptors"].column("model_id").to_pylist()) == ["a", "b"]
    assert found["hidden_states"].num_rows == 2
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    with pytest.raises(BadInput, match="those of no table"):
        with_beside({}, [tmp_path / "other.parquet"])
    with pytest.raises(BadInput, match="no Parquet file"):
        with_beside({}, [tmp_path / "nowhere"])


@pytest.mark.parametrize("name", ["margin", "probe-dirichlet"])
def test_a_lone_question_cannot_be_routed_by_what_it_does_not_have(
    name: str, tmp_path: Path
) -> None:
    from routeyard.pipelines.routers import saved

    router = ROUTERS.get(name)()
    router.fit(core().training("dense"))
    saved.save(
        router, tmp_path, setting={}, model_ids=tuple("abcde"), encoder="none", encoder_hash=""
    )
    with pytest.raises(BadInput, match=f"{name}.* a question that comes alone has none"):
        route(tmp_path, "Why?")


def test_unseen_models_are_found_by_descriptor_alone() -> None:
    whole = core(600)

    def make() -> object:
        return ROUTERS.get("contrastive")(seed=1)

    new, made = newcomers(whole, "dense", ("b", "d"), {"contrastive": make}, labelled=False)
    assert new.model_ids == ("b", "d")
    router = made["contrastive"].fit(new.training("dense"))
    test = new.take(new.rows("dense", "test"))
    scores = router.scores(test.queries())
    assert scores.shape == (test.n_queries, 2)
    # A router that reads signals finds each model's own among those that are asked about.
    _, signal = newcomers(whole, "dense", ("b", "d"), {"margin": ROUTERS.get("margin")})
    assert np.array_equal(signal["margin"].scores(test.queries()), test.signals["margin"])
    with pytest.raises(BadInput, match="0 of 5 models are unseen"):
        newcomers(whole, "dense", (), {})


def test_a_text_footprint_counts_the_frequent_words_of_answers_to_shared_probes() -> None:
    texts = {
        "a": ["The answer is 4.", "Let me think", None],
        "b": ["the the the", "answer", "never asked of a"],
    }
    table = text_footprints(texts, ["p0", "p1", "p2"], k=3)
    rows = {row["model_id"]: row for row in table.to_pylist()}
    # Counted by hand over p0 and p1: the 1 + 3, answer 1 + 1, then the first of the ones.
    assert '"tokens": ["the", "answer", "."]' in rows["a"]["metadata"]
    assert '"dropped_probes": ["p2"]' in rows["a"]["metadata"]
    assert rows["a"]["vector"] == pytest.approx([3**-0.5] * 3, abs=1e-6)
    assert rows["b"]["vector"] == pytest.approx([3 / 10**0.5, 1 / 10**0.5, 0.0], abs=1e-6)
    with pytest.raises(BadInput, match="no probe is answered by every model"):
        text_footprints({"a": [None], "b": ["x"]}, ["p"])
