"""Readers of a stranger's files: they return what the format has, or raise a named error."""

from __future__ import annotations

import json
import re
import traceback
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from routeyard.pipelines.common import files
from routeyard.pipelines.common.errors import SourceError, Unsafe
from routeyard.pipelines.common.mapping import amount as amount
from routeyard.pipelines.common.mapping import count as count
from routeyard.pipelines.common.mapping import number as number
from routeyard.pipelines.common.mapping import score as score
from routeyard.pipelines.common.untrusted import regular, too_large
from routeyard.pipelines.common.usage import TokenUsage, usage_of
from routeyard.schemas.errors import RouteyardError, did_you_mean
from routeyard.schemas.text import own_table

#: What a value of another kind raises where the format's was expected.
_SURPRISES = (
    ArithmeticError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip


@contextmanager
def named_errors(path: Path, what: str, next_step: str) -> Iterator[None]:
    """Turn what a value of another kind raises into an error that names the source.

    Readers name what they expect to go wrong; a stranger's file can hold anything anywhere.

    Args:
        next_step: `{at}` in it is where the reader stopped.
    """
    try:
        yield
    except RouteyardError:
        raise
    except MemoryError as error:
        raise too_large(path, "needs more memory than there is") from error
    except _SURPRISES as error:
        *_, last = traceback.extract_tb(error.__traceback__)
        raise SourceError(
            f"{what}: {type(error).__name__}: {str(error)[:300]!r}",
            where=str(path),
            next_step=next_step.replace("{at}", f"{Path(last.filename).name}:{last.lineno}"),
        ) from error


# What an importer is: a declaration, and a reader that yields answers and adds questions.


@dataclass(frozen=True, slots=True)
class ImportedQuestion:
    """One question; `id` is its name inside the source."""

    id: str
    question: str
    task: str
    prompt: str | None = None
    choices: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    domain: str = "general"
    scorer: str = "given"
    split: str | None = None


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """One answer of one model; None is not known, never zero."""

    query: str
    model: str
    sample: int = 0
    text: str | None = None
    score: float | None = None
    graded_against: tuple[str, ...] | None = None
    finish_reason: str | None = None
    served_model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    #: Calls to models that the answer took; None where it is one or not known.
    calls: int | None = None
    status: str | None = None
    error: str | None = None


@dataclass
class ImportResult:
    """The questions of an import and what was left out; filled while the source is read.

    Attributes:
        source: The file or folder that is imported.
        left_out: Reason → number of records that were not taken.
        skipped: Reason → names of whole files that were not taken.
        samples: (question, model) → answers so far, in formats that repeat them.
        doubts: What a person has to know or to decide, one sentence each.
        choices: What was chosen where the source leaves it open, one sentence each.
        steps: Rows of `steps` with the questions' own ids; written beside the answers.
        seen: What a reader remembers from one record to the next.
    """

    source: Path
    questions: dict[str, ImportedQuestion] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, list[str]] = field(default_factory=dict)
    samples: Counter[tuple[str, str]] = field(default_factory=Counter)
    doubts: list[str] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    seen: dict[Any, Any] = field(default_factory=dict)

    def skip(self, why: str, file: str) -> None:
        """Leave a whole file out, by name."""
        self.skipped.setdefault(why, []).append(file)

    def reasons(self) -> dict[str, int]:
        """What was not taken: reason, with the names of whole files, → count."""
        named = {}
        for why, names in self.skipped.items():
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            named[f"{why} ({', '.join(sorted(names)[:5])}{more})"] = len(names)
        return dict(sorted((self.left_out + Counter(named)).items()))

    def name_of(self, path: Path) -> str:
        """A file's name, as it is below the folder that is imported."""
        return str(path.relative_to(self.source)) if self.source in path.parents else path.name

    def ask(self, question: ImportedQuestion, where: str) -> None:
        """Add a question.

        Raises:
            SourceError: another question has the same id.
        """
        if self.questions.setdefault(question.id, question) != question:
            raise SourceError(
                f"the id {question.id!r} belongs to two different questions",
                where=where,
                next_step="import the files one by one, or mend the ids in the source",
            )

    def next_sample(self, query: str, model: str) -> int:
        """Number of the model's next answer to a question, from 0."""
        self.samples[query, model] += 1
        return self.samples[query, model] - 1


