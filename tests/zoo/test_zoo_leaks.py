"""What a zoo's table says where test questions stand in train."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routeyard.pipelines.zoo.leaks import without_leaks
from tests.evaluate.metrics.test_registry import awkward


def test_winners_are_given_with_and_without_them() -> None:
    core = awkward(0, 20, 3)
    y = np.where(np.isnan(core.labels), 0.0, core.labels)
    core = replace(core, labels=y, correct=(y >= 0.8).astype(float))
    scores = np.random.default_rng(0).random((20, 3)).astype(np.float32)
    kept = {("knn", "minilm"): scores}
    order = np.arange(3)
    apart = replace(core, prompts=tuple(f"Question {i}" for i in range(26)))
    assert without_leaks(apart, "dense", order, kept) == ""
    # Train is the first six: test questions 20 to 25 have their words.
    shared = replace(core, prompts=tuple(f"Question {i % 20}" for i in range(26)))
    page = without_leaks(shared, "dense", order, kept)
    hit = core.labels[6:][np.arange(20), scores.argmax(axis=1)]
    assert "6 of 20 test questions also stand in train" in page
    row = f"| knn | minilm | {100 * hit.mean():.2f} | {100 * hit[:14].mean():.2f} |"
    assert row in page
