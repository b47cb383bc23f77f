"""Pickles of frames and arrays as plain values: opcodes are parsed, nothing they ask for is made.

Start with `machine.py`: it turns the file into inert values. `plain.py` makes lists, numbers and
arrays of them from checked buffers, `frames.py` the columns of a data frame.
`read` does all of it in the limited process.
"""

from __future__ import annotations

from routeyard.pipelines.pickles.frames import Frame
from routeyard.pipelines.pickles.isolated import read
from routeyard.pipelines.pickles.load import load

__all__ = ["Frame", "load", "read"]
