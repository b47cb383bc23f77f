"""Tokens of one call by class."""

from __future__ import annotations

from typing import NamedTuple


class TokenUsage(NamedTuple):
    """Tokens of one call; null where the provider does not say, which is not zero.

    Attributes:
        prompt, completion: All tokens of the prompt and of the answer.
        read, write: Of the prompt, read from the provider's cache and written to it.
        reasoning: Of the answer, hidden.
        write_1h: Of those written, kept for an hour.
        image, audio: Of the prompt, beside text and not read from the cache.
        cached_audio: Of those read, sound.
        output_image, output_audio: Of the answer.
        hidden: Of the stated total, of no stated class.
        beside: What is billed beside tokens, such as searches; its price is not among theirs.
        odd: Values that are no counts, or counts that contradict each other.
    """

    prompt: int | None = None
    completion: int | None = None
    read: int | None = None
    write: int | None = None
    reasoning: int | None = None
    write_1h: int = 0
    image: int = 0
    audio: int = 0
    cached_audio: int = 0
    output_image: int = 0
    output_audio: int = 0
    hidden: int = 0
    beside: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, int | None]:
        """The counts under the names that `steps` and `responses` have for them."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "reasoning_tokens": self.reasoning,
            "cache_read_tokens": self.read,
            "cache_write_tokens": self.write,
        }

    @property
    def known(self) -> TokenUsage:
        """The counts, the answer's unknown where more is billed than its tokens."""
        return self._replace(completion=None) if self.hidden or self.beside else self

    @property
    def classes(self) -> dict[str, int]:
        """Tokens by class as they are billed: no token is in two. Of prompt and answer known."""
        return {
            "fresh": (self.prompt or 0) - (self.read or 0) - (self.write or 0)
            - self.image - self.audio,
            "cache_read": (self.read or 0) - self.cached_audio,
            "cached_audio": self.cached_audio,
            "cache_write": (self.write or 0) - self.write_1h,
            "cache_write_1h": self.write_1h,
            "image": self.image,
            "audio": self.audio,
            "output": (self.completion or 0) - (self.reasoning or 0)
            - self.output_image - self.output_audio,
            "reasoning": self.reasoning or 0,
            "output_image": self.output_image,
            "output_audio": self.output_audio,
        }  # fmt: skip
