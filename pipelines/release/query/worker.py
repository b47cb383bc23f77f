"""The process that answers SQL: a limit on its address space, answers in small pieces.

`process.py` starts it. A query comes in as one line of JSON; out go frames of one
letter, eight bytes of length and a body: `R` ready, `S` the columns, `B` some rows,
`D` done (with what it took so far), `E` an error.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

#: What Python, Arrow and DuckDB need beside the memory of a query, in bytes.
OVERHEAD = 512 * 1024 * 1024
ROWS = 10_000
_HEADER = struct.Struct(">cQ")


def main() -> None:
    """Serve queries until the other side hangs up."""
    release, memory, limit = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no frame
    threading.Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()
    from pipelines.release.query.connection import connect
    from schemas.errors import RouteyardError

    try:
        connection = connect(release, memory_limit=memory)
        _limit(limit)
    except RouteyardError as error:
        _error(out, error)
        return
    _frame(out, b"R", b"")
    for line in sys.stdin.buffer:
        sql = json.loads(line)["sql"]
        try:
            _answer(connection, sql, out)
        except RouteyardError as error:
            _error(out, error)
        except MemoryError:
            _error(out, _too_much())
        except OSError as error:  # Arrow reports memory that ran out this way
            _error(out, _too_much() if "emory" in str(error) else error)
        except Exception as error:
            _error(out, error)


def _answer(connection: Any, sql: str, out: BinaryIO) -> None:
    import pyarrow as pa

    from pipelines.release.query.exact import check_types, check_values
    from pipelines.release.query.query import checked, told

    checked(connection, sql)
    with told(connection):
        # PIVOT is several statements in one, so the text is run, not the parsed statement.
        relation = connection.sql(sql)
        if relation is None:
            _frame(out, b"S", _packed(pa.schema([]), None))
        else:
            check_types(relation.columns, relation.types)
            reader = relation.to_arrow_reader(ROWS)
            _frame(out, b"S", _packed(reader.schema, None))
            for batch in reader:
                check_values(batch)
                _frame(out, b"B", _packed(batch.schema, batch))
    _frame(out, b"D", json.dumps(_spent()).encode())


def _spent() -> dict[str, float]:
    """CPU seconds of this process so far, and its largest resident size in MiB."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_s": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024}


def _packed(schema: Any, batch: Any) -> Any:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        if batch is not None:
            writer.write_batch(batch)
    return sink.getvalue()


def _frame(out: BinaryIO, kind: bytes, body: Any) -> None:
    view = memoryview(body)
    out.write(_HEADER.pack(kind, view.nbytes))
    out.write(view)
    out.flush()


def _error(out: BinaryIO, error: Exception) -> None:
    said = {
        "kind": type(error).__name__,
        "what": str(getattr(error, "what", error))[:2000],
        "where": getattr(error, "where", None),
        "next_step": getattr(error, "next_step", None),
    }
    _frame(out, b"E", json.dumps(said).encode())


def _too_much() -> Exception:
    from pipelines.release.query.query import too_much

    return too_much()


def _limit(memory: int) -> None:
    """No more address space than is in use, the memory of the query, and a margin."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        used = int(stream.read().split()[0]) * resource.getpagesize()
    most = used + memory + OVERHEAD
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _leave_with(parent: int) -> None:
    """End when the process that asks has gone, also in the middle of an expression."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


if __name__ == "__main__":
    main()
