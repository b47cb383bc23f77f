"""A release as evaluation reads it: its tables, embeddings made where they lack, the core."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.flows.console import counter, line
from routeyard.pipelines.common import encoders
from routeyard.pipelines.common.arrays import Bools, Vectors
from routeyard.pipelines.common.encoders import NAME as TFIDF
from routeyard.pipelines.common.encoders import embed, text_of, tfidf
from routeyard.pipelines.common.matrix import Core, core_of, encoder_vectors
from routeyard.pipelines.common.staging import replacing
from routeyard.pipelines.common.untrusted import RELEASED, bounded
from routeyard.pipelines.evaluate.experiment import DECISION, default_scheme, feed, read_predictions
from routeyard.pipelines.evaluate.fit import library_versions
from routeyard.pipelines.evaluate.metrics.single import robustness
from routeyard.pipelines.evaluate.studies.study import TUNED
from routeyard.pipelines.evaluate.zoo import submissions as layout
from routeyard.pipelines.evaluate.zoo.submissions import Suspicion, audit, choices, compare
from routeyard.pipelines.release.manifest import MANIFEST, read_manifest, yanked
from routeyard.pipelines.release.storage import outside_releases, sealed
from routeyard.schemas import CONTRACTS, Contract, StoredTable
from routeyard.schemas.errors import BadInput, did_you_mean
from routeyard.schemas.questions import looked_for_duplicates
from routeyard.schemas.release import Manifest

# Vectors of a release's questions by the name of an encoder: shipped, lexical, or computed.


def vectors(
    tables: Mapping[str, pa.Table],
    core: Core,
    names: Sequence[str],
    *,
    scheme: str,
    cache: Path,
    device: str = "auto",
) -> dict[str, Vectors]:
    """Encoder → (n, d) vectors of the core's questions; those that are missing are computed.

    A name is looked for among the release's own embeddings, then `tfidf`, then
    what `routeyard.pipelines.common.encoders` knows: packaged weights, a folder, a hub id.

    Raises:
        BadInput: the name is not one of these.
    """

    result: dict[str, Vectors] = {}
    shipped: set[str] = set()
    if "embeddings" in tables:
        shipped = set(tables["embeddings"].column("encoder").to_pylist())
    ids = pa.array(core.query_ids, pa.string())
    for name in dict.fromkeys(names):
        own = shipped_name(name, shipped)
        if own is not None:
            loaded = encoder_vectors(tables["embeddings"], ids, own)
            assert loaded is not None
            result[name] = loaded
        elif name == TFIDF:
            texts = texts_of(tables, core)
            every = np.ones(len(texts), dtype=bool)  # without a split all may shape the space
            train = core.splits[scheme] == "train" if scheme else every
            result[name] = kept_tfidf(texts, train, cache)
        else:
            full = known_name(name, shipped)
            table = computed(tables["queries"], full, cache, device)
            loaded = encoder_vectors(table, ids, encoders.named(full))
            assert loaded is not None
            result[name] = loaded
    return result


def computed(queries: pa.Table, encoder: str, cache: Path, device: str) -> pa.Table:
    """`embeddings` of questions by an encoder's full name, through the cache."""
    outside_releases(cache)
    with counter("embed", "questions") as advance:
        return embed(queries, encoder=encoder, cache=cache, device=device, on_progress=advance)


def texts_of(tables: Mapping[str, pa.Table], core: Core) -> list[str]:
    """The text of each of the core's questions that an encoder reads."""
    columns = tables["queries"].select(["query_id", "question", "choices"])
    rows = {row["query_id"]: row for row in columns.to_pylist()}
    return [text_of(rows[q]["question"], rows[q]["choices"] or []) for q in core.query_ids]


def known_name(name: str, shipped: Collection[str] = ()) -> str:
    """The full name of an encoder that can be computed.

    Raises:
        BadInput: no encoder has this name.
    """

    full = encoders.full_name(name)
    if not encoders.known(full):
        every = [TFIDF, *encoders.ALIASES, *encoders.names(), *sorted(shipped)]
        raise BadInput(
            f"there is no encoder {name!r}",
            next_step=did_you_mean(name, every)
            + "; or name a folder of weights or a hub id (owner/name)",
        )
    return full


def shipped_name(name: str, shipped: Collection[str]) -> str | None:
    """How a release calls its embeddings by an encoder of this name; None where it has none."""

    full = encoders.full_name(name)
    # Vectors of another backend are the same to 1e-6 in cosine.
    either = (encoders.named(full), f"{full}{encoders.OPENVINO}:float32")
    return next((item for item in (name, full, *either) if item in shipped), None)


