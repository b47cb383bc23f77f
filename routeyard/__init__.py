"""Routeyard from Python: everything a user imports, and nothing else.

    import routeyard

    release = routeyard.open_release("yard/releases/demo/1.0.0")
    found = routeyard.evaluate("yard/releases/demo/1.0.0", ["knn", "random"])

The names are listed in `__init__.pyi`. Each is imported when it is first used, so that
`import routeyard` costs nothing.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
if not (_HERE / "flows").exists():  # an unpacked source distribution has no links
    __path__.append(str(_HERE.parent))


def _names() -> dict[str, tuple[str, str]]:
    """Name → module and name there, in the order of the stub."""
    found: dict[str, tuple[str, str]] = {}
    for statement in ast.parse((_HERE / "__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            for one in statement.names:
                if one.asname:
                    found[one.asname] = (statement.module or "", one.name)
        elif isinstance(statement, ast.Assign):  # `plan = _plan`: another name than it has there
            found[ast.unparse(statement.targets[0])] = found.pop(ast.unparse(statement.value))
    return found


_WHERE = _names()
__all__ = [*_WHERE, "metrics", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("routeyard")
    elif name == "metrics":
        names = import_module("routeyard.pipelines.common.registry").Names
        found = names(import_module("routeyard.pipelines.evaluate.metrics").METRICS.names())
    elif name in _WHERE:
        module, attribute = _WHERE[name]
        found = getattr(import_module(module), attribute)
    else:
        raise AttributeError(f"module 'routeyard' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
