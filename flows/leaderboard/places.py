"""Where bundles and the benchmark's open part are: a folder, or any address that fsspec knows."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from routeyard.flows.leaderboard.bundle import FILES, MOST_TABLE, SUBMISSION, check_files, named
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.release.exporters.participants import ABOUT
from routeyard.pipelines.release.sealed_files import outside_releases
from routeyard.pipelines.release.storage import (
    filesystem,
    get_file,
    is_url,
    put_file,
    storage_errors,
)

#: Folders of a place.
BENCHMARK, SUBMISSIONS = "benchmark", "submissions"


@contextmanager
def benchmark_of(place: str) -> Iterator[Path]:
    """The folder with the open part of a place's benchmark, copied here where it is elsewhere.

    Raises:
        BadInput: the place has none.
    """
    lacks = BadInput(
        f"the place has no {BENCHMARK}/{ABOUT}",
        where=place,
        next_step=f"its owner writes it: routeyard export participants RELEASE PLACE/{BENCHMARK}; "
        "or name a release of your own with --release",
    )
    if not is_url(place):
        folder = Path(place) / BENCHMARK
        if not (folder / ABOUT).is_file():
            raise lacks
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="routeyard-benchmark-") as made:
        target = Path(made)
        with storage_errors(place):
            system, root = filesystem(place)
            if not system.exists(f"{root}/{BENCHMARK}/{ABOUT}"):
                raise lacks
            get_file(system, f"{root}/{BENCHMARK}/{ABOUT}", target / ABOUT, place)
            for found in system.ls(f"{root}/{BENCHMARK}/data", detail=False):
                name = Path(found).name
                if name.endswith(".parquet"):
                    get_file(
                        system, f"{root}/{BENCHMARK}/data/{name}", target / "data" / name, place
                    )
        yield target


def send(bundle: Path, place: str, entry: str, number: str) -> str:
    """Copy a bundle to `place/submissions/entry/number`, its description last; returns where.

    Raises:
        BadInput: a submission is there already.
        SourceError, StorageError: the storage refused.
    """
    inside = f"{SUBMISSIONS}/{named(entry)}/{named(number, 'number')}"
    there = BadInput(
        "there is a submission already", where=f"{place}/{inside}", next_step="send it again"
    )
    order = [*(name for name in FILES if name != SUBMISSION), SUBMISSION]
    if not is_url(place):
        outside_releases(Path(place))
        target = Path(place) / inside
        if target.exists():
            raise there
        target.mkdir(parents=True)
        for name in order:
            shutil.copyfile(bundle / name, target / name)
        return str(target)
    with storage_errors(place):
        system, root = filesystem(place)
        if system.exists(f"{root}/{inside}/{SUBMISSION}"):
            raise there
        for name in order:
            put_file(system, bundle / name, f"{root}/{inside}/{name}", place)
    return f"{place.rstrip('/')}/{inside}"


@contextmanager
def submissions_of(place: str) -> Iterator[list[tuple[str, str, Path]]]:
    """(entry, number, folder) of every submission at a place, in order of both.

    Raises:
        BadInput: the place holds no submission.
    """
    with tempfile.TemporaryDirectory(prefix="routeyard-submissions-") as made:
        root = Path(place)
        if is_url(place):
            root = Path(made)
            with storage_errors(place):
                _fetch(place, root)
        found = sorted(
            (folder.parent.name, folder.name, folder)
            for folder in (root / SUBMISSIONS).glob("*/*")
            if folder.is_dir() and not folder.is_symlink() and not folder.parent.is_symlink()
        )
        if not found:
            raise BadInput(
                "there is no submission",
                where=f"{place}/{SUBMISSIONS}",
                next_step=f"make one: routeyard submit ROUTER --to {place}",
            )
        yield found


def _fetch(place: str, target: Path) -> None:
    """Copy every bundle of an address, and no other file, into a folder."""
    system, root = filesystem(place)
    base = f"{root}/{SUBMISSIONS}"
    for entry in _names(system, base):
        for number in _names(system, f"{base}/{entry}"):
            for name in FILES:
                source = f"{base}/{entry}/{number}/{name}"
                # A file that is missing or too large is reported when the bundle is read.
                if system.exists(source) and (system.size(source) or 0) <= MOST_TABLE:
                    own = target / SUBMISSIONS / named(entry) / named(number, "number")
                    get_file(system, source, own / name, place)


def _names(system: Any, folder: str) -> list[str]:
    if not system.exists(folder):
        return []
    return sorted(Path(one.rstrip("/")).name for one in system.ls(folder, detail=False))


def take(found: Path, place: str, entry: str, number: str) -> str:
    """Copy the one bundle somewhere in a folder to a place, under a name that the owner gives.

    Raises:
        BadInput: there is not exactly one, or it is not three regular files of bounded size.
    """
    bundles = sorted(one.parent for one in found.rglob(SUBMISSION))
    if len(bundles) != 1:
        raise BadInput(
            f"expected one {SUBMISSION} in the folder, found {len(bundles)}",
            where=str(found),
            next_step="hand over one bundle at a time",
        )
    check_files(bundles[0])
    return send(bundles[0], place, entry, number)
