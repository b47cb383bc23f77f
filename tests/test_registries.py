"""Every part is listed, tested and documented; what was forgotten is named, with what to do."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from routeyard.pipelines.common.registry import Registry
from routeyard.pipelines.curate.rule import Rule
from routeyard.pipelines.evaluate.metrics.spec import MetricSpec
from routeyard.pipelines.ingest.importers.reading import Importer
from routeyard.pipelines.label.scorers.scorer import Scorer
from routeyard.pipelines.routers.base import traits_of
from tests.evaluate.metrics.plain_loops import ELSEWHERE, PLAIN
from tests.scorers.said import is_read

ROOT = Path(__file__).parents[1]


class Package(NamedTuple):
    """Where the parts of one registry are, and where each has a test and a row."""

    registry: str
    #: The class whose objects are the parts; None where the parts are classes or entries of a file.
    of: type | None
    readme: str
    tests: str


PACKAGES = {
    one.registry.rpartition(":")[2]: one
    for one in (
        Package(
            "pipelines.label.scorers:SCORERS", Scorer,
            "pipelines/label/scorers/README.md", "tests/scorers",
        ),
        Package("pipelines.curate:RULES", Rule, "pipelines/curate/README.md", "tests/curate"),
        Package(
            "pipelines.ingest.importers:IMPORTERS", Importer,
            "pipelines/ingest/importers/README.md", "tests/ingest/importers",
        ),
        Package(
            "pipelines.evaluate.metrics:METRICS", MetricSpec,
            "pipelines/evaluate/README.md", "tests/evaluate/metrics",
        ),
        Package("pipelines.routers:ROUTERS", None, "pipelines/routers/README.md", "tests/routers"),
        Package(
            "pipelines.routers:PAIR_ROUTERS", None, "pipelines/routers/README.md", "tests/routers"
        ),
        Package(
            "pipelines.evaluate.studies:STUDIES", None,
            "pipelines/evaluate/studies/README.md", "tests/studies",
        ),
    )
}  # fmt: skip
ROUTERS = ("ROUTERS", "PAIR_ROUTERS")


def registry(kind: str) -> Registry:
    module, _, name = PACKAGES[kind].registry.partition(":")
    found = getattr(import_module(f"routeyard.{module}"), name)
    assert isinstance(found, Registry)
    return found


def made(kind: str) -> Iterator[tuple[str, Any]]:
    """(`module:attribute`, part) of every part that the modules of a package make."""
    package = import_module("routeyard." + PACKAGES[kind].registry.partition(":")[0])
    for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if one.ispkg:
            continue
        module = import_module(one.name)
        text = Path(module.__file__ or "").read_text(encoding="utf-8")
        for attribute, value in vars(module).items():
            here = re.search(rf"^(?:{attribute} = |(?:def|class) {attribute}\b)", text, re.M)
            if here and (
                _is_router(value) if kind in ROUTERS else isinstance(value, PACKAGES[kind].of or ())
            ):
                yield f"{one.name}:{attribute}", value


def _is_router(value: Any) -> bool:
    """Whether it is a class with a name of its own and `fit`."""
    return (isinstance(value, type) and isinstance(vars(value).get("name"), str)) and hasattr(
        value, "fit"
    )


@pytest.mark.parametrize(
    "kind", [kind for kind in PACKAGES if kind not in ("PAIR_ROUTERS", "STUDIES")]
)
def test_every_part_that_is_made_is_listed(kind: str) -> None:
    kinds = ROUTERS if kind in ROUTERS else (kind,)
    listed = {target for one in kinds for target in registry(one).builtin.values()}
    missing = [
        _told(part.name, [_line(kind, target, part.name), *lacks])
        for target, part in made(kind)
        if target not in listed
        for lacks in (faults(kind, part.name, target, part),)
    ]
    if missing:
        pytest.fail("\n".join(missing), pytrace=False)


def _told(name: str, lacks: list[str]) -> str:
    return "\n- ".join([f"{name}:", *lacks])


def _line(kind: str, target: str, name: str) -> str:
    """What to write into the registry for a part."""
    page = PACKAGES[kind].registry.partition(":")[0].replace(".", "/") + "/__init__.py"
    if kind == "METRICS":
        module, _, attribute = target.rpartition(".")[2].partition(":")
        if attribute != f"{name}_metric":
            return f"call the function {name}_metric, not {attribute}"
        return (
            f"add a row {name!r} with `module: {module}` to pipelines/evaluate/metrics/metrics.yaml"
        )
    if kind == "ROUTERS":
        own = target.removeprefix("routeyard.pipelines.routers.")
        return (
            f"add a row {name!r} with `class: {own}` to pipelines/routers/routers.yaml "
            f"(a router between two models only: a line in PAIR_ROUTERS in {page})"
        )
    if kind == "IMPORTERS":
        return f"list {name!r} with {target} in pipelines/ingest/importers/importers.yaml"
    return f'add the line "{name}": "{target}", to {kind} in {page}'


def faults(kind: str, name: str, target: str, part: Any) -> Iterator[str]:
    """What a part lacks, one sentence each."""
    if part.name != name:
        yield f"{target} calls itself {part.name!r}: use one name"
    if kind == "ROUTERS" and not (hasattr(part, "traits") and part.traits.cost):
        yield f"say in the row {name!r} of routers.yaml what a fit costs, and write `@listed`"
    if kind == "SCORERS" and not is_read(part):
        yield "add a reference and answers that it reads to SAID in tests/scorers/said.py"
    if kind == "SCORERS" and part.needs_reference and not part.instruction:
        yield "give it an `instruction`, which tells the model the form of its answer"
    if kind == "METRICS" and not all((part.unit, part.source, part.says)):
        yield "state unit and source in its row, and write a docstring that defines it"
    if not is_tested(kind, name, target):
        yield (
            "add a plain loop of it to PLAIN in tests/evaluate/metrics/plain_loops.py"
            if kind == "METRICS"
            else f"no test under {PACKAGES[kind].tests} names it: add cases, each with its trap"
        )
    page = (ROOT / PACKAGES[kind].readme).read_text(encoding="utf-8")
    row, family = row_of(kind, part), f"`{name.partition('_')[0]}_*`"
    if row and row not in page.splitlines():
        yield f"put this row into {PACKAGES[kind].readme}:\n{row}"
    elif not row and f"`{name}`" not in page and family not in page:
        yield f"add a row with `{name}` to the table of {PACKAGES[kind].readme}"


def row_of(kind: str, part: Any) -> str:
    """A part's row in the README where the part itself says all of it, else empty."""
    if kind == "METRICS":
        needs = ", ".join(part.needs) or "–"
        cells = (f"`{part.name}`", part.direction, part.unit, part.says, needs, part.source)
        return f"| {' | '.join(cells)} |"
    if kind not in ROUTERS:
        return ""
    traits = traits_of(part)
    needs = ", ".join(traits.needs) or "–"
    name = part.name
    return f"| `{name}` | {traits.paper or '–'} | {traits.scale} | {needs} | {traits.cost or '–'} |"


