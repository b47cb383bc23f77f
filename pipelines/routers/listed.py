"""What `routers.yaml` declares of the routers here: paper, loss, needs, cost and settings."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from routeyard.pipelines.common.files import read_text
from routeyard.schemas.errors import BadInput

# Presets: a router's constants as its paper prints them, or as its published code has them.

_PRESETS_PATH = Path(__file__).with_name("presets.yaml")

#: What `preset=` takes. `routeyard`: what we would choose, a class's own defaults.
PRESETS = ("routeyard", "text", "code")


@dataclass(frozen=True)
class Constant:
    """A published constant.

    Attributes:
        value: of the router's setting.
        of: `text` or `code`.
        at: its place there.
    """

    value: Any
    of: str
    at: str


@functools.cache
def presets_rows() -> dict[str, dict[str, Any]]:
    """Router → its row of `presets.yaml`."""
    return _read(_PRESETS_PATH)


def presets_of(name: str) -> tuple[str, ...]:
    """The presets that a router has."""
    return tuple(
        item for item in PRESETS if item == "routeyard" or item in presets_rows().get(name, {})
    )


def constants(name: str, preset: str) -> dict[str, Constant]:
    """Setting → constant of a preset; `text` takes from `code` what it does not print.

    Raises:
        BadInput: the router has no such preset.
    """
    if preset not in presets_of(name):
        raise BadInput(
            f"router {name!r} has no preset {preset!r}",
            where="pipelines/routers/presets.yaml",
            next_step=f"it has: {', '.join(presets_of(name))}",
        )
    result = {}
    for of in () if preset == "routeyard" else dict.fromkeys(("code", preset)):
        for group in presets_rows()[name].get(of, []):
            for setting, value in group.items():
                if setting != "at":
                    constant = tuple(value) if isinstance(value, list) else value
                    result[setting] = Constant(constant, of, group["at"])
    return result


def deviations(name: str, preset: str, own: Mapping[str, Any]) -> tuple[str, ...]:
    """What of a preset is not as its paper or code has it, whatever the data.

    Args:
        own: settings of training that a source should state.
    """
    if preset == "routeyard":
        return ()
    known = constants(name, preset)
    borrowed = [setting for setting, item in known.items() if item.of != preset]
    unsaid = [setting for setting in own if setting not in known]
    results = [f"not printed, from the code: {', '.join(borrowed)}"] if borrowed else []
    if unsaid:
        results.append(f"not stated, ours: {', '.join(f'{item} {own[item]}' for item in unsaid)}")
    return (*results, *presets_rows()[name].get("differs", ()))


def too_small(router: Any, train: Any) -> tuple[str, ...]:
    """Constants of a router's preset that its train questions or models were too few for.

    Args:
        router: fitted, of another preset than `routeyard`.
        train: the `Examples` it was fitted on.
    """
    import numpy as np

    limited = presets_rows()[router.name].get("limited", {})
    if not limited:
        return ()
    labelled = ~np.isnan(train.labels).all(axis=1)
    vectors = train.queries.vectors()[labelled]
    counts = {"questions": len(vectors), "models": train.labels.shape[1]}
    if "distinct questions" in limited.values():
        counts["distinct questions"] = len(np.unique(vectors, axis=0))
    stated = getattr(router, "settings", None) or vars(router)
    results: list[str] = []
    for setting, by in limited.items():
        values = stated[setting] if isinstance(stated[setting], tuple) else (stated[setting],)
        most = [value for value in values if value is not None and value > counts[by]]
        results += [f"{setting} {item:,}: {counts[by]:,} {by}" for item in most]
    return tuple(results)


def _with_limits(router: Any) -> None:
    """Let the class say after each fit what of its preset the examples were too few for."""
    fit, name = router.fit, router.name

    @functools.wraps(fit)
    def fitted(self: Any, train: Any) -> Any:
        if self.name != name:  # by the class derived from this one
            return fit(self, train)
        self.not_as_published = deviations(name, self.preset, {})
        done = fit(self, train)
        if self.as_published:
            unlike = (*self.not_as_published, *too_small(self, train))
            self.not_as_published = tuple(dict.fromkeys(unlike))
        return done

    router.fit = fitted


def with_presets(router: Any) -> Any:
    """The class, which now takes `preset`; settings that are given besides win over its own.

    `as_published=True` is the preset `text`, without one `code`. An object has
    `preset`, `as_published` (whether it is another than `routeyard`), in
    `not_as_published` what differs, and `scale` where its scores then mean something else.
    """
    plain, name = router.__init__, router.name
    if name in presets_rows():
        _with_limits(router)

    @functools.wraps(plain)
    def made(
        self: Any, *args: Any, preset: str | None = None, as_published: bool = False, **value: Any
    ) -> None:
        if "preset" in vars(self):  # by the class derived from this one
            plain(self, *args, **value)
            return
        published = presets_of(name)[1:] or ("text",)
        self.preset = preset or (published[0] if as_published else "routeyard")
        known = {setting: item.value for setting, item in constants(name, self.preset).items()}
        self.as_published = self.preset != "routeyard"
        self.not_as_published = deviations(name, self.preset, {})
        if self.as_published and "scale" in presets_rows()[name]:
            self.scale = presets_rows()[name]["scale"]
        plain(self, *args, **{**known, **value})

    router.__init__ = made
    return router


_PATH = Path(__file__).with_name("routers.yaml")

#: What a router's numbers mean, and with it which selection rules can use them.
#: `probability`: chance of a good answer; may be weighed against cost.
#: `similarity`: cosine to a model; may be lowered by λ·cost, in its own unit.
#: `strength`: an order of the models of one question; its unit means nothing.
Scale = Literal["probability", "similarity", "strength"]


@dataclass(frozen=True)
class Traits:
    """What a router says about itself, for `routeyard zoo` and the protocol.

    Attributes:
        paper: where it is from.
        loss: what its training minimises; `none` and why where nothing is trained. Empty
            is for routers of other people only.
        selection: the rule of its paper.
        scale: what its scores mean. Those of a `probability` lie in [0, 1]; others are
            no chances, and rules that weigh chances against cost refuse them.
        needs: of `embeddings`, `tasks`, `costs`, `arms`, and of `GIVEN`; a release may lack them.
        stochastic: whether a seed changes the fit, so that five are run.
        online: whether it learns question by question, so that its seeds are
            orders in which the questions come.
        extra: the extra of the distribution it needs, if any.
        cost: what a fit takes, in words.
    """

    paper: str = ""
    loss: str = ""
    selection: str = "argmax"
    scale: Scale = "probability"
    needs: tuple[str, ...] = ("embeddings",)
    stochastic: bool = True
    online: bool = False
    extra: str | None = None
    cost: str = ""


@cache
def rows() -> dict[str, dict[str, Any]]:
    """Router → its row, with tuples for lists."""
    return {name: _fixed(row) for name, row in _read(_PATH).items()}


def _read(path: Path) -> dict[str, dict[str, Any]]:
    text: dict[str, dict[str, Any]] = read_text(path.read_text("utf-8"), where=str(path))
    return text


def _fixed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _fixed(item) for key, item in value.items()}
    return tuple(map(_fixed, value)) if isinstance(value, list) else value


def listed(router: Any) -> Any:
    """The class, with what the row of its `name` declares as attributes, and with presets.

    `defaults` (settings of a `Trained` router) add to those of its base class,
    `architectures` replaces them, and all other keys are its `traits`.
    """
    if router.name not in rows():
        raise LookupError(f"add a row {router.name!r} to {_PATH.name}, which is beside this file")
    row = dict(rows()[router.name])
    row.pop("class")
    router.defaults = {**getattr(router, "defaults", {}), **row.pop("defaults", {})}
    if "architectures" in row:
        router.architectures = row.pop("architectures")
    if row:
        router.traits = Traits(**row)
    return with_presets(router)
