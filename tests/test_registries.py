"""Every part is listed, tested and documented; what was forgotten is named, with what to do."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import pipelines.routers
from pipelines.registry import Registry
from pipelines.routers import PAIR_ROUTERS, ROUTERS

ROOT = Path(__file__).parents[1]


def registry(path: str) -> Registry:
    from importlib import import_module

    module, _, name = path.partition(":")
    found: Any = getattr(import_module(module), name)
    assert isinstance(found, Registry)
    return found


#: registry → (what a module of the room writes when it makes a part, README, tests).
ROOMS = {
    "pipelines.scorers:SCORERS": (r"^([A-Z_]+) = (?:Scorer|_classified)\(", "scorers", "scorers"),
    "pipelines.curate:RULES": (r"^([A-Z_]+) = Rule\(", "curate", "curate"),
    "pipelines.ingest.importers:IMPORTERS": (
        r"^([A-Z_]+) = Importer\(", "ingest/importers", "ingest/importers"
    ),
}  # fmt: skip
PARTS = [(room, name) for room in ROOMS for name in registry(room).builtin]


@pytest.mark.parametrize("room", ROOMS)
def test_every_part_that_is_made_is_listed(room: str) -> None:
    made, _, _ = ROOMS[room]
    package = room.partition(":")[0]
    folder = ROOT / package.replace(".", "/")
    listed = set(registry(room).builtin.values())
    for path in sorted(folder.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for attribute in re.findall(made, path.read_text(), re.M):
            is_listed = f"{module}:{attribute}" in listed
            assert is_listed, (
                f"{module} makes {attribute}, and nobody can name it: list it in "
                f"{package.replace('.', '/')}/__init__.py"
            )


@pytest.mark.parametrize(("room", "name"), PARTS)
def test_every_part_has_its_name_a_test_and_a_line(room: str, name: str) -> None:
    _, documented, tested = ROOMS[room]
    part = registry(room).get(name)
    assert part.name == name, f"{registry(room).builtin[name]} calls itself {part.name!r}"
    module, _, attribute = registry(room).builtin[name].partition(":")
    texts = [
        f"{p.stem}\n{p.read_text(errors='ignore')}"
        for p in (ROOT / "tests" / tested).rglob("*.*")
        if p.suffix in (".py", ".txt", ".yaml", ".jsonl")
    ]
    leaf = module.rpartition(".")[2]
    words = "|".join(
        [
            re.escape(module) + r"\b",
            rf"""import(?:ed)?\(["']{name}["']|["']import["'], ["']{name}["']""",  # an import run
            rf"import .*\b{leaf}\b",
            rf"\A\w+_{name}$",  # a file of cases
            rf"\b{leaf}\.{attribute}",
        ]
    )
    tested_there = any(re.search(words, text, re.M) for text in texts)
    assert tested_there, (
        f"no test under tests/{tested} names {name!r}: add cases, each with its trap in a comment"
    )
    page = ROOT / "pipelines" / documented / "README.md"
    family = f"`{name.partition('_')[0]}_*`"
    # Said in one line: pytest would print the whole page beside it.
    explained = any(one in page.read_text() for one in (f"`{name}`", family))
    assert explained, f"{page.relative_to(ROOT)} does not explain {name!r}: add a row to its table"


#: Modules of the routers' room that hold no router.
SHARED = {
    "base", "gradient", "queries", "saved", "networks.mess_stream", "networks.trained",
    "neighbours.wins", "pairs.battles", "trees.boosted", "trees.forest",
    "contrastive.bank", "contrastive.losses", "contrastive.space", "probes.probe",
}  # fmt: skip


def test_every_router_is_listed_by_its_own_name_and_says_its_traits() -> None:
    prefix = "pipelines.routers."
    found = pkgutil.walk_packages(pipelines.routers.__path__, prefix)
    modules = {one.name.removeprefix(prefix) for one in found if not one.ispkg} - SHARED
    targets = {**ROUTERS.builtin, **PAIR_ROUTERS.builtin}
    listed = {t.partition(":")[0].removeprefix(prefix) for t in targets.values()}
    assert not modules - listed, (
        f"list {sorted(modules - listed)} in ROUTERS in pipelines/routers/__init__.py, or as a "
        "module without a router in SHARED here"
    )
    assert not listed - modules, f"{sorted(listed - modules)} are listed and not there"
    for registry in (ROUTERS, PAIR_ROUTERS):
        for name in registry.builtin:
            made = registry.get(name)
            assert made.name == name, f"{registry.builtin[name]} calls itself {made.name!r}"
            if registry is ROUTERS:
                assert hasattr(made, "traits"), f"{name}: say `traits = Traits(…)` (base.py)"
                assert made.traits.cost, f"{name}: say in `traits` what a fit costs (base.py)"
