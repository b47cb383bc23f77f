"""Run as a process of its own: feeds one reader with damaged inputs, and says what became of them.

    python fuzzing.py READER COUNT FOLDER

A process of its own, because a reader that crashes must not take the tests with it. Each fault is
a line of JSON; the last line says how many inputs were tried.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults.odd import ODD, mutants, odd, structured

ROOT = Path(__file__).parents[2]
#: CPU-seconds that one input may take.
LONGEST = 10


# -- readers: each gives a function of a number that raises on a fault --------------------


def importer(name: str, folder: Path) -> Callable[[int], None]:
    from routeyard.pipelines.common import staging
    from routeyard.pipelines.ingest.importers import IMPORTERS, write
    from routeyard.pipelines.ingest.importers.write import run_import

    staging._flush = lambda path: None  # no power cut comes here, and 10,000 flushes take long
    found = IMPORTERS.get(name)
    to_yaml = write.write_yaml
    # Where memory is a disk, it is the quicker one.
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
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
        target = made / "out" / name
        # Our own YAML follows from what was read, and writing it takes longer than reading:
        # one in four is written whole.
        write.write_yaml = to_yaml if number % 8 < 2 else lambda value, importer, path: None
        try:
            run_import(found, source, target)
        finally:
            path.write_bytes(held[path])
            shutil.rmtree(target.parent, ignore_errors=True)

    return read


def recipe(folder: Path) -> Callable[[int], None]:
    from routeyard.flows.recipe import load, shipped
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
    from routeyard.pipelines.release.manifest import read_manifest

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
    from routeyard.pipelines.label.scorers import SCORERS
    from routeyard.pipelines.label.scorers.scorer import ScoringInput
    from tests.scorers.case_files import cases

    found = SCORERS.get(name)
    seeds = [case for case in cases() if case.scorer == name] or cases()
    read_it: Any = found.read
    options: dict[str, object] = {}
    if name == "bartscore":
        # A network of one layer: what is read decides, not how good the weights are.
        import torch

        from tests.scorers.test_bartscore import make

        torch.set_num_threads(1)
        options = {"model": str(make(folder / "bart"))}
    if name == "code":
        # Finding the program: running it is what the hostile programs try.
        from routeyard.pipelines.label.scorers import code

        code.run = lambda *given, **named: code_result()

    def code_result() -> Any:
        from routeyard.pipelines.common.isolation.jail.host import Result

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
            asked = ScoringInput(text(chance), references, choices, {"score": chance.choice(ODD)})
        if options:
            asked = replace(asked, options=options)
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
    from routeyard.pipelines.common.errors import RouteyardError

    makers = {"importer": importer, "scorer": scorer}
    if kind in makers:
        read = makers[kind](name, folder)
    else:
        read = {"recipe": recipe, "manifest": manifest}[kind](folder)
    read_well = refused = held = 0

    def late(*_: object) -> None:
        raise TimeoutError(f"longer than {LONGEST} s")

    signal.signal(signal.SIGPROF, late)
    begun = time.process_time()
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
    seconds = round(time.process_time() - begun, 1)
    told = {"tried": count, "held": held, "read": read_well, "refused": refused}
    print(json.dumps({**told, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
