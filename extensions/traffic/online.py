"""`routeyard zoo online`: bandits and a cascade over a stream, with arms that come and go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from routeyard.extensions.traffic.learners import (
    LEARNERS,
    Served,
    StreamOfArms,
    opened,
    orders,
    serve,
)
from routeyard.pipelines.common.arrays import Floats, Ints
from routeyard.pipelines.common.errors import BadInput, UnknownName, did_you_mean
from routeyard.pipelines.common.matrix import MEASURES, Core, first_measure

#: Leading principal directions of the questions' vectors that bandits see, and a constant.
DIRECTIONS = 32
#: Mean, and standard deviation over orders.
MeanSd = tuple[float, float]


@dataclass(frozen=True, slots=True)
class OnlineRow:
    """One router over the stream: means over orders with their standard deviation.

    Attributes:
        worth: Score less cost of a question, in right answers.
        regret_fixed, regret_oracle: Worth of the whole stream that it lacks against the best fixed
            arm of each period, and against the best arm of each question; negative: it has more.
        periods: Worth per question in each period.
    """

    name: str
    accuracy: MeanSd
    cost: MeanSd
    calls: MeanSd
    worth: MeanSd
    regret_fixed: MeanSd
    regret_oracle: MeanSd
    periods: tuple[float, ...]


@dataclass(frozen=True)
class OnlineReport:
    """Routers over a stream.

    Attributes:
        periods: Last question of each period, arms that are open, and the best fixed one (in the
            first order).
    """

    questions: int
    orders: int
    unit: str
    right_is_worth: float | None
    check_error: float
    periods: list[tuple[int, tuple[str, ...], str]]
    rows: list[OnlineRow]

    def data(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """The report for people."""
        cost = (
            "costs do not count"
            if self.right_is_worth is None
            else f"a right answer is worth {self.right_is_worth:g} {self.unit.split()[0]}"
        )
        yield f"{self.questions:,} questions in {self.orders} orders; {cost}"
        for end, arms, best in self.periods:
            yield f"until question {end:,}: {', '.join(arms)}; best fixed arm {best}"
        for one in self.rows:
            yield (
                f"{one.name:<16} accuracy {_shown(one.accuracy)}   cost {_shown(one.cost)}   "
                f"calls {_shown(one.calls)}   worth {_shown(one.worth)}   regret against the best "
                f"fixed arm {_shown(one.regret_fixed)}, against the oracle "
                f"{_shown(one.regret_oracle)}"
            )
        yield (
            "A cascade's check is the recorded label, wrong in a share of "
            f"{self.check_error:g} of the answers; a real check has its own cost."
        )


def online(
    release: Path,
    *,
    routers: Sequence[str] = (),
    encoder: str = "tfidf",
    worth: float | None = None,
    measure: str | None = None,
    appear: Mapping[str, float] | None = None,
    retire: Mapping[str, float] | None = None,
    check_error: float = 0.0,
    shuffles: int = 10,
    seed: int = 0,
    cache: Path,
) -> OnlineReport:
    """Serve a release's test questions one by one with routers that learn as they go.

    Args:
        worth: What a right answer is worth, in the unit of the cost; None: costs do not count.
        appear, retire: Arm → share of the stream after which it comes, or goes.
        check_error: Share of answers of which a cascade's check says the opposite of the label.

    Raises:
        BadInput: a cost is asked for and unknown, no question has all labels, an arm is unknown,
            or a share is not between 0 and 1.
        UnknownName: there is no such router.
    """
    from routeyard.flows.evaluation.released import read_release, vectors
    from routeyard.pipelines.common.matrix import core_of
    from routeyard.pipelines.evaluate.experiment import default_scheme

    for name in routers:
        if name not in LEARNERS:
            raise UnknownName(
                f"there is no online router {name!r}", next_step=did_you_mean(name, LEARNERS)
            )
    if worth is not None and not worth > 0:
        raise BadInput(f"a right answer worth {worth:g} is no price", next_step="give more than 0")
    if not 0 <= check_error <= 0.5:
        raise BadInput(f"{check_error:g} is no share of wrong checks, from 0 to 0.5")
    tables = read_release(release)
    core = core_of(tables.without("embeddings"))
    scheme = default_scheme(core, None)
    rows, cost, unit = _whole(core, measure, worth, scheme)
    found = vectors(tables, core, [encoder], scheme=scheme, cache=cache)[encoder]
    matrix = np.asarray(found, dtype=np.float64)
    features = _directions(matrix[core.rows(scheme, "train")], matrix[rows])
    labels = np.asarray(core.labels[rows], dtype=np.float64)
    right = labels >= 0.5 if core.correct is None else core.correct[rows] == 1
    open_arms = opened(len(rows), core.model_ids, appear or {}, retire or {})
    wrong = np.random.default_rng(seed).random(labels.shape) < check_error
    done: dict[str, list[dict[str, Any]]] = {}
    periods: list[tuple[int, tuple[str, ...], str]] = []
    for number, order in enumerate(orders(len(rows), shuffles, seed)):
        # The pool is listed best first: what a router is to learn would be known from the order.
        arms = np.random.default_rng([seed, number]).permutation(len(core.model_ids))
        at = np.ix_(order, arms)
        stream = StreamOfArms(
            features[order], labels[at], cost[at], open_arms[:, arms], (right ^ wrong)[at],
            price=0.0 if worth is None else 1 / worth,
        )  # fmt: skip
        periods = periods or _periods(stream, [core.model_ids[k] for k in arms])
        for name in routers or LEARNERS:
            learner = LEARNERS[name](len(arms), features.shape[1], seed + number)
            done.setdefault(name, []).append(_figures(stream, serve(stream, learner)))
        for name, ideal in (("best fixed", stream.best_fixed()), ("oracle", stream.oracle())):
            done.setdefault(name, []).append(_figures(stream, ideal))
    return OnlineReport(
        len(rows), shuffles, unit, worth, check_error, periods,
        [_row(name, figures) for name, figures in done.items()],
    )  # fmt: skip


def _whole(
    core: Core, measure: str | None, worth: float | None, scheme: str
) -> tuple[Ints, Floats, str]:
    """Test questions of which every label (and cost) is known, those costs and their unit."""
    name = first_measure(core.costs, measure)
    if name is None and worth is not None:
        raise BadInput(
            "the release knows no cost, and a right answer is to be weighed against it",
            next_step="give the pool prices, or leave out --worth",
        )
    rows = core.rows(scheme, "test")
    known = ~np.isnan(core.labels[rows]).any(axis=1)
    cost = np.zeros((len(rows), len(core.model_ids)))
    if name is not None:
        cost = np.asarray(core.costs[name], dtype=np.float64)[rows]
        known &= ~np.isnan(cost).any(axis=1)
    if not known.any():
        raise BadInput("no test question has a label and a cost of every model")
    return rows[known], cost[known], "" if name is None else MEASURES[name]


def _directions(train: Floats, asked: Floats) -> Floats:
    """(n, d) vectors on the leading directions of train questions, with a constant."""
    centre = train.mean(axis=0)
    _, _, axes = np.linalg.svd(train - centre, full_matrices=False)
    return np.column_stack(
        [(asked - centre) @ axes[:DIRECTIONS].T * np.sqrt(10.0), np.ones(len(asked))]
    )


def _periods(stream: StreamOfArms, names: Sequence[str]) -> list[tuple[int, tuple[str, ...], str]]:
    best = stream.best_fixed().choice
    return [
        (end, tuple(sorted(np.array(names)[stream.open[start]].tolist())), names[best[start]])
        for start, end in stream.periods()
    ]


def _figures(stream: StreamOfArms, served: Served) -> dict[str, Any]:
    """Figures of one order."""
    worth = served.worth(stream.price)
    return {
        "accuracy": served.score.mean(),
        "cost": served.cost.mean(),
        "calls": served.calls.mean(),
        "worth": worth.mean(),
        "regret_fixed": (stream.best_fixed().worth(stream.price) - worth).sum(),
        "regret_oracle": (stream.oracle().worth(stream.price) - worth).sum(),
        "periods": [worth[start:end].mean() for start, end in stream.periods()],
    }


def _row(name: str, found: list[dict[str, Any]]) -> OnlineRow:
    def spread(key: str) -> MeanSd:
        values = np.array([one[key] for one in found])
        return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0

    periods = np.array([one["periods"] for one in found]).mean(axis=0)
    return OnlineRow(
        name,
        accuracy=spread("accuracy"),
        cost=spread("cost"),
        calls=spread("calls"),
        worth=spread("worth"),
        regret_fixed=spread("regret_fixed"),
        regret_oracle=spread("regret_oracle"),
        periods=tuple(periods.tolist()),
    )


def _shown(value: MeanSd) -> str:
    return f"{value[0]:.4g} ± {value[1]:.2g}"


def shares(given: Sequence[str]) -> dict[str, float]:
    """`ARM=SHARE` each as arm → share.

    Raises:
        BadInput: a text has another form.
    """
    found = {}
    for text in given:
        name, _, share = text.rpartition("=")
        try:
            found[name] = float(share)
        except ValueError as error:
            raise BadInput(
                f"{text!r} is no arm and share", next_step="write ARM=SHARE, such as large=0.5"
            ) from error
    return found
