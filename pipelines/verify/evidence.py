"""The parts of a release that proofs read, each read once and only as far as it is needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from routeyard.pipelines.common.arrays import Ints
from routeyard.pipelines.common.sql import SHOWN, runner
from routeyard.pipelines.ingest.catalog import from_catalog
from routeyard.pipelines.release.build import RenderCard
from routeyard.pipelines.release.manifest import Finding, code_version, first_line, printable
from routeyard.schemas import CONTRACTS, StoredTable
from routeyard.schemas.recipe import Collect, CurationRule, Label, Pool, Recipe, Source, Split
from routeyard.schemas.release import WITHHELD, Manifest

# What a check makes of a part of a release: proved, consistent, believed, or not checked.

Kind = Literal["proved", "consistent", "believed", "not_run"]
KINDS: tuple[Kind, ...] = ("proved", "consistent", "believed", "not_run")


@dataclass(frozen=True, slots=True)
class ProofClaim:
    """A statement about one part of a release.

    Attributes:
        kind: `proved` was computed again from other data of the release and is equal;
            `consistent` contradicts nothing that could be compared; `believed` rests on the
            publisher's word; `not_run` names a check that could not be made, and why.
        about: Table, or part of the manifest.
        covers: Columns (`table.column`) and figures (`figures.stage.name`) that are proved whole,
            or by a sample that the claim names; all others are listed as believed.
    """

    kind: Kind
    about: str
    says: str
    covers: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One printable line."""
        return printable(f"{self.about}: {self.says}")


@dataclass
class Proof:
    """Contradictions in a release, and what its checks proved or could not show of the rest.

    Attributes:
        leaks: Split schemes with test questions that are also in train.
    """

    findings: list[Finding] = field(default_factory=list)
    claims: list[ProofClaim] = field(default_factory=list)
    leaks: list[dict[str, Any]] = field(default_factory=list)

    def add(self, results: Iterable[Finding | ProofClaim]) -> None:
        """Take the results of a check as they come: what was found before an error counts."""
        for result in results:
            if isinstance(result, Finding):
                self.findings.append(result)
            else:
                self.claims.append(result)

    def of(self, kind: Kind) -> list[str]:
        """The statements of one kind, a line each."""
        return [str(claim) for claim in self.claims if claim.kind == kind]

    @property
    def covered(self) -> set[str]:
        """Columns and figures that were proved and that no check contradicts."""
        return {name for claim in self.claims for name in claim.covers}


#: What checks give, one after the other.
Results = Iterator[Finding | ProofClaim]


def proved(about: str, says: str, *covers: str) -> ProofClaim:
    """A statement that was computed again from other data than itself and is equal.

    Args:
        covers: As in `ProofClaim`; names of columns of the table `about` may be short.
    """
    return ProofClaim(
        "proved", about, says, tuple(c if "." in c else f"{about}.{c}" for c in covers)
    )


def consistent(about: str, says: str) -> ProofClaim:
    """A statement that nothing in the release contradicts."""
    return ProofClaim("consistent", about, says)


def believed(about: str, says: str) -> ProofClaim:
    """A statement that rests on the publisher's word."""
    return ProofClaim("believed", about, says)


def not_run(about: str, check: str, why: str) -> ProofClaim:
    """A check that could not be made, and the reason: what it would show is believed."""
    return ProofClaim("not_run", about, f"{check}: {why}")


def contradiction(
    about: str, bad: int, of: int, what: str, examples: Sequence[str], check: str = "proof"
) -> Finding:
    """A finding that names the table, how many rows, and what was expected of some of them."""
    shown = "; ".join(examples[:3])
    return Finding(check, about, f"{bad:,} of {of:,} {what}" + (f", e.g. {shown}" if shown else ""))


# Differences between two versions of a part of a release, as sentences.

#: Two computations of a figure may differ by so much of it.
CLOSE = 1e-9


