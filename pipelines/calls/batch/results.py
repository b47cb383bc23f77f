"""What a batch's results say: one line per request, in any order, some missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routeyard.pipelines.calls.client import Client
from routeyard.pipelines.calls.reply import (
    CallFault,
    ModelReply,
    error_names,
    from_status,
    usage_in,
)
from routeyard.pipelines.calls.wire.received import cleaned, completion
from routeyard.pipelines.calls.wire.secret import Secret

Line = Mapping[str, Any]


async def results(client: Client, said: Line) -> dict[str, Line]:
    """custom_id → line, from the output and the error file; the first line counts."""
    found: dict[str, Line] = {}
    for name in ("output_file_id", "error_file_id"):
        if isinstance(said.get(name), str):
            for line in await client.lines(f"/files/{said[name]}/content"):
                if isinstance(line.get("custom_id"), str):
                    found.setdefault(line["custom_id"], line)
    return found


def reply_of(line: Line | None, said: Line, secret: Secret) -> ModelReply:
    """The completion in a result line.

    Args:
        said: The batch, with its `status` and `errors`.

    Raises:
        CallFault: the line is missing or holds no completion.
    """
    with cleaned(secret):
        return completion(_body(line, said), secret)


def _body(line: Line | None, batch: Line) -> Line:
    """The completion's object, or the fault that was received instead."""
    if line is None:
        why = f"the batch {batch.get('status')} without a result for this request"
        raise _unasked(batch.get("errors"), f"batch_{batch.get('status')}", why)
    error = line.get("error")
    response = line.get("response")
    if not isinstance(response, dict):
        raise _unasked({"data": [error]}, "batch_error", "the batch gave no answer")
    code, body = response.get("status_code"), response.get("body")
    if isinstance(code, int) and code >= 400:
        inner = body.get("error") if isinstance(body, dict) else None
        message = inner.get("message") if isinstance(inner, dict) else body
        name = error_names(inner) if isinstance(inner, dict) else None
        fault = from_status(code, str(message), code_name=name, retry_after=None)
        fault.usage = usage_in(body) if isinstance(body, dict) else None
        raise fault
    if not isinstance(body, dict):
        raise CallFault("invalid_json", "the result holds no completion", status=200)
    return body


def _unasked(errors: Any, kind: str, why: str) -> CallFault:
    """Why a request of a batch was not asked: a fault of set-up, or to be asked again."""
    listed = errors.get("data") if isinstance(errors, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    said = first if isinstance(first, dict) else {}
    why = str(said.get("message") or why)
    fault = from_status(400, why, code_name=error_names(said), retry_after=None)
    return CallFault(
        str(said.get("code") or kind), why, maybe_billed=False,
        permanent=fault.concerns is not None, concerns=fault.concerns,
    )  # fmt: skip


async def find(client: Client, name: str) -> str | None:
    """The id of the batch that carries our name, or null when it was never created.

    Raises:
        CallFault: the list cannot be read; guessing could pay twice.
    """
    after = ""
    while True:
        page = await client.get(f"/batches?limit=100{after}")
        entries = [e for e in page.get("data") or [] if isinstance(e, dict)]
        for entry in entries:
            metadata = entry.get("metadata")
            if isinstance(metadata, dict) and metadata.get("routeyard") == name:
                return str(entry.get("id"))
        if not page.get("has_more") or not entries:
            return None
        after = f"&after={entries[-1].get('id')}"
