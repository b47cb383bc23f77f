"""The routing plateau (Nine-by-30k and Nine-by-300k): 21 routers, six encoders, five benchmarks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from routeyard.papers.paper import read_paper
from routeyard.pipelines.evaluate.studies.study import declared_in

PAPER = read_paper(Path(__file__).parent)
#: The study of a name, as `studies.yaml` declares it.
__getattr__ = partial(declared_in, __name__)
