"""A real Prefect server: tracked builds, threads and Dask, deployments, parameters and logs.

All runs on Dask, with the recorded GSM8K answers in ROUTEYARD_DATA (about ten minutes):
`ROUTEYARD_DATA=… pytest -m slow tests/flows/test_prefect.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from routeyard.flows.build import build, run_build
from routeyard.flows.deploy import deploy, refresh
from routeyard.flows.tracking import api_configured, limit_name, on, start
from routeyard.pipelines.common.errors import BadInput, GateFailed, ProviderError
from routeyard.schemas.release import MEASURED_COLUMNS
from tests.support.small_recorded import write

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.timeout(1800),
    # Prefect's own server and client, and distributed, warn on their way out.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of a server, which all tests here share: each looks at what is new or its own."""
    from prefect.client.orchestration import get_client
    from prefect.testing.utilities import prefect_test_harness

    with pytest.MonkeyPatch.context() as patch:
        # The server keeps events for five seconds before it stores them.
        for service in ("EVENT_PERSISTER", "TASK_RUN_RECORDER"):
            patch.setenv(f"PREFECT_SERVER_SERVICES_{service}_FLUSH_INTERVAL", "0.1")
        with prefect_test_harness(server_startup_timeout=600), get_client(sync_client=True) as one:
            yield one


@pytest.fixture
def with_dask(client: Any) -> None:
    pytest.importorskip("prefect_dask", reason="prefect-dask is not installed (extra 'dask')")


RELEASE = "yard/releases/small/1.0.0"


def new(read: Any) -> Any:
    """A function that reads what came since now."""
    before = {one.id for one in read()}
    return lambda: [one for one in read() if one.id not in before]


