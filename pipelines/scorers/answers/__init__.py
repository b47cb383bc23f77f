"""How an answer is found in a long text and read as a value; start at `commitment.py`."""
