"""Studies of Nine-by-30k and the routing plateau."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from routeyard.extensions.tuning.training import REFERENCE_ROUTER
from routeyard.pipelines.common.arrays import Bools, Floats
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval
from routeyard.pipelines.evaluate.metrics.selection import hard_subset, solvable
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.studies.items import REFERENCE, lines_table, measure_of
from routeyard.pipelines.evaluate.studies.study import (
    StudyCell,
    StudyContext,
    Unit,
    runs_of,
    split_of,
)

# Tables over encoders, pairs and configurations, from the winners of a zoo that was run.
#
# Without a zoo the release's own embeddings are the one encoder, and the reference routers have
# their default setting and one fit.

#: Routers of the paper that learn nothing from labels, or look at no question.
BLIND = ("best-generalist", "random")
TOP = "spread of the top five"


def evaluations(context: StudyContext) -> Mapping[str, Evaluation]:
    """Encoder → evaluation of the routers with it."""
    if context.zoo is not None:
        return context.once("zoo", context.zoo.by_encoder)
    return {"": context.evaluation(REFERENCE)}


class OverEncoders(NamedTuple):
    """A router's metric over encoders: mean, spread between them, mean ends of intervals."""

    mean: float
    spread: float | None
    low: float | None
    high: float | None


def over_encoders(done: Mapping[str, Evaluation], metric: str) -> dict[str, OverEncoders]:
    """Router → its metric over encoders; routers that no encoder could feed are left out."""
    result: dict[str, list[tuple[float, float | None, float | None]]] = {}
    for item in done.values():
        for row in item.metrics.to_pylist():
            if row["metric"] == metric and row["value"] is not None:
                result.setdefault(row["router"], []).append((row["value"], row["low"], row["high"]))
    out = {}
    for router, values in result.items():
        low, high = (_over_encoders_mean([value[end] for value in values]) for end in (1, 2))
        means = [value for value, _, _ in values]
        spread = float(np.std(means, ddof=1)) if len(means) > 1 else None
        out[router] = OverEncoders(float(np.mean(means)), spread, low, high)
    return out


def _over_encoders_mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def routers_of(context: StudyContext) -> list[str]:
    """Routers that chose, those of the references and the blind ones left out."""
    shown = dict.fromkeys(
        row["router"] for evaluation in evaluations(context).values() for row in evaluation.ranking
    )
    return [name for name in shown if name not in BLIND]


def table(context: StudyContext, metrics: Mapping[str, tuple[str, Unit]]) -> Sequence[StudyCell]:
    """Routers × metrics, mean over encoders; the interval is over test questions."""
    done, routers = evaluations(context), routers_of(context)
    cells = []
    for metric, (heading, unit) in metrics.items():
        result = over_encoders(done, metric.replace("{measure}", measure_of(context)))
        for name in routers:
            item = result.get(name)
            if item is None:
                why = _why_not(done, name, metric.replace("{measure}", measure_of(context)))
                cells.append(StudyCell(name, heading, None, unit, note=why))
                continue
            cells.append(StudyCell(name, heading, item.mean, unit, item.low, item.high))
            spread = "one encoder" if item.spread is None else None
            cells.append(
                StudyCell(name, f"{heading}, sd over encoders", item.spread, unit, note=spread)
            )
        best = sorted((result[name].mean for name in routers if name in result), reverse=True)[:5]
        apart = best[0] - best[-1] if len(best) == 5 else None
        short = None if apart is not None else "fewer than five routers"
        cells.append(StudyCell(TOP, heading, apart, unit, note=short))
    return cells


def _why_not(done: Mapping[str, Evaluation], router: str, metric: str) -> str:
    """Why a metric of a router is not known with any encoder."""
    for item in done.values():
        for row in item.metrics.to_pylist():
            if row["router"] == router and row["metric"] == metric and row["reason"]:
                return str(row["reason"])
    return "not measured"


