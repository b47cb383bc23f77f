"""Citations: which sections, tables, figures and equations the five papers have.

An index of numbers only, read off the papers' texts, so that a docstring can be
checked against it: `tests/test_citations.py` finds every place that names one of
these papers with a number, and fails where the paper has no such place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """Names a text may use for it, those of `pipelines/evaluate/studies` too, and its numbers."""

    names: tuple[str, ...]
    sections: frozenset[str]
    tables: int
    figures: int
    equations: int = 0


def _numbers(text: str) -> frozenset[str]:
    return frozenset(text.split())


PAPERS: Mapping[str, Paper] = {
    "RouterXBench": Paper(
        ("RouterXBench", "arXiv 2602.11877", "arXiv:2602.11877"),
        _numbers("1 2 3 3.1 3.2 3.3 4 5 5.1 5.2 5.3 6 7 B B.1 C D D.1 D.2"),
        tables=6,
        figures=6,
        equations=17,
    ),
    "RouterBench+": Paper(
        ("RouterBench+",),
        _numbers("1 2 2.1 2.2 3 4 4.1 4.2 4.3 4.4 4.5 5 5.1 5.2 6 D E F G H I I.1 I.2 J"),
        tables=7,
        figures=14,
    ),
    "confidence-driven router": Paper(
        ("confidence-driven router", "arXiv 2502.11021", "arXiv:2502.11021"),
        _numbers("1 2 2.1 2.2 3 3.1 3.1.1 3.1.2 3.1.3 3.2 3.3 4 5 6 A A.1 A.2 A.3 A.4"),
        tables=2,
        figures=2,
    ),
    "CSCR": Paper(
        ("CSCR",),
        _numbers(
            "1 2 2.1 2.2 2.3 3 3.1 3.1.1 3.1.2 3.2 3.3 3.4 3.5 4 4.1 4.2 4.2.1 4.2.2 4.3 4.3.1 "
            "4.3.2 4.3.3 5 5.1 5.2 5.3 6 A A.1 A.2 A.3 A.4 A.5 B B.1 B.2 B.3 C C.1 C.2 C.3 C.4 D "
            "D.1 D.2 D.2.1 D.3 D.3.1 D.3.2 D.3.3 D.3.4 D.3.5 D.4 D.5 D.5.1 D.5.2 D.6"
        ),
        tables=16,
        figures=7,
        equations=9,
    ),
    "routing plateau": Paper(
        (
            "routing plateau", "routing-plateau paper", "plateau paper", "plateau study",
            "Nine-by-30k", "Nine-by-300k", "arXiv 2606.07587", "arXiv:2606.07587",
        ),
        _numbers("1 2 3 4 4.1 4.2 5 5.1 5.2 5.3 6 6.1 6.2 6.3 6.4 7 D D.1 D.2 D.3 E E.1 E.2 E.3 "
                 "E.4 F F.1 F.2 G"),
        tables=13,
        figures=9,
    ),
}  # fmt: skip
