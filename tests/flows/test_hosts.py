"""Several hosts on one machine: scheduler, two workers and a store in namespaces of their own.

Each host has its own network stack and address behind a bridge; what they share is the
folder of the run, as hosts share a network file system. Needs root and `ip netns`:
`sudo pytest -m slow tests/flows/test_hosts.py`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.release.storage import local_copy, put

ROOT = Path(__file__).resolve().parents[2]
#: Addresses of this test: 10.203.N.1 is ours, the hosts follow.
NET = f"10.203.{os.getpid() % 250}"
PREFIX = f"ry{os.getpid() % 100_000}"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Hosts:
    """Hosts by name; each is a network namespace on one bridge."""

    def __init__(self) -> None:
        self.address: dict[str, str] = {}
        self.running: dict[str, list[subprocess.Popen[bytes]]] = {}
        self.bridge = f"{PREFIX}b"

    def up(self) -> None:
        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"{NET}.1/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")

    def add(self, name: str) -> str:
        number = len(self.address) + 2
        inside, ours, space = f"{PREFIX}i{number}", f"{PREFIX}o{number}", f"{PREFIX}-{name}"
        self.address[name] = f"{NET}.{number}"
        ip("netns", "add", space)
        ip("link", "add", ours, "type", "veth", "peer", "name", inside)
        ip("link", "set", inside, "netns", space)
        ip("link", "set", ours, "master", self.bridge)
        ip("link", "set", ours, "up")
        for words in (
            ("addr", "add", f"{self.address[name]}/24", "dev", inside),
            ("link", "set", inside, "up"),
            ("link", "set", "lo", "up"),
        ):
            ip("-n", space, *words)
        return self.address[name]

    def start(self, name: str, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        command = ["ip", "netns", "exec", f"{PREFIX}-{name}", *words]
        began = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.running.setdefault(name, []).append(began)
        return began

    def kill(self, name: str) -> None:
        """The process dies, the host stays."""
        for process in self.running.pop(name, []):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def cut(self, name: str) -> None:
        """The host is gone: its packets go nowhere, and nobody says goodbye."""
        number = self.address[name].rpartition(".")[2]
        ip("link", "set", f"{PREFIX}o{number}", "down")

    def down(self) -> None:
        for name in list(self.running):
            self.kill(name)
        for name in self.address:
            subprocess.run(["ip", "netns", "del", f"{PREFIX}-{name}"], capture_output=True)
        subprocess.run(["ip", "link", "del", self.bridge], capture_output=True)


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    pytest.importorskip("distributed", reason="dask.distributed is not installed (extra 'dask')")
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need root and iproute2")
    found = Hosts()
    try:
        try:
            found.up()
            found.add("probe")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
        yield found
    finally:
        found.down()


#: A host that is silent is given up after these times; the defaults wait for minutes.
IMPATIENT = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "20s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "15s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
    "OMP_NUM_THREADS": "1",
}


@contextmanager
def cluster(hosts: Hosts, round_: str) -> Iterator[tuple[str, list[str]]]:
    """A scheduler and two workers, each on a host of its own; address, and the workers' names."""
    scheduler = f"scheduler{round_}"
    address = f"tcp://{hosts.add(scheduler)}:8786"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    hosts.start(scheduler, *dask, "--host", hosts.address[scheduler], "--port", "8786",
                "--no-dashboard", **IMPATIENT)  # fmt: skip
    names = [f"worker{n}{round_}" for n in (1, 2)]
    for name in names:
        words = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"]
        words += ["--host", hosts.add(name), "--nthreads", "1", "--no-dashboard"]
        hosts.start(name, *words, **IMPATIENT)
    try:
        yield address, names
    finally:
        for name in (scheduler, *names):
            hosts.kill(name)


def grid(place: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "flows", "zoo", "run", str(place), "--no-report"]
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


#: moto's S3 that thinks for a third of a second before each answer.
STORE = """
import sys, time
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
moto = DomainDispatcherApplication(create_backend_app)
def slowly(environ, start_response):
    time.sleep(0.3)
    return moto(environ, start_response)
run_simple(sys.argv[1], 5000, slowly, threaded=True)
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from benchmarks.release import make
    from datacards.card import render
    from pipelines.release import write_release

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
        for name, value in _store(url).items():
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


def answers(url: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=2)
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"{url} does not answer")


def _store(url: str) -> Mapping[str, str]:
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


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
