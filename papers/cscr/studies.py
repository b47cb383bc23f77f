"""Studies of the cost-spectrum contrastive routing paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from routeyard.papers.reproduction import Stand
from routeyard.pipelines.common.arrays import Floats, Vectors, mean_costs
from routeyard.pipelines.common.matrix import Core, first_measure
from routeyard.pipelines.common.pool import OOD_GROUPS
from routeyard.pipelines.evaluate.held_out import newcomers, train_on_group
from routeyard.pipelines.evaluate.metrics.selection import scaled
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.run.mixing import always
from routeyard.pipelines.evaluate.studies.items import Columns, cells_of, curve_table, measure_of
from routeyard.pipelines.evaluate.studies.study import StudyCell, StudyContext, made
from routeyard.pipelines.routers.contrastive import bands_of, bank_of
from routeyard.pipelines.routers.listed import presets_of
from routeyard.schemas.errors import BadInput

# Descriptors where a release lacks them: labels on probes.

#: Probes of the paper (appendix D.1).
PROBES = 192
KIND = "right_on_probes"


def with_probes(stand: Stand) -> Stand:
    """The release with descriptors, where it is not the paper's data and lacks them.

    A model's descriptor is its labels on up to 192 validation questions, of unit norm: it has the
    paper's form and none of its meaning.
    """
    context = stand.context
    if not stand.unlike or context.core.descriptors:
        return stand
    made = replace(context, _evaluations={})
    described = {KIND: _labels_on_probes(context.core, context)}
    made.__dict__["core"] = replace(context.core, descriptors=described)
    difference = f"{stand.unlike}, with labels on probes for descriptors"
    return replace(stand, context=made, unlike=difference)


def _labels_on_probes(core: Core, context: StudyContext) -> Vectors:
    scheme = context.default_scheme()
    held = "validation" if np.any(core.splits[scheme] == "validation") else "train"
    rows = core.rows(scheme, held)
    drawn = np.sort(np.random.default_rng(context.seed).permutation(rows)[:PROBES])
    right = np.nan_to_num(core.labels[drawn]).T + 1e-6
    return np.asarray(right / np.linalg.norm(right, axis=1, keepdims=True), dtype=np.float32)


# Where choices fall on the spectrum of costs: shares of cost bands, similarity of descriptors.


def band_shares(core: Core, scheme: str, profile: Mapping[str, float], n: int = 5) -> Floats:
    """(n,) share of test questions that go to the models of each cost band (CSCR, Table 14).

    Args:
        profile: model → share of the questions it is asked.

    Raises:
        BadInput: no cost is known.
    """
    measure = first_measure(core.costs) or ""
    price = mean_costs(core.costs[measure][core.rows(scheme, "train")])
    band = bands_of(scaled(price), n)
    shares = np.array([profile[name] for name in core.model_ids])
    return np.asarray(np.bincount(band, weights=shares, minlength=n))


def descriptor_cosines(core: Core, kind: str | None = None) -> NDArray[np.float64]:
    """(m, m) cosines between the models' descriptors (CSCR, Figure 2); `kind` as in `bank_of`."""
    bank = bank_of(core.descriptors, core.model_ids, kind).astype(np.float64)
    return np.asarray(bank @ bank.T)


def at_peak(curve: Floats) -> float:
    """Mean cost at the highest accuracy of a deferral curve (k, 2), the cheapest of equals."""
    best = curve[:, 1].max()
    return float(curve[curve[:, 1] >= best - 1e-12, 0].min())


# Ablations of CSCR: descriptors, loss, bands, neighbours, penalty, temperatures, size.

#: Row → `router` and its settings.
Rows = Mapping[str, Mapping[str, Any]]
COLUMNS: Columns = {
    "audc[{measure}]": ("AUDC", "number"),
    "qnc[{measure}]": ("QNC", "number"),
    "peak_accuracy[{measure}]": ("peak accuracy", "percent"),
}


def _measured(context: StudyContext, rows: Rows) -> Evaluation:
    return context.measured({label: made(**setting) for label, setting in rows.items()})


def cells(context: StudyContext, rows: Rows) -> Sequence[StudyCell]:
    """Deferral columns of each row, and the mean cost at its peak."""
    done, measure = _measured(context, rows), measure_of(context)
    result = cells_of(done, COLUMNS, list(rows), measure)
    points = curve_table(done, "deferral", measure).to_pylist()
    for label in rows:
        own = np.array([[r["x"], r["y"]] for r in points if r["series"] == label])
        result.append(StudyCell(label, "cost at peak", at_peak(own), "number"))
    return result


def _settings(setting: str, values: Sequence[Any]) -> Rows:
    return {
        f"{setting}={value:g}": {"router": "cscr", "preset": "text", setting: value}
        for value in values
    }


def over(context: StudyContext, setting: str, values: Sequence[Any]) -> Sequence[StudyCell]:
    """CSCR with each value of one of its settings."""
    return cells(context, _settings(setting, values))


def curves(context: StudyContext, setting: str, values: Sequence[Any]) -> pa.Table:
    """Deferral curves of CSCR with each value of one of its settings."""
    done = _measured(context, _settings(setting, values))
    return curve_table(done, "deferral", measure_of(context))


def descriptors(context: StudyContext) -> Sequence[StudyCell]:
    """CSCR with each kind of descriptors that all models have, and with kinds mixed."""
    every = context.core.descriptors
    kinds = sorted(every)
    rows = [kind for kind in kinds if not np.isnan(every[kind]).any()]
    if len({every[kind].shape[1] for kind in kinds}) == 1 and len(kinds) > 1:
        rows.append("mixed")
    return cells(
        context, {kind: {"router": "cscr", "preset": "text", "descriptor": kind} for kind in rows}
    )


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
    return context.compared(makers, train_on_group(context.core, context.default_scheme(), STEM))


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
            cell, column=f"questions, {cell.column}", unit="count", low=None, high=None,
            value=None if cell.value is None else round(cell.value * n, 6),
        )
        for cell in cells
    ]  # fmt: skip


def new_prompts(context: StudyContext, columns: Columns) -> Sequence[StudyCell]:
    """Trained on STEM tasks and tested on all others; the questions of that split (Table 6)."""
    scheme = context.default_scheme()
    stem = train_on_group(context.core, scheme, STEM).splits[scheme]
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
        item, other = row["first"], row["second"]
        if "cscr" not in (item, other):
            continue
        sign = 1.0 if item == "cscr" else -1.0
        name = f"cscr − {other if item == 'cscr' else item}"
        if row["metric"] == f"audc[{measure}]":
            low, high = sorted((sign * row["low"], sign * row["high"]))
            cells += [
                StudyCell(name, "ΔAUDC", sign * row["difference"], "number", low, high),
                StudyCell(name, "p, bootstrap, Holm", row["p_adjusted"], "number"),
                StudyCell(name, "p, bootstrap, one-sided", _one_sided(row, sign)),
                StudyCell(name, "matched budget", float(np.median(grids[item] + grids[other]))),
            ]
        elif row["metric"] == f"mcnemar_as_published[{measure}]" and item == "cscr":
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
    names, result = context.core.model_ids, descriptor_cosines(context.core)
    return [
        StudyCell(a, b, float(result[i, j]), "number")
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
