"""Tells people through a Prefect notification block, whose address and token stay in the block."""

from __future__ import annotations

from collections.abc import Sequence

from routeyard.pipelines.errors import BadInput


def check_blocks(blocks: Sequence[str]) -> None:
    """Each name is `type/name` of a block that exists.

    Raises:
        BadInput: a name without a slash, or a block that the server does not know.
    """
    for block in blocks:
        _load(block)


def notify(blocks: Sequence[str], subject: str, body: str) -> None:
    """Send to each block. A message that cannot be delivered does not fail the run."""
    import logging

    for block in blocks:
        try:
            _load(block).notify(body, subject)
        except Exception as error:  # delivery is somebody else's network
            # The error's text may hold the block's address, which is a secret: only its class.
            logging.getLogger("routeyard").warning(
                "notification through %s failed: %s", block, type(error).__name__
            )


def _load(block: str):  # type: ignore[no-untyped-def]
    from prefect.blocks.core import Block

    if "/" not in block:
        raise BadInput(
            f"{block!r} does not name a notification block",
            next_step="write type/name, e.g. slack-webhook/team",
        )
    try:
        return Block.load(block)
    except ValueError as error:
        raise BadInput(
            f"the Prefect server has no block {block!r}",
            next_step="create it in the UI under Blocks, or with `prefect block register`",
        ) from error
