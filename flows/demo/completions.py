"""Chat completions of the simulated pool as JSON objects, faults and counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from routeyard.flows.demo.answers import (
    SimulatedAnswer,
    SimulatedModel,
    answer,
    pool,
    small_talk,
    tokens,
    uniform,
)
from routeyard.flows.demo.bank import BankQuestion, bank

CREATED = 1_767_225_600  # a fixed day: nothing the server says depends on the clock


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What goes back: status, body, headers, seconds to wait, and what it answered."""

    status: int
    body: Mapping[str, Any]
    headers: tuple[tuple[str, str], ...] = ()
    wait_s: float = 0.0
    key: tuple[str, str, int] | None = None


@dataclass
class SimulatedPool:
    """The answering side of the server.

    Attributes:
        asked: (model, question or prompt hash, seed) → requests seen.
    """

    seed: int = 0
    faults: float = 1.0
    latency: float = 1.0
    asked: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    _found: dict[str, BankQuestion | None] = field(default_factory=dict)

    def complete(self, request: Any) -> HttpReply:
        """One chat completion request → reply; malformed requests get a 400."""
        if not isinstance(request, dict):
            return _refuse(400, "the body must be a JSON object", "invalid_request_error")
        model = pool().get(str(request.get("model")))
        if model is None:
            return _refuse(404, f"the model {request.get('model')!r} does not exist", "not_found")
        prompt = next(reversed(message_texts(request.get("messages"), "user")), None)
        if prompt is None:
            return _refuse(400, "'messages' needs a user message", "invalid_request_error")
        n = 1 if request.get("n") is None else request["n"]
        sample = 0 if request.get("seed") is None else request["seed"]
        limit = request.get("max_completion_tokens", request.get("max_tokens"))
        if not all(isinstance(x, int) for x in (n, sample)) or not 1 <= n <= 128:
            return _refuse(400, "'n' and 'seed' must be whole numbers", "invalid_request_error")
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            return _refuse(400, "'max_tokens' must be at least 1", "invalid_request_error")
        question = self._recognise(prompt)
        name = question.id if question else sha256(prompt.encode()).hexdigest()[:16]
        key = (model.model_id, name, sample)
        self.asked[key] += 1
        if fault := self._fault(model, key):
            return fault
        said = [
            _cut(
                answer(self.seed, model, question, sample + i)
                if question
                else small_talk(self.seed, model, prompt, sample + i),
                limit,
            )
            for i in range(n)
        ]
        body = self._body(model, key, said, request)
        spoken = max(len(tokens(a.text or "")) + a.reasoning_tokens // 8 for a in said)
        jitter = 0.7 + 0.6 * uniform(*key, "latency")
        wait = (model.first_token_ms + model.token_ms * spoken) * jitter / 1000 * self.latency
        return HttpReply(200, body, (), wait, key)

    def models(self) -> dict[str, Any]:
        """What is served, with prices."""
        return price_list()

    def counts(self) -> dict[str, Any]:
        """Requests so far, per model, question and seed."""
        return {"requests": sum(self.asked.values()), "asked": nested(self.asked)}

    def _recognise(self, prompt: str) -> BankQuestion | None:
        """The question that a prompt contains: the longest, so that no part wins over a whole."""
        if prompt not in self._found:
            inside = [q for q in bank() if q.question in prompt]
            best = max(inside, key=lambda q: (len(q.question), q.id), default=None)
            self._found[prompt] = best
        return self._found[prompt]

    def _fault(self, model: SimulatedModel, key: tuple[str, str, int]) -> HttpReply | None:
        """Some questions fail at first; asking again helps."""
        luck = uniform(self.seed, *key, "fault")
        if self.asked[key] > (2 if uniform(self.seed, *key, "stubborn") < 0.3 else 1):
            return None
        if luck < model.throttled * self.faults:
            headers = (("retry-after", "0.05"), ("retry-after-ms", "50"))
            return _refuse(429, "rate limit reached, try again", "rate_limit_error", headers)
        if luck > 1 - model.broken * self.faults:
            return _refuse(500, "the server had an error", "server_error")
        return None

    def _body(
        self,
        model: SimulatedModel,
        key: tuple[str, str, int],
        said: list[SimulatedAnswer],
        request: Mapping[str, Any],
    ) -> dict[str, Any]:
        prompt_tokens = sum(len(tokens(text)) for text in message_texts(request["messages"])) + 7
        reasoning = sum(a.reasoning_tokens for a in said)
        visible = sum(len(tokens(a.text or a.refusal or "")) for a in said)
        cost = (prompt_tokens * model.price_in + (visible + reasoning) * model.price_out) / 1e6
        stamp = sha256(json.dumps([self.seed, *key]).encode()).hexdigest()
        return {
            "id": f"chatcmpl-{stamp[:24]}",
            "object": "chat.completion",
            "created": CREATED,
            "model": model.model_id,
            "provider": "demo",
            "system_fingerprint": f"fp_{sha256(model.model_id.encode()).hexdigest()[:10]}",
            "choices": [
                {
                    "index": i,
                    "message": {"role": "assistant", "content": a.text, "refusal": a.refusal},
                    "finish_reason": a.finish_reason,
                    "logprobs": _logprobs(model, key, a, request),
                }
                for i, a in enumerate(said)
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": visible + reasoning,
                "total_tokens": prompt_tokens + visible + reasoning,
                "completion_tokens_details": {"reasoning_tokens": reasoning},
                "cost": round(cost, 12),
            },
        }


def nested(found: Mapping[tuple[str, str, int], int]) -> dict[str, dict[str, int]]:
    """Counts by (model, question, seed) as JSON: model → `question#seed` → count."""
    out: dict[str, dict[str, int]] = {}
    for (model, question, seed), count in sorted(found.items()):
        out.setdefault(model, {})[f"{question}#{seed}"] = count
    return out


def price_list() -> dict[str, Any]:
    """`/v1/models` in the form that OpenRouter gives: USD per token, as text."""
    return {
        "object": "list",
        "data": [
            {
                "id": model.model_id,
                "object": "model",
                "created": CREATED,
                "owned_by": "routeyard",
                "name": f"{model.model_id} (simulated)",
                "context_length": model.context_window,
                "pricing": {
                    "prompt": f"{model.price_in / 1e6:.10f}".rstrip("0"),
                    "completion": f"{model.price_out / 1e6:.10f}".rstrip("0"),
                },
            }
            for model in pool().values()
        ],
    }


def _refuse(
    status: int, message: str, kind: str, headers: tuple[tuple[str, str], ...] = ()
) -> HttpReply:
    return HttpReply(status, {"error": {"message": message, "type": kind, "code": status}}, headers)


def message_texts(messages: Any, role: str | None = None) -> list[str]:
    """Texts of all messages, or of those of one role: earlier turns are billed too."""
    found = []
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and role in (None, message.get("role")):
            content = message.get("content")
            if isinstance(content, list):
                content = "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
            if isinstance(content, str) and content:
                found.append(content)
    return found


def _cut(said: SimulatedAnswer, limit: int | None) -> SimulatedAnswer:
    """The answer within `limit` tokens, hidden reasoning included."""
    pieces = tokens(said.text or "")
    if limit is None or said.reasoning_tokens + len(pieces) <= limit:
        return said
    hidden = min(said.reasoning_tokens, limit)
    return SimulatedAnswer("".join(pieces[: limit - hidden]), "length", reasoning_tokens=hidden)


def _logprobs(
    model: SimulatedModel,
    key: tuple[str, str, int],
    said: SimulatedAnswer,
    request: Mapping[str, Any],
) -> dict[str, Any] | None:
    if not request.get("logprobs"):
        return None
    wanted = int(request.get("top_logprobs") or 0)
    pieces = tokens(said.text or "")
    content = []
    for i, piece in enumerate(pieces):
        sure = -0.02 - 1.5 * uniform(*key, "logprob", i) ** 3
        rivals: list[dict[str, Any]] = [
            {
                "token": pieces[int(uniform(model.model_id, piece, j) * len(pieces))],
                "logprob": round(sure - 0.7 * j - 2 * uniform(*key, i, j), 6),
                "bytes": None,
            }
            for j in range(1, wanted)
        ]
        chosen: dict[str, Any] = {"token": piece, "logprob": round(sure, 6), "bytes": None}
        top = sorted([chosen, *rivals], key=lambda entry: -entry["logprob"]) if wanted else []
        content.append({**chosen, "top_logprobs": top})
    return {"content": content, "refusal": None}
