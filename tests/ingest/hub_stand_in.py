"""A loopback stand-in of the hub: serves small dataset repositories from a folder.

Speaks as much of the hub's HTTP interface as `datasets` and `huggingface_hub`
use to read: repository info, tree, paths-info and file resolution.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit


def commit_of(folder: Path) -> str:
    """A commit that changes with the content."""
    digest = hashlib.sha1()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


class _Hub(BaseHTTPRequestHandler):
    root: Path
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        form = self.rfile.read(length)
        path = unquote(urlsplit(self.path).path)
        if "/paths-info/" in path:
            text = form.decode()
            wanted = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text)["paths"]
            folder = self._repo(path.removeprefix("/api/datasets/"))
            self._json([self._entry(folder, name) for name in wanted if (folder / name).exists()])
        else:
            self._json({}, 404)

    def _repo(self, path: str) -> Path:
        owner, name = path.split("/")[:2]
        return self.root / owner / name

    def _answer(self, *, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        if path.startswith("/api/datasets/"):
            rest = path.removeprefix("/api/datasets/")
            folder = self._repo(rest)
            if not folder.is_dir():
                self._json({"error": "not found"}, 404, {"X-Error-Code": "RepoNotFound"})
            elif "/tree/" in rest:
                below = rest.split("/tree/", 1)[1].partition("/")[2]
                self._json(self._tree(folder, below))
            else:
                self._json(self._info(rest, folder))
        elif "/resolve/" in path and path.startswith("/datasets/"):
            folder = self._repo(path.removeprefix("/datasets/"))
            name = path.split("/resolve/", 1)[1].partition("/")[2]
            self._file(folder, name, body=body)
        else:
            self._json({}, 404)

    def _info(self, rest: str, folder: Path) -> dict[str, object]:
        names = [p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*")) if p.is_file()]
        return {
            "_id": "1",
            "id": "/".join(rest.split("/")[:2]),
            "sha": commit_of(folder),
            "private": False,
            "disabled": False,
            "gated": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "siblings": [{"rfilename": name} for name in names],
        }

    def _tree(self, folder: Path, below: str) -> list[dict[str, object]]:
        start = folder / below
        recursive = "recursive=True" in self.path or "recursive=true" in self.path
        found = start.rglob("*") if recursive else start.iterdir() if start.is_dir() else []
        return [self._entry(folder, p.relative_to(folder).as_posix()) for p in sorted(found)]

    def _entry(self, folder: Path, name: str) -> dict[str, object]:
        path = folder / name
        if path.is_dir():
            return {"type": "directory", "path": name, "oid": "0" * 40, "size": 0}
        oid = hashlib.sha1(path.read_bytes()).hexdigest()
        return {"type": "file", "path": name, "oid": oid, "size": path.stat().st_size}

    def _file(self, folder: Path, name: str, *, body: bool) -> None:
        path = folder / name
        if not path.is_file():
            self._json({"error": "not found"}, 404, {"X-Error-Code": "EntryNotFound"})
            return
        content = path.read_bytes()
        total = len(content)
        status, headers = 200, {}
        asked = self.headers.get("range", "")
        if asked.startswith("bytes="):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            stop = min(int(last) + 1, total) if last else total
            content = content[int(first) : stop]
            status, headers = 206, {"Content-Range": f"bytes {first}-{stop - 1}/{total}"}
        self.send_response(status)
        headers |= {
            "Content-Length": str(len(content)),
            "Content-Type": "application/octet-stream",
            "Accept-Ranges": "bytes",
            "ETag": f'"{hashlib.sha1(path.read_bytes()).hexdigest()}"',
            "X-Repo-Commit": commit_of(folder),
        }
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def _json(
        self, content: object, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)


@contextmanager
def serving(root: Path) -> Iterator[str]:
    """Serve `root/<owner>/<name>/` repositories; yields the endpoint."""
    handler = type("Hub", (_Hub,), {"root": root})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
