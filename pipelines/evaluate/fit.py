"""One fit of a router and what it predicted: the only place in Routeyard that fits routers.

A fit is decided by the router's code and setting, its seed, and the examples it learns from. Its
predictions are kept under the hash of these and of the questions, so whoever asks the same again
(another command, a run that goes on after it was killed) reads them, and nothing is fitted.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.common.arrays import Bools, Floats, Ints, every
from routeyard.pipelines.common.machine import one_thread_each, peak_memory
from routeyard.pipelines.common.matrix import Arms, Core, Examples, Queries, leaked
from routeyard.pipelines.common.staging import replacing, write_text
from routeyard.pipelines.evaluate.experiment import (
    Maker,
    RouterSpec,
    digest,
    identity,
    order,
    traits,
    with_validation,
)
from routeyard.pipelines.evaluate.experiment import redrawn as splits_of
from routeyard.pipelines.routers.base import Router, traits_of, unlike_published
from routeyard.pipelines.routers.listed import Scale
from routeyard.schemas.errors import BadInput

#: Packages whose versions decide a fit's last digits.
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "xgboost")


@dataclass(frozen=True)
class FitRecord:
    """What a fit took and said.

    Attributes:
        fit_s: seconds on the clock of fitting; `cpu_s` processor seconds of it and of all
            predictions.
        peak_mb: largest resident memory of the process meanwhile, 10^6 bytes.
        not_as_published: what of its published settings the router could not honour.
    """

    fit_s: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    not_as_published: tuple[str, ...] = ()


@dataclass(frozen=True)
class PredictionStore:
    """Predictions of fits in a folder; each file is whole, since it is renamed into its place.

    Attributes:
        folder: `<fit>.json` is the record of a fit, `<fit>-<questions>.safetensors` its scores.
        code: router → hash of the code that decides its figures; others are not kept.
    """

    folder: Path
    code: Mapping[str, str] = field(default_factory=dict)

    def record(self, name: str) -> FitRecord | None:
        """The record of a fit; None where it is missing or cannot be read."""
        try:
            data = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
            return FitRecord(**{**data, "not_as_published": tuple(data["not_as_published"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def scores(self, name: str) -> Floats | None:
        """(n, m) scores of a fit on some questions; None where they are not kept."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            return np.asarray(load_file(self.folder / f"{name}.safetensors")["scores"])
        except (OSError, SafetensorError, KeyError):
            return None

    def keep(self, name: str, record: FitRecord, asked: str, scores: Floats) -> None:
        """Write scores, then the record of their fit."""
        from safetensors.numpy import save_file

        with replacing(self.folder / f"{name}-{asked}.safetensors") as unfinished:
            save_file({"scores": np.ascontiguousarray(scores)}, unfinished)
        write_text(self.folder / f"{name}.json", json.dumps(asdict(record)))

    def forget(self, name: str) -> None:
        """Drop the scores of a fit on some questions."""
        (self.folder / f"{name}.safetensors").unlink(missing_ok=True)