def exchange_over_pairs(context: StudyContext) -> Sequence[StudyCell]:
    """Range of disagreement over all pairs of routers, and medians of what they exchange."""
    routers, done = set(routers_of(context)), evaluations(context)
    rows = [
        row
        for item in done.values()
        for row in item.exchanges.to_pylist()
        if {row["first"], row["second"]} <= routers
    ]
    if not rows:
        return [StudyCell("all pairs", "disagree from", note="fewer than two routers")]
    apart = [row["disagreement"] for row in rows]
    unsigned = _median(rows, "given_disagreement")
    signed = _median(rows, "signed_given_disagreement")
    result = {
        "disagree from": min(apart),
        "disagree to": max(apart),
        "acc gap": float(np.median([abs(row["signed"]) for row in rows])),
        "|ΔY|": unsigned,
        "|ΔY_signed|": signed,
        "ratio": unsigned / signed if unsigned is not None and signed else None,
    }
    cells = [StudyCell("all pairs", name, value) for name, value in result.items()]
    return [
        *cells,
        StudyCell("all pairs", "pairs", float(len(rows)), "count"),
        *(
            cell
            for row in next(iter(done.values())).exchanges.to_pylist()
            for cell in _of_pair(row)
        ),
    ]


def _of_pair(row: Mapping[str, Any]) -> Sequence[StudyCell]:
    """What one pair of routers exchanges, with the first encoder."""
    name = f"{row['first']} / {row['second']}"
    moved = row["given_disagreement"]
    return [
        StudyCell(name, "disagreement", row["disagreement"], "percent"),
        StudyCell(name, "acc gap", abs(row["signed"])),
        StudyCell(name, "|ΔY|", moved, note=None if moved is not None else "they never disagree"),
        StudyCell(name, "|ΔY_signed|", row["signed_given_disagreement"]),
    ]


def _median(rows: Sequence[Mapping[str, float]], column: str) -> float | None:
    values = [row[column] for row in rows if row[column] is not None]
    return float(np.median(values)) if values else None


def encoder_spread(context: StudyContext) -> Sequence[StudyCell]:
    """Spread of each router's test accuracy over encoders, and the mean of it."""
    result = over_encoders(evaluations(context), "accuracy")
    cells = [
        StudyCell(
            name, "sd over encoders", result[name].spread, "points",
            note="one encoder" if result[name].spread is None else None,
        )
        for name in routers_of(context)
    ]  # fmt: skip
    known = [cell.value for cell in cells if cell.value is not None]
    mean = float(np.mean(known)) if known else None
    return [*cells, StudyCell("mean of routers", "sd over encoders", mean, "points")]


# What routers do on hard questions and on easy ones (sections 5.1 and 5.3).

ALL = "all routers"


class Hits(NamedTuple):
    """What routers scored on test questions.

    Attributes:
        of: Router → (n,) score of the chosen answer, mean over encoders.
        hard, can: (n,) hard, and solvable, questions (section 5.1).
        top: (n,) score of the best answer.
    """

    of: dict[str, Floats]
    hard: Bools
    can: Bools
    top: Floats


def hard_questions_hits(context: StudyContext) -> Hits:
    """Scores of the chosen answers, question by question."""
    done = evaluations(context)
    first = next(iter(done.values()))
    test = _test(context.core, context.default_scheme())
    place = {query: k for k, query in enumerate(test.query_ids)}
    each: dict[str, list[Floats]] = {}  # an encoder that could not feed a router is not in its mean
    for item in done.values():
        for router, asked, score in _by_router(item.choices):
            own = np.zeros(test.n_queries)
            own[[place[query] for query in asked]] = score
            each.setdefault(router, []).append(own)
    best = test.model_ids.index(first.facts["best_on_test"])
    decided = test.decided
    top = np.nanmax(np.where(np.isnan(test.labels), -np.inf, test.labels), axis=1)
    routers = {name: np.mean(each[name], axis=0) for name in routers_of(context)}
    return Hits(routers, hard_subset(decided, best), solvable(decided), top)


def _test(core: Core, scheme: str) -> Core:
    return core.take(core.rows(scheme, "test")).labelled()


def _by_router(choices: pa.Table) -> list[tuple[str, list[str], Floats]]:
    names = choices.column("router").to_numpy(zero_copy_only=False)
    asked = choices.column("query_id").to_pylist()
    scores = choices.column("score").to_numpy(zero_copy_only=False).astype(np.float64)
    router = []
    for name in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == name)
        router.append((name, [asked[k] for k in rows], np.nan_to_num(scores[rows])))
    return router


