"""Further files of a release: plots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa


def render(tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> dict[str, bytes]:
    """Files by path inside the release."""
    return {}
