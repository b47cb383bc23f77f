"""Every metric once more, as a plain loop over questions, written from its definition.

`PLAIN` maps a registered name to a function from a `Case` to {row name: value},
None where the metric is null. It shares no code with the metrics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

WEIGHTS = (0.0, 0.2, 0.5, 0.7, 0.9)
MEASURES = ("usd", "tokens")


def known(x: float | None) -> bool:
    return x is not None and not math.isnan(x)


def mean(values) -> float | None:
    values = [v for v in values if known(v)]
    return sum(values) / len(values) if values else None


@dataclass
class Case:
    """Lists of lists: y, right, cost[measure] by question and model; NaN is missing."""

    y: list
    right: list
    cost: dict
    train_cost: dict
    train_y: list
    tasks: list
    scores: list
    settings: list  # weights of cost of the sweep, 1 first
    pair: tuple[int, int] | None
    others: list  # scores of the other routers of the evaluation
    bands: tuple[float, float, float, float] = (0.25, 0.30, 0.85, 0.95)
    seconds: float = 0.002
    usd_per_hour: float = 3.0
    picks: list | None = None

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def m(self) -> int:
        return len(self.y[0])

    def price(self, measure: str) -> list:
        return [mean(row[k] for row in self.train_cost[measure]) for k in range(self.m)]

    def pick(self, value, q: int, measure: str | None = None) -> int:
        """Highest value among the available; ties to the one that is better on train."""
        order = self.order(self.train_y)
        can = [
            k
            for k in range(self.m)
            if known(self.y[q][k]) and (measure is None or known(self.cost[measure][q][k]))
        ]
        return min(can, key=lambda k: (-value[k], order.index(k)))

    @property
    def choice(self) -> list:
        return [self.pick(self.scores[q], q) for q in range(self.n)]

    def order(self, y: list) -> list:
        """Models by accuracy on the same questions: a hole counts as the question's mean."""
        price = self.price("usd")
        level = [
            mean(row[k] if known(row[k]) else mean(row) for row in y)
            if any(known(row[k]) for row in y)
            else -1.0
            for k in range(self.m)
        ]
        labelled = [sum(known(row[k]) for row in y) for k in range(self.m)]
        return sorted(
            range(self.m), key=lambda k: (-round(level[k], 12), -labelled[k], price[k], k)
        )

    def single(self, y: list) -> int:
        return self.order(y)[0]

    def alone(self, k: int, measure: str | None = None) -> list:
        """Who answers each question when only model k is asked: the next best where it cannot."""
        return [
            next(
                j
                for j in (k, *self.order(self.train_y))
                if known(self.y[q][j]) and (measure is None or known(self.cost[measure][q][j]))
            )
            for q in range(self.n)
        ]

    @property
    def deployed(self) -> int:
        return self.single(self.train_y)

    @property
    def best(self) -> int:
        return self.single(self.y)

    def column(self, table: list, k: int) -> list:
        return [row[k] for row in table]

    def level(self, table: list, k: int) -> float | None:
        """Mean of the test scores or costs when only model k is asked."""
        measure = next((name for name, cost in self.cost.items() if cost is table), None)
        return mean(table[q][j] for q, j in enumerate(self.alone(k, measure)))

    def met(self, k: int, measure: str | None = None) -> list:
        """Questions that model k has a label for, and a known cost where one is asked for."""
        return [
            q
            for q in range(self.n)
            if known(self.y[q][k]) and (measure is None or known(self.cost[measure][q][k]))
        ]

    def own(self, table: list, k: int, measure: str | None = None) -> float | None:
        """Mean score or cost of model k over the questions it can be judged on."""
        return mean(table[q][k] for q in self.met(k, measure))

    def sweep(self, measure: str, scores: list | None = None, over: list | None = None) -> list:
        """[(mean cost, accuracy)] at every setting, over all questions or those named."""
        scores = self.scores if scores is None else scores
        price = self.price(measure)
        low, high = min(price), max(price)
        scaled = [(p - low) / (high - low) if high > low else 0.0 for p in price]
        points = []
        for w in self.settings:
            paid, hits = [], []
            for q in range(self.n) if over is None else over:
                value = [
                    (1 - w) * scores[q][k] - w * scaled[k] if w < 1 else -scaled[k]
                    for k in range(self.m)
                ]
                k = self.pick(value, q, measure)
                paid.append(self.cost[measure][q][k])
                hits.append(self.y[q][k])
            points.append((mean(paid), mean(hits)))
        return points

    def range(self, measure: str) -> tuple[int, float, float]:
        levels = [self.level(self.cost[measure], k) for k in range(self.m)]
        return levels.index(min(levels)), min(levels), max(levels)


