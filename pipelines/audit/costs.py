"""Costs, tokens and latencies that are not what they claim to be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from routeyard.pipelines.audit.answers import Answers, Codes, Floats, Mask, counts, means
from routeyard.pipelines.audit.cells import residuals
from routeyard.pipelines.audit.finding import Found

#: USD per million tokens that a model may cost: more than ten times the dearest, a tenth of the
#: cheapest that was ever listed.
PLAUSIBLE = (0.001, 10_000.0)
#: Answers from which a share of an arm is judged.
FEWEST = 20
#: Relative difference at which an answer has another price, and the share that has to have one.
OFF, SAME = 0.05, 0.7
#: Ratio to what arm and suite explain, from which a mean cost is a finding, and its score.
RATIO, HIGHEST = 5.0, 6.0
#: Tokens of one answer that nothing has.
MOST_TOKENS = 1e9


def zero_costs(answers: Answers) -> Iterator[Found]:
    """$0 beside an answer or an outcome, of arms that do not state a price of 0."""
    yield from _zeros(answers, "cost_usd", "costs $0", ~answers.free_rows)


def zero_tokens(answers: Answers) -> Iterator[Found]:
    """No prompt tokens at all, or no completion tokens under a text or a right answer."""
    length = answers.lengths("text")
    said = np.where(np.isnan(length), answers.score > 0, length > 0)
    yield from _zeros(answers, "prompt_tokens", "has 0 prompt tokens", True)
    yield from _zeros(answers, "completion_tokens", "has 0 completion tokens", said)


def zero_latency(answers: Answers) -> Iterator[Found]:
    """Latency 0 beside an answer."""
    yield from _zeros(answers, "latency_s", "took 0 s", True)


def _zeros(answers: Answers, column: str, says: str, where: Mask | bool) -> Iterator[Found]:
    values = answers.numbers(column)
    zero = (values == 0) & where
    if not zero.any():
        return
    size = len(answers.arms)
    bad, known = counts(answers.arm, size, zero), counts(answers.arm, size, ~np.isnan(values))
    if zero.sum() == np.sum(~np.isnan(values)):
        yield Found(column, f"every answer {says}: nothing was measured", np.flatnonzero(zero))
        return
    for k in np.flatnonzero(bad):
        rows = np.flatnonzero(zero & (answers.arm == k))
        suites = np.unique(answers.suite[rows])
        where_ = f" of suite {answers.suites[suites[0]]}" if _one_of_many(answers, suites) else ""
        share = f"{int(bad[k]):,} of its {int(known[k]):,} answers{where_}"
        yield Found(answers.arms[k], f"{share}: each {says}, which is unknown and not free", rows)


def _one_of_many(answers: Answers, suites: Codes) -> bool:
    return len(suites) == 1 and len(answers.suites) > 1


def no_number(answers: Answers) -> Iterator[Found]:
    """Negative costs, tokens and latencies, halves of tokens, more tokens than there can be."""
    tests = {
        "cost_usd": lambda v: v < 0,
        "latency_s": lambda v: v < 0,
        "prompt_tokens": _no_count,
        "completion_tokens": _no_count,
    }
    for column, wrong in tests.items():
        if answers.has(column):
            rows = np.flatnonzero(wrong(answers.numbers(column)))
            if len(rows):
                example = answers.numbers(column)[rows[0]]
                yield Found(column, f"{len(rows):,} values cannot be, such as {example:g}", rows)


def _no_count(values: Floats) -> Mask:
    with np.errstate(invalid="ignore"):
        odd = ~np.isnan(values) & (values != np.floor(values))
        return np.asarray(odd | (values < 0) | (values > MOST_TOKENS))


def scores_out_of_range(answers: Answers) -> Iterator[Found]:
    """Scores below 0 or above 1, by suite."""
    with np.errstate(invalid="ignore"):
        bad = (answers.score < 0) | (answers.score > 1)
    if bad.any():
        low, high = np.nanmin(answers.score), np.nanmax(answers.score)
        says = f"{int(bad.sum()):,} scores are outside 0 to 1 (from {low:g} to {high:g})"
        yield Found("score", says, np.flatnonzero(bad))


def prices(answers: Answers) -> Iterator[Found]:
    """Costs against tokens: an implied price that no model has, and answers at another price."""
    cost, total = answers.numbers("cost_usd"), answers.numbers("completion_tokens")
    prompt = np.nan_to_num(answers.numbers("prompt_tokens"))
    usable = (cost > 0) & (total + prompt > 0)
    for k, name in enumerate(answers.arms):
        rows = np.flatnonzero(usable & (answers.arm == k))
        if len(rows) < FEWEST:
            continue
        mean = 1e6 * float(np.median(cost[rows] / (total[rows] + prompt[rows])))
        if not PLAUSIBLE[0] <= mean <= PLAUSIBLE[1]:
            says = f"its costs are ${mean:.3g} per million tokens, which no model has"
            yield Found(name, says, rows)
            continue
        if two := _two_prices(cost[rows], prompt[rows], total[rows]):
            yield Found(name, two, rows)
            continue
        off = _at_another_price(cost[rows], prompt[rows], total[rows])
        if off is not None and off.sum() >= 3:
            says = (
                f"{int(off.sum()):,} of {len(rows):,} costs are not its tokens at the one price "
                "that the other answers have"
            )
            yield Found(name, says, rows[off])


def _two_prices(cost: Floats, prompt: Floats, completion: Floats) -> str:
    """What to say where costs are exactly the tokens at either of two prices; else empty."""
    near = _line(cost, prompt, completion) <= OFF / 5
    rest = ~near
    if not 1 - SAME < near.mean() < SAME or min(near.sum(), rest.sum()) < FEWEST:
        return ""
    if np.mean(_line(cost[rest], prompt[rest], completion[rest]) <= OFF / 5) < 0.95:
        return ""
    one, other = (
        1e6 * float(np.median(cost[rows] / (prompt[rows] + completion[rows])))
        for rows in (near, rest)
    )
    return (
        f"its costs are its tokens at two prices, about ${one:.3g} per million tokens in "
        f"{int(near.sum()):,} answers and ${other:.3g} in {int(rest.sum()):,}"
    )


def _line(cost: Floats, prompt: Floats, completion: Floats) -> Floats:
    """(n,) relative distances of costs from a robust line, in × prompt + out × completion."""
    x = np.column_stack([prompt, completion])
    x = x[:, x.any(axis=0)]
    weight = np.ones(len(cost))
    for _ in range(25):
        line = np.linalg.lstsq(x * weight[:, None], cost * weight, rcond=None)[0]
        away = np.abs(x @ line - cost) / cost
        weight = 1.0 / np.maximum(away, 1e-4) / cost
    return np.asarray(np.abs(x @ line - cost) / cost)


def _at_another_price(cost: Floats, prompt: Floats, completion: Floats) -> Mask | None:
    """(n,) answers off the arm's own price, None where most answers have no common one."""
    off = _line(cost, prompt, completion) > OFF
    return off if SAME <= 1 - off.mean() < 1 else None


