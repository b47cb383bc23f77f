"""What a call costs: the provider's own figure, else tokens × price, else unknown."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.calls.reply import Usage


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens; null is unknown, never free."""

    input: float | None = None
    output: float | None = None
    date: str | None = None
    source: str | None = None

    @property
    def known(self) -> bool:
        return self.input is not None and self.output is not None

    def of(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """USD for so many tokens; null when a count or a price is unknown."""
        if prompt_tokens is None or completion_tokens is None:
            return None
        if self.input is None or self.output is None:
            return None
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


def cost_of(usage: Usage, price: Price) -> tuple[float | None, str | None]:
    """(USD, source) of one call; source is `provider`, `price_table` or null."""
    if usage.cost_usd is not None:
        return usage.cost_usd, "provider"
    cost = price.of(usage.prompt_tokens, usage.completion_tokens)
    return cost, None if cost is None else "price_table"
