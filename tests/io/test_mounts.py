"""Which file systems several hosts may share."""

from __future__ import annotations

from pathlib import Path

import pytest

from routeyard.pipelines.common import machine as mounts

LINES = """\
22 1 0:20 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:40 / /mnt/team\\040data rw,relatime - nfs4 server:/x rw,vers=4.2
31 30 0:41 / /mnt/team\\040data/local rw - xfs /dev/sdb rw
32 22 0:42 / /over rw - ext4 /dev/sdc rw
33 32 0:43 / /over rw - cifs //server/y rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "network"),
    [
        ("/home/x", False),
        ("/mnt/team data/yard/ledger", True),
        ("/mnt/team data", True),
        ("/mnt/team datax", False),
        ("/mnt/team data/local/yard", False),
        ("/over/yard", True),
    ],
)
def test_the_kind_of_the_innermost_mount_counts(
    path: str, network: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mountinfo").write_text(LINES)
    monkeypatch.setattr(mounts, "_MOUNTS", tmp_path / "mountinfo")
    assert mounts.is_network(Path(path)) is network


def test_where_nothing_is_told_nothing_is_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not mounts.is_network(tmp_path)
    monkeypatch.setattr(mounts, "_MOUNTS", tmp_path / "none")
    assert not mounts.is_network(tmp_path)
