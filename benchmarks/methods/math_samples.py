"""One answer of a model against the majority of its eight, on 100 MATH questions.

`small` is one answer, labelled by the share of the eight that are right; `large` is the majority
of eight by meaning. Entropy of `small` is that of the eight samples; of `large`, that of which
meaning wins when eight are drawn again. Where all eight mean the same nobody prefers either; else
the reward model's mean score, of the majority against all eight, decides for the basis
`judge:reward_model`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.methods.written import write
from routeyard.pipelines.curate.preference import SampleEntropies

#: Split of the questions in turn: the eight disagree on few, so many are tested.
PART = ("train", "test", "train", "test", "validation")


def math_samples(data: Path, folder: Path) -> Path:
    """The release of the recorded samples; `folder`."""
    from routeyard.pipelines.curate.entailment import scorer_equivalence
    from routeyard.pipelines.curate.preference import gather, measure
    from routeyard.pipelines.label.rules import file_verdicts
    from routeyard.schemas import ENTROPIES, LABELS, MODELS, PREFERENCES, SPLITS

    queries, responses, reward = recorded(data / "math_samples")
    verdicts = file_verdicts(queries, responses)
    right = {
        (row["query_id"], row["sample"]): row["outcome"] == "correct"
        for row in verdicts.to_pylist()
    }
    tables = {"queries": queries, "responses": responses, "verdicts": verdicts}
    found, _ = measure(gather(tables, ["small"]), scorer_equivalence())
    labels: list[Any] = []
    entropies: list[Any] = []
    preferences: list[Any] = []
    splits: list[Any] = []
    generator = np.random.default_rng(0)
    for place, one in enumerate(sorted(found, key=_order)):
        query, clusters = one.samples.query["query_id"], one.clusters
        assert clusters is not None
        majority = one.majority or 0
        entropy = {"small": float(one.entropies["discrete"] or 0.0)}
        entropy["large"] = _settled(clusters, generator)
        every = [right[query, k] for k in range(len(clusters))]
        for name, hits in (("small", every), ("large", [every[majority]])):
            score = float(np.mean(hits))
            labels.append(
                {
                    "query_id": query, "model_id": name, "score": score, "correct": score >= 0.5,
                    "decided_by": "math", "contested": False, "n_samples": len(hits),
                }
            )  # fmt: skip
            entropies.append(
                {
                    "query_id": query, "model_id": name, "estimator": "discrete",
                    "backend": "math", "n_samples": len(clusters),
                    "n_clusters": int(clusters.max()) + 1, "semantic_entropy": entropy[name],
                }
            )  # fmt: skip
        scores = np.array([reward[query, k] for k in range(len(clusters))])
        preferences += _preferred(query, clusters, majority, entropy, scores)
        splits.append({"scheme": "dense", "query_id": query, "split": PART[place % 5]})
    models = MODELS.from_rows(
        {"model_id": name, "kind": "real", "simulated": False, "params_b": size}
        for name, size in (("small", 1.0), ("large", 8.0))
    )
    return write(
        folder,
        {
            "queries": queries,
            "models": models,
            "labels": LABELS.from_rows(labels),
            "entropies": ENTROPIES.from_rows(entropies),
            "preferences": PREFERENCES.from_rows(preferences),
            "splits": SPLITS.from_rows(splits),
        },
    )


def _order(one: SampleEntropies) -> tuple[bool, str]:
    """Questions on which the eight disagree first, so that every split has its share of them."""
    assert one.clusters is not None
    return bool(np.all(one.clusters == one.clusters[0])), str(one.samples.query["query_id"])


def recorded(
    folder: Path, model: str = "small"
) -> tuple[pa.Table, pa.Table, dict[tuple[str, int], float]]:
    """Queries, responses of `model` and the reward model's scores by (query, sample)."""
    from routeyard.schemas import QUERIES, RESPONSES

    questions = pq.read_table(folder / "queries.parquet").to_pylist()
    samples = pq.read_table(folder / "samples.parquet").to_pylist()
    ids = {
        row["query_id"]: "q" + hashlib.sha256(row["query_id"].encode()).hexdigest()[:20]
        for row in questions
    }
    queries = QUERIES.from_rows(
        {
            "query_id": ids[row["query_id"]], "source": "math", "source_id": row["query_id"],
            "task": "math", "domain": "math", "question": row["question"],
            "prompt": row["question"], "choices": [], "references": [row["answer"]],
            "scorer": "math", "metadata": "{}",
        }
        for row in questions
    )  # fmt: skip
    responses = RESPONSES.from_rows(
        {
            "query_id": ids[row["query_id"]], "model_id": model, "sample": row["sample"],
            "text": row["output"], "status": "ok", "attempts": 1,
        }
        for row in samples
    )  # fmt: skip
    reward = {(ids[row["query_id"]], row["sample"]): float(row["reward"]) for row in samples}
    return queries, responses, reward


def _preferred(
    query: str,
    clusters: np.ndarray[Any, Any],
    majority: int,
    entropy: dict[str, float],
    reward: np.ndarray[Any, Any],
) -> list[dict[str, Any]]:
    """One record for each basis."""
    from routeyard.pipelines.curate.preference import winner_by_entropy, winner_by_score

    same = clusters == clusters[majority]
    judged = winner_by_score(float(reward[same].mean()), float(reward.mean()))
    wins = {
        "semantic_entropy": winner_by_entropy(entropy["large"], entropy["small"], 0.1),
        "judge:reward_model": judged,
    }
    return [
        {
            "id": f"{basis}-{query}", "query_id": query, "model_a": "large", "model_b": "small",
            "prompt": query, "winner_model_a": int(winner == "strong"),
            "winner_model_b": int(winner == "weak"), "winner_tie": int(winner == "tie"),
            "se_a": entropy["large"], "se_b": entropy["small"], "basis": basis, "n_turns": 1,
        }
        for basis, winner in wins.items()
    ]  # fmt: skip


def _settled(clusters: np.ndarray[Any, Any], generator: np.random.Generator) -> float:
    """Entropy (nat) of which meaning wins when eight answers are drawn again with replacement."""
    drawn = generator.choice(clusters, (400, len(clusters)))
    wins = np.array([np.bincount(row).argmax() for row in drawn])
    share = np.bincount(wins) / len(wins)
    share = share[share > 0]
    return float(max(0.0, -(share * np.log(share)).sum()))
