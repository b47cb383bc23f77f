"""Options of a command from the one list of settings, `EvaluationSettings`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Annotated, Any, get_type_hints

import typer

from routeyard.flows.cli.options import Resamples
from routeyard.pipelines.experiment.settings import EvaluationSettings, setting_helps

#: Settings that are written otherwise on a command line: option, type, default.
_WRITTEN: dict[str, tuple[str, Any, Any]] = {
    "seeds": ("seeds", str, "1"),
    "pair": ("pair", str | None, None),
    "bands": ("bands", str, "0.25,0.30,0.85,0.95"),
    "ood_groups": ("ood_group", list[str] | None, None),
}
#: Settings whose option takes more than a type.
_TYPES: dict[str, Any] = {
    "resamples": Resamples,
    "splits": Annotated[int, typer.Option(min=0)],
    "usd_per_hour": Annotated[float | None, typer.Option(min=0)],
    "embed_seconds": Annotated[float, typer.Option(min=0)],
}


def with_settings(
    only: Sequence[str] | None = None, **defaults: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the command gets `settings`, and an option for each of them with its help.

    Args:
        only: settings that are options; by default all.
        defaults: defaults that differ, as they are written on a command line.
    """
    types = get_type_hints(EvaluationSettings)
    base = EvaluationSettings()
    wanted = [one.name for one in fields(base) if only is None or one.name in only]
    options: dict[str, inspect.Parameter] = {}
    for name in wanted:
        called, kind, default = _WRITTEN.get(name, (name, types[name], getattr(base, name)))
        if kind is bool and not default:
            kind = Annotated[bool, typer.Option(f"--{name.replace('_', '-')}")]
        options[name] = inspect.Parameter(
            called, inspect.Parameter.KEYWORD_ONLY, annotation=_TYPES.get(name, kind),
            default=defaults.get(name, default),
        )  # fmt: skip

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def run(**given: Any) -> Any:
            said = {name: given.pop(one.name) for name, one in options.items()}
            return command(settings=settings_of(said), **given)

        own = inspect.signature(command, eval_str=True)
        kept = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for one in own.parameters.values()
            if one.name != "settings"
        ]
        run.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[*kept, *options.values()]
        )
        run.__annotations__ = {
            **{one.name: one.annotation for one in kept},
            "return": "Output",
            **{one.name: one.annotation for one in options.values()},
        }
        run.__doc__ = _documented(inspect.cleandoc(command.__doc__ or ""), options)
        return run

    return decorated


def settings_of(written: dict[str, Any]) -> EvaluationSettings:
    """Settings as a command line writes them.

    Raises:
        BadInput: one cannot be read.
    """
    from routeyard.flows.evaluation import options
    from routeyard.flows.evaluation.router_specs import parse_pair

    readers: dict[str, Callable[..., Any]] = {
        "pair": parse_pair, "bands": options.parse_bands, "ood_groups": options.parse_groups,
    }  # fmt: skip
    return EvaluationSettings(
        **{name: readers[name](one) if name in readers else one for name, one in written.items()}
    )


def _documented(text: str, options: dict[str, inspect.Parameter]) -> str:
    """The docstring of a command with the helps of its settings among its `Args`."""
    helps = setting_helps()
    if "\n\nArgs:\n" not in text:
        text += "\n\nArgs:"
    return text + "".join(f"\n    {one.name}: {helps[name]}" for name, one in options.items())
