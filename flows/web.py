"""Pages that a local HTTP server serves on this machine: the review page and the site."""

from __future__ import annotations

import asyncio
import html
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from aiohttp import web

from routeyard.flows.demo.server import Route, start
from routeyard.pipelines.audit.labels import DECISIONS
from routeyard.schemas.errors import BadInput

# An HTTP server on the loopback address, for a browser on this machine only.

_NAMES = ("127.0.0.1", "localhost")


def asked_here(request: web.Request) -> bool:
    """Whether the one `Host` header names this machine.

    A page elsewhere whose name is made to point here would send its own name. Two headers
    are nobody's browser: one reader may believe the first and another the last.
    """
    named = request.headers.getall("Host", [])
    return len(named) == 1 and named[0].rsplit(":", 1)[0] in _NAMES


class LocalServer:
    """Serves requests on 127.0.0.1 with one function; port 0 takes a free one."""

    def __init__(self, answer: Route, policy: str, *, port: int = 0, path: str = "") -> None:
        async def guarded(request: web.Request) -> web.StreamResponse:
            reply = await answer(request)
            reply.headers.update(
                {
                    "Content-Security-Policy": policy,
                    "Referrer-Policy": "no-referrer",
                    "X-Content-Type-Options": "nosniff",
                    "Cache-Control": "no-store",
                }
            )
            return reply

        self._ended = threading.Event()
        self._loop = asyncio.new_event_loop()
        run = self._loop.run_until_complete
        try:
            # In a thread apart: this one may have a loop that runs, as a notebook's has.
            with ThreadPoolExecutor(1) as aside:
                started = aside.submit(lambda: run(start({"*": guarded}, port)))
                self._runner, address = started.result()
        except OSError as error:
            self._loop.close()
            raise BadInput(
                f"port {port} cannot be opened on this machine: {os.strerror(error.errno or 0)}",
                where="--port",
                next_step="leave --port out and a free one is taken, or end what uses this one",
            ) from error
        self.address = f"{address}/{path}"

    def serve(self) -> None:
        """Serve until Ctrl-C or `end`."""
        try:
            self._loop.run_forever()
        except KeyboardInterrupt:
            pass
        finally:
            self._loop.run_until_complete(self._runner.cleanup())
            self._loop.close()
            self._ended.set()

    def end(self) -> None:
        """Let `serve` return, from another thread, and wait until all is closed."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._ended.wait(10)


# A small local web page for the review queue: one answer at a time, three buttons.
#
# Bound to the loopback address. The page is reached through a secret in its address;
# requests that name another host are refused, so that no other web page can decide.
# Everything a model wrote is shown as text, and the page may load nothing.

_STYLE = Path(__file__).with_name("review.css").read_text(encoding="utf-8")
_REVIEW_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'"
)

Decide = Callable[[tuple[str, str, int], str, str], None]


class ReviewPage(LocalServer):
    """Serves the queue until it is stopped; `decide(key, decision, note)` keeps a decision."""

    def __init__(self, rows: Sequence[dict[str, Any]], decide: Decide, *, port: int = 0) -> None:
        self._rows = list(rows)
        self._decide = decide
        self._secret = secrets.token_urlsafe(18)
        self._decided: dict[int, str] = {}
        super().__init__(self._answer, _REVIEW_POLICY, port=port, path=f"{self._secret}/")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        first, _, number = request.path.strip("/").partition("/")
        known = secrets.compare_digest(first.encode("utf-8", "replace"), self._secret.encode())
        if not known or not asked_here(request):
            return _page("<p>There is nothing here.</p>", 404)
        place = next((n for n in range(len(self._rows)) if n not in self._decided), -1)
        if number:
            whole = number.isascii() and number.isdigit() and len(number) < 9
            place = int(number) if whole else -1
        there = 0 <= place < len(self._rows)
        if request.method == "POST":
            if not there:
                return _page("<p>That could not be read.</p>", 400)
            return self._keep(place, await request.post())
        done = f"<p>{len(self._decided)} decided. Nothing more here.</p>"
        return _page(self._form(place) if there else done)

    def _keep(self, place: int, said: Any) -> web.Response:
        """Keep what the form says of an answer, and go on to the next."""
        decision, note = str(said.get("decision", "")), str(said.get("note", ""))
        if decision not in DECISIONS:
            return _page("<p>That is no decision.</p>", 400)
        row = self._rows[place]
        self._decide((row["query_id"], row["model_id"], int(row["sample"])), decision, note[:2000])
        self._decided[place] = decision
        return web.Response(status=303, headers={"Location": f"/{self._secret}/"})

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


def _page(body: str, status: int = 200) -> web.Response:
    page = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Review</title>"
        f"<style>{_STYLE}</style></head><body>{body}</body></html>"
    ).encode("utf-8", "replace")
    return web.Response(body=page, status=status, content_type="text/html", charset="utf-8")


def _marked(row: dict[str, Any]) -> str:
    """The answer, escaped, with the span that was read in a mark."""
    text, (start, _, end) = str(row["output"]), str(row.get("span", "")).partition("-")
    if not (start.isdigit() and end.isdigit()) or not int(start) < int(end) <= len(text):
        return html.escape(text)
    before, read, after = text[: int(start)], text[int(start) : int(end)], text[int(end) :]
    return f"{html.escape(before)}<mark>{html.escape(read)}</mark>{html.escape(after)}"


# Serves a folder of static pages on loopback, to this machine's browser only.

#: Of every answer, whatever a page says of itself: only the site's own scripts and styles run, and
#: nothing is fetched from elsewhere, sent or framed.
_SITE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class SiteServer(LocalServer):
    """Serves the static pages of `folder`."""

    def __init__(self, folder: Path, *, port: int = 0) -> None:
        self._folder = folder.resolve()
        super().__init__(self._answer, _SITE_POLICY, port=port)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if not asked_here(request):
            return web.Response(text="only this machine may ask", status=403)
        if (page := self._file(request.path)) is None:
            return web.Response(text="there is no such page", status=404)
        if page.is_dir():
            address = request.rel_url.raw_path.strip("/")  # two slashes would name another host
            return web.Response(status=301, headers={"Location": f"/{address}/"})
        kind = guess_type(page.name)[0] or "application/octet-stream"
        return web.Response(body=page.read_bytes(), content_type=kind)

    def _file(self, path: str) -> Path | None:
        """What is at a path, if it is of the site: a stranger's may hold links and pipes."""
        if "\0" in path:
            return None
        place = (self._folder / path.lstrip("/")).resolve()
        if place.is_dir() and path.endswith("/"):
            place = (place / "index.html").resolve()
        within = place.is_relative_to(self._folder)
        return place if within and (place.is_dir() or place.is_file()) else None
