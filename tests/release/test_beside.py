"""Files beside a sealed release: what a hub writes is known, anything else is a finding."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.release.manifest import read_manifest
from routeyard.pipelines.verify.evidence import Evidence
from routeyard.pipelines.verify.files import check_files

HUB = """# large files
*.parquet filter=lfs diff=lfs merge=lfs -text

*.7z filter=lfs diff=lfs merge=lfs -text
"""


def test_attributes_of_git(release: Path) -> None:
    def found(text: str) -> list[tuple[str, str]]:
        (release / ".gitattributes").write_text(text)
        evidence = Evidence(release, read_manifest(release), render)
        return [(one.check, one.where) for one in check_files(evidence)]

    for hubs in (HUB, ""):
        assert found(hubs) == []
    for other in ("* filter=evil\n", HUB + "README.md export-subst\n", "anything", "#" * 100_000):
        assert found(other) == [("file", ".gitattributes")]


_PUBLISH = """
set -e
mount -t tmpfs -o size=24k tmpfs "$1"
shift
"$@"
"""


def test_publishing_to_a_full_disk_names_the_disk(release: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if shutil.which("unshare") is None:
        pytest.skip("needs `unshare` to mount a small disk")
    here = ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*here, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody make a mount namespace")
    command = [sys.executable, "-m", "routeyard", "publish", str(release), "--to", str(small)]
    done = subprocess.run(
        [*here, "sh", "-c", _PUBLISH, "sh", str(small), *command],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 1, done.stderr
    assert "there is no room at the place to write" in done.stderr
    assert str(small) in done.stderr
    assert "Traceback" not in done.stderr
