"""A release on an S3 store: moto's server over loopback, asked through s3fs as AWS would be."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.common.errors import SourceError, VersionExists
from routeyard.pipelines.release.manifest import read_manifest
from routeyard.pipelines.release.reader import open_release
from routeyard.pipelines.release.storage import StorageError, local_copy, put
from tests.support.sound_release import verify_release


class Store:
    """moto's S3 behind a switch that cuts the connection after some uploads."""

    def __init__(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        self.moto = DomainDispatcherApplication(create_backend_app)
        self.uploads: list[str] = []
        self.cut_after: int | None = None
        self.server = make_server("127.0.0.1", 0, self._application, threaded=True)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def _application(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] == "PUT" and environ["PATH_INFO"].count("/") > 1:
            if self.cut_after is not None and len(self.uploads) >= self.cut_after:
                environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
                start_response("200 OK", [])  # nobody hears it
                return []
            self.uploads.append(environ["PATH_INFO"])
        return self.moto(environ, start_response)

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    running = Store()
    yield running
    running.close()


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from benchmarks.release import make
    from routeyard.pipelines.release.build import write_release

    recipe = {"name": "made", "version": "1.0.0"}
    root = tmp_path_factory.mktemp("releases")
    return write_release(make(60, 3), recipe=recipe, root=root, render_card=render).path


@pytest.fixture
def bucket(store: Store, monkeypatch: pytest.MonkeyPatch, request: Any) -> Iterator[str]:
    """URL of a bucket of its own; the environment leads there, as it would to AWS."""
    import s3fs

    monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    store.uploads.clear()
    store.cut_after = None
    name = f"b{abs(hash(request.node.name)):x}"
    s3fs.S3FileSystem().mkdir(name)
    yield f"s3://{name}/releases"
    s3fs.S3FileSystem.clear_instance_cache()


def test_publish_verify_and_open_from_an_object_store(release, bucket, store):
    from routeyard.flows.cli.releases import publish_command as publish
    from routeyard.flows.cli.releases import verify_command as verify

    publish(release, bucket)
    # Whoever looks for the manifest never sees half a release.
    assert store.uploads[-1].endswith("/made/1.0.0/manifest.json")
    url = f"{bucket}/made/1.0.0"
    assert verify(url).error is None
    with open_release(url) as opened:
        assert opened.sql("SELECT count(*) AS n FROM labels").to_pylist() == [{"n": 60}]
        assert opened.pandas("labels").shape[0] == 60
        copy = opened.path
    assert not copy.exists()
    store.uploads.clear()
    assert put(release, bucket).sent == ()
    assert store.uploads == []


def test_a_connection_cut_in_the_middle_is_continued(release, bucket, store):
    import s3fs

    store.cut_after = 5
    with pytest.raises(StorageError, match="repeat the command") as error:
        put(release, bucket)
    assert error.value.exit_code == 1
    sent = list(store.uploads)
    with pytest.raises(SourceError, match=r"no manifest\.json"):
        open_release(f"{bucket}/made/1.0.0")
    store.cut_after = None
    again = put(release, bucket)
    assert len(again.present) == len(sent) == 5
    assert len(store.uploads) == len(again.present) + len(again.sent)
    with local_copy(again.url) as copy:
        assert verify_release(copy, render_card=render) == []
    # One byte changed in the store is found over the same address.
    system = s3fs.S3FileSystem()
    path = f"{again.url.removeprefix('s3://')}/data/labels.parquet"
    content = bytearray(system.cat_file(path))
    content[len(content) // 2] ^= 0xFF
    system.pipe_file(path, bytes(content))
    with local_copy(again.url) as copy:
        found = verify_release(copy, render_card=render)
    assert "data/labels.parquet" in {finding.where for finding in found}


def test_a_version_there_is_not_replaced_and_a_mistyped_bucket_not_made(release, bucket, store):
    import s3fs

    system = s3fs.S3FileSystem()
    manifest = read_manifest(release)
    other = manifest.model_copy(update={"fingerprint": "0" * 64}).sealed()
    place = bucket.removeprefix("s3://")
    system.pipe_file(f"{place}/made/1.0.0/manifest.json", other.to_json().encode())
    store.uploads.clear()
    with pytest.raises(VersionExists):
        put(release, bucket)
    assert store.uploads == []
    with pytest.raises(SourceError, match="no place"):
        put(release, "s3://no-such-bucket/releases")
    assert "no-such-bucket" not in system.ls("")
