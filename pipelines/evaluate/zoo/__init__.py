"""All routers on one release under one protocol: cells, two stages, one table.

A cell is one (router, encoder, architecture, seed). Read `protocol` first: which
cells there are and which settings win; `cell` runs one, `experiment.inputs` is what it reads,
`report` writes the table.
"""
