"""`routeyard zoo online`: bandits and a cascade over a stream, with arms that come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from routeyard.pipelines.common.arrays import Bools, Floats, Ints, Vectors
from routeyard.pipelines.common.matrix import MEASURES, Core, core_of, first_measure
from routeyard.pipelines.routers.linear import LinearArms
from routeyard.schemas.errors import BadInput, UnknownName, did_you_mean

# Routers that learn from the answers they asked for: bandits, and a cascade with a check.


class Learner(Protocol):
    """A router over a stream of m arms, of which some are open at a time."""

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        """The arm to ask; None to keep the last answer.

        Args:
            x: (d,) features of the question.
            open_arms: Numbers of the arms that can be asked now.
            asked: (arm, whether the check accepted its answer) of this question so far; none at
                first, when an arm has to be given.
        """

    def learn(self, x: Floats, arm: int, right: float, cost: float) -> None:
        """What one answer was worth: its score, and its cost in units of a right answer."""


class Uniform:
    """Any open arm, with the same chance."""

    def __init__(self, arms: int, features: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        return None if asked else int(self._random.choice(open_arms))

    def learn(self, x: Floats, arm: int, right: float, cost: float) -> None:
        pass


class _Means:
    """Answers, scores and costs of each arm so far."""

    def __init__(self, arms: int) -> None:
        self.count, self.right, self.cost = np.zeros(arms), np.zeros(arms), np.zeros(arms)

    def learn(self, x: Floats, arm: int, right: float, cost: float) -> None:
        self.count[arm] += 1
        self.right[arm] += right
        self.cost[arm] += cost

    def mean_cost(self) -> Floats:
        """(m,) mean cost; of arms that were not asked, 0: they are tried."""
        return np.asarray(self.cost / np.maximum(self.count, 1))


class EpsilonGreedy(_Means):
    """The open arm of the best mean so far; with chance ε_t = min(1, 5m/t) any (Auer et al. 2002,
    with their c/d² taken as 5)."""

    def __init__(self, arms: int, features: int, seed: int) -> None:
        super().__init__(arms)
        self._random, self._step = np.random.default_rng(seed), 0

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        if asked:
            return None
        self._step += 1
        # An arm that has just appeared has no mean: it is tried first.
        new = open_arms[self.count[open_arms] == 0]
        if len(new):
            return int(self._random.choice(new))
        if self._random.random() < min(1.0, 5 * len(open_arms) / self._step):
            return int(self._random.choice(open_arms))
        mean = self.right / np.maximum(self.count, 1) - self.mean_cost()
        return int(open_arms[np.argmax(mean[open_arms])])


class BetaBandit(_Means):
    """Beta(1 + hits, 1 + misses) of each open arm, drawn anew, less mean cost (Thompson 1933)."""

    def __init__(self, arms: int, features: int, seed: int) -> None:
        super().__init__(arms)
        self._random = np.random.default_rng(seed)

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        if asked:
            return None
        hits = self.right[open_arms]
        drawn = self._random.beta(1 + hits, 1 + self.count[open_arms] - hits)
        return int(open_arms[np.argmax(drawn - self.mean_cost()[open_arms])])


class LinUcb:
    """Disjoint LinUCB on the question's features (Li et al., WWW 2010); rewards less costs."""

    def __init__(self, arms: int, features: int, seed: int) -> None:
        self._arms = LinearArms(arms, features)
        # Arms that were never chosen have one bound: they are tried in a drawn order.
        self._order = np.random.default_rng(seed).permutation(arms)

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        if asked:
            return None
        order = self._order[np.isin(self._order, open_arms)]
        return int(order[np.argmax(self._arms.bounds(x, ALPHA)[order])])

    def learn(self, x: Floats, arm: int, right: float, cost: float) -> None:
        self._arms.learn(x, arm, right - cost)


class CheckedCascade(_Means):
    """Open arms from cheap to dear until the check accepts an answer.

    A further arm is asked only where the chance that it is right, Beta(1, 1) before it was ever
    asked, is worth more than its cost. Arms whose cost is unknown are tried when they appear.
    """

    def __init__(self, arms: int, features: int, seed: int) -> None:
        super().__init__(arms)

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        if asked and asked[-1][1]:
            return None
        tried = {arm for arm, _ in asked}
        cost, chance = self.mean_cost(), (1 + self.right) / (2 + self.count)
        left = [arm for arm in open_arms.tolist() if arm not in tried]
        worth = [arm for arm in left if not asked or chance[arm] > cost[arm]]
        return min(worth, key=lambda arm: (cost[arm], arm), default=None)


#: Weight of LinUCB's uncertainty. With 1 an arm that was never asked has a bound of at least 1, the
#: best there is (features hold a constant): one that appears is tried.
ALPHA = 1.0
#: Name → (number of arms, number of features, seed) → learner.
LEARNERS: dict[str, Callable[[int, int, int], Learner]] = {
    "random": Uniform,
    "epsilon-greedy": EpsilonGreedy,
    "thompson": BetaBandit,
    "linucb": LinUcb,
    "cascade": CheckedCascade,
}


