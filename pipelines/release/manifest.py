"""The manifest of a release: read, checked, and the content hashes that it holds."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from routeyard.pipelines.common.errors import GateFailed, SourceError
from routeyard.pipelines.common.machine import named
from routeyard.pipelines.common.staging import write_text
from routeyard.pipelines.common.untrusted import short_text
from routeyard.pipelines.release.tables import released_names
from routeyard.schemas import CONTRACTS
from routeyard.schemas.errors import BadInput
from routeyard.schemas.release import FORMAT, MEASURED_COLUMNS, Manifest, TableEntry
from routeyard.schemas.strict import Strict

# A finding: something in a release that does not hold.


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not hold: which check, where, and what it found."""

    check: str
    where: str
    says: str

    def __str__(self) -> str:
        """One printable line."""
        return printable(f"{self.check}: {self.where}: {self.says}")


def printable(line: str) -> str:
    """A line without terminal codes, which a stranger's file names may hold."""
    return "".join(sign if sign.isprintable() else "�" for sign in line)[:2000]


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or its name: what a finding says of a file.

    Raises:
        OutOfMemory: the fault is this machine's, and nothing is known about the file.
    """
    if (memory := named(error, "reading a release")) is not None:
        raise memory from error
    return (str(error).splitlines() or [type(error).__name__])[0][:500]


# Fingerprint of what a table says, whatever wrote it and however it is chunked.

_SLICE = 65_536


class Content:
    """SHA-256 over names, types and values of a table that arrives in parts, in row order.

    Rows are hashed in slices of fixed size, so neither the parts nor their chunks
    matter; null and NaN are kept apart from every value.
    """

    def __init__(self, schema: pa.Schema, *, without: Collection[str] = ()) -> None:
        self._names = [name for name in schema.names if name not in without]
        #: Digests with the columns that enter each of them.
        self._digests = [_started(schema, self._names)]
        self._columns = [frozenset(self._names)]
        self._rest: list[pa.Table] = []
        self._waiting = 0

    def update(self, part: pa.Table) -> None:
        """Hash the slices that are whole; the rest waits for the next part."""
        self._rest.append(part.select(self._names))
        self._waiting += part.num_rows
        if self._waiting < _SLICE:
            return
        table = pa.concat_tables(self._rest)
        whole = table.num_rows // _SLICE * _SLICE
        for start in range(0, whole, _SLICE):
            self._slice(table.slice(start, _SLICE))
        self._rest = [table.slice(whole)]
        self._waiting = table.num_rows - whole

    def hexdigest(self) -> str:
        """The fingerprint; nothing can be added afterwards."""
        self._finish()
        return str(self._digests[0].hexdigest())

    def _finish(self) -> None:
        if self._waiting:
            self._slice(pa.concat_tables(self._rest))
            self._waiting = 0

    def _slice(self, part: pa.Table) -> None:
        for name in self._names:
            wanted = [
                digest
                for digest, columns in zip(self._digests, self._columns, strict=True)
                if name in columns
            ]
            for data in _data(part.column(name).combine_chunks()):
                for digest in wanted:
                    digest.update(data)


class Contents(Content):
    """Both fingerprints of a table, with and without its measured times, in one pass."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        columns = [name for name in self._names if name not in MEASURED_COLUMNS]
        if len(columns) < len(self._names):
            self._digests.append(_started(schema, columns))
            self._columns.append(frozenset(columns))

    @property
    def full(self) -> str:
        return self.hexdigest()

    @property
    def without_times(self) -> str:
        """The same as `full` where nothing was measured."""
        self._finish()
        return str(self._digests[-1].hexdigest())


def content(table: pa.Table, *, without: Collection[str] = ()) -> str:
    """`Content` of a table in memory."""
    result = Content(table.schema, without=without)
    result.update(table)
    return result.hexdigest()


def combine(parts: Mapping[str, str]) -> str:
    """One fingerprint of several named ones, in order of name."""
    digest = hashlib.sha256()
    for name, value in sorted(parts.items()):
        digest.update(f"{name}={value};".encode())
    return digest.hexdigest()


def _started(schema: pa.Schema, names: Collection[str]) -> Any:
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}:{schema.field(name).type};".encode())
    return digest


def _data(values: pa.Array) -> Iterator[Any]:
    """What is hashed of a column: length, which values there are, and the values."""
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else values.combine_chunks()
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.dictionary_decode(), kind.value_type
    yield len(values).to_bytes(8, "little")
    valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
    yield np.packbits(valid).tobytes()
    if values.null_count:
        values = values.drop_null()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        yield pc.binary_length(values).cast(pa.int64()).to_numpy().tobytes()
        yield _text_bytes(values.cast(pa.large_binary()))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield pc.list_value_length(values).cast(pa.int64()).to_numpy().tobytes()
        yield from _data(values.flatten())
    elif pa.types.is_fixed_size_list(kind):
        yield from _data(values.flatten())
    elif pa.types.is_boolean(kind):
        yield np.packbits(values.to_numpy(zero_copy_only=False)).tobytes()
    else:
        yield np.ascontiguousarray(values.to_numpy(zero_copy_only=False)).view(np.uint8)


