"""What `routers.yaml` declares of the routers here: paper, loss, needs, cost and settings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from routeyard.pipelines.io.plain_yaml import read_text
from routeyard.pipelines.routers.listed.presets import with_presets

_PATH = Path(__file__).with_name("routers.yaml")

#: What a router's numbers mean, and with it which selection rules can use them.
#: `probability`: chance of a good answer; may be weighed against cost.
#: `similarity`: cosine to a model; may be lowered by λ·cost, in its own unit.
#: `strength`: an order of the models of one question; its unit means nothing.
Scale = Literal["probability", "similarity", "strength"]


@dataclass(frozen=True)
class Traits:
    """What a router says about itself, for `routeyard zoo list` and the protocol.

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
    found: dict[str, dict[str, Any]] = _fixed(
        read_text(_PATH.read_text(encoding="utf-8"), where=str(_PATH))
    )
    return found


def _fixed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _fixed(one) for key, one in value.items()}
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
