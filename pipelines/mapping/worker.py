"""The process that evaluates mappings which can grow without end, with limits for each row.

`limits` starts it. Either way goes a length and JSON: in come a mapping and
a row, out goes the value or what was raised. The time of one row is computing time, so a busy
machine changes nothing; who passes it is ended by the kernel.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
import sys
from typing import Any

_SIZE = struct.Struct(">Q")


def main() -> None:
    """Serve until the other side hangs up."""
    cpu_s, memory = float(sys.argv[1]), int(sys.argv[2])
    given, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from pipelines.mapping.jinja import evaluator

    with open("/proc/self/statm", encoding="ascii") as stream:
        used = int(stream.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    known: dict[str, Any] = {}
    while len(header := given.read(_SIZE.size)) == _SIZE.size:
        text, row = json.loads(given.read(_SIZE.unpack(header)[0]))
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        try:
            if text not in known:
                known[text] = evaluator(text)
            body = json.dumps({"value": _plain(known[text](row))}).encode()
        except MemoryError:
            return  # what is left is not enough to go on with
        except Exception as error:
            body = json.dumps({"raised": f"{type(error).__name__}: {error}"[:2000]}).encode()
        signal.setitimer(signal.ITIMER_PROF, 0)
        out.write(_SIZE.pack(len(body)) + body)
        out.flush()


def _plain(value: Any) -> Any:
    """The value as JSON holds it; what it does not know is text."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return str(value)


if __name__ == "__main__":
    main()
