"""Names → code, without importing the code before it is asked for.

A package lists its parts in an explicit dictionary in its `__init__.py`
(`{"numeric": "routeyard.pipelines.scorers.numeric:SCORER"}`); third parties add to it
through an entry point group of the same name (`routeyard.scorers`).
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isclass
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import BadInput, UnknownName, did_you_mean


class Names(tuple[str, ...]):
    """Names of registered parts, in order; calling it gives them as a list."""

    def __call__(self) -> list[str]:
        return list(self)


@cache
def _of_checkout() -> Mapping[str, Mapping[str, str]]:
    """Group → entry points of the checkout that is imported; empty for an installed package.

    A checkout may run uninstalled, or as it was installed before a part was added.
    """
    home = sys.modules[__name__.partition(".")[0]].__file__ or ""
    path = Path(home).parents[1] / "pyproject.toml"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    stated = tomllib.loads(text).get("project", {})
    found: Mapping[str, Mapping[str, str]] = stated.get("entry-points", {})
    return found if stated.get("name") == "routeyard" else {}


@dataclass(frozen=True)
class Registry:
    """Parts of one kind: `kind` is the word for people, `group` the entry point group."""

    kind: str
    group: str
    builtin: Mapping[str, str]
    #: Methods that every part has; those of other packages are looked at.
    methods: tuple[str, ...] = ()
    #: Names that the group had; packages that use them go on.
    earlier_groups: tuple[str, ...] = ()

    @cached_property
    def targets(self) -> dict[str, str]:
        """Name → `module:attribute`; a built-in name cannot be replaced."""
        groups = (*self.earlier_groups, self.group)
        found = {one.name: one.value for group in groups for one in entry_points(group=group)}
        return {**found, **_of_checkout().get(self.group, {}), **self.builtin}

    def names(self) -> list[str]:
        return sorted(self.targets)

    def modules(self, names: Iterable[str]) -> list[str]:
        """Modules of the named parts: the code of a stage that uses them."""
        found = {self.targets[name].partition(":")[0] for name in names if name in self.targets}
        return sorted(found)

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
                next_step=f"{did_you_mean(name, self.targets)}; where a package adds it, install "
                "that package here",
            )
        module, _, attribute = self.targets[name].partition(":")
        if name in self.builtin:
            return getattr(import_module(module), attribute)

        def wrong(fault: str, next_step: str) -> BadInput:
            what = f"the {self.kind} {name!r} of another package {fault}"
            place = f"entry point {name} = {self.targets[name]} in the group {self.group}"
            return BadInput(what, where=place, next_step=next_step)

        try:
            found = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            step = "mend its entry point or what it names, or uninstall that package"
            raise wrong(f"cannot be imported: {error}", step) from error
        lacks = [one for one in self.methods if not callable(getattr(found, one, None))]
        if lacks and isclass(found):  # what a function makes is seen when it is made
            step = f"a {self.kind} has the methods {' and '.join(self.methods)}"
            raise wrong(f"has no method {lacks[0]!r}", step)
        calls_itself = getattr(found, "name", name)
        if isinstance(calls_itself, str) and calls_itself != name:
            raise wrong(f"calls itself {calls_itself!r}", "give both the same name")
        return found
