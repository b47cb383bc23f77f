"""`code`: the same program gets the same verdict, whatever it starts, draws or lacks."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.label.scorers import code
from routeyard.pipelines.label.scorers.scorer import ScoringInput

CASES = json.dumps([{"input": "2 3\n", "output": "5\n"}])
ADD = "print(sum(map(int, input().split())))"
STDIO = ScoringInput("Add two numbers.", (CASES,))


def outcome(asked: ScoringInput, program: str) -> str:
    return code.read(asked, f"```python\n{program}\n```").outcome


@pytest.mark.parametrize(
    "program",
    [
        # one in six competition programs ends in a thread, to have a larger stack
        f"import sys, threading, time\ndef main():\n    time.sleep(0.05)\n    {ADD}\n"
        "threading.stack_size(2 ** 26)\nthreading.Thread(target=main).start()",
        # … or in a thread that starts another
        f"from threading import Thread\ndef last():\n    {ADD}\ndef main():\n"
        "    Thread(target=last).start()\nThread(target=main).start()",
        # an exit hook prints the buffered lines
        "import atexit\nout = [sum(map(int, input().split()))]\n"
        "atexit.register(lambda: print(*out))",
        # output that only leaving flushes
        "import sys\nsys.stdout.write(str(sum(map(int, input().split()))))",
        f"import sys\n{ADD}\nsys.exit(0)",
        # a pool of workers
        "from concurrent.futures import ThreadPoolExecutor\n"
        "pool = ThreadPoolExecutor(2)\nprint(pool.submit(sum, map(int, input().split())).result())",
    ],
)
def test_a_program_runs_to_its_own_end(program: str) -> None:
    assert {outcome(STDIO, program) for _ in range(2)} == {"correct"}


def test_a_daemon_thread_is_not_waited_for() -> None:
    program = (
        "import threading, time\n"
        "threading.Thread(target=lambda: time.sleep(60), daemon=True).start()\n" + ADD
    )
    assert outcome(STDIO, program) == "correct"


def test_an_exception_in_main_fails_although_a_thread_prints_the_answer() -> None:
    program = f"import threading\nthreading.Thread(target=lambda: {ADD}).start()\nraise ValueError"
    assert outcome(STDIO, program) == "incorrect"


def test_hashes_and_draws_are_the_same_in_every_run() -> None:
    shown = "print(''.join(set('abcdefgh')), __import__('random').random())"
    answers = set()
    for guess in range(3):
        asked = ScoringInput("?", (json.dumps([{"input": "", "output": f"x{guess}"}]),))
        reading = code.read(asked, f"```python\n{shown}\nraise KeyError\n```")
        assert reading.outcome == "incorrect"
    for _ in range(2):
        # prints its own output as an exception, the one channel a reason shows
        asked = ScoringInput("?", ("assert f() == 1",))
        program = (
            "def f():\n    import random\n"
            "    raise ValueError(''.join(set('abcdefgh')) + str(random.random()))"
        )
        answers.add(code.read(asked, f"```python\n{program}\n```").reason)
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("asked", "program"),
    [
        (STDIO, "import nowhere_to_be_found\n" + ADD),
        (STDIO, "def main():\n    import nowhere_to_be_found.part\nmain()"),
        (
            ScoringInput("?", ("assert f() == 1",)),
            "import nowhere_to_be_found\ndef f():\n    return 1",
        ),
        # imported only when called, inside a test that catches everything
        (
            ScoringInput(
                "?",
                ("def check(f):\n    try:\n        f()\n    except Exception:\n        pass\n",),
                metadata={"entry_point": "f"},
            ),
            "def f():\n    import nowhere_to_be_found",
        ),
    ],
)
def test_a_missing_module_is_wrong_and_named(asked: ScoringInput, program: str) -> None:
    # not an `error`, which would leave the accuracy: any program could choose that
    reading = code.read(asked, f"```python\n{program}\n```")
    said = "imports nowhere_to_be_found, which is not there"
    assert (reading.outcome, reading.reason) == ("incorrect", said)


def test_a_program_that_does_without_the_missing_module_is_judged() -> None:
    program = "try:\n    import nowhere_to_be_found\nexcept ImportError:\n    pass\n" + ADD
    assert outcome(STDIO, program) == "correct"
    assert outcome(STDIO, "import os.nowhere\n" + ADD) == "incorrect"


def test_named_modules_are_seen_and_others_are_not() -> None:
    program = "import numpy as np\nprint(int(np.array(input().split(), int).sum()))"
    assert outcome(STDIO, program) == "incorrect"
    allowed = ScoringInput("Add.", (CASES,), options={code.MODULES: ["numpy"]})
    assert outcome(allowed, program) == "correct"
    assert outcome(allowed, "import duckdb\n" + ADD) == "incorrect"
    written = "import numpy\nopen(numpy.__file__, 'a').write('#')\n" + ADD
    assert outcome(allowed, written) == "incorrect"
    with pytest.raises(BadInput, match="nowhere_to_be_found"):
        code.read(
            ScoringInput("Add.", (CASES,), options={code.MODULES: ["nowhere_to_be_found"]}),
            f"```python\n{ADD}\n```",
        )


def test_a_module_below_tmp_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "added_up/__init__.py": "def both(line):\n    return sum(map(int, line.split()))\n",
        "added_up-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: added_up\nVersion: 1\n",
        "added_up-1.dist-info/RECORD": "added_up/__init__.py,,\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    allowed = ScoringInput("Add.", (CASES,), options={code.MODULES: ["added_up"]})
    program = "import added_up\nopen('here', 'w').close()\nprint(added_up.both(input()))"
    assert outcome(allowed, program) == "correct"
    written = "import added_up\nopen(added_up.__file__, 'a').write('#')\n" + ADD
    assert outcome(allowed, written) == "incorrect"


def test_apps_layouts() -> None:
    stdio = json.dumps({"inputs": ["2 3\n", ["4", "5"]], "outputs": ["5\n", ["9"]]})
    program = "import sys\nprint(sum(map(int, sys.stdin.read().split())))"
    assert outcome(ScoringInput("Add.", (stdio,)), program) == "correct"
    called = json.dumps({"fn_name": "add", "inputs": [[2, 3], [4, 5]], "outputs": [5, [9]]})
    assert outcome(ScoringInput("Add.", (called,)), "def add(a, b):\n    return a + b") == "correct"
    assert (
        outcome(ScoringInput("Add.", (called,)), "def add(a, b):\n    return a - b") == "incorrect"
    )
    method = "class Solution:\n    def add(self, a, b):\n        return a + b"
    assert outcome(ScoringInput("Add.", (called,)), method) == "correct"


def test_tolerance_and_order_count_only_where_the_task_says_so() -> None:
    third = json.dumps([{"input": "", "output": "0.333333\n1\n"}])
    program = "print(1 / 3)\nprint(1)"
    assert outcome(ScoringInput("?", (third,)), program) == "incorrect"
    loose = {"float_tolerance": 1e-5}
    assert outcome(ScoringInput("?", (third,), metadata=loose), program) == "correct"
    assert (
        outcome(ScoringInput("?", (third,), metadata=loose), "print(0.334)\nprint(1)")
        == "incorrect"
    )
    turned = "print(1)\nprint(0.333333)"
    assert outcome(ScoringInput("?", (third,)), turned) == "incorrect"
    assert outcome(ScoringInput("?", (third,), metadata={"any_order": True}), turned) == "correct"
    listed = json.dumps([{"input": "3", "output": "[[0, 1], [1, 2]]"}])
    pairs = "def pairs(n):\n    return [(1, 2), (0, 1)]"
    named = {"func_name": "pairs"}
    assert outcome(ScoringInput("?", (listed,), metadata=named), pairs) == "incorrect"
    assert (
        outcome(ScoringInput("?", (listed,), metadata=named | {"any_order": True}), pairs)
        == "correct"
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_five_hundred_programs_get_the_same_verdict_twice() -> None:
    endings = [
        "main()",
        "import threading\nthreading.Thread(target=main).start()",
        "import atexit\natexit.register(main)",
        "from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor(1).submit(main)",
    ]
    bodies = [
        "a, b = map(int, input().split())\n    print(a + b)",
        "xs = set(input().split())\n    print(sum(map(int, sorted(xs))))",
        "print(list(set('ab'))[0] == 'a' and 5 or 6); input()",
        "import random\n    print(5 if random.random() > 0.5 else 6)",
        "print(5 if hash('x') % 2 else 6)",
        "print(6)",
    ]
    programs = [
        f"def main():\n    {bodies[n % 6]}\n    pad = {n}\n{endings[n % 4]}" for n in range(500)
    ]
    with ThreadPoolExecutor(4) as pool:
        first, second = (
            list(pool.map(lambda program: outcome(STDIO, program), programs)) for _ in range(2)
        )
    assert first == second
    assert {"correct"} < set(first)
