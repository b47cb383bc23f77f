"""Top-level names of our packages, for entry points and code written before they had a prefix.

The packages are `routeyard.flows`, `routeyard.papers`, `routeyard.pipelines`, `routeyard.schemas`
and `routeyard.datacards`, so that folders of these names in a user's directory neither hide them
nor are hidden. In a checkout they can also be found as `flows` and so on, and an installed
Routeyard offers `flows` for deployments that name `flows.build:build`. Either name gives the same
module: no file is loaded twice.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType


class _Aliases(MetaPathFinder, Loader):
    """Finds `flows.x` as `routeyard.flows.x`, for the packages that were imported by alias."""

    def __init__(self) -> None:
        self.packages: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = name.partition(".")
        return ModuleSpec(name, self) if rest and package in self.packages else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(f"routeyard.{spec.name}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:  # the import system put the alias's spec there
            module.__spec__ = module.__spec__.loader_state

    def get_code(self, name: str) -> CodeType | None:
        """Code of a module that is started with `python -m`."""
        spec = find_spec(f"routeyard.{name}")
        return spec.loader.get_code(spec.name) if spec else None  # type: ignore[union-attr]


_ALIASES = _Aliases()


def alias(package: str) -> None:
    """Make a top-level package the same module as `routeyard.<package>`, submodules included."""
    if _ALIASES not in sys.meta_path:
        sys.meta_path.insert(0, _ALIASES)
    _ALIASES.packages.add(package)
    sys.modules[package] = import_module(f"routeyard.{package}")
