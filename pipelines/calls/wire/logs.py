"""What the libraries below log of requests, without secrets.

They log whole addresses, and at the level DEBUG bodies and headers as well; whoever
turns logging on must not turn secrets on.
"""

from __future__ import annotations

import logging
from typing import Protocol, TypeVar

#: Loggers of everything between us and the socket.
_LOGGERS = (
    "openai", "openai._base_client", "openai._response", "openai._legacy_response", "httpx2",
    "httpcore2", "httpx", "httpcore", "aiohttp.client", "asyncio", "urllib3.connectionpool",
    "urllib3.util.retry", "urllib3.connection", "requests",
)  # fmt: skip


class _Hides(Protocol):
    def whole(self, text: str) -> str: ...
    def hide(self, text: str) -> str: ...


_Secret = TypeVar("_Secret", bound=_Hides)


class _Filter(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self.secrets: list[_Hides] = []

    def filter(self, record: logging.LogRecord) -> bool:
        said = plain = record.getMessage()
        # Whole ones first: one may contain pieces of another.
        for secret in self.secrets:
            said = secret.whole(said)
        for secret in self.secrets:
            said = secret.hide(said)
        if said != plain:
            record.msg, record.args = said, ()
        return True


_FILTER = _Filter()


def hidden_in_logs(secret: _Secret) -> _Secret:
    """The secret, from now on hidden in what the libraries log."""
    if secret not in _FILTER.secrets:
        _FILTER.secrets.append(secret)
    for name in _LOGGERS:
        # Adding it again does nothing.
        logging.getLogger(name).addFilter(_FILTER)
    return secret
