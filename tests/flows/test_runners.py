"""Threads and a Dask cluster give the same release, also when a worker dies on the way.

All of it, with the recorded GSM8K answers in ROUTEYARD_DATA (about ten minutes):
`ROUTEYARD_DATA=… pytest -m slow tests/flows/test_runners.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from routeyard.flows.build import build
from routeyard.flows.tracking import on
from routeyard.schemas.release import MEASURED_COLUMNS
from tests.support.small_recorded import write

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.timeout(1800),
    # Prefect's own server and client, and distributed, warn on their way out.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[None]:
    from prefect.testing.utilities import prefect_test_harness

    pytest.importorskip("prefect_dask", reason="prefect-dask is not installed (extra 'dask')")
    with prefect_test_harness(server_startup_timeout=600):
        yield


def on_threads(recipe: str, yard: Path) -> Path:
    done = on(build, "threads", workers=2)(recipe=recipe, workspace=str(yard), jobs=2)
    return Path(done["release"]["path"])


def on_dask(recipe: str, yard: Path, *, shards: int = 1) -> Path:
    running = on(build, "dask", workers=2)
    done = running(recipe=recipe, workspace=str(yard), jobs=2, shards=shards)
    return Path(done["release"]["path"])


def on_dask_with_a_kill(recipe: str, yard: Path, *, after: int) -> Path:
    """Kill −9 a worker while it labels, once `after` models are done."""
    from distributed import LocalCluster

    killed: list[str] = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:

        def kill() -> None:
            for _ in range(60_000):
                done = len(list(yard.glob("stages/verdicts/*/stage.json")))
                for worker in list(cluster.scheduler.workers.values()):
                    if done >= after and worker.processing:
                        # The nanny starts another one; what ran on this one is run again.
                        os.kill(cluster.workers[worker.name].pid, signal.SIGKILL)
                        killed.extend(str(task.key) for task in list(worker.processing))
                        return
                time.sleep(0.01)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        running = on(build, "dask", dask_address=cluster.scheduler_address)
        done = running(recipe=recipe, workspace=str(yard), jobs=2)
    assert killed, "no worker was labelling when it should have been killed"
    return Path(done["release"]["path"])


def digests(release: Path) -> dict[str, str]:
    """SHA-256 of every file; of the database, whose bytes DuckDB never repeats, the content."""
    found = {
        path.relative_to(release).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in release.rglob("*")
        if path.is_file() and path.suffix not in (".duckdb", ".sha256")
    }
    assert len(found) > 5
    return found | {"database": database_content(release)}


def database_content(release: Path) -> str:
    """Recomputed from the file: the manifest only says what it should be."""
    import duckdb

    from routeyard.pipelines.release.manifest import content

    (file,) = release.glob("*.duckdb")
    with duckdb.connect(str(file), read_only=True) as connection:
        names = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
        tables = {
            name: content(connection.execute(f'SELECT * FROM "{name}"').to_arrow_table())
            for name in sorted(names)
        }
    return json.dumps(tables)


def untimed(release: Path) -> dict[str, Any]:
    """Content of every table without the columns that measure time."""
    import pyarrow.parquet as pq

    from routeyard.pipelines.release.manifest import content

    return {
        path.stem: content(pq.read_table(path), without=MEASURED_COLUMNS)
        for path in sorted((release / "data").glob("*.parquet"))
    }


def test_threads_and_dask_give_identical_files(tmp_path: Path, server: None) -> None:
    recipe = str(write(tmp_path))
    assert digests(on_dask(recipe, tmp_path / "d")) == digests(on_threads(recipe, tmp_path / "t"))


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(tmp_path: Path, server: None) -> None:
    recipe = str(write(tmp_path))
    killed = on_dask_with_a_kill(recipe, tmp_path / "d", after=0)
    assert digests(killed) == digests(on_threads(recipe, tmp_path / "t"))


@pytest.mark.slow
def test_the_demo_is_equal_but_for_measured_times(tmp_path: Path, server: None) -> None:
    threads = on_threads("demo", tmp_path / "t")
    # In shards, so that the workers ask and embed too.
    dask = on_dask("demo", tmp_path / "d", shards=2)
    tables = untimed(threads)
    assert {"responses", "labels", "splits", "removals"} <= set(tables)
    assert untimed(dask) == tables


@pytest.mark.slow
@pytest.mark.data
def test_gsm8k_is_byte_identical_also_when_a_worker_is_killed(
    tmp_path: Path, server: None, data: Path
) -> None:
    os.environ["ROUTEYARD_DATA"] = str(data)  # the workers inherit it
    expected = digests(on_threads("zeroeval_gsm", tmp_path / "threads"))
    assert digests(on_dask("zeroeval_gsm", tmp_path / "dask")) == expected
    killed = on_dask_with_a_kill("zeroeval_gsm", tmp_path / "killed", after=10)
    assert digests(killed) == expected
