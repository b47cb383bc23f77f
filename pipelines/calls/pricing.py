"""What a call costs: the provider's own figure where it can be believed, else tokens × price.

A figure below what the price table makes of the tokens is not believed, in the tables as in the
budget; a figure of 0 from a model that has a price does not count. Otherwise the cost is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from routeyard.pipelines.calls.reply import Usage

#: Providers round what they bill: so much below the table is not below it.
_ROUNDED = 0.01


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens; null is unknown, never free."""

    input: float | None = None
    output: float | None = None
    date: str | None = None
    source: str | None = None
    #: Of prompt tokens that were read from, or written to, the provider's cache.
    cache_read: float | None = None
    cache_write: float | None = None
    #: Prompt tokens up to which the prices hold; a longer prompt is charged otherwise.
    up_to: int | None = None

    @classmethod
    def of_model(cls, model: Any) -> Price:
        """The price in a model of the pool."""
        return cls(
            model.price_in, model.price_out, model.price_date, model.price_source,
            model.price_cache_read, model.price_cache_write, model.price_up_to,
        )  # fmt: skip

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Price:
        """The price in a row of `models`; what it does not state is unknown."""
        return cls(*(row.get(name) for name in cls().columns))

    @property
    def columns(self) -> dict[str, Any]:
        """The price as columns of `models`."""
        return {
            "price_in": self.input,
            "price_out": self.output,
            "price_date": self.date,
            "price_source": self.source,
            "price_cache_read": self.cache_read,
            "price_cache_write": self.cache_write,
            "price_up_to": self.up_to,
        }

    @property
    def known(self) -> bool:
        return self.input is not None and self.output is not None

    @property
    def free(self) -> bool:
        """Whether it is stated as 0, as of a model on one's own machine."""
        return self.input == 0 and self.output == 0

    def of(
        self,
        prompt_tokens: int | None,
        completion_tokens: int | None,
        cache_read: int | None = None,
        cache_write: int | None = None,
    ) -> float | None:
        """USD for so many tokens; null when a count, or a price of so many, is unknown.

        Args:
            cache_read, cache_write: Of the prompt; where they are unknown, nothing is taken to be
                cached. Cached tokens have a separate price, or no known one, unless
                prompts are free.
        """
        if prompt_tokens is None or completion_tokens is None:
            return None
        if self.input is None or self.output is None:
            return None
        if self.up_to is not None and prompt_tokens > self.up_to:
            return None
        fresh, cached = prompt_tokens - (cache_read or 0) - (cache_write or 0), 0.0
        for tokens, price in ((cache_read, self.cache_read), (cache_write, self.cache_write)):
            if tokens:
                price = 0.0 if price is None and self.input == 0 else price
                if price is None:
                    return None
                cached += tokens * price
        if fresh < 0:
            return None
        return (fresh * self.input + cached + completion_tokens * self.output) / 1e6

    @property
    def dearest(self) -> Price:
        """The price of calls whose prompts are written to the cache, where that costs more."""
        if self.input is None or self.cache_write is None:
            return self
        return replace(self, input=max(self.input, self.cache_write))


def cost_of(usage: Usage, price: Price) -> tuple[float | None, str | None]:
    """(USD, source) of one call; source is `provider`, `price_table` or null."""
    by_table = price.of(
        usage.prompt_tokens, usage.completion_tokens,
        usage.cache_read_tokens, usage.cache_write_tokens,
    )  # fmt: skip
    told = usage.cost_usd
    if told is not None and by_table is not None and told >= by_table * (1 - _ROUNDED):
        return told, "provider"
    if by_table is not None:
        return by_table, "price_table"
    if told is None or (told == 0 and price.known and (price.input or price.output)):
        return None, None
    return told, "provider"
