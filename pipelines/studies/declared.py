"""The studies that `studies.yaml` declares, as `Study` objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from routeyard.pipelines.io.plain_yaml import read_text
from routeyard.pipelines.studies.study import Study

_PATH = Path(__file__).with_name("studies.yaml")


@cache
def declared() -> dict[str, dict[str, Any]]:
    """Name → what `studies.yaml` declares of the study."""
    found: dict[str, dict[str, Any]] = read_text(
        _PATH.read_text(encoding="utf-8"), where=str(_PATH)
    )
    return found


@cache
def __getattr__(name: str) -> Study:
    if name.startswith("_") or name not in declared():
        raise AttributeError(f"studies.yaml declares no study {name!r}")
    row = dict(declared()[name])
    printed = {
        release: {(line, column): value for line, cells in rows.items()
                  for column, value in cells.items()}
        for release, rows in row.pop("printed", {}).items()
    }  # fmt: skip
    for key in ("needs", "axes"):
        if key in row:
            row[key] = tuple(row[key])
    cells, curves = (_function(row.pop(key, None)) for key in ("cells", "curves"))
    return Study(name, cells=cells, curves=curves, printed=printed, **row)


def _function(target: str | dict[str, Any] | None) -> Any:
    """The function `module:name` of this package, with the arguments declared beside it."""
    if target is None:
        return None
    arguments = {} if isinstance(target, str) else dict(target)
    module, _, name = (target if isinstance(target, str) else arguments.pop("call")).partition(":")
    found: Callable[..., Any] = getattr(
        import_module(f"routeyard.pipelines.studies.{module}"), name
    )
    return partial(found, **arguments) if arguments else found
