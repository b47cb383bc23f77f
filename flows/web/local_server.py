"""An HTTP server on the loopback address, for a browser on this machine only."""

from __future__ import annotations

from email.message import Message
from http.server import ThreadingHTTPServer
from typing import Any

from routeyard.pipelines.errors import BadInput

_NAMES = ("127.0.0.1", "localhost")


def asked_here(headers: Message) -> bool:
    """Whether the one `Host` header names this machine.

    A page elsewhere whose name is made to point here would send its own name. Two headers
    are nobody's browser: one reader may believe the first and another the last.
    """
    named = headers.get_all("Host") or []
    return len(named) == 1 and str(named[0]).rsplit(":", 1)[0] in _NAMES


class LocalServer:
    """Serves requests on 127.0.0.1 with a handler of `http.server`; port 0 takes a free one."""

    def __init__(self, handler: Any, *, port: int = 0, path: str = "") -> None:
        try:
            self.server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        except OSError as error:
            raise BadInput(
                f"port {port} cannot be opened on this machine: {error.strerror or error}",
                where="--port",
                next_step="leave --port out and a free one is taken, or end what uses this one",
            ) from error
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/{path}"

    def serve(self) -> None:
        """Serve until Ctrl-C or `server.shutdown()`."""
        try:
            self.server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            pass
        finally:
            self.server.server_close()
