"""Submissions of other benchmarks: written in RouterArena's layout, and audited.

Layout as the importer of the same name reads it (`pipelines/ingest/importers/router_tables.py`):
a JSON list with one object per question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from routeyard.pipelines.common.arrays import Floats, Ints
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.common.staging import replacing
from routeyard.pipelines.evaluate.metrics.selection import (
    at_choice,
    query_oracle,
    right,
    solvable,
    task_oracle,
)
from routeyard.pipelines.evaluate.metrics.single import arena_score
from routeyard.schemas.errors import BadInput
from routeyard.schemas.statuses import ANSWERLESS

# Whether switches away from a submission's habits are right more often than skill explains.
#
# A router that has not seen the labels is about as right, against its own habit, where it leaves it
# as where it keeps it: its gain by leaving cannot be nearly the whole of what there is to gain.
# Choices that were swapped to right answers afterwards are right nearly always, and never wrong
# where the habit was right.

Choices = NDArray[np.int64]

#: Switches below which nothing is reported, p-value of a finding, and share of the switches of
#: which the choice is right where the habit is wrong, from which no skill explains it.
DEVIATIONS_FEWEST, LEVEL, SHARE = 20, 1e-4, 0.9


@dataclass(frozen=True)
class Deviations:
    """Switches away from the habit, among those where exactly one of the two is right.

    Attributes:
        switches: questions on which another model than the habitual one was chosen.
        discordant: of these, the questions on which one of the two is right and the other wrong.
        won: of these, the ones on which the choice is right.
        expected: share that `others` win: models that were chosen neither there nor by habit.
        p: chance of as many, if switches win as often as the strongest of the other models would.
        q: `p` times the habits that were tried (Bonferroni).
    """

    switches: int
    discordant: int
    won: int
    expected: float
    p: float
    q: float

    @property
    def fails(self) -> bool:
        """Whether it cannot be accepted."""
        n = self.discordant
        return n >= DEVIATIONS_FEWEST and self.q < LEVEL and self.won >= SHARE * n


def deviations(labels: Floats, choice: Choices, groups: NDArray[np.str_]) -> Deviations:
    """Test switches against the habit: the model that a submission chooses most, in each group.

    Under the null hypothesis a switch goes to a model by what the question looks like. It then
    wins, of the questions on which habit and choice differ in being right, about as often as the
    chosen model does on questions where the habit was kept (`untouched`): that is the router's own
    skill. The p-value is the upper tail of the binomial at that rate, raised by its standard error
    of two, and at least at the rate at which the best other model of each group would win.

    Args:
        labels: (n, m) scores; NaN is not known.
        choice: (n,) model chosen.
        groups: (n,) task of each question.
    """
    from scipy.stats import binom

    n = len(choice)
    habit = np.empty(n, np.int64)
    for name in np.unique(groups):
        own = groups == name
        habit[own] = np.bincount(choice[own], minlength=labels.shape[1]).argmax()
    rows = np.arange(n)
    right = np.where(np.isnan(labels), np.nan, labels >= 0.5)
    mine, usual = right[rows, choice], right[rows, habit]
    away = choice != habit
    mask = away & ~np.isnan(mine) & ~np.isnan(usual) & (mine != usual)
    won = int(mine[mask].sum())
    expected = _skill(right, choice, habit, away)
    total = int(mask.sum())
    p = float(binom.sf(won - 1, total, expected)) if total else 1.0
    tried = max(1, len(np.unique(habit)))
    return Deviations(int(away.sum()), total, won, expected, p, min(1.0, p * tried))


def _skill(right: Floats, choice: Choices, habit: Choices, away: NDArray[np.bool_]) -> float:
    """Share of differing questions that the chosen models win on questions left to the habit."""
    wins = number = 0.0
    rows = np.flatnonzero(~away)
    chosen, weight = np.unique(choice[away], return_counts=True)
    usual = right[rows, habit[rows]]
    for model, times in zip(chosen, weight, strict=True):
        other = right[rows, model]
        mask = ~np.isnan(other) & ~np.isnan(usual) & (other != usual)
        # Laplace's rule, and two standard errors in the submission's favour.
        rate = (other[mask].sum() + 1) / (mask.sum() + 2)
        rate = min(0.85, rate + 2 * np.sqrt(rate * (1 - rate) / (mask.sum() + 2)))
        wins, number = wins + times * rate, number + times
    return float(wins / number) if number else 0.5


#: Changes below which nothing is reported; what honest skill may add to the rate that train
#: questions lead to expect, in log-odds, and the level of that test; the share of gains from which
#: skill is no excuse, and the level there. Of 14,400 pairs of honest routers on eight matrices,
#: four of them never looked at before, none fails (`python -m benchmarks audit --resubmitted 20`).
_CHANGES, _SKILL, _RARE, _NEARLY_ALL, _RAREST = 15, 1.5, 1e-3, 0.8, 1e-4


@dataclass(frozen=True)
class Changed:
    """Choices that differ between two submissions, and what an honest new router would gain.

    Attributes:
        changed: questions with another choice.
        known: of these, the ones with labels of both models.
        gained, lost: of the known, wrong before and right now, and the reverse.
        expected: share of the known that the same changes of model gain on train questions of
            the same tasks.
        p: chance of as many gains at that share, raised by what skill may add.
        fails: Whether the changes go to right answers as nothing learned from train makes them.
    """

    changed: int
    known: int
    gained: int
    lost: int
    expected: float
    p: float
    fails: bool


def changed(
    labels: Floats,
    before: Choices,
    now: Choices,
    tasks: NDArray[np.str_],
    train: Floats,
    train_tasks: NDArray[np.str_],
) -> Changed:
    """Compare the choices of two submissions of one team for the same questions.

    Who changed choices after a look at the labels leaves one model where it is wrong, for one that
    is right. A better router leaves it on questions that look like failures: where the old model
    was right too, or the new one is wrong, it does not know. How often a change from one model to
    another gains is read off train questions of the task (a new router that always asks a better
    model gains much, and as expected).

    Args:
        labels: (n, m) scores; NaN is not known.
        before, now: (n,) model chosen.
        tasks: (n,) task of each question.
        train, train_tasks: The same of questions whose labels the team has.
    """
    from scipy.stats import binom

    rows = np.arange(len(now))
    old, new = labels[rows, before], labels[rows, now]
    known = ~np.isnan(old) & ~np.isnan(new) & (before != now)
    gained = int(np.sum(known & (new >= 0.5) & (old < 0.5)))
    lost = int(np.sum(known & (old >= 0.5) & (new < 0.5)))
    n = int(known.sum())
    if not n:
        return Changed(int(np.sum(before != now)), 0, 0, 0, 0.0, 1.0, False)
    rates = _gains(train, train_tasks, tasks[known], before[known], now[known])
    expected = min(0.98, max(0.02, float(rates.mean())))
    odds = expected / (1 - expected) * np.exp(_SKILL)
    p = float(binom.sf(gained - 1, n, odds / (1 + odds)))
    most = min(0.98, expected + 2 * np.sqrt(expected * (1 - expected) / n))
    nearly = gained >= _NEARLY_ALL * n and float(binom.sf(gained - 1, n, most)) < _RAREST
    fails = n >= _CHANGES and (p < _RARE or nearly)
    return Changed(int(np.sum(before != now)), n, gained, lost, expected, p, bool(fails))


def _gains(
    train: Floats,
    train_tasks: NDArray[np.str_],
    tasks: NDArray[np.str_],
    before: Choices,
    now: Choices,
) -> Floats:
    """(n,) share of train questions of the task on which the change goes from wrong to right.

    Few questions of a task are filled up with five of all tasks at their share.
    """
    gains: dict[tuple[str, int, int], float] = {}
    keys = [(str(t), int(a), int(b)) for t, a, b in zip(tasks, before, now, strict=True)]
    for key in keys:
        if key not in gains:
            task, a, b = key
            known = ~np.isnan(train[:, a]) & ~np.isnan(train[:, b])
            gain = known & (train[:, a] < 0.5) & (train[:, b] >= 0.5)
            overall = (gain.sum() + 0.5) / (known.sum() + 1)
            own = train_tasks == task
            gains[key] = float((gain[own].sum() + 5 * overall) / (known[own].sum() + 5))
    return np.array([gains[key] for key in keys])


# Is a submission of predictions what it says? Leaks, constants, foreign prices, gaps.
#
# Each finding has a name, a sentence and whether it is fatal. Nothing here knows how
# the choices were made; it is read off the choices, the release's labels and prices.

#: Share of solvable questions on which choices may equal the cheapest right model.
LEAK = 0.98
#: Questions under which a share says nothing.
AUDIT_FEWEST = 30
#: Relative difference at which a price is another price.
PRICE = 0.01


@dataclass(frozen=True)
class Suspicion:
    """`level`: `fail` (not to be accepted), `warn` (to be explained) or `ok`."""

    name: str
    level: str
    says: str


def audit(core: Core, scheme: str, table: pa.Table, *, split: str = "test") -> list[Suspicion]:
    """Findings on a table with `query_id` and `model_id`, and perhaps `cost` and `tokens`.

    Args:
        table: one choice per question; `cost` in USD, `tokens` of the answer.
    """
    missing = [c for c in ("query_id", "model_id") if c not in table.column_names]
    if missing:
        return [Suspicion("columns", "fail", f"there is no column {missing[0]!r}")]
    test = core.take(core.rows(scheme, split))
    coverage = _coverage(test, table)
    place = {q: k for k, q in enumerate(test.query_ids)}
    at_model = {m: k for k, m in enumerate(test.model_ids)}
    ids, models = _texts(table, "query_id"), _texts(table, "model_id")
    foreign = sorted({str(m) for m in models if m not in at_model})
    if foreign:
        coverage.append(
            Suspicion("models", "fail", f"{len(foreign)} model(s) not in the release: {foreign[0]}")
        )
    use = [k for k, q in enumerate(ids) if q in place and models[k] in at_model]
    if not use:
        return [*coverage, Suspicion("choices", "fail", "no row names a test question and a model")]
    rows = np.array([place[ids[k]] for k in use], dtype=np.int64)
    choice = np.array([at_model[models[k]] for k in use], dtype=np.int64)
    part = test.take(rows)
    coverage.append(_constant(part, choice))
    if np.isnan(part.labels).all():
        says = "looked for when the choices are scored: no label of a test question is here"
        coverage.append(Suspicion("label leak", "ok", says))
    else:
        coverage += [_leak(part, choice), _oracle(part, choice, core, scheme)]
        coverage.append(_switches(part, choice))
    for name in ("cost", "tokens"):
        if name in table.column_names:
            try:
                values = pc.take(table.column(name), pa.array(use)).cast(pa.float64())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                coverage.append(Suspicion(name, "fail", f"the column {name!r} holds no numbers"))
                continue
            numbers = values.to_numpy(zero_copy_only=False)
            check = _prices if name == "cost" else _tokens
            coverage.append(check(part, choice, numbers))
    return coverage


def choices(test: Core, table: pa.Table) -> Ints:
    """(n,) model chosen for each test question, of a table that `audit` found whole."""
    models = {m: k for k, m in enumerate(test.model_ids)}
    chosen = _choice_of(table)
    return np.array([models[chosen[q]] for q in test.query_ids], dtype=np.int64)


def _coverage(test: Core, table: pa.Table) -> list[Suspicion]:
    ids = _texts(table, "query_id")
    wanted, seen = set(test.query_ids), set(ids)
    coverage = []
    lacking, strange = sorted(wanted - seen), sorted(str(q) for q in seen - wanted)
    if lacking:
        says = f"{len(lacking)} of {len(wanted)} test questions are missing, such as {lacking[0]}"
        coverage.append(Suspicion("missing questions", "fail", says))
    if len(ids) > len(seen):
        says = f"{len(ids) - len(seen)} rows repeat a question: one choice each is asked for"
        coverage.append(Suspicion("repeated questions", "fail", says))
    if strange:
        says = f"{len(strange)} question(s) are not of the test split, such as {strange[0]}"
        coverage.append(Suspicion("foreign questions", "warn", says))
    return coverage or [Suspicion("questions", "ok", f"each of {len(wanted)} test questions once")]


def _constant(part: Core, choice: Ints) -> Suspicion:
    share = np.bincount(choice, minlength=part.n_models) / len(choice)
    top = int(share.argmax())
    if share[top] == 1.0 and part.n_models > 1:
        return Suspicion(
            "constant choice", "warn",
            f"every question goes to {part.model_ids[top]}: a single model, no router",
        )  # fmt: skip
    return Suspicion(
        "constant choice", "ok", f"{part.model_ids[top]} is asked most, {share[top]:.1%}"
    )


def _leak(part: Core, choice: Ints) -> Suspicion:
    """Choices that equal the cheapest right model wherever there is one have seen the labels."""
    y = part.labels
    can = solvable(y)
    usd = part.costs.get("usd")
    # Questions on which models differ: where all are right, the cheapest is no secret.
    tell = can & ~np.all(right(y) | np.isnan(y), axis=1)
    n = int(tell.sum())
    if n < AUDIT_FEWEST:
        return Suspicion("label leak", "ok", f"only {n} questions could tell")
    same = float(np.mean(choice[tell] == query_oracle(y, usd)[tell]))
    hit = float(np.mean(right(y)[np.arange(len(y)), choice][tell]))
    says = (
        f"on {n} solvable questions that not all models get right, {same:.1%} of the choices "
        f"are the cheapest right model and {hit:.1%} are right"
    )
    if same >= LEAK or hit >= LEAK:
        return Suspicion(
            "label leak", "fail", says + ": choices follow the answers of the test set"
        )
    return Suspicion("label leak", "ok", says)


def _oracle(part: Core, choice: Ints, core: Core, scheme: str) -> Suspicion:
    """Better than the best model of every (task, near-duplicate group) on test, is too good.

    That oracle knows test labels but not questions: what a router's features could
    at most say if tasks and repeated questions were all they held. Beating it by
    three standard errors is possible for a router that reads questions well, and is
    to be explained.
    """
    keys = np.array([f"{t}\0{d}" for t, d in zip(part.tasks, part.domains, strict=True)])
    # A choice without a label cannot be judged, so neither side counts there.
    judged = np.flatnonzero(~np.isnan(at_choice(part.labels, choice)))
    y = part.labels[judged]
    limit = at_choice(y, task_oracle(y, keys[judged]))
    hit = at_choice(y, choice[judged])
    difference = hit - limit
    error = float(difference.std(ddof=1) / np.sqrt(len(y))) if len(y) > 1 else 0.0
    gain = float(difference.mean()) if len(y) else 0.0
    says = (
        f"accuracy {hit.mean():.2%}; best model of each task on test {limit.mean():.2%} "
        f"(difference {100 * gain:+.2f} ± {100 * error:.2f} points)"
    )
    if len(y) >= AUDIT_FEWEST and gain > 3 * error and gain > 0.1:
        return Suspicion("beyond its features", "warn", says + ": far above what tasks can tell")
    return Suspicion("beyond its features", "ok", says)


def _switches(part: Core, choice: Ints) -> Suspicion:
    """Leaving the habitual model is right more often than the router's own skill explains."""
    seen = deviations(part.labels, choice, part.tasks)
    says = (
        f"{seen.switches} of {len(choice)} choices leave the model that is chosen most on their "
        f"task; where one of the two is right, the choice is in {seen.won} of "
        f"{seen.discordant} (skill elsewhere explains {seen.expected:.0%}; p {seen.p:.2g}, "
        f"q {seen.q:.2g})"
    )
    if seen.fails:
        says += ": choices were changed to right answers"
    return Suspicion("switches", "fail" if seen.fails else "ok", says)


