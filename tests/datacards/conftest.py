"""The small release of tests/release, for the tests of cards."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_SPEC = importlib.util.spec_from_file_location(
    "tiny_release", Path(__file__).parents[1] / "release" / "conftest.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)

write = _MODULE.write
release = _MODULE.release
tables = _MODULE.tables
