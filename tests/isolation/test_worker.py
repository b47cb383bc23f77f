"""The limited process: what it returns, and what becomes of a call that takes too much."""

from __future__ import annotations

import gc
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.isolation import (
    FunctionFailed,
    LimitExceeded,
    Limits,
    ProcessEnded,
    Worker,
)
from routeyard.pipelines.common.isolation.worker import START_S
from tests.isolation import in_child

LIMITS = Limits(memory=256 << 20, wall_s=20.0, cpu_s=1.0)


@pytest.fixture
def child() -> Iterator[Worker]:
    with closing(Worker(LIMITS, in_child.prepare, 41)) as started:
        yield started


def test_values_come_back_as_they_are(child: Worker) -> None:
    given = [None, True, 2**70, "\ud800 é", [], {"a": [1.5]}]
    assert child.call(in_child.echo, given) == given
    assert math.isnan(child.call(in_child.echo, float("nan")))
    assert child.call(in_child.prepared) == 41
    with closing(child.stream(in_child.batches, 3)) as pieces:
        schema, *rows, last = pieces
    assert schema == pa.schema([("n", pa.int64())])
    assert [batch.to_pylist() for batch in rows] == [[{"n": 0}], [{"n": 1}], [{"n": 2}]]
    assert last == {"rows": 3}


@pytest.mark.parametrize(
    ("function", "limit"), [(in_child.loop, "time"), (in_child.grow, "memory")]
)
def test_a_call_that_takes_too_much_is_ended_and_the_next_is_answered(
    child: Worker, function: Callable[[], Any], limit: str
) -> None:
    with pytest.raises(LimitExceeded) as caught:
        child.call(function)
    assert caught.value.limit == limit
    assert child.call(in_child.echo, 1) == 1


def test_waiting_is_limited_whatever_is_computed(child: Worker) -> None:
    child.call(in_child.echo, 1)
    started = time.monotonic()
    with pytest.raises(LimitExceeded):
        child.call(in_child.sleep, limits=Limits(memory=1 << 30, wall_s=0.2))
    assert time.monotonic() - started < 5


def test_an_abort_is_an_error_with_a_name(child: Worker) -> None:
    with pytest.raises(ProcessEnded, match="SIGABRT") as caught:
        child.call(in_child.abort)
    assert caught.value.next_step
    assert child.call(in_child.echo, 1) == 1


def test_errors_cross_as_what_they_are(child: Worker) -> None:
    with pytest.raises(SourceError) as caught:
        child.call(in_child.refuse)
    assert (caught.value.what, caught.value.where) == ("no", "there")
    with pytest.raises(FunctionFailed, match=r"^ZeroDivisionError: "):
        child.call(in_child.divide)


def test_a_file_is_limited_and_an_answer_too(child: Worker, tmp_path: Path) -> None:
    with pytest.raises(FunctionFailed, match="large"):
        child.call(in_child.write, str(tmp_path / "file"))
    some = Limits(memory=1 << 30, wall_s=20.0, file_size=1 << 20, answer=1 << 10)
    child.call(in_child.write, str(tmp_path / "file"), limits=some)
    with pytest.raises(LimitExceeded):
        child.call(in_child.echo, "x" * 2_000, limits=some)


def test_its_own_children_end_with_it(child: Worker) -> None:
    pid = child.call(in_child.fork)
    os.kill(pid, 0)
    child.close()
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    assert "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_setup_that_fails_says_why() -> None:
    with pytest.raises(SourceError, match="no"), closing(Worker(LIMITS, in_child.refuse)) as child:
        child.call(in_child.echo, 1)
    assert LIMITS.wall_s < START_S
    assert child._process is None


def test_a_worker_in_use_that_is_collected_as_garbage_ends_its_process() -> None:
    child = Worker(LIMITS, in_child.prepare, 41)
    child.call(in_child.prepared)
    assert child._process is not None
    pid = child._process.pid
    gc.collect()  # so that the process is older than what is to be collected with it
    stream = child.stream(in_child.batches, 3)
    next(stream)
    cycle: list[Any] = [child, stream]
    cycle.append(cycle)
    del child, stream, cycle
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    assert [str(one.message) for one in caught] == []
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_interrupted_call_leaves_no_answer_for_the_next(
    child: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Trap: the answer of the first call waits in the pipe, and the second call would read it.
    def interrupted(size: int, left: float) -> tuple[bytes, float]:
        raise KeyboardInterrupt

    assert child.call(in_child.prepared) == 41  # it runs
    with monkeypatch.context() as patched:
        patched.setattr(child, "_read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            child.call(in_child.echo, "first")
    assert child.call(in_child.echo, "second") == "second"
