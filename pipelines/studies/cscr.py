"""CSCR against its baselines: curves, new models, new prompts, significance, where it sends."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from pipelines.evaluate.held_out.ood import between
from pipelines.evaluate.held_out.unseen import newcomers
from pipelines.evaluate.papers.spectrum import band_shares, descriptor_cosines
from pipelines.evaluate.run import Evaluation
from pipelines.routers.base import Router
from pipelines.studies.context import StudyContext
from pipelines.studies.router_table import Columns, cells_of, measure_of
from pipelines.studies.study import Study, StudyCell
from pipelines.task_groups import OOD_GROUPS

PAPER = "cscr"
NEEDS = ("labels", "splits", "embeddings", "cost", "descriptors", "many_models")
#: The rows of Table 1; `contrastive` is Table 5's.
ROWS = ("umr", "thompson", "soft-moe", "parametric", "pareto-random", "random", "cscr")
OURS = "Descriptors are those the release has or `--also` gives; of several kinds the first."


def deferral_columns(context: StudyContext) -> Columns:
    name = measure_of(context)
    return {
        f"audc[{name}]": ("AUDC", "number"),
        f"qnc[{name}]": ("QNC", "number"),
        f"peak_accuracy[{name}]": ("peak accuracy", "percent"),
    }


def curve_table(done: Evaluation, measure: str) -> pa.Table:
    """Deferral curves of an evaluation as a study plots them."""
    rows = [
        {"series": r["router"], **{n: r[n] for n in ("x", "y", "low", "high")}}
        for r in done.curves.to_pylist()
        if r["curve"] == "deferral" and r["measure"] == measure
    ]
    schema = pa.schema([("series", pa.string()), *((n, pa.float64()) for n in "xy"),
                        ("low", pa.float64()), ("high", pa.float64())])  # fmt: skip
    return pa.Table.from_pylist(rows, schema=schema)


def _baselines(context: StudyContext) -> Evaluation:
    makers = {name: context.make(name) for name in context.able(ROWS)}
    return context.once("cscr baselines", lambda: context.compared(makers))


def _curves(context: StudyContext) -> Sequence[StudyCell]:
    rows = [*context.able(ROWS), "oracle"]
    return cells_of(_baselines(context), deferral_columns(context), rows)


CURVES = Study(
    name="cscr_curves",
    paper=PAPER,
    item="Table 1, Figure 1",
    title="CSCR and its baselines: area, quality-neutral cost and peak of the deferral curve",
    cells=_curves,
    needs=NEEDS,
    rows="router",
    plot="lines",
    curves=lambda context: curve_table(_baselines(context), measure_of(context)),
    axes=("mean cost", "accuracy"),
    notes=(OURS,),
)


def _newcomers(context: StudyContext) -> Evaluation:
    return context.once("cscr new models", lambda: _asked_newcomers(context))


def _asked_newcomers(context: StudyContext) -> Evaluation:
    scheme = context.default_scheme()
    unseen = context.core.unseen[scheme]
    makers = {
        name: partial(context.make(name), context.seed)
        for name in context.able([name for name in ROWS if name != "parametric"])
    }
    core, made = newcomers(context.core, scheme, unseen, makers)
    ours = {name: make for name, make in makers.items() if name == "cscr"}
    _, blind = newcomers(context.core, scheme, unseen, ours, labelled=False)
    every = {**made, **{f"{name}, descriptor alone": r for name, r in blind.items()}}
    return context.compared({name: partial(_same, router) for name, router in every.items()}, core)


def _same(router: Router, seed: int) -> Router:
    return router


def _new_models(context: StudyContext) -> Sequence[StudyCell]:
    done = _newcomers(context)
    rows = dict.fromkeys(r["router"] for r in done.profiles.to_pylist())
    wanted = [name for name in rows if name not in ("task oracle", "best single")]
    return cells_of(done, deferral_columns(context), wanted)


NEW_MODELS = Study(
    name="cscr_new_models",
    paper=PAPER,
    item="Table 2, Figure 3",
    title="Routing among models that no router was trained on",
    cells=_new_models,
    needs=(*NEEDS, "unseen_models"),
    rows="router",
    plot="lines",
    curves=lambda context: curve_table(_newcomers(context), measure_of(context)),
    axes=("mean cost", "accuracy"),
    notes=(
        "Labels of the new models are known on the validation questions, as UMR needs; the row "
        "`descriptor alone` has none of them. A parametric gate has no place for new models.",
    ),
)


def _other_prompts(context: StudyContext) -> Evaluation:
    patterns = (*OOD_GROUPS["stem"], *OOD_GROUPS["cscr-stem"])
    makers = {name: context.make(name) for name in context.able(ROWS)}

    def made() -> Evaluation:
        return context.compared(makers, between(context.core, context.default_scheme(), patterns))

    return context.once("cscr new prompts", made)


def _new_prompts(context: StudyContext) -> Sequence[StudyCell]:
    rows = [*context.able(ROWS), "oracle"]
    return cells_of(_other_prompts(context), deferral_columns(context), rows)


NEW_PROMPTS = Study(
    name="cscr_new_prompts",
    paper=PAPER,
    item="Table 3, Figure 4",
    title="Trained on STEM questions, tested on all others",
    cells=_new_prompts,
    needs=(*NEEDS, "tasks"),
    rows="router",
    plot="lines",
    curves=lambda context: curve_table(_other_prompts(context), measure_of(context)),
    axes=("mean cost", "accuracy"),
    notes=("STEM: tasks of the paper's Table 6, and those of other catalogues of that kind.",),
)


def _significance(context: StudyContext) -> Sequence[StudyCell]:
    done, measure = _baselines(context), measure_of(context)
    cells = []
    for row in done.comparisons.to_pylist():
        one, other = row["first"], row["second"]
        if "cscr" not in (one, other):
            continue
        sign = 1.0 if one == "cscr" else -1.0
        name = f"cscr − {other if one == 'cscr' else one}"
        if row["metric"] == f"audc[{measure}]":
            low, high = sorted((sign * row["low"], sign * row["high"]))
            cells += [
                StudyCell(name, "ΔAUDC", sign * row["difference"], "number", low, high),
                StudyCell(name, "p, bootstrap, Holm", row["p_adjusted"], "number"),
            ]
        elif row["metric"] == f"mcnemar_as_published[{measure}]" and one == "cscr":
            cells += [
                StudyCell(name, "n10", row["n10"], "count"),
                StudyCell(name, "n01", row["n01"], "count"),
                StudyCell(name, "p, McNemar", row["p"], "number"),
            ]
    return cells


SIGNIFICANCE = Study(
    name="cscr_significance",
    paper=PAPER,
    item="Table 16",
    title="CSCR against each baseline: paired bootstrap of AUDC, McNemar at the matched budget",
    cells=_significance,
    needs=NEEDS,
    rows="pair of routers",
    plot="bars",
    plot_column="ΔAUDC",
    notes=("McNemar is one-sided and exact, at the median of both cost grids, as printed.",),
)


def _bands(context: StudyContext) -> Sequence[StudyCell]:
    done = _baselines(context)
    cells = []
    for name in context.able(ROWS):
        profile = {
            r["model_id"]: r["share"] for r in done.profiles.to_pylist() if r["router"] == name
        }
        shares = band_shares(context.core, context.default_scheme(), profile)
        cells += [StudyCell(name, f"band {k}", float(v), "percent") for k, v in enumerate(shares)]
    return cells


BANDS = Study(
    name="cscr_bands",
    paper=PAPER,
    item="Table 14",
    title="Share of test questions that go to each cost band, cheapest first",
    cells=_bands,
    needs=NEEDS,
    rows="router",
    plot="heat",
    notes=("Choices with cost disregarded; five percentile bands of the train costs.",),
)


def _outcomes(context: StudyContext) -> Sequence[StudyCell]:
    columns: Columns = {
        f"outcome_as_published[{name}]": (name.replace("_", " "), "percent")
        for name in ("optimal", "too_cheap", "too_expensive", "none_correct")
    }
    return cells_of(_baselines(context), columns, [*context.able(ROWS), "oracle"])


OUTCOMES = Study(
    name="cscr_outcomes",
    paper=PAPER,
    item="Table 15",
    title="What CSCR and its baselines did: optimal, too cheap, too expensive, none correct",
    cells=_outcomes,
    needs=NEEDS,
    rows="router",
    plot="heat",
    notes=("As published: a wrong answer that was too dear is in no column.",),
)


def _similar(context: StudyContext) -> Sequence[StudyCell]:
    names, found = context.core.model_ids, descriptor_cosines(context.core)
    return [
        StudyCell(a, b, float(found[i, j]), "number")
        for i, a in enumerate(names)
        for j, b in enumerate(names)
    ]


SIMILAR = Study(
    name="descriptor_similarity",
    paper=PAPER,
    item="Figure 2",
    title="Cosines between the descriptors of the models",
    cells=_similar,
    needs=("descriptors",),
    plot="heat",
    notes=(OURS,),
)


def _examples(context: StudyContext) -> Sequence[StudyCell]:
    names = ("umr", "contrastive", "cscr")
    done = context.compared({name: context.make(name) for name in context.able(names)})
    chosen: dict[str, dict[str, str]] = {}
    for row in done.choices.to_pylist():
        if row["router"] in names:
            chosen.setdefault(row["query_id"], {})[row["router"]] = row["model_id"]
    apart = sorted(query for query, models in chosen.items() if len(set(models.values())) > 1)
    picked = np.random.default_rng(context.seed).permutation(apart)[:8]
    known = {query: k for k, query in enumerate(context.core.query_ids)}
    cells = []
    for query in sorted(picked.tolist()):
        cells.append(StudyCell(query, "task", text=str(context.core.tasks[known[query]])))
        for router, model in chosen[query].items():
            label = context.core.decided[known[query], context.core.model_ids.index(model)]
            cells.append(StudyCell(query, router, text=f"{model} {'✓' if label > 0 else '✗'}"))
    return cells


EXAMPLES = Study(
    name="cscr_examples",
    paper=PAPER,
    item="Figure 5",
    title="Some questions on which UMR, the plain contrastive router and CSCR disagree",
    cells=_examples,
    needs=NEEDS,
    rows="question",
    notes=("Drawn by the seed from all test questions on which they disagree.",),
)