@dataclass(frozen=True, slots=True)
class Importer:
    """One format: where it comes from, what it lacks, and how it is read.

    Attributes:
        layout: What `PATH` must hold, in one sentence for an error.
        files: Patterns of the format's files below a folder.
        license: As stated upstream; NOASSERTION when nothing is stated.
        lacks: What the source does not record at all.
        read: `read(paths, result)` yields the answers in these files, and adds their questions
            and what is left out to `result`.
        newest_first: The time in a file's name; `read` gets the newest file first.
        sizes_in_names: Model names state sizes (`…-7b-…`), which then become `params_b`.
    """

    name: str
    title: str
    url: str
    license: str
    layout: str
    files: Sequence[str]
    lacks: Sequence[str]
    read: Callable[[Sequence[Path], ImportResult], Iterable[ImportedAnswer]]
    newest_first: re.Pattern[str] | None = None
    sizes_in_names: bool = False


#: What `importers.yaml` says of each format; `reader` is the module and name of its importer.
FORMATS = own_table(Path(__file__).with_name("importers.yaml"))


#: Start of a file's name → split.
SPLITS = {"train": "train", "val": "validation", "test": "test"}


def split_of(text: str) -> str | None:
    """The split that a text starts with: `train`, `validation` or `test`."""
    return next((v for k, v in SPLITS.items() if text.startswith(k)), None)


def found_files(path: Path, patterns: Sequence[str], layout: str) -> list[Path]:
    """The file itself, or the files below a folder that match, in order of name.

    Raises:
        SourceError: the file is missing; states the expected layout.
    """
    if path.is_file():
        return [path]
    results = sorted({p for pattern in patterns for p in path.glob(pattern) if p.is_file()})
    for item in results:
        inside(item, path)
    if not results:
        raise SourceError(
            f"no file of this format at {path}",
            where=str(path),
            next_step=f"expected: {layout}",
        )
    return results


def inside(path: Path, folder: Path) -> None:
    """Refuse a link that leads out of the folder: its author has never seen what it leads to.

    In a hub's cache the files of `snapshots/REVISION` are links to `blobs`, which belong to it.

    Raises:
        SourceError: the link, and what to do.
    """
    root, target = folder.resolve(), path.resolve()
    own = [root, *(item.parent / "blobs" for item in root.parents if item.name == "snapshots")]
    if not any(target.is_relative_to(item) for item in own):
        raise SourceError(
            "a link leads out of the folder",
            where=str(path),
            next_step="take it out, or put the file itself there if you know what it is",
        )


def need(row: Mapping[str, Any], columns: Iterable[str], where: str) -> None:
    """Refuse a record that lacks a column of the format."""
    missing = [name for name in columns if name not in row]
    if missing:
        raise SourceError(
            f"column {missing[0]!r} is missing: this is not a file of the format",
            where=where,
            next_step=f"{did_you_mean(missing[0], map(str, row))} (columns: "
            f"{', '.join(map(str, row))[:300]})",
        )


def stray(result: ImportResult, content: Any, columns: Sequence[str], name: str) -> bool:
    """Whether a file among others is not of the format; it is left out by name.

    A file that has half of the format's columns is a damaged one of it, and no stray:
    `need` names what it lacks.

    Args:
        content: The file's content, or its first record.
    """
    first = content[0] if isinstance(content, list) and content else content
    has = sum(column in first for column in columns) if isinstance(first, dict) else 0
    if 2 * has >= len(columns):
        return False
    result.skip("files that are not of the format", name)
    return True


def records(
    rows: Iterable[dict[str, Any]],
    columns: Sequence[str],
    name: str,
    result: ImportResult | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, record) of each record, which has at least `columns`; `name` is the file's.

    With `result`, a file whose first record is of something else is left out by name.
    """
    for place, row in enumerate(rows):
        if place == 0 and result is not None and stray(result, row, columns, name):
            return
        where = f"{name}, record {place + 1}"
        need(row, columns, where)
        yield where, row


def newest_first(paths: Iterable[Path], stamp: re.Pattern[str]) -> list[Path]:
    """Files by the time in their names, the newest first; those without a time come last."""

    def order(path: Path) -> tuple[str, str]:
        match = stamp.search(path.name)
        return (match[0] if match else "", str(path))

    return sorted(paths, key=order, reverse=True)


def json_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a JSON list or of JSON lines, whichever the file holds, whatever its name."""
    with path.open("rb") as stream:
        first = stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if first == b"[":
        yield from objects(load_json(path), str(path))
    else:
        yield from files.rows(path, "jsonl")


