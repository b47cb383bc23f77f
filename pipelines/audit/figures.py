"""Checks of figures: scores and costs that were not measured, and what stopped at a limit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from routeyard.pipelines.audit.answers import (
    Answers,
    Codes,
    Floats,
    Found,
    Mask,
    counts,
    means,
    residuals,
)
from routeyard.pipelines.audit.exchanges import SuiteScores, suite_scores

# Costs, tokens and latencies that are not what they claim to be.

#: USD per million tokens that a model may cost: more than ten times the dearest, a tenth of the
#: cheapest that was ever listed.
PLAUSIBLE = (0.001, 10_000.0)
#: Answers from which a share of an arm is judged.
COSTS_FEWEST = 20
#: Relative difference at which an answer has another price, and the share that has to have one.
OFF, COSTS_SAME = 0.05, 0.7
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
        if len(rows) < COSTS_FEWEST:
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
    if not 1 - COSTS_SAME < near.mean() < COSTS_SAME or min(near.sum(), rest.sum()) < COSTS_FEWEST:
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
    return off if COSTS_SAME <= 1 - off.mean() < 1 else None


def means_as_costs(answers: Answers) -> Iterator[Found]:
    """One cost in every row of an arm whose answers differ in length: a mean, repeated.

    A price per call is one too where the tokens are equal, so that lengths have to differ.
    """
    cost = answers.numbers("cost_usd")
    size = answers.numbers("completion_tokens")
    size = np.where(np.isnan(size), answers.lengths("text"), size)
    for k, name in enumerate(answers.arms):
        rows = np.flatnonzero((answers.arm == k) & (cost > 0) & ~np.isnan(size))
        if len(rows) < COSTS_FEWEST or len(np.unique(size[rows])) < COSTS_FEWEST / 2:
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
    log[counts(answers.cell, size, ~np.isnan(cost)).reshape(shape) < COSTS_FEWEST] = np.nan
    left, spread = residuals(log)
    odd = (np.abs(left) > np.log(RATIO)) & (np.abs(left) > HIGHEST * spread)
    for a, s in np.argwhere(odd):
        rows = np.flatnonzero(answers.cell == a * shape[1] + s)
        says = (
            f"its mean cost, ${np.exp(log[a, s]):.3g}, is {np.exp(left[a, s]):.3g} times what its "
            "other suites and the other arms let expect"
        )
        yield Found(f"{answers.arms[a]} on {answers.suites[s]}", says, rows)


# Answers cut off at a limit of tokens, and texts cut when they were stored.


def limits(answers: Answers) -> Iterator[Found]:
    """Token counts that recur at the top of an arm's range: answers cut off at a limit."""
    for column, what in (("completion_tokens", "completion tokens"),):
        if answers.has(column):
            yield from _limits(answers, answers.numbers(column), what, least=16)


def cut_texts(answers: Answers) -> Iterator[Found]:
    """Lengths of text that recur at the top: texts that were cut when they were stored."""
    length = answers.lengths("text")
    yield from _limits(answers, length, "characters", least=200)


def _limits(answers: Answers, values: Floats, what: str, *, least: int) -> Iterator[Found]:
    told: dict[float, list[int]] = {}
    rows_of: dict[int, Codes] = {}
    for k in range(len(answers.arms)):
        rows = np.flatnonzero((answers.arm == k) & ~np.isnan(values))
        limit = _limit(values[rows], least)
        if limit is not None:
            rows_of[k] = rows[values[rows] == limit]
            told.setdefault(limit, []).append(k)
    for limit, arms in sorted(told.items()):
        for k in arms:
            rows = rows_of[k]
            total = int(np.sum((answers.arm == k) & ~np.isnan(values)))
            right = means(np.zeros(len(rows), np.int64), answers.score[rows], 1)[0]
            known = "" if np.isnan(right) else f"; {100 * right:.0f} % of them are right"
            says = (
                f"{len(rows):,} of {total:,} answers have exactly {limit:,.0f} {what}: they were "
                f"cut off at a limit{known}"
            )
            yield Found(answers.arms[k], says, rows)


#: Limits below 64 tokens that harnesses set.
_SMALL = (16, 32)


def _round(value: float) -> bool:
    """Whether a person would set it as a limit: a power of two times at most 7, or hundreds."""
    odd = int(value)
    while odd and odd % 2 == 0:
        odd //= 2
    return (odd <= 7 and value >= 64) or value % 100 == 0 or value in _SMALL


