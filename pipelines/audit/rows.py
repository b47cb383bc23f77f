"""Checks of rows and their figures: repeated, missing, or not what they claim to be."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.audit.answers import (
    Answers,
    Codes,
    Floats,
    Found,
    Mask,
    components,
    counts,
    means,
    residuals,
)
from routeyard.pipelines.audit.exchanges import SuiteScores, suite_scores
from routeyard.schemas.questions import marks_of, same_question

# Questions that are one question: equal words, equal ids, modes; those on two sides of a split.

#: Words of which an id that is only a row number may be made.
_ROW = re.compile(
    r"(?:test|train|dev|val|valid|validation|eval|row|id|idx|index|q|question|query|task|item|doc|"
    r"sample|example|instance|case|problem|prob|no|num|nr|line|main)*"
)
#: Labels that a mode adds to an id, and questions from which they are one.
MODES, STEMS = 8, 10
#: Share of the questions that come under several ids from which they are modes.
MOST = 0.5


def is_row_number(name: str) -> bool:
    """Whether an id says only which row it is: `17`, `test-17`, `question_0017`.

    >>> is_row_number("test/17"), is_row_number("django__django-11099")
    (True, False)
    """
    letters = re.sub(r"[\d\W_]+", "", name.lower())
    return _ROW.fullmatch(letters) is not None


def _asked(answers: Answers) -> pa.Array:
    """Text of each question, of its first row."""
    return answers.texts("prompt").take(pa.array(answers.first))


def _ids(answers: Answers) -> list[str]:
    return list(answers.texts("question").take(pa.array(answers.first)).to_pylist())


def groups_of(answers: Answers) -> Codes:
    """(questions,) number of the group of questions that are one: equal or near-equal words, or,
    where nobody knows the words, one id in several suites that is no row number."""
    return answers.cached("groups", _groups)


def _groups(answers: Answers) -> Codes:
    n = answers.n_questions
    if answers.has("prompt"):
        asked = _asked(answers)
        known = np.asarray(
            pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(asked)), 0).fill_null(False)
        )
        exact = np.asarray(marks_of(asked).dictionary_encode().indices).astype(np.int64)
        label = np.where(known, exact, exact.max(initial=0) + 1 + np.arange(n))
        return same_question(asked.to_pylist(), np.unique(label, return_inverse=True)[1])
    ids = answers.coded("question")[answers.first]
    names = _ids(answers)
    values = np.array([not is_row_number(name) for name in names])
    label = np.where(values, ids, ids.max(initial=0) + 1 + np.arange(n))
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


def modes(answers: Answers) -> Iterator[Found]:
    """One question under several ids that differ by a mode, an effort or a seed."""
    if (result := are_modes(answers)) is not None:
        yield Found("questions", result[0], _rows_of(answers, result[1]), "grave")


def are_modes(answers: Answers) -> tuple[str, Codes] | None:
    """Why questions are modes of one, and which they are; None where they differ."""
    names = _ids(answers)
    if answers.has("prompt"):
        group = groups_of(answers)
        size = np.bincount(group)[group]
        if (
            len(group) >= STEMS
            and (size > 1).mean() >= MOST
            and len(answers.suites) < 2 * len(group)
        ):
            each = Counter(size[size > 1].tolist()).most_common(1)[0][0]
            labels = _labels(names)
            under = f" ({', '.join(sorted(labels)[:4])})" if labels else ""
            says = (
                f"{int((size > 1).sum()):,} of {len(group):,} questions ask the same words as "
                f"another, most of them {each} times{under}: modes or samples of one question, "
                "not questions"
            )
            return says, np.flatnonzero(size > 1)
        return None
    labels = _labels(names)
    if not labels:
        return None
    says = (
        f"ids differ only by {', '.join(sorted(labels)[:4])}: modes or samples of one question, "
        "not questions"
    )
    return says, np.arange(len(names))


def _labels(names: Sequence[str]) -> set[str]:
    """What follows the last sign of ids, where the same few labels end nearly all stems."""
    stems: dict[str, set[str]] = defaultdict(set)
    for name in names:
        cut = re.match(r"(.+)[@#:|/_\-. ]+([A-Za-z][\w@+]*)$", name)
        if cut is None:
            return set()
        stems[cut[1]].add(cut[2])
    labels = set().union(*stems.values()) if stems else set()
    whole = sum(len(stem) == len(labels) for stem in stems.values())
    several = 2 <= len(labels) <= MODES and len(stems) >= STEMS
    return labels if several and whole >= 0.8 * len(stems) else set()


#: Prompts of a suite, characters that they open with alike, and part of a prompt from which these
#: are worked examples or instructions.
PROMPTS, OPENING, PART = 10, 200, 0.5


def same_opening(answers: Answers) -> Iterator[Found]:
    """Suites whose prompts open alike: worked examples or instructions, not the question."""
    suites = answers.suite[answers.first]
    asked = _asked(answers)
    for s in np.unique(suites):
        own = np.flatnonzero(suites == s)
        some = asked.take(pa.array(own[:: max(1, len(own) // 500)])).drop_null().to_pylist()
        some = sorted(set(some))
        if len(some) < PROMPTS:
            continue
        # The common start of the texts between is that of these two; a few may open otherwise.
        pairs = zip(some[len(some) // 10], some[-1 - len(some) // 10], strict=False)
        start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        usual = float(np.median([len(text) for text in some]))
        if start < OPENING or start < PART * usual:
            continue
        says = (
            f"its prompts open with the same {start:,} characters of {usual:,.0f} in the median: "
            "worked examples or instructions, which embeddings read before the question"
        )
        yield Found(answers.suites[s] or "prompts", says, _rows_of(answers, own), "note")


def _rows_of(answers: Answers, questions: Codes) -> Codes:
    inside = np.zeros(answers.n_questions, bool)
    inside[questions] = True
    return np.flatnonzero(inside[answers.question])


# Answers that are missing where questions are hard, and accuracies over other questions.

#: Share of the questions that an arm may lack, and standard errors from which what it lacks is
#: easier or harder than what it has.
LACKS, HIGHEST = 0.01, 4.0
#: Change of an accuracy, by imputation, from which it matters.
MATTERS = 0.01
#: The fewest answers without a score that are a finding.
FEWEST = 5
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


def coverage(answers: Answers, score: Floats | None = None) -> ArmCoverage:
    """Coverage of every arm over all questions that any arm has scored.

    Args:
        score: (n,) other scores than the recorded ones.
    """
    arms, m = len(answers.arms), answers.n_questions
    score = np.clip(answers.score if score is None else score, 0, 1)
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
    value = answers.cached("coverage", coverage)
    lacks = 1 - value.n / np.maximum(value.of, 1)
    for a in np.argsort(-np.nan_to_num(np.abs(value.z)), kind="stable"):
        differs = abs(value.z[a]) > HIGHEST and abs(value.imputed[a] - value.accuracy[a]) > MATTERS
        if lacks[a] <= LACKS or not differs:
            continue
        harder = "harder" if value.z[a] > 0 else "easier"
        says = (
            f"{int(value.n[a]):,} of {int(value.of[a]):,} questions have a score, and those it "
            f"lacks are {harder}: {100 * value.accuracy[a]:.1f} % as recorded, "
            f"{100 * value.imputed[a]:.1f} % with missing answers by difficulty "
            f"[{100 * value.low[a]:.1f}, {100 * value.high[a]:.1f}]"
        )
        after = np.where(np.arange(len(answers.arms)) == a, value.imputed, value.accuracy)
        yield Found(
            answers.arms[a], says, np.empty(0, np.int64), after=after, before=value.accuracy
        )


def undecided(answers: Answers) -> Iterator[Found]:
    """Arms of whose answers more have no score than of the other arms' together (exact test)."""
    arms, m = len(answers.arms), np.isnan(answers.score)
    rows, lacks = counts(answers.arm, arms, np.ones(len(m), bool)), counts(answers.arm, arms, m)
    for a in range(arms if arms > 1 else 0):
        rest = rows.sum() - rows[a]
        share = (lacks.sum() - lacks[a]) / max(rest, 1)
        # As many as `lacks`, were each as rarely left open as those of the others (and one more).
        usual = min(1.0, (lacks.sum() - lacks[a] + 1) / (rest + 1))
        if lacks[a] < FEWEST or lacks[a] / rows[a] - share < LACKS:
            continue
        from scipy.special import bdtrc  # takes longer to import than most audits

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
    known = ~np.isnan(answers.score)
    arm, question = answers.arm[known], answers.question[known]
    label = components(arm, question, len(answers.arms), answers.n_questions)
    groups = [np.flatnonzero(label == k) for k in np.unique(label[arm])]
    if len(groups) > 1:
        each = "; ".join(", ".join(answers.arms[a] for a in own[:3]) for own in groups[:3])
        says = (
            f"{len(groups)} groups of arms share no question with one another ({each}): their "
            "accuracies are over other questions and cannot be compared"
        )
        yield Found("arms", says, np.empty(0, np.int64))


