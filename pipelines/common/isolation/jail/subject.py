"""The untrusted process: holds the program, answers calls, never sees a test."""

from __future__ import annotations

import atexit
import os
import random
import sys
from typing import Any, BinaryIO

from . import messages

_PROGRAM = "program"


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until the other side hangs up.

    Nothing here needs to be safe from the program: a reply is data, and the
    examiner alone decides what it means.
    """
    space: dict[str, Any] = {"__name__": _PROGRAM}
    objects: list[Any] = []
    numbers: dict[int, int] = {}  # what is kept is never freed, so its id stays its own

    def keep(value: Any) -> int:
        if id(value) not in numbers:
            numbers[id(value)] = len(objects)
            objects.append(value)
        return numbers[id(value)]

    while True:
        try:
            request = messages.receive(requests)
        except messages.Broken:
            return
        values: list[Any] = []
        try:
            reply: dict[str, Any] = {"value": _answer(request, space, objects, keep, values)}
        except BaseException as error:  # SystemExit and KeyboardInterrupt are answers too
            kinds = [kind.__name__ for kind in type(error).__mro__]
            reply = {"raised": kinds, "text": _text(error), "missing": _missing(error)}
        if values and (after := _after(request, values[0], keep)) is not None:
            reply["after"] = after
        messages.send(replies, reply)


def _after(request: Any, value: Any, keep: Any) -> Any:
    """The arguments as the call left them; None where it left them alone, False where they
    are no plain data any more."""
    try:
        after = messages.pack(value, keep)
    except (ValueError, RecursionError):  # made to hold itself
        return False
    return None if after == request["with"] else after


def _answer(
    request: Any, space: dict[str, Any], objects: list[Any], keep: Any, values: list[Any]
) -> Any:
    operation = request["do"]
    if operation == "load":
        _same_dice()
        exec(compile(request["source"], _PROGRAM, "exec"), space)  # noqa: S102
        names = [name for name in space if not name.startswith("__")]
        return messages.pack(names, keep)
    if operation == "call":
        value: Any = objects[request["of"]] if "of" in request else space[request["name"]]
        for part in request.get("path", ()):
            value = getattr(value, part)
        arguments, named = messages.unpack(request["with"], objects.__getitem__)
        values.append((arguments, named))
        return messages.pack(value(*arguments, **named), keep)
    if operation == "run":
        return messages.pack(_run(request["source"], request["stdin"]), keep)
    raise ValueError(operation)


def _run(source: str, stdin: str) -> tuple[int, str, str | None]:
    """Exit status and standard output of the program run as a script, and a module it lacks."""
    with open("stdin", "w", encoding="utf-8", newline="") as file:
        file.write(stdin)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with open("stdin", "rb") as stdin_file, open("stdout", "wb") as shown:
                os.dup2(stdin_file.fileno(), 0)
                os.dup2(shown.fileno(), 1)
            os.closerange(3, 256)
            sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.argv = ["program.py"]
            _same_dice()
            code = _as_script(source)
        finally:
            os._exit(code & 255)
    _, status = os.waitpid(child, 0)
    with open("stdout", "rb") as shown:
        output = shown.read().decode("utf-8", "replace")
    # Written by the program's own process, so it may be forged: to no more effect than an
    # import of a module that does not exist.
    missing = None
    if os.path.exists("missing"):
        with open("missing", encoding="utf-8", errors="replace") as file:
            missing = file.read(100)
        os.remove("missing")
    return os.waitstatus_to_exitcode(status), output, missing


def _as_script(source: str) -> int:
    """Run to the end that an interpreter would: threads joined, exit hooks run, output flushed.

    A program may end in `Thread(target=main).start()`; leaving with its last
    statement would cut it off at random.
    """
    code = 1
    try:
        exec(compile(source, _PROGRAM, "exec"), {"__name__": "__main__"})  # noqa: S102
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
    except ModuleNotFoundError as error:
        if name := _missing(error):
            with open("missing", "w", encoding="utf-8") as file:
                file.write(name)
    except BaseException:  # an interpreter prints it, and goes on to the end
        code = 1
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    return code


def _same_dice() -> None:
    """Seed what a program may draw from, so that two runs of it draw the same."""
    random.seed(0)


def _missing(error: BaseException) -> str | None:
    """Top-level name of a third-party module that is not there; None for any other failure."""
    if not isinstance(error, ModuleNotFoundError) or not isinstance(error.name, str):
        return None
    name = error.name.partition(".")[0]
    return None if name in sys.stdlib_module_names or name in sys.modules else name


def _text(error: BaseException) -> str:
    try:
        return str(error)[:300]
    except BaseException:  # the program may define its own exceptions
        return ""
