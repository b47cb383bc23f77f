"""Functions that the tests call in the limited process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.errors import SourceError

_prepared: list[int] = []


def prepare(number: int) -> None:
    pa.array([number])  # imports pandas, which takes a busy machine most of a call's limit
    _prepared.append(number)


def prepared() -> int:
    return _prepared[0]


def converts_without_pandas(values: list[int]) -> list[Any]:
    """The values through Arrow, and whether pandas was imported for that."""
    return [pa.array(np.array(values)).to_numpy().tolist(), "pandas" in sys.modules]


def echo(value: Any) -> Any:
    return value


def batches(count: int) -> Iterator[Any]:
    yield pa.schema([("n", pa.int64())])
    for number in range(count):
        yield pa.record_batch({"n": [number]})
    yield {"rows": count}


def loop() -> None:
    while True:
        pass


def grow() -> int:
    return len(bytearray(1 << 30))


def sleep() -> None:
    time.sleep(60)


def abort() -> None:
    os.abort()


def refuse() -> None:
    raise SourceError("no", where="there")


def divide() -> float:
    return 1 / 0


def write(path: str) -> None:
    with open(path, "wb") as stream:
        stream.write(b"x" * 1_000)


def fork() -> int:
    if pid := os.fork():
        return pid
    time.sleep(60)
    os._exit(0)


def end_by(number: int) -> None:
    os.kill(os.getpid(), number)


def allocate(size: int) -> int:
    return len(bytearray(size))
