"""Serves a folder of static pages on loopback, to this machine's browser only."""

from __future__ import annotations

import os
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote

from routeyard.flows.web.local_server import LocalServer, asked_here

#: What the standard library opens unasked where a folder is asked for.
_PAGES = ("index.html", "index.htm")
#: Of every answer, whatever a page says of itself: only the site's own scripts and styles run, and
#: nothing is fetched from elsewhere, sent or framed.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class SiteServer(LocalServer):
    """Serves the static pages of `folder`."""

    def __init__(self, folder: Path, *, port: int = 0) -> None:
        super().__init__(partial(_Handler, directory=str(folder.resolve())), port=port)


class _Handler(SimpleHTTPRequestHandler):
    def send_head(self):  # type: ignore[no-untyped-def]
        if not asked_here(self.headers):
            self.send_error(403, "only this machine may ask")
            return None
        if "\0" in unquote(self.path) or not self._lies_here():
            self.send_error(404, "there is no such page")
            return None
        return super().send_head()

    def _lies_here(self) -> bool:
        """Whether what would be opened is of the site: a stranger's may hold links and pipes."""
        asked = self.translate_path(self.path)
        pages = (os.path.join(asked, name) for name in _PAGES)
        return all(map(self._of_the_site, (asked, *filter(os.path.exists, pages))))

    def _of_the_site(self, path: str) -> bool:
        found = Path(os.path.realpath(path))
        within = found.is_relative_to(self.directory)
        return within and (found.is_dir() or found.is_file())

    def list_directory(self, path):  # type: ignore[no-untyped-def]
        self.send_error(404, "there is no such page")
        return None

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass
