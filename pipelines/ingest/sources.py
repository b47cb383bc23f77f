"""A source against data as they are: which columns differ, and whether rows become queries."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.common import files
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.catalog import Entry, from_catalog
from routeyard.pipelines.ingest.images import SourceImages
from routeyard.pipelines.ingest.queries import Ingested, each_item, to_queries
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoringInput
from routeyard.schemas import QUERIES
from routeyard.schemas.errors import RouteyardError
from routeyard.schemas.recipe import Fields, Source
from routeyard.schemas.statuses import NO_RULE

# Hub datasets through the `datasets` library, always at a recorded commit.

_COMMIT = re.compile(r"[0-9a-f]{40}")


def is_commit(revision: str) -> bool:
    """Whether a revision is a full commit, which never moves."""
    return _COMMIT.fullmatch(revision) is not None


def resolve(hub_id: str, revision: str | None, *, where: str) -> str:
    """Commit (40 hex digits) that `revision` names; the default branch when None.

    A branch or tag moves; a commit does not, so only commits are recorded.

    Raises:
        SourceError: the hub cannot be reached or does not know the dataset.
    """
    if revision and is_commit(revision):
        return revision
    from huggingface_hub import HfApi

    try:
        sha = HfApi().dataset_info(hub_id, revision=revision).sha
    except Exception as error:  # the client raises many kinds, none of them ours
        raise _unreachable(hub_id, error, where) from error
    if not sha:
        raise _unreachable(hub_id, ValueError("the hub gave no commit"), where)
    return sha


def hub_rows(
    hub_id: str,
    *,
    config: str | None,
    split: str,
    revision: str,
    streaming: bool,
    where: str,
) -> Iterator[dict[str, Any]]:
    """Rows of one split at one commit, in dataset order, streamed or downloaded.

    Several configs or splits are written `a|b`; their rows follow each other
    and carry the config as `_config`.
    """
    from datasets import load_dataset

    for one_config in (config or "").split("|"):
        for one_split in re.split(r"[|+]", split):
            try:
                dataset = load_dataset(
                    hub_id,
                    one_config or None,
                    split=one_split,
                    revision=revision,
                    streaming=streaming,
                )
                for row in _as_stored(dataset):
                    yield {**row, "_config": one_config, "_split": one_split}
            except Exception as error:  # as above: whatever the library raises, say where
                raise _unreachable(hub_id, error, where) from error


def _as_stored(dataset: Any) -> Any:
    """The rows with images as bytes and path: decoding them is neither needed nor safe."""
    from datasets import Image

    for name, feature in (dataset.features or {}).items():
        if isinstance(feature, Image):
            dataset = dataset.cast_column(name, Image(decode=False))
    return dataset


def _unreachable(hub_id: str, error: Exception, where: str) -> SourceError:
    return SourceError(
        f"the dataset {hub_id!r} cannot be loaded: {type(error).__name__}: {error}",
        where=where,
        next_step="check hub_id, config, split and revision; a gated dataset needs HF_TOKEN",
    )


# The ingest stage: every source of a recipe into one `queries` table.


def ingest(sources: Sequence[Source], *, base: Path, images: Path | None = None) -> Ingested:
    """Read all sources in recipe order.

    Args:
        base: Folder that relative paths in the recipe start from.
        images: Folder that gets the images of questions, each under its SHA-256.

    Raises:
        SourceError, RecipeError: with file, row and column.
    """
    seen: Counter[str] = Counter()
    query_rows: list[dict[str, Any]] = []
    removed: list[tuple[str, str, str]] = []
    provenance: list[dict[str, Any]] = []
    notes: list[str] = []
    for listed in sources:
        source = from_catalog(listed)
        where, result, origin = _open(source, base)
        rows = each_item(source, result, where=where)
        if source.shuffle_seed is not None:
            shuffled = list(rows)
            random.Random(source.shuffle_seed).shuffle(shuffled)
            rows = iter(shuffled)
        pictures = SourceImages(source, base, images)
        taken, left_out = to_queries(
            source, rows, seen=seen, where=where, notes=notes, images=pictures
        )
        query_rows += taken
        removed += left_out
        provenance.append(
            {
                "source": source.name,
                **origin,
                **source.model_dump(include={"license", "url", "redistribute_text"}),
                "queries": len(taken),
            }
        )
    table = QUERIES.from_rows(query_rows, where="ingest")
    return Ingested(table, removed, provenance, tuple(notes))


def pin(source: Source) -> Source:
    """The source with its hub revision resolved to a commit."""
    source = from_catalog(source)
    if not source.on_hub:
        return source
    commit = resolve(str(source.hub_id), source.revision, where=f"source {source.name!r}")
    return source.model_copy(update={"revision": commit})


def _open(source: Source, base: Path) -> tuple[str, Iterator[dict[str, Any]], dict[str, Any]]:
    if source.on_hub:
        source = pin(source)
        commit = str(source.revision)
        rows = hub_rows(
            **source.model_dump(include={"hub_id", "config", "split", "revision", "streaming"}),
            where=f"source {source.name!r}",
        )
        origin = source.model_dump(include={"hub_id", "config", "split", "revision"})
        return f"{source.hub_id}@{commit[:12]}", rows, origin
    result = files.expand(str(source.path), base=base, where=f"source {source.name!r}")
    origin = {"files": [{"name": path.name, "sha256": files.sha256(path)} for path in result]}
    several = len(result) > 1
    rows = _placed(result, source.format) if several else files.rows(result[0], source.format)
    return ", ".join(path.name for path in result), rows, origin


def _placed(paths: list[Path], declared: str | None = None) -> Iterator[dict[str, Any]]:
    """Rows of several files, each with its file and its place in it."""
    for path in paths:
        for number, row in enumerate(files.rows(path, declared), 1):
            line = getattr(row, "line", None)
            placed = row if isinstance(row, files.Line) else files.Line(row)
            placed.place = f"{path.name}, " + (f"row {number}" if line is None else f"line {line}")
            yield placed


# Questions of other datasets, only to compare the benchmark's own with (contamination).


def compared(sources: Sequence[Source], *, base: Path) -> pa.Table:
    """`dataset`, `text`: every question of the sources; references are not read.

    Raises:
        SourceError, RecipeError: as for sources that a benchmark takes its questions from.
    """
    asked = ingest([_only_questions(source) for source in sources], base=base).queries
    return pa.table({"dataset": asked.column("source"), "text": asked.column("question")})


def _only_questions(listed: Source) -> Source:
    source = from_catalog(listed)
    if source.fields is None:
        raise SourceError(
            f"dataset {source.name!r} names no fields",
            next_step="add 'fields: {question: COLUMN}', or take it from the catalog",
        )
    fields = Fields(question=source.fields.question)
    return source.model_copy(update={"fields": fields, "scorer": "none", "catalog": None})


# Whether the hub holds newer revisions than a recipe's sources ask for. Reads no data.


@dataclass(frozen=True, slots=True)
class Revision:
    """One hub source.

    Attributes:
        wanted: What the recipe asks for; null for the default branch.
        newest: Newest commit of the default branch, or of the branch or tag that is
            wanted; null where the hub did not say (`why`).
    """

    source: str
    hub_id: str
    wanted: str | None
    newest: str | None
    why: str | None = None

    @property
    def pinned(self) -> bool:
        """A commit never moves; a branch, a tag or nothing does."""
        return self.wanted is not None and is_commit(self.wanted)

    @property
    def newer_exists(self) -> bool:
        """A pinned source of which the hub has another commit; false where it is unknown."""
        return self.pinned and self.newest is not None and self.newest != self.wanted


def revisions(sources: Sequence[Source]) -> list[Revision]:
    """Ask the hub about every hub source, in recipe order."""
    results = []
    for listed in sources:
        source = from_catalog(listed)
        if not source.on_hub:
            continue
        name, hub_id, wanted = source.name, str(source.hub_id), source.revision
        asked = Revision(name, hub_id, wanted, None)
        try:
            branch = None if asked.pinned else wanted
            commit = resolve(hub_id, branch, where=f"source {name!r}")
        except SourceError as error:
            results.append(Revision(name, hub_id, wanted, None, error.what))
        else:
            results.append(Revision(name, hub_id, wanted, commit))
    return results


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in a few rows.

    Attributes:
        rows: Rows read.
        missing: Columns of the catalog's layout that no row has.
        new: Columns of the rows that the layout does not know.
        unconfirmed: Unconfirmed columns that the rows have: they are confirmed now.
        queries: What the rows became.
        fault: Why they became no queries; None when they did.
    """

    rows: int
    missing: tuple[str, ...]
    new: tuple[str, ...]
    unconfirmed: tuple[str, ...]
    queries: tuple[Mapping[str, Any], ...]
    fault: str | None

    @property
    def fits(self) -> bool:
        """Every row became a query."""
        return self.fault is None and bool(self.queries)