def hard_and_easy(context: StudyContext) -> Sequence[StudyCell]:
    """Share of hard questions, and what the gap to the oracle is there and elsewhere."""
    of, hard, can, top = hard_questions_hits(context)
    easy = can & ~hard
    gap = np.mean([top - item for item in of.values()], axis=0)
    cells = [StudyCell(ALL, "f_hard", float(hard.mean()))]
    if not hard.any() or not easy.any():
        why = "the test questions are all of one kind"
        rest = ("spread", "gap hard", "gap easy", "ratio", "share of gap on hard")
        return [*cells, *(StudyCell(ALL, name, note=why) for name in rest)]
    on_hard = [float(item[hard].mean()) for item in of.values()]
    whole = float(gap[can].sum())
    per_router = [
        StudyCell(name, "gap hard", float((top - item)[hard].mean())) for name, item in of.items()
    ] + [StudyCell(name, "gap easy", float((top - item)[easy].mean())) for name, item in of.items()]
    hard_gap, easy_gap = float(gap[hard].mean()), float(gap[easy].mean())
    return [
        *cells,
        StudyCell(ALL, "spread", max(on_hard) - min(on_hard)),
        StudyCell(ALL, "gap hard", hard_gap),
        StudyCell(ALL, "gap easy", easy_gap),
        StudyCell(ALL, "ratio", hard_gap / easy_gap if easy_gap else None),
        StudyCell(ALL, "share of gap on hard", float(gap[hard].sum()) / whole, "percent"),
        *per_router,
    ]


def _train_bce(context: StudyContext) -> dict[str, float]:
    """Router → cross-entropy on train, mean over encoders; empty where no zoo was run."""
    if context.zoo is None:
        return {}
    result: dict[str, list[float]] = {}
    for by_router in context.once("zoo on train", context.zoo.on_train).values():
        for name, value in by_router.items():
            result.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in result.items()}


def knn_against_trained(context: StudyContext) -> Sequence[StudyCell]:
    """BCE on train and accuracy on hard questions, of kNN and relative to it."""
    of, hard, _, _ = hard_questions_hits(context)
    cells: list[StudyCell] = []
    bce = _train_bce(context)
    why = "kNN gives no probabilities here"
    if context.zoo is None:
        why = "needs the winners' scores on train: run through `routeyard reproduce`"
    loss = {name: value for name, value in bce.items() if name in of}
    others = [value - bce["knn"] for name, value in loss.items() if name != "knn" and "knn" in bce]
    cells.append(StudyCell("kNN", "train BCE", bce.get("knn"), note=None if "knn" in bce else why))
    cells.append(StudyCell("kNN", "Δ from", min(others, default=None)))
    cells.append(StudyCell("kNN", "Δ to", max(others, default=None)))
    cells += [StudyCell(name, "train BCE", value) for name, value in loss.items() if name != "knn"]
    if "knn" not in of or not hard.any():
        why = "no kNN, or no hard question"
        return [*cells, *(StudyCell("kNN", n, note=why) for n in ("hard accuracy", "median Δ"))]
    on_hard = {name: float(item[hard].mean()) for name, item in of.items()}
    rest = [value - on_hard["knn"] for name, value in on_hard.items() if name != "knn"]
    return [
        *cells,
        StudyCell("kNN", "hard accuracy", on_hard["knn"]),
        StudyCell("kNN", "median Δ", float(np.median(rest)) if rest else None),
    ]


# The plateau drawn: every configuration in order, and accuracy against cost (Figures 1 and 2).


def configurations(context: StudyContext) -> Sequence[StudyCell]:
    """How many configurations are in the plateau: the top decile, and 0.02 below the best."""
    accuracy = _of_configurations(context)
    cells = [StudyCell("configurations", "number", float(len(accuracy)), "count")]
    if len(accuracy):
        best = float(accuracy.max())
        near = float((accuracy >= best - 0.02).mean())
        cells += [
            StudyCell("best", "accuracy", best, "percent"),
            StudyCell("top decile", "accuracy", float(np.quantile(accuracy, 0.9)), "percent"),
            StudyCell("within 0.02 of the best", "share", near, "percent"),
        ]
    return cells


def _of_configurations(context: StudyContext) -> Floats:
    if context.zoo is None:
        result = over_encoders(evaluations(context), "accuracy")
        return np.array(sorted(result[name].mean for name in routers_of(context)))
    column = context.once("zoo cells", context.zoo.cells).column("test_accuracy")
    return np.sort(column.to_numpy(zero_copy_only=False))