def kept_tfidf(texts: Sequence[str], train: Bools, cache: Path) -> Vectors:
    """(n, d) TF-IDF vectors, kept in the cache under a hash of all that decides them."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file, save_file

    hashed = hashlib.sha256()
    feed(hashed, [code_of_fits(), *library_versions()])
    feed(hashed, np.asarray(train))
    feed(hashed, texts)
    file = cache / f"{TFIDF}-{hashed.hexdigest()[:24]}.safetensors"
    with suppress(OSError, SafetensorError, KeyError):  # not kept, or damaged
        stored: Vectors = load_file(file)["vectors"]
        return stored
    result = tfidf(texts, train)
    outside_releases(cache)
    # A cache that cannot be written keeps nothing.
    with suppress(OSError), replacing(file) as unfinished:
        save_file({"vectors": result}, unfinished)
    return result


#: Where the packages are, and what decides vectors and fits: whole packages, modules of `evaluate`.
_ROOT = Path(__file__).parents[2]
_FITS = ("schemas/**/*", "pipelines/common/**/*", "pipelines/routers/**/*",
         "pipelines/evaluate/__init__.py", "pipelines/evaluate/experiment.py",
         "pipelines/evaluate/fit.py")  # fmt: skip


def files_of_fits() -> list[Path]:
    """Files whose code decides vectors and fits, from the root."""
    files = sorted(file.relative_to(_ROOT) for pattern in _FITS for file in _ROOT.glob(pattern))
    return [file for file in files if file.suffix in (".py", ".yaml", ".sql")]


@cache
def code_of_fits() -> str:
    """Hash of the files that vectors and fits depend on."""
    parts = (f"{file}\0".encode() + (_ROOT / file).read_bytes() for file in files_of_fits())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def lexical(tables: Mapping[str, pa.Table], core: Core, scheme: str, cache: Path) -> pa.Table:
    """`embeddings` of all questions by TF-IDF, fitted on the train questions of a scheme."""
    vector = vectors(tables, core, [TFIDF], scheme=scheme, cache=cache)[TFIDF]
    n, d = vector.shape
    offsets = pa.array(np.arange(0, n * d + 1, d, dtype=np.int32))
    columns = {
        "query_id": pa.array(core.query_ids, pa.string()),
        "encoder": pa.repeat(TFIDF, n),
        "vector": pa.ListArray.from_arrays(offsets, vector.astype(np.float32).ravel()),
        "seen_chars": pa.nulls(n, pa.int64()),
    }
    contract = CONTRACTS["embeddings"]
    return contract.conform(pa.table({k: columns[k] for k in contract.column_names}))


#: Tables an evaluation reads; the others stay closed.
TABLES = (
    "queries", "models", "labels", "outcomes", "responses", "verdicts", "embeddings",
    "duplicates", "splits", "model_splits", "preferences", "signals", "entropies",
    "descriptors", "hidden_states", "steps",
)  # fmt: skip

#: Tables of which, before a part is read, it is checked what the whole file unfolds to.
_WRITTEN = ("queries", "splits", "responses")

#: Tables that may come from files beside a release (`--also`).
BESIDE: Mapping[str, Contract] = {
    **{n: CONTRACTS[n] for n in ("preferences", "signals", "entropies", "descriptors",
                                 "hidden_states")},
    TUNED.name: TUNED,
}  # fmt: skip


class Tables(Mapping[str, pa.Table]):
    """Tables by name, each read when it is first asked for: texts of answers may never be."""

    def __init__(
        self,
        readers: Mapping[str, Callable[[], pa.Table]],
        files: Mapping[str, Path] | None = None,
    ) -> None:
        self._readers, self._files = dict(readers), dict(files or {})
        self._held: dict[str, pa.Table] = {}

    def stored(self, name: str) -> StoredTable | None:
        """Where a table is stored as one file; None when it does not, or was given in another way.

        Raises:
            SourceError: questions, splits or answers unfold to more than a person would write.
        """
        path = self._files.get(name)
        if path is None:
            return None
        return StoredTable(bounded(path, RELEASED) if name in _WRITTEN else path)

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._held:
            self._held[name] = self._readers[name]()
        return self._held[name]

    def __contains__(self, name: object) -> bool:
        # `Mapping.__contains__` would read the table to find out.
        return name in self._readers

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def also(self, name: str, table: pa.Table) -> Tables:
        """These tables and one more, or another in its place."""
        more = self.without(name)
        more._readers[name] = lambda: table
        return more

    def without(self, name: str) -> Tables:
        """These tables but one."""

        def others(by_name: dict[str, Any]) -> dict[str, Any]:
            return {key: value for key, value in by_name.items() if key != name}

        tables = Tables(others(self._readers), others(self._files))
        tables._held = others(self._held)
        return tables


def read_release(release: Path) -> Tables:
    """The tables of a release directory (`data/<table>.parquet`) or of a stage folder.

    A file is read when its table is asked for, and breaks its contract then.

    Raises:
        BadInput: there is no such release, it lacks queries, models or labels, its manifest
            cannot be read, or a table is a link to something else than was sealed.
        ContractError: a file breaks its contract.
    """
    say_if_yanked(release)
    manifest = read_manifest(release) if os.path.lexists(release / MANIFEST) else None
    folder = release / "data" if (release / "data").is_dir() else release
    result: dict[str, Callable[[], pa.Table]] = {}
    files: dict[str, Path] = {}
    for name in TABLES:
        path = folder / f"{name}.parquet"
        parts = [path] if path.is_file() else sorted((folder / name).glob("*.parquet"))
        if parts and manifest is not None:
            parts = [_own(release, part, manifest) for part in parts]
        if parts:
            result[name] = partial(_read, name, parts)
            if len(parts) == 1:
                files[name] = parts[0]
    if (
        "duplicates" in result
        and manifest is not None
        and not looked_for_duplicates(manifest.recipe)
    ):
        del result["duplicates"]  # empty because nobody looked
    for name in ("queries", "models", "labels"):
        if name not in result:
            raise BadInput(
                f"{release} is no release: it has no table {name!r}",
                where=str(folder / f"{name}.parquet"),
                next_step="name a release directory, such as yard/releases/<name>/<version>",
            )
    return Tables(result, files)


def _own(release: Path, file: Path, manifest: Manifest) -> Path:
    """A file of the release; one that a link leads to elsewhere only with the sealed content."""
    if file.resolve().is_relative_to(release.resolve()):
        return file
    name = file.relative_to(release).as_posix()
    return sealed(release, name, manifest.files.get(name))


def say_if_yanked(release: Path) -> None:
    """One line on standard error where the release should not be used any more."""
    if note := yanked(release):
        line("note", note.words)


def _read(name: str, parts: Sequence[Path]) -> pa.Table:
    contract = CONTRACTS[name]
    return pa.concat_tables(
        [
            contract.conform(pq.read_table(bounded(path, RELEASED)), where=str(path))
            for path in parts
        ]
    )


def with_beside(tables: Mapping[str, pa.Table], also: Sequence[Path]) -> Tables:
    """The tables with those of files or folders beside the release; rows of one table are joined.

    The columns say which table a file holds.

    Raises:
        BadInput: nothing is there, or a file holds none of `BESIDE`.
        ContractError: rows break the contract, such as keys that occur twice.
    """
    result: dict[str, list[pa.Table]] = {}
    for place in also:
        files = [place] if place.is_file() else sorted(place.glob("*.parquet"))
        if not files:
            raise BadInput("there is no Parquet file to add", where=str(place))
        for file in files:
            table = pq.read_table(bounded(file))
            name = next(
                (n for n, c in BESIDE.items() if set(c.column_names) <= set(table.column_names)),
                None,
            )
            if name is None:
                raise BadInput(
                    f"its columns are those of no table that can be beside a release: "
                    f"{', '.join(table.column_names)}",
                    where=str(file),
                    next_step=f"known: {', '.join(BESIDE)}",
                )
            contract = BESIDE[name]
            own = table.select(contract.column_names)
            result.setdefault(name, []).append(contract.conform(own, where=str(file)))
    if not isinstance(tables, Tables):
        tables = Tables({name: partial(tables.__getitem__, name) for name in tables})
    for name, parts in result.items():
        before = [tables[name]] if name in tables else []
        where = ", ".join(map(str, also))
        joined = pa.concat_tables([*before, *parts])
        tables = tables.also(name, BESIDE[name].conform(joined, where=where))
    return tables


def read_with(release: Path, also: Sequence[Path] = (), **embeddings: Any) -> Tables:
    """A release with tables beside it and, where `embeddings` says so, with embeddings.

    Args:
        embeddings: As `with_embeddings` takes them.
    """
    tables = with_beside(read_release(release), also)
    return with_embeddings(tables, **embeddings) if embeddings else tables


def out_folder(release: Path, out: Path) -> Path:
    """The folder to write to, made if need be; never a release or a folder in one."""
    here, there = out.resolve(), release.resolve()
    if here == there or there in here.parents:
        raise BadInput(
            "an evaluation is written beside a release, never into it",
            where=str(out),
            next_step="choose an --out outside the release directory",
        )
    outside_releases(out)
    out.mkdir(parents=True, exist_ok=True)
    return out


def with_embeddings(
    tables: Tables,
    embeddings: Path | None,
    embed: bool,
    cache: Path,
    encoder: str | None,
    scheme: str | None = None,
    device: str = "auto",
) -> Tables:
    """The tables with embeddings of all queries: from a file, the release, or computed.

    Args:
        embed: Compute them where the release lacks any; an encoder that is named is always used.
        encoder: Default: what the file or the release has, else `tfidf`.
        scheme: split scheme whose train questions a lexical encoder is fitted on.
        device: computes what the release lacks.
    """
    if (file := embeddings) is not None:
        tables = tables.also("embeddings", _of_file(file))
    if "embeddings" in tables:
        if encoder is None:
            return tables
        vectors = tables["embeddings"]
        there = set(vectors.column("encoder").to_pylist())
        if own := shipped_name(encoder, there):
            selected = vectors.filter(pc.equal(vectors.column("encoder").cast(pa.string()), own))
            return tables.also("embeddings", selected)
        tables = tables.without("embeddings")
    elif not embed and encoder is None:
        return tables
    if encoder in (None, TFIDF):
        core = core_of(tables)
        chosen = default_scheme(core, scheme) if core.splits else ""
        return tables.also("embeddings", lexical(tables, core, chosen, cache))

    name = known_name(str(encoder))
    return tables.also("embeddings", computed(tables["queries"], name, cache, device))


def _of_file(file: Path) -> pa.Table:
    """`embeddings` of a file; without a column `encoder` the file's name is that of the encoder."""
    if not file.is_file():
        raise BadInput("there is no such embeddings file", where=str(file))
    contract = CONTRACTS["embeddings"]
    table = pq.read_table(bounded(file))
    missing = [c for c in ("query_id", "vector") if c not in table.column_names]
    if missing:
        raise BadInput(
            f"the embeddings file lacks column {missing[0]!r}",
            where=str(file),
            next_step="columns: query_id, vector and, if there are several encoders, encoder",
        )
    filled = {
        "encoder": pa.array([file.stem] * table.num_rows, pa.string()),
        "seen_chars": pa.nulls(table.num_rows, pa.int64()),
    }
    for name, values in filled.items():
        if name in contract.column_names and name not in table.column_names:
            table = table.append_column(name, values)
    return contract.conform(table.select(contract.column_names), where=str(file))


