"""A whole run: cells of both stages through an executor, then rankings and references."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.common.arrays import Floats, Ints, Vectors
from routeyard.pipelines.common.matrix import Core, leaked
from routeyard.pipelines.common.staging import write_text
from routeyard.pipelines.evaluate.experiment import RouterSpec, architectures, order, price, traits
from routeyard.pipelines.evaluate.fit import (
    CellInputs,
    Fit,
    Ground,
    PredictionStore,
    ground,
    on_draw,
    read,
)
from routeyard.pipelines.evaluate.metrics.selection import (
    Choice,
    alone,
    at_choice,
    best,
    cost_penalised,
    query_oracle,
    random_mean,
    task_oracle,
    within_budget,
)
from routeyard.pipelines.evaluate.metrics.single import bce_cells
from routeyard.pipelines.evaluate.settings import (
    FIRST_SEED,
    MORE_SEEDS,
    PROTOCOL_SEEDS,
    EvaluationSettings,
)
from routeyard.pipelines.routers.base import no_chances
from routeyard.schemas.errors import BadInput

# Selection rules by name, as `route --rule` takes them; `selection` holds those of curves.
#
# A rule turns scores (n, m) and costs into choices. What a rule can do with a router depends on
# what its scores mean (`routeyard.pipelines.routers.listed.Scale`): only a probability can be
# weighed against cost in one unit.

#: Rule → scales of scores that it can use, and what its value is; None takes none.
RULES: Mapping[str, tuple[tuple[str, ...], str | None]] = {
    "argmax": (("probability", "similarity", "strength"), None),
    "utility": (("probability",), "λ from 0 to 1"),
    "query-budget": (("probability", "similarity", "strength"), "most cost of one question"),
    "sufficient": (("probability",), "least probability of a right answer, from 0 to 1"),
    "mean-budget": (("probability",), "most mean cost of a question"),
    "similarity": (("similarity",), "λ, at least 0"),
}


def refuse(rule: str, scale: str, router: str) -> None:
    """Raises BadInput: the rule cannot use scores of this scale."""
    if scale not in RULES[rule][0]:
        able = [name for name, (scales, _) in RULES.items() if scale in scales]
        raise BadInput(
            f"the rule {rule!r} needs a {' or '.join(RULES[rule][0])}, and the scores of "
            f"{router!r} are a {scale}",
            next_step=f"rules for it: {', '.join(able)}",
        )


def mean_budget(scores: Floats, cost: Floats, budget: float) -> Floats:
    """(n, m) probabilities of the best mix per question with mean cost at most `budget`.

    Prompt-to-Leaderboard's linear program, max Σ p·score, Σ p·cost ≤ C, Σ p = 1, on
    each question alone. Its solution mixes at most two models: corners of the
    upper hull of (cost, score).

    Args:
        cost: (m,) cost a router knows beforehand.

    Raises:
        BadInput: a cost is unknown, or the cheapest model is above the budget.
    """
    if np.isnan(cost).any():
        raise BadInput("a cost is unknown, so no budget can be kept")
    if cost.min() > budget:
        raise BadInput(f"the cheapest model costs {cost.min():g}, above the budget {budget:g}")
    n, m = scores.shape
    out = np.zeros((n, m))
    within = cost <= budget
    rows = np.arange(n)
    single = np.argmax(np.where(within, scores, -np.inf), axis=1)
    value, pair = scores[rows, single], np.stack([single, single], axis=1)
    share = np.ones(n)
    for a in np.flatnonzero(within):
        for b in np.flatnonzero(~within):
            part = (cost[b] - budget) / (cost[b] - cost[a])
            mixed = part * scores[:, a] + (1 - part) * scores[:, b]
            better = mixed > value + 1e-15
            value = np.where(better, mixed, value)
            pair[better], share = (a, b), np.where(better, part, share)
    out[rows, pair[:, 0]] += share
    out[rows, pair[:, 1]] += 1 - share
    return out


def cheapest_sufficient(scores: Floats, cost: Floats, floor: float) -> Choice:
    """(n,) the cheapest model whose score is at least `floor`; the highest score where none is.

    With 1 − q for `floor`, q the quantile of nonconformity on validation, it is
    CP-Router's choice inside a conformal set of models.

    >>> cheapest_sufficient(np.array([[0.9, 0.8], [0.6, 0.5]]), np.array([2.0, 1.0]), 0.7)
    array([1, 0])
    """
    enough = scores >= floor
    can = np.where(enough.any(axis=1, keepdims=True), enough, scores >= np.max(scores, 1)[:, None])
    whole = np.where(can, np.broadcast_to(cost, scores.shape), np.inf)
    # Of equally cheap models the one with the higher score.
    tied = whole <= whole.min(axis=1, keepdims=True)
    return np.asarray(np.argmax(np.where(tied, scores, -np.inf), axis=1))


def similarity_minus_cost(similarity: Floats, cost: Floats, weight: float, order: Ints) -> Choice:
    """(n,) argmax of similarity − λ·cost, cost min-max scaled over models.

    The rule of cost-spectrum contrastive routing; of equals the first of `order`.
    """
    low, high = float(np.nanmin(cost)), float(np.nanmax(cost))
    scaled = np.zeros_like(cost) if high <= low else (cost - low) / (high - low)
    value = similarity - weight * scaled
    return best(value, np.ones(value.shape, dtype=bool), order)


# The protocol of the plateau study: which cells there are, and which setting wins.
#
# arXiv 2606.07587, appendix E.4. Stage 1: every architecture (at most 15 a router)
# with seed 42. Stage 2: the five that route best on validation, λ = 0, again with
# seeds 1337, 2026, 7 and 99. The winner has the best mean validation accuracy of
# stage 2; its figure is mean ± sd of test accuracy over the five seeds. A router
# without chance has no second stage, and its best of stage 1 wins.

FINALISTS = 5
#: Stage of a fit that is made for `evaluate` and judged by nobody.
BESIDE = 0
#: Stage of a winner's fit on another draw of the split.
REDRAWN = 3
#: Reference that is what one would deploy without a router.
SINGLE = "best single model (train)"
#: Encoder of a router that reads none.
NO_ENCODER = "none"


@dataclass(frozen=True)
class ZooCell:
    """One fit.

    Attributes:
        architecture: the setting as JSON with sorted keys.
        stage: 1, 2, `BESIDE` or `REDRAWN`.
        draw: which draw of the split, from 1; 0 is the release's own.
    """

    router: str
    encoder: str
    architecture: str
    seed: int
    stage: int
    draw: int = 0

    @property
    def setting(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.architecture)
        return data


@dataclass(frozen=True)
class CellResult:
    """What a cell came to.

    Attributes:
        val_accuracy, test_accuracy: routing accuracy at λ = 0; None when refused.
        fit_s: seconds on the clock of fitting; `cpu_s` of its thread's processor time for
            the whole cell, reading scores included.
        peak_mb: largest resident memory of the process meanwhile, 10^6 bytes.
        reason: why the router refused this release; None when it did not.
        not_as_published: what of its published settings the fit could not honour, `; ` between.
        clean_accuracy: on the test questions that are not also in train; None without any.
    """

    cell: ZooCell
    val_accuracy: float | None
    test_accuracy: float | None
    fit_s: float
    cpu_s: float
    peak_mb: float
    reason: str | None = None
    not_as_published: str = ""
    clean_accuracy: float | None = None


@dataclass(frozen=True)
class Ranking:
    """A router with one encoder.

    Attributes:
        winner: the cell of seed 42 with the chosen setting; its scores are evaluated.
        mean, sd: of test accuracy over the seeds; sd is 0 for one seed.
        clean: mean of that on the test questions that are not also in train.
        validation: mean validation accuracy that the choice was made by.
        seeds: how many.
        fit_s: mean seconds of a fit of the winner; `total_s` of fits in all its cells.
        cpu_s: processor seconds of all its cells.
        peak_mb: largest of all its cells.
    """

    winner: ZooCell
    mean: float
    sd: float
    clean: float | None
    validation: float
    seeds: int
    fit_s: float
    total_s: float
    cpu_s: float
    peak_mb: float


def setting_text(setting: Mapping[str, Any]) -> str:
    return json.dumps(dict(setting), sort_keys=True)


def first_stage(
    router: str, encoder: str, architectures: Sequence[Mapping[str, Any]], seed: int = FIRST_SEED
) -> list[ZooCell]:
    return [ZooCell(router, encoder, setting_text(item), seed, 1) for item in architectures]


def second_stage(results: Sequence[CellResult], seeds: Sequence[int] = MORE_SEEDS) -> list[ZooCell]:
    """Cells of the finalists of one router and encoder, from its first stage."""
    ranked = sorted(
        (r for r in results if r.val_accuracy is not None and r.cell.stage == 1),
        # Equal on validation: the setting listed first, which a stable sort keeps.
        key=lambda r: -(r.val_accuracy or 0.0),
    )
    return [
        ZooCell(r.cell.router, r.cell.encoder, r.cell.architecture, seed, 2)
        for r in ranked[:FINALISTS]
        for seed in seeds
    ]


def _clean(results: Sequence[CellResult]) -> float | None:
    items = [r.clean_accuracy for r in results if r.clean_accuracy is not None]
    return float(np.mean(items)) if len(items) == len(results) else None


def spread(values: Sequence[float] | Floats) -> tuple[float, float]:
    """(mean, sample standard deviation); 0 for one value."""
    result = np.asarray(values, dtype=np.float64)
    return float(result.mean()), float(result.std(ddof=1)) if len(result) > 1 else 0.0


def ranking(results: Sequence[CellResult]) -> Ranking | None:
    """The winner of one router and encoder; None when it refused every cell."""
    good = [r for r in results if r.val_accuracy is not None and r.test_accuracy is not None]
    if not good:
        return None
    later = [r for r in good if r.cell.stage == 2]
    judged = later or good
    by_setting: dict[str, list[float]] = {}
    for r in judged:
        by_setting.setdefault(r.cell.architecture, []).append(float(r.val_accuracy or 0.0))
    # max keeps the first of equals, and cells are in the order of the settings.
    chosen = max(by_setting, key=lambda text: float(np.mean(by_setting[text])))
    own = [r for r in good if r.cell.architecture == chosen]
    mean, sd = spread([float(r.test_accuracy or 0.0) for r in own])
    winner = next(r.cell for r in own if r.cell.stage == 1)
    return Ranking(
        winner,
        mean,
        sd,
        _clean(own),
        float(np.mean(by_setting[chosen])),
        len(own),
        float(np.mean([r.fit_s for r in own])),
        float(sum(r.fit_s for r in good)),
        float(sum(r.cpu_s for r in good)),
        max(r.peak_mb for r in good),
    )


# One cell: how a router with one setting and seed routes validation and test, written down.
#
# What it predicts is a fit's (`experiment.fit`), kept for every command. The record is written last
# and by renaming, so a record that is there is whole: a kill at any moment costs the cells in
# flight and nothing else.


@dataclass(frozen=True)
class Job:
    """What a worker gets: strings and numbers only, so that any process can take it.

    Attributes:
        fingerprint: of code, data, vectors, setting and seed; names the record.
        bench: folder of the bench.
        cells: folder of the records; `store` of predictions.
        data, vectors, texts: hashes of the bench's files.
        code: hash of the code that decides the router's figures.
        and_train: whether what it says of its train questions is kept too.
        redrawn: file of another draw of the split; empty for the bench's own.
    """

    cell: ZooCell
    spec: RouterSpec
    fingerprint: str
    bench: str
    cells: str
    store: str
    data: str
    vectors: str
    texts: str
    code: str
    and_train: bool = False
    redrawn: str = ""

    @property
    def ground(self) -> Ground:
        """What the cell learns from and is asked."""
        return ground(Path(self.bench), self.data, self.vectors, self.texts, self.redrawn)

    def fit_of(self) -> Fit:
        """The fit of the cell; nothing is fitted before it is asked what is not kept."""
        own = replace(self.spec, setting=self.cell.setting, seed=self.cell.seed)
        store = PredictionStore(Path(self.store), {own.name: self.code})
        return Fit(own, self.ground.train, store)


def run_cell(job: Job) -> CellResult:
    """Run a cell, or read its record where there is one.

    A router that refuses the release (BadInput) gives a result without figures
    that says why; anything else it raises is a fault of its code and is raised.
    """
    record = Path(job.cells) / f"{job.fingerprint}.json"
    if job.cell.stage in (BESIDE, REDRAWN):
        return _on_test(job)
    known = recorded(record, job.cell)
    if known is not None:
        return known
    on, fit = job.ground, job.fit_of()
    try:
        validation = hits(on.validation, fit.scores(on.asked_before), on.order).mean()
        test = hits(on.test, fit.scores(on.asked), on.order)
        if job.and_train:
            fit.scores(on.train.queries)
    except BadInput as refused:
        peak = fit.record.peak_mb
        result = CellResult(job.cell, None, None, 0.0, 0.0, peak, reason=refused.args[0])
    else:
        took, unlike = fit.record, "; ".join(fit.record.not_as_published)
        result = CellResult(
            job.cell, float(validation), float(test.mean()), took.fit_s, took.cpu_s, took.peak_mb,
            not_as_published=unlike,
            clean_accuracy=float(test[on.clean].mean()) if on.clean.any() else None,
        )  # fmt: skip
    write_text(record, json.dumps(asdict(result)))
    return result


def _on_test(job: Job) -> CellResult:
    """The test alone of a fit that has no place in the protocol: its scores are kept."""
    try:
        fit = job.fit_of()
        scores = fit.scores(job.ground.asked)
        if job.cell.stage == BESIDE:
            fit.scores(job.ground.asked_before)
    except BadInput as refused:
        return CellResult(job.cell, None, None, 0.0, 0.0, 0.0, reason=refused.args[0])
    test = float(hits(job.ground.test, scores, job.ground.order).mean())
    return CellResult(job.cell, None, test, 0.0, 0.0, 0.0)


def recorded(record: Path, cell: ZooCell) -> CellResult | None:
    """The result of a record; None without one or when it cannot be read."""
    try:
        values = json.loads(record.read_text())
    except (OSError, ValueError):
        return None
    values.pop("cell", None)
    return CellResult(cell, **values)


def hits(part: Core, scores: Floats, order: Ints) -> Floats:
    """(n,) labels of what scores (n, m) choose at λ = 0; ties go to whom `order` has first."""
    # What is counted is read off float32, as an encoder's vectors are.
    rounded = scores.astype(np.float32).astype(np.float64)
    choice = best(rounded, ~np.isnan(part.labels), order)
    return at_choice(part.labels, choice)


def train_bce_of_cell(job: Job) -> float | None:
    """Mean cross-entropy of a cell's scores on its train questions; None where they are no chances.

    The cell is fitted again where its scores there were not kept.
    """
    fit, train = job.fit_of(), job.ground.train
    if fit.scale != "probability":
        return None
    scores = fit.scores(train.queries)
    return None if no_chances(scores) else float(np.nanmean(bce_cells(scores, train.labels)))


def forget(job: Job) -> None:
    """Drop what is kept of a cell's scores, but of a router's own setting: others ask for it."""
    fit, on = job.fit_of(), job.ground
    own = Fit(replace(job.spec, seed=job.cell.seed), on.train, fit.store)
    if fit.key != own.key:
        for asked in (on.asked_before, on.asked):
            fit.forget(asked)


#: Of the fit that `evaluate` asks for by default.
OWN_SEED = EvaluationSettings().seeds[0]
#: Runs jobs somewhere and yields what they come to, in any order.
Map = Callable[[Iterable[Job]], Iterator[CellResult]]


@dataclass(frozen=True)
class Zoo:
    """Attributes:
    results: of all cells, refusals included.
    rankings: (router, encoder) → its ranking.
    refused: (router, encoder) → why it has none.
    winners: (router, encoder) → the winner's cell, whose scores are kept.
    references: name → test accuracy of best single model, task map oracle and so on.
    over_splits: (router, encoder) → test accuracies of its winner, fitted anew, on other draws
        of the split; of (`SINGLE`, "") those of the best single model.
    leaked: how many test questions are also in train.
    """

    results: list[CellResult]
    rankings: dict[tuple[str, str], Ranking]
    refused: dict[tuple[str, str], str]
    winners: dict[tuple[str, str], Job]
    references: dict[str, float]
    over_splits: dict[tuple[str, str], list[float]]
    leaked: int


def run_zoo(
    bench: CellInputs,
    specs: Sequence[RouterSpec],
    map_: Map,
    *,
    folder: Path,
    store: Path | None = None,
    code: Mapping[str, str] | None = None,
    seeds: Sequence[int] = PROTOCOL_SEEDS,
    on_progress: Callable[[int, int], None] | None = None,
    search: bool = True,
) -> Zoo:
    """Both stages of every router with every encoder, and the fit that `evaluate` asks for.

    Without `search` the first setting of each, once, and what it says of train is kept too.

    Args:
        folder: where cells are stored; those that are there are not run again.
        store: where predictions are kept; by default beside the cells.
        code: router → hash of the code that decides its figures.
        seeds: of the first stage, then of the second.
        on_progress: called with (done, wanted) fits; wanted grows as a stage begins.
    """
    by_name = {spec.name: spec for spec in specs}
    job = partial(_job, bench, by_name, folder, store or folder.parent / "predictions", code or {})
    first, extra = _first(bench, specs, seeds[0], search)
    jobs = [replace(job(item), and_train=not search) for item in first]
    counts = [0, 0]

    def through(some: list[Job]) -> list[CellResult]:
        counts[1] += len(some)
        items = []
        for result in map_(some):
            items.append(result)
            counts[0] += 1
            if on_progress:
                on_progress(counts[0], counts[1])
        places = {job.cell: place for place, job in enumerate(some)}
        return sorted(items, key=lambda result: places[result.cell])

    done = through(jobs)
    more = [
        job(item)
        for (router, _), results in _groups(done).items()
        if search and traits(by_name[router]).stochastic
        for item in second_stage(results, seeds[1:])
    ]
    done += through(more)
    for _ in map_(job(item) for item in extra):
        pass
    by_cell = {job.cell: job for job in [*jobs, *more]}
    rankings, refused = _judged(done)
    winners = {key: by_cell.pop(value.winner) for key, value in rankings.items()}
    for lost in sorted(by_cell.values(), key=lambda item: item.vectors):
        forget(lost)
    again = [
        replace(job(replace(won.cell, stage=REDRAWN, draw=k)), redrawn=drawn)
        for k, drawn in enumerate(bench.redrawn, 1)
        for won in winners.values()
        if not won.spec.is_table
    ]
    over = _over_splits(bench, through(again))
    core = read(bench.folder, bench.data, "", bench.texts)
    baselines = references(core, bench.scheme)
    return Zoo(done, rankings, refused, winners, baselines, over, leaks(core, bench.scheme))


def _over_splits(
    bench: CellInputs, results: Sequence[CellResult]
) -> dict[tuple[str, str], list[float]]:
    """`Zoo.over_splits`; a router that refused a draw is left out."""
    core = read(bench.folder, bench.data, "")
    draws = [on_draw(core, bench.folder / drawn) for drawn in bench.redrawn]
    over = {(SINGLE, ""): [references(draw, bench.scheme)[SINGLE] for draw in draws]}
    for key, own in _groups(results).items():
        reached = [item.test_accuracy for item in own if item.test_accuracy is not None]
        if len(reached) == len(draws):
            over[key] = reached
    return over


def leaks(core: Core, scheme: str) -> int:
    """How many of the test questions that have a label are also in train."""
    rows = core.rows(scheme, "test")
    return int(leaked(core, scheme, rows[~np.isnan(core.labels[rows]).all(axis=1)]).sum())


def _first(
    bench: CellInputs, specs: Sequence[RouterSpec], seed: int, search: bool
) -> tuple[list[ZooCell], list[ZooCell]]:
    """Cells of the first stage, and those that `evaluate` asks for."""
    first: list[ZooCell] = []
    cells: list[ZooCell] = []
    for spec in specs:
        reads = "embeddings" in traits(spec).needs
        for encoder in list(bench.vectors) if reads else [NO_ENCODER]:
            settings = architectures(spec)[: None if search else 1]
            first += first_stage(spec.name, encoder, settings, seed)
            # `evaluate` takes no validation questions from train, so it learns from others there.
            if search and not bench.carved and not spec.is_table:
                cells.append(ZooCell(spec.name, encoder, "{}", OWN_SEED, BESIDE))
    return first, cells


def _judged(
    done: Sequence[CellResult],
) -> tuple[dict[tuple[str, str], Ranking], dict[tuple[str, str], str]]:
    """(router, encoder) → its ranking, and → why it has none."""
    rankings, refused = {}, {}
    for key, results in _groups(done).items():
        result = ranking(results)
        if result is None:
            refused[key] = results[0].reason or "no cell was fitted"
        else:
            rankings[key] = result
    return rankings, refused


def references(core: Core, scheme: str) -> dict[str, float]:
    """Test accuracy of what is no router: best single model on train, chance, oracles."""
    test = core.take(core.rows(scheme, "test")).labelled()
    y = test.labels
    cost, first = price(core, scheme), order(core, scheme)
    return {
        SINGLE: float(at_choice(y, alone(~np.isnan(y), first)[:, first[0]]).mean()),
        "uniform random": float(np.nanmean(random_mean(y))),
        "task oracle": float(at_choice(y, task_oracle(y, test.tasks, cost, first)).mean()),
        "oracle": float(at_choice(y, query_oracle(y)).mean()),
    }


def _winners(zoo: Zoo, encoder: str) -> dict[str, Job]:
    """Router → its winner with an encoder, or without any."""
    return {name: job for (name, used), job in zoo.winners.items() if used in (encoder, NO_ENCODER)}


def scores(zoo: Zoo, encoder: str) -> dict[str, Vectors]:
    """Router → (n, m) float32 scores of its winner on the test questions that have a label."""
    return {
        router: job.fit_of().scores(job.ground.asked).astype(np.float32)
        for router, job in _winners(zoo, encoder).items()
    }


def train_bce(zoo: Zoo, encoder: str) -> dict[str, float]:
    """Router → cross-entropy of its winner on the train questions, where it gives chances."""
    result = {name: train_bce_of_cell(job) for name, job in _winners(zoo, encoder).items()}
    return {router: value for router, value in result.items() if value is not None}


def _groups(results: Sequence[CellResult]) -> dict[tuple[str, str], list[CellResult]]:
    groups: dict[tuple[str, str], list[CellResult]] = {}
    for result in results:
        groups.setdefault((result.cell.router, result.cell.encoder), []).append(result)
    return groups


def _job(
    bench: CellInputs,
    specs: Mapping[str, RouterSpec],
    folder: Path,
    store: Path,
    code: Mapping[str, str],
    cell: ZooCell,
) -> Job:
    spec, own = specs[cell.router], code.get(cell.router, "")
    vectors = "" if cell.encoder == NO_ENCODER else bench.vectors[cell.encoder]
    what = [own, spec.name, spec.target, bench.data, vectors, bench.texts]
    if spec.is_table:
        what.append(hashlib.sha256(Path(spec.target).read_bytes()).hexdigest())
    text = json.dumps([*what, bench.scheme, cell.architecture, cell.seed])
    return Job(
        cell, spec, hashlib.sha256(text.encode()).hexdigest()[:24], str(bench.folder), str(folder),
        str(store), bench.data, vectors, bench.texts, own,
    )  # fmt: skip


# A rule by its name applied to a router's scores: `rule` or `rule:value`, as commands take it.


@dataclass(frozen=True)
class ChoiceRequest:
    """A rule with its value."""

    rule: str
    value: float | None


def asked(text: str) -> ChoiceRequest:
    """What `rule:value` says.

    Raises:
        BadInput: there is no such rule, or its value is missing, extra or out of range.

    >>> asked("utility:0.3")
    ChoiceRequest(rule='utility', value=0.3)
    """
    rule, _, result = text.partition(":")
    if rule not in RULES:
        raise BadInput(f"there is no rule {rule!r}", next_step=f"known: {', '.join(RULES)}")
    said = RULES[rule][1]
    if said is None:
        if result:
            raise BadInput(f"the rule {rule!r} takes no value", next_step=f"write {rule}")
        return ChoiceRequest(rule, None)
    try:
        value = float(result)
    except ValueError:
        value = float("nan")
    high = 1.0 if rule in ("utility", "sufficient") else np.inf
    if not 0 <= value <= high or np.isinf(value):
        raise BadInput(
            f"the rule {rule!r} needs a value; got {result!r}",
            next_step=f"write {rule}:VALUE with {said}",
        )
    return ChoiceRequest(rule, value)


def shares(
    what: ChoiceRequest, scores: Floats, cost: Floats | None, *, router: str, scale: str
) -> Floats:
    """(n, m) share with which each model is asked: rows of one 1, but for `mean-budget`.

    Of equal models the first column is asked: a release is read best on train first.

    Args:
        cost: (m,) cost a router knows beforehand; None where none is known.

    Raises:
        BadInput: the rule cannot use these scores, or needs costs that are not known.
    """
    refuse(what.rule, scale, router)
    of_chances = RULES[what.rule][0] == ("probability",)
    if of_chances and (beyond := no_chances(scores)) is not None:
        raise BadInput(
            f"the rule {what.rule!r} weighs chances from 0 to 1, and the scores of {router!r} "
            f"{beyond}",
            next_step="scale them, or give the router `traits = Traits(scale=…)` that fits them",
        )
    if cost is None and what.rule != "argmax":
        raise BadInput(
            f"the rule {what.rule!r} weighs cost, and no cost is known for every model",
            next_step="use argmax, or a release with prices",
        )
    price = np.zeros(scores.shape[1]) if cost is None else cost
    can, first = np.ones(scores.shape, dtype=bool), np.arange(scores.shape[1])
    value = float(what.value or 0.0)
    if what.rule == "mean-budget":
        return mean_budget(scores, price, value)
    at = np.array([value])
    choose: dict[str, Callable[[], NDArray[Any]]] = {
        "argmax": lambda: best(scores, can, first),
        "utility": lambda: cost_penalised(scores, can, price, at, first)[:, 0],
        "query-budget": lambda: within_budget(scores, can, price, at, first)[:, 0],
        "sufficient": lambda: cheapest_sufficient(scores, price, value),
        "similarity": lambda: similarity_minus_cost(scores, price, value, first),
    }
    return np.eye(scores.shape[1])[choose[what.rule]().astype(np.int64)]
