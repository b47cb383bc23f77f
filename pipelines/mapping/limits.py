"""Which mappings can take without end: those are evaluated by a process with limits.

A mapping that only reads columns, takes them apart and puts them together once gives
at most its own length times the row's: it runs here. A loop, a name that is set, a
filter applied to each of many or with the row's own text can grow without end, and
runs in a process with limits of computing time and memory for each row.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from jinja2 import nodes

from routeyard.pipelines.isolation import Limits, Worker
from routeyard.pipelines.mapping.expressions import Field, Row, evaluator

#: What a mapping may take on one row. Computing time, so that a busy machine changes nothing.
LIMITS = Limits(memory=256 << 20, wall_s=60.0, cpu_s=2.0, answer=256 << 20)

_PLAIN = yaml.safe_load(Path(__file__).with_name("limits.yaml").read_text(encoding="utf-8"))
_PLAIN_NODES = tuple(getattr(nodes, name) for name in _PLAIN["nodes"])
_PLAIN_FILTERS, _PLAIN_METHODS = frozenset(_PLAIN["filters"]), frozenset(_PLAIN["methods"])


def is_plain(tree: nodes.Template) -> bool:
    """Whether what the mapping gives is bounded by its own length times the row's."""
    return all(_plain(node) for node in _all(tree))


def _all(node: nodes.Node) -> list[nodes.Node]:
    found = [node]
    for one in found:
        found += one.iter_child_nodes()
    return found


def _plain(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Filter):
        # With the row's own text as an argument the result may be its square.
        return node.name in _PLAIN_FILTERS and _fixed(node)
    if isinstance(node, nodes.Call):
        named = node.node
        method = isinstance(named, nodes.Getattr) and named.attr in _PLAIN_METHODS
        together = isinstance(named, nodes.Name) and named.name == "zip"
        return together or (method and _fixed(node))
    if isinstance(node, nodes.Name):
        return node.ctx == "load"
    return isinstance(node, _PLAIN_NODES)


def _fixed(node: nodes.Filter | nodes.Call) -> bool:
    given = [*node.args, *(one.value for one in node.kwargs)]
    fixed = all(isinstance(one, nodes.Const | nodes.Neg) for one in given)
    # `shuffled(by=id)` only orders, and `default(other)` only chooses.
    chooses = isinstance(node, nodes.Filter) and node.name in ("shuffled", "default", "d")
    return (fixed or chooses) and node.dyn_args is None and node.dyn_kwargs is None


_known: dict[str, Field] = {}


def _prepare() -> None:
    """What the limited process runs first: the imports of this module."""


def _value(text: str, row: dict[str, Any]) -> Any:
    """Value of a mapping on a row, in the limited process."""
    if text not in _known:
        _known[text] = evaluator(text)
    return _plain_value(_known[text](row))


def _plain_value(value: Any) -> Any:
    """The value as JSON holds it; what it does not know is text."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(key): _plain_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain_value(one) for one in value]
    return str(value)


_WORKER = Worker(LIMITS, _prepare)


def evaluate(text: str, row: Row) -> Any:
    """Value of a mapping on a row, found in the limited process.

    Raises:
        LimitExceeded, ProcessEnded: it took more than `LIMITS`.
        FunctionFailed: the mapping raised something.
    """
    return _WORKER.call(_value, text, dict(row))