def json_list(path: Path) -> list[dict[str, Any]]:
    """Objects of a file that is one JSON list; another object is one record, of no list."""
    content = load_json(path)
    return objects([content] if isinstance(content, dict) else content, str(path))


def load_json(path: Path) -> Any:
    """One JSON document.

    Raises:
        SourceError: no regular file, not UTF-8, not JSON, too deep or too large.
    """
    return parse_json(whole(path), str(path))


def whole(path: Path) -> bytes:
    """The bytes of a file that holds one JSON document.

    Raises:
        SourceError: no regular file, or too large.
    """
    regular(path)
    if path.stat().st_size > files.LONGEST_DOCUMENT:
        raise SourceError("the file is too large for one JSON document", where=str(path))
    return path.read_bytes()


def parse_json(data: bytes, where: str) -> Any:
    """A JSON document from bytes; NaN and Infinity become null."""
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=lambda name: None)
    except UnicodeDecodeError as error:
        raise SourceError(
            f"the text is not UTF-8: byte {error.start} is {data[error.start]:#04x}",
            where=where,
            next_step="convert the whole file to UTF-8; mixed encodings are not guessed",
        ) from error
    except (ValueError, RecursionError) as error:
        raise SourceError(
            f"not JSON: {error}", where=where, next_step="fetch the file again"
        ) from error


