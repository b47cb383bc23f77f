"""Who takes part: registered routers, a user's class, a table of predictions."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from routeyard.pipelines.common.arrays import Bools, Floats, Ints, mean_costs, ranked
from routeyard.pipelines.common.matrix import (
    Core,
    Examples,
    Queries,
    codes,
    complete_measure,
    dense,
)
from routeyard.pipelines.common.untrusted import bounded
from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import Router, architectures_of, traits_of
from routeyard.pipelines.routers.listed import Traits, constants
from routeyard.schemas.errors import BadInput, did_you_mean
from routeyard.schemas.questions import GROUP, marks_of, same_question
from routeyard.schemas.release import WITHHELD, usual_scheme

# Hashes of what a router is given: equal questions, labels and vectors, equal hash.

#: Bytes that are hashed at once, of arrays that may be on disk.
_BLOCK = 1 << 24
#: Texts that are hashed at once.
_TEXTS = 4096

_KNOWN: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def digest(examples: Examples | Queries) -> str:
    """16 hex digits over everything that is in it, computed once for an object."""
    if examples not in _KNOWN:
        hashed = hashlib.sha256()
        feed(hashed, examples)
        _KNOWN[examples] = hashed.hexdigest()[:16]
    return _KNOWN[examples]


def feed(hashed: Any, value: Any) -> None:
    """Every value with its kind and length before it, so that no two things read alike."""
    if value is None or isinstance(value, str):
        text = b"" if value is None else value.encode("utf-8", "surrogatepass")
        hashed.update(f"{type(value).__name__}{len(text)}:".encode() + text)
    elif isinstance(value, np.ndarray) and value.dtype.kind not in "UO":
        hashed.update(f"{value.dtype}{value.shape}:".encode())
        rows = max(1, _BLOCK // max(1, value[:1].nbytes))
        for first in range(0, len(value), rows):
            hashed.update(np.ascontiguousarray(value[first : first + rows]).data)
    elif isinstance(value, Mapping):
        hashed.update(f"map{len(value)}:".encode())
        for name in sorted(value):
            feed(hashed, name)
            feed(hashed, value[name])
    elif is_dataclass(value):
        for item in fields(value):
            feed(hashed, item.name)
            feed(hashed, getattr(value, item.name))
    else:
        hashed.update(f"list{len(value)}:".encode())
        for first in range(0, len(value), _TEXTS):
            texts = [
                str(item).encode("utf-8", "surrogatepass") for item in value[first : first + _TEXTS]
            ]
            hashed.update(b"".join([b"str%d:%b" % (len(text), text) for text in texts]))


# On which questions routers learn, choose settings and are tested.

#: One in so many train questions is taken for validation where a scheme has none.
HELD = 8


def default_scheme(core: Core, asked: str | None = None) -> str:
    """The scheme asked for, else the published `upstream`, else `dense`, else the first in order.

    Raises:
        BadInput: it does not exist, its test is empty, or there is no scheme.
    """
    if not core.splits:
        raise BadInput(
            "the release has no split into train and test questions",
            next_step="give the recipe a `split` section",
        )
    chosen = asked or usual_scheme(core.splits)
    if asked is not None:
        core.rows(asked, "test")
    return chosen


def with_validation(core: Core, scheme: str) -> tuple[Core, bool]:
    """The core, with one in `HELD` train questions for validation where the scheme has none.

    Which ones is decided by a hash of their ids: the same for any order of rows.

    Raises:
        BadInput: the scheme is unknown, or train or test is empty.
    """
    core.rows(scheme, "train")
    core.rows(scheme, "test")
    splits = core.splits[scheme]
    if np.any(splits == "validation"):
        return core, False
    lot = np.array(
        [int(hashlib.sha256(q.encode()).hexdigest()[:8], 16) % HELD for q in core.query_ids]
    )
    carved = np.where((splits == "train") & (lot == 0), "validation", splits)
    if not np.any(carved == "train") or not np.any(carved == "validation"):
        raise BadInput(
            f"scheme {scheme!r} has too few train questions to choose settings on some of them",
            next_step="give the recipe's `split` a validation share",
        )
    return replace(core, splits={**core.splits, scheme: carved}), True


def redrawn(core: Core, scheme: str, times: int, seed: int = 0) -> Iterator[Core]:
    """The core with its train, validation and test questions drawn anew, so many times.

    Each task keeps its counts, so a task that is all in test stays there; questions that are
    one (`one_question`) get one split. A draw depends on ids and the seed, not on order. Empty
    where no question could move.
    """
    rows = np.flatnonzero(core.splits[scheme] != "")
    if times < 1 or not any(
        len(set(core.splits[scheme][core.tasks == task]) - {""}) > 1
        for task in np.unique(core.tasks[rows])
    ):
        return
    ids, whole = np.array(core.query_ids, dtype=np.str_), one_question(core)
    units: dict[str, list[list[int]]] = {}
    in_order = rows[np.lexsort((ids[rows], whole[rows]))]
    for item in np.split(in_order, np.flatnonzero(np.diff(whole[in_order])) + 1):
        units.setdefault(str(core.tasks[item[0]]), []).append(item.tolist())
    for k in range(1, times + 1):
        drawn = np.full(core.n_queries, "", dtype=core.splits[scheme].dtype)
        for own in units.values():
            own.sort(
                key=lambda unit: hashlib.sha256(f"{seed}|{k}|{ids[unit[0]]}".encode()).digest()
            )
            here = core.splits[scheme][np.concatenate(own)]
            left = {name: int(np.sum(here == name)) for name in ("test", "validation", "train")}
            for unit in own:
                fits = [part for part, n in left.items() if n >= len(unit)]
                name = fits[0] if fits else max(left, key=left.__getitem__)
                drawn[unit] = name
                left[name] -= len(unit)
        yield replace(core, splits={**core.splits, scheme: drawn})


def one_question(core: Core) -> Ints:
    """(n,) equal numbers for questions that are one: near-duplicates, of one value of
    `fields.group`, or with words that are equal or nearly so."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = core.n_queries
    links = [core.groups]
    if len(core.metadata):
        named = [json.loads(text).get(GROUP) if GROUP in text else None for text in core.metadata]
        links.append(
            _numbers([f"{k}" if item is None else f"of {item}" for k, item in enumerate(named)])
        )
    if len(core.prompts):
        said = [f"{k}" if prompt == WITHHELD else prompt for k, prompt in enumerate(core.prompts)]
        equal = np.asarray(marks_of(pa.array(said)).dictionary_encode().indices).astype(np.int64)
        links.append(same_question(said, equal))
    ends = np.concatenate([n * (k + 1) + _numbers(link) for k, link in enumerate(links)])
    starts = np.tile(np.arange(n), len(links))
    size = n * (len(links) + 1)
    joined = coo_array((np.ones(len(ends), dtype=np.int8), (starts, ends)), shape=(size, size))
    return np.asarray(connected_components(joined, directed=False)[1][:n].astype(np.int64))


