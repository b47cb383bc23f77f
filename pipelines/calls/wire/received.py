"""The one door for what came over the wire: decoded, cleaned of secrets, read.

Live calls, streams, batches, verifiers, judges, lists of models and of prices
all come in here; no text of a server is used, kept or shown otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from routeyard.pipelines.calls.reply import (
    CallFault,
    ModelReply,
    Usage,
    error_names,
    from_status,
    read_json,
    reply_from,
    usage_in,
)
from routeyard.pipelines.calls.wire.secret import Secret

#: Characters of a server's words that are kept.
MOST_CHARACTERS = 500


@contextmanager
def cleaned(secret: Secret) -> Iterator[None]:
    """Faults that leave this block say nothing secret, and not too much."""
    try:
        yield
    except CallFault as fault:
        # Hidden before it is cut: half a key is a key to whoever guesses the rest.
        fault.message = secret.hide(fault.message)[:MOST_CHARACTERS]
        fault.kind = secret.hide(fault.kind)[:60]
        fault.args = (fault.message,)
        fault.usage = fault.usage and secret.clean(fault.usage)
        fault.__context__ = None
        raise


def decoded(body: bytes, secret: Secret) -> dict[str, Any]:
    """A JSON object.

    Raises:
        CallFault: the body is not a JSON object.
    """
    with cleaned(secret):
        return secret.clean(read_json(body))


def completion(data: Mapping[str, Any], secret: Secret, *, tools: bool = False) -> ModelReply:
    """A completion from its decoded object.

    Args:
        tools: The request declared tools: calling them is an answer.

    Raises:
        CallFault: it carries an error, or no answer.
    """
    with cleaned(secret):
        # Twice: reading joins the parts of a text, in which a key may be cut.
        return secret.clean(reply_from(secret.clean(dict(data)), tools=tools))


def refusal(status: int, body: bytes, secret: Secret, *, wait: float | None) -> CallFault:
    """The fault that an HTTP status and its body mean."""
    message, code, usage = _said(body)
    fault = from_status(status, message or f"HTTP {status}", code_name=code, retry_after=wait)
    fault.usage = usage
    if 300 <= status < 400:
        fault = CallFault(
            "redirect",
            "the server sends elsewhere, and questions and keys go to no other host; "
            "write the address that answers as 'base_url'",
            status=status,
            permanent=True,
            concerns="provider",
            maybe_billed=False,
        )
    try:
        with cleaned(secret):
            raise fault
    except CallFault as clean:
        return clean


def _said(body: bytes) -> tuple[str, str | None, Usage | None]:
    """Message, code and usage of an error body, as far as it can be read."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body[:100_000].decode("utf-8", "replace"), None, None
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return str(error), None, None
    usage = usage_in(data) if isinstance(data, dict) else None
    message = error.get("message") or error.get("detail") or error
    return str(message), error_names(error), usage
