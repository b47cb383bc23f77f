"""Programs that try to pass by leaving a test nothing to check."""

from __future__ import annotations

import pytest

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


STOPS = "def f(n):\n    raise StopIteration\n"
EXITS = "def f(n):\n    raise SystemExit\n"
EMPTY = "def f(n):\n    return []\n"
LOOPS = {
    "map": (STOPS, "assert all(map(lambda n: candidate(n) == [n, n], [1, 2]))"),
    "map in a loop": (STOPS, "for one in map(candidate, [1, 2]):\n    assert len(one) == 2"),
    "an empty result": (EMPTY, "for one in candidate(1):\n    assert one == 1"),
    "a helper never called": (
        EMPTY,
        "def same(one):\n    assert one == 1\nlist(map(same, candidate(1)))",
    ),
    "a bare except around an exit": (
        EXITS,
        "for n in (1, 2):\n    try:\n        candidate(n)\n    except:\n        continue\n"
        "    assert candidate(n) == [n, n]",
    ),
    "an end that is caught": (EXITS, "try:\n    candidate(1)\nexcept BaseException:\n    pass"),
    "a sentinel": ("def f():\n    return 0\n", "for n in iter(candidate, 0):\n    assert n == 1"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_check_that_nothing_reached_does_not_hold(name: str) -> None:
    result = check(*LOOPS[name])
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
GIVES_NONE = "def f(x):\n    x.clear()\n"
CLEARS = "def f(x):\n    x.clear()\n    return []\n"
IN_PLACE = {
    # name: (program, test, whether it holds)
    "what is asked": (SORTS, "x = [2, 1]\ncandidate(x)\nassert x == [1, 2]", True),
    "nothing is done": (
        "def f(x):\n    pass\n", "x = [2, 1]\ncandidate(x)\nassert x == [1, 2]", False
    ),
    "an argument is to be left alone": (
        "def f(x):\n    x.sort()\n    return x[0]\n",
        "x = [2, 1]\nassert candidate(x) == 1\nassert x == [2, 1]",
        False,
    ),
    "and is": (
        "def f(x):\n    return min(x)\n",
        "x = [2, 1]\nassert candidate(x) == 1\nassert x == [2, 1]",
        True,
    ),
    "expected comes from what was emptied": (
        CLEARS,
        "for x in ([2, 1], [3, 4]):\n    assert candidate(x) == sorted(x)",
        False,
    ),
    "the same in two lines": (CLEARS, "x = [2, 1]\ny = candidate(x)\nassert y == sorted(x)", False),
    "changed on the way, and right": (
        "def f(x):\n    x.sort()\n    return x\n",
        "x = [2, 1]\nassert candidate(x) == [1, 2]\nassert candidate([3, 2]) == [2, 3]",
        True,
    ),
    "deep": (
        "def f(x):\n    x['a'][0].append(3)\n    x['b'] = 1\n    del x['c']\n",
        "inner = [1]\nx = {'a': (inner,), 'c': 0}\ncandidate(x)\n"
        "assert inner == [1, 3]\nassert x == {'a': ([1, 3],), 'b': 1}",
        True,
    ),
    "a set and bytes": (
        "def f(s, b):\n    s.discard(1)\n    b.append(7)\n",
        "s, b = {1, 2}, bytearray(b'a')\ncandidate(s, b)\n"
        "assert s == {2}\nassert b == bytearray(b'a\\x07')",
        True,
    ),
    "by name": ("def f(*, x):\n    x.append(1)\n", "x = []\ncandidate(x=x)\nassert x == [1]", True),
    "emptied, and nothing returned": (
        GIVES_NONE, "x = [2]\nassert candidate(x) == next(iter(x), None)", False
    ),
    "the same in two lines, nothing returned": (
        GIVES_NONE, "x = [2]\ny = candidate(x)\nassert y == next(iter(x), None)", False
    ),
    "emptied, then raised": (
        "def f(x):\n    x.clear()\n    raise ValueError\n",
        "x = [2]\ntry:\n    y = candidate(x)\nexcept ValueError:\n    y = None\n"
        "assert y == (x[0] if x else None)",
        False,
    ),
    "emptied within a helper": (
        GIVES_NONE,
        "def same(x):\n    assert candidate(x) == next(iter(x), None)\nsame([2])",
        False,
    ),
    "emptied for a helper of its own": (
        GIVES_NONE, "low = lambda x: next(iter(x), None)\nx = [2]\nassert low(x) == low(x)\n"
        "assert candidate(x) == low(x)", False
    ),
    "nothing is said to be returned": (
        SORTS, "x = [2, 1]\nassert candidate(x) is None\nassert x == [1, 2]", True
    ),
    "what is returned is not looked at": (
        SORTS, "x = [2, 1]\n_ = candidate(x)\nassert x == [1, 2]", True
    ),
    "changed and returned, only the change is asked for": (
        "def f(x):\n    x.sort()\n    return x\n",
        "x = [2, 1]\ncandidate(x)\nassert x == [1, 2]\nassert candidate([2, 1]) == [1, 2]",
        True,
    ),
    "changed within a helper that is given the program": (
        SORTS, "def go(f, x):\n    f(x)\n    return x\nassert go(candidate, [2, 1]) == [1, 2]",
        True,
    ),
    "none is one of two things compared": (
        GIVES_NONE, "x = [2]\nassert (candidate(x) is None) == (next(iter(x), None) is None)", False
    ),
    "changed, then raised": (
        "def f(x):\n    x.append(1)\n    raise ValueError('no')\n",
        "x = []\ntry:\n    candidate(x)\nexcept ValueError:\n    pass\nassert x == []",
        False,
    ),
    "emptied by a call for nothing, then asked": (
        CLEARS, "x = [2, 1]\ncandidate(x)\nassert candidate(x) == sorted(x)", False
    ),
    "the same, expected before it is asked": (
        CLEARS, "x = [2, 1]\ncandidate(x)\nwant = sorted(x)\nassert candidate(x) == want", False
    ),
    "the same with an error in between": (
        "def f(x):\n    x.clear()\n    raise ValueError\n",
        "x = [2]\nfor _ in range(2):\n    try:\n        candidate(x)\n"
        "    except ValueError:\n        pass\n"
        "try:\n    y = candidate(x)\nexcept ValueError:\n    y = []\nassert y == x",
        False,
    ),
    "the same by name, within a tuple": (
        "def f(*, x):\n    x[0].clear()\n    return []\n",
        "x = ([2, 1],)\ncandidate(x=x)\nassert candidate(x=x) == sorted(x[0])",
        False,
    ),
    "changed only where nothing is asked": (
        "n = []\ndef f(x):\n    n or x.clear()\n    n.append(1)\n    return []\n",
        "x = [2, 1]\ncandidate(x)\nassert candidate(x) == sorted(x)",
        False,
    ),
    "changed for nothing, then asked, and right": (
        "def f(x):\n    x.sort()\n    return x\n",
        "x = [2, 1]\ncandidate(x)\nassert candidate(x) == [1, 2]\n"
        "assert candidate(x) == sorted(x)",
        True,
    ),
    "what the first call made is what the second is given": (
        "def f(x, n):\n    x.append(n)\n    return sum(x)\n",
        "x = [1]\ncandidate(x, 2)\nassert candidate(x, 3) == 6",
        True,
    ),
    "and what the test made of it since": (
        "def f(x, n):\n    x.append(n)\n    return x[-2:]\n",
        "x = [1]\ncandidate(x, 2)\nx.append(7)\nassert candidate(x, 3) == [7, 3]",
        True,
    ),
    "holds itself": (
        "def f(x):\n    x.append(x)\n",
        "x = [1]\ncandidate(x)\nassert x == [1]",
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
def test_arguments_changed_in_place_are_seen_and_are_no_way_out(name: str) -> None:
    program, body, holds = IN_PLACE[name]
    result = check(program, body)
    assert result.passed == holds, result.reason


def test_the_bytes_of_a_verdict_are_the_same_each_time() -> None:
    for program, body, _ in list(IN_PLACE.values())[::7]:
        assert check(program, body) == check(program, body)


def test_a_change_is_seen_by_asserts_at_the_top_as_well() -> None:
    assert asserts(SORTS, "x = [2, 1]\nf(x)\nassert x == [1, 2]").passed
    result = asserts(CLEARS, "x = [2, 1]\nassert f(x) == sorted(x)")
    assert not result.passed
    assert "only because the arguments were changed" in result.reason


def test_what_one_function_changes_another_may_read() -> None:
    program = SORTS + "def g(x):\n    return x == sorted(x)\n"
    assert asserts(program, "x = [2, 1]\nf(x)\nassert x == [1, 2]\nassert g(x)").passed
