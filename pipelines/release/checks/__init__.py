"""What `verify` looks at, one file per thing; nothing a stranger wrote is believed or run.

Start with `../verify.py`, which runs them in order; each gives `Finding`s. Tables are read
again in parts (`reread`), derived ones are made again (`recount`).
"""
