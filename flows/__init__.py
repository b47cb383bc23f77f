"""Prefect flows and the command line: read, call a stage, write.

`build.py` holds the order of the stages; read it first.
"""

import os
import sys

# Prefect reports its use to its makers, from the moment of its import, unless this is set. A value
# of the user's own stays, and so does the telemetry of a program that imported Prefect before us.
_WANTED = os.environ.get("PREFECT_SERVER_ANALYTICS_ENABLED", "").lower() in ("1", "true", "yes")
if not _WANTED and "prefect" not in sys.modules:
    os.environ.setdefault("DO_NOT_TRACK", "1")
