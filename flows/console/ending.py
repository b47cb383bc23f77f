"""The end of a command: what has to happen at it, and no more."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import NoReturn


def end(code: int) -> NoReturn:
    """End the process: threads are joined, exit handlers run, output is written.

    Python would then look through every object and take all modules apart, a noticeable part
    of a short command. Where a debugger or a profiler looks on, it does.
    """
    if sys.gettrace() or sys.getprofile() or sys.flags.inspect:
        sys.exit(code)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # closed: Python says so
        sys.exit(code)
    os._exit(code)