def hits(c: Case) -> list:
    return [c.y[q][k] for q, k in enumerate(c.choice)]


def hits_on(c: Case, k: int) -> list:
    """Scores of the choices where model k has a label, None elsewhere."""
    return [h if known(row[k]) else None for h, row in zip(hits(c), c.y, strict=True)]


def tops(c: Case) -> list:
    return [max(v for v in row if known(v)) for row in c.y]


def hard(c: Case) -> list:
    out = []
    for q in range(c.n):
        n_right = sum(v == 1 for v in c.right[q])
        few = 1 < n_right <= max(8, math.ceil(c.m / 2))
        out.append(n_right == 1 or (few and c.right[q][c.best] == 0))
    return out


def solved(c: Case) -> list:
    return [any(v == 1 for v in row) for row in c.right]


def gap(c: Case, where: list) -> float | None:
    return mean(t - h for t, h, use in zip(tops(c), hits(c), where, strict=True) if use)


def easy(c: Case) -> list:
    return [s and not h for s, h in zip(solved(c), hard(c), strict=True)]


def hard_share(c: Case) -> float | None:
    parts = list(zip(tops(c), hits(c), solved(c), hard(c), strict=True))
    total = sum(t - h for t, h, s, _ in parts if s)
    return sum(t - h for t, h, _, x in parts if x) / total if total > 0 else None


def exchanged(c: Case, kind: str) -> float | None:
    out = []
    for q in c.met(c.deployed):
        mine, other = c.right[q][c.choice[q]] == 1, c.right[q][c.deployed] == 1
        out.append(
            {"won": mine and not other, "lost": other and not mine, "changed": mine != other}[kind]
        )
    return mean(float(v) for v in out)


def shares(c: Case) -> list:
    return [c.choice.count(k) / c.n for k in range(c.m)]


def outcome(c: Case, published: bool) -> dict:
    called = "outcome_as_published" if published else "outcome"
    names = ("optimal", "too_cheap", "too_expensive", "none_correct")
    found = dict.fromkeys(names, 0)
    cost = c.cost["usd"]
    for q, k in enumerate(c.choice):
        good = [j for j in range(c.m) if c.right[q][j] == 1]
        cheapest = min((cost[q][j] if known(cost[q][j]) else math.inf for j in good), default=0)
        paid = cost[q][k] if known(cost[q][k]) else math.inf
        if not good:
            found["none_correct"] += 1
        elif k in good:
            found["too_expensive" if cheapest < paid else "optimal"] += 1
        else:
            found["too_expensive" if cheapest < paid and not published else "too_cheap"] += 1
    return {f"{called}[{name}]": v / c.n for name, v in found.items()}


def generalist(c: Case) -> dict:
    met = c.met(c.deployed)
    same = [float(c.choice[q] == c.deployed) if q in met else None for q in range(c.n)]
    rows = {"agreement_with_generalist": mean(same)}
    if len(set(c.tasks)) > 1:
        for task in set(c.tasks):
            rows[f"agreement_with_generalist[{task}]"] = mean(
                s for s, t in zip(same, c.tasks, strict=True) if t == task
            )
    return rows


# --- sweeps -------------------------------------------------------------------------------


def rising(points: list) -> list:
    out, top = [], -math.inf
    for x, y in points:
        top = max(top, x)
        out.append((top, y))
    return out


def audc_of(points: list, low: float, high: float, cheapest: float) -> float | None:
    if not high > low:
        return None
    line = [(min(max((x - low) / (high - low), 0), 1), y) for x, y in rising(points)]
    if line[0][0] > 0 and cheapest is None:
        return None
    area = (line[0][0] * cheapest if line[0][0] > 0 else 0) + (1 - line[-1][0]) * line[-1][1]
    return area + sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(line))


def audc(c: Case, x: str) -> float | None:
    first, low, high = c.range(x)
    return audc_of(c.sweep(x), low, high, c.level(c.y, first))


