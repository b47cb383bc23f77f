"""Counts of the code's structure: lines, packages, dependencies, cycles, complexity, names.

`python -m benchmarks structure` reads the sources beside it, or those of `--tree DIR`, so that
two checkouts are measured by one script. Sizes are those of `size.py`, beside the budgets of
`size.yaml`. A package is a folder directly below a top-level one with all that is in it, or a
module there. A dependency
is an import at run time, inside functions too; imports under `if TYPE_CHECKING` do not count.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from benchmarks.size import TOPS, definitions, package, size_of, statements, table

PRODUCT = TOPS
#: What imports go to from left to right; the last may import every one before it.
LAYERS = {
    "schemas": 0, "pipelines": 1, "datacards": 1, "flows": 2, "routeyard": 3, "extensions": 4,
    "papers": 5,
}  # fmt: skip
COMPLEX = 20
#: Code lines of a module that one reads in one sitting.
SITTING = 600
_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)
Edges = dict[str, set[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tree", type=Path, default=Path(__file__).parent.parent)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    root: Path = arguments.tree.resolve()
    trees = {
        ".".join(path.relative_to(root).with_suffix("").parts): (
            path.read_text(encoding="utf-8"),
            ast.parse(path.read_bytes()),
        )
        for top in PRODUCT
        for path in sorted((root / top).rglob("*.py"))
    }
    files = {name: imports(tree, name, trees) for name, (_, tree) in trees.items()}
    packages: Edges = defaultdict(set)
    for name, found in files.items():
        packages[_package(name)] |= {_package(one) for one in found} - {_package(name)}
    boxes: Edges = defaultdict(set)
    for name, found in files.items():
        boxes[_box(name)] |= {_box(one) for one in found} - {_box(name)}
    lines = {name: size_of(text).lines for name, (text, _) in trees.items()}
    classes = Counter(
        node.name
        for _, tree in trees.values()
        for node in definitions(tree)
        if isinstance(node, ast.ClassDef)
    )
    return {
        "sizes": table(root),
        "folders": len({name.rpartition(".")[0] for name in trees}),
        "packages": len(packages),
        "dependencies_between_packages": sum(map(len, packages.values())),
        "boxes": len(boxes),
        "arrows": sum(map(len, boxes.values())),
        "modules_for_one_other": for_one_other(files, lines),
        "cycles_of_packages": cycles(packages),
        "cycles_of_files": cycles(files),
        "imports_upward": upward(files),
        f"functions_above_complexity_{COMPLEX}": sorted(
            f"{name}.{node.name}"
            for name, (_, tree) in trees.items()
            for node in definitions(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and complexity(node) > COMPLEX
        ),
        "files_a_recipe_passes": passed(files, trees),
        "class_names_used_twice": {k: n for k, n in sorted(classes.items()) if n > 1},
    }


def imports(tree: ast.Module, name: str, known: Any) -> set[str]:
    """Modules of the product that a file imports at run time."""
    found: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        waiting += statements(node)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {
                _file(f"{node.module}.{one.name}", known) or _file(node.module, known) or ""
                for one in node.names
            }
        elif isinstance(node, ast.Import):
            found |= {_file(one.name, known) or "" for one in node.names}
    return found - {"", name}


def _package(name: str) -> str:
    return ".".join(name.removesuffix(".__init__").split(".")[:2])


def _file(module: str, known: Any) -> str | None:
    """The file of a module; `routeyard.flows` is the folder `flows`."""
    module = module.removeprefix("routeyard.")
    return next((one for one in (module, f"{module}.__init__") if one in known), None)


def _box(name: str) -> str:
    return package(Path(*name.split(".")).with_suffix(".py"))


def for_one_other(files: Edges, lines: dict[str, int]) -> dict[str, str]:
    """Module -> the only one that imports it, where both lie in one package and are together no
    longer than one sitting."""
    importers: Edges = defaultdict(set)
    for name, found in files.items():
        for one in found:
            importers[one].add(name)
    return {
        name: only
        for name, by in sorted(importers.items())
        for only in by
        if len(by) == 1 and not name.endswith("__init__") and _box(name) == _box(only)
        and lines[name] + lines[only] <= SITTING
    }  # fmt: skip


def cycles(edges: Edges) -> list[list[str]]:
    """Groups of nodes that reach each other."""
    names = sorted({*edges, *(one for found in edges.values() for one in found)})
    at = {name: k for k, name in enumerate(names)}
    pairs = [(at[a], at[b]) for a, found in edges.items() for b in found]
    rows, columns = np.array(pairs, dtype=int).reshape(-1, 2).T
    graph = coo_array((np.ones(len(pairs)), (rows, columns)), shape=(len(names), len(names)))
    _, groups = connected_components(graph, connection="strong")
    members: dict[int, list[str]] = defaultdict(list)
    for name, group in zip(names, groups, strict=True):
        members[int(group)].append(name)
    return sorted(group for group in members.values() if len(group) > 1)


def upward(files: Edges) -> list[str]:
    """Imports against the order of the layers, or between two of one layer."""

    def wrong(a: str, b: str) -> bool:
        one, other = a.partition(".")[0], b.partition(".")[0]
        return one != other and LAYERS[other] >= LAYERS[one]

    return sorted(f"{a} -> {b}" for a, found in files.items() for b in found if wrong(a, b))


def complexity(node: ast.AST) -> int:
    """Cyclomatic complexity: 1, and 1 for each branch, loop, handler, condition and operand."""
    total = 1
    for one in ast.walk(node):
        if isinstance(one, ast.BoolOp):
            total += len(one.values) - 1
        elif isinstance(one, ast.comprehension):
            total += 1 + len(one.ifs)
        elif isinstance(one, _BRANCHES):
            total += 1
    return total


def passed(files: Edges, trees: Any) -> int:
    """Files reachable from `flows.build` with a function that takes a whole `Recipe`."""
    reached: set[str] = set()
    waiting = {"flows.build"}
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting |= files.get(name, set()) - reached
    return sum(any(_takes_recipe(node) for node in definitions(trees[name][1])) for name in reached)


def _takes_recipe(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return any(one.annotation and ast.unparse(one.annotation) == "Recipe" for one in arguments)
