"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
import re
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Nothing in the suite may reach a hub; set before any library reads them.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Hundreds of tests start Python anew: what they import is compiled once, whatever is usual here.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Threads of linear algebra that wait for work sleep: each core has a test process of its own.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


# What is collected and imported lives as long as the session. A collection of garbage that walks it
# all takes half a second, and many happen: none looks at it before the end.
def pytest_sessionstart() -> None:
    """No collection of garbage while tests are found: nothing of it is garbage."""
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """From here on, collections of garbage look only at what the tests make."""
    from routeyard.pipelines.common.machine import collect_rarely

    collect_rarely()
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Libraries count what is left of their objects when Python ends."""
    gc.unfreeze()


ROOT = Path(__file__).parents[1]
#: Parts of the distribution without which the core works; where one was deleted, so are its tests.
DELETED = [name for name in ("extensions", "papers") if not (ROOT / name).is_dir()]
_USES = re.compile(
    rf"^(?:from|import) (?:routeyard\.(?:{'|'.join(DELETED)})|benchmarks\.papers)\b", re.MULTILINE
)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Files of tests that import what was deleted."""
    if DELETED and collection_path.suffix == ".py":
        return bool(_USES.search(collection_path.read_text(encoding="utf-8"))) or None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `extensions` call commands or studies of one."""
    for item in items if DELETED else ():
        if item.get_closest_marker("extensions"):
            item.add_marker(pytest.mark.skip(reason=f"{DELETED[0]}/ is not here"))


Call = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The Chromium that is installed. Of a module, since its loop would stand in others' way."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), "")
    if not program:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What begins a command of Python's (`-m …`, `-c …`) that finds most of its imports done."""
    program = str(ROOT / "tests" / "support" / "warm.py")
    address = tmp_path_factory.getbasetemp() / "warm"
    server = subprocess.Popen(
        [sys.executable, program, "serve", str(address)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        cwd=ROOT,
    )
    while not address.exists():
        assert server.poll() is None, "tests/support/warm.py ended at once"
        time.sleep(0.05)
    yield [sys.executable, "-IS", program, "run", str(address)]
    server.communicate()


@pytest.fixture(scope="session")
def call(warm_python: list[str]) -> Call:
    """Runs a `routeyard` command in a process of its own."""

    def run(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
        command = [*warm_python, "-m", "routeyard", *map(str, words)]
        more = {"stdin": subprocess.DEVNULL, "cwd": ROOT, "env": os.environ} | more
        more["env"] = {"PYTHONPATH": str(ROOT), **more["env"]}
        return subprocess.run(command, capture_output=True, text=True, **more)

    return run


@pytest.fixture(scope="session")
def demo_yard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Workspace of an undisturbed demo build, built once for all test processes."""
    from filelock import FileLock

    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent
    yard = shared / "demo" / "yard"
    with FileLock(shared / "demo.lock"):
        if not (yard / "printed.txt").is_file():
            done = subprocess.run(
                [sys.executable, "-m", "routeyard", "demo", "--workspace", str(yard)],
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr
            (yard / "printed.txt").write_text(done.stdout)
    return yard


@pytest.fixture(scope="session")
def demo_release(demo_yard: Path) -> Path:
    return demo_yard / "releases" / "demo" / "1.0.0"


@pytest.fixture(scope="session")
def small_built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded benchmark of `small_recorded` with its workspace `yard`; no test changes it."""
    from tests.support.built_once import built_once
    from tests.support.small_recorded import build

    return built_once(tmp_path_factory, "small", build)


@pytest.fixture
def small(small_built: Path, tmp_path: Path) -> Path:
    """The recipe of a copy of it, in `tmp_path`, beside its workspace `yard`."""
    shutil.copytree(small_built, tmp_path, dirs_exist_ok=True)
    for record in (tmp_path / "yard" / "runs").glob("*.json"):  # it names its recipe
        record.write_text(record.read_text().replace(str(small_built), str(tmp_path)))
    return tmp_path / "recipe.yaml"


@pytest.fixture(scope="session")
def as_a_user(
    demo_yard: Path, warm_python: list[str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict]:
    """A folder with `yard` in it, and a PATH with `routeyard` and `python` on it."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "yard").symlink_to(demo_yard)
    programs = folder / "bin"
    programs.mkdir()
    warm = shlex.join(warm_python)
    lines = {
        "routeyard": f'exec {warm} -m routeyard "$@"',
        "python": f'case "$1" in -c|-m) exec {warm} "$@";; *) exec "{sys.executable}" "$@";; esac',
    }
    for name, line in lines.items():
        script = programs / name
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(script.stat().st_mode | stat.S_IEXEC)
    environment = os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "home"),
    }
    return folder, environment


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of recorded outputs, or a skip (a failure where CI requires it)."""
    folder = os.environ.get("ROUTEYARD_DATA")
    if folder and Path(folder).is_dir():
        return Path(folder)
    reason = "ROUTEYARD_DATA does not name a folder of recorded outputs"
    if os.environ.get("ROUTEYARD_REQUIRE_DATA") == "1":
        pytest.fail(reason + ", and ROUTEYARD_REQUIRE_DATA=1 requires it")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a PostgreSQL server: `ROUTEYARD_TEST_POSTGRES`, or one started for the session."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra 'postgres')")
    if given := os.environ.get("ROUTEYARD_TEST_POSTGRES"):
        yield given
        return
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = str(programs[-1]) if programs else shutil.which("initdb")
    if not found:
        reason = "no PostgreSQL server here (apt-get install postgresql)"
        if os.environ.get("ROUTEYARD_REQUIRE_POSTGRES") == "1":
            pytest.fail(reason + ", and ROUTEYARD_REQUIRE_POSTGRES=1 requires it")
        pytest.skip(reason)
    # The server refuses to run as root: hand it to the account its package makes.
    folder = Path(tempfile.mkdtemp(prefix="routeyard-pg-"))
    run = []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
        run = ["runuser", "-u", "postgres", "--"]
    data, programs_dir = folder / "data", Path(found).parent
    initdb = [found, "-D", data, "-U", "routeyard", "-A", "trust", "-E", "UTF8", "--no-sync"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    control = [*run, str(programs_dir / "pg_ctl"), "-D", str(data), "-w"]
    options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": "/"}
    try:
        subprocess.run([*run, *map(str, initdb)], **quiet)
        subprocess.run([*control, "-l", str(folder / "log"), "-o", options, "start"], **quiet)
        yield f"postgresql://routeyard@127.0.0.1:{port}/postgres"
        subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """Address of an empty database."""
    import psycopg

    name = f"t{uuid.uuid4().hex[:16]}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return postgres_server.rpartition("/")[0] + f"/{name}"


@pytest.fixture
def without_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """`evaluate` writes its tables without a page: drawing takes most of its time."""
    from routeyard.flows.evaluation import evaluate

    whole = evaluate.write_evaluation
    monkeypatch.setattr(
        evaluate, "write_evaluation", lambda *given, page=False: whole(*given, page=False)
    )


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of all routers of ours that are fitted, in order."""
    from routeyard.pipelines.evaluate import fit

    found: list[str] = []
    before = fit.fit

    def noted(router, *learnt):
        found.append(router.name)
        return before(router, *learnt)

    monkeypatch.setattr(fit, "fit", noted)
    return found
