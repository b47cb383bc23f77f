"""A hard limit in USD that counts what is in flight.

Before a call is sent its worst case is reserved: every byte of the prompt a
token (no byte-level tokenizer makes more) plus what a chat template adds, and
`max_tokens` for each answer. When the answer comes the reservation becomes its
cost. A call whose outcome is not known (time-out, reset, 5xx) may have been
billed: its reservation stays spent.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

from pipelines.calls.pricing import Price
from pipelines.calls.request import Request
from schemas.recipe.collect import Budget

#: Tokens a chat template adds around one message, generously.
TEMPLATE_TOKENS = 64


class Purse:
    """Reserved and spent USD of one run, per model and in total."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.spent: dict[str, float] = defaultdict(float)
        self._reserved: dict[str, float] = defaultdict(float)
        self._changed = asyncio.Condition()

    @property
    def limited(self) -> bool:
        return self._budget.is_set

    async def reserve(self, model_id: str, usd: float) -> bool:
        """Reserve, waiting for calls in flight where they can still make room.

        Returns:
            False when it can no longer fit: nothing in flight would free enough.
        """
        if not self._budget.is_set:
            return True
        async with self._changed:
            while not self._fits(model_id, usd):
                if not self._may_fit(model_id, usd):
                    return False
                await self._changed.wait()
            self._reserved[model_id] += usd
            return True

    def reserve_now(self, model_id: str, usd: float) -> bool:
        """Reserve if it fits at once; nothing is waited for."""
        if self.limited and not self._fits(model_id, usd):
            return False
        self._reserved[model_id] += usd if self.limited else 0.0
        return True

    async def settle(self, model_id: str, reserved: float, spent: float | None) -> None:
        """Turn a reservation into what was spent; null keeps all of it spent."""
        self.spent[model_id] += reserved if spent is None and self._budget.is_set else spent or 0.0
        if not self._budget.is_set:
            return
        async with self._changed:
            self._reserved[model_id] -= reserved
            self._changed.notify_all()

    def _limit(self, model_id: str) -> float | None:
        return self._budget.models.get(model_id, self._budget.per_model_usd)

    def _fits(self, model_id: str, usd: float) -> bool:
        return self._room(model_id, with_reserved=True) >= usd

    def _may_fit(self, model_id: str, usd: float) -> bool:
        return self._room(model_id, with_reserved=False) >= usd

    def _room(self, model_id: str, *, with_reserved: bool) -> float:
        room = float("inf")
        limit = self._limit(model_id)
        if limit is not None:
            held = self._reserved[model_id] if with_reserved else 0.0
            room = limit - self.spent[model_id] - held
        if self._budget.usd is not None:
            held = sum(self._reserved.values()) if with_reserved else 0.0
            room = min(room, self._budget.usd - sum(self.spent.values()) - held)
        return room


def worst_case(request: Request, price: Price, max_tokens: int) -> float:
    """Most USD the request can cost."""
    prompt = sum(_bytes(message) + TEMPLATE_TOKENS for message in request.messages)
    cost = price.of(prompt, max_tokens * len(request.samples))
    return float("inf") if cost is None else cost


def _bytes(message: object) -> int:
    return len(str(message).encode("utf-8", "surrogatepass"))
