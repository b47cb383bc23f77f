"""A local stand-in of the dataset hub's HTTP interface: create, upload, commit, tag, read."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote


class Hub:
    """What the hub holds, and how many objects it takes before it cuts the connection."""

    def __init__(self) -> None:
        self.repositories: set[str] = set()
        self.objects: dict[str, bytes] = {}
        self.files: dict[str, str] = {}
        self.tags: dict[str, dict[str, str]] = {}
        self.puts: list[str] = []
        self.tokens: set[str] = set()
        self.cut_after: int | None = None
        #: Status of every answer; None for the hub's own.
        self.status: int | None = None
        hub = self

        class Handler(_Handler):
            state = hub

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class _Handler(BaseHTTPRequestHandler):
    state: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        hub = self.state
        repo = self._repository()
        if repo not in hub.repositories:
            self._answer({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})
        elif self.path.split("?")[0].endswith("/refs"):
            branches = [{"name": "main", "ref": "refs/heads/main", "targetCommit": "0" * 40}]
            tags = [
                {"name": name, "ref": f"refs/tags/{name}", "targetCommit": "0" * 40}
                for name in hub.tags
            ]
            self._answer({"branches": branches, "tags": tags, "converts": []})
        elif "/tree/" in self.path:
            self._answer(self._listed())
        elif "/resolve/" in self.path:
            self._file()
        else:
            siblings = [{"rfilename": path} for path in hub.files]
            self._answer({"id": repo, "sha": "0" * 40, "siblings": siblings, "private": False})

    def do_HEAD(self) -> None:
        self._file() if "/resolve/" in self.path else self._answer({}, 404)

    def _held(self) -> dict[str, str]:
        """Files of the version that is asked for; path to object."""
        found = re.search(r"/(?:resolve|paths-info|tree)/([^/?]+)", self.path)
        return self.state.tags.get(unquote(found[1]) if found else "", self.state.files)

    def _listed(self) -> list[dict[str, Any]]:
        objects = self.state.objects
        return [
            {"type": "file", "path": path, "oid": "0" * 40, "size": len(objects[oid])}
            for path, oid in self._held().items()
        ]

    def _file(self) -> None:
        name = unquote(self.path.split("?")[0].split("/resolve/", 1)[1].partition("/")[2])
        oid = self._held().get(name)
        if oid is None:
            self._answer({"error": "no such file"}, 404, {"X-Error-Code": "EntryNotFound"})
            return
        data, status, headers = self.state.objects[oid], 200, {"ETag": f'"{oid}"'}
        if (asked := self.headers.get("Range", "")).startswith("bytes="):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            stop = min(int(last) + 1, len(data)) if last else len(data)
            headers["Content-Range"] = f"bytes {first}-{stop - 1}/{len(data)}"
            data, status = data[int(first) : stop], 206
        self._answer(data, status, headers | {"X-Repo-Commit": "0" * 40})

    def do_POST(self) -> None:
        hub, body = self.state, self._body()
        path = self.path.split("?")[0]
        hub.tokens.add(self.headers.get("Authorization", ""))
        if path == "/api/repos/create":
            said = json.loads(body)
            hub.repositories.add(f"{said.get('organization', 'me')}/{said['name']}")
            self._answer({"url": f"{hub.url}/datasets/{said.get('organization')}/{said['name']}"})
        elif path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif "/preupload/" in path:
            files = json.loads(body)["files"]
            told = [
                {
                    "path": f["path"],
                    "uploadMode": "regular" if f["path"].endswith((".md", ".json")) else "lfs",
                    "shouldIgnore": False,
                    "oid": None,
                }
                for f in files
            ]
            self._answer({"files": told})
        elif path.endswith("/info/lfs/objects/batch"):
            objects = []
            for item in json.loads(body)["objects"]:
                entry: dict[str, Any] = {"oid": item["oid"], "size": item["size"]}
                if item["oid"] not in hub.objects:
                    href = f"{hub.url}/lfs/{item['oid']}"
                    entry["actions"] = {"upload": {"href": href}}
                objects.append(entry)
            self._answer({"transfer": "basic", "objects": objects})
        elif "/paths-info/" in path:
            wanted = parse_qs(body.decode())["paths"]
            self._answer([row for row in self._listed() if row["path"] in wanted])
        elif "/commit/" in path:
            for line in body.splitlines():
                said = json.loads(line)
                value = said["value"]
                if said["key"] == "file":
                    data = base64.b64decode(value["content"])
                    oid = hashlib.sha256(data).hexdigest()
                    hub.objects[oid] = data
                    hub.files[value["path"]] = oid
                elif said["key"] == "lfsFile":
                    hub.files[value["path"]] = value["oid"]
                elif said["key"] == "deletedFile":
                    hub.files.pop(value["path"], None)
            url = f"{hub.url}/datasets/{self._repository()}/commit/{'0' * 40}"
            self._answer({"commitUrl": url, "commitOid": "0" * 40, "success": True})
        elif "/tag/" in path:
            hub.tags[json.loads(body)["tag"]] = dict(hub.files)
            self._answer({})
        else:
            self._answer({"error": f"unknown {path}"}, 404)

    def do_PUT(self) -> None:
        hub, body = self.state, self._body()
        if hub.cut_after is not None and len(hub.puts) >= hub.cut_after:
            self.close_connection = True
            self.connection.close()
            return
        oid = self.path.rsplit("/", 1)[-1]
        assert hashlib.sha256(body).hexdigest() == oid
        hub.objects[oid] = body
        hub.puts.append(oid)
        self._answer({})

    def _repository(self) -> str:
        found = re.search(r"/datasets/([\w.-]+/[\w.-]+?)(?:\.git)?(?:/|\?|$)", self.path)
        return found[1] if found else ""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline().strip() or b"0", 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(self.state.status or status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