def _limit(values: Floats, least: int) -> float | None:
    """The value at which counts pile up with next to nothing above it; None where none does.

    A pile is five counts at least, more than all the counts within a tenth below it would put on
    any one value, five times over.
    """
    if len(values) < 20:
        return None
    unique, number = np.unique(values, return_counts=True)
    if len(unique) < 8:
        return None
    top = unique >= least
    for k in np.flatnonzero(top & (number >= max(5, 0.004 * len(values))))[::-1]:
        value = unique[k]
        below = (values >= 0.85 * value) & (values < value)
        density = below.sum() / max(0.15 * value, 1.0)
        near = number[(unique >= 0.85 * value) & (unique < value)]
        above = int((values > value).sum())
        many = number[k] >= max(10, 0.025 * len(values)) and number[k] > 8 * near.max(initial=0)
        limit = value >= 64 or value in _SMALL or many
        pile = limit and number[k] >= 5 * max(density, 1.0) and number[k] > 3 * near.max(initial=0)
        if pile and above <= (0.02 * len(values) if _round(value) else 0):
            return float(value)
    return None


#: Seconds from which a limit is one, share of an arm's answers that have to reach it, and share of
#: them that may be right.
_SECONDS, _REACH, _RIGHT = 5.0, 0.01, 0.1


def timeouts(answers: Answers) -> Iterator[Found]:
    """Latencies that recur at the top of an arm's range and are nearly all wrong: time-outs."""
    latency = answers.numbers("latency_s")
    for a, name in enumerate(answers.arms):
        rows = np.flatnonzero((answers.arm == a) & ~np.isnan(latency) & ~np.isnan(answers.score))
        if len(rows) < 20 or not (top := float(latency[rows].max())) >= _SECONDS:
            continue
        # A call that is stopped ends within a hundredth of the limit.
        at = rows[latency[rows] >= 0.98 * top]
        below = np.sum((latency[rows] >= 0.9 * top) & (latency[rows] < 0.98 * top))
        piled = len(at) >= max(5, _REACH * len(rows)) and len(at) > 5 * below
        right = float(np.mean(answers.score[at] > 0))
        if piled and right <= _RIGHT and right < 0.5 * float(np.mean(answers.score[rows] > 0)):
            says = (
                f"{len(at):,} of {len(rows):,} answers took {0.98 * top:.3g} to {top:.3g} s, the "
                f"longest that any took, and {100 * right:.0f} % of them are right: time-outs that "
                "count as wrong"
            )
            yield Found(name, says, at)


# Arms and suites measured in another unit than the others: costs, times, tokens and scores.

#: Answers of an arm or a cell from which it is judged, and arms that have to say the same.
UNITS_FEWEST, UNITS_ARMS = 20, 3
#: Column → (what it is, factor to the nearest other arm from which it is another unit).
_FACTORS = {"latency_s": ("latency", 50.0), "prompt_tokens": ("number of prompt tokens", 20.0)}
#: Factor for prices and costs of an answer, and USD per million tokens that are usual.
PRICE, COST, USUAL = 10.0, 50.0, (0.01, 150.0)
#: Highest score of a cell in a smaller unit, scores above 0 from which that is no chance, and ratio
#: of the highest to the lowest of them.
SMALL, ABOVE, STEPS = 0.11, 5, 20
#: Correlations of logarithms of tokens, over questions, from which they are those of one text by
#: other tokenizers, and below which they are not.
UNITS_SAME, OTHER = 0.9, 0.7


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
        if len(own) >= UNITS_FEWEST:
            found[a] = np.median(own)
    return found


