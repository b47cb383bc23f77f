"""The child process: runs the functions that `worker.py` asks for, each within its limits.

A request is one line of JSON, an answer one or more pieces: a letter, eight bytes of length, and
JSON or Arrow IPC.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, BinaryIO

from routeyard.pipelines.common.isolation.worker import (
    ARROW,
    ERROR,
    HEADER,
    ITEM,
    LIMITED_FROM_OUTSIDE,
    NO_MEMORY,
    RESULT,
)
from routeyard.pipelines.common.machine import is_exhausted


def main() -> None:
    """Serve requests until the other side hangs up."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    functions: dict[str, Callable[..., Any]] = {}
    used = 0
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if functions and not used:  # the first is the setup
            used = _address_space()
        if used:
            _limit(used + request["memory"], request["file_size"], request["cpu_s"])
        try:
            name = request["function"]
            if name not in functions:
                module, _, attribute = name.partition(":")
                functions[name] = getattr(import_module(module), attribute)
            _answer(functions[name](*request["args"]), out)
        except Exception as error:
            if is_exhausted(error):  # what is left is not enough to go on with
                os._exit(LIMITED_FROM_OUTSIDE if _is_cut(used + request["memory"]) else NO_MEMORY)
            _send(out, ERROR, json.dumps(_error_fields(error)).encode())
        signal.setitimer(signal.ITIMER_PROF, 0)


def _answer(result: Any, out: BinaryIO) -> None:
    if isinstance(result, Iterator):
        for piece in result:
            packed = _packed(piece)
            _send(out, ITEM if isinstance(packed, bytes) else ARROW, packed)
        result = None
    _send(out, RESULT, json.dumps(result).encode())


def _packed(piece: Any) -> Any:
    """A schema or a batch as an Arrow buffer, any other value as bytes of JSON."""
    kind = type(piece).__module__.partition(".")[0]
    if kind != "pyarrow":
        return json.dumps(piece).encode()
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    schema = piece if isinstance(piece, pa.Schema) else piece.schema
    with pa.ipc.new_stream(sink, schema) as writer:
        if piece is not schema:
            writer.write_batch(piece)
    return sink.getvalue()


def _send(out: BinaryIO, kind: bytes, body: Any) -> None:
    view = memoryview(body)
    out.write(HEADER.pack(kind, view.nbytes))
    out.write(view)
    out.flush()


def _error_fields(error: Exception) -> dict[str, str | None]:
    return {
        "kind": type(error).__name__,
        "what": str(getattr(error, "what", error))[:2000],
        "where": getattr(error, "where", None),
        "next_step": getattr(error, "next_step", None),
    }


def _is_cut(memory: int) -> bool:
    """Whether this process has less address space than it was to have: a limit from outside."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    return 0 <= hard < memory


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[0]) * resource.getpagesize()


def _limit(memory: int, file_size: int, cpu_s: float | None) -> None:
    for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, file_size)):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard < 0 else min(most, hard), hard))
    signal.setitimer(signal.ITIMER_PROF, cpu_s or 0)


def _end_with(parent: int) -> None:
    """End when the process that asks has gone, also in the middle of a call."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


if __name__ == "__main__":
    main()
