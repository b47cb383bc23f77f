"""Too little memory: a named error that says how much is needed, never a traceback or a finding."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from routeyard.flows import cli
from routeyard.flows import workspace as memory_needs
from routeyard.pipelines.common import machine as memory
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.isolation import Limits, Worker
from routeyard.pipelines.label import rules as scoring_processes
from routeyard.pipelines.release.manifest import first_line
from tests.conftest import ROOT
from tests.isolation import in_child

GB, POOL = 10**9, "ARROW_DEFAULT_MEMORY_POOL"


def limited(size: int, *words: object) -> subprocess.CompletedProcess[str]:
    """A `routeyard` command in a process with so many bytes of address space."""
    return subprocess.run(
        [sys.executable, "-m", "routeyard", *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )


@pytest.mark.parametrize(
    ("command", "size"),
    [
        ("build", 14 * GB // 10),
        pytest.param("evaluate", 12 * GB // 10, marks=pytest.mark.slow),
        ("verify", 14 * GB // 10),
        pytest.param("audit", GB, marks=pytest.mark.slow),
    ],
)
def test_an_address_space_that_is_too_small_is_named_before_anything_begins(
    command: str, size: int, demo_release: Path, tmp_path: Path
) -> None:
    # They ended in tracebacks and aborts, and `verify` found faults in a sound release.
    words: dict[str, list[object]] = {
        "build": ["zeroeval_gsm", "--workspace", tmp_path / "yard"],
        "evaluate": [demo_release, "--router", "random", "--out", tmp_path / "out"],
        "verify": [demo_release],
        "audit": [demo_release],
    }
    ended = limited(size, command, *words[command])
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    assert " GB of address space" in ended.stderr
    assert "the limit of this process leaves" in ended.stderr
    assert "next:" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_a_command_that_needs_little_runs_within_its_limit(tmp_path: Path) -> None:
    ended = limited(15 * GB // 10, "recipe", "check", "demo", "--print")
    assert ended.returncode == 0, ended.stderr


def test_libraries_that_cannot_be_loaded_are_named() -> None:
    # `status` loads no pyarrow, so that 0.6 GB suffice for it.
    ended = limited(4 * GB // 10, "status", "demo")
    assert ended.returncode == 1
    assert "libraries alone reserve" in ended.stderr


def errors() -> list[BaseException]:
    """As libraries raise them where memory runs out."""
    import duckdb

    found: list[BaseException] = [
        MemoryError(),
        OSError(12, "Cannot allocate memory"),
        ImportError("libx.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily"),
        duckdb.OutOfMemoryException("Out of Memory Error: Allocation failure"),
        BrokenProcessPool("A process in the process pool was terminated abruptly"),
    ]
    makers: list[Any] = [
        lambda: np.empty(1 << 50),
        lambda: pa.allocate_buffer(1 << 60),
        lambda: duckdb.connect(config={"memory_limit": "1MB"}).execute(
            "SET temp_directory=''; CREATE TABLE t AS SELECT range::text FROM range(10000000)"
        ),
    ]
    for make in makers:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is looked at below
            make()
        found.append(caught.value)
    return found


def test_what_libraries_raise_becomes_one_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for raised in errors():

        def ends(words: list[str], raised: BaseException = raised) -> int:
            raise raised

        monkeypatch.setattr(cli, "_call", ends)
        assert cli.run(["build", "x"]) == 1
        said = capsys.readouterr().err
        assert said.startswith("error: "), raised
        assert "in `routeyard build`" in said
        assert "GB of memory can be had now" in said
        assert "next:" in said
        with pytest.raises(memory.OutOfMemory):  # no finding of a release
            first_line(raised)
    assert first_line(ValueError("no\nmore")) == "no"
    assert memory.named(ValueError("out of memory"), "x") is None


def test_what_an_error_was_raised_from_counts() -> None:
    wrapped = ValueError("cannot be read")
    wrapped.__cause__ = MemoryError()
    assert memory.is_exhausted(wrapped)
    wrapped.__cause__, wrapped.__context__ = None, MemoryError()
    assert not memory.is_exhausted(wrapped)


def test_a_row_is_not_graded_by_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    # It became an `error` verdict of the row that was read when memory ran out.
    class Hungry:
        at_once = None

        def score(self, *_: object) -> None:
            raise MemoryError

    monkeypatch.setattr(scoring_processes, "SCORERS", SimpleNamespace(get=lambda name: Hungry()))
    asked = {"question": "q", "references": ["1"], "choices": [], "metadata": ""}
    row = {"question": 0, "text": "1", "graded_against": None, "status": "ok"}
    tables = (pa.Table.from_pylist([one]) for one in (asked | {"scorer": "numeric"}, row))
    with pytest.raises(MemoryError):
        scoring_processes.read_shard(scoring_processes.Shard(*tables), {})


def test_a_limited_process_that_is_killed_says_nothing_of_its_file() -> None:
    child = Worker(Limits(memory=256 << 20, wall_s=20.0), in_child.prepare, 1)
    try:
        child.call(in_child.echo, 1)
        with pytest.raises(memory.OutOfMemory, match="the system killed"):
            child.call(in_child.end_by, signal.SIGKILL)
        assert child.call(in_child.echo, 2) == 2
    finally:
        child.close()


_OUTSIDE = """
import resource, sys
from routeyard.pipelines.common.isolation import Limits, LimitExceeded, Worker
from routeyard.pipelines.common.machine import OutOfMemory
from tests.isolation import in_child
resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000,) * 2)
child = Worker(Limits(memory=int(sys.argv[1]), wall_s=60.0), in_child.prepare, 1)
try:
    child.call(in_child.allocate, 3 << 30)
