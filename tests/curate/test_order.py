"""Curation decides by what questions and models hold: not by the order of rows, nor by names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from routeyard.pipelines.common.matrix import LabelMatrix
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.curate.pseudo_specialists import target_tasks
from routeyard.pipelines.curate.rule import Applied, curate
from routeyard.schemas import (
    CONTRACTS,
    EMBEDDINGS,
    LABELS,
    MODELS,
    QUERIES,
    RESPONSES,
    VERDICTS,
)
from tests.curate.conftest import identify

N, MODELS_OF_POOL = 90, ["ada", "bob", "cyd", "dan", "eve", "fay"]
TASKS = ("gsm8k", "medqa", "mmlu_law", "mmlu_virology", "piqa")
#: Rules with parameters under which each decides something among equals.
CASES: Mapping[str, list[dict[str, Any]]] = {
    "contamination": [{"action": "remove", "n": 3}],
    # The `first` of a group is so by its place in the file, as its name says.
    "dedup": [
        {"threshold": 0.9, "representative": "longest"},
        {"threshold": 0.9, "representative": "most_labelled"},
    ],
    "dense_sparse": [{"slice_share": 0.5, "validation": 8, "test": 10}],
    "out_of_distribution": [{"groups": {"maths": ["gsm8k"], "law": ["mmlu_law"]}}],
    "preference": [
        {"strong": "ada", "weak": "fay", "backend": "equality",
         "basis": ["semantic_entropy", "correctness", "judge"]}
    ],
    "prune": [{"trade_off": 0.5, "target": 2}, {"trade_off": 0.0, "target": 1}],
    "pseudo_specialists": [
        {"min_queries": 5, "max_mean_accuracy": 1.0, "max_gap": 1.0, "limit": 2}
    ],
    "specialist_sample": [
        {"quota": 6, "budget": "params"},
        {"quota": 6, "floor": 2, "redundant": 0.5, "budget": "params"},
    ],
    "unseen_models": [{}],
    "upstream_split": [{}],
}  # fmt: skip
EACH = [(rule, which) for rule, settings in CASES.items() for which in range(len(settings))]


def benchmark(names: Mapping[str, str]) -> dict[str, pa.Table]:
    """Questions with near-duplicates, and a pool in which many figures are equal."""
    rng = np.random.default_rng(0)
    ids = [identify(str(i)) for i in range(N)]
    same = {"domain": "d", "choices": [], "references": ["1"], "scorer": "numeric"}
    queries = [
        {
            **same, "query_id": ids[i], "source": f"s{i % 3}", "source_id": str(i),
            "task": TASKS[i % 5], "question": f"question {i // 2} of many words",
            "prompt": f"question {i // 2} of many words",
            "metadata": json.dumps({"split": ("train", "test")[i % 2]}),
        }
        for i in range(N)
    ]  # fmt: skip
    models = [
        {"model_id": names[m], "kind": "real", "simulated": False, "params_b": 1.0 + k % 3}
        for k, m in enumerate(MODELS_OF_POOL)
    ]
    # In blocks, so that accuracies and similarities of different models are often equal.
    right = rng.random((N // 6, 6)) < 0.5
    right = np.concatenate([np.roll(right, turn, axis=1) for turn in range(6)])
    labels, answers, verdicts = [], [], []
    for i in range(N):
        for k, m in enumerate(MODELS_OF_POOL):
            key = {"query_id": ids[i], "model_id": names[m]}
            labels.append(
                {**key, "score": float(right[i, k]), "correct": bool(right[i, k]),
                 "decided_by": "numeric", "contested": False, "n_samples": 1}
            )  # fmt: skip
            for sample in range(3):
                said = str(int(rng.integers(0, 3)))
                answers.append(
                    {**key, "sample": sample, "text": said, "status": "ok", "attempts": 1}
                )
                verdicts += [
                        {**key, "sample": sample, "scorer": scorer, "scorer_version": "1",
                         "outcome": "correct" if said == "1" else "incorrect",
                         "score": float(said == "1"), "extracted": said, "conflict": False,
                         "reason": ""}
                        for scorer in ("numeric", "judge:j")
                ]  # fmt: skip
    vectors = rng.normal(size=(N // 3, 8)).repeat(3, axis=0) + 0.05 * rng.normal(size=(N, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    embeddings = [
        {"query_id": q, "encoder": "e", "seen_chars": None, "vector": v.tolist()}
        for q, v in zip(ids, vectors.astype(np.float32), strict=True)
    ]
    texts = [queries[i]["question"] for i in range(0, N, 9)]
    return {
        "queries": QUERIES.from_rows(queries), "models": MODELS.from_rows(models),
        "labels": LABELS.from_rows(labels), "responses": RESPONSES.from_rows(answers),
        "verdicts": VERDICTS.from_rows(verdicts), "embeddings": EMBEDDINGS.from_rows(embeddings),
        "external": pa.table({"dataset": ["other"] * len(texts), "text": texts}),
    }  # fmt: skip


PLAIN = {name: name for name in MODELS_OF_POOL}
#: The same models under names that sort the other way.
RENAMED = {name: f"{chr(ord('z') - k)}-{name}" for k, name in enumerate(MODELS_OF_POOL)}


def shown(found: Applied, back: Mapping[str, str]) -> dict[str, list[str]]:
    """Rows of every table in an order of their own, under the first names of the models."""

    def named(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        for name, first in back.items():
            value = value.replace(name, first)
        return value

    tables = {**found.tables, "removals": found.removals}
    return {
        name: sorted(
            repr({k: named(v) for k, v in row.items()})
            for row in CONTRACTS[name].conform(table).to_pylist()
        )
        for name, table in tables.items()
        if name in CONTRACTS
    }


def test_every_rule_is_tried() -> None:
    assert set(CASES) == set(RULES.builtin)


@pytest.mark.parametrize(("rule", "which"), EACH)
def test_order_of_rows_changes_nothing(rule: str, which: int) -> None:
    tables, settings = benchmark(PLAIN), CASES[rule][which]
    plain = curate(tables, [(rule, settings)])
    made = {name for name, table in plain.tables.items() if table is not tables.get(name)}
    assert plain.removals.num_rows or made - {"queries"}, "the rule had nothing to decide"
    for seed in range(2):
        rng = np.random.default_rng(seed)
        turned = {k: t.take(pa.array(rng.permutation(len(t)))) for k, t in tables.items()}
        other = curate(turned, [(rule, settings)])
        mine, theirs = shown(plain, {}), shown(other, {})
        assert mine.keys() == theirs.keys()
        for name, rows in mine.items():
            assert rows == theirs[name], name


#: Chance itself, drawn for a model by its name.
BY_NAME = {"unseen_models"}


@pytest.mark.parametrize(("rule", "which"), [one for one in EACH if one[0] not in BY_NAME])
def test_names_of_models_change_nothing(rule: str, which: int) -> None:
    plain = curate(benchmark(PLAIN), [(rule, CASES[rule][which])])
    settings = {k: RENAMED.get(v, v) if isinstance(v, str) else v for k, v in
                CASES[rule][which].items()}  # fmt: skip
    other = curate(benchmark(RENAMED), [(rule, settings)])
    back = {new: old for old, new in RENAMED.items()}
    ours, theirs = shown(plain, {}), shown(other, back)
    leave = {"preferences"}  # which side a model stands on is drawn by its name
    for name in ours.keys() - leave:
        assert ours[name] == theirs[name], name


#: Tasks under names that sort the other way.
OTHER_TASKS = {name: f"{chr(ord('z') - k)}-{k}" for k, name in enumerate(sorted(TASKS))}


@pytest.mark.parametrize(
    "settings",
    [
        # Their mean embeddings are alike: the first of them stays, and which that is no name says.
        {"redundant": 0.0, "budget": "params"},
        {"quota": 6, "floor": 2, "redundant": 0.5, "budget": "params"},
    ],
)
def test_names_of_tasks_change_nothing(settings: dict[str, Any]) -> None:
    tables = benchmark(PLAIN)
    right = {q["query_id"]: k % 2 == 0 for k, q in enumerate(tables["queries"].to_pylist())}
    rows = [{**r, "correct": right[r["query_id"]]} for r in tables["labels"].to_pylist()]
    equal = {**tables, "labels": LABELS.from_rows(rows)}  # every task has the same score
    asked = [{**q, "task": OTHER_TASKS[q["task"]]} for q in tables["queries"].to_pylist()]
    renamed = QUERIES.from_rows(asked)
    back = {new: old for old, new in OTHER_TASKS.items()}
    for given in (tables, equal):
        ours = curate(given, [("specialist_sample", settings)])
        theirs = curate({**given, "queries": renamed}, [("specialist_sample", settings)])
        assert shown(ours, {})["removals"] == shown(theirs, back)["removals"]


def test_equally_hard_tasks_are_lifted_whatever_they_are_called() -> None:
    queries = ["q1", "q2", "q3", "q4"]
    right = np.zeros((2, 4), dtype=bool)
    found = []
    for tasks in (["a", "b"], ["b", "a"]):  # the task of q1 and q2, that of q3 and q4
        names = sorted(tasks)
        task = np.array([names.index(tasks[k // 2]) for k in range(4)])
        matrix = LabelMatrix(["x", "y"], queries, task, names, right, ~right)
        (name,) = target_tasks(matrix, 1.0, 1.0, 1, limit=1)
        found.append(tasks.index(name))
    assert found == [0, 0]
