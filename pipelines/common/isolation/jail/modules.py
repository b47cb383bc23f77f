"""Which files a third-party module needs, so that the jail can show them and nothing else."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path

_NAME = re.compile(r"^[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Shown:
    """Folders that go on the program's path, and the files and folders bound read-only."""

    path: list[str] = field(default_factory=list)
    bind: list[str] = field(default_factory=list)


@lru_cache(maxsize=16)
def installed(modules: tuple[str, ...]) -> Shown:
    """What of this environment the named modules need.

    Raises:
        ModuleNotFoundError: one is not installed.
    """
    if not modules:
        return Shown()
    provided = metadata.packages_distributions()
    waiting, seen = [], set()
    for name in modules:
        if name.partition(".")[0] in sys.stdlib_module_names:
            continue
        if name.partition(".")[0] not in provided:
            raise ModuleNotFoundError(f"no installed package provides {name!r}", name=name)
        waiting += provided[name.partition(".")[0]]
    path: set[str] = set()
    bind: set[str] = set()
    while waiting:
        name = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in seen:
            continue
        seen.add(key)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # needed on another platform, or only by an extra
        for file in distribution.files or ():
            if file.parts and file.parts[0] not in ("..", "__pycache__"):
                top = Path(str(distribution.locate_file(file.parts[0])))
                bind.add(str(top))
                path.add(str(top.parent))
        for requirement in distribution.requires or ():
            if "extra ==" not in requirement and (needed := _NAME.match(requirement)):
                waiting.append(needed[0])
    return Shown(sorted(path), sorted(item for item in bind if Path(item).exists()))