def _numbers(values: object) -> Ints:
    return np.asarray(np.unique(np.asarray(values), return_inverse=True)[1], dtype=np.int64)


def price(core: Core, scheme: str) -> Floats:
    """(m,) mean train cost by the first measure that knows all models; zeros without any."""
    measure = priced_in(core, scheme)
    if measure is None:
        return np.zeros(core.n_models)
    return mean_costs(core.costs[measure][core.rows(scheme, "train")])


def priced_in(core: Core, scheme: str) -> str | None:
    """The measure that `price` takes; None where none knows all models."""
    train = core.rows(scheme, "train")
    return complete_measure({name: cost[train] for name, cost in core.costs.items()})


def order(core: Core, scheme: str) -> Ints:
    """(m,) models, best on train first; ties as `ranked` has them."""
    return ranked(core.labels[core.rows(scheme, "train")], price(core, scheme))


# A router as a table of predictions: for people who have scores and no Python to hand over.

#: Column of what a router itself costs on each question.
DECISION = "decision_cost_usd"
#: Columns of names.
_IDS = frozenset({"query_id", "model_id", "router"})


def _is_file(path: Path) -> None:
    if not path.is_file():
        raise BadInput(
            "there is no such predictions file",
            where=str(path),
            next_step="give a CSV or Parquet with query_id, model_id and, if known, score",
        )


def read_predictions(path: Path) -> pa.Table:
    """A CSV or Parquet file about questions and models; ids are texts, each column is there once.

    Raises:
        BadInput: there is no such table, a column name occurs twice, or an id is not a string.
    """
    _is_file(path)
    try:
        # As they are written: 0012 is no number, and NA may be a name.
        options = csv.ConvertOptions(column_types=dict.fromkeys(_IDS, pa.string()))
        parquet = path.suffix == ".parquet"
        table = (
            pq.read_table(bounded(path)) if parquet else csv.read_csv(path, convert_options=options)
        )
    except pa.ArrowException as error:
        raise BadInput(f"this is no table: {error}", where=str(path)) from error
    names = Counter(table.column_names)
    for name, times in names.items():
        if times > 1:
            raise BadInput(
                f"the column {name!r} occurs {times} times in the table",
                where=str(path),
                next_step="leave one of them",
            )
    for name in _IDS & set(names):
        try:
            ids = table.column(name).cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadInput(f"the column {name!r} holds no ids: {error}", where=str(path)) from error
        table = table.set_column(table.column_names.index(name), name, ids)
    return table


