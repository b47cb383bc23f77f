"""Questions about pictures that code draws, and simulated models that look at what they are sent.

`sim-eye` sees colours and stripes, `sim-squint` colours only; `sim-reader` reads text only.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from routeyard.flows.demo.answers import tokens, uniform
from routeyard.flows.demo.completions import HttpReply, message_texts
from routeyard.pipelines.common.staging import replacing

COLOURS = {"red": (214, 40, 40), "green": (30, 140, 60), "blue": (40, 70, 200), "black": (0, 0, 0)}
#: Tokens that the simulated provider counts for a picture.
IMAGE_TOKENS = 85
_LETTERS = "ABCD"


def png(colour: str, stripes: int, size: int) -> bytes:
    """A PNG of white ground with upright stripes of one colour."""
    white = (255, 255, 255)
    row = b"".join(
        bytes(COLOURS[colour] if (x * (2 * stripes + 1) // size) % 2 else white)
        for x in range(size)
    )
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress((b"\0" + row) * size)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def look(data: bytes) -> tuple[str, int]:
    """Colour and number of stripes of a picture that `png` drew."""
    size, at, packed = struct.unpack_from(">I", data, 16)[0], 8, b""
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        packed += data[at + 8 : at + 8 + length] * (data[at + 4 : at + 8] == b"IDAT")
        at += 12 + length
    row = zlib.decompressobj().decompress(packed, 1 + 3 * size)[1:]
    pixels = [(row[x], row[x + 1], row[x + 2]) for x in range(0, len(row), 3)]
    seen = {rgb: name for name, rgb in COLOURS.items()}
    shown = [seen.get(pixel) for pixel in pixels]
    begins = [b for a, b in zip([None, *shown], shown, strict=False) if b is not None and a != b]
    return begins[0] or "", len(begins)


def write_pictures(folder: Path) -> Path:
    """Write `questions.jsonl` and the pictures it names; returns the folder."""
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    rows = []
    for n in range(96):
        colour, stripes = list(COLOURS)[n % 4], n // 4 % 4 + 1
        task = ("colour", "stripes", "caption")[n // 16 % 3]
        name = f"pictures/{n:02}.png"
        (folder / name).write_bytes(png(colour, stripes, 36 + n))
        question, choices, right = {
            "colour": (f"Picture {n}: which colour has it?", list(COLOURS), n % 4),
            "stripes": (f"Picture {n}: how many stripes has it?", list("1234"), stripes - 1),
            "caption": (
                f"Picture {n} shows {colour} stripes, says its caption. Which colour are they?",
                list(COLOURS), n % 4,
            ),
        }[task]  # fmt: skip
        rows.append(
            {"id": n, "task": task, "image": name, "question": question, "choices": choices,
             "answer": _LETTERS[right]}
        )  # fmt: skip
    with replacing(folder / "questions.jsonl") as staged:
        staged.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


class PicturePool:
    """The answering side of the server."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        #: The last user message of each request, as it came.
        self.content: list[Any] = []

    def complete(self, request: Any) -> HttpReply:
        """One chat completion."""
        model, content = str(request["model"]), request["messages"][-1]["content"]
        text = message_texts(request["messages"], "user")[-1]
        parts = content if isinstance(content, list) else []
        urls = [part["image_url"]["url"] for part in parts if part.get("type") == "image_url"]
        self.asked[model] += 1
        self.content.append(content)
        answer = self._answer(model, text, urls)
        prompt = len(tokens(text)) + 7 + IMAGE_TOKENS * len(urls)
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": len(tokens(answer)),
            "total_tokens": prompt + len(tokens(answer)),
            "prompt_tokens_details": {"image_tokens": IMAGE_TOKENS * len(urls)},
        }
        said = {"role": "assistant", "content": answer}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        body = {"id": "1", "object": "chat.completion", "model": model, "choices": [choice]}
        wait = 0.002 + 0.004 * uniform(model, text, "latency")
        return HttpReply(200, {**body, "usage": usage}, wait_s=wait)

    def models(self) -> dict[str, Any]:
        """The body of `/v1/models`."""
        return {"object": "list", "data": []}

    def counts(self) -> dict[str, Any]:
        """Requests so far by model, and what the users' messages were."""
        return {"asked": dict(self.asked), "content": self.content}

    def _answer(self, model: str, text: str, urls: list[str]) -> str:
        choices = re.findall(r"^[A-D]\. (\w+)", text, re.MULTILINE)
        told = re.search(r"shows (\w+) stripes", text)
        known = told[1] if told else None
        if urls and known is None:
            colour, stripes = look(base64.b64decode(urls[0].partition(",")[2]))
            counts = "how many" in text
            known = None if counts and model == "sim-squint" else str(stripes) if counts else colour
        if known not in choices or uniform(model, text, "slip") < 0.04:
            known = choices[int(len(choices) * uniform(model, text, "guess"))]
        return f"Answer: {_LETTERS[choices.index(known)]}"
