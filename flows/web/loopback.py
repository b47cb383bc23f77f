"""Who may ask a server on loopback: this machine's browser, by a name of this machine."""

from __future__ import annotations

from email.message import Message

_NAMES = ("127.0.0.1", "localhost")


def asked_here(headers: Message) -> bool:
    """Whether the one `Host` header names this machine.

    A page elsewhere whose name is made to point here would send its own name. Two headers
    are nobody's browser: one reader may believe the first and another the last.
    """
    named = headers.get_all("Host") or []
    return len(named) == 1 and str(named[0]).rsplit(":", 1)[0] in _NAMES
