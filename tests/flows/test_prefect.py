"""The same build through a real Prefect server: tracked, with artifacts, and the same release."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from routeyard.flows.build import build, run_build
from routeyard.flows.tracking import api_configured
from routeyard.pipelines.common.errors import ProviderError
from tests.support.small_recorded import write

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.timeout(600),
    # Prefect's own server and client warn on their way out.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[None]:
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=600):
        yield


def test_a_tracked_build_shows_tasks_and_artifacts_and_gives_the_same_release(
    tmp_path: Path, server: None
) -> None:
    from prefect.client.orchestration import get_client

    recipe = write(tmp_path)
    assert api_configured()
    tracked = run_build(str(recipe), str(tmp_path / "tracked"), jobs=1, until="release")
    direct = build.fn(recipe=str(recipe), workspace=str(tmp_path / "direct"), jobs=1)
    paths = [Path(one["release"]["path"]) for one in (tracked, direct)]
    files = [
        {
            p.relative_to(path).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in path.rglob("*")
            if p.is_file() and p.suffix not in (".duckdb", ".sha256")
        }
        for path in paths
    ]
    assert files[0] == files[1]
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs()
        assert [run.state_name for run in runs] == ["Completed"]
        names = {run.name.rsplit("-", 1)[0] for run in client.read_task_runs()}
        artifacts = {artifact.key for artifact in client.read_artifacts()}
    assert {"ingest", "pool", "import recorded", "file verdicts", "curate", "release"} <= names
    assert "small-summary" in artifacts


def test_a_key_stands_in_no_parameter_log_result_or_file(
    tmp_path: Path, server: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_HOME, PREFECT_LOCAL_STORAGE_PATH

    from routeyard.flows.demo.server import running

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
    with get_client(sync_client=True) as client:
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
    tmp_path: Path, server: None
) -> None:
    from prefect.client.orchestration import get_client

    from routeyard.flows.demo.server import running
    from routeyard.flows.tracking import limit_name
    from tests.flows.test_shards import counted, recipe_for

    # Without faults: the second run would meet none of those that the first one met.
    with running(latency=0.2, faults=0) as url:
        recipe = recipe_for(tmp_path, url)
        with get_client(sync_client=True) as client:
            # The recipe says six; somebody lowered it in the UI.
            client.upsert_global_concurrency_limit_by_name(limit_name("demo"), 4)
        yards = tmp_path / "tracked", tmp_path / "direct"
        sharded = run_build(str(recipe), str(yards[0]), jobs=2, until="collect", shards=2)
        counts, answered = counted(url)
        direct = build.fn(recipe=str(recipe), workspace=str(yards[1]), until="collect")
    assert set(answered) == {1}
    assert 2 <= counts["most_at_once"] <= 4
    assert [one["stages"]["collect"]["fingerprint"] for one in (sharded, direct)] == [
        direct["stages"]["collect"]["fingerprint"]
    ] * 2
    with get_client(sync_client=True) as client:
        names = [run.name.rsplit("-", 1)[0] for run in client.read_task_runs()]
        # Given back, so that the next run does not wait.
        limit = client.read_global_concurrency_limit_by_name(limit_name("demo"))
    assert names.count("collect shard") == 4
    assert limit.limit == 4
    assert limit.active_slots == 0


@pytest.mark.slow
def test_what_strangers_write_steers_no_page_and_no_log(tmp_path: Path, server: None) -> None:
    """Terminals show a worker's log, and Prefect's pages make links, HTML and code of text."""
    import logging

    from prefect import flow
    from prefect.client.orchestration import get_client

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
    heard = logging.Handler()
    heard.emit = lambda record: logs.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("prefect.flow_runs").addHandler(heard)
    try:
        with pytest.raises(ProviderError):
            told()
    finally:
        logging.getLogger("prefect.flow_runs").removeHandler(heard)
    with get_client(sync_client=True) as client:
        (run,) = [one for one in client.read_flow_runs() if one.state_name == "Failed"][:1]
        pages = {one.key: str(one.data) for one in client.read_artifacts() if one.key}
    lines = [line for line in logs if "[bench collect]" in line]
    assert len(lines) == 1
    shown = [*logs, run.state.message, *pages.values()]
    for text in shown:
        assert not {"\x1b", "\u202e"} & set(text), text
    assert "[seen](" not in pages["bench-told"]
    # A fence longer than any in the text holds it.
    assert pages["bench-where"].count("````") == 2
