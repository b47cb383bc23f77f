"""What came of a call, as rows of the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.calls.pricing import Price, cost_of
from pipelines.calls.reply import CallFault, ModelReply
from pipelines.calls.request import Request
from pipelines.ledger.attempt import Attempt


@dataclass(frozen=True, slots=True)
class Origin:
    """Which run asked, what for, when, and at what price."""

    run: str
    purpose: str
    requested_at: datetime
    price: Price

    def of(self, request: Request, sample: int) -> dict[str, Any]:
        return {
            "request_hash": request.request_hash,
            "sample": sample,
            "query_id": request.query_id,
            "model_id": request.model_id,
            "settings_hash": request.settings.settings_hash,
            "run": self.run,
            "purpose": self.purpose,
            "requested_at": self.requested_at.isoformat(timespec="milliseconds"),
        }


def answered_rows(
    request: Request,
    reply: ModelReply,
    origin: Origin,
    *,
    latency_s: float | None,
    ttft_s: float | None,
) -> list[Attempt]:
    """One row for each wanted sample that the reply has a choice for."""
    # More choices than were asked for are not samples anybody wanted.
    choices = reply.choices[: len(request.samples)]
    count = len(choices)
    usage = reply.usage
    usd, source = cost_of(usage, origin.price)
    return [
        Attempt(
            **origin.of(request, sample),
            status=choice.status,
            permanent=False,
            http_status=200,
            text=choice.text,
            finish_reason=choice.finish_reason,
            served_model=reply.served_model,
            provider=reply.provider,
            system_fingerprint=reply.system_fingerprint,
            choices=count,
            call_completion_tokens=usage.completion_tokens,
            prompt_tokens=usage.prompt_tokens,
            # One count for several answers: which had how many is not known.
            completion_tokens=usage.completion_tokens if count == 1 else None,
            reasoning_tokens=usage.reasoning_tokens if count == 1 else None,
            total_tokens=usage.total_tokens if count == 1 else None,
            cost_usd=None if usd is None else usd / count,
            cost_source=source,
            latency_s=latency_s,
            ttft_s=ttft_s,
            logprobs=choice.logprobs,
        )
        for sample, choice in zip(request.samples, choices, strict=False)
    ]


def failed_rows(
    request: Request, fault: CallFault, origin: Origin, *, latency_s: float | None
) -> list[Attempt]:
    """One row for each sample that got no answer; what was metered for them stands there."""
    count = len(request.samples)
    metered: dict[str, Any] = {}
    if fault.usage is not None:
        usd, source = cost_of(fault.usage, origin.price)
        metered = {
            "prompt_tokens": fault.usage.prompt_tokens,
            "call_completion_tokens": fault.usage.completion_tokens,
            "completion_tokens": fault.usage.completion_tokens if count == 1 else None,
            "cost_usd": None if usd is None else usd / count,
            "cost_source": source,
        }
    return [
        Attempt(
            **origin.of(request, sample),
            status="error",
            permanent=fault.permanent,
            http_status=fault.status,
            error_class=fault.kind,
            error=fault.message,
            choices=count,
            latency_s=latency_s,
            **metered,
        )
        for sample in request.samples
    ]