def configuration_curves(context: StudyContext) -> pa.Table:
    """Test accuracy of every configuration in order, and the oracle's."""
    accuracy = _of_configurations(context)
    _, _, _, top = hard_questions_hits(context)
    series = {"configurations": accuracy, "oracle": np.full(len(accuracy), float(top.mean()))}
    return lines_table((name, np.arange(1, len(ys) + 1), ys) for name, ys in series.items())


def accuracy_and_cost(context: StudyContext) -> Sequence[StudyCell]:
    """Accuracy of every router, and its mean cost as a share of the dearest router's."""
    measure = measure_of(context)
    done = evaluations(context)
    accuracy, cost = over_encoders(done, "accuracy"), over_encoders(done, f"mean_cost[{measure}]")
    names = [*routers_of(context), "best single", "oracle"]
    most = max((cost[name].mean for name in names if name in cost), default=0.0)
    cells = []
    for name in names:
        item = accuracy.get(name)
        if item is None:
            continue
        paid = cost[name].mean / most if name in cost and most > 0 else None
        note = None if paid is not None else "the release has no costs"
        cells.append(StudyCell(name, "accuracy", item.mean, "percent", item.low, item.high))
        cells.append(StudyCell(name, "normalised cost", paid, note=note))
    return cells


def plateau_curve(context: StudyContext) -> pa.Table:
    """Accuracy of every router against its normalised cost; by rank where no cost is known."""
    cells = accuracy_and_cost(context)
    accuracy = {c.row: c.value for c in cells if c.column == "accuracy" and c.value is not None}
    cost = {c.row: c.value for c in cells if c.column == "normalised cost" and c.value is not None}
    routers = sorted(set(accuracy) - {"best single", "oracle"}, key=lambda n: (accuracy[n], n))
    x = cost if set(routers) <= set(cost) else {n: k + 1.0 for k, n in enumerate(routers)}
    routers.sort(key=lambda name: x[name])
    ends = [min(x.values(), default=0.0), max(x.values(), default=1.0)]
    lines = [("routers", [x[n] for n in routers], [accuracy[n] for n in routers])]
    lines += [
        (name, ends, [accuracy[name]] * 2) for name in ("best single", "oracle") if name in accuracy
    ]
    return lines_table(lines)


# Which models routers ask: shares of all questions and of hard ones (Figures 4 and 6 to 9).


def shares(context: StudyContext, columns: Mapping[str, str]) -> Sequence[StudyCell]:
    """Share of questions that each router sends to each model, mean over encoders.

    Args:
        columns: Share of a profile → what its rows are called behind the router's name.
    """
    done = evaluations(context)
    each: dict[tuple[str, str], list[float]] = {}
    for item in done.values():
        for row in item.profiles.to_pylist():
            for column, called in columns.items():
                if row[column] is not None:
                    place = (row["router"] + called, row["model_id"])
                    each.setdefault(place, []).append(row[column])
    share = {place: float(np.mean(result)) for place, result in each.items()}
    rows = sorted({row for row, _ in share}, key=lambda row: (not row.startswith("oracle"), row))
    first = rows[0] if rows else ""
    models = sorted({model for _, model in share}, key=lambda m: (-share.get((first, m), 0.0), m))
    return [StudyCell(r, m, share.get((r, m), 0.0), "percent") for r in rows for m in models]


#: (parameters of the encoder, its name, train questions, tuned)
Place = tuple[int, str, int, bool]


def tuning_hits(
    context: StudyContext, tables: Mapping[str, pa.Table]
) -> dict[str, dict[Place, Floats]]:
    """Router → place → (n,) label of the model it asks on each test question, mean over seeds."""
    runs = runs_of(context, tables)
    assert runs is not None
    core, scheme = split_of(context, tables)
    test = core.rows(scheme, "test")
    labels = core.labels[test][~np.all(np.isnan(core.labels[test]), axis=1)]
    ids = [core.query_ids[r] for r in test if not np.all(np.isnan(core.labels[r]))]
    at = {q: k for k, q in enumerate(ids)}
    column = {m: k for k, m in enumerate(core.model_ids)}
    total: dict[str, dict[Place, Floats]] = {}
    seeds: dict[tuple[str, Place], set[int]] = {}
    for row in runs.to_pylist():
        place = (row["parameters"], row["encoder"], row["train_rows"], row["tuned"])
        sums = total.setdefault(row["router"], {}).setdefault(place, np.zeros(len(ids)))
        sums[at[row["query_id"]]] += labels[at[row["query_id"]], column[row["model_id"]]]
        seeds.setdefault((row["router"], place), set()).add(row["seed"])
    return {
        router: {p: v / len(seeds[router, p]) for p, v in sorted(places.items())}
        for router, places in total.items()
    }