def means_as_costs(answers: Answers) -> Iterator[Found]:
    """One cost in every row of an arm whose answers differ in length: a mean, repeated.

    A price per call is one too where the tokens are equal, so that lengths have to differ.
    """
    cost = answers.numbers("cost_usd")
    size = answers.numbers("completion_tokens")
    size = np.where(np.isnan(size), answers.lengths("text"), size)
    for k, name in enumerate(answers.arms):
        rows = np.flatnonzero((answers.arm == k) & (cost > 0) & ~np.isnan(size))
        if len(rows) < FEWEST or len(np.unique(size[rows])) < FEWEST / 2:
            continue
        if len(np.unique(cost[rows])) == 1:
            says = (
                f"its cost is ${cost[rows[0]]:.3g} in all {len(rows):,} rows, whose answers differ "
                "in length: a mean of the arm, not what each answer cost"
            )
            yield Found(name, says, rows)


def odd_costs(answers: Answers) -> Iterator[Found]:
    """Mean costs of an arm on a suite that fit neither the arm nor the suite."""
    cost = np.where(answers.numbers("cost_usd") > 0, answers.numbers("cost_usd"), np.nan)
    shape = (len(answers.arms), len(answers.suites))
    size = shape[0] * shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        log = np.log(means(answers.cell, cost, size)).reshape(shape)
    log[counts(answers.cell, size, ~np.isnan(cost)).reshape(shape) < FEWEST] = np.nan
    left, spread = residuals(log)
    odd = (np.abs(left) > np.log(RATIO)) & (np.abs(left) > HIGHEST * spread)
    for a, s in np.argwhere(odd):
        rows = np.flatnonzero(answers.cell == a * shape[1] + s)
        says = (
            f"its mean cost, ${np.exp(log[a, s]):.3g}, is {np.exp(left[a, s]):.3g} times what its "
            "other suites and the other arms let expect"
        )
        yield Found(f"{answers.arms[a]} on {answers.suites[s]}", says, rows)