def few_answers(answers: Answers) -> Iterator[Found]:
    """Arms on top of the leaderboard that the lower bound of their accuracy does not hold there."""
    result = answers.cached("coverage", coverage)
    if len(answers.arms) < 2 or np.isnan(result.accuracy).all():
        return
    top = int(np.nanargmax(result.accuracy))
    if result.n[top] >= 0.8 * result.of[top]:
        return
    best = int(np.nanargmax(result.low))
    if best == top:
        return
    says = (
        f"leads with {100 * result.accuracy[top]:.1f} % of {int(result.n[top]):,} of "
        f"{int(result.of[top]):,} questions; by the lower bound {answers.arms[best]} leads with "
        f"{100 * result.low[best]:.1f} %"
    )
    yield Found(
        answers.arms[top], says, np.empty(0, np.int64), after=result.low, before=result.accuracy
    )


# Costs, tokens and latencies that are not what they claim to be.

#: USD per million tokens that a model may cost: more than ten times the dearest, a tenth of the
#: cheapest that was ever listed.
PLAUSIBLE = (0.001, 10_000.0)
#: Answers from which a share of an arm is judged.
COSTS_FEWEST = 20
#: Relative difference at which an answer has another price, and the share that has to have one.
OFF, COSTS_SAME = 0.05, 0.7
#: Ratio to what arm and suite explain, from which a mean cost is a finding, and its score.
RATIO, COSTS_HIGHEST = 5.0, 6.0


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
    odd = (np.abs(left) > np.log(RATIO)) & (np.abs(left) > COSTS_HIGHEST * spread)
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
    near = np.abs(a[both] - b[both]) < 1e-9
    return float(near.mean()) if len(near) >= INVENTED_FEWEST else 0.0


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
