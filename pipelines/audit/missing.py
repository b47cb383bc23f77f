"""Answers that are missing where questions are hard, and accuracies over other questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.audit.answers import Answers, Codes, Floats, Mask, counts
from routeyard.pipelines.audit.finding import Found
from routeyard.pipelines.model_names import same_model

#: Share of the questions that an arm may lack, and standard errors from which what it lacks is
#: easier or harder than what it has.
LACKS, HIGHEST = 0.01, 4.0
#: Change of an accuracy, by imputation, from which it matters.
MATTERS = 0.01
#: Columns of usage, the share of an arm's answers from which it states them, and the fewest that
#: it may lack.
_USAGE = {"cost_usd": "the costs", "prompt_tokens": "the prompt tokens",
          "completion_tokens": "the completion tokens", "latency_s": "the times"}  # fmt: skip
STATED, FEWEST = 0.95, 5
#: Chance, over all arms, below which a share of unscored answers is out of line.
RARE = 0.001


@dataclass(frozen=True, eq=False)
class ArmCoverage:
    """What arms answered, and what their accuracy is where answers are missing.

    Attributes:
        n: (arms,) questions with a score.
        of: (arms,) questions of the suites in which it has any.
        accuracy: (arms,) mean over the scored ones.
        low, high: (arms,) the accuracy if all missing ones were wrong, or right.
        imputed: (arms,) the accuracy if it answers a missing question as well, against the other
            arms' mean, as it does the others (missing at random within a question's difficulty).
        z: (arms,) by how many standard errors the other arms do better on what it has than on
            what it lacks.
    """

    n: Floats
    of: Floats
    accuracy: Floats
    low: Floats
    high: Floats
    imputed: Floats
    z: Floats


def coverage(answers: Answers) -> ArmCoverage:
    """Coverage of every arm over all questions that any arm has scored."""
    arms, m = len(answers.arms), answers.n_questions
    score = np.clip(answers.score, 0, 1)
    known = ~np.isnan(score)
    key = answers.arm[known] * m + answers.question[known]
    # A question's score is the mean over its samples.
    unique, inverse = np.unique(key, return_inverse=True)
    mean = np.bincount(inverse, weights=score[known]) / np.bincount(inverse)
    arm, question = unique // m, unique % m
    total = np.bincount(question, weights=mean, minlength=m)
    number = np.bincount(question, minlength=m).astype(float)
    asked = number > 0
    made = {name: np.full(arms, np.nan) for name in ArmCoverage.__dataclass_fields__}
    for a in range(arms):
        mine = arm == a
        if not mine.any():
            made["n"][a], made["of"][a] = 0, asked.sum()
            continue
        own, at = mean[mine], question[mine]
        rest = number.copy()
        rest[at] -= 1
        sums = total.copy()
        sums[at] -= own
        with np.errstate(invalid="ignore", divide="ignore"):
            difficulty = np.where(rest > 0, sums / rest, np.nan)
        has = np.zeros(m, bool)
        has[at] = True
        lacks = asked & ~has
        made["n"][a], made["of"][a], made["accuracy"][a] = len(own), asked.sum(), own.mean()
        made["low"][a] = own.sum() / asked.sum()
        made["high"][a] = (own.sum() + lacks.sum()) / asked.sum()
        made["imputed"][a], made["z"][a] = _imputed(own, difficulty, at, lacks)
    return ArmCoverage(**made)


def _imputed(own: Floats, difficulty: Floats, at: Codes, lacks: Mask) -> tuple[float, float]:
    """(accuracy with missing answers imputed by difficulty, z of has against lacks)."""
    there, gone = difficulty[at], difficulty[lacks]
    there, gone = there[~np.isnan(there)], gone[~np.isnan(gone)]
    if not len(gone) or not len(there):
        return float(own.mean()), 0.0
    error = np.sqrt(there.var() / len(there) + gone.var() / len(gone)) + 1e-9
    z = (there.mean() - gone.mean()) / error
    known = ~np.isnan(difficulty[at])
    edges = np.quantile(there, np.linspace(0, 1, 11)[1:-1])
    bins, wanted = np.digitize(difficulty[at][known], edges), np.digitize(gone, edges)
    total = np.bincount(bins, weights=own[known], minlength=10) + own.mean()
    rate = total / (np.bincount(bins, minlength=10) + 1)
    filled = (own.sum() + rate[wanted].sum()) / (len(own) + len(gone))
    return float(filled), float(z)


def not_at_random(answers: Answers) -> Iterator[Found]:
    """Arms whose missing answers are to easier or harder questions than their others."""
    if len(answers.arms) < 3:
        return
    found = answers.cached("coverage", coverage)
    lacks = 1 - found.n / np.maximum(found.of, 1)
    for a in np.argsort(-np.nan_to_num(np.abs(found.z)), kind="stable"):
        differs = abs(found.z[a]) > HIGHEST and abs(found.imputed[a] - found.accuracy[a]) > MATTERS
        if lacks[a] <= LACKS or not differs:
            continue
        harder = "harder" if found.z[a] > 0 else "easier"
        says = (
            f"{int(found.n[a]):,} of {int(found.of[a]):,} questions have a score, and those it "
            f"lacks are {harder}: {100 * found.accuracy[a]:.1f} % as recorded, "
            f"{100 * found.imputed[a]:.1f} % with missing answers by difficulty "
            f"[{100 * found.low[a]:.1f}, {100 * found.high[a]:.1f}]"
        )
        after = np.where(np.arange(len(answers.arms)) == a, found.imputed, found.accuracy)
        yield Found(
            answers.arms[a], says, np.empty(0, np.int64), after=after, before=found.accuracy
        )


def undecided(answers: Answers) -> Iterator[Found]:
    """Arms of whose answers more have no score than of the other arms' together (exact test)."""
    from scipy.special import bdtrc

    arms, m = len(answers.arms), np.isnan(answers.score)
    rows, lacks = counts(answers.arm, arms, np.ones(len(m), bool)), counts(answers.arm, arms, m)
    for a in range(arms if arms > 1 else 0):
        rest = rows.sum() - rows[a]
        share = (lacks.sum() - lacks[a]) / max(rest, 1)
        # As many as `lacks`, were each as rarely left open as those of the others (and one more).
        usual = min(1.0, (lacks.sum() - lacks[a] + 1) / (rest + 1))
        if lacks[a] < FEWEST or lacks[a] / rows[a] - share < LACKS:
            continue
        if arms * bdtrc(int(lacks[a]) - 1, int(rows[a]), usual) < RARE:
            right = np.nansum(np.clip(answers.score[answers.arm == a], 0, 1))
            low, high = 100 * right / rows[a], 100 * (right + lacks[a]) / rows[a]
            says = (
                f"{int(lacks[a]):,} of {int(rows[a]):,} answers have no score, of the other arms' "
                f"{100 * share:.1f} %: its accuracy is {low:.1f} to {high:.1f} %, whatever they are"
            )
            yield Found(answers.arms[a], says, np.flatnonzero(m & (answers.arm == a)))


