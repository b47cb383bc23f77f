"""Parts that other packages add through entry points: which there are, and what is wrong."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import distributions

from routeyard.pipelines.errors import RouteyardError
from routeyard.pipelines.registry import Registry

#: The module of each registry.
REGISTRIES = (
    "routeyard.pipelines.scorers:SCORERS",
    "routeyard.pipelines.curate:RULES",
    "routeyard.pipelines.routers:ROUTERS",
    "routeyard.pipelines.routers:PAIR_ROUTERS",
    "routeyard.pipelines.metrics:METRICS",
    "routeyard.pipelines.studies:STUDIES",
    "routeyard.papers:PAPERS",
    "routeyard.pipelines.ingest.importers:IMPORTERS",
    "routeyard.pipelines.release.exporters:EXPORTERS",
    "routeyard.pipelines.entailment:BACKENDS",
    "routeyard.flows.workspace.fixtures:MAKERS",
)


def registries() -> dict[str, Registry]:
    """Entry point group → its registry."""
    found: dict[str, Registry] = {}
    for path in REGISTRIES:
        module, _, name = path.partition(":")
        registry: Registry = getattr(import_module(module), name)
        found[registry.group] = registry
    return found


def added() -> tuple[list[str], list[str]]:
    """(parts of other packages that work, what is wrong with the others), in words."""
    known = registries()
    works, wrong = [], []
    found = {
        (point.group, name, package.metadata["Name"])
        for package in distributions()
        if package.metadata["Name"] != "routeyard"  # the papers are added in the same way
        for point in package.entry_points
        if point.group.startswith("routeyard.")
        for name in (known[point.group].named_by(point) if point.group in known else [point.name])
    }
    for group, name, package_name in sorted(found):
        whose = f"{name} of {package_name}"
        registry = known.get(group)
        if registry is None:
            wrong.append(f"{whose}: no group {group!r}; known: {', '.join(sorted(known))}")
        elif name in registry.builtin:
            wrong.append(f"{whose}: {registry.kind} {name!r} is ours and stays ours; rename")
        else:
            try:
                registry.get(name)
                works.append(f"{registry.kind} {whose}")
            except RouteyardError as error:
                wrong.append(f"{whose}: {error}")
    return works, wrong
