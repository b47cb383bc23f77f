"""One fit of a router and what it predicted: the only place in Routeyard that fits routers.

A fit is decided by the router's code and setting, its seed, and the examples it learns from. Its
predictions are kept under the hash of these and of the questions, so whoever asks the same again
(another command, a run that goes on after it was killed) reads them, and nothing is fitted.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.experiment.digest import digest
from routeyard.pipelines.experiment.effort import one_thread_each, peak_memory
from routeyard.pipelines.experiment.entrants import RouterSpec, identity, traits
from routeyard.pipelines.io.staging import replacing, write_text
from routeyard.pipelines.matrix.row_blocks import every
from routeyard.pipelines.routers.base import (
    Examples,
    Queries,
    Router,
    traits_of,
    unlike_published,
)
from routeyard.pipelines.routers.listed import Scale

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
            found = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
            return FitRecord(**{**found, "not_as_published": tuple(found["not_as_published"])})
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
            record, kept = self.store.record(self.key or ""), self.store.scores(name)
            if record is not None and kept is not None:
                self.record = record
                return kept
        router = self.router
        asked = self._seen(queries)
        with self._effort():
            before = clock() if clock is not None else 0.0
            said = router.scores(asked)
            self.seconds = None if clock is None else clock() - before
        found = self._checked(said, queries)
        if self.key is not None and self.store is not None:
            self.store.keep(self.key, self.record, digest(asked), found)
        return found

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

    def _seen(self, given: Any) -> Any:
        """Examples or questions as the router sees them: with vectors only where it reads some."""
        if self.spec is None or "embeddings" in traits(self.spec).needs:
            return given
        return _blind(given)

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
            found = np.asarray(said, dtype=np.float64)
            wrong = "" if found.shape == shape else f"have shape {found.shape}"
        except (TypeError, ValueError):
            wrong = "are no table of numbers"
        if wrong or not every(np.isfinite, found):
            name = getattr(self._router, "name", self._router)
            raise BadInput(
                f"the scores of router {name!r} {wrong or 'are not finite'}",
                next_step=f"`scores` returns {shape[0]} × {shape[1]} finite numbers, "
                "columns in the order of `train.model_ids`",
            )
        return found


def fit(router: Any, *learnt: Any) -> Any:
    """The router, fitted on examples; a pair router on battles and the pair."""
    router.fit(*learnt)
    return router


_BLIND: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _blind(given: Any) -> Any:
    """Examples or questions without vectors; the same object for the same ones."""
    if given not in _BLIND:
        if isinstance(given, Queries):
            _BLIND[given] = replace(given, embeddings=None)
        else:
            held = None if given.validation is None else _blind(given.validation)
            _BLIND[given] = replace(given, queries=_blind(given.queries), validation=held)
    return _BLIND[given]


@cache
def library_versions() -> list[str]:
    """`name=version` of the packages that decide a fit's last digits."""
    found = []
    for name in _LIBRARIES:
        try:
            found.append(f"{name}={version(name)}")
        except PackageNotFoundError:
            found.append(f"{name}=")
    return found