def _far(middle: Floats, factor: float) -> Iterator[tuple[int, float]]:
    """(arm, ratio to the nearest other arm) where that is beyond a factor, either way."""
    for a in np.flatnonzero(~np.isnan(middle)):
        others = np.delete(middle, a)
        others = others[~np.isnan(others)]
        if len(others) < UNITS_ARMS - 1:
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
    if arms < UNITS_ARMS:
        return
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = _by_question(answers, np.log(np.where(usable, prompt, np.nan)))
        given, made = np.log(prompt), np.log(completion)
    alike = np.full((arms, 2), np.nan)
    for a in range(arms):
        rows = np.flatnonzero((answers.arm == a) & usable & ~np.isnan(expected))
        if len(rows) >= UNITS_FEWEST and np.ptp(expected[rows]) > 0:
            alike[a] = [_correlation(one[rows], expected[rows]) for one in (given, made)]
    # Of agents each prompt holds the turns before it: nothing is expected of those.
    if np.isnan(alike).all() or np.nanmedian(alike[:, 0]) < UNITS_SAME:
        return
    for a in np.flatnonzero((alike[:, 0] < OTHER) & (alike[:, 1] >= UNITS_SAME)).tolist():
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
            size >= UNITS_ARMS, values[order][starts + (size - 1) // 2], np.nan
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
        reach = highest[(number >= UNITS_FEWEST) & (above >= ABOVE)]
        lowest = np.full(len(names), np.inf)
        np.minimum.at(lowest, codes[score > 0], score[score > 0])
        # A probability that is small for some is smaller still for others.
        judged = (number >= UNITS_FEWEST) & (above >= np.maximum(ABOVE, 0.1 * number))
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


#: Answers of a cell from which it is judged, rows and share of them with one value that is filled
#: in, and share of the other arms' scores that are 0 or 1.
INVENTED_FEWEST, FILLED, SHARE, WHOLE = 20, 10, 0.03, 0.98
#: Questions on which an arm is compared with others, equal scores from which it is made of them,
#: and those with each single arm up to which it is.
COMMON, MADE, SINGLE = 100, 0.995, 0.95
#: Arms and questions from which verdicts can be at random, accuracies of arms that tell it,
#: correlation below which they are, and above which they are not.
INVENTED_ARMS, QUESTIONS, TELLING, RANDOM, RELATED = 3, 100, (0.2, 0.9), 0.05, 0.15


def filled_scores(answers: Answers) -> Iterator[Found]:
    """Cells in which one value between 0 and 1 is in every row, or where others have 0 or 1."""
    score = answers.score
    part = (score > 0) & (score < 1)
    order = np.argsort(answers.cell, kind="stable")
    cells, starts = np.unique(answers.cell[order], return_index=True)
    for cell, rows in zip(cells, np.split(order, starts[1:]), strict=True):
        rows = rows[~np.isnan(score[rows])]
        own = rows[part[rows]]
        if len(rows) < INVENTED_FEWEST or len(own) < max(FILLED, SHARE * len(rows)):
            continue
        value = float(score[own[0]])
        if np.ptp(score[own]) > 1e-12:
            continue
        a, s = divmod(int(cell), len(answers.suites))
        every = len(own) == len(rows)
        others = np.flatnonzero((answers.suite == s) & (answers.arm != a) & ~np.isnan(score))
        if not every and (len(others) < INVENTED_FEWEST or np.mean(~part[others]) < WHOLE):
            continue
        where = f" on {answers.suites[s]}" if answers.suites[s] else ""
        says = (
            f"the score of all {len(rows):,} answers is {value:.4g}: not what each one got (a "
            "mean, or an arm that is compared with itself)"
            if every
            else f"{len(own):,} of {len(rows):,} scores are {value:.4g}, where the other arms have "
            "0 or 1: filled in"
        )
        yield Found(f"{answers.arms[a]}{where}", says, np.sort(own))


def made_of_others(answers: Answers) -> Iterator[Found]:
    """Arms whose score is the best, the worst or the majority of the others' on each question."""
    arms = len(answers.arms)
    if not INVENTED_ARMS <= arms <= 400 or len(answers) > 2_000_000:
        return
    table = np.full((arms, answers.n_questions), np.nan)
    known = ~np.isnan(answers.score)
    table[answers.arm[known], answers.question[known]] = answers.score[known]
    there = ~np.isnan(table)
    number = there.sum(axis=0)
    filled = np.where(there, table, 0.0)
    top, low = _two(np.where(there, table, -np.inf)), -_two(np.where(there, -table, -np.inf))
    for a in range(arms):
        both = there[a] & (number >= INVENTED_ARMS)
        if both.sum() < COMMON:
            continue
        own, others = table[a, both], number[both] - 1
        mean = (filled[:, both].sum(axis=0) - own) / others
        made = {
            "the best": np.where(own == top[0, both], top[1, both], top[0, both]),
            "the worst": np.where(own == low[0, both], low[1, both], low[0, both]),
            "the majority": np.where(mean == 0.5, own, np.round(mean)),
        }
        for what, of in made.items():
            if np.mean(np.abs(own - of) < 1e-9) < MADE or not 0.02 < float(np.mean(own)) < 0.98:
                continue
            rest = [b for b in range(arms) if b != a]
            single = max(_equal(table[a], table[b]) for b in rest)
            if single >= SINGLE:
                continue
            says = (
                f"its score is {what} of the other arms' on {int(both.sum()):,} questions, and no "
                f"single arm's (at most {100 * single:.0f} % equal): it is made of them"
            )
            yield Found(answers.arms[a], says, np.flatnonzero(answers.arm == a))
            break


def _two(values: Floats) -> Floats:
    """(2, questions) the highest value of each question, and the next."""
    return np.asarray(-np.partition(-values, 1, axis=0)[:2])


def _equal(a: Floats, b: Floats) -> float:
    both = ~np.isnan(a) & ~np.isnan(b)
    return (
        float(np.mean(np.abs(a[both] - b[both]) < 1e-9)) if both.sum() >= INVENTED_FEWEST else 0.0
    )


def at_random(answers: Answers) -> Iterator[Found]:
    """Suites, or a recording, on which right answers of the arms fall on questions at random.

    What is hard for one arm is hard for others, also where a suite is hard for all.
    """
    if not INVENTED_ARMS <= len(answers.arms) <= 400:
        return
    found = {
        s: (*_relation(answers, s, one), int(one.known.any(axis=0).sum()))
        for s, one in answers.cached("suite scores", suite_scores).items()
    }
    told = {s: one for s, one in found.items() if one[1] > 0}
    off = [s for s, (mean, error, _) in told.items() if mean + 2 * error < RANDOM]
    rest = [mean for s, (mean, *_) in told.items() if s not in off]
    means = [mean for mean, *_ in told.values()]
    whole = len(off) >= len(rest) > 0 and float(np.mean(means)) < RANDOM and max(rest) < RELATED
    if whole:
        off, rest = list(told), []
    if rest and (float(np.median(rest)) < RELATED or len(off) > len(rest)):
        return
    for s in off:
        mean, _, number = told[s]
        usual = f", and of {float(np.median(rest)):.2f} on the other suites" if rest else ""
        says = (
            f"scores of any two arms have a correlation of {mean:.2f} over {number:,} questions"
            f"{usual}: labels at random, or of other questions"
        )
        rows = np.flatnonzero(answers.suite == s)
        yield Found(answers.suites[s] or "all questions", says, rows)


def _relation(answers: Answers, s: int, one: SuiteScores) -> tuple[float, float]:
    """Mean correlation of pairs of arms that tell something, and its standard error; 0 without."""
    number = one.known.sum(axis=1)
    # Arms at the same level of right answers by guessing find no question hard.
    size = len(answers.arms) * len(answers.suites)
    level = means(answers.cell, answers.score, size).reshape(-1, len(answers.suites))[:, s]
    use = np.flatnonzero((number >= QUESTIONS) & (level >= TELLING[0]) & (level <= TELLING[1]))
    if len(use) < INVENTED_ARMS or np.ptp(level[use]) < 0.1:
        return 0.0, 0.0
    pair, common = one.correlations()
    upper = np.triu_indices(len(use), 1)
    values, together = pair[np.ix_(use, use)][upper], common[np.ix_(use, use)][upper]
    usable = together >= QUESTIONS
    if not usable.any():
        return 0.0, 0.0
    return float(values[usable].mean()), float(1 / np.sqrt(together[usable].sum()))


def running_totals(answers: Answers) -> Iterator[Found]:
    """Arms whose costs only rise down the file: each row has the sum of those before it."""
    cost = answers.numbers("cost_usd")
    for a, name in enumerate(answers.arms):
        rows = np.flatnonzero((answers.arm == a) & ~np.isnan(cost))
        steps = np.diff(cost[rows])
        if len(rows) >= INVENTED_FEWEST and np.all(steps >= 0) and np.mean(steps > 0) >= 0.9:
            says = (
                f"its costs only rise down the file, from ${cost[rows[0]]:.3g} to "
                f"${cost[rows[-1]]:.3g}: a running total, not what each answer cost"
            )
            yield Found(name, says, rows)


def suites_of_two_names(answers: Answers) -> Iterator[Found]:
    """Suites whose names differ in case, spaces and signs alone."""
    spelled: dict[str, list[int]] = {}
    for s, name in enumerate(answers.suites):
        plain = "".join(x for x in name.casefold() if x.isalnum())
        if plain:
            spelled.setdefault(plain, []).append(s)
    for same in spelled.values():
        if len(same) > 1:
            names = ", ".join(repr(answers.suites[s]) for s in same)
            says = "are one name in several spellings: its questions are not compared"
            yield Found(names, says, np.flatnonzero(np.isin(answers.suite, same)))
