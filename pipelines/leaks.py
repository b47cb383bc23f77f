"""Leaks: what makes two questions the same words, wherever train and test are compared."""

from __future__ import annotations

import re
import unicodedata


def same_words(text: str) -> str:
    """A question's words: case and space put aside, in Unicode's composed form.

    Punctuation stays: `2+3` and `2-3` are different questions.

    >>> same_words("What  is\\nA?") == same_words("what is a?")
    True
    """
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", text)).strip().casefold()