class Fit:
    """A router fitted on examples when it is first asked what is not kept.

    Args:
        make: a `RouterSpec`, or any maker of one router, whose predictions are then not kept.
        store: where predictions are kept; None keeps nothing.
    """

    def __init__(
        self,
        make: Callable[[], Router],
        train: Examples,
        store: PredictionStore | None = None,
    ):
        self._make, self._train, self.store = make, train, store
        self.spec = make if isinstance(make, RouterSpec) else None
        self._router: Router | None = None
        self.record = FitRecord()
        #: Seconds that the last answer took, where a clock was given.
        self.seconds: float | None = None

    @cached_property
    def made(self) -> Router:
        """The router; fitted once `router` was asked for."""
        return self._make()

    @property
    def scale(self) -> Scale:
        """What the router says that its scores mean."""
        return traits_of(self.made).scale

    @property
    def router(self) -> Router:
        """The fitted router."""
        if self._router is None:
            made = self.made
            began = time.perf_counter()
            with self._effort():
                fit(made, self._seen(self._train))
            took = time.perf_counter() - began
            self._router = made
            self.record = replace(self.record, fit_s=took, not_as_published=unlike_published(made))
        return self._router

    def scores(self, queries: Queries, clock: Callable[[], float] | None = None) -> Floats:
        """(n, m) finite scores of the questions, kept or computed now.

        Args:
            clock: seconds of a clock that only goes forward, to time a router that is asked
                now, even where what it says is known.

        Raises:
            BadInput: the router refuses the examples or the questions, or its scores have the
                wrong shape or are not finite.
        """
        name = self.name(queries)
        unasked = self._router is None and clock is None
        if name is not None and unasked and self.store is not None:
            record, stored = self.store.record(self.key or ""), self.store.scores(name)
            if record is not None and stored is not None:
                self.record = record
                return stored
        router = self.router
        asked = self._seen(queries)
        with self._effort():
            before = clock() if clock is not None else 0.0
            said = router.scores(asked)
            self.seconds = None if clock is None else clock() - before
        result = self._checked(said, queries)
        if self.key is not None and self.store is not None:
            self.store.keep(self.key, self.record, digest(asked), result)
        return result

    def name(self, queries: Queries) -> str | None:
        """What the scores of some questions are kept under; None where they are not."""
        return None if self.key is None else f"{self.key}-{digest(self._seen(queries))}"

    def forget(self, queries: Queries) -> None:
        """Drop what is kept of the scores of some questions; the record stays."""
        if self.store is not None and (name := self.name(queries)) is not None:
            self.store.forget(name)

    @cached_property
    def key(self) -> str | None:
        """Hash of all that decides the fit; None where that is not known or nothing is kept."""
        if self.spec is None or self.store is None:
            return None
        what = identity(self.spec)
        code = self.store.code.get(self.spec.name)
        if what is None or code is None:
            return None
        words = [what, code, digest(self._seen(self._train)), *library_versions()]
        return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:24]

    def _seen(self, value: Any) -> Any:
        """Examples or questions as the router sees them: with vectors only where it reads some."""
        if self.spec is None or "embeddings" in traits(self.spec).needs:
            return value
        return _blind(value)

    @contextmanager
    def _effort(self) -> Iterator[None]:
        began = time.thread_time()
        with one_thread_each(), peak_memory() as peak:
            yield
            most = max(self.record.peak_mb, peak())
        cpu = self.record.cpu_s + time.thread_time() - began
        self.record = replace(self.record, cpu_s=cpu, peak_mb=most)

    def _checked(self, said: Any, queries: Queries) -> Floats:
        """What a router said as (n, m) finite numbers."""
        shape = (len(queries), len(self._train.model_ids))
        try:
            values = np.asarray(said, dtype=np.float64)
            wrong = "" if values.shape == shape else f"have shape {values.shape}"
        except (TypeError, ValueError):
            wrong = "are no table of numbers"
        if wrong or not every(np.isfinite, values):
            name = getattr(self._router, "name", self._router)
            if not wrong:
                odd = np.argwhere(~np.isfinite(values))
                question, model = queries.query_ids[odd[0][0]], self._train.model_ids[odd[0][1]]
                wrong = f"are not finite: {len(odd):,} of {values.size:,}, first {question!r} of "
                wrong += repr(model)
            raise BadInput(
                f"the scores of router {name!r} {wrong}",
                next_step=f"`scores` returns {shape[0]} × {shape[1]} finite numbers, "
                "columns in the order of `train.model_ids`",
            )
        return values


def fit(router: Any, *learnt: Any) -> Any:
    """The router, fitted on examples; a pair router on battles and the pair."""
    router.fit(*learnt)
    return router


_BLIND: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _blind(value: Any) -> Any:
    """Examples or questions without vectors; the same object for the same ones."""
    if value not in _BLIND:
        if isinstance(value, Queries):
            _BLIND[value] = replace(value, embeddings=None)
        else:
            held = None if value.validation is None else _blind(value.validation)
            _BLIND[value] = replace(value, queries=_blind(value.queries), validation=held)
    return _BLIND[value]


@cache
def library_versions() -> list[str]:
    """`name=version` of the packages that decide a fit's last digits."""
    results = []
    for name in _LIBRARIES:
        try:
            results.append(f"{name}={version(name)}")
        except PackageNotFoundError:
            results.append(f"{name}=")
    return results


# What every cell reads: labels, costs, splits, texts and one encoder's vectors, as files.
#
# Threads and the processes of a cluster read the same files, so a cell's figures
# cannot depend on where it ran. Arrays are safetensors, words are JSON: nothing is
# ever unpickled.


@dataclass(frozen=True)
class CellInputs:
    """The files' paths, and what they hold.

    Attributes:
        folder: of the files.
        scheme: split scheme of the cells.
        data: hash of labels, costs, tasks and splits.
        vectors: encoder → hash of its vectors.
        texts: hash of prompts and questions.
        carved: whether validation had to be taken from train.
        redrawn: names of the files of other draws of the split.
    """

    folder: Path
    scheme: str
    data: str
    vectors: dict[str, str]
    texts: str
    carved: bool = False
    redrawn: tuple[str, ...] = ()