def compare(core: Core, scheme: str, before: pa.Table, now: pa.Table) -> Suspicion:
    """Whether a team's choices changed towards right answers since an earlier submission."""
    test = core.take(core.rows(scheme, "test"))
    old, new = _choice_of(before), _choice_of(now)
    models = {m: k for k, m in enumerate(test.model_ids)}
    use = [k for k, q in enumerate(test.query_ids) if old.get(q) in models and new.get(q) in models]
    names = [test.query_ids[k] for k in use]
    first, then = (np.array([models[item[q]] for q in names], np.int64) for item in (old, new))
    learned = core.take(core.rows(scheme, "train"))
    seen = changed(test.labels[use], first, then, test.tasks[use], learned.labels, learned.tasks)
    says = (
        f"{seen.changed} of {len(use)} choices changed since the earlier submission: "
        f"{seen.gained} to right ones, {seen.lost} to wrong ones; on train questions such changes "
        f"lead to right ones in {seen.expected:.0%} (p {seen.p:.2g})"
    )
    if seen.fails:
        says += ": they follow the answers of the test set"
    return Suspicion("changes", "fail" if seen.fails else "ok", says)


def _texts(table: pa.Table, name: str) -> list[str]:
    values: list[str] = table.column(name).cast(pa.string()).to_pylist()
    return values


