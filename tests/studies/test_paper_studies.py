"""Studies of the papers' own routers: each fills its table from a small release made for it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from routeyard.flows.evaluation.evaluate import reference, run_study
from routeyard.papers.routing_plateau.studies import hard_questions_hits as hits
from routeyard.papers.routing_plateau.studies import shares
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import (
    Study,
    StudyCell,
    StudyContext,
    ZooFigures,
    check,
    lacking,
)
from routeyard.pipelines.routers import ROUTERS
from routeyard.schemas import (
    DESCRIPTORS,
    EMBEDDINGS,
    HIDDEN_STATES,
    LABELS,
    MODEL_SPLITS,
    MODELS,
    PREFERENCES,
    QUERIES,
    SIGNALS,
    SPLITS,
)

POOL = ("a", "b", "c", "d", "e", "f")


def release(name: str, models: tuple[str, ...], n: int = 100, seed: int = 0) -> dict[str, pa.Table]:
    """Questions of two tasks; every model is right where its embedding's axis is large."""
    rng = np.random.default_rng(seed)
    m = len(models)
    ids = [f"q{name}{i:019x}" for i in range(n)]
    vectors = rng.normal(size=(n, m)) + 2 * np.eye(m)[rng.integers(0, m, n)]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    level = np.where(np.arange(m) == 1, -0.1, 0.3)  # the second model is the strong one
    right = rng.random((n, m)) < 1 / (1 + np.exp(-8 * (vectors - level)))
    parts = ["train", "train", "train", "validation", "test"]
    descriptors = [("text_footprint", np.eye(m)), ("logit_footprint", np.eye(m) + 0.1)]
    pairs = [(i, i % 3) for i in range(n)]
    tasks = ["math" if i % 2 else "law" for i in range(n)]
    return {
        "queries": QUERIES.from_rows(
            {
                "query_id": q, "source": "s", "source_id": q, "task": task, "domain": "general",
                "question": q, "prompt": q, "choices": [], "references": ["1"],
                "scorer": "em", "metadata": "{}",
            }
            for q, task in zip(ids, tasks, strict=True)
        ),
        "models": MODELS.from_rows(
            {"model_id": k, "kind": "real", "simulated": False, "params_b": float(2**i)}
            for i, k in enumerate(models)
        ),
        "labels": LABELS.from_rows(
            {
                "query_id": q, "model_id": k, "score": float(right[i, j]),
                "correct": bool(right[i, j]), "decided_by": "em", "contested": False,
                "n_samples": 1,
            }
            for i, q in enumerate(ids)
            for j, k in enumerate(models)
        ),
        "splits": SPLITS.from_rows(
            {"scheme": "dense", "query_id": q, "split": parts[i % 5]} for i, q in enumerate(ids)
        ),
        "model_splits": MODEL_SPLITS.from_rows(
            {"scheme": "dense", "model_id": k, "split": "unseen" if i in (1, 3) else "seen"}
            for i, k in enumerate(models)
        ),
        "embeddings": EMBEDDINGS.from_rows(
            {"query_id": q, "encoder": "e", "vector": v.astype("f4").tolist()}
            for q, v in zip(ids, vectors, strict=True)
        ),
        "descriptors": DESCRIPTORS.from_rows(
            {"model_id": k, "kind": kind, "vector": v[i].tolist(), "metadata": "{}"}
            for kind, v in descriptors
            for i, k in enumerate(models)
        ),
        "hidden_states": HIDDEN_STATES.from_rows(
            {
                "query_id": q, "model_id": models[0], "layer": layer,
                "vector": (v if layer == 1 else rng.normal(size=m)).astype("f4").tolist(),
            }
            for q, v in zip(ids, vectors, strict=True)
            for layer in range(3)
        ),
        "signals": SIGNALS.from_rows(
            {
                "query_id": q, "model_id": models[0], "sample": 0, "n_tokens": 3,
                "margin": float(np.clip(0.5 * right[i, 0] + rng.random() / 2, 0, 1)),
            }
            for i, q in enumerate(ids)
        ),
        "preferences": PREFERENCES.from_rows(
            {
                "id": f"{basis}{i}", "query_id": ids[i], "model_a": models[0],
                "model_b": models[1], "prompt": ids[i], "winner_model_a": int(k == 0),
                "winner_model_b": int(k == 1), "winner_tie": int(k == 2), "basis": basis,
                "n_turns": 1,
            }
            for basis in ("semantic_entropy", "judge:j")
            for i, k in pairs
        ),
    }  # fmt: skip


