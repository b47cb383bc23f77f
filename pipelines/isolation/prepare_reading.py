"""What the limited process does before it reads a file: it imports its reader, and little else."""

from __future__ import annotations

import sys
from importlib import import_module

#: Packages that Arrow uses where they are installed, and reads files without.
UNNEEDED = ("numpy", "pandas")


def prepare() -> None:
    """What the process runs before its limits are set: the reader's imports, and no others."""
    sys.meta_path.insert(0, Unneeded)
    import_module("routeyard.pipelines.isolation.parquet_file")


class Unneeded:
    """As if NumPy and pandas were not installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Refuse the packages of `UNNEEDED`, leave all else to the finders behind."""
        if name in UNNEEDED:
            raise ModuleNotFoundError(f"this process reads files without {name}", name=name)
