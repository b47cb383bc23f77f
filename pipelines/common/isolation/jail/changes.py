"""Which calls of a test ask for nothing but what the program changes in their arguments.

`sort(xs)` on a separate line does, and so do a call whose result is never read again and
`assert sort(xs) is None`. Where the result is used, what it is compared with may be
computed from an argument that the program has emptied first.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_MARK = "__changes__"
Arguments = tuple[list[Any], dict[str, Any]]


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
    value: Any = getattr(function, "changes", None)
    return value if getattr(value, "of_the_program", False) else function


def _only_changes(node: ast.AST, read: set[str]) -> ast.AST | None:
    """The expression whose value nobody looks at, or that is only said to be None."""
    if isinstance(node, ast.Expr):
        return node.value
    if isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        unread = len(names) == len(node.targets) and not read & {*names}
        return node.value if unread else None
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
        compared = node.test
        none = [isinstance(o, ast.Constant) and o.value is None for o in compared.comparators]
        alike = all(isinstance(item, ast.Is | ast.Eq) for item in compared.ops)
        return compared.left if none == [True] and alike else None
    return None


class Left:
    """What calls for nothing left changed, where a later call whose result is used is given it.

    `f(x)` on a separate line, then `assert f(x) == sorted(x)`: what is expected may be
    computed from what the first call emptied. Such a test has to hold a second time, in which
    the program is given what the first call made of `x`, and the test keeps what it was.

    Args:
        apart: Numbers of the calls whose changes the test does not see: `met` of the first time.
        packed: The form in which values are compared.
    """

    def __init__(self, apart: Iterable[int], packed: Callable[[Any], Any]) -> None:
        self._apart, self._packed = frozenset(apart), packed
        self._changed: list[tuple[str, int, list[Any]]] = []
        self._shown: dict[int, tuple[Any, Any, Any]] = {}
        self.met: set[int] = set()

    def meets(self, name: str, arguments: Arguments) -> None:
        """Note which earlier calls of the function for nothing changed what it is given now."""
        now = {id(item) for item in _held(arguments)}
        for other, number, held in self._changed:
            if other == name and any(id(item) in now for item in held):
                self.met.add(number)

    def shown(self, arguments: Arguments) -> Arguments:
        """The arguments as the program left them, where the test keeps what they were."""
        listed, named = arguments
        return [self._as_left(item) for item in listed], {
            k: self._as_left(v) for k, v in named.items()
        }

    def keeps(self, name: str, arguments: Arguments, after: Any) -> bool:
        """Whether the test does not see what a call for nothing made of its arguments."""
        number = len(self._changed)
        self._changed.append((name, number, list(_held(arguments))))
        if number not in self._apart:
            return False
        (listed, named), (listed_after, named_after) = arguments, after
        pairs = [*zip(listed, listed_after, strict=False)]
        pairs += [(value, named_after[key]) for key, value in named.items() if key in named_after]
        for item, left in pairs:
            if isinstance(item, (list, dict, set, bytearray)):
                self._shown[id(item)] = (item, self._packed(item), left)
        return True

    def _as_left(self, value: Any) -> Any:
        item, was, left = self._shown.get(id(value), (None, None, None))
        return left if item is value and item is not None and self._packed(value) == was else value


def _held(value: Any) -> Iterator[Any]:
    """What can be changed in place, however deep it is nested."""
    if isinstance(value, (list, dict, set, bytearray)):
        yield value
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _held(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _held(item)
