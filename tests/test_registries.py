"""Every part is listed, tested and documented; what was forgotten is named, with what to do."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from routeyard.pipelines.registry import Registry
from routeyard.pipelines.routers.base import traits_of

ROOT = Path(__file__).parents[1]


class Package(NamedTuple):
    """Where the parts of one registry are, and where each has a test and a row."""

    registry: str
    #: What a module writes, or which methods its class has, when it makes a part.
    makes: str
    readme: str
    tests: str


PACKAGES = {
    one.registry.rpartition(":")[2]: one
    for one in (
        Package(
            "pipelines.scorers:SCORERS", r"(?:Scorer|_classified)",
            "pipelines/scorers/README.md", "tests/scorers",
        ),
        Package("pipelines.curate:RULES", "Rule", "pipelines/curate/README.md", "tests/curate"),
        Package(
            "pipelines.ingest.importers:IMPORTERS", "Importer",
            "pipelines/ingest/importers/README.md", "tests/ingest/importers",
        ),
        Package(
            "pipelines.routers:ROUTERS", "", "pipelines/routers/README.md", "tests/routers"
        ),
        Package(
            "pipelines.routers:PAIR_ROUTERS", "", "pipelines/routers/README.md", "tests/routers"
        ),
    )
}  # fmt: skip
ROUTERS = ("ROUTERS", "PAIR_ROUTERS")


def registry(kind: str) -> Registry:
    module, _, name = PACKAGES[kind].registry.partition(":")
    found = getattr(import_module(f"routeyard.{module}"), name)
    assert isinstance(found, Registry)
    return found


def made(kind: str) -> Iterator[str]:
    """`module:attribute` of every part that the modules of a package make."""
    package = import_module("routeyard." + PACKAGES[kind].registry.partition(":")[0])
    for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if one.ispkg:
            continue
        module = import_module(one.name)
        if kind in ROUTERS:
            yield from _router_classes(module)
            continue
        text = Path(module.__file__ or "").read_text(encoding="utf-8")
        for attribute in re.findall(rf"^([A-Z_]+) = {PACKAGES[kind].makes}\(", text, re.M):
            yield f"{one.name}:{attribute}"


def _router_classes(module: Any) -> Iterator[str]:
    """Classes of a module that are routers: they have a name of their own, `fit` and `scores`."""
    for attribute, value in vars(module).items():
        own = isinstance(value, type) and value.__module__ == module.__name__
        if own and isinstance(vars(value).get("name"), str) and hasattr(value, "fit"):
            yield f"{module.__name__}:{attribute}"


@pytest.mark.parametrize("kind", PACKAGES)
def test_every_part_that_is_made_is_listed(kind: str) -> None:
    listed = {
        target
        for other in (ROUTERS if kind in ROUTERS else (kind,))
        for target in registry(other).builtin.values()
    }
    package = PACKAGES[kind].registry.partition(":")[0].replace(".", "/")
    forgotten = sorted(set(made(kind)) - listed)
    place = "a row of listed/routers.yaml" if kind == "ROUTERS" else "__init__.py"
    assert not forgotten, f"list {', '.join(forgotten)} in {kind}: {place} of {package}"


def faults(kind: str, name: str) -> Iterator[str]:
    """What a listed part lacks, one sentence each."""
    part = registry(kind).get(name)
    if part.name != name:
        yield f"{registry(kind).builtin[name]} calls itself {part.name!r}: use one name"
    if kind == "ROUTERS" and not (hasattr(part, "traits") and part.traits.cost):
        yield f"say in the row {name!r} of routers.yaml what a fit costs, and write `@listed`"
    if not is_tested(kind, name):
        yield f"no test under {PACKAGES[kind].tests} names it: add cases, each with its trap"
    page = (ROOT / PACKAGES[kind].readme).read_text(encoding="utf-8")
    row, family = router_row(kind, name), f"`{name.partition('_')[0]}_*`"
    if kind in ROUTERS and row not in page:
        yield f"put this row into {PACKAGES[kind].readme}:\n{row}"
    elif f"`{name}`" not in page and family not in page:
        yield f"add a row to the table of {PACKAGES[kind].readme}"


def router_row(kind: str, name: str) -> str:
    """A router's row in the README, from its traits."""
    if kind not in ROUTERS:
        return ""
    traits = traits_of(registry(kind).get(name))
    needs = ", ".join(traits.needs) or "–"
    return f"| `{name}` | {traits.paper or '–'} | {traits.scale} | {needs} | {traits.cost or '–'} |"


def is_tested(kind: str, name: str) -> bool:
    if kind == "PAIR_ROUTERS":
        return True  # test_pair_routers.py tries each of them
    module, _, attribute = registry(kind).builtin[name].partition(":")
    leaf = module.rpartition(".")[2]
    words = "|".join(
        [
            re.escape(module) + r"\b",
            rf"""import(?:ed)?\(["']{name}["']|["']import["'], ["']{name}["']""",  # an import run
            rf"import .*\b{leaf}\b",
            rf"\A\w+_{name}$",  # a file of cases
            rf"\b{leaf}\.{attribute}",
            *([rf"""["']{re.escape(name)}["']""", rf"\b{attribute}\b"] if kind in ROUTERS else []),
        ]
    )
    return any(
        re.search(words, f"{path.stem}\n{path.read_text(errors='ignore')}", re.M)
        for path in (ROOT / PACKAGES[kind].tests).rglob("*.*")
        if path.suffix in (".py", ".txt", ".yaml", ".jsonl")
    )


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in PACKAGES for name in registry(kind).builtin]
)
def test_every_part_has_its_name_a_test_and_a_row(kind: str, name: str) -> None:
    found = list(faults(kind, name))
    assert not found, f"{name}: {'; '.join(found)}"
