"""Checks of figures: scores and costs that were not measured, and what stopped at a limit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from routeyard.pipelines.audit.answers import (
    Answers,
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
    item, other = (
        1e6 * float(np.median(cost[rows] / (prompt[rows] + completion[rows])))
        for rows in (near, rest)
    )
    return (
        f"its costs are its tokens at two prices, about ${item:.3g} per million tokens in "
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


# Scores that are made of others, or at random.

#: Questions that two arms have in common from which their scores are compared.
INVENTED_FEWEST = 20
#: Questions on which an arm is compared with others, equal scores from which it is made of them,
#: and those with each single arm up to which it is.
COMMON, MADE, SINGLE = 100, 0.995, 0.95
#: Arms and questions from which verdicts can be at random, accuracies of arms that tell it,
#: correlation below which they are, and above which they are not.
INVENTED_ARMS, QUESTIONS, TELLING, RANDOM, RELATED = 3, 100, (0.2, 0.9), 0.05, 0.15


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
    result = {
        s: (*_relation(answers, s, item), int(item.known.any(axis=0).sum()))
        for s, item in answers.cached("suite scores", suite_scores).items()
    }
    suites = {s: item for s, item in result.items() if item[1] > 0}
    off = [s for s, (mean, error, _) in suites.items() if mean + 2 * error < RANDOM]
    rest = [mean for s, (mean, *_) in suites.items() if s not in off]
    means = [mean for mean, *_ in suites.values()]
    whole = len(off) >= len(rest) > 0 and float(np.mean(means)) < RANDOM and max(rest) < RELATED
    if whole:
        off, rest = list(suites), []
    if rest and (float(np.median(rest)) < RELATED or len(off) > len(rest)):
        return
    for s in off:
        mean, _, number = suites[s]
        usual = f", and of {float(np.median(rest)):.2f} on the other suites" if rest else ""
        says = (
            f"scores of any two arms have a correlation of {mean:.2f} over {number:,} questions"
            f"{usual}: labels at random, or of other questions"
        )
        rows = np.flatnonzero(answers.suite == s)
        yield Found(answers.suites[s] or "all questions", says, rows)


def _relation(answers: Answers, s: int, scores: SuiteScores) -> tuple[float, float]:
    """Mean correlation of pairs of arms that tell something, and its standard error; 0 without."""
    number = scores.known.sum(axis=1)
    # Arms at the same level of right answers by guessing find no question hard.
    size = len(answers.arms) * len(answers.suites)
    level = means(answers.cell, answers.score, size).reshape(-1, len(answers.suites))[:, s]
    use = np.flatnonzero((number >= QUESTIONS) & (level >= TELLING[0]) & (level <= TELLING[1]))
    if len(use) < INVENTED_ARMS or np.ptp(level[use]) < 0.1:
        return 0.0, 0.0
    pair, common = scores.correlations()
    upper = np.triu_indices(len(use), 1)
    values, together = pair[np.ix_(use, use)][upper], common[np.ix_(use, use)][upper]
    usable = together >= QUESTIONS
    if not usable.any():
        return 0.0, 0.0
    return float(values[usable].mean()), float(1 / np.sqrt(together[usable].sum()))
