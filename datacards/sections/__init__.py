"""Parts of a card that only some releases have; `recorded.py` is read by the pages too."""
