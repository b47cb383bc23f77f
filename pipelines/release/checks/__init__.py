"""Checks of `verify`, one file per subject; nothing in a release is trusted or run.

Start with `verify.py`: its table `CHECKS` lists them in order; each gives `Finding`s. Tables are
read again in parts (`reread`), derived ones are computed again (`recount`).
"""