def _choice_of(table: pa.Table) -> dict[str, str]:
    return dict(zip(_texts(table, "query_id"), _texts(table, "model_id"), strict=True))


def _prices(part: Core, choice: Ints, cost: Floats) -> Suspicion:
    usd = part.costs.get("usd")
    if usd is None:
        return Suspicion("prices", "warn", "the release knows no dollars to compare with")
    real = at_choice(usd, choice)
    both = ~np.isnan(real) & ~np.isnan(cost)
    off = np.abs(cost[both] - real[both]) > PRICE * np.maximum(np.abs(real[both]), 1e-12)
    if off.any():
        ratio = float(np.median(cost[both][off] / np.maximum(real[both][off], 1e-300)))
        says = f"{int(off.sum())} of {int(both.sum())} costs are not the release's"
        return Suspicion("prices", "fail", f"{says}; median ratio {ratio:.3g}")
    return Suspicion("prices", "ok", f"{int(both.sum())} costs are the release's")


def _tokens(part: Core, choice: Ints, tokens: Floats) -> Suspicion:
    for model in np.unique(choice):
        own = tokens[choice == model]
        own = own[~np.isnan(own)]
        if len(own) >= AUDIT_FEWEST and np.all(own == own[0]):
            says = f"{len(own)} answers of {part.model_ids[model]} all have {own[0]:g} tokens"
            return Suspicion("token counts", "fail", says)
    return Suspicion("token counts", "ok", "counts differ between answers")


