"""Threads and a Dask cluster give the same release, also when a worker dies on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.build import build
from flows.runners import on
from tests.flows.small_recorded import write

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    # Prefect's own server and client, and distributed, warn on their way out.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[None]:
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
        yield


def hashes(release: str) -> dict[str, str]:
    path = Path(release)
    return {
        p.relative_to(path).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in path.rglob("*")
        if p.is_file() and p.suffix != ".duckdb"
    }


def test_threads_and_dask_give_identical_files(tmp_path: Path, server: None) -> None:
    pytest.importorskip("prefect_dask", reason="prefect-dask is not installed (extra 'dask')")
    recipe = str(write(tmp_path))
    found = []
    for runner in ("threads", "dask"):
        running = on(build, runner, workers=2)  # type: ignore[arg-type]
        done = running(recipe=recipe, workspace=str(tmp_path / runner), jobs=2)
        found.append(hashes(done["release"]["path"]))
    assert found[0] == found[1]
    assert len(found[0]) > 5


def test_a_killed_worker_changes_nothing(tmp_path: Path, server: None) -> None:
    pytest.importorskip("prefect_dask", reason="prefect-dask is not installed (extra 'dask')")
    import os
    import signal
    import threading
    import time

    from distributed import LocalCluster

    recipe = str(write(tmp_path))
    direct = build.fn(recipe=recipe, workspace=str(tmp_path / "direct"), jobs=1)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        done: list[str] = []

        def kill_when_labelling() -> None:
            for _ in range(6000):
                if list((tmp_path / "dask").glob("stages/collect/*/stage.json")):
                    break
                time.sleep(0.02)
            # The nanny starts another one; what ran on the first is run again.
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
            done.append("killed")

        killer = threading.Thread(target=kill_when_labelling)
        killer.start()
        running = on(build, "dask", dask_address=cluster.scheduler_address)
        built = running(recipe=recipe, workspace=str(tmp_path / "dask"), jobs=2)
        killer.join()
    assert done == ["killed"]
    assert hashes(built["release"]["path"]) == hashes(direct["release"]["path"])