@cache
def given(pair: bool) -> StudyContext:
    if not pair:
        return StudyContext("one", release("0", POOL), reference, resamples=30)
    two = POOL[:2]
    return StudyContext(
        "one", release("0", two), reference, resamples=30, pair=two,
        joined={"two": release("1", two, seed=1)}, tested={"three": release("2", two, seed=2)},
    )  # fmt: skip


PAIRED = ("confidence-router", "triple-perspective")
OWN = [
    name
    for name in STUDIES.names()
    if name.startswith(("cscr_", "probe_", "confidence_", "router_a"))
    or name in ("answer_quality", "descriptor_similarity")
    if name != "router_accuracy"
]


def nothing_else(study: Study, one: StudyContext) -> StudyContext:
    """The context with what the study takes; of what it does not take, what no study can read."""
    given = {"routers": ("no such router",), "joined": {"none": {}}, "tested": {"none": {}}}
    if "joined" in study.takes:  # all releases are read at once
        del given["tested"]
    return replace(one, **{k: v for k, v in given.items() if k not in study.takes})


@cache
def cells_of(name: str) -> dict[tuple[str, str], StudyCell]:
    study: Study = STUDIES.get(name)
    one = nothing_else(study, given(study.paper in PAIRED))
    check(study, one, one_of_many=True)
    cells = {(c.row, c.column): c for c in study.cells(one)}
    assert cells
    if study.curves is not None:
        assert study.curves(one).num_rows
    for cell in cells.values():
        if cell.value is not None and cell.low is not None and cell.high is not None:
            assert cell.low - 1e-9 <= cell.value <= cell.high + 1e-9 or math.isnan(cell.low), cell
    return cells


#: One row of settings after another by the code that other studies run as well.
LIKE_PENALTY = ("cscr_band_count", "cscr_banded", "cscr_neighbours", "cscr_slope", "cscr_size",
                "cscr_least_temperature", "cscr_loss", "probe_scale", "probe_width",
                "confidence_sizes")  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in LIKE_PENALTY else n for n in OWN],
)
def test_every_study_of_a_papers_own_router_fills_its_table(name: str) -> None:
    cells = cells_of(name)
    measured = [c for c in cells.values() if c.value is not None or c.text]
    # A row that cannot be measured here says why.
    assert all(c.note for c in cells.values() if c.value is None and not c.text)
    assert len(measured) >= len(cells) / 3


def test_rows_are_those_of_the_papers_tables() -> None:
    rows = {row for row, _ in cells_of("cscr_curves")}
    assert rows >= {"umr", "thompson", "soft-moe", "parametric", "pareto-random", "random",
                    "cscr", "oracle"}  # fmt: skip
    assert "parametric" not in {row for row, _ in cells_of("cscr_new_models")}
    assert "cscr, descriptor alone" in {row for row, _ in cells_of("cscr_new_models")}
    kinds = {row for row, _ in cells_of("cscr_descriptors")}
    assert kinds == {"text_footprint", "logit_footprint", "mixed"}
    assert {row for row, _ in cells_of("cscr_penalty")} == {
        f"gamma={g:g}" for g in (0, 0.1, 0.2, 0.3, 0.5)
    }
    bands = {c: one.value or 0.0 for (r, c), one in cells_of("cscr_bands").items() if r == "cscr"}
    assert sum(v for c, v in bands.items() if c.startswith("band ")) == pytest.approx(1)
    assert sum(v for c, v in bands.items() if c.startswith("questions ")) == 20


@pytest.mark.parametrize(
    "name", ["probe_aggregation", "cscr_bands", "cscr_band_count", "probe_layers"]
)
def test_figures_are_drawn_without_a_warning(name: str, tmp_path: Path) -> None:
    study: Study = STUDIES.get(name)
    run_study(name, given(study.paper in PAIRED), tmp_path, tmp_path, one_of_many=True)
    assert (tmp_path / f"{name}.svg").stat().st_size > 1000


