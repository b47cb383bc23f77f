"""Programs that try to pass by leaving a test nothing to check."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from routeyard.pipelines.common.isolation.jail import host

HONEST = "def f(n):\n    return [n, n]\n"
LIMITS = host.ProgramLimits(cpu_s=5, wall_s=60.0)


def check(program: str, body: str) -> host.Result:
    test = "def check(candidate):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    job = {"kind": "check", "program": program, "setup": "", "entry_point": "f", "tests": [test]}
    return host.run(job, LIMITS)


def asserts(program: str, *tests: str) -> host.Result:
    job = {"kind": "asserts", "program": program, "setup": "", "entry_point": "f"}
    return host.run({**job, "tests": list(tests)}, LIMITS)


EMPTY = "def f(n):\n    return []\n"
CASES = yaml.safe_load(Path(__file__).with_name("vacuous.yaml").read_text("utf-8"))
LOOPS, IN_PLACE = CASES["loops"], CASES["in place"]


@pytest.mark.parametrize("name", LOOPS)
def test_a_check_that_nothing_reached_does_not_hold(name: str) -> None:
    result = check(LOOPS[name]["program"], LOOPS[name]["test"])
    assert not result.passed, result.reason


def test_assertions_at_the_top_are_counted_as_well() -> None:
    loop = "for one in f(1):\n    assert one == 1"
    assert asserts(HONEST, loop).passed
    result = asserts(EMPTY, loop)
    assert not result.passed
    assert "never reached: assert one == 1" in result.reason


def test_what_the_test_itself_makes_conditional_is_not_asked_for() -> None:
    body = (
        "def unused():\n    assert candidate(9) == 0\n"
        "if candidate(1) == 0:\n    assert candidate(0) == 3\n"
        "try:\n    candidate()\n    assert False, 'too few'\nexcept TypeError:\n    pass\n"
        "for n in range(3):\n    assert candidate(n) == [n, n]\n"
        "assert all(map(lambda n: candidate(n) == [n, n], [1, 2]))"
    )
    result = check(HONEST, body)
    assert result.passed, result.reason


def test_a_pair_of_sockets_within_the_program_is_allowed() -> None:
    program = "import asyncio\ndef f(n):\n    async def go():\n        return [n, n]\n"
    program += "    return asyncio.run(go())\n"
    result = check(program, "assert candidate(2) == [2, 2]")
    assert result.passed, result.reason


SORTS = "def f(x):\n    x.sort()\n"
CLEARS = "def f(x):\n    x.clear()\n    return []\n"


@pytest.mark.parametrize("name", IN_PLACE)
def test_arguments_changed_in_place_are_seen_and_are_no_way_out(name: str) -> None:
    case = IN_PLACE[name]
    result = check(case["program"], case["test"])
    assert result.passed == case["holds"], result.reason


def test_the_bytes_of_a_verdict_are_the_same_each_time() -> None:
    for case in list(IN_PLACE.values())[::7]:
        first, second = (check(case["program"], case["test"]) for _ in range(2))
        assert first == second


def test_a_change_is_seen_by_asserts_at_the_top_as_well() -> None:
    assert asserts(SORTS, "x = [2, 1]\nf(x)\nassert x == [1, 2]").passed
    result = asserts(CLEARS, "x = [2, 1]\nassert f(x) == sorted(x)")
    assert not result.passed
    assert "only because the arguments were changed" in result.reason


def test_what_one_function_changes_another_may_read() -> None:
    program = SORTS + "def g(x):\n    return x == sorted(x)\n"
    assert asserts(program, "x = [2, 1]\nf(x)\nassert x == [1, 2]\nassert g(x)").passed