def audc_budget(c: Case, x: str) -> float | None:
    first, low, high = c.range(x)
    price, points = c.price(x), []
    k_points = len(c.settings)
    for i in range(k_points):
        budget = low + (high - low) * i / (k_points - 1)
        if i == k_points - 1:
            budget = high
        got, order = [], c.order(c.train_y)
        for q in range(c.n):
            can = [k for k in range(c.m) if known(c.y[q][k]) and known(c.cost[x][q][k])]
            within = [k for k in can if price[k] <= budget]
            if within:
                k = min(within, key=lambda k: (-c.scores[q][k], order.index(k)))
            else:
                k = min(can, key=lambda k: (price[k], order.index(k)))
            got.append(c.y[q][k])
        points.append((budget, mean(got)))
    return audc_of(points, low, high, c.level(c.y, first))


def qnc(c: Case, x: str) -> float | None:
    goal, paid, met = c.own(c.y, c.best, x), c.own(c.cost[x], c.best, x), c.met(c.best, x)
    before = None
    for at, y in rising(c.sweep(x, over=met)) if met else ():
        if y >= goal - 1e-12:
            if before is None or not y > before[1]:
                return (before[0] if before else at) / paid if before is None else at / paid
            share = min(max((goal - before[1]) / (y - before[1]), 0), 1)
            return (before[0] + share * (at - before[0])) / paid
        before = (at, y)
    return None


def utility(c: Case, x: str, per_query: bool) -> dict:
    every = [v for row in c.train_cost[x] for v in row if known(v)]
    low, high = min(every), max(every)
    width = high - low if high > low else 1.0
    called = "utility_per_query" if per_query else "utility"
    rows = {}
    for w in WEIGHTS:
        got = []
        for q in range(c.n):
            expected = [(c.cost[x][q][k] if per_query else c.price(x)[k]) for k in range(c.m)]
            # Only answers of known cost can be chosen, so an unknown one is put at the start.
            scaled = [(e - low) / width if known(e) else 0.0 for e in expected]
            can = [k for k in range(c.m) if known(c.y[q][k]) and known(c.cost[x][q][k])]
            order = c.order(c.train_y)
            k = min(
                can,
                key=lambda k: (-((1 - w) * c.scores[q][k] - w * scaled[k]), order.index(k)),
            )
            got.append((1 - w) * c.y[q][k] - w * (c.cost[x][q][k] - low) / width)
        rows[f"{called}[{x},{w:g}]"] = mean(got)
    return rows


def at_budget(c: Case) -> dict:
    met = c.met(c.best, "usd")
    if not met:
        return {"accuracy_at_budget[usd]": None}
    limit = c.own(c.cost["usd"], c.best, "usd") * (1 + 1e-12)
    paid = [x for x, _ in c.sweep("usd", over=met)]
    points = c.sweep("usd")
    within = [y for x, (_, y) in zip(paid, points, strict=True) if x <= limit]
    return {"accuracy_at_budget[usd]": within[-1] if within else points[0][1]}


def hull(points: list) -> list:
    """Non-decreasing upper concave hull: heights of the best mix at every corner."""
    xs = sorted({x for x, _ in points})

    def height(x: float) -> float:
        best = max((y for a, y in points if a <= x), default=-math.inf)
        for a, ya in points:
            for b, yb in points:
                if a <= x < b and yb > ya:
                    best = max(best, ya + (x - a) / (b - a) * (yb - ya))
        return best

    return [(x, height(x)) for x in xs]


def under(line: list, low: float, high: float) -> float:
    """Area below a polyline carried flat to the right, over [low, high]."""

    def at(x: float) -> float:
        for a, b in pairwise(line):
            if a[0] <= x <= b[0]:
                return a[1] + (x - a[0]) / (b[0] - a[0]) * (b[1] - a[1])
        return line[-1][1]

    xs = sorted({low, high, *(x for x, _ in line if low < x < high)})
    return sum((b - a) * (at(a) + at(b)) / 2 for a, b in pairwise(xs))


def aiq(c: Case, x: str) -> float | None:
    largest = max(p for s in [c.scores, *c.others] for p, _ in c.sweep(x, s))
    line = hull(c.sweep(x))
    return under(line, line[0][0], largest) / largest if largest > 0 else None