def disjoint(answers: Answers) -> Iterator[Found]:
    """Groups of arms that share no question with the other groups: nothing compares them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    known = ~np.isnan(answers.score)
    arm, question = answers.arm[known], answers.question[known] + len(answers.arms)
    size = len(answers.arms) + answers.n_questions
    graph = coo_array((np.ones(len(arm)), (arm, question)), shape=(size, size))
    label = connected_components(graph, directed=False)[1]
    groups = [np.flatnonzero(label[: len(answers.arms)] == k) for k in np.unique(label[arm])]
    if len(groups) > 1:
        each = "; ".join(", ".join(answers.arms[a] for a in own[:3]) for own in groups[:3])
        says = (
            f"{len(groups)} groups of arms share no question with one another ({each}): their "
            "accuracies are over other questions and cannot be compared"
        )
        yield Found("arms", says, np.empty(0, np.int64))


def few_answers(answers: Answers) -> Iterator[Found]:
    """Arms on top of the leaderboard that the lower bound of their accuracy does not hold there."""
    found = answers.cached("coverage", coverage)
    if len(answers.arms) < 2 or np.isnan(found.accuracy).all():
        return
    top = int(np.nanargmax(found.accuracy))
    if found.n[top] >= 0.8 * found.of[top]:
        return
    best = int(np.nanargmax(found.low))
    if best == top:
        return
    says = (
        f"leads with {100 * found.accuracy[top]:.1f} % of {int(found.n[top]):,} of "
        f"{int(found.of[top]):,} questions; by the lower bound {answers.arms[best]} leads with "
        f"{100 * found.low[best]:.1f} %"
    )
    yield Found(
        answers.arms[top], says, np.empty(0, np.int64), after=found.low, before=found.accuracy
    )


def unmeasured(answers: Answers) -> Iterator[Found]:
    """Arms without costs, tokens or times that other arms state; by arm.

    Their place in a ranking by cost is unknown, and not the first.
    """
    asked = ~np.isnan(answers.score)
    size = len(answers.arms)
    total = counts(answers.arm, size, asked)
    lacks: dict[int, list[str]] = {}
    for name, words in _USAGE.items():
        known = counts(answers.arm, size, asked & ~np.isnan(answers.numbers(name)))
        share = known / np.maximum(total, 1)
        # A column that few arms state says nothing of those that do not.
        if (share >= STATED).sum() >= max(1, 0.5 * (total > 0).sum()):
            for a in np.flatnonzero((share < STATED) & (total - known >= FEWEST)):
                lacks.setdefault(int(a), []).append(f"{words} of {int(total[a] - known[a]):,}")
    for arm, unknown in lacks.items():
        of = f"{', '.join(unknown)} of {int(total[arm]):,} answers"
        rows = np.flatnonzero(asked & (answers.arm == arm))
        yield Found(answers.arms[arm], f"{of} are unknown: other arms state them", rows)


def two_names(answers: Answers) -> Iterator[Found]:
    """Arms that share no question and whose names are one model's but for a provider or a date."""
    arms, m = len(answers.arms), answers.n_questions
    alike = [
        (a, b)
        for a in range(arms)
        for b in range(a + 1, arms)
        if same_model(answers.arms[a], answers.arms[b])
    ]
    for a, b in alike:
        asked = [np.bincount(answers.question[answers.arm == k], minlength=m) > 0 for k in (a, b)]
        if not (asked[0] & asked[1]).any():
            names = f"{answers.arms[a]} and {answers.arms[b]}"
            says = "are one model by their names, and share no question: one arm under two names"
            yield Found(names, says, np.flatnonzero((answers.arm == a) | (answers.arm == b)))
