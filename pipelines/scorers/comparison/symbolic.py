"""Asks the symbolic worker, with a time limit that is kept by killing it."""

from __future__ import annotations

import atexit
import json
import os
import selectors
import subprocess
import sys
import threading
from collections import Counter
from functools import lru_cache

#: Seconds for one comparison, and for the worker to start (it imports sympy).
LIMIT, START = 5.0, 120.0
#: Longer expressions are not handed on: parsing alone would take the limit.
LONGEST = 600


class TookTooLong(Exception):
    """A comparison did not end within the limit; the worker has been killed."""


class _Worker:
    """One worker process of one process, restarted after a kill; safe to share by threads."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, one: str, other: str, limit: float) -> bool | None:
        with self.lock:
            if self.process is not None and self.process.poll() is not None:
                self.stop()  # it died; close its pipes
            if self.process is None:
                self._start()
            answer = self._exchange([one, other], limit)
            return None if answer is None else bool(answer)

    def _start(self) -> None:
        folders = [os.getcwd(), *(path for path in sys.path if path)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pipelines.scorers.comparison.symbolic_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "OMP_NUM_THREADS": "1"},
        )
        if self._exchange(["1", "1"], START) is not True:
            raise RuntimeError(
                "the symbolic worker does not work; try "
                "`python -m pipelines.scorers.comparison.symbolic_worker`"
            )

    def _exchange(self, pair: list[str], limit: float) -> object:
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(pair).encode() + b"\n")
            process.stdin.flush()
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                ready = selector.select(limit)
            if not ready:
                self.stop()
                raise TookTooLong
            line = process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:  # the worker died (memory, stack): this pair cannot be settled
            self.stop()
            return None
        return json.loads(line)

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        continue


_worker = _Worker()


def _mine() -> _Worker:
    """This process's worker: one inherited by a fork belongs to the parent."""
    global _worker
    if _worker.owner != os.getpid():
        _worker = _Worker()
    return _worker


#: Pairs that took too long, and how often each side did: they are not tried again.
_slow_pairs: set[tuple[str, str]] = set()
_slow_sides: Counter[str] = Counter()
#: An expression that was part of so many time-outs is given up for this process: one bad
#: reference would otherwise cost the limit once for every model.
GIVEN_UP = 2
_MOST_REMEMBERED = 65_536


def same(one: str, other: str, limit: float = LIMIT) -> bool | None:
    """Whether two LaTeX texts are equal; None when one cannot be read.

    Raises:
        TookTooLong: the comparison did not end within `limit` seconds, now or
            before, or one side is known for that.
    """
    if len(one) > LONGEST or len(other) > LONGEST:
        return None
    if (one, other) in _slow_pairs or max(_slow_sides[one], _slow_sides[other]) >= GIVEN_UP:
        raise TookTooLong
    try:
        return _same(one, other, limit)
    except TookTooLong:
        if len(_slow_pairs) >= _MOST_REMEMBERED:
            _slow_pairs.clear()
            _slow_sides.clear()
        _slow_pairs.add((one, other))
        _slow_sides.update((one, other))
        raise


@lru_cache(maxsize=65536)
def _same(one: str, other: str, limit: float) -> bool | None:
    return _mine().ask(one, other, limit)


def forget() -> None:
    """Forget time-outs, as a new process does."""
    _slow_pairs.clear()
    _slow_sides.clear()
    _same.cache_clear()


def close() -> None:
    """Stop the worker; the next comparison starts another."""
    if _worker.owner == os.getpid():
        _worker.stop()


atexit.register(close)
