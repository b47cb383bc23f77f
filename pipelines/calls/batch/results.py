"""What a batch's results say: one line per request, in any order, some missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routeyard.pipelines.calls.client import Client
from routeyard.pipelines.calls.reply import CallFault, ModelReply, from_status, usage_in
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


def reply_of(line: Line | None, status: str, secret: Secret) -> ModelReply:
    """The completion in a result line.

    Args:
        status: How the batch ended.

    Raises:
        CallFault: the line is missing or holds no completion.
    """
    with cleaned(secret):
        return completion(_body(line, status), secret)


def _body(line: Line | None, status: str) -> Line:
    """The completion's object, or the fault that was received instead."""
    if line is None:
        why = f"the batch {status} without a result for this request"
        raise CallFault(f"batch_{status}", why, maybe_billed=False)
    error = line.get("error")
    response = line.get("response")
    if not isinstance(response, dict):
        said = error if isinstance(error, dict) else {}
        kind = str(said.get("code") or "batch_error")
        why = str(said.get("message") or "the batch gave no answer")
        raise CallFault(kind, why, maybe_billed=False)
    code, body = response.get("status_code"), response.get("body")
    if isinstance(code, int) and code >= 400:
        inner = body.get("error") if isinstance(body, dict) else None
        message = inner.get("message") if isinstance(inner, dict) else body
        fault = from_status(code, str(message), code_name=None, retry_after=None)
        fault.usage = usage_in(body) if isinstance(body, dict) else None
        raise fault
    if not isinstance(body, dict):
        raise CallFault("invalid_json", "the result holds no completion", status=200)
    return body


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
