"""Prompts beside a benchmark's questions: verifiers, judges, self-assessment.

Sent by the request runner: the ledger, the limits and the budget are collection's, an
answered prompt is never paid for twice, and a run that is stopped resumes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routeyard.pipelines.collect.budget import BudgetLedger
from routeyard.pipelines.collect.client import Timeouts
from routeyard.pipelines.collect.ledger import Attempt, Ledger, SettledKey
from routeyard.pipelines.collect.request import Request, RequestSettings
from routeyard.pipelines.collect.runner import ModelQueue, RequestRun, run_requests
from routeyard.schemas.recipe.collect import Retry


@dataclass(frozen=True)
class PromptResults:
    """The result of each prompt, by request hash; prompts that were not asked are absent."""

    answers: Mapping[str, Attempt]
    asked: int = 0
    failed: int = 0
    #: Why nothing more was asked in this run.
    stopped: str | None = None
    #: Prompts that asking again may bring an answer to.
    missing: int = 0
    #: What came back where they are missing by a fault of set-up.
    refusal: str | None = None

    @property
    def figures(self) -> dict[str, Any]:
        """JSON-ready counts of this run."""
        names = ("asked", "failed", "missing", "stopped", *(["refusal"] if self.refusal else []))
        return {name: getattr(self, name) for name in names}


def request_for(settings: RequestSettings, name: str, query_id: str, prompt: str) -> Request:
    """One user message; `name` names the model in the ledger."""
    messages = [{"role": "user", "content": prompt}]
    return Request(query_id, name, settings, messages, (0,), settings.request_hash(messages))


def ask_prompts(
    requests: Sequence[Request],
    queue: ModelQueue,
    ledger: Ledger,
    *,
    run: str,
    purpose: str,
    retry: Retry,
    budget: BudgetLedger,
    timeouts: Timeouts,
    send: bool = True,
) -> PromptResults:
    """Ask what is not answered yet, and return everything that is.

    Identical prompts (two models gave the same answer) are asked once.

    Args:
        requests: All of one settings.
        queue: Whom to ask and how; its `requests` and counts are filled in here.
        send: False only looks at what the ledger holds.

    Raises:
        BadInput: the key is not set.
    """
    by_hash = {request.request_hash: request for request in requests}
    if not by_hash:
        return PromptResults({})
    settings_hash, hashes = requests[0].settings.settings_hash, list(by_hash)
    after = ledger.position()
    settled = ledger.settled(hashes)

    def is_open(key: SettledKey | None, answering: bool) -> bool:
        if key is None:
            return True
        if key.status != "error":
            # A cut reply that another purpose kept as an answer is no verdict.
            return queue.unusable is not None and key.status != "ok"
        most = queue.unanswered_after
        # An error settles a prompt where the model answers others: else it is how it is asked.
        final = key.permanent and answering
        return not final and (most is None or key.billed < most)

    missing, answering = [], ledger.has_answers(settings_hash)
    for name, request in by_hash.items():
        result = settled.get((name, 0))
        if is_open(result, answering):
            missing.append(request.with_billed(result.billed if result else 0))
    count, failed, stopped, refusal = 0, 0, None, None
    if missing and send:
        queue.requests = iter(missing)
        queue.wanted, queue.before = len(by_hash), len(by_hash) - len(missing)
        how = RequestRun(ledger, after, run, purpose, retry, budget, timeouts=timeouts)
        end = asyncio.run(run_requests([queue], how))
        tally = end.tallies[queue.model_id]
        count, failed = tally.asked, sum(tally.errors.values())
        stopped, refusal = end.stopped or tally.paused, tally.refusal
        settled = ledger.settled(hashes)
    answering = ledger.has_answers(settings_hash)
    still = sum(is_open(settled.get((name, 0)), answering) for name in by_hash)
    answers = {name: item.attempt for (name, _), item in ledger.answered(hashes).items()}
    return PromptResults(answers, count, failed, stopped, still, refusal if still else None)
