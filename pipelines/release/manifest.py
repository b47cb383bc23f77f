"""Reading `manifest.json`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.release.tables import released_names
from routeyard.schemas import CONTRACTS
from routeyard.schemas.manifest import FORMAT, Manifest

MANIFEST = "manifest.json"
#: The detached signature beside it (`signature.py`).
SIGNATURE = f"{MANIFEST}.sig"
#: Largest manifest that is read, in bytes.
_MOST = 256 * 1024 * 1024


def read_manifest(release: Path) -> Manifest:
    """The manifest of a release folder.

    Raises:
        SourceError: the folder is no release, or its manifest is damaged.
    """
    path = release / MANIFEST
    try:
        if not path.is_file() and path.exists():
            raise OSError("it is not a regular file")
        if path.exists() and path.stat().st_size > _MOST:
            raise OSError(f"it is larger than {_MOST:,} bytes")
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
        found = json.loads(
            text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite
        )
        manifest = Manifest.model_validate(found)
        manifest.to_json().encode()  # half a surrogate pair is no text that can be hashed
    except ValidationError as error:
        raise _damaged(path, ValueError(_first_errors(error))) from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from error
    _readable(manifest, path)
    # JSON keys are sorted; tables are in the order of the contracts.
    order = [*released_names(list(manifest.tables)), *sorted(manifest.tables)]
    tables = {name: manifest.tables[name] for name in order}
    return manifest.model_copy(update={"tables": tables})


def check_core(release: Path, manifest: Manifest) -> None:
    """Stop where a table is missing that every copy of a release has.

    Raises:
        SourceError: names the file.
    """
    for entry in manifest.tables.values():
        if entry.kind == "core" and not (release / entry.file).is_file():
            raise SourceError(
                f"the release is damaged: its manifest lists {entry.file}, and the file is missing",
                where=str(release / entry.file),
                next_step=f"fetch it again; `routeyard verify {release}` checks every file",
            )


def _readable(manifest: Manifest, path: Path) -> None:
    """Stop at a release, or a table of it, in a format that this code does not read."""
    known = {f"table {name!r} follows contract version": (entry.contract, CONTRACTS[name].version)
             for name, entry in manifest.tables.items() if name in CONTRACTS}  # fmt: skip
    for what, (its, ours) in {"the release has format": (manifest.format, FORMAT), **known}.items():
        if its != ours:
            raise SourceError(
                f"{what} {its}; this routeyard reads {ours}",
                where=str(path),
                next_step="install the routeyard that made it, or build the release again",
            )
    if "outcomes" not in manifest.tables:
        raise _damaged(path, ValueError("it lists no table `outcomes`"))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:100]!r} occurs twice")
    return found


def _finite(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(f"{text[:40]} is no number")
    return found


def _first_errors(error: ValidationError) -> str:
    """Which key is wrong, and why: the first three."""
    first = error.errors(include_url=False, include_input=False)[:3]
    return "; ".join(f"{'.'.join(map(str, e['loc']))[:200]}: {e['msg']}" for e in first)


def code_version() -> str:
    """Version of the installed distribution, or `source` in a bare checkout."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("routeyard")
    except PackageNotFoundError:
        return "source"


def _damaged(path: Path, error: Exception) -> SourceError:
    return SourceError(
        f"the manifest cannot be read: {(str(error).splitlines() or ['damaged'])[0]}",
        where=str(path),
        next_step="fetch the release again",
    )
