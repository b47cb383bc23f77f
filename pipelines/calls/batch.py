"""The batch endpoints as another transport: submit, poll, import row by row.

A batch is noted in the ledger before it is created, with everything that its
results need, and its keys stay claimed while a process waits for it. A killed
run finds its batches again: by their id, or by our name in their metadata when
it was killed between creating and noting. What was imported is not imported twice.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from pipelines.calls.ask import Asked
from pipelines.calls.attempts import Origin, answered_rows, failed_rows
from pipelines.calls.budget import Purse, worst_case
from pipelines.calls.client import Client
from pipelines.calls.lane import Lane
from pipelines.calls.pricing import Price, cost_of
from pipelines.calls.progress import OnProgress, Tally, snapshot
from pipelines.calls.reply import Fault, from_status, read_json, reply_from
from pipelines.calls.request import Request, Settings
from pipelines.ledger.attempt import Attempt
from pipelines.ledger.ledger import Key, Ledger
from schemas.recipe.collect import Batch

_ENDED = ("completed", "failed", "expired", "cancelled")
_NOTE = "batch:"


@dataclass
class _Submitted:
    """One batch under way; all of it is noted."""

    name: str
    provider: str
    model_id: str
    run: str
    purpose: str
    requested_at: str
    position: int
    endpoint: str
    #: Per line: request_hash, samples, query_id, settings_hash.
    items: list[tuple[str, list[int], str, str]]
    file_id: str | None = None
    batch_id: str | None = None
    reserved: float = field(default=0.0)

    @property
    def keys(self) -> list[Key]:
        return [(item[0], sample) for item in self.items for sample in item[1]]

    def note(self) -> dict[str, str]:
        return {_NOTE + self.name: json.dumps(vars(self) | {"reserved": 0.0})}


async def ask_in_batches(
    lanes: Sequence[Lane],
    ledger: Ledger,
    *,
    after: int,
    run: str,
    purse: Purse,
    batch: Batch,
    purpose: str = "collect",
    deadline_s: float = 600.0,
    on_progress: OnProgress | None = None,
    on_stored: Callable[[Sequence[Attempt]], None] | None = None,
) -> Asked:
    """As `asking.ask`, through `/v1/files` and `/v1/batches`.

    Batches that an earlier run left are waited for first. Time to answer is not
    kept: it says nothing of the model.
    """
    batches = _Batches(lanes, ledger, after, run, purpose, purse, batch, on_stored)
    started = time.monotonic()

    def show(finished: bool) -> None:
        if on_progress:
            elapsed = time.monotonic() - started
            on_progress(snapshot(batches.tallies, elapsed, finished=finished))

    for lane in lanes:
        name = lane.provider.name
        if name not in batches.clients:
            batches.clients[name] = Client(lane.provider, connections=8, deadline_s=deadline_s)
    try:
        await batches.resume()
        for lane in lanes:
            await batches.submit(lane)
        while batches.open:
            show(False)
            await batches.poll()
            if batches.open:
                await asyncio.sleep(batch.poll_s)
    finally:
        for client in batches.clients.values():
            await client.__aexit__(None, None, None)
        await asyncio.to_thread(ledger.flush)
        show(True)
    return Asked(batches.tallies, None, time.monotonic() - started)


class _Batches:
    """The batches of one run."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        ledger: Ledger,
        after: int,
        run: str,
        purpose: str,
        purse: Purse,
        settings: Batch,
        on_stored: Callable[[Sequence[Attempt]], None] | None,
    ) -> None:
        self.lanes = {lane.model_id: lane for lane in lanes}
        self.tallies = {lane.model_id: Tally(lane.wanted, lane.before) for lane in lanes}
        self.clients: dict[str, Client] = {}
        self.open: list[_Submitted] = []
        self._ledger = ledger
        self._after = after
        self._run = run
        self._purpose = purpose
        self._purse = purse
        self._settings = settings
        self._on_stored = on_stored
        self._pending: set[Key] = set()

    # -- what an earlier run left ------------------------------------------------

    async def resume(self) -> None:
        """Adopt the batches of dead runs; what a live process waits for is left to it."""
        for name, text in (await asyncio.to_thread(self._ledger.recall, _NOTE)).items():
            left = _Submitted(**json.loads(text))
            if left.model_id not in self.lanes or left.purpose != self._purpose:
                continue
            left.items = [(h, list(s), q, sh) for h, s, q, sh in left.items]
            claim = await asyncio.wrap_future(self._ledger.claim(left.keys, after=left.position))
            if claim.held:
                await asyncio.to_thread(self._ledger.release, claim.granted)
                continue
            client = self.clients[left.provider]
            if left.batch_id is None and left.file_id is not None:
                left.batch_id = await _find(client, left.name)
            if left.batch_id is None:
                # Never created: nothing was paid for, its questions are asked anew.
                await asyncio.to_thread(self._ledger.forget, [_NOTE + name])
                self._ledger.release(claim.granted)
                continue
            self.open.append(left)
            self._pending |= set(left.keys)
            self.tallies[left.model_id].in_flight += len(left.items)

    # -- sending -----------------------------------------------------------------

    async def submit(self, lane: Lane) -> None:
        """Submit everything that is missing of one model, in batches of the recipe's size."""
        tally = self.tallies[lane.model_id]
        while not tally.paused:
            chunk = list(itertools.islice(lane.requests, self._settings.requests_per_batch))
            if not chunk:
                return
            keys = [k for r in chunk for k in r.keys if k not in self._pending]
            claim = await asyncio.wrap_future(self._ledger.claim(keys, after=self._after))
            tally.elsewhere += len(claim.settled)
            ours = set(claim.granted)
            granted = [
                part
                for request in chunk
                if (part := request.only(s for h, s in request.keys if (h, s) in ours))
            ]
            sent, reserved = self._within_budget(lane, granted)
            for request in granted[len(sent) :]:
                self._ledger.release(request.keys)
            if sent:
                await self._send(lane, sent, reserved)

    def _within_budget(self, lane: Lane, requests: list[Request]) -> tuple[list[Request], float]:
        """The first requests whose worst cases fit the budget together."""
        if not self._purse.limited:
            return requests, 0.0
        total = 0.0
        for number, request in enumerate(requests):
            limit = request.max_tokens or lane.max_tokens
            usd = worst_case(request, lane.price, limit) if limit else float("inf")
            if not self._purse.reserve_now(lane.model_id, usd):
                self.tallies[lane.model_id].paused = "the budget is reached"
                return requests[:number], total
            total += usd
        return requests, total

    async def _send(self, lane: Lane, requests: list[Request], reserved: float) -> None:
        client, tally = self.clients[lane.provider.name], self.tallies[lane.model_id]
        endpoint = requests[0].settings.endpoint
        url = urlsplit(lane.provider.base_url).path.rstrip("/") + endpoint
        lines = [
            json.dumps(
                {"custom_id": str(n), "method": "POST", "url": url, "body": request.body()},
                ensure_ascii=False,
            )
            for n, request in enumerate(requests)
        ]
        made = _Submitted(
            name=uuid.uuid4().hex,
            provider=lane.provider.name,
            model_id=lane.model_id,
            run=self._run,
            purpose=self._purpose,
            requested_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            position=await asyncio.to_thread(self._ledger.position),
            endpoint=endpoint,
            items=[
                (r.request_hash, list(r.samples), r.query_id, r.settings.settings_hash)
                for r in requests
            ],
            reserved=reserved,
        )
        try:
            content = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
            made.file_id = await client.upload(content)
            await asyncio.to_thread(self._ledger.remember, made.note())
            made.batch_id = await client.create_batch(
                made.file_id, url, self._settings.completion_window, made.name
            )
        except Fault as fault:
            tally.errors[fault.kind] += 1
            tally.paused = f"the batch was not taken ({fault.kind}: {fault.message[:200]})"
            for request in requests:
                self._ledger.release(request.keys)
            await self._purse.settle(lane.model_id, reserved, None if made.file_id else 0.0)
            if not fault.maybe_billed:
                await asyncio.to_thread(self._ledger.forget, [_NOTE + made.name])
            return
        await asyncio.to_thread(self._ledger.remember, made.note())
        tally.asked += len(requests)
        tally.in_flight += len(requests)
        self._pending |= set(made.keys)
        self.open.append(made)

    # -- receiving ---------------------------------------------------------------

    async def poll(self) -> None:
        """Look once at every open batch and import those that ended."""
        for one in list(self.open):
            client = self.clients[one.provider]
            try:
                said = read_json(await client.get(f"/batches/{one.batch_id}"))
                if said.get("status") not in _ENDED:
                    continue
                results = await self._results(client, said)
            except Fault as fault:
                self.tallies[one.model_id].errors[fault.kind] += 1
                if fault.permanent:
                    self.tallies[
                        one.model_id
                    ].paused = (
                        f"batch {one.batch_id} cannot be read ({fault.kind}: {fault.message[:200]})"
                    )
                    self.open.remove(one)
                continue
            await self._import(one, str(said.get("status")), results)
            self.open.remove(one)

    async def _results(self, client: Client, said: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """custom_id → line, from the output and the error file; the first line stands."""
        found: dict[str, dict[str, Any]] = {}
        for name in ("output_file_id", "error_file_id"):
            if not isinstance(said.get(name), str):
                continue
            for line in (await client.get(f"/files/{said[name]}/content")).splitlines():
                try:
                    data = read_json(line)
                except Fault:
                    # Its request is then without a result, and says so.
                    continue
                if isinstance(data.get("custom_id"), str):
                    found.setdefault(data["custom_id"], data)
        return found

    async def _import(
        self, one: _Submitted, status: str, results: dict[str, dict[str, Any]]
    ) -> None:
        lane, tally = self.lanes[one.model_id], self.tallies[one.model_id]
        claim = await asyncio.wrap_future(self._ledger.claim(one.keys, after=one.position))
        already = set(claim.settled)
        origin = Origin(
            one.run,
            one.purpose,
            datetime.fromisoformat(one.requested_at),
            self.clients[one.provider].key.hide,
        )
        rows: list[Attempt] = []
        spent: float | None = 0.0
        for number, (request_hash, samples, query_id, settings_hash) in enumerate(one.items):
            if all((request_hash, sample) in already for sample in samples):
                continue
            request = _noted_request(one, request_hash, samples, query_id, settings_hash)
            got, cost = _read_line(request, results.get(str(number)), status, lane.price, origin)
            rows += got
            self._count(tally, got, cost)
            spent = None if spent is None or cost is None else spent + cost
        for start in range(0, len(rows), 256):
            await self._keep(rows[start : start + 256])
        # Only now: killed before this line, the next run imports what is not there yet.
        await asyncio.to_thread(self._ledger.forget, [_NOTE + one.name])
        self._ledger.release(one.keys)
        tally.in_flight -= len(one.items)
        self._pending -= set(one.keys)
        await self._purse.settle(one.model_id, one.reserved, spent)

    async def _keep(self, rows: list[Attempt]) -> None:
        kept = asyncio.get_running_loop().create_future()

        def stored(fault: BaseException | None) -> None:
            if fault is None and self._on_stored:
                self._on_stored(rows)
            kept.get_loop().call_soon_threadsafe(kept.set_result, fault)

        self._ledger.append(rows, settles=True, done=stored)
        if (fault := await kept) is not None:
            raise fault

    def _count(self, tally: Tally, rows: list[Attempt], cost: float | None) -> None:
        for row in rows:
            if row.usable:
                setattr(tally, row.status, getattr(tally, row.status) + 1)
                tally.unpriced += row.cost_usd is None
            else:
                tally.failed += 1
                tally.permanent += row.permanent
                tally.errors[row.error_class or "error"] += 1
        tally.spent_usd += cost or 0.0


def _noted_request(
    one: _Submitted, request_hash: str, samples: list[int], query_id: str, settings_hash: str
) -> Request:
    """A request as far as a note keeps it: enough to file its answer."""
    settings = _Noted(one.provider, one.endpoint, "", {}, settings_hash)
    return Request(query_id, one.model_id, settings, (), tuple(samples), request_hash)


@dataclass(frozen=True)
class _Noted(Settings):
    """Settings of which only the hash was noted."""

    noted: str = ""

    @property
    def settings_hash(self) -> str:
        return self.noted


def _read_line(
    request: Request, line: dict[str, Any] | None, status: str, price: Price, origin: Origin
) -> tuple[list[Attempt], float | None]:
    """(rows, USD) of one result; an unanswered request costs nothing."""
    try:
        reply = reply_from(_body(line, status))
    except Fault as fault:
        return failed_rows(request, fault, origin, latency_s=None), 0.0
    cost = cost_of(reply.usage, price)
    rows = answered_rows(request, reply, origin, cost=cost, latency_s=None, ttft_s=None)
    rest = request.only(request.samples[len(rows) :])
    if rest:
        short = Fault("few_choices", "the server gave fewer answers than asked for", status=200)
        rows += failed_rows(rest, short, origin, latency_s=None)
    return rows, cost[0]


def _body(line: dict[str, Any] | None, status: str) -> dict[str, Any]:
    """The completion in a result line, or the fault that stands there instead."""
    if line is None:
        raise Fault(f"batch_{status}", f"the batch {status} without a result for this request")
    error = line.get("error")
    response = line.get("response")
    if not isinstance(response, dict):
        said = error if isinstance(error, dict) else {}
        kind = str(said.get("code") or "batch_error")[:60]
        raise Fault(kind, str(said.get("message") or "the batch gave no answer")[:500])
    code, body = response.get("status_code"), response.get("body")
    if isinstance(code, int) and code >= 400:
        inner = body.get("error") if isinstance(body, dict) else None
        message = inner.get("message") if isinstance(inner, dict) else body
        raise from_status(code, str(message)[:500], code_name=None, retry_after=None)
    if not isinstance(body, dict):
        raise Fault("invalid_json", "the result holds no completion", status=200)
    return body


async def _find(client: Client, name: str) -> str | None:
    """The id of the batch that carries our name, or null when it was never created.

    Raises:
        Fault: the list cannot be read; guessing could pay twice.
    """
    after = ""
    while True:
        page = read_json(await client.get(f"/batches?limit=100{after}"))
        entries = [e for e in page.get("data") or [] if isinstance(e, dict)]
        for entry in entries:
            metadata = entry.get("metadata")
            if isinstance(metadata, dict) and metadata.get("routeyard") == name:
                return str(entry.get("id"))
        if not page.get("has_more") or not entries:
            return None
        after = f"&after={entries[-1].get('id')}"
