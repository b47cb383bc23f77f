"""What a server can do wrong: each kind, and what may come of it.

`KINDS[name] = (reply, outcome)`: `reply(text)` is what the server does where `text` would have
been the right answer; the outcome is `ok` (the text arrives as it was sent), `error` (there is no
answer), or another text that the server did send.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

from tests.calls.loopback import Do, answer, completion, error

KEY = "sk-live-0123456789abcdef0123456789abcdef"
Reply = Callable[[str], Do]
_JSON = {"content-type": "application/json"}


def status(code: int, **headers: str) -> Reply:
    return lambda text: error(code, headers={**headers})


def body(make: Callable[[str], bytes], **headers: str) -> Reply:
    return lambda text: Do(body=make(text), headers={**_JSON, **headers})


def said(change: Callable[[dict[str, Any]], Any]) -> Reply:
    """A completion that was changed; the change may give another document."""

    def reply(text: str) -> Do:
        document = completion(text)
        changed = change(document)
        return answer(document if changed is None else changed)

    return reply


def without(document: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != key}


def usage(**figures: Any) -> Reply:
    return said(lambda d: d["usage"].update(figures))


def message(**fields: Any) -> Reply:
    return said(lambda d: d["choices"][0]["message"].update(fields))


def choice(**fields: Any) -> Reply:
    return said(lambda d: d["choices"][0].update(fields))


def plain(text: str) -> bytes:
    return json.dumps(completion(text)).encode()


def costing(text: str, cost: bytes) -> bytes:
    return plain(text).replace(b'"total_tokens": 15', b'"total_tokens": 15, "cost": ' + cost)


KINDS: dict[str, tuple[Reply, str]] = {
    # statuses
    **{f"status {code}": (status(code), "error") for code in (400, 408, 409, 413, 418, 422, 425)},
    **{f"status {code}": (status(code), "error") for code in (429, 451, 500, 502, 503, 504, 599)},
    "status 204 without a body": (lambda text: Do(status=204), "error"),
    "status 206 with half of it": (
        lambda text: Do(status=206, body=plain(text)[:40]),
        "error",
    ),
    "status 304": (lambda text: Do(status=304), "error"),
    "a redirect to another host": (
        status(307, location="http://203.0.113.1/v1/chat/completions"),
        "error",
    ),
    "a redirect without a place": (status(302), "error"),
    "a redirect to a file": (status(301, location="file:///etc/hostname"), "error"),
    "wait a day": (status(429, **{"retry-after": "86400"}), "error"),
    "wait a negative time": (status(429, **{"retry-after": "-5"}), "error"),
    "wait for no number": (status(429, **{"retry-after": "NaN"}), "error"),
    # connections
    "never a byte": (lambda text: Do(hang=True), "error"),
    "slow": (lambda text: answer(completion(text), delay=0.3), "ok"),
    "too slow": (lambda text: answer(completion(text), delay=30.0), "error"),
    "cut before a byte": (lambda text: Do(cut=0, body=b"x"), "error"),
    "cut in the middle": (lambda text: answer(completion(text), cut=30), "error"),
    # bytes
    "an empty body": (lambda text: Do(), "error"),
    "HTML": (body(lambda text: b"<html>It works</html>"), "error"),
    "half of a document": (body(lambda text: plain(text)[:-9]), "error"),
    "a document and a half": (body(lambda text: plain(text) * 2), "error"),
    "nested fifty thousand deep": (body(lambda text: b'{"choices":' + b"[" * 50_000), "error"),
    "another encoding": (body(lambda text: plain(text).decode().encode("utf-16")), "ok"),
    "not UTF-8": (body(lambda text: plain(text).replace(b"assistant", b"\xff\xfe")), "error"),
    "a number with five thousand digits": (
        body(lambda text: plain(text).replace(b"10", b"9" * 5_000)),
        "any",
    ),
    "a gzip bomb": (
        lambda text: Do(
            body=gzip.compress(b" " * (100 * 2**20)), headers={"content-encoding": "gzip"}
        ),
        "error",
    ),
    "gzip that is none": (body(plain, **{"content-encoding": "gzip"}), "error"),
    "honest gzip": (
        body(lambda text: gzip.compress(plain(text)), **{"content-encoding": "gzip"}),
        "ok",
    ),
    "more than can be an answer": (said(lambda d: d.update(pad="x" * 300_000)), "error"),
    # documents
    "null": (said(lambda d: [None][0] or json.loads("[null]")), "error"),
    "a list": (said(lambda d: [d]), "error"),
    "a text": (said(lambda d: "42"), "error"),
    "an error with status 200": (
        said(lambda d: {"error": {"message": "overloaded", "code": 529}}),
        "error",
    ),
    "no choices": (said(lambda d: without(d, "choices")), "error"),
    "empty choices": (said(lambda d: d.update(choices=[])), "error"),
    "choices that are null": (said(lambda d: d.update(choices=None)), "error"),
    "choices that are a mapping": (
        said(lambda d: d.update(choices={"0": d["choices"][0]})),
        "error",
    ),
    "a choice that is a text": (said(lambda d: d.update(choices=["42"])), "error"),
    "a message that is null": (choice(message=None), "error"),
    "a message that is a text": (choice(message="42"), "error"),
    "a text that is null": (message(content=None), "error"),
    "a text that is a number": (message(content=42), "error"),
    "a text that is a mapping": (message(content={"text": "42"}), "error"),
    "a text in parts of other kinds": (message(content=[{"type": "image_url"}, 3]), "error"),
    "tool calls only": (
        message(
            content=None, tool_calls=[{"id": "1", "function": {"name": "f", "arguments": "{}"}}]
        ),
        "error",
    ),
    "a reason to finish that is a number": (choice(finish_reason=7), "ok"),
    "an index that is a text": (choice(index="first"), "ok"),
    "keys that stand twice": (
        body(lambda text: plain("no").replace(b'"choices"', b'"choices": [], "choices"', 1)),
        "no",
    ),
    "the same id for every answer": (said(lambda d: d.update(id="c")), "ok"),
    "another model": (said(lambda d: d.update(model="cheaper")), "ok"),
    "a model that is a number": (said(lambda d: d.update(model=7)), "ok"),
    "the key, sent back": (lambda text: answer(completion(f"{text} {KEY}")), "redacted"),
    # usage
    "no usage": (said(lambda d: without(d, "usage")), "ok"),
    "usage that is a list": (said(lambda d: d.update(usage=[])), "ok"),
    "usage that is a text": (said(lambda d: d.update(usage="much")), "ok"),
    "negative usage": (usage(prompt_tokens=-5, completion_tokens=-1, total_tokens=-6), "ok"),
    "usage in words": (usage(prompt_tokens="ten", completion_tokens=None), "ok"),
    "usage in fractions": (usage(prompt_tokens=1.5, completion_tokens=True), "ok"),
    "usage without end": (usage(prompt_tokens=10**30, total_tokens=10**30), "ok"),
    "a negative cost": (usage(cost=-1.0), "ok"),
    "a cost of nothing": (usage(cost=0), "ok"),
    "a cost in words": (usage(cost="free"), "ok"),
    "a cost that is no number": (
        body(
            lambda text: plain(text).replace(
                b'"total_tokens": 15', b'"total_tokens": 15, "cost": NaN'
            )
        ),
        "ok",
    ),
    "a cost without end": (
        body(
            lambda text: plain(text).replace(
                b'"total_tokens": 15', b'"total_tokens": 15, "cost": 1e999'
            )
        ),
        "ok",
    ),
}
