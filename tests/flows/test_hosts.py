"""Several hosts on one machine: scheduler, two workers and a store in namespaces of their own.

`sudo pytest -m slow tests/flows/test_hosts.py`; `hosts.py` says what a host is here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.release.storage import local_copy, put
from tests.flows.hosts import (
    IMPATIENT,
    ROOT,
    STORE,
    Hosts,
    answers,
    cluster,
    network,
    store_settings,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with network() as found:
        yield found


def grid(place: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "routeyard", "zoo", "run", str(place), "--no-report"]
    command += ["--routers", "mf,linucb", "--encoders", "tfidf", "--out", str(out), *more]
    return subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **IMPATIENT, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finished(running: subprocess.Popen[str], out: Path) -> Any:
    """Cells of a grid without what was measured."""
    _, said = running.communicate(timeout=900)
    assert running.returncode == 0, said
    table = pq.read_table(out / "cells.parquet").to_pandas()
    return table.drop(columns=["fit_s", "cpu_s", "peak_mb"])


def cells(out: Path) -> int:
    return len(list((out / "cells").glob("*.json")))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from benchmarks.release import make
    from routeyard.datacards.card import render
    from routeyard.pipelines.release.build import write_release

    recipe = {"name": "made", "version": "1.0.0"}
    root, tables = tmp_path_factory.mktemp("releases"), make(900, 3)
    words = ["integral", "river", "derivative", "castle", "limit", "king", "enzyme"]
    texts = pa.array([f"{words[i % 7]} and {words[i % 5]} {words[i % 3]}" for i in range(300)])
    for name in ("question", "prompt"):
        at = tables["queries"].schema.get_field_index(name)
        field = tables["queries"].schema.field(at)
        tables["queries"] = tables["queries"].set_column(at, field, texts)
    return write_release(tables, recipe=recipe, root=root, render_card=render).path


@pytest.fixture(scope="module")
def stored(
    hosts: Hosts,
    release: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The release as it comes back from a slow object store on a host of its own."""
    url = f"http://{hosts.add('store')}:5000"
    hosts.start("store", sys.executable, "-c", STORE, hosts.address["store"])
    answers(url)
    with pytest.MonkeyPatch.context() as environment:
        for name, value in store_settings(url).items():
            environment.setenv(name, value)
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("releases")
        sent = put(release, "s3://releases/one")
        with local_copy(sent.url) as copy:
            target = tmp_path_factory.mktemp("hosts") / "release"
            shutil.copytree(copy, target)
        s3fs.S3FileSystem.clear_instance_cache()
    return target


@pytest.fixture(scope="module")
def on_threads(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("threads")
    return finished(grid(stored, out), out)


def test_a_release_comes_back_whole_from_a_slow_store(
    stored: Path,
    release: Path,
) -> None:
    assert _files(stored) == _files(release)


def _files(folder: Path) -> dict[str, bytes]:
    # Files beside the manifest that a store does not carry are not compared.
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {name: path.read_bytes() for name, path in found.items()}


@pytest.mark.parametrize("loss", ["nothing", "worker", "host"])
def test_the_grid_is_the_same_when_something_is_lost(
    hosts: Hosts, stored: Path, on_threads: Any, tmp_path: Path, loss: str
) -> None:
    with cluster(hosts, loss[0]) as (address, workers):
        running = grid(stored, tmp_path, "--runner", "dask", "--dask-address", address)
        if loss != "nothing":
            deadline = time.monotonic() + 600
            while cells(tmp_path) < 3 and running.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert running.poll() is None, "the grid was done before anything was lost"
            (hosts.kill if loss == "worker" else hosts.cut)(workers[0])
        found = finished(running, tmp_path)
    assert len(found) > 20
    assert found.equals(on_threads)
