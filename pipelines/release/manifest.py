"""Reading `manifest.json`."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from pipelines.errors import SourceError
from pipelines.release.tables import released_names
from schemas import CONTRACTS
from schemas.manifest import Manifest

MANIFEST = "manifest.json"


def read_manifest(release: Path) -> Manifest:
    """The manifest of a release folder.

    Raises:
        SourceError: the folder is no release, or its manifest is damaged.
    """
    path = release / MANIFEST
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(
            f"{release} is not a release: it has no {MANIFEST}",
            where=str(path),
            next_step="give the folder releases/<name>/<version>",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path, error) from error
    try:
        manifest = Manifest.model_validate(json.loads(text))
    except (ValueError, ValidationError, RecursionError) as error:
        raise _damaged(path, error) from error
    _readable(manifest, path)
    # JSON keys are sorted; tables stand in the order of the contracts.
    order = [*released_names(list(manifest.tables)), *sorted(manifest.tables)]
    tables = {name: manifest.tables[name] for name in order}
    return manifest.model_copy(update={"tables": tables})


def _readable(manifest: Manifest, path: Path) -> None:
    """Stop at a table whose contract is newer than the one this code knows."""
    for name, entry in manifest.tables.items():
        if name in CONTRACTS and entry.contract > CONTRACTS[name].version:
            raise SourceError(
                f"table {name!r} follows contract version {entry.contract}; "
                f"this routeyard knows version {CONTRACTS[name].version}",
                where=str(path),
                next_step="install a newer routeyard: pip install --upgrade routeyard",
            )


def code_version() -> str:
    """Version of the installed distribution, or `source` in a bare checkout."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("routeyard")
    except PackageNotFoundError:
        return "source"


def _damaged(path: Path, error: Exception) -> SourceError:
    return SourceError(
        f"the manifest cannot be read: {str(error).splitlines()[0]}",
        where=str(path),
        next_step="fetch the release again",
    )
