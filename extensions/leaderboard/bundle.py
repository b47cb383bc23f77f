"""A submission as files: what a bundle holds, and how one of a stranger is read."""

from __future__ import annotations

import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import Field, ValidationError

from routeyard.pipelines.common.files import sha256
from routeyard.pipelines.common.untrusted import short_text
from routeyard.pipelines.evaluate.experiment import read_predictions
from routeyard.pipelines.release.exporters.router_tables import ABOUT
from routeyard.pipelines.release.storage import (
    filesystem,
    get_file,
    is_url,
    outside_releases,
    put_file,
    storage_errors,
)
from routeyard.schemas.errors import BadInput
from routeyard.schemas.strict import Strict

#: Files of a bundle: what it is, (question, a score for each model), (question, seconds).
SUBMISSION, PREDICTIONS, TIMES = "submission.json", "predictions.parquet", "times.parquet"
FILES = (SUBMISSION, PREDICTIONS, TIMES)
#: Bytes of `submission.json`, and of a table.
MOST_TEXT, MOST_TABLE = 1_000_000, 500_000_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


class BenchmarkRef(Strict):
    """The release and split scheme that a submission is for."""

    name: str = Field(max_length=200)
    version: str = Field(max_length=50)
    fingerprint: str = Field(max_length=100)
    scheme: str = Field(max_length=200)


class DecisionTimes(Strict):
    """Seconds of the submitter's machine: fitting, and choosing for one question asked alone.

    `asked` questions of the test split were asked one by one; `moved` of them went to another
    model than together with all others.
    """

    fit_s: float = Field(ge=0, allow_inf_nan=False)
    batch_s: float = Field(ge=0, allow_inf_nan=False)
    asked: int = Field(ge=0)
    moved: int = Field(ge=0)
    p50_s: float | None = Field(None, ge=0, allow_inf_nan=False)
    p95_s: float | None = Field(None, ge=0, allow_inf_nan=False)


class AuditLine(Strict):
    """One finding of `routeyard audit --release`, as the submitter saw it."""

    name: str = Field(max_length=200)
    level: str = Field(max_length=20)
    says: str = Field(max_length=2_000)


class SubmissionAbout(Strict):
    """What `submission.json` says; all of it is the submitter's word but the hashes of files."""

    format: int = Field(1, ge=1, le=1)
    router: str = Field(max_length=200)
    made: str = Field(max_length=40)
    benchmark: BenchmarkRef
    code: str | None = Field(None, max_length=64)
    files_of_code: dict[str, str] = Field(default_factory=dict, max_length=1_000)
    seed: int
    routeyard: str = Field(max_length=50)
    python: str = Field(max_length=50)
    labels_readable: bool
    times: DecisionTimes
    audit: list[AuditLine] = Field(default_factory=list, max_length=100)
    files: dict[str, str] = Field(max_length=10)


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read: who sent it, which of theirs it is, and its tables.

    `entry` and `number` are names of folders, which the board's owner gives, not the bundle.
    """

    entry: str
    number: str
    about: SubmissionAbout
    predictions: pa.Table

    @property
    def key(self) -> str:
        """`entry/number`."""
        return f"{self.entry}/{self.number}"


def named(name: str, what: str = "name") -> str:
    """A name that is safe as a folder.

    Raises:
        BadInput: it has other characters, or more than 60.
    """
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"the {what} {name!r} cannot name a folder",
            next_step="use up to 60 letters, digits, '.', '_' and '-', a letter or digit first",
        )
    return name


def check_files(folder: Path) -> None:
    """Stop at a bundle that is not three regular files of bounded size; others are not read.

    Raises:
        BadInput: a file is missing, too large, or a link, a pipe or a device.
    """
    for name in FILES:
        path = folder / name
        try:
            status = path.lstat()
        except OSError as error:
            raise BadInput(
                f"the bundle has no {name}",
                where=str(folder),
                next_step="make it again: routeyard submit ROUTER --to PLACE",
            ) from error
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(f"{name} is no regular file", where=str(folder))
        most = MOST_TEXT if name == SUBMISSION else MOST_TABLE
        if status.st_size > most:
            raise BadInput(f"{name} is larger than {most:,} bytes", where=str(folder))


def read_bundle(folder: Path, entry: str, number: str) -> Bundle:
    """A bundle of a stranger, read as data: nothing of it is run or unpickled.

    Raises:
        BadInput: it is not what `routeyard submit` writes, or a file is not the one it hashed.
        SourceError: a table is damaged, or unfolds to more than it may.
    """
    check_files(folder)
    try:
        text = short_text(folder / SUBMISSION, MOST_TEXT)
        about = SubmissionAbout.model_validate_json(text)
    except (UnicodeDecodeError, ValidationError) as error:
        says = error.errors()[0] if isinstance(error, ValidationError) else {"msg": "is no text"}
        where = ".".join(map(str, says.get("loc", ())))
        raise BadInput(
            f"{SUBMISSION} is not as `routeyard submit` writes it: {where} {says['msg']}".strip(),
            where=str(folder),
        ) from error
    for name in (PREDICTIONS, TIMES):
        if about.files.get(name) != sha256(folder / name):
            raise BadInput(
                f"{name} is not the file that {SUBMISSION} names",
                where=str(folder),
                next_step="send the bundle again as it was made",
            )
    return Bundle(entry, number, about, read_predictions(folder / PREDICTIONS))


# Where bundles and the benchmark's open part are: a folder, or any address that fsspec knows.

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
            for item in system.ls(f"{root}/{BENCHMARK}/data", detail=False):
                name = Path(item).name
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
        results = sorted(
            (folder.parent.name, folder.name, folder)
            for folder in (root / SUBMISSIONS).glob("*/*")
            if folder.is_dir() and not folder.is_symlink() and not folder.parent.is_symlink()
        )
        if not results:
            raise BadInput(
                "there is no submission",
                where=f"{place}/{SUBMISSIONS}",
                next_step=f"make one: routeyard submit ROUTER --to {place}",
            )
        yield results


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
    return sorted(Path(item.rstrip("/")).name for item in system.ls(folder, detail=False))


def take(path: Path, place: str, entry: str, number: str) -> str:
    """Copy the one bundle somewhere in a folder to a place, under a name that the owner gives.

    Raises:
        BadInput: there is not exactly one, or it is not three regular files of bounded size.
    """
    bundles = sorted(item.parent for item in path.rglob(SUBMISSION))
    if len(bundles) != 1:
        raise BadInput(
            f"expected one {SUBMISSION} in the folder, found {len(bundles)}",
            where=str(path),
            next_step="hand over one bundle at a time",
        )
    check_files(bundles[0])
    return send(bundles[0], place, entry, number)
