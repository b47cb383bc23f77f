"""What a study is given is computed once for equal routers and settings, and anew for others."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from routeyard.flows.evaluation.evaluate import context_of, store_in
from routeyard.flows.evaluation.released import read_release, with_embeddings
from routeyard.pipelines.evaluate.studies.study import StudyContext, made
from tests.support.worded_release import worded_release


@pytest.fixture
def context(tmp_path: Path) -> StudyContext:
    release = worded_release(tmp_path / "toy" / "1.0.0")
    cache = tmp_path / "cache"
    tables = with_embeddings(read_release(release), None, True, cache, "tfidf")
    return context_of(release, tables, kept=partial(store_in, cache), resamples=20)


def test_equal_settings_are_one_evaluation_and_others_are_not(context: StudyContext) -> None:
    first = context.evaluation(["ridge", "knn"])
    assert context.evaluation(["ridge", "knn"]) is first
    assert context.evaluation(["ridge"]) is not first
    assert context.evaluation(["ridge", "knn"], seeds=2) is not first
    # Labels alone do not tell routers apart: settings do.
    few, many = ({"mine": made("knn", choices=(k,))} for k in (1, 31))
    assert context.measured(few) is context.measured({"mine": made("knn", choices=(1,))})
    assert context.measured(few) is not context.measured(many)
    # What was computed with other settings is no answer after they change.
    context.resamples = 40
    changed = context.evaluation(["ridge", "knn"])
    assert changed is not first
    assert changed.settings.resamples == 40
    context.pair = ("left", "right")
    assert context.evaluation(["ridge", "knn"]).settings.pair == ("left", "right")
    assert context.once("something", time.perf_counter) == context.once("something", lambda: None)


def test_predictions_are_those_of_every_command(context: StudyContext, counted) -> None:
    context.evaluation(["ridge", "knn"])
    assert sorted(counted) == ["knn", "ridge"]
    # Another process, which has nothing in memory.
    again = replace(context, _evaluations={})
    assert again.evaluation(["ridge", "knn"]).metrics.equals(
        context.evaluation(["ridge", "knn"]).metrics
    )
    assert sorted(counted) == ["knn", "ridge"]