def _text_bytes(values: pa.Array) -> memoryview | bytes:
    if not len(values):
        return b""
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int64)
    first, last = offsets[values.offset], offsets[values.offset + len(values)]
    return memoryview(values.buffers()[2])[int(first) : int(last)]


MANIFEST = "manifest.json"
#: The detached signature beside it (`storage.py`).
SIGNATURE = f"{MANIFEST}.sig"
#: Largest manifest that is read, in bytes.
_MOST = 256 * 1024 * 1024


def releases_in(folder: Path) -> list[Path]:
    """Releases below a folder of releases, or of versions of one."""
    return sorted(
        path.parent for deep in ("*", "*/*") for path in folder.glob(f"{deep}/{MANIFEST}")
    )


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
            next_step=f"give one of those in it, such as {inside[-1]}"
            if (inside := releases_in(release))
            else "give the folder releases/<name>/<version>",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path, error) from error
    try:
        data = json.loads(
            text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite
        )
        manifest = Manifest.model_validate(data)
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
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:100]!r} occurs twice")
    return result


def _finite(text: str) -> float:
    finite = float(text)
    if not math.isfinite(finite):
        raise ValueError(f"{text[:40]} is no number")
    return finite


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


# Yanking: a version is marked as not to be used, and stays where it is.

MARK = "YANKED.json"
#: Bytes of a mark: a reason is some sentences, and is shown by every command.
_YANK_MOST = 10_000


class Yanked(Strict):
    """Why a version should not be used, and which one to use instead."""

    reason: str
    use_instead: str | None = None

    @property
    def words(self) -> str:
        """For whoever uses the release all the same."""
        instead = f"; use {self.use_instead} instead" if self.use_instead else ""
        return f"this release was yanked: {self.reason}{instead}"


def yank(release: Path, *, reason: str, use_instead: str | None = None) -> Yanked:
    """Mark a release as yanked; its files and fingerprint stay as they are.

    Raises:
        BadInput: no reason is given, or the release is yanked already.
        SourceError: the folder is no release.
    """
    read_manifest(release)
    if not reason.strip():
        raise BadInput("a release is yanked for a reason", next_step="give one with --reason")
    if there := yanked(release):
        raise BadInput(
            f"the release is yanked already: {there.reason}",
            where=str(release),
            next_step=f"lift it first by removing {release / MARK}",
        )
    note = Yanked(reason=reason.strip(), use_instead=use_instead)
    text = json.dumps(note.model_dump(), indent=2, sort_keys=True, ensure_ascii=False)
    if len(text.encode()) >= _YANK_MOST:
        raise BadInput("the reason is too long", next_step="shorten it to some sentences")
    # a link would be written through
    write_text(release / MARK, text + "\n")
    return note


def refuse_yanked(release: Path) -> None:
    """Before a release is published anew.

    Raises:
        GateFailed: it was yanked.
    """
    if note := yanked(release):
        other = f"publish {note.use_instead}" if note.use_instead else "publish another version"
        raise GateFailed(
            note.words,
            where=str(release),
            next_step=f"{other}, or lift the mark by removing {release / MARK}",
        )


def yanked(release: Path) -> Yanked | None:
    """The mark of a yanked release, None for any other.

    Raises:
        SourceError: there is a mark, but it cannot be read.
    """
    path = release / MARK
    if not os.path.lexists(path):  # a link that leads nowhere is a mark as well
        return None
    try:
        note = Yanked.model_validate(json.loads(short_text(path, _YANK_MOST)))
        note.words.encode()  # half of a surrogate pair is no text
    except (OSError, ValueError, RecursionError, SourceError) as error:
        raise SourceError(
            "the mark of a yanked release cannot be read",
            where=str(path),
            next_step="treat the release as yanked, or fetch it again",
        ) from error
    return note


def check_mark(release: Path) -> Iterator[Finding]:
    """The finding of a mark that nobody can read; what is no file is named among the files."""
    path = release / MARK
    if path.is_symlink() or not path.is_file():
        return
    try:
        yanked(release)
    except SourceError as error:
        yield Finding("yanked", MARK, error.what)


# Semantic versions of a benchmark: which exist, which is next.

Version = tuple[int, int, int]


def parse(text: str) -> Version | None:
    """`1.2.3` as numbers; None for anything else."""
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return (int(parts[0]), int(parts[1]), int(parts[2]))


def existing(folder: Path) -> list[Version]:
    """Versions under `releases/<name>/`, oldest first."""
    if not folder.is_dir():
        return []
    result = (parse(path.name) for path in folder.iterdir() if path.is_dir())
    return sorted(version for version in result if version is not None)


def next_version(
    version: str,
    before: Mapping[str, TableEntry],
    after: Mapping[str, TableEntry],
    taken: Iterable[Version],
) -> str:
    """The version to set: major when queries differ, minor when other tables do, else patch.

    A router trained on one major version answers the same questions in all of
    its minor ones.
    """
    major, minor, patch = parse(version) or (0, 0, 0)
    changed = {
        name
        for name in {*before, *after}
        if name not in before or name not in after or before[name].content != after[name].content
    }
    used = set(taken)
    if "queries" in changed:
        step = (major + 1, 0, 0)
    elif changed:
        step = (major, minor + 1, 0)
    else:
        step = (major, minor, patch + 1)
    while step in used:
        step = (step[0], step[1], step[2] + 1)
    return ".".join(map(str, step))