# A stream of questions, answered one by one by a router that sees only what it asked for.


@dataclass(frozen=True, eq=False)
class StreamOfArms:
    """n questions in the order they come, and m arms.

    Attributes:
        features: (n, d).
        right: (n, m) scores of all answers, of which a router sees those it asks for.
        cost: (n, m) costs of all answers.
        open: (n, m) which arms can be asked when a question comes; at least one.
        accepted: (n, m) what a check says of each answer.
        price: Right answers that a unit of cost is worth; 0 where costs do not count.
    """

    features: Floats
    right: Floats
    cost: Floats
    open: Bools
    accepted: Bools
    price: float = 0.0

    @property
    def worth(self) -> Floats:
        """(n, m) score less cost of each arm that is open, in right answers; −∞ of the others."""
        return np.where(self.open, self.right - self.price * self.cost, -np.inf)

    def periods(self) -> list[tuple[int, int]]:
        """(first question, one past the last) of stretches in which the same arms are open."""
        changed = np.flatnonzero((self.open[1:] != self.open[:-1]).any(axis=1)) + 1
        edges = [0, *changed.tolist(), len(self.open)]
        return list(pairwise(edges))

    def best_fixed(self) -> Served:
        """The best single arm of each period, known in hindsight.

        With arms that come and go no single arm is always there: the comparator is the one that a
        person who knew each period's mean would have set for it.
        """
        worth = self.worth
        arms = [np.argmax(worth[start:end].sum(axis=0)) for start, end in self.periods()]
        lengths = [end - start for start, end in self.periods()]
        return self._always(np.repeat(arms, lengths))

    def oracle(self) -> Served:
        """The best open arm of each question."""
        return self._always(np.argmax(self.worth, axis=1))

    def _always(self, choice: Ints) -> Served:
        rows = np.arange(len(choice))
        values = np.ones(len(choice), np.int64)
        return Served(choice, values, self.right[rows, choice], self.cost[rows, choice])


@dataclass(frozen=True, eq=False)
class Served:
    """What a router did with a stream.

    Attributes:
        choice: (n,) arm whose answer was given.
        calls: (n,) answers that were asked for, all of them paid.
        score, cost: (n,) score of the given answer, and cost of all.
    """

    choice: Ints
    calls: Ints
    score: Floats
    cost: Floats

    def worth(self, price: float) -> Floats:
        """(n,) score less cost, in right answers."""
        return np.asarray(self.score - price * self.cost)


def serve(stream: StreamOfArms, learner: Learner) -> Served:
    """Give every question to the router, step by step, in order.

    It asks an arm, hears what a check says of the answer, and may ask another; then it learns the
    score and cost of each answer it asked for, and of no other.

    Raises:
        BadInput: the router asks an arm that is not open, asks one twice, or none.
    """
    n = len(stream.open)
    choice, calls, cost = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n)
    for row in range(n):
        x, open_arms = stream.features[row], np.flatnonzero(stream.open[row])
        asked: list[tuple[int, bool]] = []
        while (arm := learner.next(x, open_arms, asked)) is not None:
            if not stream.open[row, arm] or any(arm == item for item, _ in asked):
                raise BadInput(f"the router asks arm {arm}, which it asked before or is not open")
            asked.append((arm, bool(stream.accepted[row, arm])))
        if not asked:
            raise BadInput("the router asks no arm", where=f"question {row} of the stream")
        for arm, _ in asked:
            paid = stream.price * float(stream.cost[row, arm])
            learner.learn(x, arm, float(stream.right[row, arm]), paid)
        arms = [arm for arm, _ in asked]
        choice[row], calls[row], cost[row] = arms[-1], len(arms), stream.cost[row, arms].sum()
    return Served(choice, calls, stream.right[np.arange(n), choice], cost)


def opened(
    n: int, names: tuple[str, ...], appear: Mapping[str, float], retire: Mapping[str, float]
) -> Bools:
    """(n, m) which arms are open, from shares of the stream after which they come and go.

    Raises:
        BadInput: an arm is unknown, a share is not between 0 and 1, or at some time no arm is open.
    """
    values = np.ones((n, len(names)), dtype=bool)
    for changes, comes in ((appear, True), (retire, False)):
        for name, share in changes.items():
            if name not in names:
                raise BadInput(f"there is no arm {name!r}", next_step=f"known: {', '.join(names)}")
            if not 0 <= share <= 1:
                raise BadInput(f"{name}={share:g} is no share of the stream, from 0 to 1")
            at = round(share * n)
            values[slice(0, at) if comes else slice(at, n), names.index(name)] = False
    if not values.any(axis=1).all():
        raise BadInput("at some time no arm is open", next_step="let another one stay")
    return values


