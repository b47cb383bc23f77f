"""The studies that a `studies.yaml` declares, as `Study` objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from routeyard.pipelines.io.plain_yaml import read_text
from routeyard.pipelines.studies.study import Study

_HERE = "routeyard.pipelines.studies"


@cache
def declared(package: str = _HERE) -> dict[str, dict[str, Any]]:
    """Name → what the `studies.yaml` in a package's folder declares of the study."""
    found_at = find_spec(package)
    if found_at is None or not found_at.submodule_search_locations:
        raise ImportError(f"there is no package {package}")
    path = Path(found_at.submodule_search_locations[0]) / "studies.yaml"
    found: dict[str, dict[str, Any]] = read_text(path.read_text(encoding="utf-8"), where=str(path))
    return found


@cache
def declared_in(package: str, name: str) -> Study:
    """One study of a package, for the `__getattr__` of the module its entry point names.

    Cells and curves name functions: `.module:name` of that package, `module:name` of
    `routeyard.pipelines.studies`.

    Raises:
        AttributeError: its `studies.yaml` declares no such study.
    """
    if name.startswith("_") or name not in declared(package):
        raise AttributeError(f"studies.yaml of {package} declares no study {name!r}")
    row = dict(declared(package)[name])
    printed = {
        release: {(line, column): value for line, cells in rows.items()
                  for column, value in cells.items()}
        for release, rows in row.pop("printed", {}).items()
    }  # fmt: skip
    for key in ("needs", "takes", "axes"):
        if key in row:
            row[key] = tuple(row[key])
    cells, curves = (_function(row.pop(key, None), package) for key in ("cells", "curves"))
    return Study(name, cells=cells, curves=curves, printed=printed, **row)


def __getattr__(name: str) -> Study:
    return declared_in(_HERE, name)


def _function(target: str | dict[str, Any] | None, package: str) -> Any:
    """The function that `target` names, with the arguments declared beside it."""
    if target is None:
        return None
    arguments = {} if isinstance(target, str) else dict(target)
    module, _, name = (target if isinstance(target, str) else arguments.pop("call")).partition(":")
    where = f"{package}{module}" if module.startswith(".") else f"{_HERE}.{module}"
    found: Callable[..., Any] = getattr(import_module(where), name)
    return partial(found, **arguments) if arguments else found