def test_mixtures_are_tested_on_every_release_and_on_those_never_trained_on() -> None:
    cells = cells_of("probe_mixture")
    assert {row for row, _ in cells} == {"one", "two", "three (OOD)"}
    assert {column for _, column in cells} == {"one", "one + two"}
    ability = cells_of("router_ability")
    assert {row for row, _ in ability} == {"margin", "embedding-mlp", "probe-dirichlet"}
    mean = ability["margin", "mean in domain: AUROC"].value
    parts = [ability["margin", f"{name}: AUROC"].value for name in ("one", "two")]
    assert mean == pytest.approx(sum(p or 0 for p in parts) / 2)
    rows = cells_of("probe_aggregation")
    change = rows["of the input − Algorithm 1", "one: AUROC"].value
    forms = ("Dirichlet of the input (section 4)", "Dirichlet (Algorithm 1)")
    both = [rows[name, "one: AUROC"].value or 0.0 for name in forms]
    assert change == pytest.approx(both[0] - both[1], abs=1e-9)
    weights = [c.value or 0.0 for (_, column), c in cells_of("probe_layers").items()
               if column == "mixed"]  # fmt: skip
    assert sum(weights) == pytest.approx(1)


def test_every_basis_trains_the_four_routers_by_itself() -> None:
    rows = {row for row, _ in cells_of("confidence_rates")}
    want = {f"{basis}: {short}" for basis in ("semantic_entropy", "judge:j", "labels")
            for short in ("SW", "MF", "MLP", "kNN")}  # fmt: skip
    assert rows == {*want, "random", "oracle"}
    assert {column for _, column in cells_of("answer_quality")} == {
        "judge:j, at CPT(50)", "judge:j, at CPT(80)", "at CPT(50)", "at CPT(80)",
    }  # fmt: skip
    rates, quality = cells_of("confidence_rates"), cells_of("answer_quality")
    calls = {row: c.value for (row, column), c in rates.items() if column == "CPT(50)"}
    own = [f"labels: {short}" for short in ("SW", "MF", "MLP", "kNN")]
    best = min(own, key=lambda row: 2.0 if calls[row] is None else calls[row])
    shown = quality["best router of labels", "at CPT(50)"].value
    assert shown == quality[best, "judge:j, at CPT(50)"].value


def test_what_a_release_lacks_is_named_with_the_command_that_makes_it() -> None:
    tables = release("0", POOL)
    bare = {k: v for k, v in tables.items() if k not in ("descriptors", "hidden_states")}
    one = StudyContext("one", bare, reference, resamples=30, pair=("a", "b"))
    (found,) = lacking(STUDIES.get("cscr_curves"), one)
    assert found[0] == "descriptors"
    assert "routeyard fingerprint" in found[1]
    (found,) = lacking(STUDIES.get("probe_layers"), one)
    assert "routeyard hidden-states" in found[1]


@pytest.mark.parametrize("scheme", ["dense", "unseen_models"])
def test_models_that_a_rule_holds_out_are_unseen_whatever_its_scheme_is_called(scheme: str) -> None:
    tables = release("0", POOL[:4], n=20)
    rows = [{**row, "scheme": scheme} for row in tables["model_splits"].to_pylist()]
    splits = pa.Table.from_pylist(rows, schema=tables["model_splits"].schema)
    context = StudyContext("r", {**tables, "model_splits": splits}, reference)
    assert context.unseen == tuple(sorted((POOL[1], POOL[3])))
    needs = {need for need, _ in lacking(STUDIES.get("cscr_new_models"), context)}
    assert "unseen_models" not in needs


