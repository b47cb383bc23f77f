"""Error bars over splits: what a drawn split keeps, and what is measured on it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import routeyard
from routeyard.flows.evaluation.released import read_release
from routeyard.pipelines.common.matrix import PER_QUERY, Core, core_of, rows_of
from routeyard.pipelines.evaluate.experiment import one_question, own, redrawn
from routeyard.pipelines.evaluate.run import evaluate
from routeyard.schemas.release import WITHHELD
from tests.evaluate.metrics.test_registry import awkward
from tests.support.worded_release import worded_release

LONG = (
    "A farmer who keeps goats walks along a narrow river until dusk, counts eleven bridges and "
    "thirty boats, then buys cheese; how much money remains with his younger sister?"
)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Core:
    release = worded_release(tmp_path_factory.mktemp("release") / "toy" / "1.0.0")
    return core_of(read_release(release))


def counts(core: Core) -> Counter[tuple[str, str]]:
    return Counter(zip(core.tasks.tolist(), core.splits["dense"].tolist(), strict=True))


def test_each_task_keeps_its_counts_and_ids_decide(core: Core) -> None:
    rng = np.random.default_rng(0)
    tasks = rng.choice(["a", "b", "only in test"], core.n_queries)
    split = np.where(tasks == "only in test", "test", core.splits["dense"])
    split[:3] = ""
    made = replace(core, tasks=tasks, splits={"dense": split})
    drawn = list(redrawn(made, "dense", 3))
    assert [counts(one) for one in drawn] == [counts(made)] * 3
    assert len({tuple(one.splits["dense"]) for one in [made, *drawn]}) == 4
    still = tasks == "only in test"
    for one in drawn:
        assert np.array_equal(one.splits["dense"][still], split[still])
        assert np.array_equal(one.splits["dense"] == "", split == "")
    # Another order of the rows is the same draw; another seed is another one.
    rows = rng.permutation(core.n_queries)
    turned = replace(made, **{name: rows_of(getattr(made, name), rows) for name in PER_QUERY})
    (other,) = redrawn(turned, "dense", 1)
    assert np.array_equal(other.splits["dense"], drawn[0].splits["dense"][rows])
    (seeded,) = redrawn(made, "dense", 1, seed=1)
    assert not np.array_equal(seeded.splits["dense"], drawn[0].splits["dense"])


def test_what_is_one_question_stays_in_one_split(core: Core) -> None:
    n = core.n_queries
    prompts = [f"What is {i}?" for i in range(n)]
    prompts[:4] = ["Where is it?", " WHERE  is it?"] * 2
    prompts[4:6] = [LONG, LONG.replace("narrow", "narow")]
    prompts[6:40] = [WITHHELD] * 34
    metadata = [json.dumps({"question_group": f"g{i % 5}"} if i >= 150 else {}) for i in range(n)]
    groups = np.where(np.arange(n) // 10 == 6, 60, np.arange(n))
    made = replace(core, prompts=tuple(prompts), metadata=tuple(metadata), groups=groups)
    one = one_question(made)
    together = [set(np.flatnonzero(one == k)) for k in np.unique(one)]
    expected = [{0, 1, 2, 3}, {4, 5}, set(range(60, 70))]
    expected += [set(range(150 + k, n, 5)) for k in range(5)]
    assert sorted(map(sorted, (g for g in together if len(g) > 1))) == sorted(map(sorted, expected))
    for drawn in redrawn(made, "dense", 5):
        for group in expected:
            assert len(set(drawn.splits["dense"][sorted(group)])) == 1
        assert counts(drawn) == counts(made)


def test_a_split_of_whole_tasks_is_not_drawn(core: Core) -> None:
    made = replace(core, tasks=core.splits["dense"].copy())
    assert list(redrawn(made, "dense", 5)) == []
    done = evaluate(made, {"always": lambda seed: Always()}, splits=5, resamples=20, points=5)
    why = {r["reason"] for r in done.metrics.to_pylist() if "_split_" in r["metric"]}
    assert why == {"the split puts whole tasks apart"}


class Always:
    """The best single model on train: its gain over it is 0 in every draw."""

    name = "always"

    def fit(self, train) -> None:
        self.level = np.nanmean(train.labels, axis=0)

    def scores(self, queries):
        return np.tile(self.level, (len(queries), 1))


def test_rows_are_of_routers_fitted_on_each_draw(core: Core, tmp_path: Path) -> None:
    table = tmp_path / "theirs.csv"
    table.write_text("query_id,model_id\n" + "".join(f"{q},left\n" for q in core.query_ids))
    routers = {"always": Always, "theirs": own(str(table))}
    routers["always"] = lambda seed: Always()
    done = evaluate(core, routers, splits=4, resamples=20, points=5, pair_routers=False)
    found = {(r["router"], r["metric"]): r for r in done.metrics.to_pylist()}
    reached = []
    for drawn in redrawn(core, "dense", 4):
        train, test = (drawn.splits["dense"] == name for name in ("train", "test"))
        reached.append(core.labels[test, core.labels[train].mean(axis=0).argmax()].mean())
    assert found["always", "accuracy_split_mean"]["value"] == pytest.approx(np.mean(reached))
    assert found["always", "accuracy_split_sd"]["value"] == pytest.approx(np.std(reached, ddof=1))
    assert found["best single", "accuracy_split_sd"]["value"] == pytest.approx(
        np.std(reached, ddof=1)
    )
    assert found["always", "gain_over_best_single_split_mean"]["value"] == 0
    assert found["always", "gain_over_best_single_split_sd"]["value"] == 0
    told = found["theirs", "accuracy_split_mean"]
    assert (told["value"], told["reason"]) == (None, "a table of predictions is of one split")
    # One draw has a mean and no spread; without draws there are no rows.
    for splits, value in ((1, reached[0]), (0, None)):
        again = evaluate(core, {"a": routers["always"]}, splits=splits, resamples=20, points=5)
        rows = {(r["router"], r["metric"]): r["value"] for r in again.metrics.to_pylist()}
        assert rows.get(("a", "accuracy_split_mean")) == (None if value is None else value)
        assert rows.get(("a", "accuracy_split_sd")) is None


def test_missing_labels_and_graded_ones_have_spread_too() -> None:
    made = awkward(3, 40, 4)
    done = evaluate(made, {"knn": lambda seed: Always()}, splits=3, resamples=20, points=5)
    rows = {(r["router"], r["metric"]): r["value"] for r in done.metrics.to_pylist()}
    assert 0 <= rows["knn", "accuracy_split_mean"] <= 1
    assert abs(rows["knn", "gain_over_best_single_split_mean"]) < 0.5


def test_they_are_made_in_python_and_kept(core: Core, tmp_path: Path) -> None:
    release = worded_release(tmp_path / "toy" / "1.0.0")
    how = {"splits": 2, "embed": True, "encoder": "tfidf", "resamples": 50}
    first = routeyard.evaluate(release, ["ridge"], cache=tmp_path / "c", **how)
    kept = len(list((tmp_path / "c" / "predictions").glob("*.json")))
    again = routeyard.evaluate(release, ["ridge"], cache=tmp_path / "c", **how)
    assert again.metrics.equals(first.metrics)
    assert len(list((tmp_path / "c" / "predictions").glob("*.json"))) == kept == 3
