"""CSCR against its baselines: curves, new models, new prompts, significance, where it sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.papers.cscr.spectrum import band_shares, descriptor_cosines
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.task_groups import OOD_GROUPS
from routeyard.pipelines.evaluate.held_out import between, newcomers
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.run.mixing import always
from routeyard.pipelines.evaluate.studies.items import Columns, cells_of, curve_table, measure_of
from routeyard.pipelines.evaluate.studies.study import StudyCell, StudyContext
from routeyard.pipelines.routers.listed import presets_of

#: Tasks of the paper's Table 6, and of other catalogues of that kind.
STEM = (*OOD_GROUPS["stem"], *OOD_GROUPS["cscr-stem"])
#: The rows of Table 1; `contrastive` is Table 5's.
ROWS = ("umr", "thompson", "soft-moe", "parametric", "pareto-random", "random", "cscr")


def printed(name: str) -> str:
    """The router with the constants that the paper prints, where it prints any (appendix D.1)."""
    return f"{name}:text" if "text" in presets_of(name) else name


def _baselines(context: StudyContext) -> Evaluation:
    return context.compared({name: context.make(printed(name)) for name in context.able(ROWS)})


def _new_models(context: StudyContext) -> Evaluation:
    scheme = context.default_scheme()
    unseen = context.unseen
    makers = {
        name: partial(context.make(printed(name)), context.seed)
        for name in context.able([name for name in ROWS if name != "parametric"])
    }
    core, made = newcomers(context.core, scheme, unseen, makers)
    ours = {name: make for name, make in makers.items() if name == "cscr"}
    _, blind = newcomers(context.core, scheme, unseen, ours, labelled=False)
    every = {**made, **{f"{name}, descriptor alone": r for name, r in blind.items()}}
    return context.compared({name: always(router) for name, router in every.items()}, core)


def _new_prompts(context: StudyContext) -> Evaluation:
    makers = {name: context.make(printed(name)) for name in context.able(ROWS)}
    return context.compared(makers, between(context.core, context.default_scheme(), STEM))


_MADE = {"baselines": _baselines, "new models": _new_models, "new prompts": _new_prompts}


def _evaluation(context: StudyContext, of: str) -> Evaluation:
    return context.once(("cscr", of), lambda: _MADE[of](context))


def evaluated(context: StudyContext, of: str, columns: Columns) -> Sequence[StudyCell]:
    """Columns of one of the evaluations of CSCR: all routers and the oracle."""
    done = _evaluation(context, of)
    rows = dict.fromkeys(row["router"] for row in done.profiles.to_pylist())
    wanted = [name for name in rows if name != "task oracle"]
    return cells_of(done, columns, wanted, measure_of(context))


def outcomes(context: StudyContext, columns: Columns) -> Sequence[StudyCell]:
    """Outcomes of routing as shares of the test questions, and as how many."""
    cells = list(evaluated(context, "baselines", columns))
    n = _evaluation(context, "baselines").facts["n_test"]
    return cells + [
        replace(
            one, column=f"questions, {one.column}", unit="count", low=None, high=None,
            value=None if one.value is None else round(one.value * n, 6),
        )
        for one in cells
    ]  # fmt: skip


def new_prompts(context: StudyContext, columns: Columns) -> Sequence[StudyCell]:
    """Trained on STEM tasks and tested on all others; the questions of that split (Table 6)."""
    scheme = context.default_scheme()
    stem = between(context.core, scheme, STEM).splits[scheme]
    every = context.core.splits[scheme]
    sizes = {
        "STEM train": np.sum(stem == "train"),
        "all train": np.sum(every == "train"),
        "other test": np.sum(stem == "test"),
    }
    counts = [StudyCell(name, "questions", float(n), "count") for name, n in sizes.items()]
    return [*evaluated(context, "new prompts", columns), *counts]


def evaluated_curves(context: StudyContext, of: str) -> pa.Table:
    """Deferral curves of one of the evaluations of CSCR."""
    return curve_table(_evaluation(context, of), "deferral", measure_of(context))


def significance(context: StudyContext) -> Sequence[StudyCell]:
    if "cscr" not in context.able(ROWS):
        raise BadInput(
            "cscr is compared with other routers, and is not among those asked for",
            where=f"--router {' --router '.join(context.routers)}",
            next_step="add --router cscr",
        )
    done, measure = _evaluation(context, "baselines"), measure_of(context)
    grids: dict[str, list[float]] = {}
    for row in curve_table(done, "deferral", measure).to_pylist():
        grids.setdefault(row["series"], []).append(row["x"])
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
                StudyCell(name, "p, bootstrap, one-sided", _one_sided(row, sign)),
                StudyCell(name, "matched budget", float(np.median(grids[one] + grids[other]))),
            ]
        elif row["metric"] == f"mcnemar_as_published[{measure}]" and one == "cscr":
            cells += [
                StudyCell(name, "n10", row["n10"], "count"),
                StudyCell(name, "n01", row["n01"], "count"),
                StudyCell(name, "p, McNemar", row["p"], "number"),
            ]
    return cells


def _one_sided(row: Mapping[str, Any], sign: float) -> float:
    """Of a two-sided p-value, that of a difference above 0."""
    half: float = row["p"] / 2
    return half if sign * row["difference"] > 0 else 1 - half


def bands(context: StudyContext) -> Sequence[StudyCell]:
    done = _evaluation(context, "baselines")
    cells = []
    for name in context.able(ROWS):
        profile = {
            r["model_id"]: r["share"] for r in done.profiles.to_pylist() if r["router"] == name
        }
        shares = band_shares(context.core, context.default_scheme(), profile)
        cells += [StudyCell(name, f"band {k}", float(v), "percent") for k, v in enumerate(shares)]
        n = done.facts["n_test"]
        cells += [
            StudyCell(name, f"questions of band {k}", round(float(v) * n), "count")
            for k, v in enumerate(shares)
        ]
    return cells


def similar(context: StudyContext) -> Sequence[StudyCell]:
    names, found = context.core.model_ids, descriptor_cosines(context.core)
    return [
        StudyCell(a, b, float(found[i, j]), "number")
        for i, a in enumerate(names)
        for j, b in enumerate(names)
    ]


def examples(context: StudyContext) -> Sequence[StudyCell]:
    names = context.able(("umr", "contrastive", "cscr"))
    done = context.compared({name: context.make(printed(name)) for name in names})
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
