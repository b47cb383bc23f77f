"""Publishing end to end, against a local stand-in of the hub's HTTP interface."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from huggingface_hub.errors import HfHubHTTPError

from routeyard.datacards.publish import _refused
from tests.support.hub import Hub

TOKEN = "hf_" + "secret" * 5


@pytest.fixture
def hub() -> Iterator[Any]:
    stand_in = Hub()
    yield stand_in
    stand_in.close()


#: Imports what a command needs once, then forks one for each line: its words, output and address.
#: The client waits up to eight seconds between its tries: here it tries again at once.
_PUBLISHING = """
import json, os, sys, time, types
from huggingface_hub import HfApi, constants
from huggingface_hub.utils import _http
from routeyard.datacards import card, files, publish
from routeyard.flows import cli
from routeyard.flows.cli import releases
from routeyard.pipelines.verify import prove
from tests.support.warm import import_all

import_all()
_http.time = types.SimpleNamespace(**vars(time) | {"sleep": lambda seconds: None})
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, name in enumerate(("out", "err"), 1):
            os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        constants.HUGGINGFACE_CO_URL_TEMPLATE = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(
            constants.ENDPOINT, job["url"]
        )
        constants.ENDPOINT = os.environ["HF_ENDPOINT"] = job["url"]
        sys.argv = ["routeyard", *job["words"]]
        cli.main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
Publish = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def publish(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Publish]:
    """Runs `routeyard publish` in a process of its own."""
    folder = tmp_path_factory.mktemp("publish")
    environment = {
        **os.environ,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_OFFLINE": "0",
        "HF_TOKEN": TOKEN,
        "HF_HOME": str(folder),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", _PUBLISHING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def run(
        release: Path | str,
        hub: Any,
        *more: str,
        command: str = "publish",
        to: str = "hub:org/tiny",
    ) -> subprocess.CompletedProcess[str]:
        target = ["--to", to] if command == "publish" else []
        words = [command, str(release), *target, *more]
        said = {name: str(folder / name) for name in ("out", "err")}
        process.stdin.write(json.dumps({"words": words, "url": hub.url, **said}) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        texts = (Path(path).read_text(encoding="utf-8") for path in said.values())
        return subprocess.CompletedProcess(words, code, *texts)

    yield run
    process.stdin.close()
    process.wait()
    process.stdout.close()


def test_create_upload_tag_and_refuse_another_release_of_the_version(release, hub, publish):
    dry = publish(release, hub, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "data/labels.parquet" in dry.stdout
    assert hub.repositories == set()

    done = publish(release, hub)
    assert done.returncode == 0, done.stderr
    there = {p.relative_to(release).as_posix() for p in release.rglob("*") if p.is_file()}
    assert set(hub.files) == there
    assert set(hub.tags) == {"v1.0.0"}
    for name, oid in hub.files.items():
        assert hub.objects[oid] == (release / name).read_bytes()
    # The token goes to the hub and nowhere else.
    assert hub.tokens == {f"Bearer {TOKEN}"}
    assert TOKEN not in done.stdout + done.stderr
    assert all(TOKEN.encode() not in data for data in hub.objects.values())

    sent = list(hub.puts)
    again = publish(release, hub)
    assert again.returncode == 0, again.stderr
    assert "0 of" in again.stdout
    assert hub.puts == sent
    # Somebody else's version is never passed over in silence.
    hub.tags["v1.0.0"]["manifest.json"] = hub.files["README.md"]
    other = publish(release, hub)
    assert other.returncode == 2
    assert "holds version 1.0.0 with other content" in other.stderr


def test_a_published_release_is_read_at_its_address(release, hub, publish):
    assert publish(release, hub).returncode == 0
    for address in ("hub:org/tiny", "hub:org/tiny@v1.0.0"):
        assert publish(address, hub, command="verify").returncode == 0
    same = publish(release, hub, "hub:org/tiny", command="diff")
    assert same.returncode == 0, same.stderr
    lost = publish("hub:org/none", hub, command="verify")
    assert lost.returncode == 2
    assert "there is no manifest.json at that address" in lost.stderr


def test_what_to_do_while_the_hub_is_unwell(release, hub, publish):
    hub.status = 503
    failed = publish(release, hub)
    assert failed.returncode == 1
    assert "wait until the hub is well again" in failed.stderr.split("next:")[1]
    assert "HF_TOKEN" not in failed.stderr


@pytest.mark.parametrize(("status", "step"), [(403, "set HF_TOKEN"), (400, "what it names")])
def test_what_to_do_where_the_hub_refuses(status, step):
    asked = httpx.Request("POST", "https://hub.example")
    refused = HfHubHTTPError("refused", response=httpx.Response(status, request=asked))
    assert step in (_refused(refused, "https://hub.example", lost=False).next_step or "")


@pytest.mark.parametrize("to", ["hub:tiny", "hub:", "hub:a/b/c"])
def test_a_target_that_names_no_dataset(release, hub, publish, to):
    wrong = publish(release, hub, to=to)
    assert wrong.returncode == 2
    assert "names no dataset of a hub" in wrong.stderr
    assert "hub:org/name" in wrong.stderr


def test_a_folder_of_versions_is_no_release(release, hub, publish):
    wrong = publish(release.parent, hub)
    assert wrong.returncode == 2
    assert f"give one of those in it, such as {release}" in wrong.stderr
    assert publish(release.parents[1], hub, command="verify").stderr.endswith(wrong.stderr[-80:])
    file = release.parents[2] / "a file"
    file.touch()
    said = publish(release, hub, to=str(file / "below")).stderr
    assert "name a folder that can be made" in said


def test_a_cut_connection_leaves_no_tag_and_is_continued(release, hub, publish):
    hub.cut_after = 3
    cut = publish(release, hub)
    assert cut.returncode == 1, cut.stdout + cut.stderr
    assert "Traceback" not in cut.stderr
    assert "what has arrived is not sent again" in cut.stderr
    assert hub.tags == {}
    first = list(hub.puts)
    hub.cut_after = None
    done = publish(release, hub)
    assert done.returncode == 0, done.stderr
    assert set(hub.tags) == {"v1.0.0"}
    # Objects that had arrived were not sent a second time.
    assert len(hub.puts) == len(set(hub.puts))
    assert len(first) == 3


def test_a_dry_run_needs_no_network_and_a_lost_hub_no_token(release, hub, publish):
    hub.close()
    dry = publish(release, hub, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "data/labels.parquet" in dry.stdout
    assert "the hub was not reached" in dry.stdout
    real = publish(release, hub)
    assert real.returncode == 1
    assert "the hub does not answer" in real.stderr
    assert "HF_TOKEN" not in real.stderr