def aiq_as_written(c: Case, x: str) -> float | None:
    first, low, high = c.range(x)
    if not high > low:
        return None
    line = hull(c.sweep(x))
    start = min(max(line[0][0], low), high)
    level = c.level(c.y, first)
    if start > low and level is None:
        return None
    area = (start - low) * (level or 0.0) + under(line, start, high)
    return area / (high - low)


def nauc(c: Case, x: str) -> float | None:
    least, most, first = [], [], []
    order = c.order(c.train_y)
    for q in range(c.n):
        can = [k for k in range(c.m) if known(c.y[q][k]) and known(c.cost[x][q][k])]
        k = min(can, key=lambda k: (c.cost[x][q][k], order.index(k)))
        least.append(c.cost[x][q][k])
        most.append(max(c.cost[x][q][k] for k in can))
        first.append(c.y[q][k])
    low, high = mean(least), mean(most)
    if not high > low:
        return None
    line = [(low, mean(first))]
    for at, y in sorted(c.sweep(x), key=lambda p: (p[0], -p[1])):
        if y > line[-1][1]:
            at = min(max(at, line[-1][0]), high)
            if at == line[-1][0]:
                line[-1] = (at, y)
            else:
                line.append((at, y))
    return under(line, low, high) / (high - low)


def perf_gain(c: Case, x: str) -> float | None:
    goal, met = c.own(c.y, c.best, x), c.met(c.best, x)
    return max(y for _, y in c.sweep(x, over=met)) / goal - 1 if met and goal > 0 else None


def cost_save(c: Case, x: str) -> float | None:
    goal, paid, met = c.own(c.y, c.best, x), c.own(c.cost[x], c.best, x), c.met(c.best, x)
    good = [1 - a / paid for a, y in (c.sweep(x, over=met) if met else ()) if y >= goal - 1e-12]
    return max(good) if good else None


def pareto_dist(c: Case, x: str) -> float | None:
    _, low, high = c.range(x)
    if not high > low:
        return None
    points = [p for s in [c.scores, *c.others] for p in c.sweep(x, s)]
    front = [
        p for p in points
        if not any((a <= p[0] and b > p[1]) or (a < p[0] and b >= p[1]) for a, b in points)
    ]  # fmt: skip
    return mean(
        min(math.hypot((x0 - a) / (high - low), y0 - b) for a, b in front) for x0, y0 in c.sweep(x)
    )


# --- at any price ---------------------------------------------------------------------------


def arena(c: Case) -> float | None:
    paid = [c.cost["usd"][q][k] for q, k in enumerate(c.choice)]
    if not all(known(v) for v in paid):
        return None
    a, usd = mean(hits(c)), 1000 * mean(paid)
    usd = min(max(usd, 0.0044), 200)
    cheap = (math.log2(200) - math.log2(usd)) / (math.log2(200) - math.log2(0.0044))
    below = 0.1 * a + cheap
    return 1.1 * a * cheap / below if below > 0 else 0.0


def rci(c: Case) -> float | None:
    level = [c.level(c.cost["usd"], k) for k in range(c.m)]
    dear = [k for k in range(c.m) if level[k] == max(level)]
    bad = 0
    for q, k in enumerate(c.choice):
        best = [j for j in range(c.m) if known(c.y[q][j]) and c.y[q][j] == tops(c)[q]]
        fine = k in best and (k not in dear or all(j in dear for j in best))
        bad += not fine
    return bad / c.n


def right_costs(c: Case, q: int) -> list:
    """Known costs of the right answers of a question."""
    return [c.cost["usd"][q][k] for k in range(c.m)
            if c.right[q][k] == 1 and known(c.y[q][k]) and known(c.cost["usd"][q][k])]  # fmt: skip


def opt_selection(c: Case) -> float | None:
    solved = [q for q in range(c.n) if right_costs(c, q)]
    return mean(
        c.right[q][c.choice[q]] == 1 and c.cost["usd"][q][c.choice[q]] <= min(right_costs(c, q))
        for q in solved
    )


def opt_cost(c: Case) -> float | None:
    own = [(q, k) for q, k in enumerate(c.choice) if c.right[q][k] == 1]
    paid = sum(c.cost["usd"][q][k] for q, k in own)
    return sum(min(right_costs(c, q)) for q, _ in own) / paid if own else None


def opt_accuracy(c: Case) -> float | None:
    rows = [q for q in range(c.n) if 1 in c.right[q]]
    return sum(hits(c)[q] for q in rows) / sum(tops(c)[q] for q in rows) if rows else None