def write(
    folder: Path,
    core: Core,
    scheme: str,
    vectors: dict[str, NDArray[np.float32]],
    splits: int = 0,
) -> CellInputs:
    """The bench of a core under `folder`; what is there already is not written again.

    Args:
        splits: how many draws of the split are written beside the core's own.
    """
    core, carved = with_validation(core, scheme)
    arrays, words, data = _contents(core, scheme)
    _save(folder / f"data-{data}.safetensors", arrays)
    _text(folder / f"data-{data}.json", words)
    said = json.dumps(
        {
            "prompts": list(core.prompts),
            "questions": list(core.questions),
            "duplicates_known": core.duplicates_known,
        }
    )
    texts = _hash({}, said)
    _text(folder / f"texts-{texts}.json", said)
    hashes = {}
    for encoder, matrix in vectors.items():
        hashes[encoder] = _hash({"vectors": matrix}, "")
        _save(folder / f"vectors-{hashes[encoder]}.safetensors", {"vectors": matrix})
    redrawn = []
    for item in splits_of(core, scheme, splits):
        drawn = json.dumps(item.splits[scheme].tolist())
        redrawn.append(f"split-{_hash({}, drawn)}.json")
        _text(folder / redrawn[-1], drawn)
    return CellInputs(folder, scheme, data, hashes, texts, carved, tuple(redrawn))


def hash_of(core: Core, scheme: str) -> str:
    """What `CellInputs.data` is for a core: equal labels, costs, tasks and splits, equal hash."""
    return _contents(with_validation(core, scheme)[0], scheme)[2]


def _contents(core: Core, scheme: str) -> tuple[dict[str, NDArray[Any]], str, str]:
    """Arrays, words and their hash; the core has validation questions."""
    arrays: dict[str, NDArray[Any]] = {
        "labels": core.labels,
        **{f"cost.{k}": v for k, v in sorted(core.costs.items())},
        **{f"part_cost.{k}": v for k, v in sorted(core.part_costs.items())},
        **{f"signal.{k}": v for k, v in sorted(core.signals.items())},
        **{f"descriptor.{k}": v for k, v in sorted(core.descriptors.items())},
    }
    if core.hidden is not None:
        arrays["hidden"] = core.hidden
    if core.arms is not None:
        arrays |= {f"arms.{name}": value for name, value in vars(core.arms).items()}
    if core.correct is not None and not every(_decision, core.labels):
        arrays["correct"] = core.correct
    words = {
        "query_ids": list(core.query_ids),
        "model_ids": core.model_ids,
        "tasks": core.tasks.tolist(),
        "domains": core.domains.tolist(),
        "split": core.splits[scheme].tolist(),
        "groups": core.groups.tolist(),
        "scheme": scheme,
        "hidden_of": core.hidden_of,
    }
    text = json.dumps(words)
    return arrays, text, _hash(arrays, text)


@dataclass(frozen=True, eq=False)
class Ground:
    """What every cell on one bench with one encoder learns from and is asked.

    Attributes:
        core: all questions; its one split scheme says which are which.
        validation, test: questions with a label; `asked_before` and `asked` without them.
        order: (m,) models, best on train first.
    """

    core: Core
    train: Examples
    validation: Core
    test: Core
    asked_before: Queries
    asked: Queries
    order: Ints

    @cached_property
    def clean(self) -> Bools:
        """(t,) questions of `test` that are not also in train."""
        rows = np.flatnonzero(np.isin(self.core.query_ids, self.test.query_ids))
        return ~leaked(self.core, next(iter(self.core.splits)), rows)


_READING = Lock()


def ground(folder: Path, data: str, vectors: str, texts: str, redrawn: str = "") -> Ground:
    """The ground of a bench's cells, the same objects for every cell of a process.

    Args:
        redrawn: file of another draw of the split; empty for the bench's own.
    """
    with _READING:  # two cells that begin together wait for one reading
        return _ground(folder, data, vectors, texts, redrawn)


