"""Size of the product by package: modules, code lines and tokens, held by `size.yaml`.

A code line holds a token that is not a comment and is outside docstrings. Tokens are those of
Python's `tokenize` without comments, line ends and indentation; their number depends on the
version of Python, and `size.yaml` holds those of 3.11. A package is a folder of `pipelines`
or `extensions`, or another folder at the top.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

TOPS = ("schemas", "pipelines", "extensions", "papers", "flows", "datacards", "routeyard")
LIMITS = Path(__file__).with_name("size.yaml")
_LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


class Size(NamedTuple):
    """Of a module, or of several together."""

    modules: int = 0
    lines: int = 0
    tokens: int = 0

    def __add__(self, other: object) -> Size:
        assert isinstance(other, Size)
        return Size(*(a + b for a, b in zip(tuple(self), tuple(other), strict=True)))


def definitions(
    tree: ast.Module,
) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """The module, its classes and its functions."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        waiting += statements(node)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Statements (and handlers and cases, which have some) directly below a node."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        yield from getattr(node, name, ())


@cache
def size_of(text: str) -> Size:
    """The size of one module."""
    documented: set[int] = set()
    for node in definitions(ast.parse(text)):
        if ast.get_docstring(node, clean=False) is not None:
            documented.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines: set[int] = set()
    tokens = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT and token.start[0] not in documented:
            lines.update(range(token.start[0], token.end[0] + 1))
            tokens += 1
    return Size(1, len(lines - documented), tokens)


def sizes(root: Path) -> dict[str, Size]:
    """Package → its size; links (`routeyard/flows`) are counted where they lead."""
    found: dict[str, Size] = defaultdict(Size)
    for top in TOPS:
        for path in sorted((root / top).rglob("*.py")):
            parts = path.relative_to(root).parts
            if not any((root / Path(*parts[:n])).is_symlink() for n in range(1, len(parts) + 1)):
                found[package(Path(*parts))] += size_of(path.read_text("utf-8"))
    return dict(found)


def package(path: Path) -> str:
    """The package of a module that lies at `path` below the root."""
    deep = path.parts[0] in ("pipelines", "extensions") and len(path.parts) > 2
    return "/".join(path.parts[: 2 if deep else 1])


def limits() -> dict[str, Any]:
    """What `size.yaml` allows: `packages`, each with its limits and its budget, and `base`."""
    read: dict[str, Any] = yaml.safe_load(LIMITS.read_text(encoding="utf-8"))
    return read


def table(root: Path) -> dict[str, dict[str, int | None]]:
    """Package → its size beside the lines of its budget, the product last."""
    found = sizes(root)
    budgets = {name: row["budget"] for name, row in limits()["packages"].items()}
    rows = {name: {**size._asdict(), "budget": budgets.get(name)} for name, size in found.items()}
    whole = sum(found.values(), Size())
    return {**rows, "product": {**whole._asdict(), "budget": limits()["product"]}}
