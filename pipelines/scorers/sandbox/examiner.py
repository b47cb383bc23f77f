"""The trusted process: runs the tests, calls the program through the wire."""

from __future__ import annotations

import ast
import builtins
import json
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Any, BinaryIO

from . import wire


class Opaque:
    """Something of the program's that is not plain data.

    It can be passed back to the program and nothing else: it has no truth, is
    equal to nothing and differs from nothing, because those answers would be
    the program's own.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, program: Program, number: int):
        self._program, self._number = program, number

    def _refuse(self, *_: object) -> Any:
        raise TypeError("the program returned an object that is not plain data")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __len__ = __iter__ = __contains__ = __float__ = __int__ = _refuse


class Failed(Exception):
    """A test did not hold."""


class Program:
    """The program on the other side of the wire."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO):
        self._requests, self._replies = requests, replies

    def load(self, source: str) -> list[str]:
        names = self._ask({"do": "load", "source": source})
        return [name for name in names if isinstance(name, str)]

    def call(self, name: str, *arguments: Any, **named: Any) -> Any:
        return self._ask({"do": "call", "name": name, "with": self._pack(arguments, named)})

    def method(self, of: Opaque, name: str, *arguments: Any) -> Any:
        request = {"do": "call", "of": of._number, "path": [name]}
        return self._ask(request | {"with": self._pack(arguments, {})})

    def run(self, source: str, stdin: str) -> tuple[int, str]:
        code, shown = self._ask({"do": "run", "source": source, "stdin": stdin})
        return code, shown

    def function(self, name: str) -> Any:
        def candidate(*arguments: Any, **named: Any) -> Any:
            return self.call(name, *arguments, **named)

        return candidate

    def _pack(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return wire.pack((list(arguments), named), _number)

    def _ask(self, request: Any) -> Any:
        try:
            wire.send(self._requests, request)
        except OSError as error:
            raise wire.Broken("the program ended before its tests did") from error
        reply = wire.receive(self._replies)
        if not isinstance(reply, dict):
            raise wire.Broken("a reply that is not in form")
        if "raised" in reply:
            raise _raised(reply)
        return wire.unpack(reply.get("value"), lambda number: Opaque(self, number))


def examine(job: dict[str, Any], program: Program) -> tuple[bool, str]:
    """Whether every test holds, and what happened."""
    try:
        _KINDS[job["kind"]](job, program)
    except Failed as failed:
        return False, str(failed)
    except wire.Broken as broken:
        return False, str(broken)
    except AssertionError:
        return False, "a test did not hold"
    except BaseException as error:  # a test that raises is a test that did not hold
        return False, f"{type(error).__name__}: {error}"[:300]
    return True, "every test held"


def _check(job: dict[str, Any], program: Program) -> None:
    """HumanEval: `check(candidate)`, next to the helpers that the prompt defines."""
    if job["entry_point"] not in program.load(job["program"]):
        raise Failed(f"the program does not define {job['entry_point']}")
    candidate = program.function(job["entry_point"])
    space: dict[str, Any] = {"__name__": "tests"}
    exec(job["setup"], space)  # noqa: S102 - the question's own code
    space[job["entry_point"]] = candidate
    for test in job["tests"]:
        exec(test, space)  # noqa: S102 - the question's own tests
    space["check"](candidate)


def _asserts(job: dict[str, Any], program: Program) -> None:
    """MBPP: assert statements over names the program defines."""
    defined = set(program.load(job["program"]))
    space: dict[str, Any] = {"__name__": "tests"}
    exec(job["setup"], space)  # noqa: S102
    tests = [ast.parse(test) for test in job["tests"]]
    used = {n.id for tree in tests for n in ast.walk(tree) if isinstance(n, ast.Name)}
    wanted = {name for name in used & defined if name not in space}
    own = {name for name in wanted if not hasattr(builtins, name)}
    # A program may define `sum` because the question asks for it, or `set` to
    # blind the comparison: a builtin is taken over only when nothing else is asked for.
    asked = {job["entry_point"]} & wanted if job["entry_point"] else set()
    for name in own | asked or wanted:
        space[name] = program.function(name)
    for test, tree in zip(job["tests"], tests, strict=True):
        try:
            exec(compile(tree, "tests", "exec"), space)  # noqa: S102
        except AssertionError as error:
            raise Failed(f"did not hold: {test.strip()[:200]}") from error


def _functional(job: dict[str, Any], program: Program) -> None:
    """LiveCodeBench: one call per case, of a function or of `Solution`'s method."""
    defined = program.load(job["program"])
    name = job["entry_point"]
    for number, case in enumerate(job["cases"]):
        arguments = [json.loads(line) for line in case["input"].split("\n") if line.strip()]
        if "Solution" in defined and name not in defined:
            result = program.method(program.call("Solution"), name, *arguments)
        else:
            result = program.call(name, *arguments)
        if _listed(result) != json.loads(case["output"]):
            raise Failed(f"case {number} gave another result")


def _stdio(job: dict[str, Any], program: Program) -> None:
    """LiveCodeBench: a script that reads standard input and prints."""
    for number, case in enumerate(job["cases"]):
        code, shown = program.run(job["program"], case["input"])
        if code != 0:
            raise Failed(f"case {number} ended with status {code}")
        if not _same_output(shown, case["output"]):
            raise Failed(f"case {number} printed something else")


def _same_output(shown: str, expected: str) -> bool:
    left = [line.split() for line in shown.strip().splitlines()]
    right = [line.split() for line in expected.strip().splitlines()]
    if left == right:
        return True
    if [len(line) for line in left] != [len(line) for line in right]:
        return False
    pairs = zip(chain.from_iterable(left), chain.from_iterable(right), strict=True)
    return all(a == b or _same_number(a, b) for a, b in pairs)


def _same_number(a: str, b: str) -> bool:
    try:
        return Decimal(a) == Decimal(b)
    except InvalidOperation:
        return False


def _listed(value: Any) -> Any:
    """Tuples as lists, the way JSON knows them."""
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _listed(item) for key, item in value.items()}
    return value


def _number(value: Any) -> int:
    if isinstance(value, Opaque):
        return value._number
    raise TypeError(f"a {type(value).__name__} cannot be handed to the program")


def _raised(reply: dict[str, Any]) -> Exception:
    """The program's exception: the nearest builtin kind, so that tests can expect it."""
    text = str(reply.get("text"))[:300]
    for name in reply["raised"] if isinstance(reply["raised"], list) else []:
        kind = getattr(builtins, str(name), None)
        if isinstance(kind, type) and issubclass(kind, Exception) and kind is not AssertionError:
            try:
                return kind(text)
            except TypeError:  # UnicodeDecodeError and its like want more arguments
                continue
        if name in ("SystemExit", "KeyboardInterrupt", "GeneratorExit"):
            return Failed(f"the program raised {name}")
    return Failed(f"the program raised: {text}")


_KINDS = {"check": _check, "asserts": _asserts, "functional": _functional, "stdio": _stdio}