# A submission of predictions, checked against the release it was made for.


def audit_submission(
    predictions: Path,
    release: Path,
    *,
    scheme: str | None = None,
    arena: Path | None = None,
    earlier: Path | None = None,
) -> list[Suspicion]:
    """Leaks, constants, foreign prices, gaps and repeats in a table of choices.

    Args:
        predictions: CSV or Parquet with query_id, model_id and, if given, cost and tokens.
        earlier: an earlier submission of the same team, to compare with.
        arena: File to write in RouterArena's layout, if no check fails.

    Raises:
        BadInput: there is no such release, split scheme or table.
    """
    table, tables = read_predictions(predictions), read_release(release)
    core = core_of(tables.without("embeddings"))
    chosen = default_scheme(core, scheme)
    submission = audit(core, chosen, table)
    read = {"query_id", "model_id", "cost", "tokens", "score", DECISION}
    if unread := sorted(set(table.column_names) - read):
        says = f"read neither here nor by evaluate: {', '.join(map(repr, unread))}"
        submission.append(Suspicion("unread columns", "warn", says))
    if earlier is not None:
        submission.append(compare(core, chosen, choices_only(earlier), table))
    if arena is not None and all(item.level != "fail" for item in submission):
        test = core.take(core.rows(chosen, "test"))
        choice = choices(test, table)
        score = layout.write(arena, layout.rows(tables, test, choice), test, choice)
        says = f"{len(choice)} rows, Arena score {score:.6f} → {arena}"
        submission.append(Suspicion("RouterArena", "ok", says))
    return submission


