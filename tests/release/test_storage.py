from __future__ import annotations

import uuid

import fsspec
import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.common.errors import SourceError, VersionExists
from routeyard.pipelines.release.storage import StorageError, fetch, local_copy, put
from routeyard.schemas import EMBEDDINGS
from tests.support.sound_release import verify_release


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}/releases"


def test_a_cut_copy_shows_no_release_and_is_continued(release, url, monkeypatch):
    system = fsspec.filesystem("memory")
    real, sent = type(system).put_file, []

    def cut(self, source, target, *more, **named):
        if len(sent) == 4:
            raise ConnectionError("cut")
        sent.append(target)
        return real(self, source, target, *more, **named)

    monkeypatch.setattr(type(system), "put_file", cut)
    with pytest.raises(StorageError, match="cut"):
        put(release, url)
    # Half of the files lie there, but no reader takes it for a release.
    with pytest.raises(SourceError, match=r"no manifest\.json"), local_copy(f"{url}/tiny/1.0.0"):
        pass
    monkeypatch.setattr(type(system), "put_file", real)
    again = put(release, url)
    assert len(again.present) == 4
    with local_copy(again.url) as copy:
        assert verify_release(copy, render_card=render) == []


def test_a_published_version_is_not_replaced(write, tables, url, tmp_path):
    put(write().path, url)
    other = write({**tables, "labels": tables["labels"].slice(1)}, root=tmp_path / "other").path
    with pytest.raises(VersionExists):
        put(other, url)


def test_dry_run_sends_nothing(release, url):
    assert len(put(release, url, dry_run=True).sent) > 5
    with pytest.raises(SourceError), local_copy(f"{url}/tiny/1.0.0"):
        pass


def test_add_ons_can_stay_behind(write, tables, url, tmp_path):
    rows = [
        {"query_id": q, "encoder": "e", "vector": [1.0, 0.0], **_extra()}
        for q in tables["queries"].column("query_id").to_pylist()
    ]
    path = write({**tables, "embeddings": EMBEDDINGS.from_rows(rows)}).path
    stored = put(path, url)
    manifest = fetch(stored.url, tmp_path / "small", add_ons=False)
    assert manifest.tables["embeddings"].kind == "add_on"
    assert not (tmp_path / "small/data/embeddings.parquet").exists()
    assert verify_release(tmp_path / "small", render_card=render) == []


def _extra() -> dict[str, int]:
    return {"seen_chars": 3} if "seen_chars" in EMBEDDINGS.column_names else {}


def test_a_manifest_cannot_write_outside_the_copy(release, url, tmp_path):
    stored = put(release, url)
    system = fsspec.filesystem("memory")
    path = stored.url.removeprefix("memory:/") + "/manifest.json"
    text = system.cat_file(path).decode().replace("data/labels.parquet", "../../labels.parquet")
    system.pipe_file(path, text.encode())
    with pytest.raises(SourceError, match="outside the release"):
        fetch(stored.url, tmp_path / "deep" / "copy")
    assert not (tmp_path / "labels.parquet").exists()


def test_unknown_storage_says_what_to_install():
    with pytest.raises(SourceError, match="no storage is known"), local_copy("nosuch://x/y"):
        pass
