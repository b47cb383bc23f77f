"""Files that an untrusted manifest names, checked to be inside the release."""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath

from routeyard.pipelines.errors import BadInput, SourceError
from routeyard.schemas.manifest import FileEntry

#: Folders of a release within each other, and bytes of a name in it; two and about fifty are used.
DEEPEST, _LONGEST = 8, 1_000


def wrong_name(name: str) -> str | None:
    """Why a name in a manifest is refused; None when it names a file inside the release."""
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST or name.count("/") > DEEPEST:
        return f"is longer than {_LONGEST:,} bytes or {DEEPEST} folders"
    path = PurePosixPath(name)
    if not name or not name.isprintable() or "\\" in name or ":" in name:
        return "is no plain file name"
    if path.is_absolute():
        return "is an absolute path"
    if ".." in path.parts:
        return "leads out of the release"
    if path.as_posix() != name or name == ".":
        return "is not written in its shortest form"
    return None


def sealed(release: Path, name: str, entry: FileEntry | None) -> Path:
    """The file that the manifest means: inside the release, of the size it was sealed with.

    A link is followed only to a file with the sealed SHA-256 (a hub's cache stores
    releases as links to files named by their content).

    Raises:
        SourceError: the name leads outside, or the file is not the sealed one.
    """
    if says := wrong_name(name):
        raise _refused(release, f"the manifest names {name[:200]!r}, which {says}")
    if entry is None:
        raise _refused(release, f"the manifest lists no checksum of {name}")
    path = release / name
    try:
        resolved = path.resolve(strict=True)
        found = resolved.stat()
    except OSError as error:
        raise _refused(release, f"{name} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise _refused(release, f"{name} is not a regular file")
    if found.st_size != entry.size:
        says = f"has {found.st_size:,} bytes, the manifest says {entry.size:,}"
        raise _refused(release, f"{name} {says}")
    if not resolved.is_relative_to(release.resolve()) or path.is_symlink():
        from routeyard.pipelines.io.files import sha256

        if sha256(resolved) != entry.sha256:
            raise _refused(release, f"{name} is a link to something else than was sealed")
    return resolved


def outside_releases(out: Path) -> None:
    """Refuse an output path that is inside a release: nothing may be added to one.

    Raises:
        BadInput: `out` is a release, or is inside one.
    """
    from routeyard.pipelines.release.manifest import MANIFEST, read_manifest

    where = out.resolve()
    for folder in (where, *where.parents):
        if not (folder / MANIFEST).is_file():
            continue
        try:
            read_manifest(folder)
        except SourceError:
            continue  # a manifest of something else
        raise BadInput(
            "the output path is inside a release, whose seal a new file would break",
            where=str(out),
            next_step=f"name a place outside {folder}",
        )


def _refused(release: Path, says: str) -> SourceError:
    return SourceError(
        f"the release cannot be opened: {says}",
        where=str(release),
        next_step=f"find what is wrong with `routeyard verify {release}`",
    )
