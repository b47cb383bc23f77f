"""What a release has in place of a text that its source's licence keeps back."""

from __future__ import annotations

WITHHELD = "[text withheld: the licence of the source forbids redistribution]"
