"""A pytest plugin that records every bad input that the product refuses while the tests run.

Both sides of a comparison load this file (`-p same_refusals`); it names nothing of the product but
its command line, the printed form of its errors and the class name `RouteyardError`, so that it
works for any commit. A row is one refusal: the test's name and the number of the refusal in it,
the exit code, the kind of error, and whether a place and a next step were named. Refusals are
seen in three ways: a command that a test starts, a command line run in the test's process, and an
error that a test expects with `pytest.raises`.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

_FOLDER = Path(os.environ["SAME_REFUSALS"])
_now: dict[str, Any] = {"test": "", "number": 0}


def _note(kind: str, exit_code: int, where: bool, next_step: bool, how: str) -> None:
    if not _now["test"]:
        return
    _now["number"] += 1
    row = {**_now, "kind": kind, "exit": exit_code, "where": where, "next": next_step, "how": how}
    with (_FOLDER / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def _note_printed(printed: str, exit_code: int, how: str) -> None:
    if exit_code in (1, 2, 3) and re.search(r"^error: ", printed, re.M):
        where = bool(re.search(r"^\s+where: \S", printed, re.M))
        next_step = bool(re.search(r"^\s+next:\s+\S", printed, re.M))
        _note("", exit_code, where, next_step, how)


def pytest_runtest_setup(item: pytest.Item) -> None:
    _now.update(test=item.name, number=0)


def pytest_runtest_teardown() -> None:
    _now["test"] = ""


_real_run, _real_raises = subprocess.run, pytest.raises


def _run(*words: Any, **more: Any) -> Any:
    done = _real_run(*words, **more)
    printed = done.stderr
    if isinstance(printed, bytes):
        printed = printed.decode("utf-8", "replace")
    if printed:
        _note_printed(printed, done.returncode, "command")
    return done


class _Raises:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __enter__(self) -> Any:
        return self.inner.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        handled = self.inner.__exit__(kind, error, trace)
        if handled and any(one.__name__ == "RouteyardError" for one in kind.__mro__):
            _note(kind.__name__, error.exit_code, bool(error.where), bool(error.next_step), "error")
        return handled


def _raises(*expected: Any, **more: Any) -> Any:
    found = _real_raises(*expected, **more)
    return _Raises(found) if hasattr(found, "__exit__") else found


class _Both(io.TextIOBase):
    """A stream that passes everything on and keeps it."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.kept: list[str] = []

    def write(self, text: str) -> int:
        self.kept.append(text)
        return int(self.stream.write(text))

    def flush(self) -> None:
        self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def pytest_configure() -> None:
    import routeyard.flows.cli as command_line

    cli: Any = command_line

    real = cli.run

    def run(words: Sequence[str]) -> int:
        both = _Both(sys.stderr)
        sys.stderr = both
        try:
            code = real(words)
        finally:
            if sys.stderr is both:
                sys.stderr = both.stream
        _note_printed("".join(both.kept), code, "run")
        return int(code)

    cli.run = run
    patched: Any = pytest
    subprocess.run, patched.raises = _run, _raises