def macro(c: Case, column: list) -> float | None:
    return mean(
        mean(v for v, t in zip(column, c.tasks, strict=True) if t == task)
        for task in sorted(set(c.tasks))
    )


def over(a: float | None, b: float | None, sign: int = 1) -> float | None:
    return sign * (a / b - 1) if b is not None and b > 0 else None


def cells(c: Case) -> list:
    return [(c.scores[q][k], c.y[q][k]) for q in range(c.n) for k in range(c.m) if known(c.y[q][k])]


def bce(c: Case) -> float:
    total = 0.0
    for p, y in cells(c):
        p = min(max(p, 1e-7), 1 - 1e-7)
        total -= y * math.log(p) + (1 - y) * math.log(1 - p)
    return total / len(cells(c))


def ece(c: Case) -> float:
    bins: dict = {}
    for p, y in cells(c):
        bins.setdefault(min(int(p * 15), 14), []).append((p, y))
    n = len(cells(c))
    return sum(
        len(b) / n * abs(mean(p for p, _ in b) - mean(y for _, y in b)) for b in bins.values()
    )


def entropy(c: Case) -> float:
    out = []
    for row in c.scores:
        z = sum(math.exp(s) for s in row)
        out.append(-sum(math.exp(s) / z * math.log2(math.exp(s) / z) for s in row))
    return mean(out)


# --- a pair ---------------------------------------------------------------------------------


def duel(c: Case) -> tuple[list, list, list, list]:
    """wanted, small, large, small's decision on the questions both have a label for."""
    s, t = c.pair
    rows = [q for q in range(c.n) if known(c.y[q][s]) and known(c.y[q][t])]
    return (
        [-c.scores[q][s] for q in rows],
        [c.y[q][s] for q in rows],
        [c.y[q][t] for q in rows],
        [c.right[q][s] for q in rows],
    )


def line_of(c: Case) -> list:
    wanted, small, large, _ = duel(c)
    n, out = len(wanted), [(0.0, mean(small))]
    for limit in sorted(set(wanted), reverse=True):
        sent = [w >= limit for w in wanted]
        out.append(
            (sum(sent) / n, mean(b if x else a for x, a, b in zip(sent, small, large, strict=True)))
        )
    return out


def phi(line: list, x: float) -> float:
    for a, b in pairwise(line):
        if a[0] <= x <= b[0]:
            return a[1] + (x - a[0]) / (b[0] - a[0]) * (b[1] - a[1])
    return line[-1][1]


def corners(line: list, low: float, high: float, extra=()) -> list:
    return sorted({low, high, *(x for x, _ in line if low < x < high), *extra})


def area(line: list, low: float, high: float) -> float:
    xs = corners(line, low, high)
    return sum((b - a) * (phi(line, a) + phi(line, b)) / 2 for a, b in pairwise(xs))


def reaching(line: list, goal: float) -> float | None:
    before = None
    for x, y in line:
        if y >= goal - 1e-12:
            if before is None or not y > before[1]:
                return x
            share = min(max((goal - before[1]) / (y - before[1]), 0), 1)
            return before[0] + share * (x - before[0])
        before = (x, y)
    return None


def tradeoffs(c: Case) -> dict:
    line = line_of(c)
    small, large = line[0][1], line[-1][1]
    d1, d1m, low, high = c.bands
    rows = {"lpm": area(line, 0, d1) / d1}
    better = large > small
    tau1, tau2 = small + low * (large - small), small + high * (large - small)
    rows["cpt[50]"] = reaching(line, small + 0.5 * (large - small)) if better else None
    rows["cpt[80]"] = reaching(line, small + 0.8 * (large - small)) if better else None
    rows["apgr"] = (area(line, 0, 1) - small) / (large - small) if better else None
    d2 = reaching(line, tau1) if better else None
    rows["mpm"] = area(line, d1m, d2) / (d2 - d1m) if better and d2 > d1m else None
    total = weighted = 0.0
    for (x0, y0), (x1, y1) in pairwise(line):
        if abs(y1 - y0) < 1e-12:
            a, b = (x0, x1) if tau1 - 1e-12 <= y0 <= tau2 + 1e-12 else (0.0, 0.0)
        else:
            ends = sorted(x0 + (tau - y0) * (x1 - x0) / (y1 - y0) for tau in (tau1, tau2))
            a, b = max(x0, ends[0]), min(x1, ends[1])
        if b > a:
            total += b - a
            weighted += (b - a) * (a + b) / 2
    rows["hcr"] = 1 - weighted / total if better and total > 0 else None
    grid = [(k / 100, phi(line, k / 100)) for k in range(101)]
    rows["lpm_as_published"] = mean(y for x, y in grid if d1 - 1e-9 <= x <= d1m + 1e-9)
    start = [y for x, y in grid if x <= d1m + 1e-9][-1]
    band = [x for x, y in grid if tau1 - 1e-12 <= y <= tau2 + 1e-12]
    rows["hcr_as_published"] = 1 - mean(band) if band else 0.0
    rows["mpm_as_published"] = mean(y for _, y in grid if start + 1e-12 < y < tau1 - 1e-12) or 0.0
    wanted, _, _, right = duel(c)
    bad = [w for w, r in zip(wanted, right, strict=True) if r == 0]
    good = [w for w, r in zip(wanted, right, strict=True) if r == 1]
    wins = sum((a > b) + (a == b) / 2 for a in bad for b in good)
    rows["auroc"] = wins / (len(bad) * len(good)) if bad and good else None
    return rows


