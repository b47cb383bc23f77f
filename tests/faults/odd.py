"""Damaged and odd inputs, the same ones in every run: bytes changed, and values of other kinds."""

from __future__ import annotations

import io
import json
import pickle
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ODD: list[Any] = [
    None, True, False, 0, -1, 10**30, 1e308, float("inf"), float("nan"), "", "x", "\x00", "\ud800",
    "\x1b[31m", "x" * 5_000, [], {}, [[]], [None], {"": None}, [1, "a"], "1e999", "-0", "٤٢", " ",
]  # fmt: skip
#: Bytes that end or begin something: a number's edge, a quote, a comma, a brace.
_BYTES = (0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x2C, 0x7B)


def mutants(data: bytes, seed: int) -> Iterator[bytes]:
    """Damaged copies without end."""
    chance = random.Random(seed)
    while True:
        found = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 4, 16))):
            at = chance.randrange(len(found) + 1)
            kind = chance.randrange(7)
            if kind == 0 and at < len(found):
                found[at] ^= 1 << chance.randrange(8)
            elif kind == 1 and at < len(found):
                found[at] = chance.choice((*_BYTES, chance.randrange(256)))
            elif kind == 2:
                del found[at : at + chance.randrange(1, 32)]
            elif kind == 3:
                found[at:at] = found[at : at + chance.randrange(1, 64)]
            elif kind == 4:
                found[at:at] = chance.randbytes(chance.randrange(1, 9))
            elif kind == 5:
                del found[at:]
            else:
                other = chance.randrange(len(found) + 1)
                found[at : at + 8] = found[other : other + 8]
        yield bytes(found)


def odd(value: Any, chance: random.Random) -> Any:
    """The value with one of its parts, however deep, put aside for an odd one."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        kind = chance.random()
        if kind < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if kind < 0.15:
            return {**value, str(chance.choice(ODD))[:20]: chance.choice(ODD)}
        return {**value, key: odd(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        if chance.random() < 0.1:
            return value[:at] + value[at : at + 1] * 2 + value[at + 1 :]
        return [*value[:at], odd(value[at], chance), *value[at + 1 :]]
    return chance.choice(ODD)


def structured(path: Path, data: bytes, chance: random.Random) -> bytes | None:
    """The file with an odd value in its structure; None where its kind is not known."""
    dumped = lambda value: json.dumps(value).encode()  # noqa: E731
    try:
        if path.suffix == ".json":
            return dumped(odd(json.loads(data), chance))
        if path.suffix == ".jsonl":
            return b"\n".join(
                map(dumped, odd([json.loads(one) for one in data.splitlines()], chance))
            )
        if path.suffix == ".csv":
            cells = [line.split(b",") for line in data.splitlines()]
            line = chance.choice(cells)
            line[chance.randrange(len(line))] = str(chance.choice(ODD)).encode("utf-8", "replace")
            return b"\n".join(map(b",".join, cells))
        if path.suffix == ".pkl":
            return _odd_pickle(data, chance)
        if path.suffix == ".parquet":
            return _odd_parquet(data, chance)
        if path.suffix in (".zip", ".eval"):
            return _odd_archive(data, chance)
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        pass
    return None


def _odd_pickle(data: bytes, chance: random.Random) -> bytes:
    # Ours: made by the tests a moment ago.
    value = pickle.loads(data)  # noqa: TID251
    if not hasattr(value, "columns"):
        return pickle.dumps(odd(value, chance))
    frame = value.astype(object)
    frame.iat[chance.randrange(len(frame)), chance.randrange(frame.shape[1])] = chance.choice(ODD)
    if chance.random() < 0.3:
        frame = frame.rename(
            columns={chance.choice(list(frame.columns)): chance.choice(["", "x", 3])}
        )
    return pickle.dumps(frame)


def _odd_parquet(data: bytes, chance: random.Random) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = odd(pq.read_table(io.BytesIO(data)).to_pylist(), chance)
    sink = io.BytesIO()
    try:
        pq.write_table(pa.Table.from_pylist(rows), sink)
    except (pa.ArrowException, AttributeError, LookupError, TypeError) as error:
        raise ValueError from error
    return sink.getvalue()


def _odd_archive(data: bytes, chance: random.Random) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(sink, "w") as new:
        names = old.namelist()
        chosen = chance.choice(names)
        for name in names:
            held = old.read(name)
            if name == chosen:
                held = json.dumps(odd(json.loads(held), chance)).encode()
            new.writestr(name, held)
    return sink.getvalue()