@lru_cache(maxsize=4)
def _ground(folder: Path, data: str, vectors: str, texts: str, redrawn: str) -> Ground:
    core = read(folder, data, vectors, texts)
    scheme = next(iter(core.splits))
    if redrawn:
        core = on_draw(core, folder / redrawn)
    held, test = (core.take(core.rows(scheme, item)).labelled() for item in ("validation", "test"))
    asked = (held.queries(), test.queries())
    return Ground(core, core.training(scheme), held, test, *asked, order(core, scheme))


def on_draw(core: Core, drawn: Path) -> Core:
    """The core of a bench with another draw of its split."""
    split = np.array(json.loads(drawn.read_text()), dtype=np.str_)
    return replace(core, splits=dict.fromkeys(core.splits, split))


@lru_cache(maxsize=4)
def read(folder: Path, data: str, vectors: str, texts: str = "") -> Core:
    """The core of a bench with one encoder's vectors and with texts; empty: without them."""
    from safetensors.numpy import load_file

    arrays = load_file(folder / f"data-{data}.safetensors")
    words = json.loads((folder / f"data-{data}.json").read_text())
    said: dict[str, Any] = {}
    if texts:
        said = json.loads((folder / f"texts-{texts}.json").read_text())
    result = None
    if vectors:
        result = load_file(folder / f"vectors-{vectors}.safetensors")["vectors"]
    return Core(
        query_ids=tuple(words["query_ids"]),
        model_ids=tuple(words["model_ids"]),
        labels=arrays["labels"],
        costs=_named(arrays, "cost."),
        part_costs=_named(arrays, "part_cost."),
        tasks=np.array(words["tasks"], dtype=np.str_),
        domains=np.array(words["domains"], dtype=np.str_),
        splits={words["scheme"]: np.array(words["split"], dtype=np.str_)},
        groups=np.array(words["groups"], dtype=np.int64),
        # Labels of 0 and 1 are decisions; only graded ones have others beside them.
        correct=arrays.get("correct"),
        embeddings=result,
        prompts=tuple(said.get("prompts", ())),
        questions=tuple(said.get("questions", ())),
        duplicates_known=bool(said.get("duplicates_known")),
        signals=_named(arrays, "signal."),
        hidden=arrays.get("hidden"),
        hidden_of=words["hidden_of"],
        descriptors=_named(arrays, "descriptor."),
        arms=Arms(**arms) if (arms := _named(arrays, "arms.")) else None,
    )


def _decision(labels: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where a label is 0, 1 or missing, and so says itself what is right."""
    return np.asarray(np.isnan(labels) | (labels == 0) | (labels == 1))


def _named(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _hash(arrays: Mapping[str, NDArray[Any]], words: str) -> str:
    hashed = hashlib.sha256(words.encode())
    for name, array in arrays.items():
        whole = np.ascontiguousarray(array)
        hashed.update(f"{name}:{whole.shape}:{whole.dtype}".encode())
        hashed.update(whole.tobytes())
    return hashed.hexdigest()[:16]


def _save(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    from safetensors.numpy import save_file

    if not path.is_file():
        with replacing(path) as unfinished:
            save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, unfinished)


def _text(path: Path, text: str) -> None:
    with replacing(path) as unfinished:
        unfinished.write_text(text)


# Routers on one set of examples: each fit is made once, and every view reads its predictions.


@dataclass(frozen=True, eq=False)
class Experiment:
    """Routers, what they learn from, and with which seeds.

    Attributes:
        routers: name → maker of a fresh router for a seed; see `entrants.RouterSpec`.
        seeds: of the fits of each.
        store: where predictions are kept; None keeps them nowhere.
    """

    train: Examples
    routers: Mapping[str, Maker]
    seeds: Sequence[int] = (0,)
    store: PredictionStore | None = None
    _fits: dict[tuple[str, int], Fit] = field(default_factory=dict)

    def fit_of(self, router: str, repeat: int = 0) -> Fit:
        """A router fitted with one of the seeds; asked for twice, the same fit."""
        key = (router, repeat)
        if key not in self._fits:
            self._fits[key] = Fit(self.maker(router, repeat), self.train, self.store)
        return self._fits[key]

    def maker(self, router: str, repeat: int = 0) -> Callable[[], Router]:
        """Maker of a fresh router with one of the seeds."""
        make, seed = self.routers[router], self.seeds[repeat]
        if isinstance(make, RouterSpec):
            return replace(make, seed=seed, repeat=repeat)
        return partial(make, seed)

    def scores(self, router: str, queries: Queries, repeat: int = 0) -> Floats:
        """(n, m) scores of a router on questions, by the fit with one of the seeds."""
        return self.fit_of(router, repeat).scores(queries)
