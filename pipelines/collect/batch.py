"""The batch endpoints of providers as another transport; see `run_batches`."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from routeyard.pipelines.collect.budget import (
    LeastUsage,
    Tally,
    counted,
    counted_fault,
    least_usage,
    worst_case,
)
from routeyard.pipelines.collect.client import Client, cleaned, completion
from routeyard.pipelines.collect.ledger import AnswerKey, Attempt, Lease, is_billed
from routeyard.pipelines.collect.reply import (
    CallFault,
    ModelReply,
    error_names,
    error_of,
    fault_of,
    from_status,
    name_of,
    present,
    read_json,
)
from routeyard.pipelines.collect.request import Request, RequestSettings, Secret, address_of
from routeyard.pipelines.collect.runner import (
    HELD_WAIT_S,
    ModelQueue,
    Origin,
    RequestRun,
    RunResult,
    answered_rows,
    clients_of,
    failed_rows,
    nobody_answers,
)
from routeyard.pipelines.common.usage import count_of

# One batch under way, as it is noted in the ledger before the provider hears of it.

PREFIX = "batch:"
#: Requests in one file at most; seconds between looks; the time that the provider is given.
REQUESTS_PER_BATCH, POLL_S, COMPLETION_WINDOW = 5000, 30.0, "24h"


@dataclass
class BatchNote:
    """Everything that importing its results needs."""

    name: str
    provider: str
    model_id: str
    run: str
    purpose: str
    requested_at: str
    position: int
    #: Per line: request_hash, samples, query_id and settings_hash; `charge`, what was set aside for
    #: it in the ledger; `billed`, attempts before this one that were billed without an answer;
    #: `least`, fewest tokens of its prompt; `cached`, most of it that a cache can have held, as a
    #: share.
    items: list[dict[str, Any]]
    file_id: str | None = None
    batch_id: str | None = None

    @classmethod
    def read(cls, text: str) -> BatchNote:
        """From the text of its note."""
        return cls(**json.loads(text))

    @property
    def keys(self) -> list[AnswerKey]:
        return [(item["request_hash"], sample) for item in self.items for sample in item["samples"]]

    @property
    def note_name(self) -> str:
        return PREFIX + self.name

    def note(self) -> dict[str, str]:
        return {self.note_name: json.dumps(vars(self))}

    def request(self, item: Mapping[str, Any]) -> Request:
        """The request of a line as far as a note keeps it: enough to file its answer."""
        return Request(
            item["query_id"],
            self.model_id,
            _NotedSettings(self.provider, "", "", {}, noted=item["settings_hash"]),
            (),
            tuple(item["samples"]),
            item["request_hash"],
            billed=item["billed"],
        )


@dataclass(frozen=True)
class _NotedSettings(RequestSettings):
    """Settings of which only the hash was noted."""

    noted: str = ""

    @property
    def settings_hash(self) -> str:
        return self.noted


# What a batch's results say: one line per request, in any order, some missing.

Line = Mapping[str, Any]


async def results(client: Client, said: Line) -> dict[str, Line]:
    """custom_id → line, from the output and the error file; the first line counts."""
    result: dict[str, Line] = {}
    for key in ("output_file_id", "error_file_id"):
        if name := name_of(said.get(key)):
            for line in await client.lines(f"/files/{name}/content"):
                result.setdefault(str(line.get("custom_id")), line)
    return result


def reply_of(line: Line | None, said: Line, secret: Secret) -> ModelReply:
    """The completion in a result line.

    Args:
        said: The batch, with its `status` and `errors`.

    Raises:
        CallFault: the line is missing or holds no completion.
    """
    with cleaned(secret):
        return completion(_body(line, said), secret)


def _body(line: Line | None, batch: Line) -> Line:
    """The completion's object, or the fault that was received instead."""
    if line is None:
        why = f"the batch {batch.get('status')} without a result for this request"
        raise _unasked(batch.get("errors"), f"batch_{batch.get('status')}", why)
    response = present(line.get("response"))
    if not isinstance(response, dict):
        raise _unasked({"data": [error_of(line)]}, "batch_error", "the batch gave no answer")
    code, body = count_of(response.get("status_code")) or 0, response.get("body")
    if code >= 400:
        raise fault_of(body, code)
    if isinstance(body, str):  # some gateways keep it as it came
        return read_json(body.encode("utf-8", "surrogatepass"))
    if not isinstance(body, dict):
        raise CallFault("invalid_json", "the result holds no completion", status=200)
    return body


