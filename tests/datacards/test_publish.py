"""Publishing end to end, against a local stand-in of the hub's HTTP interface."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.hub import Hub

TOKEN = "hf_" + "secret" * 5


@pytest.fixture
def hub() -> Iterator[Any]:
    stand_in = Hub()
    yield stand_in
    stand_in.close()


#: The client waits up to eight seconds between its tries: here it tries again at once.
_IMPATIENT = """
import time, types
from huggingface_hub.utils import _http
_http.time = types.SimpleNamespace(**vars(time) | {"sleep": lambda seconds: None})
from routeyard.flows.cli import main
main()
"""


def _publish(release: Path, hub: Any, home: Path, *more: str) -> subprocess.CompletedProcess[str]:
    # The client reads its endpoint when it is imported, so it gets a process of its own.
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_OFFLINE": "0",
        "HF_TOKEN": TOKEN,
        "HF_HOME": str(home),
    }
    command = ["-c", _IMPATIENT, "publish", str(release), "--to", "hub:org/tiny", *more]
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
        check=False,
    )


def test_create_upload_tag_and_refuse_the_same_version(release, hub, tmp_path):
    dry = _publish(release, hub, tmp_path, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "data/labels.parquet" in dry.stdout
    assert hub.repositories == set()

    done = _publish(release, hub, tmp_path)
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

    again = _publish(release, hub, tmp_path)
    assert again.returncode == 2
    assert "holds version 1.0.0 already" in again.stderr


def test_a_cut_connection_leaves_no_tag_and_is_continued(release, hub, tmp_path):
    hub.cut_after = 3
    cut = _publish(release, hub, tmp_path)
    assert cut.returncode == 1, cut.stdout + cut.stderr
    assert "Traceback" not in cut.stderr
    assert "what has arrived is not sent again" in cut.stderr
    assert hub.tags == {}
    first = list(hub.puts)
    hub.cut_after = None
    done = _publish(release, hub, tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(hub.tags) == {"v1.0.0"}
    # Objects that had arrived were not sent a second time.
    assert len(hub.puts) == len(set(hub.puts))
    assert len(first) == 3


def test_a_dry_run_needs_no_network_and_a_lost_hub_no_token(release, hub, tmp_path):
    hub.close()
    dry = _publish(release, hub, tmp_path, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "data/labels.parquet" in dry.stdout
    assert "the hub was not reached" in dry.stdout
    real = _publish(release, hub, tmp_path)
    assert real.returncode == 1
    assert "the hub does not answer" in real.stderr
    assert "HF_TOKEN" not in real.stderr
