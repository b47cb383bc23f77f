"""Which mappings can take without end: those are evaluated by a process with limits.

A mapping that only reads columns, takes them apart and puts them together once gives
at most its own length times the row's: it runs here. A loop, a name that is set, a
filter applied to each of many or with the row's own text can grow without end, and
runs in `worker`, with a limit of computing time and memory for each row.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from jinja2 import nodes

#: Computing time of one mapping on one row, in seconds.
CPU_S = 2.0
#: Longest wait for it, on a machine that is busy with other things.
WALL_S = 60.0
#: Address space beyond what the process needs to start, in bytes.
MEMORY = 256 << 20
_SIZE = struct.Struct(">Q")

_PLAIN_NODES = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Getattr,
    nodes.Getitem, nodes.Slice, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or,
    nodes.Not, nodes.Test, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Concat,
    nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow, nodes.Neg,
    nodes.Pos, nodes.Keyword, nodes.If, nodes.Return if hasattr(nodes, "Return") else nodes.Output,
)  # fmt: skip
#: Filters whose result is at most as large as what goes in, times their own arguments.
_PLAIN_FILTERS = frozenset(
    {"abs", "boxed", "capitalize", "count", "d", "default", "e", "escape", "first", "float"}
    | {"from_json", "int", "items", "join", "last", "length", "letter", "list", "lower", "max"}
    | {"min", "replace", "reverse", "round", "shuffled", "sort", "split", "string", "strip"}
    | {"title", "tojson", "trim", "unique", "upper"}
)
_PLAIN_METHODS = frozenset(
    {"endswith", "get", "items", "keys", "lower", "lstrip", "partition", "replace", "rpartition"}
    | {"rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "title", "upper"}
    | {"values", "count", "find", "index", "isdigit", "zip"}
)


class TooMuch(Exception):
    """A mapping took more time or memory on one row than it may."""


class Failed(Exception):
    """What a mapping raised in the other process, with the name of its kind before it."""


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


class _Process:
    """The one process that evaluates what can grow; it is started when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._of = 0

    def evaluate(self, text: str, row: Mapping[str, Any]) -> Any:
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            try:
                # Dates and the like are text there.
                body = json.dumps((text, dict(row)), default=str).encode()
                process.stdin.write(_SIZE.pack(len(body)) + body)
                process.stdin.flush()
                said = json.loads(self._read(_SIZE.unpack(self._read(_SIZE.size))[0]))
            except BaseException as error:
                self.close()
                if isinstance(error, OSError | TooMuch):
                    raise TooMuch(
                        f"it takes more than {CPU_S:g} s or {MEMORY >> 20} MB for one row"
                    ) from error
                raise
        if "raised" in said:
            raise Failed(said["raised"])
        return said["value"]

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None or self._of != os.getpid():
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:  # what it did not read any more
                    continue

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._of == os.getpid() and self._process.poll() is None:
            return self._process
        self.close()
        self._of = os.getpid()
        self._process = subprocess.Popen(  # noqa: S603  this interpreter, a module of ours
            [sys.executable, "-m", "pipelines.mapping.worker", str(CPU_S), str(MEMORY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
                "PYTHONHASHSEED": "0",
                "PATH": os.environ.get("PATH", ""),
                "MALLOC_ARENA_MAX": "2",
            },
            start_new_session=True,  # Ctrl-C is ours to handle
        )
        return self._process

    def _read(self, size: int) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        if size > MEMORY:
            raise TooMuch
        handle, parts = self._process.stdout.fileno(), bytearray()
        while len(parts) < size:
            if not select.select([handle], [], [], WALL_S)[0]:
                raise TooMuch
            part = os.read(handle, min(size - len(parts), 1 << 20))
            if not part:
                raise TooMuch
            parts += part
        return bytes(parts)


_PROCESS = _Process()
atexit.register(_PROCESS.close)


def evaluate(text: str, row: Mapping[str, Any]) -> Any:
    """Value of a mapping on a row, found within the limits of `worker`.

    Raises:
        TooMuch: it took more than `CPU_S` or `MEMORY`.
        Failed: the mapping raised something.
    """
    return _PROCESS.evaluate(text, row)
