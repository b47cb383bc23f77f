"""One experiment: routers made, fitted and asked in one place; every command views its predictions.

Read `fit.py` first: one fit and what it predicted, kept in a store. `entrants.py` says who takes
part, `splits.py` on which questions, `settings.py` how it is measured, `inputs.py` what other
processes read.
"""
