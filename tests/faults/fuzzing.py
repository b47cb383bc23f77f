"""Run as a process of its own: feeds one reader with damaged inputs, and says what became of them.

    python fuzzing.py READER COUNT FOLDER

A process of its own, because a reader that crashes must not take the tests with it. Each fault is
a line of JSON; the last line says how many inputs were tried.
"""

from __future__ import annotations

import io
import json
import pickle
import random
import shutil
import signal
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

#: CPU-seconds that one input may take.
LONGEST = 10
ODD: list[Any] = [
    None, True, False, 0, -1, 10**30, 1e308, float("inf"), float("nan"), "", "x", "\x00", "\ud800",
    "\x1b[31m", "x" * 5_000, [], {}, [[]], [None], {"": None}, [1, "a"], "1e999", "-0", "٤٢", " ",
]  # fmt: skip


def mutants(data: bytes, seed: int) -> Iterator[bytes]:
    """Damaged copies without end."""
    chance = random.Random(seed)
    while True:
        found = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 4, 16))):
            at = chance.randrange(len(found) + 1)
            kind = chance.randrange(6)
            if kind == 0 and at < len(found):
                found[at] ^= 1 << chance.randrange(8)
            elif kind == 1 and at < len(found):
                found[at] = chance.choice((0, 0x7F, 0xFF, 0x22, 0x2C, 0x7B, chance.randrange(256)))
            elif kind == 2:
                del found[at : at + chance.randrange(1, 32)]
            elif kind == 3:
                found[at:at] = found[at : at + chance.randrange(1, 64)]
            elif kind == 4:
                found[at:at] = chance.randbytes(chance.randrange(1, 9))
            else:
                del found[at:]
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


# -- readers: each gives a function of a number that raises on a fault --------------------


def importer(name: str, folder: Path) -> Callable[[int], None]:
    from pipelines import staging
    from pipelines.ingest.importers import IMPORTERS
    from pipelines.ingest.importers.write import run_import

    staging._flush = lambda path: None  # no power cut comes here, and 10,000 flushes take long
    found = IMPORTERS.get(name)
    whole = sorted(path for path in folder.rglob("*") if path.is_file())
    held = {path: path.read_bytes() for path in whole}
    damaged = {path: mutants(data, 1) for path, data in held.items()}
    source = folder / (folder / ".path").read_text() if (folder / ".path").is_file() else folder
    files = [path for path in whole if path.name != ".path"]

    def read(number: int) -> None:
        chance = random.Random(number)
        path = chance.choice(files)
        data = structured(path, held[path], chance) if number % 2 else None
        path.write_bytes(next(damaged[path]) if data is None else data)
        target = folder.parent / "out" / name
        try:
            run_import(found, source, target)
        finally:
            path.write_bytes(held[path])
            shutil.rmtree(target.parent, ignore_errors=True)

    return read


def recipe(folder: Path) -> Callable[[int], None]:
    from flows.recipe import load, shipped
    from tests.faults.recipes import GOOD

    seeds = [json.dumps(GOOD).encode()]
    seeds += [
        (ROOT / f"flows/recipes/{name}.yaml").read_bytes() for name in ("zeroeval_gsm", "demo")
    ]
    damaged = [mutants(data, 2) for data in seeds]
    path = folder / "recipe.yaml"
    assert shipped()

    def read(number: int) -> None:
        chance = random.Random(number)
        data = next(damaged[0 if number % 8 else chance.randrange(len(seeds))])
        if number % 2:
            data = json.dumps(odd(GOOD, chance)).encode()
        path.write_bytes(data)
        load(path)

    return read


def manifest(folder: Path) -> Callable[[int], None]:
    from pipelines.release.manifest import read_manifest

    path = folder / "manifest.json"
    held = path.read_bytes()
    damaged = mutants(held, 3)

    def read(number: int) -> None:
        chance = random.Random(number)
        data = json.dumps(odd(json.loads(held), chance)).encode() if number % 2 else next(damaged)
        path.write_bytes(data)
        read_manifest(folder)

    return read


_PIECES = (
    "Answer: ", "\\boxed{", "}", "**", "```python\n", "```", "(A)", "(B)", "A", "B.", "42", "-1/2",
    "\\frac{1}{2}", "1,000", "{\"answer\": ", "\"", "####", "\n", " ", "the", "True", "none", "√2",
    "x^2", "{", "(", "[", "]", ")", "\\text{", "$", "%", "€", "1e999", "0x10", "½", "٤٢", "\u202e",
    "\x00", "\x1b[2J", "e\u0301", "or", "and", "not", "I cannot", "option", "=", "≈", "..",
    "<think>",
)  # fmt: skip


def scorer(name: str, folder: Path) -> Callable[[int], None]:
    from pipelines.scorers import SCORERS
    from pipelines.scorers.scorer import Asked
    from tests.scorers.case_files import cases

    found = SCORERS.get(name)
    seeds = [case for case in cases() if case.scorer == name] or cases()
    read_it: Any = found.read
    if name == "code":
        # Finding the program: running it is what the hostile programs try.
        from pipelines.scorers import code

        code.run = lambda *given, **named: code_result()

    def code_result() -> Any:
        from pipelines.scorers.sandbox.host import Result

        return Result(True, "")

    def text(chance: random.Random) -> str:
        if chance.random() < 0.5:
            case = chance.choice(seeds)
            data = next(mutants(case.output.encode(), chance.randrange(10**9)))
            return data.decode("utf-8", "replace")
        return "".join(chance.choice(_PIECES) for _ in range(chance.randrange(40)))

    def read(number: int) -> None:
        chance = random.Random(number)
        asked = chance.choice(seeds).asked
        if number % 4 == 0:
            references = (text(chance),) if chance.random() < 0.9 else ()
            choices = tuple(text(chance)[:50] for _ in range(chance.randrange(5)))
            asked = Asked(text(chance), references, choices, {"score": chance.choice(ODD)})
        output = text(chance)
        reading = read_it(asked, output)
        assert reading.outcome in ("correct", "incorrect", "abstain", "error"), reading
        decided = reading.outcome in ("correct", "incorrect")
        assert decided == (reading.score is not None), reading
        assert reading.score is None or 0 <= reading.score <= 1, reading
        if reading.span is not None:
            first, last = reading.span
            assert 0 <= first <= last <= len(output), reading

    return read


def main() -> None:
    kind, _, name = sys.argv[1].partition(":")
    count, folder = int(sys.argv[2]), Path(sys.argv[3])
    from pipelines.errors import RouteyardError

    makers = {"importer": importer, "scorer": scorer}
    if kind in makers:
        read = makers[kind](name, folder)
    else:
        read = {"recipe": recipe, "manifest": manifest}[kind](folder)
    read_well = refused = held = 0

    def late(*_: object) -> None:
        raise TimeoutError(f"longer than {LONGEST} s")

    signal.signal(signal.SIGPROF, late)
    begun = time.monotonic()
    for number in range(count):
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        try:
            read(number)
            read_well += 1
            held += 1
        except RouteyardError:
            refused += 1
            held += 1
        except BaseException as error:
            import traceback

            said = f"{type(error).__name__}: {str(error)[:300]}"
            frames = traceback.extract_tb(error.__traceback__)
            at = [f"{Path(one.filename).name}:{one.lineno}" for one in frames[-6:]]
            print(json.dumps({"number": number, "said": said, "at": at}), flush=True)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = round(time.monotonic() - begun, 1)
    told = {"tried": count, "held": held, "read": read_well, "refused": refused}
    print(json.dumps({**told, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