def orders(n: int, count: int, seed: int) -> list[Ints]:
    """Orders in which n questions come."""
    random = np.random.default_rng(seed)
    return [random.permutation(n) for _ in range(count)]


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
        for row in self.rows:
            yield (
                f"{row.name:<16} accuracy {_shown(row.accuracy)}   cost {_shown(row.cost)}   "
                f"calls {_shown(row.calls)}   worth {_shown(row.worth)}   regret against the best "
                f"fixed arm {_shown(row.regret_fixed)}, against the oracle "
                f"{_shown(row.regret_oracle)}"
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
    for name in routers:
        if name not in LEARNERS:
            raise UnknownName(
                f"there is no online router {name!r}", next_step=did_you_mean(name, LEARNERS)
            )
    if worth is not None and not worth > 0:
        raise BadInput(f"a right answer worth {worth:g} is no price", next_step="give more than 0")
    if not 0 <= check_error <= 0.5:
        raise BadInput(f"{check_error:g} is no share of wrong checks, from 0 to 0.5")
    core, scheme, result = _read(release, encoder, cache)
    why = "" if worth is None else "a right answer is to be weighed against it"
    rows, cost, unit = _whole(core, measure, scheme, why)
    matrix = np.asarray(result, dtype=np.float64)
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


def mess_plus(
    release: Path,
    *,
    alpha: float,
    encoder: str,
    trade_off: float,
    explore: float,
    measure: str | None,
    shuffles: int,
    cache: Path,
) -> dict[str, Any]:
    """Rows for MESS+ and each single model: share answered well, cost, share explored.

    Raises:
        BadInput: no cost is known, or no question has all labels and costs.
    """
    from routeyard.pipelines.evaluate.settings import FIRST_SEED, PROTOCOL_SEEDS
    from routeyard.pipelines.routers.networks import serve

    core, scheme, matrix = _read(release, encoder, cache)
    rows, cost, unit = _whole(core, measure, scheme, "MESS+ weighs it against the level")
    labels = core.labels[rows]
    seeds = [*PROTOCOL_SEEDS, *range(FIRST_SEED + 1, FIRST_SEED + shuffles)][:shuffles]
    done = [
        serve(matrix[rows], labels, cost, alpha=alpha, trade_off=trade_off, explore=explore,
              seed=seed)
        for seed in seeds
    ]  # fmt: skip

    def row(name: str, hits: Floats, costs: Floats, explored: float = 0.0) -> dict[str, Any]:
        (well, well_sd), (usd, usd_sd) = _spread(hits), _spread(costs)
        return {
            "name": name, "answered_well": well, "answered_well_sd": well_sd, "cost": usd,
            "cost_sd": usd_sd, "explored": explored,
        }  # fmt: skip

    hits, spent, explored = (
        np.array([getattr(item, of).mean() for item in done]) for of in ("hit", "spent", "explored")
    )
    items = [row("mess-plus", hits, spent, float(explored.mean()))]
    for k, model in enumerate(core.model_ids):
        items.append(row(model, labels[:, [k]].mean(axis=0), cost[:, [k]].mean(axis=0)))
    return {
        "questions": len(rows), "alpha": alpha, "encoder": encoder,
        "measure": first_measure(core.costs, measure), "unit": unit, "seeds": seeds, "rows": items,
    }  # fmt: skip


def _read(release: Path, encoder: str, cache: Path) -> tuple[Core, str, Vectors]:
    """A release, its split scheme, and the vectors of its questions."""
    from routeyard.flows.evaluation.released import read_release, vectors
    from routeyard.pipelines.evaluate.experiment import default_scheme

    tables = read_release(release)
    core = core_of(tables.without("embeddings"))
    scheme = default_scheme(core, None)
    return core, scheme, vectors(tables, core, [encoder], scheme=scheme, cache=cache)[encoder]


def _whole(core: Core, measure: str | None, scheme: str, why: str) -> tuple[Ints, Floats, str]:
    """Test questions of which every label (and cost) is known, those costs and their unit.

    Args:
        why: What a cost is needed for; empty where it is not.
    """
    name = first_measure(core.costs, measure)
    if name is None and why:
        raise BadInput(
            f"the release knows no cost, and {why}",
            next_step="give the pool prices, or `params_b`",
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


def _spread(values: Floats) -> MeanSd:
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _row(name: str, runs: list[dict[str, Any]]) -> OnlineRow:
    periods = np.array([item["periods"] for item in runs]).mean(axis=0)
    means = {
        key: _spread(np.array([run[key] for run in runs])) for key in runs[0] if key != "periods"
    }
    return OnlineRow(name, **means, periods=tuple(periods.tolist()))


def _shown(value: MeanSd) -> str:
    return f"{value[0]:.4g} ± {value[1]:.2g}"


def shares(texts: Sequence[str]) -> dict[str, float]:
    """`ARM=SHARE` each as arm → share.

    Raises:
        BadInput: a text has another form.
    """
    result = {}
    for text in texts:
        name, _, share = text.rpartition("=")
        try:
            result[name] = float(share)
        except ValueError as error:
            raise BadInput(
                f"{text!r} is no arm and share", next_step="write ARM=SHARE, such as large=0.5"
            ) from error
    return result