def test_a_key_stands_in_no_parameter_log_result_or_file(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    from prefect.settings import PREFECT_HOME, PREFECT_LOCAL_STORAGE_PATH

    from routeyard.flows import stages
    from routeyard.flows.demo.server import running

    monkeypatch.setitem(stages._ASKING, "retry_delay_seconds", 0)
    key = "sk-routeyard-3f1d6c7a9b"
    monkeypatch.setenv("ROUTEYARD_TEST_KEY", key)
    with running() as url:
        pool = {
            "providers": [
                {"name": "demo", "base_url": url, "api_key_env": "ROUTEYARD_TEST_KEY"},
                # Nothing listens here: its errors must not tell the key either.
                {
                    "name": "gone",
                    "base_url": "http://127.0.0.1:9/v1",
                    "api_key_env": "ROUTEYARD_TEST_KEY",
                },
            ],
            "models": [
                {"model_id": "sim-tern-mini", "provider": "demo"},
                {"model_id": "unreachable", "provider": "gone"},
            ],
        }
        collect = {"retry": {"attempts": 1, "first_wait_s": 0, "pause_after": 1}}
        recipe = write(tmp_path / "r", pool=pool, collect=collect)
        with pytest.raises(ProviderError, match="unreachable") as caught:
            run_build(str(recipe), str(tmp_path / "yard"), jobs=1, until="release")
    told = capfd.readouterr()
    assert key not in str(caught.value) + repr(caught.value) + told.out + told.err
    seen = [*client.read_flow_runs(), *client.read_task_runs(), *client.read_artifacts()]
    logs = client.read_logs()
    assert any(run.name.startswith("collect") for run in seen if hasattr(run, "name") and run.name)
    assert key not in "".join(one.model_dump_json() for one in [*seen, *logs])
    folders = (tmp_path, Path(PREFECT_HOME.value()), Path(PREFECT_LOCAL_STORAGE_PATH.value()))
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                assert key.encode() not in path.read_bytes(), path


def test_shards_of_several_tasks_keep_the_limit_that_the_server_has(
    tmp_path: Path, client: Any
) -> None:
    from routeyard.flows.demo.server import running
    from tests.flows.test_shards import counted, recipe_for

    flows = new(client.read_flow_runs)
    # Without faults: the second run would meet none of those that the first one met.
    with running(latency=0.2, faults=0) as url:
        recipe = recipe_for(tmp_path, url, 60)
        # The recipe says six; somebody lowered it in the UI.
        client.upsert_global_concurrency_limit_by_name(limit_name("demo"), 4)
        tasks = new(client.read_task_runs)
        yards = tmp_path / "tracked", tmp_path / "direct"
        sharded = run_build(str(recipe), str(yards[0]), jobs=2, until="collect", shards=2)
        counts, answered = counted(url)
        direct = build.fn(recipe=str(recipe), workspace=str(yards[1]), until="collect")
    assert [run.state_name for run in flows()] == ["Completed"]
    assert set(answered) == {1}
    assert 2 <= counts["most_at_once"] <= 4
    assert [one["stages"]["collect"]["fingerprint"] for one in (sharded, direct)] == [
        direct["stages"]["collect"]["fingerprint"]
    ] * 2
    names = [run.name.rsplit("-", 1)[0] for run in tasks()]
    # Given back, so that the next run does not wait.
    limit = client.read_global_concurrency_limit_by_name(limit_name("demo"))
    assert names.count("collect shard") == 4
    assert limit.limit == 4
    assert limit.active_slots == 0


@pytest.mark.slow
def test_what_strangers_write_steers_no_page_and_no_log(tmp_path: Path, client: Any) -> None:
    """Terminals show a worker's log, and Prefect's pages make links, HTML and code of text."""
    from prefect import flow

    from routeyard.flows.deploy import publish, publish_link
    from routeyard.flows.tracking import log

    hostile = "\x1b[2J\u202e[seen](javascript:alert(1)) <img src=x> ```"

    @flow(name="hostile")
    def told() -> None:
        log("bench", "collect", hostile)
        publish("bench", "told", [{"model": hostile, "answers": 3}], "what was told")
        publish_link("bench", "where", f"/yard/{hostile}", "where it lies")
        raise ProviderError(f"the server said {hostile}", where=hostile)

    logs: list[str] = []
    runs = new(client.read_flow_runs)
    heard = logging.Handler()
    heard.emit = lambda record: logs.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("prefect.flow_runs").addHandler(heard)
    try:
        with pytest.raises(ProviderError):
            told()
    finally:
        logging.getLogger("prefect.flow_runs").removeHandler(heard)
    (run,) = runs()
    pages = {one.key: str(one.data) for one in client.read_artifacts() if one.key}
    lines = [line for line in logs if "[bench collect]" in line]
    assert len(lines) == 1
    shown = [*logs, run.state.message, *pages.values()]
    for text in shown:
        assert not {"\x1b", "\u202e"} & set(text), text
    assert "[seen](" not in pages["bench-told"]
    # A fence longer than any in the text holds it.
    assert pages["bench-where"].count("````") == 2


# -- threads and Dask -------------------------------------------------------------


def on_threads(recipe: str, yard: Path) -> Path:
    done = on(build, "threads", workers=2)(recipe=recipe, workspace=str(yard), jobs=2)
    return Path(done["release"]["path"])


def on_dask(recipe: str, yard: Path, *, shards: int = 1, workers: int = 2) -> Path:
    running = on(build, "dask", workers=workers)
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


def test_dask_gives_the_files_that_a_build_without_it_gives(
    tmp_path: Path, small_built: Path, with_dask: None
) -> None:
    made = on_dask(str(write(tmp_path)), tmp_path / "d", workers=1)
    assert digests(made) == digests(small_built / RELEASE)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(tmp_path: Path, with_dask: None) -> None:
    recipe = str(write(tmp_path))
    killed = on_dask_with_a_kill(recipe, tmp_path / "d", after=0)
    assert digests(killed) == digests(on_threads(recipe, tmp_path / "t"))


@pytest.mark.slow
def test_the_demo_is_equal_but_for_measured_times(tmp_path: Path, with_dask: None) -> None:
    threads = on_threads("demo", tmp_path / "t")
    # In shards, so that the workers ask and embed too.
    dask = on_dask("demo", tmp_path / "d", shards=2)
    tables = untimed(threads)
    assert {"responses", "labels", "splits", "removals"} <= set(tables)
    assert untimed(dask) == tables


@pytest.mark.slow
@pytest.mark.data
def test_gsm8k_is_byte_identical_also_when_a_worker_is_killed(
    tmp_path: Path, with_dask: None, data: Path
) -> None:
    os.environ["ROUTEYARD_DATA"] = str(data)  # the workers inherit it
    expected = digests(on_threads("zeroeval_gsm", tmp_path / "threads"))
    assert digests(on_dask("zeroeval_gsm", tmp_path / "dask")) == expected
    killed = on_dask_with_a_kill("zeroeval_gsm", tmp_path / "killed", after=10)
    assert digests(killed) == expected


# -- deployments ------------------------------------------------------------------


def with_providers(folder):
    pool = {
        "providers": [
            {"name": "ours", "base_url": "http://127.0.0.1:9/v1", "limits": {"concurrency": 7}},
            {"name": "theirs", "base_url": "http://127.0.0.1:9/v1", "limits": {"concurrency": 3}},
        ],
        "models": [
            {"model_id": "careful", "provider": "ours"},
            {"model_id": "hasty", "provider": "theirs"},
        ],
    }
    return write(folder, pool=pool)


def test_a_deployment_has_schedule_limits_and_checked_parameters(client, tmp_path):
    from prefect.flows import load_flow_from_entrypoint

    recipe = with_providers(tmp_path)
    made = deploy(
        str(recipe), tmp_path / "yard", interval_s=3600, publish_to=str(tmp_path / "public")
    )
    found = client.read_deployment_by_name(made.name)
    assert [one.schedule.interval for one in found.schedules] == [timedelta(hours=1)]
    assert load_flow_from_entrypoint(found.entrypoint).name == "routeyard-refresh"
    assert found.work_pool_name == "routeyard"
    assert client.read_work_pool("routeyard").type == "process"
    assert found.enforce_parameter_schema
    assert found.parameters["recipe"] == str(recipe)
    assert found.parameters["publish_to"] == str(tmp_path / "public")
    # A run that takes longer than its schedule is not joined by a second one.
    assert found.global_concurrency_limit.limit == 1
    limits = {one.name: one.limit for one in client.read_global_concurrency_limits()}
    assert limits[limit_name("ours")] == 7
    assert limits[limit_name("theirs")] == 3
    # Deployed again with another schedule and limit: replaced, not doubled.
    said = yaml.safe_load(recipe.read_text())
    said["pool"]["providers"][0]["limits"]["concurrency"] = 9
    recipe.write_text(yaml.safe_dump(said))
    deploy(str(recipe), tmp_path / "yard", cron="0 6 * * 1")
    found = client.read_deployment_by_name(made.name)
    assert [one.schedule.cron for one in found.schedules] == ["0 6 * * 1"]
    assert client.read_global_concurrency_limit_by_name(limit_name("ours")).limit == 9


def test_what_cannot_be_deployed_is_refused(client, tmp_path):
    recipe, yard = str(write(tmp_path)), tmp_path / "yard"
    with pytest.raises(BadInput, match="one schedule"):
        deploy(recipe, yard, cron="0 6 * * 1", interval_s=60)
    with pytest.raises(BadInput, match="holds a name or a password"):
        deploy(recipe, yard, publish_to="s3://me:secret@bucket/x")


def test_a_deployment_of_the_same_name_elsewhere_is_not_replaced(client, tmp_path, capsys):
    # A name of its own: the server of these tests keeps what the others deploy.
    here, there = (write(tmp_path / place, name="twice") for place in ("here", "there"))
    made = deploy(str(here), tmp_path / "yard", cron="0 6 * * 1")
    before = client.read_deployment_by_name(made.name)
    for recipe, yard in ((there, "yard"), (here, "other-yard")):
        with pytest.raises(BadInput, match="exists and rebuilds something else") as refused:
            deploy(str(recipe), tmp_path / yard, cron="0 7 * * 1")
        assert str(here) in str(refused.value.where)
        assert "--name" in str(refused.value.next_step)
    # The first one is as it was: its recipe, its workspace and its schedule.
    assert client.read_deployment_by_name(made.name) == before
    own = deploy(str(there), tmp_path / "yard", deployment="twice-there", cron="0 7 * * 1")
    assert own.name != made.name
    assert client.read_deployment_by_name(made.name).parameters["recipe"] == str(here)
    taken = deploy(str(there), tmp_path / "yard", replace=True)
    assert taken.name == made.name
    assert client.read_deployment_by_name(made.name).parameters["recipe"] == str(there)


def test_what_would_fail_the_same_way_is_not_tried_again(client):
    from prefect import flow, task

    from routeyard.flows.tracking import ATTEMPTS

    tries: list[str] = []

    def fail(error: Exception) -> None:
        tries.append(type(error).__name__)
        raise error

    failing = task(fail, **ATTEMPTS | {"retry_delay_seconds": 0})

    @flow
    def run() -> None:
        for error in (BadInput("no"), GateFailed("no"), OSError("a cut line")):
            failing.submit(error).wait()

    run(return_state=True)
    assert sorted(tries) == ["BadInput", "GateFailed", *["OSError"] * 4]
    assert ATTEMPTS["retry_delay_seconds"] == [5, 10, 20]


def test_a_release_and_a_failed_gate_reach_artifacts_automations_and_the_log(
    client, tmp_path, small_built
):
    begun = datetime.now(UTC)
    recipe = write(tmp_path)
    given = {"recipe": str(recipe), "workspace": str(tmp_path / "yard")}
    assert api_configured()
    tasks = new(client.read_task_runs)
    assert start(refresh, **given)["status"] == "released"
    assert digests(tmp_path / RELEASE) == digests(small_built / RELEASE)
    names = {run.name.rsplit("-", 1)[0] for run in tasks()}
    assert {"ingest", "pool", "import recorded", "file verdicts", "curate", "release"} <= names
    said = yaml.safe_load(recipe.read_text())
    said["release"].pop("waivers")
    recipe.write_text(yaml.safe_dump(said))
    with pytest.raises(GateFailed):
        start(refresh, **given)
    told = {artifact.key for artifact in client.read_artifacts()}
    shown = ("plan", "spend", "audit", "certificate", "summary", "diff", "release", "stopped")
    assert {f"small-{key}" for key in shown} <= told
    # Browsers open no file:// from the UI: a folder is words, not a dead link.
    (place,) = client.read_artifacts(artifact_filter=_key("small-release"))
    assert "file://" not in place.data
    assert str(tmp_path / "yard" / "releases" / "small" / "1.0.0") in place.data
    _told_to_automations(client)
    logs = logged(client, begun)
    lines = [one.message for one in logs]
    # Benchmark, stage and shard stand in front; both shards of the verdicts told their end.
    for wanted in ("[small ingest] 12 queries", "[small verdicts 1/2]", "[small verdicts 2/2]"):
        assert any(line.startswith(wanted) for line in lines), wanted
    assert sum(line.startswith("[small refresh] gate failed: ") for line in lines) == 1
    (stop,) = (one for one in logs if "] gate failed: " in one.message)
    assert stop.level == logging.ERROR
    assert not any("Traceback" in line or line.startswith("Encountered") for line in lines)


def _key(name):
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

    return ArtifactFilter(key=ArtifactFilterKey(any_=[name]))


def _told_to_automations(client):
    """The events that reached the server: both of ours, and the release as an asset."""
    from prefect.events.worker import EventsWorker

    EventsWorker.drain_all(timeout=20)
    wanted = ["routeyard.", "prefect.asset."]
    for _ in range(200):  # the server stores them in batches
        body = {"filter": {"event": {"prefix": wanted}}, "limit": 50}
        found = client._client.post("/events/filter", json=body).json()["events"]
        events = {one["event"]: one for one in found}
        if {"routeyard.released", "routeyard.gate-failed"} <= set(events):
            break
        time.sleep(0.1)
    released, failed = events["routeyard.released"], events["routeyard.gate-failed"]
    assert released["resource"]["prefect.resource.id"] == "routeyard.benchmark.small"
    assert released["payload"]["version"] == "1.0.0"
    assert "metering audit" in failed["payload"]["says"]
    made = events["prefect.asset.materialization.succeeded"]
    assert made["resource"]["prefect.resource.id"] == "routeyard://releases/small"
    assert made["payload"]["version"] == "1.0.0"
    above = {one["prefect.resource.id"] for one in made["related"]}
    assert any(one.startswith("routeyard://sources/") for one in above)


def test_prefect_yaml_is_for_this_prefect_and_runs_where_it_was_deployed(tmp_path, monkeypatch):
    import prefect
    from packaging.version import Version
    from prefect.deployments.steps.core import run_steps
    from prefect.utilities.templating import apply_values

    said = yaml.safe_load((Path(__file__).parents[2] / "prefect.yaml").read_text())
    ours, here = Version(said["prefect-version"]), Version(prefect.__version__)
    assert (ours.major, ours.minor) == (here.major, here.minor)
    (tmp_path / "deployed").mkdir()
    monkeypatch.setenv("PWD", str(tmp_path / "deployed"))
    monkeypatch.chdir(tmp_path)  # as a worker: somewhere else
    steps = apply_values(said["pull"], {}, remove_notset=False)
    asyncio.run(run_steps(steps, print_function=lambda *_: None))
    assert Path.cwd() == tmp_path / "deployed"


def test_the_example_automation_is_one(client):
    from prefect.automations import Automation

    page = (Path(__file__).parents[2] / "flows" / "MAINTENANCE.md").read_text()
    text = page.split("```yaml\n", 1)[1].split("```", 1)[0]
    made = Automation.model_validate(yaml.safe_load(text))
    assert made.trigger.expect == {"routeyard.gate-failed"}
    assert made.actions[0].type == "send-notification"


def test_links_are_for_what_a_browser_opens(monkeypatch):
    from routeyard.flows.deploy import web_address
    from routeyard.flows.tracking import artifact_key

    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    assert web_address("hub:org/small") == "https://huggingface.co/datasets/org/small"
    assert web_address("https://host/x") == "https://host/x"
    assert web_address("s3://bucket/x") is None
    assert web_address("/srv/public/small/1.0.0") is None
    assert artifact_key("My_bench.v2", "plan") == "my-bench-v2-plan"


def logged(client, begun):
    """What runs logged since then, as the UI shows it; it is sent in batches."""
    from prefect.client.schemas.filters import LogFilter, LogFilterTimestamp
    from prefect.logging.handlers import APILogWorker

    APILogWorker.drain_all(timeout=20)
    since = LogFilter(timestamp=LogFilterTimestamp(after_=begun))
    return client.read_logs(since, limit=200)
