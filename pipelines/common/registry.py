"""Names → code, without importing the code before it is asked for.

A package lists its parts in an explicit dictionary in its `__init__.py`
(`{"numeric": "routeyard.pipelines.label.scorers.numeric:SCORER"}`); third parties add to it
through an entry point group of the same name (`routeyard.scorers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import isclass
from typing import Any

from routeyard.pipelines.common.errors import BadInput, RouteyardError, UnknownName, did_you_mean


class Names(tuple[str, ...]):
    """Names of registered parts, in order; calling it gives them as a list."""

    def __call__(self) -> list[str]:
        return list(self)


@dataclass(frozen=True)
class Registry:
    """Parts of one kind: `kind` is the word for people, `group` the entry point group."""

    kind: str
    group: str
    builtin: Mapping[str, str]
    #: Methods that every part has; those of other packages are looked at.
    methods: tuple[str, ...] = ()
    #: Names of parts that a package declares in a file, where an entry point names only it.
    declared: Callable[[str], Iterable[str]] | None = None
    #: What lists them all, for people.
    listed: str = ""

    @cached_property
    def targets(self) -> dict[str, str]:
        """Name → `module:attribute`; a built-in name cannot be replaced."""
        points = entry_points(group=self.group)
        result = {k: v for point in points for k, v in self.named_by(point).items()}
        return {**result, **self.builtin}

    def named_by(self, point: EntryPoint) -> dict[str, str]:
        """Name → target of the part that an entry point names, or of all that a package declares.

        A package whose declarations cannot be read is named as a part, and refused by `get`.
        """
        if self.declared and ":" not in point.value:
            with suppress(ImportError, OSError, RouteyardError):
                return {name: f"{point.value}:{name}" for name in self.declared(point.value)}
        return {point.name: point.value}

    def names(self) -> list[str]:
        return sorted(self.targets)

    def modules(self, names: Iterable[str]) -> list[str]:
        """Modules of the named parts: the code of a stage that uses them."""
        results = {self.targets[name].partition(":")[0] for name in names if name in self.targets}
        return sorted(results)

    def get(self, name: str, *, where: str | None = None) -> Any:
        """The object registered under `name`.

        Raises:
            UnknownName: nothing is registered under that name.
            BadInput: what another package registered cannot be imported, lacks a method, or
                has another name.
        """
        if name not in self.targets:
            raise UnknownName(
                f"there is no {self.kind} {name!r}",
                where=where,
                next_step=f"{did_you_mean(name, self.targets)}; "
                f"{f'{self.listed} lists them; ' if self.listed else ''}where a package adds it, "
                "install that package here",
            )
        module, _, attribute = self.targets[name].partition(":")
        if name in self.builtin:
            return getattr(import_module(module), attribute)

        def wrong(fault: str, next_step: str) -> BadInput:
            what = f"the {self.kind} {name!r} of another package {fault}"
            place = f"entry point {name} = {self.targets[name]} in the group {self.group}"
            return BadInput(what, where=place, next_step=next_step)

        try:
            result = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            step = "mend its entry point or what it names, or uninstall that package"
            raise wrong(f"cannot be imported: {error}", step) from error
        lacks = [method for method in self.methods if not callable(getattr(result, method, None))]
        if lacks and isclass(result):  # what a function makes is seen when it is made
            step = f"a {self.kind} has the methods {' and '.join(self.methods)}"
            raise wrong(f"has no method {lacks[0]!r}", step)
        calls_itself = getattr(result, "name", name)
        if isinstance(calls_itself, str) and calls_itself != name:
            raise wrong(f"calls itself {calls_itself!r}", "give both the same name")
        return result
