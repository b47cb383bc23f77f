"""Tables over encoders, pairs and configurations, from the winners of a zoo that was run.

Without a zoo the release's own embeddings are the one encoder, and the reference routers have
their default setting and one fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Bools, Floats
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.metrics.plateau import hard_subset, solvable
from routeyard.pipelines.studies.context import StudyContext
from routeyard.pipelines.studies.router_table import REFERENCE, measure_of
from routeyard.pipelines.studies.study import StudyCell, Unit
from routeyard.schemas.tables import RESULTS

#: Routers of the paper that learn nothing from labels, or look at no question.
BLIND = ("best-generalist", "random")
ALL = "all routers"
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
    found: dict[str, list[tuple[float, float | None, float | None]]] = {}
    for one in done.values():
        for row in one.metrics.to_pylist():
            if row["metric"] == metric and row["value"] is not None:
                found.setdefault(row["router"], []).append((row["value"], row["low"], row["high"]))
    out = {}
    for router, values in found.items():
        low, high = (_mean([value[end] for value in values]) for end in (1, 2))
        means = [value for value, _, _ in values]
        spread = float(np.std(means, ddof=1)) if len(means) > 1 else None
        out[router] = OverEncoders(float(np.mean(means)), spread, low, high)
    return out


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def _routers(context: StudyContext) -> list[str]:
    """Routers that chose, those of the references and the blind ones left out."""
    shown = dict.fromkeys(
        row["router"] for one in evaluations(context).values() for row in one.ranking
    )
    return [name for name in shown if name not in BLIND]


def table(context: StudyContext, metrics: Mapping[str, tuple[str, Unit]]) -> Sequence[StudyCell]:
    """Routers × metrics, mean over encoders; the interval is over test questions."""
    done, routers = evaluations(context), _routers(context)
    cells = []
    for metric, (heading, unit) in metrics.items():
        found = over_encoders(done, metric.replace("{measure}", measure_of(context)))
        for name in routers:
            one = found.get(name)
            if one is None:
                cells.append(StudyCell(name, heading, None, unit, note="not measured"))
                continue
            cells.append(StudyCell(name, heading, one.mean, unit, one.low, one.high))
            spread = "one encoder" if one.spread is None else None
            cells.append(
                StudyCell(name, f"{heading}, sd over encoders", one.spread, unit, note=spread)
            )
        best = sorted((found[name].mean for name in routers if name in found), reverse=True)[:5]
        apart = best[0] - best[-1] if len(best) == 5 else None
        short = None if apart is not None else "fewer than five routers"
        cells.append(StudyCell(TOP, heading, apart, unit, note=short))
    return cells


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


def hits(context: StudyContext) -> Hits:
    """Scores of the chosen answers, question by question."""
    done = evaluations(context)
    first = next(iter(done.values()))
    test = _test(context.core, context.default_scheme())
    place = {query: k for k, query in enumerate(test.query_ids)}
    total: dict[str, Floats] = {}
    for one in done.values():
        for row in _by_router(one.choices):
            router, asked, score = row
            sums = total.setdefault(router, np.zeros(test.n_queries))
            sums[[place[query] for query in asked]] += score / len(done)
    best = test.model_ids.index(first.facts["best_on_test"])
    decided = test.decided
    top = np.nanmax(np.where(np.isnan(test.labels), -np.inf, test.labels), axis=1)
    routers = {name: total[name] for name in _routers(context)}
    return Hits(routers, hard_subset(decided, best), solvable(decided), top)


def _test(core: Core, scheme: str) -> Core:
    return core.take(core.rows(scheme, "test")).labelled()


def _by_router(choices: pa.Table) -> list[tuple[str, list[str], Floats]]:
    names = choices.column("router").to_numpy(zero_copy_only=False)
    asked = choices.column("query_id").to_pylist()
    scores = choices.column("score").to_numpy(zero_copy_only=False).astype(np.float64)
    found = []
    for name in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == name)
        found.append((name, [asked[k] for k in rows], np.nan_to_num(scores[rows])))
    return found


def hard_and_easy(context: StudyContext) -> Sequence[StudyCell]:
    """Share of hard questions, and what the gap to the oracle is there and elsewhere."""
    of, hard, can, top = hits(context)
    easy = can & ~hard
    gap = np.mean([top - one for one in of.values()], axis=0)
    cells = [StudyCell(ALL, "f_hard", float(hard.mean()))]
    if not hard.any() or not easy.any():
        why = "the test questions are all of one kind"
        return [
            *cells,
            *(StudyCell(ALL, name, note=why) for name in ("spread", "gap hard", "gap easy")),
        ]
    on_hard = [float(one[hard].mean()) for one in of.values()]
    whole = float(gap[can].sum())
    per_router = [
        StudyCell(name, "gap hard", float((top - one)[hard].mean())) for name, one in of.items()
    ] + [StudyCell(name, "gap easy", float((top - one)[easy].mean())) for name, one in of.items()]
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


def exchange_over_pairs(context: StudyContext) -> Sequence[StudyCell]:
    """Range of disagreement over all pairs of routers, and medians of what they exchange."""
    routers, done = set(_routers(context)), evaluations(context)
    rows = [
        row
        for one in done.values()
        for row in one.exchanges.to_pylist()
        if {row["first"], row["second"]} <= routers
    ]
    if not rows:
        return [StudyCell("all pairs", "disagree from", note="fewer than two routers")]
    apart = [row["disagreement"] for row in rows]
    unsigned = _median(rows, "given_disagreement")
    signed = _median(rows, "signed_given_disagreement")
    found = {
        "disagree from": min(apart),
        "disagree to": max(apart),
        "acc gap": float(np.median([abs(row["signed"]) for row in rows])),
        "|ΔY|": unsigned,
        "|ΔY_signed|": signed,
        "ratio": unsigned / signed if unsigned is not None and signed else None,
    }
    cells = [StudyCell("all pairs", name, value) for name, value in found.items()]
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


def knn_against_trained(context: StudyContext) -> Sequence[StudyCell]:
    """BCE on train and accuracy on hard questions, of kNN and relative to it."""
    of, hard, _, _ = hits(context)
    cells = []
    if context.zoo is None:
        bce, why = {}, "needs the winners' scores on train: run through `routeyard reproduce`"
    else:
        on_train = context.once("zoo on train", context.zoo.on_train)
        bce = {name: one.mean for name, one in over_encoders(on_train, "bce").items()}
        why = "kNN gives no probabilities here"
    kept = {name: value for name, value in bce.items() if name in of}
    others = [value - bce["knn"] for name, value in kept.items() if name != "knn" and "knn" in bce]
    cells.append(StudyCell("kNN", "train BCE", bce.get("knn"), note=None if "knn" in bce else why))
    cells.append(StudyCell("kNN", "Δ from", min(others, default=None)))
    cells.append(StudyCell("kNN", "Δ to", max(others, default=None)))
    cells += [StudyCell(name, "train BCE", value) for name, value in kept.items() if name != "knn"]
    if "knn" not in of or not hard.any():
        return [*cells, StudyCell("kNN", "hard accuracy", note="no kNN, or no hard question")]
    on_hard = {name: float(one[hard].mean()) for name, one in of.items()}
    rest = [value - on_hard["knn"] for name, value in on_hard.items() if name != "knn"]
    return [
        *cells,
        StudyCell("kNN", "hard accuracy", on_hard["knn"]),
        StudyCell("kNN", "median Δ", float(np.median(rest)) if rest else None),
    ]


def encoder_spread(context: StudyContext) -> Sequence[StudyCell]:
    """Spread of each router's test accuracy over encoders, and the mean of it."""
    found = over_encoders(evaluations(context), "accuracy")
    cells = [
        StudyCell(
            name, "sd over encoders", found[name].spread, "points",
            note="one encoder" if found[name].spread is None else None,
        )
        for name in _routers(context)
    ]  # fmt: skip
    known = [cell.value for cell in cells if cell.value is not None]
    mean = float(np.mean(known)) if known else None
    return [*cells, StudyCell("mean of routers", "sd over encoders", mean, "points")]


