"""Charts of cards, reports and the site: one grammar, one look. Read `draw.py` first.

A chart is a Vega-Lite specification (`vega`) over rows of plain values; `draw` renders
it to SVG offline. Every axis has a title and a unit, and a model has the same colour and sign
in every chart of its release.
"""
