"""What an encoder did not read: two texts agree only if they agree there too.

An encoder reads so many tokens and no more. Two questions about one long passage
then have the same vector and are different questions.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass


def normalised_words(text: str) -> tuple[str, ...]:
    """Words in NFC and lower case; no sign is dropped (√2+√3 is not √2·√3)."""
    return tuple(unicodedata.normalize("NFC", text).casefold().split())


@dataclass(frozen=True, slots=True)
class Unseen:
    """Words of a text, and how many at its end the encoder did not read whole."""

    words: tuple[str, ...]
    unread: int

    @classmethod
    def of(cls, text: str, seen: int | None) -> Unseen:
        """`seen`: characters that were read; None when all of them were."""
        if seen is None or seen >= len(text):
            return cls(normalised_words(text), 0)
        # A word that was cut counts as unread.
        while seen > 0 and not text[seen - 1].isspace():
            seen -= 1
        return cls(normalised_words(text), len(normalised_words(text[seen:])))

    @property
    def tail(self) -> tuple[str, ...]:
        return self.words[len(self.words) - self.unread :]

    def agrees(self, other: Unseen) -> bool:
        """Same last words, as many as the longer unread end has.

        Counting from the end, because one more sign in the part that was read
        moves the cut; and of the longer end, so that a text that stops at the
        cut does not agree with one that goes on.
        """
        longest = max(self.unread, other.unread)
        return _last(self.words, longest) == _last(other.words, longest)


def _last(words: Sequence[str], count: int) -> Sequence[str]:
    return words[len(words) - count :] if count <= len(words) else ("", *words)