def objects(value: Any, where: str) -> list[dict[str, Any]]:
    """A JSON list of objects."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise SourceError("a list of objects is expected", where=where)
    return value


def obj(value: Any, where: str) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise SourceError("an object is expected", where=where)
    return value


def within(record: Mapping[str, Any], where: str, *keys: str) -> dict[str, Any]:
    """The object under some keys, one inside the other; empty where nothing is there."""
    for key in keys:
        record = obj(record.get(key) or {}, where)
    return dict(record)


def documents(
    paths: Iterable[Path], result: ImportResult, fits: Callable[[Any], object]
) -> Iterator[tuple[Path, Any]]:
    """(file, content) of the JSON documents that fit a format; others are left out by name."""
    for path in paths:
        content = load_json(path)
        if fits(content):
            yield path, content
        else:
            result.skip("files that are not of the format", path.name)


def usage(record: Any, where: str, timings: Any = None) -> TokenUsage:
    """Token classes of a usage record (and llama.cpp's `timings`); all unknown where it is missing.

    Raises:
        SourceError: a value is no number of tokens, or counts contradict each other.
    """
    if record is None:
        return TokenUsage()
    if not isinstance(record, dict):
        raise SourceError(f"usage: expected a record, found {str(record)[:60]!r}", where=where)
    result = usage_of(record, timings if isinstance(timings, dict) else None)
    if result.odd:
        raise SourceError(f"usage: {result.odd[0]}", where=where)
    return result.known


def spent(cost: Any, tokens: int | None, where: str) -> float | None:
    """Cost in USD; a zero beside spent tokens is a missing price."""
    result = number(cost, where)
    if result is None or result < 0 or (result == 0 and tokens != 0):
        return None
    return result


def text(value: Any) -> str:
    """Text of a value; null is empty, a list or an object is its JSON."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)


def output_text(value: Any) -> str | None:
    """What a model answered; None for null, which is no answer and not an empty one."""
    return None if value is None else text(value)


def texts(value: Any) -> tuple[str, ...]:
    """Texts of a value that may be one or a list of them."""
    if value is None or value == "":
        return ()
    if isinstance(value, str | dict) or not isinstance(value, Iterable):
        return (text(value),)
    return tuple(text(item) for item in value if item is not None)


def options(value: Any) -> tuple[str, ...]:
    """Options, each at the place that its letter counts: one that is null is an empty text."""
    if isinstance(value, list):
        value = ["" if item is None else item for item in value]
    return texts(value)


def step(
    key: Mapping[str, Any], number: int | None, arm: str, called: object = False, *,
    failed: object = False, **known: Any,
) -> dict[str, Any]:  # fmt: skip
    """A row of `steps`: one call of a model, which called tools or answered."""
    return {
        **key, "step": number, "acted_by": arm, "action": "call" if called else "answer",
        "queries": [], "found": [], "status": "error" if failed else "ok", "attempts": 1, **known,
    }  # fmt: skip


def tool_name(tool: Any) -> str:
    """Name of a tool, or of one that is called, in OpenAI's or a plain shape."""
    of = tool.get("function", tool) if isinstance(tool, Mapping) else tool
    return str(of.get("name") if isinstance(of, Mapping) else of)


#: Counts of an answer that are those of its steps together.
TOKENS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")


def sums_of(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts and seconds of an answer: sums over its steps, None as soon as one is unknown."""
    values: dict[str, list[Any]]
    values = {name: [step.get(name) for step in steps] for name in (*TOKENS, "latency_s")}
    sums = {name: None if not v or None in v else sum(v) for name, v in values.items()}
    return {**sums, "calls": len(steps)}


# Members of a zip file, within limits: a small archive can unfold into a full disk.

MAX_BYTES = 4_000_000_000
MAX_MEMBERS = 200_000
#: JSON compresses about tenfold; a bomb does so a thousandfold.
MAX_RATIO = 200
_BLOCK = 1 << 20
#: What a damaged, cut or encrypted archive raises (OSError: its Zstandard stream).
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
)
#: Zstandard's number among the compressions of a zip file; zipfile cannot read it before 3.14.
_ZSTANDARD = 93


def members(path: Path, ending: str, *, max_bytes: int = MAX_BYTES) -> Iterator[tuple[str, bytes]]:
    """(name, content) of the members that end in `ending`, in order of name.

    Nothing is written to disk. The declared sizes are not believed: bytes are
    counted while they are unfolded.

    Raises:
        Unsafe: the archive unfolds to more than any dataset would.
        SourceError: it is damaged or encrypted.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.filename)
            if len(entries) > MAX_MEMBERS:
                raise _bomb(path, f"it has {len(entries):,} members")
            total = 0
            for entry in entries:
                if entry.is_dir() or not entry.filename.endswith(ending):
                    continue
                room = min(max_bytes - total, max(entry.compress_size, 5_000) * MAX_RATIO)
                content = _read(archive, entry, room, path)
                total += len(content)
                yield entry.filename, content
    except _DAMAGED as error:
        raise SourceError(
            f"the archive cannot be read: {error}",
            where=str(path),
            next_step="fetch the file again",
        ) from error


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, room: int, path: Path) -> bytes:
    blocks: list[bytes] = []
    size = 0
    with _opened(archive, entry, path) as stream:
        while block := stream.read(_BLOCK):
            size += len(block)
            if size > room:
                raise _bomb(path, f"{entry.filename} unfolds to more than {room:,} bytes")
            blocks.append(block)
    content = b"".join(blocks)
    if entry.compress_type == _ZSTANDARD and zlib.crc32(content) != entry.CRC:
        raise zipfile.BadZipFile(f"the checksum of {entry.filename} is wrong")
    return content


def _opened(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> IO[bytes] | Any:
    """Stream of a member's content, unfolded as it is read."""
    if entry.compress_type != _ZSTANDARD:
        return archive.open(entry)
    import pyarrow as pa

    with path.open("rb") as file:
        file.seek(entry.header_offset)
        head = file.read(30)
        if head[:4] != b"PK\x03\x04" or entry.flag_bits & 1:
            raise zipfile.BadZipFile(f"{entry.filename} has no readable header")
        # A name and an extra field of the lengths given there precede the content.
        file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
        packed = file.read(entry.compress_size)
    return pa.CompressedInputStream(pa.BufferReader(packed), "zstd")


def _bomb(path: Path, what: str) -> Unsafe:
    return Unsafe(
        f"the archive is refused: {what}",
        where=str(path),
        next_step="unpack it yourself if you trust it, and import the folder",
    )
