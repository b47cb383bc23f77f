from __future__ import annotations

import zipfile

import pytest

from routeyard.pipelines.common.errors import SourceError, Unsafe
from routeyard.pipelines.ingest.importers.reading import members


def test_a_zip_bomb_is_refused_before_it_unfolds(tmp_path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.json", b"0" * 50_000_000)
    assert path.stat().st_size < 100_000
    with pytest.raises(Unsafe, match="unfolds to more than"):
        list(members(path, ".json"))


def test_many_honest_members_still_have_a_limit(tmp_path):
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(5):
            archive.writestr(f"{number}.json", b"x" * 1000)
    with pytest.raises(Unsafe):
        list(members(path, ".json", max_bytes=3_500))


def test_names_that_climb_out_write_nothing(tmp_path):
    path = tmp_path / "slip.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../escaped.json", b"[]")
    assert [name for name, _ in members(path, ".json")] == ["../../escaped.json"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["slip.zip"]


def test_a_damaged_archive_is_named(tmp_path):
    path = tmp_path / "cut.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.json", bytes(range(256)) * 400)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(SourceError, match="cannot be read"):
        list(members(path, ".json"))
