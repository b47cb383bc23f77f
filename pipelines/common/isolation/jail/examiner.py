"""The trusted process: runs the tests, calls the program through the messages."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import json
from collections.abc import Iterable
from typing import Any, BinaryIO

from . import changes, compare, messages
from .reached import Reached


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


class Missing(BaseException):
    """The program says that it needs a module that is not there; tests must not catch it."""


class Unfit(BaseException):
    """The question's own code fails, or lacks a module, whatever the program does."""


class Program:
    """The program on the other side of the messages."""

    def __init__(
        self,
        requests: BinaryIO,
        replies: BinaryIO,
        *,
        carry: bool = True,
        apart: Iterable[int] = (),
    ):
        self._requests, self._replies, self._carry = requests, replies, carry
        #: What calls for nothing changed; see `changes.Left`.
        self.left = changes.Left(apart, lambda value: messages.pack(value, _number))
        #: Whether a call changed its arguments whose result the test uses.
        self.changed = False
        #: What ends the examination, kept because a test may catch everything.
        self.ended: BaseException | None = None

    def load(self, source: str) -> list[str]:
        names = self._ask({"do": "load", "source": source})
        return [name for name in names if isinstance(name, str)]

    def call(self, name: str, *arguments: Any, **named: Any) -> Any:
        return self._ask({"do": "call", "name": name, "with": self._pack(arguments, named)})

    def method(self, of: Opaque, name: str, *arguments: Any) -> Any:
        request = {"do": "call", "of": of._number, "path": [name]}
        return self._ask(request | {"with": self._pack(arguments, {})})

    def run(self, source: str, stdin: str) -> tuple[int, str]:
        code, shown, missing = self._ask({"do": "run", "source": source, "stdin": stdin})
        if isinstance(missing, str):
            raise Missing(missing[:100])
        return code, shown

    def function(self, name: str) -> Any:
        def asked(arguments: tuple[Any, ...], named: dict[str, Any], used: bool) -> Any:
            call_args = (list(arguments), named)
            if used:
                self.left.meets(name, call_args)
            packed = messages.pack(self.left.shown(call_args), _number)
            return self._ask({"do": "call", "name": name, "with": packed}, call_args, used)

        def candidate(*arguments: Any, **named: Any) -> Any:
            return asked(arguments, named, True)

        def changing(*arguments: Any, **named: Any) -> Any:
            return asked(arguments, named, False)

        changing.of_the_program = True  # type: ignore[attr-defined]
        candidate.changes = changing  # type: ignore[attr-defined]
        return candidate

    def _pack(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return messages.pack((list(arguments), named), _number)

    def _ask(self, request: Any, value: Any = None, used: bool = True) -> Any:
        if self.ended is not None:
            raise self.ended
        try:
            return self._answer(request, value, used)
        except (Failed, Missing, messages.Broken) as end:
            self.ended = end
            raise

    def _answer(self, request: Any, value: Any, used: bool) -> Any:
        try:
            messages.send(self._requests, request)
        except OSError as error:
            raise messages.Broken("the program ended before its tests did") from error
        reply = messages.receive(self._replies)
        if not isinstance(reply, dict):
            raise messages.Broken("a reply that is not in form")
        if isinstance(reply.get("missing"), str):
            raise Missing(reply["missing"][:100])
        if value is not None and "after" in reply:
            if reply["after"] is False:
                raise Failed("the program made an argument hold itself")
            after = messages.unpack(reply["after"], lambda number: Opaque(self, number))
            match after:
                case (list(), dict()):
                    self.changed = self.changed or used
                case _:
                    raise messages.Broken("arguments that are not in form")
            if self._carry if used else not self.left.keeps(request["name"], value, after):
                messages.restore(value, after)
        if "raised" in reply:
            raise _raised(reply)
        return messages.unpack(reply.get("value"), lambda number: Opaque(self, number))


def examine(job: dict[str, Any], program: Program) -> tuple[bool, str, str | None]:
    """Whether every test holds, what happened, and what the question lacks to be examined."""
    try:
        _KINDS[job["kind"]](job, program)
        if program.ended is not None:
            raise program.ended
    except Missing as missing:
        name = str(missing)
        if name in job.get("needs", ()) and importlib.util.find_spec(name) is None:
            return False, "", f"the question needs {name}, which is not there"
        return False, f"imports {name}, which is not there", None
    except Unfit as unfit:
        return False, "", f"the question's own code fails: {unfit}"[:300]
    except Failed as failed:
        return False, str(failed), None
    except messages.Broken as broken:
        return False, str(broken), None
    except AssertionError:
        return False, "a test did not hold", None
    except ModuleNotFoundError as error:
        # That of a program has no name here: this is the tests'.
        fault = f"the question's tests lack {error.name}" if error.name else None
        return False, f"ModuleNotFoundError: {error}"[:300], fault
    except BaseException as error:  # a test that raises is a test that did not hold
        return False, f"{type(error).__name__}: {error}"[:300], None
    return True, "every test held", None


def _check(job: dict[str, Any], program: Program) -> None:
    """HumanEval: `check(candidate)`, next to the helpers that the prompt defines."""
    trees, space = _prepared(job)
    if job["entry_point"] not in program.load(job["program"]):
        raise Failed(f"the program does not define {job['entry_point']}")
    candidate = program.function(job["entry_point"])
    space[job["entry_point"]] = candidate
    reached = Reached()
    reached.watch(trees, {"check"}, space)
    for tree in trees:
        exec(compile(tree, "tests", "exec"), space)  # noqa: S102 - the question's own tests
    space["check"](candidate)
    _all(reached)


def _asserts(job: dict[str, Any], program: Program) -> None:
    """MBPP: assert statements over names the program defines."""
    tests, space = _prepared(job)
    defined = set(program.load(job["program"]))
    used = {n.id for tree in tests for n in ast.walk(tree) if isinstance(n, ast.Name)}
    wanted = {name for name in used & defined if name not in space}
    own = {name for name in wanted if not hasattr(builtins, name)}
    # A program may define `sum` because the question asks for it, or `set` to
    # blind the comparison: a builtin is taken over only when nothing else is asked for.
    asked = {job["entry_point"]} & wanted if job["entry_point"] else set()
    for name in own | asked or wanted:
        space[name] = program.function(name)
    reached = Reached()
    reached.watch(tests, set(), space)
    for test, tree in zip(job["tests"], tests, strict=True):
        try:
            exec(compile(tree, "tests", "exec"), space)  # noqa: S102
        except AssertionError as error:
            raise Failed(f"did not hold: {test.strip()[:200]}") from error
    _all(reached)


def _prepared(job: dict[str, Any]) -> tuple[list[ast.Module], dict[str, Any]]:
    """The tests, parsed, and the space they run in, which holds the question's own code."""
    space: dict[str, Any] = {"__name__": "tests"}
    try:
        setup, *tests = [ast.parse(text) for text in (job["setup"], *job["tests"])]
        changes.watch([setup, *tests], space)
        exec(compile(setup, "setup", "exec"), space)  # noqa: S102 - the question's own code
    except Exception as error:
        raise Unfit(f"{type(error).__name__}: {error}") from error
    return tests, space


def _all(reached: Reached) -> None:
    if missed := reached.missed():
        raise Failed(f"never reached: {missed}")


def _functional(job: dict[str, Any], program: Program) -> None:
    """LiveCodeBench, APPS: one call per case, of a function or of `Solution`'s method."""
    defined = program.load(job["program"])
    name = job["entry_point"]
    for number, case in enumerate(job["cases"]):
        arguments = case["arguments"] if "arguments" in case else _lines(case["input"])
        if "Solution" in defined and name not in defined:
            result = program.method(program.call("Solution"), name, *arguments)
        else:
            result = program.call(name, *arguments)
        expected = case["value"] if "value" in case else json.loads(case["output"])
        wanted = [expected]
        if "arguments" in case and isinstance(expected, list) and len(expected) == 1:
            wanted.append(expected[0])  # APPS wraps some results in a list
        if not any(compare.same_value(compare.listed(result), item, job) for item in wanted):
            raise Failed(f"case {number} gave another result")


def _lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _stdio(job: dict[str, Any], program: Program) -> None:
    """LiveCodeBench, APPS: a script that reads standard input and prints."""
    for number, case in enumerate(job["cases"]):
        code, shown = program.run(job["program"], case["input"])
        if code != 0:
            raise Failed(f"case {number} ended with status {code}")
        if not compare.same_output(shown, case["output"], job):
            raise Failed(f"case {number} printed something else")


def _number(value: Any) -> int:
    if isinstance(value, Opaque):
        return value._number
    raise TypeError(f"a {type(value).__name__} cannot be handed to the program")


def _raised(reply: dict[str, Any]) -> Exception:
    """The program's exception: the nearest builtin kind, so that tests can expect it."""
    text = str(reply.get("text"))[:300]
    for name in reply["raised"] if isinstance(reply["raised"], list) else []:
        if name in ("StopIteration", "StopAsyncIteration"):
            # Raised inside `map` or a class's `__next__` it would end the test's own loop
            # in silence; a generator makes the same of it (PEP 479).
            return RuntimeError(f"the program raised {name}")
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
