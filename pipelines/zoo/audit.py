"""Is a submission of predictions what it says? Leaks, constants, foreign prices, gaps.

Each finding has a name, a sentence and whether it is fatal. Nothing here knows how
the choices were made; it is read off the choices, the release's labels and prices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.metrics.baselines import query_oracle, task_oracle
from routeyard.pipelines.metrics.plateau import right, solvable
from routeyard.pipelines.metrics.selection import at_choice
from routeyard.pipelines.zoo.deviations import changed, deviations

#: Share of solvable questions on which choices may equal the cheapest right model.
LEAK = 0.98
#: Questions under which a share says nothing.
FEWEST = 30
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
    found = _coverage(test, table)
    place = {q: k for k, q in enumerate(test.query_ids)}
    at_model = {m: k for k, m in enumerate(test.model_ids)}
    ids = table.column("query_id").cast(pa.string()).to_pylist()
    models = table.column("model_id").cast(pa.string()).to_pylist()
    foreign = sorted({str(m) for m in models if m not in at_model})
    if foreign:
        found.append(
            Suspicion("models", "fail", f"{len(foreign)} model(s) not in the release: {foreign[0]}")
        )
    use = [k for k, q in enumerate(ids) if q in place and models[k] in at_model]
    if not use:
        return [*found, Suspicion("choices", "fail", "no row names a test question and a model")]
    rows = np.array([place[ids[k]] for k in use], dtype=np.int64)
    choice = np.array([at_model[models[k]] for k in use], dtype=np.int64)
    part = test.take(rows)
    found.append(_constant(part, choice))
    if np.isnan(part.labels).all():
        says = "looked for when the choices are scored: no label of a test question is here"
        found.append(Suspicion("label leak", "ok", says))
    else:
        found += [_leak(part, choice), _oracle(part, choice, core, scheme)]
        found.append(_switches(part, choice))
    for name in ("cost", "tokens"):
        if name in table.column_names:
            try:
                values = pc.take(table.column(name), pa.array(use)).cast(pa.float64())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                found.append(Suspicion(name, "fail", f"the column {name!r} holds no numbers"))
                continue
            numbers = values.to_numpy(zero_copy_only=False)
            check = _prices if name == "cost" else _tokens
            found.append(check(part, choice, numbers))
    return found


def choices(test: Core, table: pa.Table) -> Ints:
    """(n,) model chosen for each test question, of a table that `audit` found whole."""
    models = {m: k for k, m in enumerate(test.model_ids)}
    names = table.column("model_id").cast(pa.string()).to_pylist()
    ids = table.column("query_id").cast(pa.string()).to_pylist()
    chosen = dict(zip(ids, names, strict=True))
    return np.array([models[chosen[q]] for q in test.query_ids], dtype=np.int64)


def _coverage(test: Core, table: pa.Table) -> list[Suspicion]:
    ids = table.column("query_id").cast(pa.string()).to_pylist()
    wanted, seen = set(test.query_ids), set(ids)
    found = []
    lacking, strange = sorted(wanted - seen), sorted(str(q) for q in seen - wanted)
    if lacking:
        says = f"{len(lacking)} of {len(wanted)} test questions are missing, such as {lacking[0]}"
        found.append(Suspicion("missing questions", "fail", says))
    if len(ids) > len(seen):
        says = f"{len(ids) - len(seen)} rows repeat a question: one choice each is asked for"
        found.append(Suspicion("repeated questions", "fail", says))
    if strange:
        says = f"{len(strange)} question(s) are not of the test split, such as {strange[0]}"
        found.append(Suspicion("foreign questions", "warn", says))
    return found or [Suspicion("questions", "ok", f"each of {len(wanted)} test questions once")]


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
    if n < FEWEST:
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
    if len(y) >= FEWEST and gain > 3 * error and gain > 0.1:
        return Suspicion("beyond its features", "warn", says + ": far above what tasks can tell")
    return Suspicion("beyond its features", "ok", says)


def _switches(part: Core, choice: Ints) -> Suspicion:
    """Leaving the habitual model is right more often than the router's own skill explains."""
    seen = deviations(part.labels, choice, part.tasks)
    says = (
        f"{seen.switches} of {len(choice)} choices leave the model that is chosen most on their "
        f"task; where one of the two is right, the choice is in {seen.won} of "
        f"{seen.told} (skill elsewhere explains {seen.expected:.0%}; p {seen.p:.2g}, "
        f"q {seen.q:.2g})"
    )
    if seen.fails:
        says += ": choices were changed to right answers"
    return Suspicion("switches", "fail" if seen.fails else "ok", says)


def compare(core: Core, scheme: str, before: pa.Table, now: pa.Table) -> Suspicion:
    """Whether a team's choices changed towards right answers since an earlier submission."""
    test = core.take(core.rows(scheme, "test"))
    old, new = dict(_rows(before)), dict(_rows(now))
    models = {m: k for k, m in enumerate(test.model_ids)}
    use = [k for k, q in enumerate(test.query_ids) if old.get(q) in models and new.get(q) in models]
    names = [test.query_ids[k] for k in use]
    first, then = (np.array([models[one[q]] for q in names], np.int64) for one in (old, new))
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


def _rows(table: pa.Table) -> list[tuple[str, str]]:
    columns = (
        table.column(name).cast(pa.string()).to_pylist() for name in ("query_id", "model_id")
    )
    return list(zip(*columns, strict=True))


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
        if len(own) >= FEWEST and np.all(own == own[0]):
            says = f"{len(own)} answers of {part.model_ids[model]} all have {own[0]:g} tokens"
            return Suspicion("token counts", "fail", says)
    return Suspicion("token counts", "ok", "counts differ between answers")
