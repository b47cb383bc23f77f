"""Files that a recipe or an option names: variables, globs, and what to do where nothing is."""

from __future__ import annotations

import glob
import os
from collections import Counter
from pathlib import Path

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.io.environment import expanded, missing, names
from routeyard.pipelines.io.files import FORMATS, ends

#: What the error says when the folder of recorded outputs is not set.
DATA_HINT = (
    "set ROUTEYARD_DATA to a folder of recorded outputs: public repositories hold them "
    "(WildEval/ZeroEval, TIGER-AI-Lab/MMLU-Pro, lm-sys/RouteLLM); each recipe's header says "
    "which files it reads and which columns they must have"
)


def expand(path: str, *, base: Path, where: str) -> list[Path]:
    """Files that `path` names: `$NAME` is read from the environment, globs are sorted.

    Args:
        where: What names the path: a place of the recipe, or the option (`--file`).

    Raises:
        SourceError: an environment variable is unset or no file matches.
    """
    name = missing(path)
    if name is not None:
        hint = DATA_HINT if name == "ROUTEYARD_DATA" else f"set the environment variable {name}"
        raise SourceError(
            f"the path {path!r} needs the environment variable {name}, which is not set",
            where=where,
            next_step=hint,
        )
    filled = os.path.expanduser(expanded(path))
    full = filled if os.path.isabs(filled) else str(base / filled)
    found = [full] if os.path.exists(full) else sorted(glob.glob(full, recursive=True))
    # `**` goes round a link that leads back; each file is one, by the first of its names.
    ways: dict[str, Path] = {}
    for name in filter(os.path.isfile, found):
        ways.setdefault(os.path.realpath(name), Path(name))
    files = list(ways.values())
    if not files:
        # What a variable expands to is not shown.
        shown = path if names(path) else full
        option = where if where.startswith("-") else ""
        if os.path.isdir(full):
            some = f"{path.rstrip('/')}/*{_ending(full)}"
            raise SourceError(
                f"there is no file {shown}: it is a folder",
                where=where,
                next_step="name its files, e.g. " + (f"{option} '{some}'" if option else some),
            )
        raise SourceError(
            f"there is no file {shown}",
            where=where,
            next_step=f"correct {option or 'the path in the recipe'}, or put the file there",
        )
    for file in files:
        _readable(file, path if names(path) else str(file), where)
    return files


def _ending(folder: str) -> str:
    """How most files of a folder end, of those that are read; else as a table would."""
    found = Counter(
        ends(path) + (".gz" if path.suffix == ".gz" else "")
        for path in map(Path, glob.glob(os.path.join(glob.escape(folder), "*")))
        if ends(path) in FORMATS
    )
    return max(found, key=found.__getitem__, default=".parquet")


def _readable(file: Path, shown: str, where: str) -> None:
    """Stop at a file that is there and cannot be read."""
    try:
        with file.open("rb") as stream:
            stream.read(1)
    except OSError as error:
        raise SourceError(
            f"the file {shown} cannot be read: {error.strerror}",
            where=where,
            next_step="allow this user to read it, or name another file",
        ) from error
