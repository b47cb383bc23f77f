"""Pages that a local HTTP server serves on this machine: the review page and the site."""

from __future__ import annotations

import html
import os
import secrets
from collections.abc import Callable, Sequence
from email.message import Message
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from routeyard.pipelines.audit.labels import DECISIONS
from routeyard.schemas.errors import BadInput

# An HTTP server on the loopback address, for a browser on this machine only.

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


# A small local web page for the review queue: one answer at a time, three buttons.
#
# Bound to the loopback address. The page is reached through a secret in its address;
# requests that name another host are refused, so that no other web page can decide.
# Everything a model wrote is shown as text, and the page may load nothing.

_STYLE = Path(__file__).with_name("review.css").read_text(encoding="utf-8")
_REVIEW_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'"
)
_LONGEST = 100_000

Decide = Callable[[tuple[str, str, int], str, str], None]


class ReviewPage(LocalServer):
    """Serves the queue until it is stopped; `decide(key, decision, note)` keeps a decision."""

    def __init__(self, rows: Sequence[dict[str, Any]], decide: Decide, *, port: int = 0) -> None:
        self._rows = list(rows)
        self._decide = decide
        self._secret = secrets.token_urlsafe(18)
        self._decided: dict[int, str] = {}
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page._get(self)

            def do_POST(self) -> None:
                page._post(self)

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(Handler, port=port, path=f"{self._secret}/")

    def _place(self, request: BaseHTTPRequestHandler) -> int | None:
        """Number in the path; null (answered with an error) for anything else."""
        parts = request.path.strip("/").split("/")
        known = secrets.compare_digest(parts[0].encode(), self._secret.encode())
        if not known or not asked_here(request.headers):
            self._send(request, 404, "<p>There is nothing here.</p>")
            return None
        number = parts[1] if len(parts) == 2 else ""
        if not number:
            return next((n for n in range(len(self._rows)) if n not in self._decided), -1)
        return int(number) if number.isascii() and number.isdigit() and len(number) < 9 else -1

    def _get(self, request: BaseHTTPRequestHandler) -> None:
        place = self._place(request)
        if place is None:
            return
        if not 0 <= place < len(self._rows):
            self._send(request, 200, f"<p>{len(self._decided)} decided. Nothing more here.</p>")
            return
        self._send(request, 200, self._form(place))

    def _post(self, request: BaseHTTPRequestHandler) -> None:
        place = self._place(request)
        if place is None:
            return
        length = request.headers.get("Content-Length") or "0"
        if (
            not (length.isascii() and length.isdigit())
            or int(length) > _LONGEST
            or not 0 <= place < len(self._rows)
        ):
            self._send(request, 400, "<p>That could not be read.</p>")
            return
        said = parse_qs(request.rfile.read(int(length)).decode("utf-8", "replace"))
        decision, note = said.get("decision", [""])[0], said.get("note", [""])[0]
        if decision not in DECISIONS:
            self._send(request, 400, "<p>That is no decision.</p>")
            return
        row = self._rows[place]
        self._decide((row["query_id"], row["model_id"], int(row["sample"])), decision, note[:2000])
        self._decided[place] = decision
        request.send_response(303)
        request.send_header("Location", f"/{self._secret}/")
        request.send_header("Content-Length", "0")
        request.end_headers()

    def _form(self, place: int) -> str:
        row = {name: html.escape(str(value)) for name, value in self._rows[place].items()}
        buttons = "".join(
            f'<button name="decision" value="{word}">{word.replace("_", " ")}</button>'
            for word in DECISIONS
        )
        return f"""
<h1>{place + 1} of {len(self._rows)}</h1>
<p>{row["task"]} · {row["why"]} · now {row["label"]} · changes the order of
{row["order_changes"]} pairs of models</p>
<main><section><h2>Question</h2><pre>{row["question"]}</pre>
<h2>Reference</h2><pre>{row["references"]}</pre></section>
<section><h2>Answer</h2><pre>{_marked(self._rows[place])}</pre></section>
<section><h2>Verdicts</h2><pre>{row.get("reasons") or row["readings"]}</pre></section></main>
<form method="post" action="/{self._secret}/{place}">
<p><label>Note <input name="note" size="60" maxlength="2000"></label></p><p>{buttons}</p></form>
<p>{len(self._decided)} decided. <a href="/{self._secret}/{place + 1}">Leave it and go on</a></p>
"""

    def _send(self, request: BaseHTTPRequestHandler, status: int, body: str) -> None:
        page = (
            "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Review</title>"
            f"<style>{_STYLE}</style></head><body>{body}</body></html>"
        ).encode("utf-8", "replace")
        request.send_response(status)
        request.send_header("Content-Type", "text/html; charset=utf-8")
        request.send_header("Content-Security-Policy", _REVIEW_POLICY)
        request.send_header("Referrer-Policy", "no-referrer")
        request.send_header("X-Content-Type-Options", "nosniff")
        request.send_header("Cache-Control", "no-store")
        request.send_header("Content-Length", str(len(page)))
        request.end_headers()
        request.wfile.write(page)


def _marked(row: dict[str, Any]) -> str:
    """The answer, escaped, with the span that was read in a mark."""
    text, (start, _, end) = str(row["output"]), str(row.get("span", "")).partition("-")
    if not (start.isdigit() and end.isdigit()) or not int(start) < int(end) <= len(text):
        return html.escape(text)
    before, read, after = text[: int(start)], text[int(start) : int(end)], text[int(end) :]
    return f"{html.escape(before)}<mark>{html.escape(read)}</mark>{html.escape(after)}"


# Serves a folder of static pages on loopback, to this machine's browser only.

#: What the standard library opens unasked where a folder is asked for.
_PAGES = ("index.html", "index.htm")
#: Of every answer, whatever a page says of itself: only the site's own scripts and styles run, and
#: nothing is fetched from elsewhere, sent or framed.
_SITE_POLICY = (
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
        result = Path(os.path.realpath(path))
        within = result.is_relative_to(self.directory)
        return within and (result.is_dir() or result.is_file())

    def list_directory(self, path):  # type: ignore[no-untyped-def]
        self.send_error(404, "there is no such page")
        return None

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", _SITE_POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass
