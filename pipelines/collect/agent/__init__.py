"""Questions answered in several steps, by an agent that may search a local corpus.

`rounds.py` first: it asks step by step, through the same request runner and ledger as
everything else.
`trajectory.py` says what is asked next, `words.py` in which words, `search.py` what a search
finds; `tables.py` makes `responses` (one row a trajectory) and `steps` of it.
"""
