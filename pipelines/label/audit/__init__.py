"""Which labels to doubt, and what people decide about them; start at `audit.py`."""
