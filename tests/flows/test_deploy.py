"""Deployments, checked parameters and logs on a real Prefect server."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from routeyard.flows.deploy import deploy, refresh
from routeyard.flows.tracking import limit_name, start
from routeyard.pipelines.common.errors import BadInput, GateFailed
from tests.support.small_recorded import write

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.timeout(600),
    # Prefect's own server and client warn on their way out.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    from prefect.client.orchestration import get_client
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=600), get_client(sync_client=True) as client:
        yield client


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


def test_a_release_and_a_failed_gate_reach_artifacts_automations_and_the_log(client, tmp_path):
    begun = datetime.now(UTC)
    recipe = write(tmp_path)
    given = {"recipe": str(recipe), "workspace": str(tmp_path / "yard")}
    assert start(refresh, **given)["status"] == "released"
    said = yaml.safe_load(recipe.read_text())
    said["release"].pop("waivers")
    recipe.write_text(yaml.safe_dump(said))
    with pytest.raises(GateFailed):
        start(refresh, **given)
    told = {artifact.key for artifact in client.read_artifacts()}
    shown = ("plan", "spend", "audit", "certificate", "diff", "release", "stopped")
    assert {f"small-{key}" for key in shown} <= told
    # Browsers open no file:// from the UI: a folder is words, not a dead link.
    (place,) = client.read_artifacts(artifact_filter=_key("small-release"))
    assert "file://" not in place.data
    assert str(tmp_path / "yard" / "releases" / "small" / "1.0.0") in place.data
    _told_to_automations(client)
    lines = logged(client)
    # Benchmark, stage and shard stand in front; both shards of the verdicts told their end.
    for wanted in ("[small ingest] 12 queries", "[small verdicts 1/2]", "[small verdicts 2/2]"):
        assert any(line.startswith(wanted) for line in lines), wanted
    assert sum(line.startswith("[small refresh] gate failed: ") for line in lines) == 1
    (stop,) = (one for one in client.read_logs(limit=200) if "] gate failed: " in one.message)
    assert stop.level == logging.ERROR
    # The server is shared by the session's tests: what others logged before is not ours.
    ours = [one.message for one in client.read_logs(limit=200) if one.timestamp >= begun]
    assert ours
    assert not any("Traceback" in line or line.startswith("Encountered") for line in ours)


def _key(name):
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

    return ArtifactFilter(key=ArtifactFilterKey(any_=[name]))


def _told_to_automations(client):
    """The events that reached the server: both of ours, and the release as an asset."""
    from prefect.events.worker import EventsWorker

    EventsWorker.drain_all(timeout=20)
    wanted = ["routeyard.", "prefect.asset."]
    for _ in range(40):  # the server stores them in batches
        body = {"filter": {"event": {"prefix": wanted}}, "limit": 50}
        found = client._client.post("/events/filter", json=body).json()["events"]
        events = {one["event"]: one for one in found}
        if {"routeyard.released", "routeyard.gate-failed"} <= set(events):
            break
        time.sleep(0.5)
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


def logged(client):
    """Messages of all runs, as the UI shows them; they are sent in batches."""
    from prefect.logging.handlers import APILogWorker

    APILogWorker.drain_all(timeout=20)
    return [one.message for one in client.read_logs(limit=200)]
