"""No package grows above what `benchmarks/size.yaml` allows it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.size import limits, size_of, sizes

ROOT = Path(__file__).parents[1]


def test_lines_and_tokens_are_those_of_code() -> None:
    module = '"""Not\ncounted."""\n\n# nor this\nx = {\n    1: 2,  # nor this\n}\n'
    text = module + '\n\ndef f():\n    "no"\n'
    assert tuple(size_of(text)) == (1, 4, 8 + 5)


@pytest.mark.extensions
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="tokens depend on Python's version")
def test_no_package_is_above_its_limits() -> None:
    allowed = limits()["packages"]
    found = sizes(ROOT)
    assert set(found) == set(allowed), "a row of benchmarks/size.yaml for each package"
    above = [
        f"{name}: {getattr(size, what):,} {what}, {allowed[name][what]:,} allowed"
        for name, size in found.items()
        for what in ("modules", "lines", "tokens")
        if getattr(size, what) > allowed[name][what]
    ]
    assert not above, "lower another row of benchmarks/size.yaml by as much: " + "; ".join(above)