def is_tested(kind: str, name: str, target: str) -> bool:
    if kind in ("PAIR_ROUTERS", "STUDIES"):
        return True  # test_pair_routers.py and test_studies.py try each of them
    if kind == "METRICS":
        return name in PLAIN or name in ELSEWHERE
    module, _, attribute = target.partition(":")
    leaf = module.rpartition(".")[2]
    words = "|".join(
        [
            re.escape(module) + r"\b",
            rf"""import(?:ed)?\(["']{name}["']|["']import["'], ["']{name}["']""",  # an import run
            rf'^    importer: "{name}"$',  # a case of one
            rf"import .*\b{leaf}\b",
            rf"\A\w+_{name}$",  # a file of cases
            rf"\b{leaf}\.{attribute}",
            *([rf"""["']{re.escape(name)}["']""", rf"\b{attribute}\b"] if kind in ROUTERS else []),
        ]
    )
    # To be excused from a test that tries all of them is no test.
    excused = re.compile(r"^(?:BLIND|COARSE|APART|BESIDE) = \{[^}]*\}", re.M)
    return any(
        re.search(words, f"{path.stem}\n{excused.sub('', path.read_text(errors='ignore'))}", re.M)
        for path in (ROOT / PACKAGES[kind].tests).rglob("*.*")
        if path.suffix in (".py", ".txt", ".yaml", ".jsonl")
    )


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in PACKAGES for name in registry(kind).builtin]
)
def test_every_part_has_its_name_a_test_and_a_row(kind: str, name: str) -> None:
    lacks = list(faults(kind, name, registry(kind).builtin[name], registry(kind).get(name)))
    if lacks:
        pytest.fail(_told(name, lacks), pytrace=False)