class Predictions:
    """Looks scores up instead of computing them.

    Three layouts are understood:

    * `query_id, model_id, score`: a score for every query and model;
    * `query_id` and one column per model: the same, wide;
    * `query_id, model_id`: only the choice. It counts as score 1 for the
      chosen model and 0 for the others, so under a growing weight of cost it
      gives way to the cheapest.

    `decision_cost_usd`, in any of them, is what the router itself costs on the question: it is
    added to the costs of what it routes.

    Attributes:
        unread: Columns that are none of these.
    """

    def __init__(self, table: pa.Table, name: str):
        self.name = name
        self._table = table
        self.unread: list[str] = []

    def fit(self, train: Examples) -> Predictions:
        self._models = pa.array(train.model_ids, pa.string())
        long = "model_id" in self._table.column_names
        read = ["query_id", DECISION, *(["model_id", "score"] if long else train.model_ids)]
        self.unread = [name for name in self._table.column_names if name not in read]
        return self

    def decision_usd(self, queries: Queries) -> Floats | None:
        """(n,) USD of deciding about each question; None where the table states none.

        Raises:
            BadInput: a cost is missing, negative or no number, or a question has several.
        """
        if DECISION not in self._table.column_names:
            return None
        ids = pa.array(queries.query_ids, pa.string())
        rows = codes(self._table.column("query_id").cast(pa.string()), ids)
        values = self._numbers(DECISION).to_numpy(zero_copy_only=False)
        use = rows >= 0
        low, high = np.full(len(ids), np.inf), np.full(len(ids), -np.inf)
        with np.errstate(invalid="ignore"):  # a cost that is missing
            np.minimum.at(low, rows[use], values[use])
            np.maximum.at(high, rows[use], values[use])
        wrong = np.flatnonzero(~(np.isfinite(low) & (low >= 0) & (low == high)))
        if len(wrong):
            raise self._broken(
                f"has no one {DECISION} of 0 or more for {len(wrong)} questions, "
                f"such as {ids[int(wrong[0])]}"
            )
        return low

    def scores(self, queries: Queries) -> Floats:
        """Raises BadInput: a query, model or score is missing, or a cell is not a number."""
        table, ids = self._table, pa.array(queries.query_ids, pa.string())
        if "query_id" not in table.column_names:
            raise self._broken("has no column 'query_id'")
        rows = codes(table.column("query_id").cast(pa.string()), ids)
        missing = sorted(set(range(len(ids))) - set(rows.tolist()))
        if missing:
            raise self._broken(
                f"lacks {len(missing)} of the {len(ids)} questions, such as {ids[missing[0]]}"
            )
        shape = (len(ids), len(self._models))
        if "model_id" in table.column_names:
            columns = codes(table.column("model_id").cast(pa.string()), self._models)
            if np.any(columns < 0):
                wrong = table.column("model_id")[int(np.argmin(columns))].as_py()
                raise self._broken(f"names a model that is not in the release: {wrong!r}")
            if "score" not in table.column_names:
                use = rows >= 0
                self._once(rows, use, "chooses more than one model for a question")
                out = np.zeros(shape)
                out[rows[use], columns[use]] = 1.0
                return out
            self._once(rows * shape[1] + columns, rows >= 0, "scores a model twice on a question")
            out = dense(rows, columns, self._numbers("score"), shape)
        else:
            absent = sorted(set(self._models.to_pylist()) - set(table.column_names))
            if absent:
                raise self._broken(f"has no column for model {absent[0]!r}")
            use = rows >= 0
            self._once(rows, use, "holds a question twice")
            out = np.full(shape, np.nan)
            for column, model in enumerate(self._models.to_pylist()):
                values = self._numbers(model).to_numpy(zero_copy_only=False)
                out[rows[use], column] = values[use]
        if np.isnan(out).any():
            row, column = (int(k) for k in np.argwhere(np.isnan(out))[0])
            raise self._broken(
                f"has no score for model {self._models[column]} on question {ids[row]}"
            )
        return out

    def _once(self, keys: Ints, use: Bools, says: str) -> None:
        """Of two rows about the same nobody knows which is meant."""
        if len(np.unique(keys[use])) < int(use.sum()):
            raise self._broken(says)

    def _numbers(self, column: str) -> pa.ChunkedArray:
        try:
            return self._table.column(column).cast(pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self._broken(f"column {column!r} holds something that is no number") from error

    def _broken(self, what: str) -> BadInput:
        return BadInput(
            f"the predictions table {what}",
            where=self.name,
            next_step="columns: query_id, model_id, score; or query_id and one column per model; "
            f"or query_id, model_id for choices alone; and {DECISION} in every row or in none",
        )


#: Makes a fresh router for a seed; a `RouterSpec` is one whose predictions can be kept.
Maker = Callable[[int], Router]


@dataclass(frozen=True)
class RouterSpec:
    """A router by where it is found; called with a seed it makes a fresh one.

    Attributes:
        name: as tables call it.
        target: `module:Class`, or `file.py:Class`, or a CSV or Parquet file; empty for `given`.
        setting: keyword arguments of its class; the others keep their defaults.
        given: a class or a router that was handed over in Python.
        seed: for a class that takes one; None for its own.
        repeat: which of several fits it is for, where the class takes no seed.
    """

    name: str
    target: str
    setting: Mapping[str, Any] = field(default_factory=dict)
    given: Any = None
    seed: int | None = None
    repeat: int = 0

    def __call__(self, seed: int | None = None) -> Router:
        return made(self if seed is None else replace(self, seed=seed))

    @property
    def is_table(self) -> bool:
        """Whether it is a table of predictions, and so nothing is fitted."""
        return isinstance(self.given, Predictions) or self.target.endswith((".csv", ".parquet"))


def registered(names: list[str] | None = None) -> list[RouterSpec]:
    """Registered routers by name, all without names; `embedllm:code` is one with a preset.

    Raises:
        UnknownName: no router has that name.
        BadInput: it has no such preset.
    """
    specs = []
    for name in dict.fromkeys(ROUTERS.names() if names is None else names):
        router, colon, preset = name.partition(":")
        ROUTERS.get(router)
        if colon:
            constants(router, preset)
        setting = {"preset": preset} if colon else {}
        specs.append(RouterSpec(name, ROUTERS.targets[router], setting))
    return specs


def own(target: str) -> RouterSpec:
    """A router of someone's own: `module:Class`, `file.py:Class`, or a predictions table.

    Raises:
        BadInput: it cannot be found or is no router.
    """
    if target.endswith((".csv", ".parquet")):
        _is_file(Path(target))
        return RouterSpec(Path(target).stem, str(Path(target).resolve()))
    module, _, attribute = target.rpartition(":")
    if module.endswith(".py"):
        target = f"{Path(module).resolve()}:{attribute}"
    elif os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    result = class_of(RouterSpec("", target))
    return RouterSpec(getattr(result, "name", attribute), target)


def handed_over(name: str, value: Any) -> RouterSpec:
    """A router class, made anew for each fit, or a router, fitted again; or a registered name.

    Raises:
        BadInput: it has no `fit` or no `scores`.
    """
    if isinstance(value, str):
        return replace(registered([value])[0], name=name)
    lacks = [name for name in ("fit", "scores") if not callable(getattr(value, name, None))]
    if lacks:
        raise BadInput(
            f"{value!r} is no router: it has no method {lacks[0]!r}",
            next_step="a router has `fit(train)` and `scores(queries)`",
        )
    return RouterSpec(name, "", given=value)


def class_of(spec: RouterSpec) -> Any:
    """The class behind an entrant. This runs the module that defines it.

    Raises:
        BadInput: it cannot be imported, or is no router.
    """
    if spec.given is not None:
        return spec.given if inspect.isclass(spec.given) else type(spec.given)
    module, _, attribute = spec.target.rpartition(":")
    if not module or not attribute:
        raise BadInput(
            f"{spec.target!r} does not name a class",
            next_step="write it as module:Class or file.py:Class",
        )
    try:
        there = load_module(module)
    except SyntaxError as error:
        raise BadInput(
            f"router {spec.target!r} cannot be imported: {error.msg}",
            where=f"{error.filename or module}:{error.lineno or 1}",
            next_step="correct that line and run the same command",
        ) from error
    except (ImportError, AttributeError, OSError) as error:
        raise BadInput(
            f"router {spec.target!r} cannot be imported: {type(error).__name__}: {error}",
            next_step="name a file that exists, or install the module",
        ) from error
    result = getattr(there, attribute, None)
    if result is None:
        classes = [name for name, obj in vars(there).items() if callable(getattr(obj, "fit", None))]
        raise BadInput(
            f"there is no {attribute!r} in {Path(module).name}",
            where=module,
            next_step=did_you_mean(attribute, classes),
        )
    lacks = [name for name in ("fit", "scores") if not callable(getattr(result, name, None))]
    if lacks:
        raise BadInput(
            f"{spec.target!r} is no router: it has no method {lacks[0]!r}",
            next_step="see pipelines/routers/base.py for the two methods a router has",
        )
    return result


def load_module(name: str) -> Any:
    """A module by name, or by the path of its file. This runs it."""
    if not name.endswith(".py"):
        return importlib.import_module(name)
    known = f"routeyard_own_{Path(name).stem}"
    if known in sys.modules and getattr(sys.modules[known], "__file__", None) == name:
        return sys.modules[known]
    found_spec = importlib.util.spec_from_file_location(known, name)
    if found_spec is None or found_spec.loader is None:
        raise ImportError(f"{name} is no Python file")
    module = importlib.util.module_from_spec(found_spec)
    sys.modules[known] = module
    found_spec.loader.exec_module(module)
    return module


def traits(spec: RouterSpec) -> Traits:
    """What it says about itself; a table is fixed and needs nothing."""
    if spec.is_table:
        return Traits(loss="none: a table of scores", needs=(), stochastic=False, cost="none")
    result = class_of(spec)
    if hasattr(result, "traits"):
        return traits_of(result)
    # Someone's own class: it has a seed when it takes one.
    return Traits(stochastic=takes_seed(result))


def architectures(spec: RouterSpec) -> tuple[Mapping[str, Any], ...]:
    """Settings the protocol tries; those of a preset alone where one is named."""
    if spec.setting:
        return (spec.setting,)
    return ({},) if spec.is_table else architectures_of(class_of(spec))


def made(spec: RouterSpec) -> Router:
    """A fresh router; of a class that takes a seed, one with the seed of the spec.

    Raises:
        BadInput: it is one router with one seed, and another seed is asked for; or its
            constructor needs what is not given.
    """
    if spec.is_table and spec.given is None:
        return Predictions(read_predictions(Path(spec.target)), spec.name)
    result = class_of(spec)
    if spec.given is not None and not inspect.isclass(spec.given):
        if spec.seed and takes_seed(result):
            raise BadInput(
                f"{spec.given!r} is one router with one seed, and several seeds were asked for",
                next_step=f"pass the class {result.__name__} itself: each fit makes one with "
                "its own seed",
            )
        item: Router = spec.given
        return item
    # Lists come back from JSON where a class declares tuples.
    setting = {k: tuple(v) if isinstance(v, list) else v for k, v in spec.setting.items()}
    if spec.seed is not None and takes_seed(result):
        setting["seed"] = spec.seed
    for argument in inspect.signature(result).parameters.values():
        named = argument.kind in (argument.POSITIONAL_OR_KEYWORD, argument.KEYWORD_ONLY)
        if named and argument.default is argument.empty and argument.name not in setting:
            raise BadInput(
                f"router {spec.name!r} cannot be made: its constructor needs {argument.name!r}",
                where=spec.target,
                next_step=f"give {argument.name!r} a default",
            )
    router: Router = result(**setting)
    return router


def identity(spec: RouterSpec) -> str | None:
    """What decides a router's fit beside its code and its data; None where that is not known.

    A setting that spells out a default is that default's. A seed counts where the class takes
    one; without, a registered router repeats itself, and of someone's own each `repeat` may differ.
    """
    if spec.given is not None or spec.is_table:
        return None
    result = class_of(spec)
    known = inspect.signature(result).parameters
    defaults = {
        **getattr(result, "loop", {}),
        **getattr(result, "defaults", {}),
        **{k: item.default for k, item in known.items() if item.default is not item.empty},
    }
    setting = {**defaults, **spec.setting}
    repeat = spec.repeat
    if takes_seed(result):
        setting["seed"] = setting.get("seed") if spec.seed is None else spec.seed
        repeat = 0
    elif spec.target in ROUTERS.targets.values():
        repeat = 0
    try:
        return json.dumps([spec.target, setting, repeat], sort_keys=True)
    except TypeError:
        return None


def as_published(spec: RouterSpec) -> bool:
    """Whether an entrant has a preset of its authors, who score all test questions."""
    return bool(spec.setting.get("preset", "routeyard") != "routeyard")


def takes_seed(made: Any) -> bool:
    """Whether a class has a keyword argument `seed`."""
    return "seed" in inspect.signature(made).parameters