def robust(predictions: Path, reworded: Path) -> Suspicion:
    """Share of reworded questions that are sent where the original is sent.

    Raises:
        BadInput: a file is no table of choices, or they share no question.
    """
    full, other = (
        dict(zip(*(table.column(c).to_pylist() for c in ("query_id", "model_id")), strict=True))
        for table in map(choices_only, (predictions, reworded))
    )
    result = robustness(full, other)
    if result is None:
        raise BadInput(
            "no reworded question has the id of one that was asked as it is",
            where=str(reworded),
            next_step="give both files the same query_id for the same question",
        )
    n = len(set(full) & set(other))
    return Suspicion(
        "robustness", "ok", f"{result:.1%} of {n:,} reworded questions keep their model"
    )


def choices_only(path: Path) -> pa.Table:
    """A table of choices, `query_id` and `model_id` as text.

    Raises:
        BadInput: a column is missing.
    """
    table = read_predictions(path)
    for name in ("query_id", "model_id"):
        if name not in table.column_names:
            raise BadInput(
                f"the predictions table has no column {name!r}",
                where=str(path),
                next_step="columns: query_id, model_id",
            )
    return table.select(["query_id", "model_id"]).cast(
        pa.schema([("query_id", pa.string()), ("model_id", pa.string())])
    )
