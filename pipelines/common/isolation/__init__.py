"""Work that may take too much or end its process: one child process with limits, and the jail.

`worker.py` starts the process and calls functions in it, `serve.py` runs there. `jail/` runs
programs that models wrote.
"""

from __future__ import annotations

from routeyard.pipelines.common.isolation.worker import (
    FunctionFailed,
    LimitExceeded,
    Limits,
    ProcessEnded,
    Worker,
)

__all__ = ["FunctionFailed", "LimitExceeded", "Limits", "ProcessEnded", "Worker"]
