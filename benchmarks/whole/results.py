"""The file a run of all benchmarks writes, and what it says of the machine and versions."""

from __future__ import annotations

import datetime
import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

#: Version of the file's layout.
LAYOUT = 1
MEASURED = (
    "numpy", "pyarrow", "duckdb", "pandas", "torch", "scikit-learn", "sentence-transformers",
    "openai", "math-verify", "faiss-cpu", "semhash", "polars", "scipy",
)  # fmt: skip


def surroundings() -> dict[str, Any]:
    """Machine and versions: what a figure in seconds depends on."""
    versions: dict[str, str | None] = {}
    for name in MEASURED:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "versions": versions,
        "measured_on": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def write(path: Path, run: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"layout": LAYOUT, **run}, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """A file of an earlier run.

    Raises:
        SystemExit: it is not there, or not such a file; says so in one line.
    """
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise SystemExit(f"{path}: not a file of `python -m benchmarks all` ({fault})") from None
    if not isinstance(run, dict) or run.get("layout") != LAYOUT:
        raise SystemExit(f"{path}: not a file of `python -m benchmarks all`, layout {LAYOUT}")
    return run
