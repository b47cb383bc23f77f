"""Hosts on one machine, each a network namespace on one bridge, and what runs on them.

Each host has its own network stack and address; what they share is the folder of the run, as
hosts share a network file system. Needs root and `ip netns`.
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
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Addresses of this test: 10.203.N.1 is ours, the hosts follow.
NET = f"10.203.{os.getpid() % 250}"
PREFIX = f"ry{os.getpid() % 100_000}"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Hosts:
    """Hosts by name; each is a network namespace on one bridge."""

    def __init__(self) -> None:
        self.address: dict[str, str] = {}
        self.running: dict[str, list[subprocess.Popen[bytes]]] = {}
        self.bridge = f"{PREFIX}b"
        #: Where the hosts reach what runs beside them.
        self.ours = f"{NET}.1"

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
            with suppress(ProcessLookupError):  # it ended by itself
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


@contextmanager
def network() -> Iterator[Hosts]:
    """A bridge for hosts, or a test that is skipped where there can be none."""
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
def cluster(hosts: Hosts, round_: str, **environment: str) -> Iterator[tuple[str, list[str]]]:
    """A scheduler and two workers, each on a host of its own; address, and the workers' names."""
    scheduler = f"scheduler{round_}"
    address = f"tcp://{hosts.add(scheduler)}:8786"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    hosts.start(scheduler, *dask, "--host", hosts.address[scheduler], "--port", "8786",
                "--no-dashboard", **{**IMPATIENT, **environment})  # fmt: skip
    names = [f"worker{n}{round_}" for n in (1, 2)]
    for name in names:
        words = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"]
        words += ["--host", hosts.add(name), "--nthreads", "1", "--no-dashboard"]
        hosts.start(name, *words, **{**IMPATIENT, **environment})
    try:
        yield address, names
    finally:
        for name in (scheduler, *names):
            hosts.kill(name)


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


def answers(url: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=2)
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"{url} does not answer")


def store_settings(url: str) -> Mapping[str, str]:
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