def same(a: Any, b: Any, close: float = CLOSE) -> bool:
    """Whether two values of JSON or of a table are equal, floats as far as `close`."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key], close) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y, close) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) or isinstance(b, float):
        numbers = isinstance(a, int | float) and isinstance(b, int | float)
        equal = numbers and math.isclose(a, b, rel_tol=close, abs_tol=close)
        return equal or (a != a and b != b)
    return bool(a == b)


def values(comparisons: Iterable[tuple[str, Any, Any]], close: float = CLOSE) -> Iterator[str]:
    """One sentence for each (name, stored, expected) whose two values differ."""
    for name, stored, expected in comparisons:
        if not same(stored, expected, close):
            yield f"{name} {stored!r:.200}, expected {expected!r:.200}"


def rows(
    stored: pa.Table | StoredTable,
    fresh: pa.Table | StoredTable,
    key: Sequence[str] = (),
    without: Sequence[str] = (),
) -> tuple[int, list[str]]:
    """How many rows differ, are missing, or should not be there; a sentence for some of them.

    Args:
        key: Columns that name a row; without any, rows are compared in their order.
        without: Columns that are not compared.
    """
    if isinstance(stored, pa.Table) and isinstance(fresh, pa.Table):
        columns = [name for name in fresh.column_names if name not in without]
        stored, fresh = stored.select(columns), fresh.select(columns)
        if stored.equals(fresh):
            return 0, []
    with runner(tables={"stored": stored, "fresh": fresh}) as run:
        return differing(run.connection, "stored", "fresh", key)


def differing(
    connection: Any, stored: str, fresh: str, key: Sequence[str] = ()
) -> tuple[int, list[str]]:
    """The same of two tables of a connection."""
    empty = connection.sql(f"FROM {fresh} LIMIT 0")
    other = ["s.there IS NULL", "f.there IS NULL"]
    for column, kind in zip(empty.columns, empty.types, strict=True):
        one, right = (f'{side}.content."{column}"' for side in "sf")
        equal = f"{one} IS NOT DISTINCT FROM {right}"
        if str(kind) in ("FLOAT", "DOUBLE"):
            near = f"abs({one} - {right}) <= {CLOSE} * greatest(abs({one}), abs({right}), 1)"
            near += f" AND isfinite({one} + {right})"  # DuckDB says that NaN <= NaN
            equal = f"({equal} OR coalesce({near}, false))"
        other += [] if column in key else [f"NOT ({equal})"]
    names = ", ".join(f'"{name}"' for name in key)
    side = f"SELECT {names or 'row_number() OVER () AS place'}, 1 AS there, t AS content FROM"
    how = "FULL JOIN" if key else "POSITIONAL JOIN"
    result = connection.sql(
        f"SELECT {'0' if key else 'coalesce(s.place, f.place)'} AS place, s.content AS found, "
        f"f.content AS expected, count(*) OVER () AS n FROM ({side} {stored} t) s "
        f"{how} ({side} {fresh} t) f {f'USING ({names})' if key else ''} "
        f"WHERE {' OR '.join(other)} ORDER BY {names or 'ALL'} LIMIT {SHOWN}"
    ).to_arrow_table()
    examples = [_difference(row, key) for row in result.to_pylist()]
    return (result.column("n")[0].as_py() if examples else 0), examples


def _difference(row: Mapping[str, Any], key: Sequence[str]) -> str:
    found, right = row["found"], row["expected"]
    names = [str((found or right)[name]) for name in key] or [f"row {row['place']}"]
    shown = "|".join(names)
    if right is None:
        return f"{shown} is there, expected no such row"
    if found is None:
        cells = {column: value for column, value in right.items() if column not in key}
        return f"{shown} is not there, expected {cells!r:.200}"
    return f"{shown} has {'; '.join(values((c, found[c], right[c]) for c in right))}"


def agree(
    about: str, noun: str, says: str, of: int, wrong: tuple[int, list[str]] | list[str],
    *covers: str, kind: Kind = "proved",
) -> Results:  # fmt: skip
    """A finding that rows or figures are not what they should be, or the claim that they are.

    Args:
        noun, says: "labels" and "what the policy makes of the verdicts".
        wrong: How many differ and examples of them, or a sentence for each.
    """
    bad, examples = wrong if isinstance(wrong, tuple) else (len(wrong), wrong)
    if bad:
        yield contradiction(about, bad, max(bad, of), f"{noun} are not {says}", examples)
    elif of or covers:
        named = (name if "." in name else f"{about}.{name}" for name in covers)
        yield ProofClaim(kind, about, f"{of:,} {noun} are {says}", tuple(named))


def among(table: pa.Table, column: str, names: Any, inside: bool = True) -> pa.Table:
    """Rows of a table that have one of these values, or none of them."""
    names = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    there = pc.is_in(table.column(column), value_set=names)
    return table.filter(there if inside else pc.invert(there))


#: Answers whose verdicts are computed again without `--full`.
SAMPLE = 3_000
#: Sections of every recipe of a build.
SECTIONS = ("sources", "pool", "collect", "label")
#: Errors of pydantic that another version of the schema explains: other keys, other words.
_OF_A_VERSION = frozenset({"unknown_key", "extra_forbidden", "missing", "literal_error", "enum"})


def _section(model: Any, content: Any) -> Any:
    """A part of a recipe; keys that this code does not know make it unreadable."""
    try:
        return model.model_validate(content)
    except (ValidationError, ValueError, TypeError):
        return None


def _part(name: str, model: Any, default: Any = None) -> cached_property[Any]:
    return cached_property(lambda self: _section(model, self.recipe.get(name, default)))


@dataclass
class Evidence:
    """A release under verification, and what earlier checks found out for later ones.

    Attributes:
        render_card: Renders the card again from the data.
        signer: Public key (text or file) whose signature of the manifest is required.
        full: Compute everything again, instead of a sample.
        images: Folder with the questions' images, where it is at hand.
        readable: Files that are what the manifest sealed (`check_files`).
        tables: Tables that hold their contracts (`check_tables`); large ones stay on disk.
        unchecked: Lines of the card that nothing could be compared with.
        applied: Curation rules that made what they make once more (`rules_again`).
        schemes: Schemes of `splits` that such rules made once more.
    """

    release: Path
    manifest: Manifest
    render_card: RenderCard
    signer: str | None = None
    full: bool = False
    images: Path | None = None
    readable: set[str] = field(default_factory=set)
    tables: dict[str, pa.Table | StoredTable] = field(default_factory=dict)
    unchecked: list[str] = field(default_factory=list)
    applied: set[str] = field(default_factory=set)
    schemes: set[str] = field(default_factory=set)
    _read: dict[tuple[str, tuple[str, ...]], pa.Table] = field(default_factory=dict)

    def has(self, *names: str) -> bool:
        """Whether all of these tables are there and sound."""
        return all(name in self.tables for name in names)

    def rows(self, name: str) -> int:
        return int(self.tables[name].num_rows) if name in self.tables else 0

    def table(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Some columns of a table, as its contract types them; empty where it is not there."""
        contract = CONTRACTS[name]
        if name not in self.tables:
            return contract.empty().select(list(columns))
        key = (name, tuple(columns))
        if key not in self._read:
            table = self.tables[name]
            names = list(columns)
            result = table.read(names) if isinstance(table, StoredTable) else table.select(names)
            self._read[key] = result.cast(pa.schema([*map(contract.schema.field, names)]))
        return self._read[key]

    def whole(self, name: str) -> pa.Table:
        """All columns of a table."""
        return self.table(name, CONTRACTS[name].column_names)

    def forget(self) -> None:
        """Let go of what was read."""
        self._read.clear()

    @cached_property
    def card(self) -> str | None:
        """Text of `README.md`; None where it is no regular file with a text."""
        path = self.release / "README.md"
        if path.is_symlink() or not path.is_file():
            return None
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    @cached_property
    def same_code(self) -> bool:
        """Whether this version of the code says that it made the release."""
        return self.manifest.code_version == code_version()

    @property
    def other_code(self) -> str:
        """By which version of the code the release says that it was made."""
        made = self.manifest.code_version
        return f"the release says that version {made} made it; this is {code_version()}"

    @property
    def recipe(self) -> Mapping[str, Any]:
        return self.manifest.recipe

    @cached_property
    def built(self) -> bool:
        """Whether the manifest holds the recipe and the stages of a build."""
        return set(SECTIONS) <= set(self.recipe)

    @cached_property
    def faults(self) -> list[tuple[str, str, bool]]:
        """(section, what of it does not validate, whether another version explains it)."""
        try:
            Recipe.model_validate(self.recipe)
        except ValidationError as error:
            return [
                (
                    str(next(iter(item["loc"]), "")),
                    ".".join(map(str, item["loc"])) + f": {item['msg'].splitlines()[0]}",
                    not self.same_code and item["type"] in _OF_A_VERSION,
                )
                for item in error.errors(include_url=False, include_input=False)
            ]
        except (ValueError, TypeError, AttributeError) as error:
            return [("", first_line(error), False)]
        return []

    def unread(self, section: str) -> str:
        """Why a section of the recipe cannot be used."""
        if section not in self.recipe:
            return f"the recipe has no `{section}`"
        says = [what for name, what, _ in self.faults if name == section]
        if says:
            return f"the recipe does not validate: {says[0]}"
        return f"this code cannot read the recipe's `{section}`"

    def lacks(self, *needs: str) -> str:
        """Why something cannot be computed again; empty where it can.

        Args:
            needs: Sections of the recipe, `code` (this version of it), `texts` (of all
                questions), `calls` (single ones, not an agent's).
        """
        lost = {
            "code": "" if self.same_code else self.other_code,
            "texts": "texts are withheld" if len(self.withheld) else "",
            "calls": "an agent's requests hold what its tools gave back, and not all of them are "
            "released" if self.has("steps") else "",
        }  # fmt: skip
        for need in needs:
            if need not in lost and getattr(self, need) is None:
                return self.unread(need)
            if lost.get(need):
                return lost[need]
        return ""

    def figures(self, stage: str) -> Mapping[str, Any]:
        """Figures of a stage in the manifest; empty without any."""
        figure = self.manifest.figures.get(stage)
        return figure if isinstance(figure, Mapping) else {}

    #: Sections of the recipe; None where it has none, or this code cannot read it.
    label = _part("label", Label, {})  # without one, the policy of every recipe
    collect = _part("collect", Collect)
    pool = _part("pool", Pool)
    split = _part("split", Split)

    @cached_property
    def samples(self) -> int:
        """Most answers of one model to one question that the recipe asks for."""
        own = [getattr(model, "samples", None) for model in (self.pool.models if self.pool else ())]
        asked = self.collect.samples if self.collect is not None else 1
        return max([asked, *(int(item) for item in own if item)])

    @cached_property
    def curation(self) -> list[CurationRule] | None:
        """The recipe's curation rules; None where this code cannot read them."""
        results = [_section(CurationRule, item) for item in self.recipe.get("curate") or ()]
        return None if None in results else results

    @cached_property
    def sources(self) -> dict[str, Source]:
        """Name → source of the recipe with the catalog's entry filled in, as far as it is read."""
        result = {}
        for content in self.recipe.get("sources") or ():
            source = _section(Source, content)
            if source is not None and (source.catalog is None or self.same_code):
                result[source.name] = from_catalog(source)
        return result

    @cached_property
    def seed(self) -> int:
        """What samples are drawn with: it follows from all that the release says, so that it
        cannot be chosen apart from that."""
        return int(self.manifest.digest[:8] or "0", 16)

    def some(self, table: pa.Table, size: int) -> pa.Table:
        """So many rows of a table, drawn with the seed; all of them with `full`."""
        return table.take(pa.array(self._drawn(table.num_rows, size)))

    def _drawn(self, rows: int, size: int) -> Ints:
        """Positions of so many rows, in order; of all of them with `full`."""
        if self.full or rows <= size:
            return np.arange(rows)
        drawn = np.random.Generator(np.random.PCG64(self.seed))
        return np.sort(drawn.choice(rows, size, replace=False))

    @cached_property
    def sampled(self) -> Sample:
        """The sampled rows of `responses`, filled while the table is read."""
        entry = self.manifest.tables.get("responses")
        return Sample(self._drawn(entry.rows if entry else 0, SAMPLE))

    @cached_property
    def withheld(self) -> pa.Array:
        """Ids of the questions whose text the licence keeps back."""
        return self._ids("queries", "query_id", question=WITHHELD)

    @cached_property
    def real(self) -> pa.Array:
        """Ids of the models that are not injected."""
        return self._ids("models", "model_id", kind="real")

    def _ids(self, name: str, key: str, **is_: str) -> pa.Array:
        ((column, value),) = is_.items()
        table = self.table(name, [key, column])
        return table.filter(pc.equal(table.column(column), value)).column(key).combine_chunks()


@dataclass
class Sample:
    """Rows of a table at some positions, taken while it is read part by part."""

    positions: Ints
    parts: list[pa.Table] = field(default_factory=list)
    _seen: int = 0

    def add(self, part: pa.Table) -> None:
        """Take the drawn rows of the next part."""
        low, high = np.searchsorted(self.positions, [self._seen, self._seen + part.num_rows])
        if high > low:
            wanted = pa.array(self.positions[low:high] - self._seen)
            self.parts.append(part.take(wanted))
        self._seen += part.num_rows

    @property
    def table(self) -> pa.Table | None:
        """The drawn rows; None where none was read."""
        return pa.concat_tables(self.parts) if self.parts else None