def with_specialist(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The release with its last model as a pseudo-specialist for the task `math`."""
    old, new = POOL[-1], "pseudo-specialist:math"

    def renamed(table: pa.Table) -> pa.Table:
        rows = [
            {**row, "model_id": new} if row.get("model_id") == old else row
            for row in table.to_pylist()
        ]
        for row in rows:
            if "kind" in row and "simulated" in row and row["model_id"] == new:
                row["kind"], row["simulated"] = "pseudo_specialist", True
        return pa.Table.from_pylist(rows, schema=table.schema)

    return {name: renamed(table) for name, table in tables.items()}


@cache
def asked(paired: bool, special: bool) -> StudyContext:
    """Two routers are asked for that are no study's only ones."""
    names = POOL[:2] if paired else POOL
    tables = release("0", names)
    tables = with_specialist(tables) if special else tables
    pair, routers = (POOL[:2], ("ridge", "random")) if paired else (None, ("ridge", "cscr"))
    return StudyContext("one", tables, reference, resamples=20, routers=routers, pair=pair)


TAKING = [name for name in STUDIES.names() if "routers" in STUDIES.get(name).takes]
#: Needs agents' steps; tests/papers/agents asks it for routers of their own.
ELSEWHERE = ("agentic_curve",)
#: Figures of all routers together.
OF_ALL = ("bce_against_knn", "configurations")


@pytest.mark.parametrize("name", [name for name in TAKING if name not in ELSEWHERE])
def test_a_study_shows_the_routers_that_are_asked_for_and_no_others(name: str) -> None:
    study: Study = STUDIES.get(name)
    paired = "pair" in study.needs
    context = asked(paired, "pseudo_specialists" in study.needs)
    check(study, context)
    cells = study.cells(context)
    shown = {cell.row for cell in cells} | {cell.column for cell in cells}
    if study.curves is not None:
        shown |= set(study.curves(context).column("series").to_pylist())
    words = {word for one in shown for word in re.split(r",? / |, | − |: ?", one)}
    found = words & set(ROUTERS.names())
    assert found <= set(context.routers), "routers that nobody asked for"
    if name not in OF_ALL:
        assert found, "none of the routers that were asked for"


@pytest.mark.parametrize("name", [n for n in STUDIES.names() if n not in TAKING])
def test_a_study_that_reads_no_routers_refuses_them(name: str) -> None:
    study: Study = STUDIES.get(name)
    context = replace(given(False), routers=("knn",))
    with pytest.raises(BadInput, match="does not read --router"):
        check(study, context)


def test_a_router_with_a_preset_is_known_by_its_class() -> None:
    one = replace(given(False), routers=("umr:text", "cscr:code"))
    assert one.able(("knn",)) == ("umr:text", "cscr:code")
    bare = {k: v for k, v in one.tables.items() if k != "descriptors"}
    assert replace(one, tables=bare).able(("knn",)) == ("umr:text",)


def test_the_scheme_asked_for_is_that_of_other_releases_too() -> None:
    one = replace(given(True), scheme="mine", _evaluations={})
    every = []
    for tables in (one.tables, one.joined["two"], one.tested["three"]):
        rows = tables["splits"].to_pylist()
        turned = [{**r, "scheme": "mine", "split": "test"} for r in rows]
        turned[: len(rows) // 2] = [{**r, "split": "train"} for r in turned[: len(rows) // 2]]
        every.append({**tables, "splits": SPLITS.from_rows([*rows, *turned])})
    own, joined, tested = every
    one = replace(one, tables=own, joined={"two": joined}, tested={"three": tested})
    assert len(one.training(("one", "two")).queries) == 100
    done = one.across({"random": reference("random")}, one.training(("one",)))
    assert {name: e.facts["n_test"] for name, e in done.items()} == dict.fromkeys(done, 50)


def test_a_router_that_one_encoder_could_not_feed_is_averaged_over_the_others() -> None:
    whole = given(False).evaluation(("ridge", "random"))
    less = given(False).evaluation(("random",))
    zoo = ZooFigures(lambda: {"a": whole, "b": less}, dict, lambda: pa.table({}))
    context = replace(given(False), zoo=zoo, _evaluations={})
    accuracy = float(hits(context).of["ridge"].mean())
    (own,) = (
        r for r in whole.metrics.to_pylist() if (r["router"], r["metric"]) == ("ridge", "accuracy")
    )
    assert accuracy == pytest.approx(own["value"])
    cells = shares(context, {"share": ""})
    assert sum(c.value or 0 for c in cells if c.row == "ridge") == pytest.approx(1)


def test_where_no_question_is_hard_every_cell_of_the_papers_tables_says_so() -> None:
    tables = release("0", POOL[:3])
    sure = [{**r, "score": 1.0, "correct": True} for r in tables["labels"].to_pylist()]
    easy = {**tables, "labels": LABELS.from_rows(sure)}
    one = StudyContext("one", easy, reference, resamples=20, routers=("knn", "random"))
    for name, columns in (
        ("oracle_gap", {"spread", "gap hard", "gap easy", "ratio", "share of gap on hard"}),
        ("bce_against_knn", {"hard accuracy", "median Δ"}),
    ):
        study: Study = STUDIES.get(name)
        noted = {c.column for c in study.cells(one) if c.value is None and c.note}
        assert columns <= noted
