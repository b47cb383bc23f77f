"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Nothing in the suite may reach a hub; set before any library reads them.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of recorded outputs, or a skip (a failure where CI requires it)."""
    folder = os.environ.get("ROUTEYARD_DATA")
    if folder and Path(folder).is_dir():
        return Path(folder)
    reason = "ROUTEYARD_DATA does not name a folder of recorded outputs"
    if os.environ.get("ROUTEYARD_REQUIRE_DATA") == "1":
        pytest.fail(reason + ", and ROUTEYARD_REQUIRE_DATA=1 requires it")
    pytest.skip(reason)
