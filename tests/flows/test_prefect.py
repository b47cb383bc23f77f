"""The same build through a real Prefect server: tracked, with artifacts, and the same release."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.build import build, run_build
from flows.run import api_configured
from tests.flows.small_recorded import write

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.timeout(600),
    # Prefect's own server and client warn on their way out.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[None]:
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
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
            if p.is_file() and p.suffix != ".duckdb"
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
    assert "summary" in artifacts