def token_rows(c: Case) -> dict:
    if c.pair is None:
        return {}
    s, t = c.pair
    tokens = c.cost["tokens"]
    rows = [
        q for q in range(c.n)
        if known(c.y[q][s]) and known(c.y[q][t]) and known(tokens[q][s]) and known(tokens[q][t])
    ]  # fmt: skip
    if not rows:
        return {"trr": None, "u_token": None}
    pick = {q: t if c.scores[q][t] > c.scores[q][s] else s for q in rows}
    spent, strong = mean(tokens[q][pick[q]] for q in rows), mean(tokens[q][t] for q in rows)
    saved = 1 - spent / strong if strong > 0 else None
    gained = mean(c.y[q][pick[q]] for q in rows) - mean(c.y[q][s] for q in rows)
    useful = gained / (1 - saved) if saved is not None and saved != 1 else None
    return {"trr": saved, "u_token": useful}


def swept(name: str, function) -> Callable[[Case], dict]:
    return lambda c: {f"{name}[{x}]": function(c, x) for x in MEASURES}


def one(name: str, function) -> Callable[[Case], dict]:
    return lambda c: {name: function(c)}


def paired(name: str) -> Callable[[Case], dict]:
    return lambda c: (
        {} if c.pair is None else {k: v for k, v in tradeoffs(c).items() if k.split("[")[0] == name}
    )


def _entropy_of_profile(c: Case) -> float:
    if c.m < 2:
        return 0.0
    return -sum(s * math.log(s) for s in shares(c) if s > 0) / math.log(c.m)


#: Metrics that only exist in an evaluation over seeds, splits or held-out groups:
#: tests/evaluate/held_out and tests/experiment hold them against loops of their own.
ELSEWHERE = {
    "accuracy_seed_mean", "accuracy_seed_sd", "accuracy_change", "id_accuracy", "ood_accuracy",
    "agreement", "accuracy_order_low", "accuracy_order_high", "accuracy_without_leaks",
    "accuracy_split_mean", "accuracy_split_sd",
    "gain_over_best_single_split_mean", "gain_over_best_single_split_sd",
}  # fmt: skip


def with_missing_as(c: Case, name: str, score: float) -> dict:
    """Labels of the best-scored model of all, whether it has one or not; no row if all have."""
    order = c.order(c.train_y)
    chosen = [min(range(c.m), key=lambda k: (-row[k], order.index(k))) for row in c.scores]
    got = [c.y[q][k] for q, k in enumerate(chosen)]
    if all(known(y) for y in got):
        return {}
    return {name: sum(y if known(y) else score for y in got) / len(got)}


