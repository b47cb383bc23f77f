"""Files of a release: regular, complete, listed in the manifest, with honest statistics."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.io.files import sha256
from routeyard.pipelines.io.untrusted import false_statistics
from routeyard.pipelines.release.checks.active import active
from routeyard.pipelines.release.finding import Finding, first_line
from routeyard.pipelines.release.manifest import MANIFEST, SIGNATURE
from routeyard.pipelines.release.sealed_files import DEEPEST, wrong_name
from routeyard.schemas.manifest import Manifest

#: Written beside a release after it was sealed.
BESIDE = frozenset({"YANKED.json", SIGNATURE})
#: What a hub puts beside the files it stores: which of them are large, and nothing else.
_ATTRIBUTES = ".gitattributes"
_LARGE_FILE = re.compile(r"(#.*|\S+ filter=lfs diff=lfs merge=lfs -text)?")
#: Bytes of a file that are read whatever the manifest says of its size.
_ANYWAY = 10_000_000
_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def check_files(release: Path, manifest: Manifest, readable: set[str]) -> Iterator[Finding]:
    """Findings in the files; `readable` gets the names that are what the manifest sealed.

    Nothing but a regular file inside the release is opened: reading a device or a
    pipe could wait for ever.
    """
    kinds = dict(_walk(release))
    for name, kind in kinds.items():
        if kind not in ("file", "folder"):
            yield Finding("path", name, f"is {kind}; a release holds regular files only")
    add_ons = {entry.file for entry in manifest.tables.values() if entry.kind == "add_on"}
    for name in manifest.files:
        if wrong_name(name):
            continue  # `check_seal` reports it
        if kinds.get(name) == "file":
            yield from _check_file(release / name, name, manifest, readable)
        elif name not in kinds and name not in add_ons:
            yield Finding("file", name, "is missing")
    yield from _unlisted(release, manifest, kinds)


def _check_file(path: Path, name: str, manifest: Manifest, readable: set[str]) -> Iterator[Finding]:
    """Size, checksum, Parquet statistics and active content of one file."""
    entry = manifest.files[name]
    try:
        size = path.stat().st_size
        if size != entry.size:
            yield Finding("file", name, f"has {size:,} bytes, the manifest says {entry.size:,}")
            if size > 2 * entry.size + _ANYWAY:
                return  # reading could take for ever, and a sparse file costs its author nothing
        elif sha256(path) != entry.sha256:
            yield Finding("file", name, "has another SHA-256 than the manifest says")
        if path.suffix == ".parquet":
            for says in false_statistics(path):
                yield Finding("statistics", name, says)
    except SourceError as error:
        yield Finding("parquet", name, error.what)
        return
    except OSError as error:
        yield Finding("file", name, f"cannot be read: {first_line(error)}")
        return
    readable.add(name)
    yield from active(path, name, manifest)


def _unlisted(release: Path, manifest: Manifest, kinds: Mapping[str, str]) -> Iterator[Finding]:
    """Files and folders of the release that the manifest does not name."""
    database = manifest.database.file
    listed = {*manifest.files, database, f"{database}.sha256", MANIFEST, *BESIDE}
    folders = {
        parent.as_posix()
        for name in listed
        if not wrong_name(name)
        for parent in Path(name).parents
    }
    for name, kind in kinds.items():
        if kind == "file" and name == _ATTRIBUTES and _of_a_hub(release / name):
            continue
        if kind == "file" and name not in listed:
            yield Finding("file", name, "is in the release but not in the manifest")
        if kind == "folder" and name not in folders:
            yield Finding("file", name, "is a folder that holds no file of the manifest")


def _of_a_hub(path: Path) -> bool:
    """Whether a `.gitattributes` says no more than a hub does: which files are large.

    Other attributes can name programs that git runs.
    """
    if path.stat().st_size > 65_536:
        return False
    lines = path.read_bytes().decode("utf-8", "replace").splitlines()
    return all(_LARGE_FILE.fullmatch(line.strip()) for line in lines)


def _walk(release: Path) -> Iterator[tuple[str, str]]:
    """(name, what it is) of everything under the release; links are not followed."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            held = sorted(os.scandir(release / folder), key=lambda entry: entry.name)
        except OSError as error:
            yield folder or ".", f"a folder that cannot be read ({first_line(error)})"
            continue
        for found in held:
            name = f"{folder}/{found.name}" if folder else found.name
            mode = found.stat(follow_symlinks=False).st_mode
            if not stat.S_ISDIR(mode):
                yield name, next((kind for test, kind in _KINDS if test(mode)), "file")
            elif name.count("/") >= DEEPEST:
                yield name, f"a folder {DEEPEST + 1} deep, and what it holds was not looked at"
            else:
                yield name, "folder"
                folders.append(name)
