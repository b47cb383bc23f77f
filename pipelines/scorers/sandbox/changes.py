"""Which calls of a test ask for nothing but what the program changes in their arguments.

`sort(xs)` on a line of its own does, and so do a call whose result is never read again and
`assert sort(xs) is None`. Where the result is used, what it is compared with may be
computed from an argument that the program has emptied first.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

_MARK = "__changes__"


def watch(trees: list[ast.Module], space: dict[str, Any]) -> None:
    """Have such calls go to the function's `changes`, in place; others stay as they are."""
    read = {
        node.id
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)
    }
    for tree in trees:
        for node in ast.walk(tree):
            call = _only_changes(node, read)
            if isinstance(call, ast.Call):
                call.func = ast.Call(ast.Name(_MARK, ast.Load()), [call.func], [])
        ast.fix_missing_locations(tree)
    space[_MARK] = _changes


def _changes(function: Callable[..., Any]) -> Callable[..., Any]:
    found: Any = getattr(function, "changes", None)
    return found if getattr(found, "of_the_program", False) else function


def _only_changes(node: ast.AST, read: set[str]) -> ast.AST | None:
    """The expression whose value nobody looks at, or that is only said to be None."""
    if isinstance(node, ast.Expr):
        return node.value
    if isinstance(node, ast.Assign):
        names = [one.id for one in node.targets if isinstance(one, ast.Name)]
        unread = len(names) == len(node.targets) and not read & {*names}
        return node.value if unread else None
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
        compared = node.test
        none = [isinstance(o, ast.Constant) and o.value is None for o in compared.comparators]
        alike = all(isinstance(one, ast.Is | ast.Eq) for one in compared.ops)
        return compared.left if none == [True] and alike else None
    return None
