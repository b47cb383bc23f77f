"""Axes of a model of the pool: one entry that describes every arm it can be asked as."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from routeyard.schemas.strict import Name, Strict

if TYPE_CHECKING:
    from routeyard.schemas.recipe.pool import Model

Axis = Literal["effort", "output_budget", "prompt", "tools", "samples"]
#: What a plain value of an axis sets; `tools` has none.
_SETS = {
    "effort": ("parameters", "reasoning_effort"), "output_budget": ("parameters", "max_tokens"),
    "prompt": ("prompt",), "samples": ("samples",),
}  # fmt: skip
#: Keys of a model that a value of an axis cannot set.
_OWN = ("model_id", "axes", "arm", "relay")
#: Values of an axis: a list, or name → value; a value is plain, or keys of a model.
AxisValues = list[str | int] | dict[Name, str | int | dict[str, Any] | None]
#: More arms of one entry are a mistake.
MOST_ARMS = 1_000


class Arm(Strict):
    """The place of a member of the pool on the axes of the entry that it comes from."""

    of: Name
    """The entry: the model that all its arms are."""
    effort: Name | None = Field(default=None, exclude_if=lambda given: given is None)
    """Name of its effort."""
    effort_level: int | None = Field(default=None, ge=0, exclude_if=lambda given: given is None)
    """Place of that effort in its axis, which goes from least to most."""
    prompt: Name | None = Field(default=None, exclude_if=lambda given: given is None)
    """Name of its prompt."""
    tools: Name | None = Field(default=None, exclude_if=lambda given: given is None)
    """Name of its tools."""


def arms_of(model: Model) -> list[Model]:
    """The entry itself, or one member for each combination of the values of its axes.

    Raises:
        ValueError: a value cannot be set, two axes set the same, or there are too many arms.
    """
    if model.axes is None:
        return [model]
    axes = {axis: _values(axis, given) for axis, given in model.axes.items()}
    count = 1
    for axis, values in axes.items():
        count *= len(values)
        if not values:
            raise ValueError(f"model {model.model_id!r}: the axis {axis!r} has no value")
    if count > MOST_ARMS:
        raise ValueError(f"model {model.model_id!r}: its axes make {count:,} arms ({MOST_ARMS:,})")
    return [_arm(model, dict(zip(axes, chosen, strict=True))) for chosen in product(*axes.values())]


def _values(axis: Axis, given: AxisValues) -> list[tuple[int, str, Any]]:
    """(place, name, value) of each value of an axis."""
    pairs = given.items() if isinstance(given, dict) else ((str(one), one) for one in given)
    return [(place, name, value) for place, (name, value) in enumerate(pairs)]


def _arm(model: Model, chosen: dict[Axis, tuple[int, str, Any]]) -> Model:
    said = model.model_dump(exclude_unset=True, exclude={"axes"})
    # All arms are asked of one endpoint, whatever their names are.
    said["endpoint_model"] = model.endpoint_model or model.model_id
    said["parameters"] = dict(model.parameters)
    written: dict[tuple[str, ...], str] = {}
    for axis, (_, name, value) in chosen.items():
        for place, one in _settings(model, axis, name, value):
            if place in written:
                raise ValueError(
                    f"model {model.model_id!r}: the axes {written[place]!r} and {axis!r} both set "
                    f"{'.'.join(place)!r}"
                )
            written[place] = axis
            (said["parameters"] if len(place) == 2 else said)[place[-1]] = one
    names = {axis: name for axis, (_, name, _) in chosen.items()}
    said["model_id"] = "-".join([model.model_id, *names.values()])
    said["arm"] = {"of": model.model_id} | {
        axis: names[axis] for axis in ("effort", "prompt", "tools") if axis in names
    }
    if "effort" in chosen:
        said["arm"]["effort_level"] = chosen["effort"][0]
    return type(model).model_validate(said)


def _settings(model: Model, axis: Axis, name: str, value: Any) -> list[tuple[tuple[str, ...], Any]]:
    """(keys, value) of all that one value of an axis sets."""
    if not isinstance(value, dict):
        if axis not in _SETS:
            raise ValueError(
                f"model {model.model_id!r}: a value of the axis {axis!r} is a mapping of keys of a "
                f"model, such as {{{name}: {{parameters: {{…}}}}}}"
            )
        return [(_SETS[axis], value)]
    if wrong := sorted(set(value) & set(_OWN)):
        raise ValueError(f"model {model.model_id!r}: an axis cannot set {wrong[0]!r}")
    parameters = value.get("parameters") or {}
    return [((key,), one) for key, one in value.items() if key != "parameters"] + [
        (("parameters", key), one) for key, one in parameters.items()
    ]