def _common(hits: Mapping[str, Mapping[Place, Floats]]) -> tuple[list[str], list[Place]]:
    """Routers that learn and have every place, and the places, the plainest first.

    Where no router has every place: all that learn, and the places that all of them have.
    """
    learn = sorted(name for name in hits if name != REFERENCE_ROUTER)
    places = set().union(*(hits[name] for name in learn))
    routers = [name for name in learn if places <= set(hits[name])]
    if not routers:
        routers = learn
        places = set.intersection(*(set(hits[name]) for name in learn)) if learn else set()
    return routers, sorted(places, key=lambda p: (p[3], p[2], p[0], p[1]))


def _named(place: Place) -> str:
    _, encoder, rows, tuned = place
    short = encoder.rstrip("/").rpartition("/")[2]
    return f"{rows:,}, {'tuned' if tuned else 'frozen'}, {short}"


def _tuning_mean(
    context: StudyContext, values: Floats, row: str, column: str, points: bool = False
) -> StudyCell:
    """A mean over test questions with its interval; a difference in points."""
    replicates = Draws(len(values), context.resamples, context.seed).means(values[:, None])[:, 0]
    low, high = interval(replicates)
    unit: Literal["points", "percent"] = "points" if points else "percent"
    return StudyCell(row, column, float(values.mean()), unit, low, high)


def ablation(context: StudyContext) -> Sequence[StudyCell]:
    result = tuning_hits(context, context.tables)
    routers, places = _common(result)
    cells = []
    means = {p: np.mean([result[name][p] for name in routers], axis=0) for p in places}
    for place in places:
        cells.append(_tuning_mean(context, means[place], _named(place), "mean accuracy"))
        if place == places[0]:
            cells.append(StudyCell(_named(place), "Δ", None, "points", note="the baseline"))
        else:
            gain = means[place] - means[places[0]]
            cells.append(_tuning_mean(context, gain, _named(place), "Δ", points=True))
        cells.append(StudyCell(_named(place), "routers", float(len(routers)), "count"))
    return cells


def gains(context: StudyContext) -> Sequence[StudyCell]:
    cells = []
    for name, places in tuning_hits(context, context.tables).items():
        order = sorted(places, key=lambda p: (p[3], p[2], p[0], p[1]))
        first, last = places[order[0]], places[order[-1]]
        cells.append(_tuning_mean(context, first, name, "baseline"))
        cells.append(_tuning_mean(context, last, name, "scaled"))
        cells.append(_tuning_mean(context, last - first, name, "gain", points=True))
        cells.append(StudyCell(name, "scaled is", text=_named(order[-1])))
    return cells


def across(context: StudyContext) -> Sequence[StudyCell]:
    every = {context.release: context.tables, **context.joined, **context.tested}
    cells = []
    for name, tables in every.items():
        rows = runs_of(context, tables)
        if rows is None or not rows.num_rows:
            cells.append(StudyCell(name, "best tuned", None, "percent", note="not measured"))
            continue
        result = tuning_hits(context, tables)
        routers, places = _common(result)
        most = max(p[2] for p in places)
        best: tuple[Floats, str] | None = None
        for place in [p for p in places if p[2] == most]:
            how, short = _named(place).split(", ")[1:]
            mean = np.mean([result[r][place] for r in routers], axis=0)
            cells.append(_tuning_mean(context, mean, name, f"{how} {short}"))
            for router in routers if place[3] else ():
                item = result[router][place]
                if best is None or item.mean() > best[0].mean():
                    best = (item, f"{router}, {short}")
        knn = [v for p, v in result.get(REFERENCE_ROUTER, {}).items() if p[2] == most]
        if best is not None:
            cells.append(_tuning_mean(context, best[0], name, "best tuned"))
            cells.append(StudyCell(name, "which", text=best[1]))
        if best is not None and knn:
            near = max(knn, key=lambda v: float(v.mean()))
            cells.append(_tuning_mean(context, near, name, "best frozen kNN"))
            cells.append(_tuning_mean(context, best[0] - near, name, "Δ", points=True))
    return cells
