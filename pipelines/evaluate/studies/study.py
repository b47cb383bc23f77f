"""What a study is: a name, a paper's item, what it needs, and how its cells are filled."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.arrays import Bools, Floats, Ints
from routeyard.pipelines.common.files import read_text
from routeyard.pipelines.common.matrix import (
    Core,
    Examples,
    LabelMatrix,
    core_of,
    first_measure,
    label_matrix,
    leaked,
)
from routeyard.pipelines.evaluate.experiment import (
    RouterSpec,
    default_scheme,
    identity,
    with_validation,
)
from routeyard.pipelines.evaluate.fit import PredictionStore
from routeyard.pipelines.evaluate.metrics.bootstrap import interval
from routeyard.pipelines.evaluate.results import default_pair
from routeyard.pipelines.evaluate.run import Evaluation, evaluate
from routeyard.pipelines.evaluate.run.mixing import across, alike, few, mixed
from routeyard.pipelines.evaluate.run.tables import priced_in
from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import Router, traits_of
from routeyard.pipelines.routers.confidence import shown
from routeyard.schemas.contracts import RESULTS, Contract, columns, rules
from routeyard.schemas.errors import BadInput

# What a study is given: a release's tables, read once, and evaluations, made once.

_Made = TypeVar("_Made")
#: Makes a fresh router for a seed.
Maker = Callable[[int], Router]

#: Resamples of statistics that are computed anew on every resample.
SLOW_RESAMPLES = 200


#: Routers → where their predictions are kept; None where nothing is.
Kept = Callable[[Sequence[RouterSpec]], PredictionStore | None]


def made(router: str, **setting: Any) -> RouterSpec:
    """A registered router with some of its settings: a `Maker`."""
    return RouterSpec(router, ROUTERS.targets[router], setting)


@dataclass(frozen=True)
class ZooFigures:
    """What a zoo found on a release, each part made when a study first asks for it.

    Attributes:
        by_encoder: Encoder → evaluation of the winners' scores on test.
        on_train: Encoder → router → cross-entropy on the train questions, where it gives chances.
        cells: One row per configuration that was fitted (`zoo_cells` of `results.yaml`).
    """

    by_encoder: Callable[[], Mapping[str, Evaluation]]
    on_train: Callable[[], Mapping[str, Mapping[str, float]]]
    cells: Callable[[], pa.Table]


@dataclass(eq=False)
class StudyContext:
    """A release and how it is to be measured.

    Attributes:
        release: Name of the release (its recipe's name).
        tables: Contract tables by name, `embeddings` among them where there are some.
        pair: (small, large) for binary routing; None picks the two models of a pool of two.
        routers: Routers to use instead of those a study names; empty for the study's own.
        resamples: Bootstrap resamples of means; slow statistics take `SLOW_RESAMPLES`.
        make: Router name → maker of a fresh router for a seed.
        joined: Name → tables of releases that are trained on as well, for studies of mixtures.
        tested: Name → tables of releases that are only tested on: out of distribution.
        zoo: What a zoo found on the release; None where none was run.
        kept: Where predictions are kept; by default nowhere.
    """

    release: str
    tables: Mapping[str, pa.Table]
    make: Callable[[str], Maker]
    scheme: str | None = None
    pair: tuple[str, str] | None = None
    routers: Sequence[str] = ()
    resamples: int = 2_000
    seed: int = 0
    joined: Mapping[str, Mapping[str, pa.Table]] = field(default_factory=dict)
    tested: Mapping[str, Mapping[str, pa.Table]] = field(default_factory=dict)
    zoo: ZooFigures | None = None
    kept: Kept = lambda specs: None
    _evaluations: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def core(self) -> Core:
        """Labels, costs, embeddings and splits as dense arrays."""
        return core_of(self.tables)

    @cached_property
    def matrix(self) -> LabelMatrix:
        """Who is right on what, real models only."""
        return label_matrix(self.tables, where=f"study of {self.release}")

    def default_scheme(self) -> str:
        """The scheme asked for, else `dense`, else the first in order."""
        return default_scheme(self.core, self.scheme)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Models that are held out: of the default scheme, else of the only one that has some."""
        known = {name: models for name, models in self.core.unseen.items() if models}
        only = next(iter(known.values())) if len(known) == 1 else ()
        return known.get(self.default_scheme(), only)

    def evaluation(
        self, routers: Sequence[str], *, ood: bool = False, seeds: int = 1, all: bool = False
    ) -> Evaluation:
        """Routers of these names on the release; the same question is answered once."""
        makers = {name: self.make(name) for name in self.routers or routers}
        return self.measured(makers, ood=ood, seeds=seeds, all=all)

    def measured(self, makers: Mapping[str, Maker], **settings: Any) -> Evaluation:
        """`compared`, where routers of equal settings are asked for again: the same object."""
        key = ("measured", who(makers), tuple(sorted(settings.items())))
        return self.once(key, lambda: self.compared(makers, **settings))

    def once(self, key: object, make: Callable[[], _Made]) -> _Made:
        """What `make` gives, made the first time that this key is asked for with these settings."""
        how = (self.scheme, self.pair, tuple(self.routers), self.resamples, self.seed)
        if (key, how) not in self._evaluations:
            self._evaluations[key, how] = make()
        evaluation: _Made = self._evaluations[key, how]
        return evaluation

    def compared(
        self, makers: Mapping[str, Maker], core: Core | None = None, **settings: Any
    ) -> Evaluation:
        """Routers of these makers; on another core, with this release's scheme."""
        store = self.kept([item for item in makers.values() if isinstance(item, RouterSpec)])
        return evaluate(
            self.core if core is None else core,
            makers,
            scheme=self.default_scheme(),
            resamples=self.resamples,
            seed=self.seed,
            pair=self.pair,
            store=store,
            **settings,
        )

    def able(self, routers: Sequence[str]) -> tuple[str, ...]:
        """Of these routers, or of those that were asked for, the ones this release can feed."""
        has = {
            "embeddings": self.core.embeddings is not None,
            "signals": bool(self.core.signals),
            "hidden": self.core.hidden is not None,
            "descriptors": bool(self.core.descriptors),
            "arms": self.core.arms is not None,
        }
        return tuple(
            name
            for name in self.routers or routers
            if all(has.get(need, True) for need in traits_of(_class(name)).needs)
            and shown(name.partition(":")[0], self.core.signals)
        )

    @cached_property
    def cores(self) -> dict[str, Core]:
        """This release and those beside it, with the models they share: own, joined, tested.

        A release alone that holds several sources is several: each source is one.
        """
        others = {**self.joined, **self.tested}
        if not others and len(self._sources) > 1:
            return {name: self.core.take(rows) for name, rows in self._sources.items()}
        return alike({self.release: self.core, **{n: core_of(t) for n, t in others.items()}})

    @cached_property
    def _sources(self) -> dict[str, Ints]:
        """Source → its rows of the core, sources in order of their names."""
        named = self.core.sources
        if named is None:
            return {}
        return {str(name): np.flatnonzero(named == name) for name in np.unique(named)}

    @property
    def domains(self) -> tuple[str, ...]:
        """Releases, or sources of this one, that can be trained on; this release first."""
        if self.release in self.cores:
            return (self.release, *self.joined)
        parts = self.cores.items()
        return tuple(name for name, item in parts if self._learns(item, self._scheme_of(name)))

    @staticmethod
    def _learns(core: Core, scheme: str) -> bool:
        return bool(np.any(core.splits[scheme] == "train"))

    def training(self, releases: Sequence[str], n: int | None = None) -> Examples:
        """Train questions of these releases together; n of each, drawn by the seed."""
        parts = []
        for name in releases:
            core = self.cores[name]
            part = core.training(self._scheme_of(name))
            parts.append(part if n is None else few(part, n, self.seed))
        return mixed(parts)

    def across(
        self,
        makers: Mapping[str, Maker],
        train: Examples,
        parts: Mapping[str, Bools] | None = None,
    ) -> dict[str, Evaluation]:
        """Release → routers fitted on `train`, on the test questions of every release.

        Args:
            parts: More to test on: name → questions of this release.
        """
        pair = self.pair or default_pair(next(iter(self.cores.values())))
        tests = {name: self._tests_of(name) for name in self.cores}
        tests |= {name: self._testing(rows) for name, rows in (parts or {}).items()}
        tests = {n: test for n, test in tests.items() if "test" in test[0].splits[test[1]]}
        return across(
            train,
            tests,
            {name: partial(make, self.seed) for name, make in makers.items()},
            pair=pair,
            resamples=self.resamples,
            seed=self.seed,
        )

    def _tests_of(self, name: str) -> tuple[Core, str]:
        """(core, scheme) that tests on a release, or on a source of this one."""
        if self.release in self.cores:
            return self.cores[name], self._scheme_of(name)
        assert self.core.sources is not None
        return self._testing(self.core.sources == name)

    def _testing(self, rows: Bools) -> tuple[Core, str]:
        """This release with only some of its test questions."""
        scheme = self.default_scheme()
        split = np.where((self.core.splits[scheme] == "test") & ~rows, "", self.core.splits[scheme])
        return replace(self.core, splits={scheme: split}), scheme

    def _scheme_of(self, name: str) -> str:
        if name == self.release or self.release not in self.cores:
            return self.default_scheme()
        return self.scheme_beside(self.cores[name])

    def scheme_beside(self, other: Core) -> str:
        """The scheme asked for where another release has it too, else that one's usual one."""
        return default_scheme(other, self.scheme if self.scheme in other.splits else None)

    def intervals(self, statistic: Callable[[LabelMatrix], Floats]) -> list[tuple[float, float]]:
        """95 % intervals of a statistic (k,) of the label matrix, over resampled questions.

        Questions are drawn with replacement within each task, so tasks keep their sizes.
        """
        generator = np.random.default_rng(self.seed)
        by_task = [np.flatnonzero(self.matrix.task == t) for t in range(len(self.matrix.tasks))]
        results = []
        for _ in range(min(SLOW_RESAMPLES, self.resamples)):
            rows = np.concatenate([generator.choice(part, len(part)) for part in by_task])
            results.append(statistic(taken(self.matrix, rows)))
        replicates = np.stack(results)
        return [interval(replicates[:, k]) for k in range(replicates.shape[1])]


def _class(name: str) -> Any:
    """The class of a registered router, named with or without a preset."""
    return ROUTERS.get(name.partition(":")[0])


def who(makers: Mapping[str, Maker]) -> tuple[tuple[str, Any], ...]:
    """Names of routers and what decides their fits: equal for equal settings."""
    return tuple(
        (name, own if isinstance(make, RouterSpec) and (own := identity(make)) else make)
        for name, make in makers.items()
    )


def taken(matrix: LabelMatrix, rows: Ints) -> LabelMatrix:
    """The matrix of these questions, repeats included."""
    return replace(
        matrix,
        queries=[matrix.queries[row] for row in rows.tolist()],
        task=matrix.task[rows],
        correct=matrix.correct[:, rows],
        known=matrix.known[:, rows],
    )


#: How a value is shown: a share in percent, a difference of shares in percentage points,
#: a whole number, or a number as it is.
Unit = Literal["percent", "points", "count", "number"]


@dataclass(frozen=True, slots=True)
class StudyCell:
    """One cell: a value with its 95 % interval, or a text.

    Attributes:
        row, column: Headings; the tables show them in order of appearance.
        value: In the unit's own scale: a share for `percent` and `points`, never times 100.
        low, high: 95 % interval; None where the value has none.
        text: Shown instead of a value (a model's name).
        note: Why the value is null, or how it is to be read.
    """

    row: str
    column: str
    value: float | None = None
    unit: Unit = "number"
    low: float | None = None
    high: float | None = None
    text: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """A table or a figure of a paper, for any release that has what it needs.

    Attributes:
        name: As in `routeyard study NAME`.
        paper: Short name of the paper, as other studies of it write it; `routeyard` for our own.
        item: `Table 2`, `Figure 4`, several divided by commas.
        title: What it shows, in our words.
        cells: Fills the table from the context; the figures are computed in other packages.
        needs: Names from `needs.NEEDS`, and `router:<name>`.
        takes: What of a context beside the release it reads: `routers` that are asked for, releases
            that are `joined` or `tested`. Anything else is refused when it is given.
        rows: Heading of the first column.
        plot: `bars` of the column `plot_column` over rows (`dots` where zero is nothing), `heat`
            of rows and columns, or `lines` or `points` of `curves`; of `points` only references
            are joined.
        curves: For `lines`, `points`: the table of curves (`series`, `x`, `y`, `low`, `high`).
        printed: Release name → (row, column) → the value that the paper prints for those data,
            in the scale of `StudyCell.value` (67.37 % is 0.6737).
        notes: How it is measured where the paper leaves a choice.
        printed_notes: What differs between the paper's data and ours, shown beside its values.
    """

    name: str
    paper: str
    item: str
    title: str
    cells: Callable[[StudyContext], Sequence[StudyCell]]
    needs: tuple[str, ...] = ("labels",)
    takes: tuple[str, ...] = ("routers",)
    rows: str = "model"
    plot: Literal["bars", "dots", "heat", "lines", "points"] | None = None
    plot_column: str | None = None
    curves: Callable[[StudyContext], pa.Table] | None = None
    axes: tuple[str, str] = ("", "")
    printed: Mapping[str, Mapping[tuple[str, str], float]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    printed_notes: Sequence[str] = ()


def table_of(study: Study, cells: Sequence[StudyCell], release: str) -> pa.Table:
    """Cells of a study, the paper's printed values beside those of the same data."""
    printed = dict(study.printed.get(release, {}))
    rows = [
        {
            **asdict(cell),
            "value": _finite(cell.value),
            "low": _finite(cell.low),
            "high": _finite(cell.high),
            "printed": printed.pop((cell.row, cell.column), None),
        }
        for cell in cells
    ]
    # What the paper prints of the same data and this release has no row for is reported as well.
    rows += [
        {**asdict(StudyCell(*where, note="printed only")), "printed": value}
        for where, value in printed.items()
    ]
    return pa.Table.from_pylist(rows, schema=RESULTS["study_cells"])


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


# What a study reads of a release, and what a reader has to know of that.


def known_costs(context: StudyContext) -> tuple[StudyContext, str]:
    """The release with the models whose cost is known, and which these are.

    The release itself, and no words, where all costs are known, where fewer than two are, and
    where the cost of the pair is not.
    """
    core = context.core
    measure = first_measure(core.part_costs)
    if core.costs or measure is None:
        return context, ""
    models = tuple(name for name in core.model_ids if name not in core.lacking[measure])
    if len(models) < 2 or set(context.pair or ()) - set(models):
        return context, ""

    def made() -> StudyContext:
        result = replace(context, _evaluations={})
        result.__dict__["core"] = priced_in(core, measure, models)
        return result

    said = f"the {len(models)} of {core.n_models} models whose {measure} are known"
    return context.once("known costs", made), said


def context_for(study: Study, context: StudyContext) -> tuple[StudyContext, str]:
    """What a study reads: of one about costs only the models whose cost is known, and then which.

    Unknown is not free, and one model without a cost does not take the others' away.
    """
    return known_costs(context) if "cost" in study.needs else (context, "")


def leaks(study: Study, context: StudyContext) -> str:
    """How many test questions of the release are also in train; empty where none is."""
    if "splits" not in study.needs or not context.core.splits:
        return ""
    core, scheme = context.core, context.default_scheme()
    rows = core.rows(scheme, "test")
    n = context.once("leaked", lambda: int(np.sum(leaked(core, scheme, rows))))
    return (
        f"{n:,} of {len(rows):,} test questions are also in train, in the same words or nearly; "
        "figures are over all of them."
        if n
        else ""
    )


# The studies that a `studies.yaml` declares, as `Study` objects.

_HERE = "routeyard.pipelines.evaluate.studies"


@cache
def declared(package: str = _HERE) -> dict[str, dict[str, Any]]:
    """Name → what the `studies.yaml` in a package's folder declares of the study."""
    found_at = find_spec(package)
    if found_at is None or not found_at.submodule_search_locations:
        raise ImportError(f"there is no package {package}")
    path = Path(found_at.submodule_search_locations[0]) / "studies.yaml"
    text: dict[str, dict[str, Any]] = read_text(path.read_text(encoding="utf-8"), where=str(path))
    return text


@cache
def declared_in(package: str, name: str) -> Study:
    """One study of a package, for the `__getattr__` of the module its entry point names.

    Cells and curves name functions: `.module:name` of that package, `module:name` of
    `routeyard.pipelines.evaluate.studies`.

    Raises:
        AttributeError: its `studies.yaml` declares no such study.
    """
    if name.startswith("_") or name not in declared(package):
        raise AttributeError(f"studies.yaml of {package} declares no study {name!r}")
    row = dict(declared(package)[name])
    printed = {
        release: {(line, column): value for line, cells in rows.items()
                  for column, value in cells.items()}
        for release, rows in row.pop("printed", {}).items()
    }  # fmt: skip
    for key in ("needs", "takes", "axes"):
        if key in row:
            row[key] = tuple(row[key])
    cells, curves = (_function(row.pop(key, None), package) for key in ("cells", "curves"))
    return Study(name, cells=cells, curves=curves, printed=printed, **row)


def __getattr__(name: str) -> Study:
    return declared_in(_HERE, name)


def _function(target: str | dict[str, Any] | None, package: str) -> Any:
    """The function that `target` names, with the arguments declared beside it."""
    if target is None:
        return None
    arguments = {} if isinstance(target, str) else dict(target)
    module, _, name = (target if isinstance(target, str) else arguments.pop("call")).partition(":")
    where = f"{package}{module}" if module.startswith(".") else f"{_HERE}.{module}"
    result: Callable[..., Any] = getattr(import_module(where), name)
    return partial(result, **arguments) if arguments else result


# Contract of `tuned`: which model routers with frozen and with trained encoders ask.
#
# It is not part of a release: a file beside it, for the studies `tuning_*`.

TUNED = Contract(
    "tuned",
    "Which model each router asks, its encoder frozen or trained, written by `zoo tune`.",
    key=("data", "router", "encoder", "train_rows", "tuned", "seed", "query_id"),
    columns=columns(
        data="string: hash of the test questions and labels that it was measured on",
        router="string: router",
        encoder="string: encoder it started from",
        parameters="int64: parameters of the encoder",
        train_rows="int64: questions it was trained on",
        tuned="bool: whether the encoder was trained; else frozen",
        seed="int32: seed of the training",
        query_id="string: question of the test split",
        model_id="string: model that is asked, cost disregarded",
    ),
    rules=rules(
        sizes_are_positive="parameters >= 0 AND train_rows > 0",
    ),
)


# What `routeyard zoo tune` wrote of a release, and the split that it was measured on.


def runs_of(context: StudyContext, tables: Mapping[str, pa.Table]) -> pa.Table | None:
    """The rows of `tuned` that were measured on these tables' test questions."""
    if "tuned" not in context.tables:
        return None
    core, scheme = split_of(context, tables)
    return context.tables["tuned"].filter(
        pc.equal(context.tables["tuned"].column("data"), data_identity(core, scheme))
    )


def split_of(context: StudyContext, tables: Mapping[str, pa.Table]) -> tuple[Core, str]:
    core, own = core_of(tables), tables is context.tables
    scheme = context.default_scheme() if own else context.scheme_beside(core)
    return with_validation(core, scheme)[0], scheme


_PATH = Path(__file__).with_name("needs.yaml")
_HAS: Mapping[str, Callable[[StudyContext], bool]] = {
    "labels": lambda g: bool(g.tables["labels"].num_rows),
    "tasks": lambda g: len(set(g.tables["queries"].column("task").to_pylist())) > 1,
    "splits": lambda g: bool(g.core.splits),
    "embeddings": lambda g: g.core.embeddings is not None,
    # An empty table may also mean that nobody looked.
    "duplicates": lambda g: _has_rows(g, "duplicates") or "embeddings" in g.tables,
    "cost": lambda g: bool(known_costs(g)[0].core.costs),
    "some_cost": lambda g: bool(g.core.costs or g.core.part_costs),
    "pair": lambda g: g.pair is not None or len(g.core.model_ids) == 2,
    "pseudo_specialists": lambda g: (
        "pseudo_specialist" in g.tables["models"].column("kind").to_pylist()
    ),
    "preferences": lambda g: _has_rows(g, "preferences"),
    "descriptors": lambda g: bool(g.core.descriptors),
    "hidden_states": lambda g: g.core.hidden is not None,
    "signals": lambda g: bool(g.core.signals),
    "steps": lambda g: _has_rows(g, "steps"),
    "judged": lambda g: any(basis.startswith("judge:") for basis in _bases(g)),
    "tuned": lambda g: _tuned(g),
    "unseen_models": lambda g: bool(g.core.splits) and bool(g.unseen),
    "releases": lambda g: bool(g.joined) or len(g.domains) > 1,
    "many_models": lambda g: len(g.core.model_ids) > 2,
}
#: Need → (whether a release has it, what to do if not).
NEEDS: Mapping[str, tuple[Callable[[StudyContext], bool], str]] = {
    need: (_HAS[need], remedy)
    for need, remedy in read_text(_PATH.read_text(encoding="utf-8"), where=str(_PATH)).items()
}


def _has_rows(context: StudyContext, name: str) -> bool:
    return name in context.tables and bool(context.tables[name].num_rows)


def _bases(context: StudyContext) -> list[str]:
    table = context.tables.get("preferences")
    return [] if table is None else sorted(set(table.column("basis").to_pylist()))


def _tuned(context: StudyContext) -> bool:
    runs = runs_of(context, context.tables)
    return runs is not None and bool(runs.num_rows)


def lacking(study: Study, context: StudyContext) -> list[tuple[str, str]]:
    """(need, what to do) of everything the release does not have for this study."""
    from routeyard.pipelines.routers import PAIR_ROUTERS, ROUTERS

    results = []
    for need in study.needs:
        if need.startswith("router:"):
            name = need.removeprefix("router:")
            if name not in ROUTERS.names() and name not in PAIR_ROUTERS.names():
                results.append((need, f"the router {name!r} is not in the registry"))
            continue
        has, then = NEEDS[need]
        if not has(context):
            results.append((need, then))
    return results


#: What `Study.takes` names → the option that gives it.
OPTIONS: Mapping[str, str] = {"routers": "--router", "joined": "--join", "tested": "--test-on"}


def untaken(study: Study, context: StudyContext) -> list[str]:
    """Options that are given and that this study does not read."""
    names = [name for name in OPTIONS if getattr(context, name) and name not in study.takes]
    return [OPTIONS[name] for name in names]


def check(study: Study, context: StudyContext, *, one_of_many: bool = False) -> None:
    """Raises BadInput where something is missing, or one study is given what it does not read."""
    if (unread := untaken(study, context)) and not one_of_many:
        raise BadInput(
            f"the study {study.name!r} does not read {' and '.join(unread)}",
            where=f"paper {study.paper}, {study.item}",
            next_step="leave it out; another release is studied by its own command",
        )
    missing = lacking(study, context)
    if missing:
        need, then = missing[0]
        raise BadInput(
            f"the study {study.name!r} needs {need}, which {context.release} does not have",
            where=f"needs: {', '.join(study.needs)}",
            next_step=then,
        )


def data_identity(core: Core, scheme: str) -> str:
    """Hash of the test questions, the models and their labels: what figures are comparable on.

    Train questions are no part of it: amounts of data may be split schemes of one release, or
    releases that share their test split, as the study's two benchmarks do.
    """
    return whole(core.take(core.rows(scheme, "test")), scheme)


def whole(core: Core, scheme: str) -> str:
    """Hash of questions, models, labels and splits."""
    words = json.dumps([list(core.query_ids), core.model_ids, core.splits[scheme].tolist()])
    hashed = hashlib.sha256(words.encode())
    hashed.update(np.ascontiguousarray(core.labels).tobytes())
    return hashed.hexdigest()[:16]