def check(entry: Entry, rows: Sequence[Mapping[str, Any]]) -> Checked:
    """Compare a few rows with what the catalog says of the dataset.

    A column that the mapping does not read may come and go: it is named, and is no fault.
    """
    there = dict.fromkeys(key for row in rows for key in row if not key.startswith("_"))
    queries, fault = _queries(entry.source, rows)
    return Checked(
        rows=len(rows),
        missing=tuple(name for name in entry.columns if name not in there),
        new=tuple(name for name in there if name not in entry.columns),
        unconfirmed=tuple(name for name in entry.unconfirmed if name in there),
        queries=tuple(queries),
        fault=fault,
    )


def sample(source: Source, file: str | None, *, rows: int) -> list[Mapping[str, Any]]:
    """The first rows of a file or of those that a glob names, or of the hub dataset, streamed.

    Raises:
        SourceError: the file or the hub cannot be read.
    """
    return list(islice(_rows(source, file), rows))


def _rows(source: Source, file: str | None) -> Iterator[Mapping[str, Any]]:
    where = f"source {source.name!r}"
    if file is not None or not source.on_hub:
        named, place = (file, "--file") if file is not None else (str(source.path), where)
        for path in files.expand(named, base=Path.cwd(), where=place):
            yield from files.rows(path, None if file is not None else source.format)
        return
    # The first config and split are enough to see the columns.
    first = {
        "config": (source.config or "").split("|")[0] or None,
        "split": re.split(r"[|+]", source.split)[0],
        "streaming": True,
    }
    yield from _open(source.model_copy(update=first), Path.cwd())[1]


def _queries(
    source: Source, rows: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], str | None]:
    placed = [{"_config": (source.config or "").split("|")[0], "_split": "", **row} for row in rows]
    # Conditions on values may match none of a few rows: that is no fault of the columns.
    free = source.model_copy(update={"where": {}, "exclude": {}, "limit": None})
    try:
        taken, _ = to_queries(
            free, each_item(free, placed, where="sample"), seen=Counter(), where="sample"
        )
        return taken, next((fault for fault in map(_unreadable, taken) if fault), None)
    except RouteyardError as error:
        return [], str(error)


def _unreadable(query: Mapping[str, Any]) -> str | None:
    """Why the query's scorer cannot use its reference; None when it can, or runs code."""
    if query["scorer"] in (NO_RULE, "code"):
        return None
    scorer: Scorer = SCORERS.get(query["scorer"])
    asked = ScoringInput(query["question"], tuple(query["references"]), tuple(query["choices"]))
    reading = scorer.read(asked, "Answer: 1")
    if reading.outcome != "error":
        return None
    return (
        f"the scorer {scorer.name!r} cannot use the reference {query['references']!r}: "
        f"{reading.reason}"
    )