def rows(tables: Mapping[str, pa.Table], test: Core, choice: Ints) -> list[dict[str, Any]]:
    """One object per question: the chosen model's answer, its tokens, label and cost.

    The index is the question's id in its source where the source's ids are unique
    among the test questions, else our query_id.

    Raises:
        BadInput: a chosen model has no answer, label or cost of a question; what is
            not known cannot be sent as zero.
    """
    asked = {row["query_id"]: row for row in _columns(tables, "queries", _QUERY)}
    wanted = {(q, test.model_ids[m]) for q, m in zip(test.query_ids, choice, strict=True)}
    answers: dict[tuple[str, str], dict[str, Any]] = {}
    for row in _columns(tables, "responses", _RESPONSE):
        key = (row["query_id"], row["model_id"])
        if key in wanted and row["status"] not in (*ANSWERLESS, "refused"):
            answers.setdefault(key, row)
    cost = test.costs.get("usd")
    score = at_choice(test.labels, choice)
    paid = np.full(len(choice), np.nan) if cost is None else at_choice(cost, choice)
    ids = [asked[q]["source_id"] for q in test.query_ids]
    unique = len(set(ids)) == len(ids)
    out = []
    for k, query in enumerate(test.query_ids):
        model = test.model_ids[choice[k]]
        answer = answers.get((query, model))
        lacks = "answer" if answer is None else "label" if np.isnan(score[k]) else None
        lacks = lacks or ("cost" if np.isnan(paid[k]) else None)
        if lacks is not None or answer is None:
            raise BadInput(
                f"{model} has no {lacks} for question {query}",
                next_step="choose a model that has, or build the release without the question",
            )
        tokens = [answer["prompt_tokens"], answer["completion_tokens"]]
        usage = {"input_tokens": tokens[0], "output_tokens": tokens[1], "total_tokens": None}
        if None not in tokens:
            usage["total_tokens"] = sum(tokens)
        out.append(
            {
                "global index": ids[k] if unique else query,
                "prompt": asked[query]["prompt"],
                "prediction": model,
                "generated_result": {
                    "generated_answer": answer["text"], "success": True, "token_usage": usage,
                    "provider": answer["provider"], "error": None,
                },
                "accuracy": float(score[k]),
                "cost": float(paid[k]),
            }
        )  # fmt: skip
    return out


