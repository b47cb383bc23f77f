"""A server that says the key back in every field of every kind of answer."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any

from tests.calls.loopback import Do, Loopback, answer, error


def forms(key: str) -> list[str]:
    """The key as a server may write it, once each and next to each other."""
    escaped = "".join(f"\\u{ord(c):04x}" for c in key)
    quoted = "".join(f"%{ord(c):02X}" for c in key)
    return [
        key,
        f"Bearer {key}.",
        json.dumps({"auth": key, "again": escaped}),
        escaped,
        quoted,
        urllib.parse.quote(key, safe=""),
        "".join(f"&#{ord(c)};" for c in key),
        f"https://host/{key}/v1?key={key}",
        f"cut off at the end {key[:-3]}",
    ]


class Echo(Loopback):
    """Answers every path; `says` is the text that a caller can use, beside the key."""

    def __init__(self, key: str, *, kind: str = "ok") -> None:
        super().__init__(lambda body, seen: error(404))
        self.key = key
        self.said = " ".join(forms(key))
        self.kind = kind
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        #: Stands behind `/v1` in every path.
        self.strip = ""

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        key, said = self.key, self.said
        prompt = body["messages"][-1]["content"]
        verdict = (
            "[[1]]"
            if "double brackets" in prompt
            else "Correct"
            if "Reply with one" in prompt
            else "yes"
        )
        text = verdict if self.kind == "quiet" else f"{said}\n{verdict}"
        half = len(key) // 2
        # Cut into parts of a content list, and spelt out token by token.
        content = [
            {"type": "text", "text": key[:half]},
            {"type": "text", "text": f"{key[half:]} {text}"},
        ]
        tokens = [
            {"token": key[i : i + 3], "logprob": -0.1, "bytes": list(key[i : i + 3].encode()),
             "top_logprobs": [{"token": key[i : i + 3], "logprob": -0.1}]}
            for i in range(0, len(key), 3)
        ]  # fmt: skip
        return {
            "id": said,
            "object": said,
            "model": said,
            "provider": said,
            "system_fingerprint": said,
            said: said,
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": said,
                        "content": text if self.kind == "quiet" else content,
                        "refusal": said if self.kind == "refusal" else None,
                        "tool_calls": [{"id": said, "function": {"arguments": said}}],
                    },
                    "finish_reason": said,
                    "logprobs": {"content": tokens},
                }
            ],
            "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18, said: said},
        }

    def receive(self, method: str, path: str, body: bytes) -> Do:
        path, _, _ = path.removeprefix("/v1").removeprefix(self.strip).partition("?")
        if path == "/models":
            return answer(
                {"data": [{"id": self.said, "name": self.said, "pricing": {"prompt": self.said}}]}
                if self.kind != "error"
                else {"error": self.said}
            )
        if (method, path) == ("POST", "/files"):
            content = next(p for p in body.split(b"\r\n\r\n") if p.lstrip().startswith(b"{"))
            self.files["f"] = content.rsplit(b"\r\n--", 1)[0]
            return answer({"id": "f", "object": self.said, "filename": self.said})
        if (method, path) == ("POST", "/batches"):
            made = json.loads(body) | {"id": "b", "status": "completed"}
            lines, bad = [], []
            for number, line in enumerate(self.files["f"].splitlines()):
                asked = json.loads(line)
                if number % 3 == 0:
                    bad.append({"custom_id": asked["custom_id"],
                                "error": {"code": self.said, "message": self.said}})  # fmt: skip
                elif number % 3 == 1:
                    said = {"error": {"message": "x" * 480 + self.said}}
                    response = {"status_code": 400, "body": said}
                    bad.append({"custom_id": asked["custom_id"], "response": response})
                else:
                    told = {"status_code": 200, "body": self.completion(asked["body"])}
                    lines.append({"custom_id": asked["custom_id"], "response": told})
            for name, rows in (("o", lines), ("e", bad)):
                self.files[name] = b"\n".join(json.dumps(row).encode() for row in rows)
            self.batches["b"] = made | {"output_file_id": "o", "error_file_id": "e",
                                        "errors": {"data": [self.said]}}  # fmt: skip
            return answer(self.batches["b"])
        kind, _, name = path.strip("/").partition("/")
        if kind == "batches":
            return answer(self.batches[name])
        if kind == "files":
            return Do(body=self.files[name.removesuffix("/content")])
        return self.chat(json.loads(body))

    def chat(self, body: dict[str, Any]) -> Do:
        # A key that stands where a message is cut leaves half of itself.
        padded = "x" * 490 + self.said
        if self.kind == "error":
            return Do(
                status=400,
                body=json.dumps({"error": {"message": padded, "code": self.said}}).encode(),
                headers={"x-key": self.key},
            )
        if self.kind == "html":
            return Do(status=403, body=f"<p>{padded}</p>".encode())
        if self.kind == "error with 200":
            return answer({"error": {"code": self.said, "message": padded}})
        if self.kind == "no json":
            return Do(body=f"{self.said} {{".encode())
        if self.kind == "redirect":
            return Do(status=307, headers={"location": f"http://127.0.0.1:1/{self.key}"})
        if body.get("stream"):
            return Do(body=self.stream(body), headers={"content-type": "text/event-stream"})
        return answer(self.completion(body))

    def stream(self, body: dict[str, Any]) -> bytes:
        """Events of three characters each: the key stands whole in none of them."""
        text = self.said
        pieces = [text[i : i + 3] for i in range(0, len(text), 3)]
        whole = self.completion(body)
        events = [
            {"model": self.said, "choices": [{"index": 0, "delta": {"content": piece}}]}
            for piece in pieces
        ]
        logprobs = whole["choices"][0]["logprobs"]
        end = {"index": 0, "delta": {}, "finish_reason": self.said, "logprobs": logprobs}
        events.append({"choices": [end], "usage": whole["usage"], "system_fingerprint": self.said})
        lines = [f"data: {json.dumps(event)}\n\n" for event in events]
        return "".join([*lines, "data: [DONE]\n\n"]).encode()
