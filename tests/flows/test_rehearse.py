"""Every recipe of a paper builds end to end from fixture rows, to a release that verifies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from routeyard.flows.cli import run
from routeyard.flows.recipe import load, resized
from routeyard.flows.rehearse import LEAST, RehearsedPool, rehearse
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.metrics import METRICS

QUICK = ("confidence_pairs",)
LONG = (
    "nine_by_30k",
    "nine_by_300k",
    "routerbench_plus",
    "triple_perspective",
    "cscr",
    "hotpot_agent",
)


@pytest.mark.timeout(1800)  # the largest takes two minutes of a core
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)]
)
def test_a_recipe_builds_to_a_verified_release_whose_card_names_the_paper(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = rehearse(name, str(tmp_path), copies=2)
    release = Path(done["release"]["path"])
    assert run(["verify", str(release)]) == 0
    card = (release / "README.md").read_text(encoding="utf-8")
    paper = load(name)[0].release.paper
    assert paper is not None
    assert paper.title in card
    assert all(difference in card for difference in paper.differences)
    assert "This is a rehearsal" in card
    if name in ("confidence_pairs", "triple_perspective"):
        shows_what_its_tables_read(release)
    if name == "confidence_pairs":
        has_opinions_that_decide_nothing(release)
    if name == "routerbench_plus":
        kinds = pq.read_table(release / "data" / "models.parquet").column("kind")
        assert len(kinds) == 85
        assert pc.sum(pc.equal(kinds, "pseudo_specialist")).as_py() == 3
        evaluates_with_every_cost_metric(release, tmp_path / "out")


def shows_what_its_tables_read(release: Path) -> None:
    """Signals, self-assessments and entropies of the small model, and questions to test on."""
    signals = pq.read_table(release / "data" / "signals.parquet")
    for name in ("entropy", "margin", "max_logit", "perplexity", "self_assessment"):
        assert signals.column(name).null_count == 0, name
    entropies = pq.read_table(release / "data" / "entropies.parquet")
    assert pc.max(entropies.column("n_samples")).as_py() >= 5
    splits = pq.read_table(release / "data" / "splits.parquet").column("split").to_pylist()
    assert {"train", "validation", "test"} <= set(splits)


def has_opinions_that_decide_nothing(release: Path) -> None:
    """The judge of Table 2 saw the first answer of each model, and no label is its work."""
    verdicts = pq.read_table(release / "data" / "verdicts.parquet")
    judged = verdicts.filter(pc.equal(verdicts.column("scorer"), "judge:o1"))
    labels = pq.read_table(release / "data" / "labels.parquet")
    assert len(judged) == len(labels)
    assert set(judged.column("sample").to_pylist()) == {0}
    assert set(judged.column("outcome").to_pylist()) <= {"correct", "incorrect"}
    assert not any("judge" in by for by in labels.column("decided_by").to_pylist())
    rows = pq.read_table(release / "data" / "preferences.parquet").to_pylist()
    assert {row["basis"] for row in rows} == {"semantic_entropy", "judge:o1"}
    # Pairs are on disk in the paper's form.
    wins = {"winner_model_a", "winner_model_b", "winner_tie"}
    columns = {"id", "model_a", "model_b", "prompt", "response_a", "response_b", *wins}
    assert columns <= rows[0].keys()
    assert all(sum(row[name] for name in wins) == 1 for row in rows)


def evaluates_with_every_cost_metric(release: Path, out: Path) -> None:
    """EmbedLLM knows no prices and no tokens: the one measure of cost is the parameters'."""
    arguments = ["evaluate", str(release), "--out", str(out), "--resamples", "100", "--all"]
    assert run([*arguments, "--router", "task-map", "--router", "best-generalist"]) == 0
    mine = {
        row["metric"]: row["value"]
        for row in pq.read_table(out / "metrics.parquet").to_pylist()
        if row["router"] == "task-map" and row["split"] == "test"
    }
    families = {name for name in METRICS.names() if "costs" in METRICS.get(name).needs}
    found = {name.partition("[")[0] for name, value in mine.items() if value is not None}
    # All that needs costs but what a router must do for it: reach the best model's accuracy.
    assert families - found <= {"qnc", "cost_save"}
    assert {"audc", "audc_budget", "aiq", "nauc", "utility", "rci", "outcome"} <= families
    chosen = pq.read_table(out / "choices.parquet").column("model_id").to_pylist()
    assert len({name for name in chosen if name.startswith("pseudo-specialist:")}) == 3
    tests = pq.read_table(out / "comparisons.parquet").column("metric").to_pylist()
    assert "mcnemar[params]" in tests


def test_a_source_of_ones_own_has_no_rows_to_rehearse(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        """
name: mine
version: 1.0.0
sources:
  - {name: a, path: a.csv, scorer: em, fields: {question: q, references: a}}
pool:
  providers: [{name: p, base_url: "http://127.0.0.1:9/v1"}]
  models: [{model_id: m}]
""",
        encoding="utf-8",
    )
    with pytest.raises(BadInput, match="is not from the catalog"):
        rehearse(str(path), str(tmp_path / "yard"))


def test_a_recipe_without_limits_keeps_the_counts_of_its_rules() -> None:
    recipe = load("demo")[0]
    assert resized(recipe, recipe.sources).curate == recipe.curate


@pytest.mark.parametrize(
    ("each", "parts"), [(6, (12, 6, 6)), (8, (16, 8, 8)), (24, (77, 10, 9)), (1, (2, 1, 1))]
)
def test_a_rehearsals_test_part_is_enough_to_tell_routers_apart(
    each: int, parts: tuple[int, int, int]
) -> None:
    # A tenth of 24 questions is two, on which no model is better than the other.
    recipe = load("confidence_pairs")[0]
    split = resized(recipe, [source.but(limit=each) for source in recipe.sources], LEAST).split
    assert (split.train, split.validation, split.test) == parts


def test_recorded_answers_of_which_one_source_states_no_limit_shrink() -> None:
    from routeyard.flows import rehearse

    limits = [source.limit for source in rehearse._shrunk(load("recorded_pair")[0]).sources]
    assert all(limit is not None and 0 < limit < 1200 for limit in limits)


def test_what_is_hard_for_one_simulated_model_is_hard_for_another(tmp_path: Path) -> None:
    rows = [{"question": f"{k} + {k}?", "references": [str(2 * k)], "choices": None,
             "scorer": "numeric", "solution": ""} for k in range(400)]  # fmt: skip
    bank = tmp_path / "bank.jsonl"
    bank.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    pool = RehearsedPool(bank=str(bank))
    right = np.array([[f"Answer: {row['references'][0]}" in pool._say(model, "", row, 0)
                       for row in rows] for model in ("one", "two", "three", "four")])  # fmt: skip
    apart = np.corrcoef(right[right.std(axis=1) > 0].astype(float))
    assert np.median(apart[np.triu_indices(len(apart), 1)]) > 0.15


@pytest.mark.slow
def test_what_an_earlier_version_planted_is_planted_anew(tmp_path: Path) -> None:
    from routeyard.flows import rehearse

    with rehearse._embedllm("cscr", tmp_path):
        place = tmp_path / "import" / "responses.parquet"
        before = place.read_bytes()
    place.write_bytes(b"of an earlier version")
    with rehearse._embedllm("cscr", tmp_path):
        assert place.read_bytes() == before
