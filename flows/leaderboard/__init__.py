"""A leaderboard that others can submit to: bundles of predictions, scored against withheld labels.

A place (folder or address) holds `benchmark/`, what `routeyard export participants` writes, and
`submissions/ENTRY/NUMBER/`, one bundle each. `submit.py` makes a bundle and runs the router;
`board.py` reads bundles as files and never runs anything of them.
"""
