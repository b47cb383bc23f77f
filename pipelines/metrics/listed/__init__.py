"""What `metrics.yaml` declares of every metric."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from routeyard.pipelines.io.plain_yaml import read_text

_PATH = Path(__file__).with_name("metrics.yaml")


@cache
def rows() -> dict[str, dict[str, Any]]:
    """Metric → its row; one without a `module` is computed with its family."""
    found: dict[str, dict[str, Any]] = read_text(
        _PATH.read_text(encoding="utf-8"), where=str(_PATH)
    )
    return found
