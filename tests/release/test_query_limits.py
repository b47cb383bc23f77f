"""A query's limits of time and memory: no single expression and no large answer passes them.

Each runs in a process of ours whose own address space is limited, as a service would limit
it: what a query takes must not be taken from the one that asks.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common.machine import OutOfMemory
from routeyard.pipelines.release.query import QueryLimit, SqlProcess, query_release, write_answer

#: What the asking process may take beyond what it has when it starts to ask.
SPARE = 400 << 20

ASK = """
import resource, sys
from pathlib import Path
import pyarrow.ipc
from routeyard.pipelines.common.errors import RouteyardError
from routeyard.pipelines.release.query import SqlProcess
from routeyard.pipelines.release.query import query_release

query_release(Path(sys.argv[1]), "SELECT 1")
with open("/proc/self/statm") as stream:
    used = int(stream.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {spare}, used + {spare}))
try:
    {body}
except RouteyardError as error:
    print(type(error).__name__, error.what)
"""


@pytest.fixture
def ask(release, warm_python) -> Callable[[str], str]:
    """What a process with little address space prints when it runs some code."""

    def ask(body: str) -> str:
        code = ASK.format(spare=SPARE, body=textwrap.indent(body, "    ").strip())
        done = subprocess.run(
            [*warm_python, "-c", code, str(release)],
            capture_output=True, text=True, timeout=110, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.strip()

    return ask


def within(sql: str, **limits: object) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in limits.items())
    return f"print(query_release(Path(sys.argv[1]), {sql!r}, {given}).num_rows)"


#: One expression that looks at no clock: an interrupt is not heard before it ends.
DEAF = "SELECT levenshtein(repeat('a', 60000), repeat('b', 60000))"


def test_an_expression_that_hears_no_interrupt_is_ended(release) -> None:
    started = time.monotonic()
    with SqlProcessOf(release) as process:
        process.table("SELECT 1", timeout_s=60)
        started = time.monotonic()
        with pytest.raises(QueryLimit, match=r"longer than 0\.2 s"):
            process.table(DEAF, timeout_s=0.2)
        assert time.monotonic() - started < 2
        # The next question is answered, by another process.
        assert process.table("SELECT 42 AS n", timeout_s=60).to_pylist() == [{"n": 42}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT length(repeat('x', 3000000000))",
        "SELECT length(repeat(repeat('x', 1000000), 3000))",
        "SELECT len(range(2000000000))",
        "SELECT list(range) FROM range(200000000)",
        "SELECT string_agg(repeat('x', 1000000), '') FROM range(10000)",
        "SELECT length(format('{:>2000000000}', 'x'))",
        "SELECT count(*) FROM (SELECT DISTINCT repeat('x', 20000) || range FROM range(1000000))",
    ],
)
def test_an_expression_that_takes_memory_is_refused_and_takes_none_of_ours(ask, sql) -> None:
    said = ask(within(sql, memory_limit="200MB", timeout_s=60.0))
    assert said.startswith(("QueryLimit", "QueryError")), said


@pytest.mark.parametrize(
    "sql",
    [
        # 10 GB of text; 1,000 million rows; rows of 3 MB; 500 columns of 400 kB.
        "SELECT repeat('x', 1000000) AS text FROM range(10000)",
        "SELECT range AS n, range AS m FROM range(1000000000)",
        "SELECT list_transform(range(100), lambda i: repeat('x', 30000)) FROM range(1000)",
        "FROM range(9) SELECT " + ", ".join(f"repeat('x', 400000) AS c{i}" for i in range(500)),
    ],
    ids=["long", "many", "nested", "wide"],
)  # fmt: skip
def test_a_large_answer_ends_at_the_limit(ask, sql) -> None:
    said = ask(within(sql, memory_limit="150MB", timeout_s=60.0))
    assert said.startswith("QueryLimit"), said


def test_rows_are_streamed_within_the_limit(ask) -> None:
    # 2 GB pass through a process that may take 400 MB, and a file of them is written.
    body = """
process = SqlProcess(Path(sys.argv[1]), memory_limit="150MB")
schema, batches = process.stream("SELECT repeat('x', 1000) AS t FROM range(2000000)", timeout_s=90)
print(sum(batch.nbytes for batch in batches) > 2_000_000_000)
process.close()
"""
    assert ask(body) == "True"


def test_an_answer_is_written_as_it_comes(release, tmp_path) -> None:
    out = tmp_path / "rows.parquet"
    with SqlProcessOf(release) as process:
        sql = "SELECT range AS n FROM range(1000000)"
        assert write_answer(*process.stream(sql, timeout_s=60), out) == 1_000_000
    assert pq.read_metadata(out).num_rows == 1_000_000
    assert sorted(os.listdir(tmp_path)) == ["releases", "rows.parquet"]


def test_a_query_that_fails_leaves_the_file_that_was_there(release, tmp_path) -> None:
    out = tmp_path / "rows.csv"
    out.write_text("kept\n")
    sql = "SELECT CASE WHEN range < 500000 THEN 1 ELSE error('late') END FROM range(1000000)"
    with SqlProcessOf(release) as process, pytest.raises(Exception, match="late"):
        write_answer(*process.stream(sql, timeout_s=60), out)
    assert out.read_text() == "kept\n"
    assert sorted(os.listdir(tmp_path)) == ["releases", "rows.csv"]


def test_a_process_that_is_killed_is_said_and_replaced(release) -> None:
    with SqlProcessOf(release) as process:
        _, batches = process.stream("SELECT range FROM range(100000000)", timeout_s=60)
        next(batches)
        child = process._worker._process
        assert child is not None
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(OutOfMemory, match="killed"):
            for _ in batches:
                pass
        assert process.table("SELECT 1 AS n", timeout_s=60).num_rows == 1


def test_an_answer_left_in_the_middle_is_not_the_next_one(release) -> None:
    with SqlProcessOf(release) as process:
        _, batches = process.stream("SELECT range FROM range(100000000)", timeout_s=60)
        next(batches)
        batches.close()
        assert process.table("SELECT 7 AS n", timeout_s=60).to_pylist() == [{"n": 7}]


def test_the_process_leaves_with_the_one_that_asks(release) -> None:
    asked = {
        "function": "routeyard.pipelines.release.query:answer",
        "args": [DEAF],
        "cpu_s": None,
    }
    question = json.dumps(asked | {"memory": 1 << 32, "file_size": 0}).encode() + b"\n"
    code = (
        "import os, sys, signal\nfrom pathlib import Path\n"
        "from routeyard.pipelines.release.query import SqlProcess\n"
        "p = SqlProcess(Path(sys.argv[1]))\np.table('SELECT 1', timeout_s=60)\n"
        "print(p._worker._process.pid, flush=True)\n"
        f"p._worker._process.stdin.write({question!r})\n"
        "p._worker._process.stdin.flush()\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(release)], capture_output=True, text=True, check=False
    )
    pid = int(done.stdout)
    for _ in range(100):
        if not os.path.exists(f"/proc/{pid}") or _zombie(pid):
            return
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError("the process went on after the one that asked was gone")


def test_memory_words_that_are_none(release) -> None:
    with pytest.raises(Exception, match="no amount of memory"):
        query_release(release, "SELECT 1", memory_limit="lots")


def _zombie(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as stream:
        return stream.read().rpartition(")")[2].split()[0] == "Z"


class SqlProcessOf(SqlProcess):
    def __enter__(self) -> SqlProcessOf:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