PLAIN: dict[str, Callable[[Case], dict]] = {
    "accuracy": one("accuracy", lambda c: mean(hits(c))),
    "accuracy_floor": lambda c: with_missing_as(c, "accuracy_floor", 0.0),
    "accuracy_ceiling": lambda c: with_missing_as(c, "accuracy_ceiling", 1.0),
    "gap_to_oracle": one("gap_to_oracle", lambda c: gap(c, [True] * c.n)),
    "gap_to_oracle_hard": one("gap_to_oracle_hard", lambda c: gap(c, hard(c))),
    "gap_to_oracle_easy": one("gap_to_oracle_easy", lambda c: gap(c, easy(c))),
    "hard_share_of_gap": one("hard_share_of_gap", hard_share),
    "gain_over_best_single": one(
        "gain_over_best_single",
        lambda c: mean(hits(c)[q] - c.y[q][c.deployed] for q in c.met(c.deployed)),
    ),
    "disagreement_with_best_single": one(
        "disagreement_with_best_single",
        lambda c: mean(float(c.choice[q] != c.deployed) for q in c.met(c.deployed)),
    ),
    "won_from_best_single": one("won_from_best_single", lambda c: exchanged(c, "won")),
    "lost_to_best_single": one("lost_to_best_single", lambda c: exchanged(c, "lost")),
    "changed_against_best_single": one(
        "changed_against_best_single", lambda c: exchanged(c, "changed")
    ),
    "agreement_with_generalist": generalist,
    "selection_entropy": one("selection_entropy", _entropy_of_profile),
    "top_share": one("top_share", lambda c: max(shares(c))),
    "outcome": lambda c: outcome(c, False),
    "outcome_as_published": lambda c: outcome(c, True),
    "audc": swept("audc", audc),
    "audc_budget": swept("audc_budget", audc_budget),
    "peak_accuracy": swept("peak_accuracy", lambda c, x: max(y for _, y in c.sweep(x))),
    "qnc": swept("qnc", qnc),
    "mean_cost": swept("mean_cost", lambda c, x: c.sweep(x)[-1][0]),
    "utility": lambda c: {k: v for x in MEASURES for k, v in utility(c, x, False).items()},
    "utility_per_query": lambda c: {k: v for x in MEASURES for k, v in utility(c, x, True).items()},
    "accuracy_at_budget": at_budget,
    "aiq": swept("aiq", aiq),
    "aiq_as_written": swept("aiq_as_written", aiq_as_written),
    "nauc": swept("nauc", nauc),
    "perf_gain": swept("perf_gain", perf_gain),
    "cost_save": swept("cost_save", cost_save),
    "pareto_dist": swept("pareto_dist", pareto_dist),
    "arena_score": one("arena_score", arena),
    "rci": one("rci", rci),
    "opt_accuracy": one("opt_accuracy", opt_accuracy),
    "opt_cost": one("opt_cost", opt_cost),
    "opt_selection": one("opt_selection", opt_selection),
    "macro_accuracy": one("macro_accuracy", lambda c: macro(c, hits(c))),
    "gain_r": one(
        "gain_r", lambda c: over(macro(c, hits(c)), macro(c, [mean(row) for row in c.y]))
    ),
    "gain_b": one(
        "gain_b", lambda c: over(macro(c, hits_on(c, c.best)), macro(c, c.column(c.y, c.best)))
    ),
    "gap_o": one("gap_o", lambda c: over(macro(c, hits(c)), macro(c, tops(c)), -1)),
    "v_r": one("v_r", lambda c: ratio(mean(hits_on(c, c.deployed)), c.own(c.y, c.deployed))),
    "v_b": one("v_b", lambda c: ratio(mean(hits_on(c, c.best)), c.own(c.y, c.best))),
    "e_p": one("e_p", entropy),
    "bce": one("bce", bce),
    "brier": one("brier", lambda c: mean((p - y) ** 2 for p, y in cells(c))),
    "ece": one("ece", ece),
    "trr": lambda c: {k: v for k, v in token_rows(c).items() if k == "trr"},
    "u_token": lambda c: {k: v for k, v in token_rows(c).items() if k == "u_token"},
    "decision_time": one("decision_time", lambda c: 1000 * c.seconds / c.n),
    "decision_cost": one(
        "decision_cost", lambda c: 1000 * c.seconds / c.n * c.usd_per_hour / 3600
    ),
    "answer_quality": one("answer_quality", lambda c: hundred(mean(c.picks))),
    **{
        name: paired(name)
        for name in (
            "lpm", "hcr", "mpm", "lpm_as_published", "hcr_as_published", "mpm_as_published", "cpt",
            "apgr", "auroc",
        )
    },
}  # fmt: skip


def hundred(share: float | None) -> float | None:
    return None if share is None else 100 * share


def ratio(a: float | None, b: float | None) -> float | None:
    return a / b if b is not None and b > 0 else None
