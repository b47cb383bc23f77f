"""All routers on one release under one protocol: cells, two stages, one table.

A cell is one (router, encoder, architecture, seed). Read `run` first: which
cells there are, which settings win, and `run_cell`; `report` writes the table.
"""
