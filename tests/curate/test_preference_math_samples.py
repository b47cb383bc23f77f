"""Semantic entropy on real samples: one model, 100 MATH questions, eight answers each."""

from __future__ import annotations

import hashlib

import pyarrow.parquet as pq
import pytest

from benchmarks.methods.math_samples import recorded
from routeyard.pipelines.curate.entailment import scorer_equivalence
from routeyard.pipelines.curate.preference import gather, measure, predictive_power
from routeyard.pipelines.label.rules import file_verdicts

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def measured(data):
    folder = data / "math_samples"
    questions = pq.read_table(folder / "queries.parquet").to_pylist()
    samples = pq.read_table(folder / "samples.parquet").to_pylist()
    id_of = {
        row["query_id"]: "q" + hashlib.sha256(row["query_id"].encode()).hexdigest()[:20]
        for row in questions
    }
    queries, responses, _ = recorded(folder, "m")
    verdicts = file_verdicts(queries, responses)
    tables = {"queries": queries, "responses": responses, "verdicts": verdicts}
    found, clustering = measure(gather(tables, ["m"]), scorer_equivalence())
    distinct = {}
    for row in samples:
        distinct.setdefault(id_of[row["query_id"]], set()).add(row["pred"])
    several = {query for query, answers in distinct.items() if len(answers) > 1}
    return found, clustering, several


def test_the_twelve_questions_with_several_answers_are_those_with_entropy(measured):
    found, clustering, several = measured
    assert len(found) == 100
    assert len(several) == 12
    uncertain = {
        one.samples.query["query_id"] for one in found if (one.entropies["discrete"] or 0.0) > 0
    }
    assert uncertain == several
    assert clustering.calls <= clustering.calls_naive


def test_entropy_predicts_wrong_majority_answers(measured):
    found, _, _ = measured
    row = predictive_power(found)[0]
    assert row["queries"] + row["undecided"] == 100
    assert row["auroc"] > 0.8
