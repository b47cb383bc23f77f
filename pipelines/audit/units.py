"""Arms and suites measured in another unit than the others: costs, times, tokens and scores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from routeyard.pipelines.audit.answers import Answers, Floats, counts, means
from routeyard.pipelines.audit.finding import Found

#: Answers of an arm or a cell from which it is judged, and arms that have to say the same.
FEWEST, ARMS = 20, 3
#: Column → (what it is, factor to the nearest other arm from which it is another unit).
_FACTORS = {"latency_s": ("latency", 50.0), "prompt_tokens": ("number of prompt tokens", 20.0)}
#: Factor for prices and costs of an answer, and USD per million tokens that are usual.
PRICE, COST, USUAL = 10.0, 50.0, (0.01, 150.0)
#: Highest score of a cell in a smaller unit, scores above 0 from which that is no chance, and ratio
#: of the highest to the lowest of them.
SMALL, ABOVE, STEPS = 0.11, 5, 20
#: Correlations of logarithms of tokens, over questions, from which they are those of one text by
#: other tokenizers, and below which they are not.
SAME, OTHER = 0.9, 0.7


def other_units(answers: Answers) -> Iterator[Found]:
    """Arms whose costs, prices or times are a whole unit off those of all other arms."""
    cost = answers.numbers("cost_usd")
    tokens = np.nan_to_num(answers.numbers("prompt_tokens")) + answers.numbers("completion_tokens")
    paid = np.where(cost > 0, cost, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        price = 1e6 * np.where(tokens > 0, paid / tokens, np.nan)
    by_price = _medians(answers, price)
    for a, ratio in _far(by_price, PRICE):
        if not USUAL[0] <= by_price[a] <= USUAL[1]:
            says = f"its costs are ${by_price[a]:.3g} per million tokens, {_times(ratio)}"
            yield Found(answers.arms[a], says + _unit("a price", ratio), _rows(answers, a, paid))
    if np.isnan(by_price).all():
        by_cost = _medians(answers, paid)
        for a, ratio in _far(by_cost, COST):
            says = f"its answers cost ${by_cost[a]:.3g}, {_times(ratio)}"
            yield Found(answers.arms[a], says + _unit("a cost", ratio), _rows(answers, a, paid))
    for column, (what, factor) in _FACTORS.items():
        values = answers.numbers(column)
        values = np.where(values > 0, values, np.nan)
        middle = _medians(answers, values)
        for a, ratio in _far(middle, factor):
            says = f"its {what} is {middle[a]:.4g} in the median, {_times(ratio)}"
            yield Found(answers.arms[a], says + _unit("one", ratio), _rows(answers, a, values))


def _medians(answers: Answers, values: Floats) -> Floats:
    """(arms,) median of the known values; NaN below `FEWEST`."""
    found = np.full(len(answers.arms), np.nan)
    for a in range(len(answers.arms)):
        own = values[answers.arm == a]
        own = own[~np.isnan(own)]
        if len(own) >= FEWEST:
            found[a] = np.median(own)
    return found


def _far(middle: Floats, factor: float) -> Iterator[tuple[int, float]]:
    """(arm, ratio to the nearest other arm) where that is beyond a factor, either way."""
    for a in np.flatnonzero(~np.isnan(middle)):
        others = np.delete(middle, a)
        others = others[~np.isnan(others)]
        if len(others) < ARMS - 1:
            continue
        # Above the highest, or below the lowest: between them is every arm of a mixed pool.
        if (above := middle[a] / others.max()) > factor:
            yield int(a), float(above)
        elif 0 < (below := middle[a] / others.min()) < 1 / factor:
            yield int(a), float(below)


def _times(ratio: float) -> str:
    if ratio > 1:
        return f"{ratio:,.3g} times the highest of the other arms"
    return f"{1 / ratio:,.3g} times below the lowest of the other arms"


def _unit(what: str, ratio: float) -> str:
    return f": {what} in another unit?" if max(ratio, 1 / ratio) < 1e7 else ""


def _rows(answers: Answers, arm: int, values: Floats) -> np.ndarray:
    return np.flatnonzero((answers.arm == arm) & ~np.isnan(values))


def exchanged_tokens(answers: Answers) -> Iterator[Found]:
    """Arms whose prompt tokens are the others' completion tokens: the two are exchanged.

    Prompt tokens of one question differ between arms by their tokenizers alone.
    """
    prompt, completion = (answers.numbers(f"{n}_tokens") for n in ("prompt", "completion"))
    usable = (prompt > 0) & (completion > 0)
    arms = len(answers.arms)
    if arms < ARMS:
        return
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = _by_question(answers, np.log(np.where(usable, prompt, np.nan)))
        given, made = np.log(prompt), np.log(completion)
    alike = np.full((arms, 2), np.nan)
    for a in range(arms):
        rows = np.flatnonzero((answers.arm == a) & usable & ~np.isnan(expected))
        if len(rows) >= FEWEST and np.ptp(expected[rows]) > 0:
            alike[a] = [_correlation(one[rows], expected[rows]) for one in (given, made)]
    # Of agents each prompt holds the turns before it: nothing is expected of those.
    if np.isnan(alike).all() or np.nanmedian(alike[:, 0]) < SAME:
        return
    for a in np.flatnonzero((alike[:, 0] < OTHER) & (alike[:, 1] >= SAME)).tolist():
        says = (
            "its completion tokens follow the other arms' prompt tokens (correlation "
            f"{alike[a, 1]:.2f}), and its prompt tokens do not ({alike[a, 0]:.2f}): the two are "
            "exchanged"
        )
        yield Found(answers.arms[a], says, np.flatnonzero((answers.arm == a) & usable))


def _correlation(x: Floats, y: Floats) -> float:
    return float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) > 0 else 0.0


def _by_question(answers: Answers, values: Floats) -> Floats:
    """(n,) median over arms of a question's values, of three arms and more; NaN of fewer."""
    order = np.lexsort((values, answers.question))
    order = order[~np.isnan(values[order])]
    question = answers.question[order]
    starts = np.flatnonzero(np.r_[True, np.diff(question) != 0]) if len(order) else np.empty(0, int)
    size = np.diff(np.append(starts, len(order)))
    middle = np.full(answers.n_questions, np.nan)
    if len(starts):
        middle[question[starts]] = np.where(
            size >= ARMS, values[order][starts + (size - 1) // 2], np.nan
        )
    return middle[answers.question]


def small_scores(answers: Answers) -> Iterator[Found]:
    """Arms, suites and cells whose scores are all small where the others' reach 1."""
    score = answers.score
    top = float(np.nanmax(score)) if len(score) else np.nan
    if not top >= 0.9:
        return
    told = np.zeros(len(score), bool)
    for codes, names in (
        (answers.suite, answers.suites),
        (answers.arm, answers.arms),
        (answers.cell, [f"{a} on {s}" for a in answers.arms for s in answers.suites]),
    ):
        above = counts(codes, len(names), score > 0)
        number = counts(codes, len(names), ~np.isnan(score))
        highest = np.zeros(len(names))
        np.maximum.at(highest, codes[score > 0], score[score > 0])
        reach = highest[(number >= FEWEST) & (above >= ABOVE)]
        lowest = np.full(len(names), np.inf)
        np.minimum.at(lowest, codes[score > 0], score[score > 0])
        # A probability that is small for some is smaller still for others.
        judged = (number >= FEWEST) & (above >= np.maximum(ABOVE, 0.1 * number))
        small = judged & (highest <= SMALL) & (lowest >= highest / STEPS)
        if len(names) < 2 or small.sum() > 0.34 * len(reach):
            continue
        mean = means(codes, score, len(names))
        for k in np.flatnonzero(small):
            rows = np.flatnonzero(codes == k)
            if told[rows].all():
                continue
            told[rows] = True
            says = (
                f"no score is above {highest[k]:.3g} ({mean[k]:.3g} in the mean), where others "
                f"reach {top:.3g}: scores on another scale"
            )
            yield Found(names[k], says, rows)
