"""Which assertions of a test must be reached, so that a test cannot hold for want of checks.

A program that ends an iteration early, or returns nothing to iterate over, would
otherwise pass every assertion of a loop by skipping it.
"""

from __future__ import annotations

import ast

_MARK = "__reached__"
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


class Reached:
    """Marks assertions in tests, and knows which ones were left out.

    Not asked for: what the test itself makes conditional (`if`, `match`, `except` and the
    body it guards), `assert False`, methods, and functions that nothing calls.
    """

    def __init__(self) -> None:
        self._wanted: dict[int, str] = {}
        self._seen: set[int] = set()

    def watch(self, trees: list[ast.Module], called: set[str], space: dict[str, object]) -> None:
        """Insert the marks in place; `called` are functions that somebody else will call."""
        names = {
            node.id
            for tree in trees
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        for tree in trees:
            _Marker(self._wanted, names | called).visit(tree)
            ast.fix_missing_locations(tree)
        space[_MARK] = self._seen.add

    def missed(self) -> str | None:
        """Text of the first assertion that was never reached."""
        return next((text for mark, text in self._wanted.items() if mark not in self._seen), None)


class _Marker(ast.NodeTransformer):
    def __init__(self, wanted: dict[int, str], called: set[str]) -> None:
        self._wanted, self._called, self._asked = wanted, called, True

    def visit_Assert(self, node: ast.Assert) -> ast.AST | list[ast.AST]:
        if not self._asked or (isinstance(node.test, ast.Constant) and not node.test.value):
            return node
        number = len(self._wanted)
        self._wanted[number] = ast.unparse(node)[:200]
        name, value = ast.Name(_MARK, ast.Load()), ast.Constant(number)
        return [ast.copy_location(ast.Expr(ast.Call(name, [value], [])), node), node]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        before = self._asked
        conditional = (ast.If, ast.Match, ast.ExceptHandler, ast.ClassDef)
        guarded = isinstance(node, (ast.Try, ast.TryStar)) and node.handlers
        unused = isinstance(node, _Function) and node.name not in self._called
        if isinstance(node, conditional) or guarded or unused:
            self._asked = False
        super().generic_visit(node)
        self._asked = before
        return node