def _unasked(errors: Any, kind: str, why: str) -> CallFault:
    """Why a request of a batch was not asked: a fault of set-up, or to be asked again."""
    listed = errors.get("data") if isinstance(errors, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    said = first if isinstance(first, dict) else {"message": first}
    why = str(present(said.get("message")) or why)
    fault = from_status(400, why, code_name=error_names(said), retry_after=None)
    return CallFault(
        str(present(said.get("code")) or kind), why, maybe_billed=False,
        permanent=fault.concerns is not None, concerns=fault.concerns,
    )  # fmt: skip


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
                return name_of(entry.get("id"))
        if not page.get("has_more") or not entries:
            return None
        after = f"&after={entries[-1].get('id')}"


# The batches of one run: sent, adopted from dead runs, polled and imported row by row.

_ENDED = ("completed", "failed", "expired", "cancelled")
#: Attempts per append.
_ROWS = 256


@dataclass(eq=False)
class OpenBatches:
    """The batches of one run."""

    queues: Mapping[str, ModelQueue]
    clients: Mapping[str, Client]
    run: RequestRun
    open: list[BatchNote] = field(default_factory=list)
    _pending: set[AnswerKey] = field(default_factory=set)
    #: Batches that other processes hold; null before anybody looked.
    _held: list[str] | None = None
    _began: float = field(default_factory=time.monotonic)

    # -- what an earlier run left ------------------------------------------------

    def held_elsewhere(self) -> bool:
        """Whether a batch is held by a process that may be dead: its lease can still be running."""
        return bool(self._held) and time.monotonic() < self._began + Lease.ends_after_s() + 1

    async def resume(self) -> None:
        """Adopt the batches of dead runs; what a live process waits for is left to it."""
        if self._held is not None and not self.held_elsewhere():
            return
        ours = {item.name for item in self.open}
        self._held = []
        for name, text in (await asyncio.to_thread(self.run.ledger.recall, PREFIX)).items():
            left = BatchNote.read(text)
            known = left.model_id in self.queues and left.purpose == self.run.purpose
            if name in ours or not known:
                continue
            claim = await asyncio.wrap_future(self.run.ledger.claim(left.keys, after=left.position))
            if claim.held:
                await asyncio.to_thread(self.run.ledger.release, claim.granted)
                self._held.append(name)
                continue
            client = self.clients[self.queues[left.model_id].provider.name]
            if left.batch_id is None and left.file_id is not None:
                try:
                    left.batch_id = await find(client, left.name)
                except CallFault as fault:  # it may exist: asking anew could pay twice
                    self.run.ledger.release(claim.granted)
                    self._pause(left.model_id, fault, f"batch {left.name} cannot be looked for")
                    continue
            if left.batch_id is None:
                # Never created: nothing was paid for, its questions are asked anew.
                await asyncio.to_thread(self.run.ledger.forget, [PREFIX + name])
                self.run.ledger.release(claim.granted)
                await self._settle(left, [0.0] * len(left.items))
                continue
            self.open.append(left)
            self._pending |= set(left.keys)
            self.run.tallies[left.model_id].in_flight += len(left.items)

    # -- sending -----------------------------------------------------------------

    async def submit(self, queue: ModelQueue) -> None:
        """Submit everything that is missing of one model, in batches of the recipe's size."""
        tally = self.run.tallies[queue.model_id]
        while not tally.paused:
            chunk = list(itertools.islice(queue.requests, REQUESTS_PER_BATCH))
            if not chunk:
                return
            keys = [k for r in chunk for k in r.keys if k not in self._pending]
            claim = await asyncio.wrap_future(self.run.ledger.claim(keys, after=self.run.after))
            tally.elsewhere += len(claim.settled)
            ours = set(claim.granted)
            granted = [part for request in chunk if (part := request.among(ours))]
            charges = await self._charges(queue, granted)
            for request in granted[len(charges) :]:
                self.run.ledger.release(request.keys)
            if charges:
                await self._send(queue, granted[: len(charges)], charges)

    async def _charges(self, queue: ModelQueue, requests: list[Request]) -> list[str]:
        """What is set aside for the first requests whose worst cases fit the budget together."""
        if not self.run.budget.limited:
            return [""] * len(requests)
        worst = [worst_case(r, queue.price, r.max_tokens or queue.max_tokens) for r in requests]
        charges = await self.run.budget.reserve_many(queue.model_id, worst)
        if len(charges) < len(requests):
            tally = self.run.tallies[queue.model_id]
            tally.out_of_budget, tally.paused = True, self.run.budget.full(queue.model_id)
        return charges

    async def _send(self, queue: ModelQueue, requests: list[Request], charges: list[str]) -> None:
        client, tally = self.clients[queue.provider.name], self.run.tallies[queue.model_id]
        budget = self.run.budget
        address = urlsplit(address_of(queue.provider)).path.rstrip("/")
        url = address + requests[0].settings.endpoint
        lines = [
            json.dumps(
                {"custom_id": str(n), "method": "POST", "url": url, "body": request.body()},
                ensure_ascii=False,
            )
            for n, request in enumerate(requests)
        ]
        made = BatchNote(
            name=uuid.uuid4().hex,
            provider=queue.provider.name,
            model_id=queue.model_id,
            run=self.run.name,
            purpose=self.run.purpose,
            requested_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            position=await asyncio.to_thread(self.run.ledger.position),
            items=[
                {
                    "request_hash": r.request_hash,
                    "samples": list(r.samples),
                    "query_id": r.query_id,
                    "settings_hash": r.settings.settings_hash,
                    "charge": charge,
                    "billed": r.billed,
                    "least": least_usage(r.messages).prompt,
                    "cached": budget.cached(r) if budget.limited else 0.0,
                }
                for r, charge in zip(requests, charges, strict=True)
            ],
        )
        try:
            content = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
            made.file_id = await client.upload(content)
            await asyncio.to_thread(self.run.ledger.remember, made.note())
            if not await self._still_ours(made):
                return
            made.batch_id = await client.create_batch(
                made.file_id, url, COMPLETION_WINDOW, made.name
            )
        except CallFault as fault:
            self._pause(queue.model_id, fault, "the batch was not taken")
            for request in requests:
                self.run.ledger.release(request.keys)
            # Uploading asks nothing; creating may have come through.
            billed = made.file_id is not None and fault.maybe_billed
            await self._settle(made, [None if billed else 0.0] * len(made.items))
            if not billed:
                await asyncio.to_thread(self.run.ledger.forget, [made.note_name])
            return
        await asyncio.to_thread(self.run.ledger.remember, made.note())
        tally.asked += len(requests)
        tally.in_flight += len(requests)
        self._pending |= set(made.keys)
        self.open.append(made)

    async def _still_ours(self, made: BatchNote) -> bool:
        """Whether no other process took the requests of a batch before it is created."""
        if self.run.ledger.holds(made.keys):
            return True
        claim = await asyncio.wrap_future(self.run.ledger.claim(made.keys, after=self.run.after))
        if len(claim.granted) == len(made.keys):
            return True
        await asyncio.to_thread(self.run.ledger.forget, [made.note_name])
        self.run.ledger.release(claim.granted)
        await self._settle(made, [0.0] * len(made.items))
        return False

    # -- receiving ---------------------------------------------------------------

    async def poll(self) -> None:
        """Look once at every open batch and import those that ended."""
        for item in list(self.open):
            tally = self.run.tallies[item.model_id]
            client = self.clients[self.queues[item.model_id].provider.name]
            try:
                said = await client.get(f"/batches/{item.batch_id}")
                if str(said.get("status")).lower() not in _ENDED:
                    continue
                result = await results(client, said)
            except CallFault as fault:
                if fault.permanent:
                    self._pause(item.model_id, fault, f"batch {item.batch_id} cannot be read")
                    self.open.remove(item)
                else:
                    tally.errors[fault.kind] += 1
                continue
            await self._import(item, said, result, client)
            self.open.remove(item)

    async def _import(
        self, note: BatchNote, said: Line, lines: Mapping[str, Line], client: Client
    ) -> None:
        queue, tally = self.queues[note.model_id], self.run.tallies[note.model_id]
        claim = await asyncio.wrap_future(self.run.ledger.claim(note.keys, after=note.position))
        if claim.held:
            # Another process took this batch over while this one was stopped, and imports it.
            self.run.ledger.release(claim.granted)
            tally.in_flight -= len(note.items)
            return
        already = set(claim.settled)
        when = datetime.fromisoformat(note.requested_at)
        origin = Origin(note.run, note.purpose, when, queue.price)
        rows: list[Attempt] = []
        spent: list[float | None] = []
        for number, item in enumerate(note.items):
            request, made = note.request(item), []
            cached = max(float(queue.provider.trust_cached_tokens), item["cached"])
            try:
                reply = reply_of(lines.get(str(number)), said, client.secret)
            except CallFault as fault:
                if not fault.refused:
                    tally.met(fault)
                made = failed_rows(request, fault, origin, latency_s=None)
                least = LeastUsage(item["least"], cached=cached)
                spent.append(
                    counted_fault(fault, queue.price, least) if fault.usage is not None else 0.0
                )
            else:
                made = answered_rows(request, reply, origin, latency_s=None, ttft_s=None)
                least = least_usage((), reply.choices, cached)
                spent.append(
                    counted(reply.usage, queue.price, replace(least, prompt=item["least"]))
                )
                if rest := request.only(request.samples[len(made) :]):
                    why = "the server gave fewer answers than asked for"
                    few = CallFault("few_choices", why, status=200)
                    made += failed_rows(rest, few, origin, latency_s=None)
            new = [row for row in made if (row.request_hash, row.sample) not in already]
            failed = [row for row in new if not row.usable]
            most = queue.unanswered_after
            billed = request.billed + any(is_billed(row) for row in failed)
            tally.gave_up(failed, unanswered=most is not None and request.billed < billed >= most)
            rows += new
        tally.errors.update(row.error_class or "error" for row in rows if not row.usable)
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            if (broken := await self.run.writer.keep(part, tally, settles=True)) is not None:
                raise broken
        # Only now: killed before this line, the next run imports what is not there yet.
        await self._settle(note, spent)
        await asyncio.to_thread(self.run.ledger.forget, [note.note_name])
        self.run.ledger.release(note.keys)
        tally.in_flight -= len(note.items)
        self._pending -= set(note.keys)

    def _pause(self, model_id: str, fault: CallFault, what: str) -> None:
        """Ask a model no more, and where its provider is refused, none of the provider's."""
        self.run.tallies[model_id].errors[fault.kind] += 1
        asked = self.queues[model_id].provider
        why = nobody_answers(asked, fault) if fault.unreachable else f"{what} ({fault.words})"
        for name, queue in self.queues.items():
            tally = self.run.tallies[name]
            alike = fault.concerns == "provider" and queue.provider.name == asked.name
            if name == model_id or (alike and not tally.paused):
                tally.paused = why
                if fault.concerns:
                    tally.set_up.setdefault(fault.words, 0)

    async def _settle(self, note: BatchNote, spent: Sequence[float | None]) -> None:
        for item, usd in zip(note.items, spent, strict=True):
            await self.run.budget.settle(item["charge"], usd)
        await self.run.budget.close()


# The batch endpoints as another transport: submit, poll, import row by row.
#
# A batch is noted in the ledger before it is created, with everything that its
# results need, and its keys stay claimed while a process waits for it. A killed
# run finds its batches again: by their id, or by our name in their metadata when
# it was killed between creating and noting. What was imported is not imported
# twice. Budget, keeping and counting are those of live calls.


async def run_batches(queues: Sequence[ModelQueue], run: RequestRun) -> RunResult:
    """As `runner.run_requests`, through `/v1/files` and `/v1/batches`.

    Batches that an earlier run left are waited for first. Time to answer is not
    kept: it says nothing of the model.
    """
    run.tallies.update({queue.model_id: Tally(queue.wanted, queue.before) for queue in queues})
    async with clients_of(queues, run) as clients:
        batches = OpenBatches({queue.model_id: queue for queue in queues}, clients, run)
        with run.progress_shown() as started:
            try:
                await run.budget.begin(run.name)
                await batches.resume()
                for queue in queues:
                    await batches.submit(queue)
                while batches.open or batches.held_elsewhere():
                    await batches.resume()
                    await batches.poll()
                    if batches.open:
                        await asyncio.sleep(POLL_S)
                    elif batches.held_elsewhere():
                        await asyncio.sleep(min(POLL_S, HELD_WAIT_S))
            finally:
                await run.budget.close()
                await asyncio.to_thread(run.ledger.flush)
    await run.budget.explain(run.tallies)
    return RunResult(run.tallies, None, time.monotonic() - started)
