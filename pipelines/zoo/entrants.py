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

from pipelines.errors import BadInput
from pipelines.routers import ROUTERS
from pipelines.routers.base import Router, Traits, architectures_of, traits_of


@dataclass(frozen=True)
class Entrant:
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


def registered(names: list[str] | None = None) -> list[Entrant]:
    """Registered routers by name, all without names.

    Raises:
        UnknownName: no router has that name.
    """
    wanted = names if names is not None else ROUTERS.names()
    for name in wanted:
        ROUTERS.get(name)
    return [Entrant(name, ROUTERS.targets[name]) for name in dict.fromkeys(wanted)]


def own(target: str) -> Entrant:
    """A router of someone's own: `module:Class`, `file.py:Class`, or a predictions table.

    Raises:
        BadInput: it cannot be found or is no router.
    """
    if target.endswith((".csv", ".parquet")):
        if not Path(target).is_file():
            raise BadInput("there is no such predictions file", where=target)
        return Entrant(Path(target).stem, str(Path(target).resolve()))
    module, _, attribute = target.rpartition(":")
    if module.endswith(".py"):
        target = f"{Path(module).resolve()}:{attribute}"
    found = class_of(Entrant("", target))
    return Entrant(getattr(found, "name", attribute), target)


def class_of(entrant: Entrant) -> Any:
    """The class behind an entrant. This runs the module that defines it.

    Raises:
        BadInput: it cannot be imported, or is no router.
    """
    module, _, attribute = entrant.target.rpartition(":")
    if not module or not attribute:
        raise BadInput(
            f"{entrant.target!r} does not name a class",
            next_step="write it as module:Class or file.py:Class",
        )
    try:
        found = getattr(_module(module), attribute)
    except (ImportError, AttributeError, OSError) as error:
        raise BadInput(
            f"router {entrant.target!r} cannot be imported: {error}",
            next_step="name a file that exists, or install the module",
        ) from error
    lacks = [name for name in ("fit", "scores") if not callable(getattr(found, name, None))]
    if lacks:
        raise BadInput(
            f"{entrant.target!r} is no router: it has no method {lacks[0]!r}",
            next_step="see pipelines/routers/base.py for the two methods a router has",
        )
    return found


def _module(name: str) -> Any:
    if not name.endswith(".py"):
        return importlib.import_module(name)
    known = f"routeyard_own_{Path(name).stem}"
    if known in sys.modules and getattr(sys.modules[known], "__file__", None) == name:
        return sys.modules[known]
    spec = importlib.util.spec_from_file_location(known, name)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[known] = module
    spec.loader.exec_module(module)
    return module


def traits(entrant: Entrant) -> Traits:
    """What it says about itself; a table is fixed and needs nothing."""
    if entrant.is_table:
        return Traits(loss="none: a table of scores", needs=(), stochastic=False, cost="none")
    found = class_of(entrant)
    if hasattr(found, "traits"):
        return traits_of(found)
    # Someone's own class: it has a seed when it takes one.
    return Traits(stochastic="seed" in inspect.signature(found).parameters)


def architectures(entrant: Entrant) -> tuple[Mapping[str, Any], ...]:
    """Settings the protocol tries."""
    return ({},) if entrant.is_table else architectures_of(class_of(entrant))


def made(entrant: Entrant, setting: Mapping[str, Any], seed: int) -> Router:
    """A fresh router with one setting and seed."""
    if entrant.is_table:
        from pipelines.evaluate.run.predictions import Predictions, read_predictions

        return Predictions(read_predictions(Path(entrant.target)), entrant.name)
    found = class_of(entrant)
    # Lists come back from JSON where a class declares tuples.
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in setting.items()}
    if "seed" in inspect.signature(found).parameters:
        given["seed"] = seed
    router: Router = found(**given)
    return router