except (LimitExceeded, OutOfMemory) as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize(("own", "says"), [(1 << 28, "LimitExceeded"), (1 << 33, "OutOfMemory")])
def test_a_limit_from_outside_is_told_from_the_own_one(own: int, says: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _OUTSIDE, str(own)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.strip() == says, ended.stderr


@pytest.mark.parametrize("version", [1, 2])
def test_what_a_container_leaves_is_counted_on_every_level(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, most, used, freed = memory._V1 if version == 1 else memory._V2
    (tmp_path / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")
    line = "5:memory:/a/b\n" if version == 1 else "0::/a/b\n"
    (tmp_path / "cgroup").write_text(line + "1:name=systemd:/../x\n")
    monkeypatch.setattr(memory, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "_CONTROL", tmp_path / "control")
    assert memory.available() == 8_192_000_000
    outer, inner = tmp_path / "control" / folder / "a", tmp_path / "control" / folder / "a/b"
    inner.mkdir(parents=True)
    (inner / most).write_text("max\n" if version == 2 else "9223372036854771712\n")
    (inner / used).write_text("1\n")
    (outer / most).write_text("3000000000\n")
    (outer / used).write_text("2000000000\n")
    (outer / "memory.stat").write_text(f"anon 1\n{freed} 500000000\n")
    assert memory.available() == 1_500_000_000
    (tmp_path / "control" / folder / most).write_text("1000000000\n")  # as seen in a container
    assert memory.available() == 1_000_000_000


def test_estimates_grow_with_the_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "available", lambda: 2 * GB)
    (tmp_path / "answers.jsonl").write_bytes(b"")
    os.truncate(tmp_path / "answers.jsonl", GB)
    memory_needs.check_build(1_000_000)
    with pytest.raises(memory.OutOfMemory, match=r"3,000,000 answers .* 2\.9 GB .* 2\.0 GB"):
        memory_needs.check_build(3_000_000)
    with pytest.raises(memory.OutOfMemory, match=r"3\.2 GB"):
        memory_needs.check_build(1_000, [tmp_path / "answers.jsonl"])
    with pytest.raises(memory.OutOfMemory, match="an audit of 1,000 MB"):
        memory_needs.check_audit(tmp_path)
    monkeypatch.setattr(memory, "available", lambda: None)
    memory_needs.check_build(10**12)


def test_errors_of_files_stay_errors_of_files() -> None:
    assert memory.named(BadInput("x"), "y") is None


def test_a_command_has_python_look_for_garbage_rarely() -> None:
    program = (
        "import gc, sys\n"
        "from routeyard.flows import cli\n"
        "cli.run = lambda words: print(*gc.get_threshold()) or 0\n"
        "cli.main([])\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == ["50000", "20", "20"]


def test_a_command_has_arrow_take_memory_from_the_system_unless_another_pool_is_named() -> None:
    program = (
        "from routeyard.flows import cli\n"
        "def run(words):\n"
        "    import pyarrow\n"
        "    print(pyarrow.default_memory_pool().backend_name)\n"
        "    return 0\n"
        "cli.run = run\n"
        "cli.main([])\n"
    )
    unset = {key: value for key, value in os.environ.items() if key != POOL}
    for environment, expected in ((unset, "system"), (unset | {POOL: "mimalloc"}, "mimalloc")):
        command = [sys.executable, "-c", program]
        printed = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        assert printed.stdout.split() == [expected]


def test_a_process_that_labels_looks_for_garbage_rarely() -> None:
    with scoring_processes._pool(1) as pool:
        assert pool.submit(gc.get_threshold).result() == (50_000, 20, 20)