def configurations(context: StudyContext) -> Sequence[StudyCell]:
    """How many configurations lie in the plateau: the top decile, and 0.02 below the best."""
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
        found = over_encoders(evaluations(context), "accuracy")
        return np.array(sorted(found[name].mean for name in _routers(context)))
    column = context.once("zoo cells", context.zoo.cells).column("test_accuracy")
    return np.sort(column.to_numpy(zero_copy_only=False))


def configuration_curves(context: StudyContext) -> pa.Table:
    """Test accuracy of every configuration in order, and the oracle's."""
    accuracy = _of_configurations(context)
    _, _, _, top = hits(context)
    series = {"configurations": accuracy, "oracle": np.full(len(accuracy), float(top.mean()))}
    return _curves((name, np.arange(1, len(ys) + 1), ys) for name, ys in series.items())


def _curves(series: object) -> pa.Table:
    rows = [
        {"series": name, "x": float(x), "y": float(y)}
        for name, xs, ys in series  # type: ignore[attr-defined]
        for x, y in zip(xs, ys, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=RESULTS["study_curves"])


def accuracy_and_cost(context: StudyContext) -> Sequence[StudyCell]:
    """Accuracy of every router, and its mean cost as a share of the dearest router's."""
    measure = measure_of(context)
    done = evaluations(context)
    accuracy, cost = over_encoders(done, "accuracy"), over_encoders(done, f"mean_cost[{measure}]")
    names = [*_routers(context), "best single", "oracle"]
    most = max((cost[name].mean for name in names if name in cost), default=0.0)
    cells = []
    for name in names:
        one = accuracy.get(name)
        if one is None:
            continue
        paid = cost[name].mean / most if name in cost and most > 0 else None
        note = None if paid is not None else "the release has no costs"
        cells.append(StudyCell(name, "accuracy", one.mean, "percent", one.low, one.high))
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
    return _curves(lines)