_QUERY = ("query_id", "source_id", "prompt")
_RESPONSE = (
    "query_id", "model_id", "text", "status", "provider", "prompt_tokens", "completion_tokens",
)  # fmt: skip


def _columns(
    tables: Mapping[str, pa.Table], name: str, columns: tuple[str, ...]
) -> list[dict[str, Any]]:
    if name not in tables:
        raise BadInput(f"the release has no table {name!r}, which a submission is made of")
    results: list[dict[str, Any]] = tables[name].select(list(columns)).to_pylist()
    return results


def write(path: Path, made: list[dict[str, Any]], test: Core, choice: Ints) -> float:
    """Write the file, read it back and hold its score against the release's; the score.

    Raises:
        BadInput: the file's score is not the one that labels and costs of the release give.
    """
    with replacing(path) as unfinished:
        text = json.dumps(made, ensure_ascii=False, indent=1) + "\n"
        unfinished.write_text(text, encoding="utf-8")
        back = json.loads(unfinished.read_text(encoding="utf-8"))
        result = score_of(back)
        wanted = float(
            arena_score(
                float(at_choice(test.labels, choice).mean()),
                1000 * float(at_choice(test.costs["usd"], choice).mean()),
            )
        )
        if len(back) != test.n_queries or abs(result - wanted) > 1e-9:
            raise BadInput(
                f"the file would score {result:.6f}, and the release says {wanted:.6f}",
                next_step="report this: the two are computed from the same answers",
            )
    return result


def score_of(made: list[dict[str, Any]]) -> float:
    """Arena score of a file: mean accuracy, and cost per 1,000 questions.

    >>> score_of([{"accuracy": 1.0, "cost": 0.0044 / 1000}])
    1.0
    """
    accuracy = float(np.mean([row["accuracy"] for row in made]))
    return float(arena_score(accuracy, 1000 * float(np.mean([row["cost"] for row in made]))))
