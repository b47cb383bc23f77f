"""What a person sees: console lines, progress, summaries and pages; start at `console.py`."""
