"""What cells read from files is the release they were written from."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from routeyard.pipelines.experiment.inputs import read, write
from routeyard.pipelines.matrix.core import Core


def test_costs_that_are_known_of_some_models_are_kept(tmp_path: Path) -> None:
    n, split = 8, np.array(["train"] * 4 + ["validation", "test"] * 2)
    params = np.tile([7.0, np.nan], (n, 1))
    core = Core(
        query_ids=tuple(f"q{k}" for k in range(n)),
        model_ids=("a", "b"),
        labels=np.eye(2)[np.arange(n) % 2],
        costs={"tokens": np.ones((n, 2))},
        part_costs={"params": params},
        tasks=np.full(n, "t"),
        domains=np.full(n, "d"),
        splits={"dense": split},
        groups=np.arange(n),
    )
    bench = write(tmp_path, core, "dense", {})
    found = read(bench.folder, bench.data, "")
    assert set(found.costs) == {"tokens"}
    assert np.array_equal(found.part_costs["params"], params, equal_nan=True)
    assert found.lacking == {"params": ("b",)}
