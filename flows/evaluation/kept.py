"""Where predictions are kept between commands, and what code decides them."""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from routeyard.flows.workspace.code import module_hash, reach
from routeyard.pipelines.experiment.entrants import RouterSpec
from routeyard.pipelines.experiment.fit import PredictionStore

#: Folder of `--cache` that holds the predictions of every command.
FOLDER = "predictions"


def predictions_in(cache: Path) -> Path:
    """The folder of predictions in a cache; absolute, since other processes write there too."""
    return (cache / FOLDER).resolve()


def store_in(cache: Path | None, specs: Iterable[RouterSpec]) -> PredictionStore | None:
    """The predictions of these routers; None where nothing can be kept in the cache."""
    if cache is None:
        return None
    folder = predictions_in(cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    return PredictionStore(folder, code_of(spec for spec in specs if spec.given is None))


def code_of(specs: Iterable[RouterSpec]) -> dict[str, str]:
    """Router → hash of all code that its figures depend on; of other people's, of their files."""
    shared = frozenset({"routeyard.pipelines.experiment.fit"})
    found = {}
    for spec in specs:
        module = spec.target.rpartition(":")[0]
        hashed = hashlib.sha256()
        if module.endswith(".py"):
            for file in sorted(reached(Path(module))):
                hashed.update(file.read_bytes())
        elif not spec.is_table and not module.startswith("routeyard.pipelines."):
            # Another package's: its own file, and its version for what that file imports.
            hashed.update(_foreign(module))
        modules = shared | ({module} if module.startswith("routeyard.pipelines.") else set())
        for name in sorted(reach(frozenset(modules))):
            hashed.update(f"{name}={module_hash(name)}\n".encode())
        found[spec.name] = hashed.hexdigest()[:16]
    return found


def reached(file: Path) -> set[Path]:
    """A file of someone's own and the files beside it, or where we were started, it imports."""
    found: set[Path] = set()
    waiting = {file}
    while waiting:
        one = waiting.pop()
        found.add(one)
        waiting |= set(_imported(one)) - found
    return found


def _imported(file: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        names = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module or ''}.{n.name}" for n in node.names)]
        for name in names:
            path = "/".join(name.strip(".").split("."))
            for folder in (file.parent, Path.cwd()):
                own = (folder / f"{path}.py", folder / path / "__init__.py")
                yield from (one.resolve() for one in own if path and one.is_file())


def _foreign(module: str) -> bytes:
    """Source of a module of another package and the versions it is distributed in."""
    from importlib.metadata import packages_distributions, version
    from importlib.util import find_spec

    spec = find_spec(module)
    source = b""
    if spec and spec.origin and spec.origin.endswith(".py"):
        source = b"".join(one.read_bytes() for one in sorted(reached(Path(spec.origin))))
    names = sorted(set(packages_distributions().get(module.partition(".")[0], [])))
    return source + json.dumps([f"{name}=={version(name)}" for name in names]).encode()
