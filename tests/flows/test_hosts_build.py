"""A build over several hosts, its release through a slow store, and an evaluation of that.

On workers run the verdicts of each model, embeddings and searches for duplicates in shards, and
asking in shards. The other stages, and `evaluate`, run where the command was given.
`sudo pytest -m slow tests/flows/test_hosts_build.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
from tests.flows.test_prefect import digests
from tests.support.small_recorded import write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    # DuckDB warns of a copy where the content of a database is compared.
    pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result"),
]

MODELS, QUESTIONS = 10, 60

BUILD = """
import json, sys
from routeyard.flows.build import build
from routeyard.flows.tracking import on
recipe, yard, address = sys.argv[1:]
running = on(build, "dask", dask_address=address) if address else on(build, "threads")
done = running(recipe=recipe, workspace=yard, jobs=2)
print(json.dumps(done["release"]["path"]))
"""
#: On a host of its own: the release comes from the store and is evaluated there.
EVALUATE = """
import subprocess, sys
from routeyard.pipelines.release.storage import local_copy
url, out = sys.argv[1:]
with local_copy(url) as release:
    subprocess.run([sys.executable, "-m", "routeyard", "evaluate", str(release), "--out", out,
                    "--router", "best-generalist", "--router", "random", "--resamples", "200"],
                   check=True)
"""


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with network() as found:
        yield found


@pytest.fixture(scope="module")
def api(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Prefect's server where the command is given, at an address that every host reaches."""
    home, address = tmp_path_factory.mktemp("prefect"), hosts.ours
    told = {
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": f"http://{address}:4200/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        **IMPATIENT,
    }
    words = [sys.executable, "-m", "prefect", "server", "start", "--host", address, "--no-ui"]
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            words, cwd=ROOT, env={**os.environ, **told}, stdout=log, stderr=log
        )
        try:
            answers(f"http://{address}:4200/api/health")
            yield told
        finally:
            server.terminate()
            server.wait(timeout=60)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten models of rising skill on sixty sums."""
    folder = tmp_path_factory.mktemp("recipe")
    pool = {"models": [{"model_id": f"model-{k}"} for k in range(MODELS)]}
    path = write(folder, pool=pool)
    asked, said = [], []
    for i in range(QUESTIONS):
        asked.append({"id": str(i), "question": f"What is {i} + 1?", "answer": str(i + 1)})
        for k in range(MODELS):
            right = (7 * i + 3 * k) % MODELS <= k
            output = f"Let me see. Answer: {i + 1 if right else i}"
            said.append({"id": str(i), "model": f"model-{k}", "output": output})
    for name, rows in (("questions", asked), ("answers", said)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def building(recipe: Path, yard: Path, address: str, api: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(recipe), str(yard), address], cwd=ROOT,
        env={**os.environ, **api, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def built(running: subprocess.Popen[str]) -> Path:
    out, said = running.communicate(timeout=900)
    assert running.returncode == 0, said[-3000:]
    return Path(json.loads(out.splitlines()[-1]))


@pytest.fixture(scope="module")
def on_threads(recipe: Path, api: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(building(recipe, tmp_path_factory.mktemp("threads"), "", api))


@pytest.fixture(scope="module")
def store(hosts: Hosts) -> dict[str, str]:
    """An object store on a host of its own that thinks before each answer; how to reach it."""
    url = f"http://{hosts.add('store')}:5000"
    hosts.start("store", sys.executable, "-c", STORE, hosts.address["store"])
    answers(url)
    return dict(store_settings(url))


PUT = """
import sys
from pathlib import Path
import s3fs
from routeyard.pipelines.release.storage import put
s3fs.S3FileSystem().makedirs(f"releases-{sys.argv[2]}", exist_ok=True)
print(put(Path(sys.argv[1]), f"s3://releases-{sys.argv[2]}").url)
"""


def evaluated(
    hosts: Hosts, release: Path, name: str, store: dict[str, str], out: Path
) -> dict[str, bytes]:
    """Tables of an evaluation on another host, of the release as the slow store gives it."""
    environment = {**os.environ, **store, "PYTHONPATH": str(ROOT)}
    sent = subprocess.run(
        [sys.executable, "-c", PUT, str(release), name],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert sent.returncode == 0, sent.stderr[-3000:]
    hosts.add(f"reader-{name}")
    url = sent.stdout.split()[-1]
    running = hosts.start(
        f"reader-{name}", sys.executable, "-c", EVALUATE, url, str(out), **store, **IMPATIENT
    )
    assert running.wait(timeout=900) == 0
    names = ("metrics", "curves", "comparisons", "choices", "profiles")
    return {name: (out / f"{name}.parquet").read_bytes() for name in names}


@pytest.fixture(scope="module")
def plainly(
    hosts: Hosts, on_threads: Path, store: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    return evaluated(hosts, on_threads, "plain", store, tmp_path_factory.mktemp("evaluated"))


@pytest.mark.parametrize("loss", ["nothing", "worker", "host"])
def test_a_build_and_its_evaluation_are_the_same_when_something_is_lost(
    hosts: Hosts,
    api: dict[str, str],
    recipe: Path,
    on_threads: Path,
    store: dict[str, str],
    plainly: dict[str, bytes],
    tmp_path: Path,
    loss: str,
) -> None:
    yard = tmp_path / "yard"
    with cluster(hosts, f"b{loss[0]}", **api) as (address, workers):
        running = building(recipe, yard, address, api)
        if loss != "nothing":
            lose(hosts, running, yard, workers[0], loss)
        release = built(running)
    assert digests(release) == digests(on_threads)
    assert evaluated(hosts, release, loss, store, tmp_path / "out") == plainly


def lose(hosts: Hosts, running: Any, yard: Path, worker: str, loss: str) -> None:
    """A worker's process, or its host, once the verdicts of some models are filed."""
    deadline = time.monotonic() + 600
    while (filed := len(list(yard.glob("stages/verdicts/*/stage.json")))) < 2:
        assert time.monotonic() < deadline
        assert running.poll() is None, running.stderr.read()[-3000:]
        time.sleep(0.02)
    assert filed < MODELS, "all verdicts were filed before anything was lost"
    (hosts.kill if loss == "worker" else hosts.cut)(worker)
