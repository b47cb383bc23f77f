"""Who takes part: registered routers, a user's class, a table of predictions."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import BadInput, did_you_mean
from routeyard.pipelines.experiment.given import Predictions, read_predictions
from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import Router, Traits, architectures_of, traits_of
from routeyard.pipelines.routers.listed.presets import constants

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
    wanted = names if names is not None else ROUTERS.names()
    return [_registered(name) for name in dict.fromkeys(wanted)]


def _registered(name: str) -> RouterSpec:
    router, colon, preset = name.partition(":")
    ROUTERS.get(router)
    if not colon:
        return RouterSpec(name, ROUTERS.targets[router])
    constants(router, preset)
    return RouterSpec(name, ROUTERS.targets[router], {"preset": preset})


def own(target: str) -> RouterSpec:
    """A router of someone's own: `module:Class`, `file.py:Class`, or a predictions table.

    Raises:
        BadInput: it cannot be found or is no router.
    """
    if target.endswith((".csv", ".parquet")):
        if not Path(target).is_file():
            raise BadInput(
                "there is no such predictions file",
                where=target,
                next_step="give a CSV or Parquet with query_id, model_id and, if known, score",
            )
        return RouterSpec(Path(target).stem, str(Path(target).resolve()))
    module, _, attribute = target.rpartition(":")
    if module.endswith(".py"):
        target = f"{Path(module).resolve()}:{attribute}"
    elif os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    found = class_of(RouterSpec("", target))
    return RouterSpec(getattr(found, "name", attribute), target)


def handed_over(name: str, given: Any) -> RouterSpec:
    """A router class, made anew for each fit, or a router, fitted again; or a registered name.

    Raises:
        BadInput: it has no `fit` or no `scores`.
    """
    if isinstance(given, str):
        return replace(registered([given])[0], name=name)
    lacks = [name for name in ("fit", "scores") if not callable(getattr(given, name, None))]
    if lacks:
        raise BadInput(
            f"{given!r} is no router: it has no method {lacks[0]!r}",
            next_step="a router has `fit(train)` and `scores(queries)`",
        )
    return RouterSpec(name, "", given=given)


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
    found = getattr(there, attribute, None)
    if found is None:
        classes = [name for name, one in vars(there).items() if callable(getattr(one, "fit", None))]
        raise BadInput(
            f"there is no {attribute!r} in {Path(module).name}",
            where=module,
            next_step=did_you_mean(attribute, classes),
        )
    lacks = [name for name in ("fit", "scores") if not callable(getattr(found, name, None))]
    if lacks:
        raise BadInput(
            f"{spec.target!r} is no router: it has no method {lacks[0]!r}",
            next_step="see pipelines/routers/base.py for the two methods a router has",
        )
    return found


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
    found = class_of(spec)
    if hasattr(found, "traits"):
        return traits_of(found)
    # Someone's own class: it has a seed when it takes one.
    return Traits(stochastic=takes_seed(found))


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
    found = class_of(spec)
    if spec.given is not None and not inspect.isclass(spec.given):
        if spec.seed and takes_seed(found):
            raise BadInput(
                f"{spec.given!r} is one router with one seed, and several seeds were asked for",
                next_step=f"pass the class {found.__name__} itself: each fit makes one with "
                "its own seed",
            )
        one: Router = spec.given
        return one
    # Lists come back from JSON where a class declares tuples.
    setting = {k: tuple(v) if isinstance(v, list) else v for k, v in spec.setting.items()}
    if spec.seed is not None and takes_seed(found):
        setting["seed"] = spec.seed
    for argument in inspect.signature(found).parameters.values():
        named = argument.kind in (argument.POSITIONAL_OR_KEYWORD, argument.KEYWORD_ONLY)
        if named and argument.default is argument.empty and argument.name not in setting:
            raise BadInput(
                f"router {spec.name!r} cannot be made: its constructor needs {argument.name!r}",
                where=spec.target,
                next_step=f"give {argument.name!r} a default",
            )
    router: Router = found(**setting)
    return router


def identity(spec: RouterSpec) -> str | None:
    """What decides a router's fit beside its code and its data; None where that is not known.

    A setting that spells out a default is that default's. A seed counts where the class takes
    one; without, a registered router repeats itself, and of someone's own each `repeat` may differ.
    """
    if spec.given is not None or spec.is_table:
        return None
    found = class_of(spec)
    known = inspect.signature(found).parameters
    defaults = {
        **getattr(found, "loop", {}),
        **getattr(found, "defaults", {}),
        **{k: one.default for k, one in known.items() if one.default is not one.empty},
    }
    setting = {**defaults, **spec.setting}
    repeat = spec.repeat
    if takes_seed(found):
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
