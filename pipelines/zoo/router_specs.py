"""Who takes part: registered routers, a class of one's own, a table of predictions."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import Router, Traits, architectures_of, traits_of


@dataclass(frozen=True)
class RouterSpec:
    """A router by where it is found.

    Attributes:
        name: as tables call it.
        target: `module:Class`, or `file.py:Class`, or a CSV or Parquet file.
    """

    name: str
    target: str

    @property
    def is_table(self) -> bool:
        return self.target.endswith((".csv", ".parquet"))


def registered(names: list[str] | None = None) -> list[RouterSpec]:
    """Registered routers by name, all without names.

    Raises:
        UnknownName: no router has that name.
    """
    wanted = names if names is not None else ROUTERS.names()
    for name in wanted:
        ROUTERS.get(name)
    return [RouterSpec(name, ROUTERS.targets[name]) for name in dict.fromkeys(wanted)]


def own(target: str) -> RouterSpec:
    """A router of someone's own: `module:Class`, `file.py:Class`, or a predictions table.

    Raises:
        BadInput: it cannot be found or is no router.
    """
    if target.endswith((".csv", ".parquet")):
        if not Path(target).is_file():
            raise BadInput("there is no such predictions file", where=target)
        return RouterSpec(Path(target).stem, str(Path(target).resolve()))
    module, _, attribute = target.rpartition(":")
    if module.endswith(".py"):
        target = f"{Path(module).resolve()}:{attribute}"
    found = class_of(RouterSpec("", target))
    return RouterSpec(getattr(found, "name", attribute), target)


def class_of(spec: RouterSpec) -> Any:
    """The class behind an entrant. This runs the module that defines it.

    Raises:
        BadInput: it cannot be imported, or is no router.
    """
    module, _, attribute = spec.target.rpartition(":")
    if not module or not attribute:
        raise BadInput(
            f"{spec.target!r} does not name a class",
            next_step="write it as module:Class or file.py:Class",
        )
    try:
        found = getattr(_module(module), attribute)
    except (ImportError, AttributeError, OSError) as error:
        raise BadInput(
            f"router {spec.target!r} cannot be imported: {error}",
            next_step="name a file that exists, or install the module",
        ) from error
    lacks = [name for name in ("fit", "scores") if not callable(getattr(found, name, None))]
    if lacks:
        raise BadInput(
            f"{spec.target!r} is no router: it has no method {lacks[0]!r}",
            next_step="see pipelines/routers/base.py for the two methods a router has",
        )
    return found


def _module(name: str) -> Any:
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
    found = class_of(spec)
    if hasattr(found, "traits"):
        return traits_of(found)
    # Someone's own class: it has a seed when it takes one.
    return Traits(stochastic=takes_seed(found))


def architectures(spec: RouterSpec) -> tuple[Mapping[str, Any], ...]:
    """Settings the protocol tries."""
    return ({},) if spec.is_table else architectures_of(class_of(spec))


def made(spec: RouterSpec, setting: Mapping[str, Any], seed: int) -> Router:
    """A fresh router with one setting and seed."""
    if spec.is_table:
        from routeyard.pipelines.evaluate.run.predictions import Predictions, read_predictions

        return Predictions(read_predictions(Path(spec.target)), spec.name)
    return fresh(class_of(spec), setting, seed)


def fresh(made: Any, setting: Mapping[str, Any], seed: int) -> Router:
    """A router of a class with one setting; a class that takes a seed gets it."""
    # Lists come back from JSON where a class declares tuples.
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in setting.items()}
    if takes_seed(made):
        given["seed"] = seed
    router: Router = made(**given)
    return router


def takes_seed(made: Any) -> bool:
    """Whether a class has a keyword argument `seed`."""
    return "seed" in inspect.signature(made).parameters
