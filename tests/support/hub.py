"""A local stand-in of the dataset hub's HTTP interface: create, upload, commit, tag."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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
            rows = [
                {"type": "file", "path": path, "oid": "0" * 40, "size": len(hub.objects[oid])}
                for path, oid in hub.files.items()
            ]
            self._answer(rows)
        else:
            siblings = [{"rfilename": path} for path in hub.files]
            self._answer({"id": repo, "sha": "0" * 40, "siblings": siblings, "private": False})

    def do_HEAD(self) -> None:
        self._answer({}, 404)

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
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
