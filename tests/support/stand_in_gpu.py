"""A stand-in for a GPU: the CPU computes what is placed on it, and placements are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from routeyard.pipelines.common import machine


class StandIn(TorchFunctionMode):
    """Moves to `cuda` end on the CPU; `placed` counts them by the function that moved."""

    def __init__(self) -> None:
        super().__init__()
        self.placed: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def here(value: Any) -> Any:
            if isinstance(value, str | torch.device) and str(value).startswith("cuda"):
                self.placed[func.__name__] += 1
                return torch.device("cpu")
            return value

        return func(*map(here, args), **{key: here(item) for key, item in (kwargs or {}).items()})


@contextmanager
def stand_in_gpu(patch: pytest.MonkeyPatch, folder: Path) -> Iterator[StandIn]:
    """A machine with the driver of a GPU, and one that torch sees."""
    driver = folder / "driver"
    driver.touch()
    patch.setattr(machine, "_DRIVERS", (driver,))
    patch.setattr(torch.cuda, "is_available", lambda: True)
    patch.setattr(torch.cuda, "device_count", lambda: 1)
    with StandIn() as mode:
        yield mode
