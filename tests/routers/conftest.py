"""Tests of a router whose extra is not installed are skipped, with the reason."""

from __future__ import annotations

import importlib.util

import pytest

#: Router → module that its extra installs.
EXTRAS = {"optllm-xgb": "xgboost"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for name, module in EXTRAS.items():
        if importlib.util.find_spec(module) is None:
            for item in items:
                if f"[{name}]" in item.name:
                    item.add_marker(pytest.mark.skip(reason=f"{name} needs {module}"))
