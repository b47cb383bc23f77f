"""Asks a served model many prompts with `requests`: threads, keep-alive, one ledger.

The ledger is collection's: every attempt is kept, an answered prompt is never
paid for twice, a run that is stopped resumes. Identical prompts (two models gave
the same answer) are asked once.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pipelines.calls.budget import worst_case
from pipelines.calls.client import Key, retry_after
from pipelines.calls.pricing import Price, cost_of
from pipelines.calls.reply import Fault, Reply, from_status, read_reply
from pipelines.calls.request import CHAT_COMPLETIONS, Request, Settings
from pipelines.errors import BadInput
from pipelines.ledger.attempt import Attempt
from pipelines.ledger.ledger import Ledger
from schemas.recipe.verifier import Served

#: Prompts claimed at once.
_CHUNK = 64
#: Characters of an error body that are kept.
_BODY = 300


@dataclass(frozen=True)
class Heard:
    """What stands for each prompt, by request hash; prompts that were not asked are absent."""

    answers: Mapping[str, Attempt]
    asked: int
    failed: int
    stopped: str | None
    #: Prompts that no usable answer stands for.
    missing: int

    @property
    def figures(self) -> dict[str, Any]:
        """JSON-ready counts of this run."""
        return {
            "asked": self.asked,
            "failed": self.failed,
            "missing": self.missing,
            "stopped": self.stopped,
        }


@dataclass
class _Run:
    served: Served
    ledger: Ledger
    run: str
    purpose: str
    readable: Callable[[str], bool]
    key: Key
    price: Price
    lock: threading.Condition = field(default_factory=threading.Condition)
    spent: float = 0.0
    reserved: float = 0.0
    asked: int = 0
    failed: int = 0
    failed_in_a_row: int = 0
    stopped: str | None = None
    sessions: threading.local = field(default_factory=threading.local)


def settings_of(served: Served, **parameters: Any) -> Settings:
    """What identifies a request to this model, besides the messages."""
    return Settings(
        provider=served.provider.name,
        endpoint=CHAT_COMPLETIONS,
        endpoint_model=served.model,
        parameters={"max_tokens": served.max_tokens, **parameters},
    )


def request_for(settings: Settings, name: str, query_id: str, prompt: str) -> Request:
    """One user message; `name` stands for the model in the ledger."""
    messages = [{"role": "user", "content": prompt}]
    return Request(query_id, name, settings, messages, (0,), settings.request_hash(messages))


def hear(
    requests: Sequence[Request],
    served: Served,
    ledger: Ledger,
    *,
    run: str,
    purpose: str,
    readable: Callable[[str], bool],
    send: bool = True,
) -> Heard:
    """Ask what is not answered yet, and return everything that is.

    Args:
        readable: Whether an answer can be used. One that cannot is asked again,
            up to `served.retry.attempts` times, then stands as an error.
        send: False only looks at what the ledger holds.

    Raises:
        BadInput: the key is not set, or a budget is set without both prices.
    """
    price = Price(served.price_in, served.price_out)
    if served.budget_usd is not None and not price.known:
        raise BadInput(
            f"{served.name!r} has a budget but no price, so nothing could be counted",
            where=f"label, {served.name}",
            next_step="give price_in and price_out in USD per million tokens",
        )
    key = Key.of(served.provider) if send else Key(None)
    state = _Run(served, ledger, run, purpose, readable, key, price)
    by_hash = {request.request_hash: request for request in requests}
    after = ledger.position()
    settled = ledger.settled(list(by_hash))
    missing = [
        request
        for request in by_hash.values()
        if (found := settled.get(request.keys[0])) is None
        or (found.status == "error" and not found.permanent)
    ]
    if missing and send:
        hashes = {request.settings.settings_hash: request.settings for request in missing}
        ledger.remember({key: one.identity.decode() for key, one in hashes.items()})
        _ask_all(missing, state, after)
        ledger.flush()
    answers = ledger.answered(list(by_hash))
    standing = {key[0]: answered.attempt for key, answered in answers.items()}
    usable = sum(attempt.usable for attempt in standing.values())
    return Heard(standing, state.asked, state.failed, state.stopped, len(by_hash) - usable)


def _ask_all(missing: Sequence[Request], state: _Run, after: int) -> None:
    with ThreadPoolExecutor(state.served.concurrency, thread_name_prefix="hearing") as pool:
        try:
            waiting: set[Any] = set()
            for start in range(0, len(missing), _CHUNK):
                chunk = missing[start : start + _CHUNK]
                keys = [request.keys[0] for request in chunk]
                granted = set(state.ledger.claim(keys, after=after).result().granted)
                waiting |= {
                    pool.submit(_ask, request, state)
                    for request in chunk
                    if request.keys[0] in granted
                }
                while len(waiting) > _CHUNK or (waiting and start + _CHUNK >= len(missing)):
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        future.result()
                if state.stopped:
                    break
        except BaseException:
            # Ctrl-C: answers in flight are paid for, so they are still kept.
            state.stopped = state.stopped or "interrupted"
            raise


def _ask(request: Request, state: _Run) -> None:
    retry = state.served.retry
    for number in range(1, retry.attempts + 1):
        if state.stopped:
            break
        reserved = _reserve(request, state)
        if reserved is None:
            break
        attempt, fault = _once(request, state)
        usable = attempt.usable
        free = fault is not None and not fault.maybe_billed
        _settle(state, reserved, 0.0 if free else attempt.cost_usd, failed=not usable)
        last = usable or attempt.permanent or number == retry.attempts
        _keep(attempt, state, settles=last)
        if last:
            _pause_when_down(state, usable)
            return
        pause = min(retry.first_wait_s * 2 ** (number - 1), retry.longest_wait_s)
        pause *= 0.5 + random.random() / 2
        if fault is not None and fault.retry_after is not None:
            pause = min(max(pause, fault.retry_after), retry.longest_retry_after_s)
        _sleep(pause, state)
    state.ledger.release(request.keys)


def _once(request: Request, state: _Run) -> tuple[Attempt, Fault | None]:
    """One call and the attempt that records it."""
    requested_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    started = time.perf_counter()
    about = {
        "request_hash": request.request_hash,
        "sample": 0,
        "query_id": request.query_id,
        "model_id": request.model_id,
        "settings_hash": request.settings.settings_hash,
        "run": state.run,
        "purpose": state.purpose,
        "requested_at": requested_at,
    }
    try:
        reply = _post(request, state)
    except Fault as fault:
        failed = Attempt(
            **about,  # type: ignore[arg-type]
            status="error",
            permanent=fault.permanent,
            http_status=fault.status,
            error_class=fault.kind,
            error=state.key.hide(fault.message),
            latency_s=time.perf_counter() - started,
        )
        return failed, fault
    choice = reply.choices[0]
    cost, source = cost_of(reply.usage, state.price)
    understood = choice.text is not None and state.readable(choice.text)
    answered = Attempt(
        **about,  # type: ignore[arg-type]
        status=choice.status if understood else "error",
        permanent=False,
        http_status=200,
        error_class=None if understood else "unreadable_verdict",
        error=None if understood else f"no verdict in: {(choice.text or '')[:_BODY]!r}",
        text=choice.text if understood else None,
        finish_reason=choice.finish_reason,
        served_model=reply.served_model,
        provider=reply.provider,
        system_fingerprint=reply.system_fingerprint,
        prompt_tokens=reply.usage.prompt_tokens,
        completion_tokens=reply.usage.completion_tokens,
        reasoning_tokens=reply.usage.reasoning_tokens,
        total_tokens=reply.usage.total_tokens,
        cost_usd=cost,
        cost_source=source,
        latency_s=time.perf_counter() - started,
    )
    return answered, None


def _post(request: Request, state: _Run) -> Reply:
    import requests

    session = getattr(state.sessions, "session", None)
    if session is None:
        session = state.sessions.session = requests.Session()
        session.trust_env = False  # a proxy or .netrc would see the answers
    base = state.served.provider.base_url
    base = os.path.expandvars(base) if base.startswith("$") else base
    headers = {"Authorization": f"Bearer {state.key.value}"} if state.key.value else {}
    try:
        response = session.post(
            base.rstrip("/") + request.settings.endpoint,
            json=request.body(),
            headers=headers,
            timeout=(min(30.0, state.served.timeout_s), state.served.timeout_s),
            allow_redirects=False,
        )
    except requests.Timeout as error:
        raise Fault("timeout", f"no answer within {state.served.timeout_s:g} s") from error
    except requests.RequestException as error:
        refused = isinstance(error, requests.ConnectionError) and "refused" in str(error)
        raise Fault("connection", str(error)[:_BODY], maybe_billed=not refused) from error
    if response.status_code != 200:
        body = response.content[:_BODY].decode("utf-8", "replace")
        raise from_status(
            response.status_code,
            state.key.hide(body) or f"HTTP {response.status_code}",
            code_name=None,
            retry_after=retry_after(response.headers),
        )
    return read_reply(response.content)


def _reserve(request: Request, state: _Run) -> float | None:
    """USD set aside for one call; null when the budget cannot hold it any more."""
    if state.served.budget_usd is None:
        with state.lock:
            state.asked += 1
        return 0.0
    worst = worst_case(request, state.price, state.served.max_tokens)
    with state.lock:
        while state.spent + state.reserved + worst > state.served.budget_usd:
            if state.stopped or state.reserved <= 0:
                state.stopped = state.stopped or "the budget is reached"
                return None
            state.lock.wait(0.5)
        state.reserved += worst
        state.asked += 1
        return worst


def _settle(state: _Run, reserved: float, spent: float | None, *, failed: bool) -> None:
    with state.lock:
        state.failed += failed
        # An unknown cost counts as the worst one while a budget is watched.
        state.spent += reserved if spent is None else spent
        state.reserved -= reserved
        if state.reserved < 1e-12:
            state.reserved = 0.0
        state.lock.notify_all()


def _pause_when_down(state: _Run, usable: bool) -> None:
    with state.lock:
        state.failed_in_a_row = 0 if usable else state.failed_in_a_row + 1
        if state.failed_in_a_row >= state.served.retry.pause_after:
            state.stopped = state.stopped or f"{state.failed_in_a_row} prompts in a row failed"
            state.lock.notify_all()


def _sleep(seconds: float, state: _Run) -> None:
    until = time.monotonic() + seconds
    while not state.stopped and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.1))


def _keep(attempt: Attempt, state: _Run, *, settles: bool) -> None:
    """Wait until the attempt is durable: what is not kept would be paid for twice."""
    stored = threading.Event()
    fault: list[BaseException | None] = [None]

    def done(error: BaseException | None) -> None:
        fault[0] = error
        stored.set()

    state.ledger.append([attempt], settles=settles, done=done)
    stored.wait()
    if fault[0] is not None:
        state.stopped = state.stopped or "the ledger cannot be written"
        raise fault[0]
