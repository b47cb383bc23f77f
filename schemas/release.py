"""A release as data: manifest, entries of tables, waivers, split schemes, intervals of shares."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from routeyard.schemas.strict import Strict

# A gate that a person waived; the recipe names it, and the manifest keeps it.


class Waiver(Strict):
    """A gate that is waived by name, with the reason the card will print."""

    gate: str
    """Name of the gate: `metering` or `audit`, or one check as `metering:latency`, `audit:leak`."""
    reason: str = Field(min_length=10)
    """Why; the card prints it."""


# The manifest of a release: its files, what they were made from, and how to check them.

#: Columns that a clock wrote: they differ between two runs that are otherwise equal.
MEASURED_COLUMNS = frozenset({"requested_at", "latency_s", "ttft_s"})

#: Format of the releases that are written and read.
FORMAT = 11


class FileEntry(Strict):
    """One file of the release."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(ge=0)  # bytes


class TableEntry(Strict):
    """One table: its file, its rows and the fingerprint of what they say."""

    file: str
    rows: int = Field(ge=0)
    #: Hash over values in key order; does not depend on how Parquet was written.
    content: str
    #: The same without the columns in `MEASURED_COLUMNS`.
    content_without_times: str
    #: `core` tables are always fetched; `add_on` tables are optional downloads.
    kind: str = "core"
    #: Version of the contract it was written under.
    contract: int = Field(default=1, ge=1)

    @model_serializer(mode="wrap")
    def _as_written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Version 1 goes without saying."""
        entry: dict[str, Any] = write(self)
        if self.contract == 1:
            entry.pop("contract", None)
        return entry


class DatabaseEntry(Strict):
    """The `.duckdb` file is never byte-identical, so its content is hashed instead.

    Its SHA-256 is stored beside it, in `NAME.duckdb.sha256`.
    """

    file: str
    tables: list[str]
    content: str


class Manifest(Strict):
    """`manifest.json`. It holds no time and no path outside the release."""

    format: int = FORMAT
    name: str
    version: str
    #: Name, version, recipe, words of the card and content: equal means the same release.
    fingerprint: str
    #: Content of all tables, and the same without the measured times.
    content: str
    content_without_times: str
    code_version: str
    recipe: dict[str, Any]
    stages: dict[str, str]
    sources: list[dict[str, Any]] = Field(default_factory=list)
    waivers: list[Waiver] = Field(default_factory=list)
    figures: dict[str, Any] = Field(default_factory=dict)
    tables: dict[str, TableEntry]
    files: dict[str, FileEntry]
    database: DatabaseEntry
    #: SHA-256 over everything above; an edited manifest does not match it.
    digest: str = ""

    def sealed(self) -> Manifest:
        """The manifest with its digest filled in."""
        return self.but(digest=self.expected_digest())

    def expected_digest(self) -> str:
        return digest_of(self.model_dump(mode="json", exclude={"digest"}))

    def to_json(self) -> str:
        """Text of `manifest.json`: keys sorted, ends in a newline."""
        text = json.dumps(
            self.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False
        )
        return text + "\n"


def digest_of(value: Any) -> str:
    """SHA-256 of a JSON value, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# What a release has in place of a text that its source's licence keeps back.

WITHHELD = "[text withheld: the licence of the source forbids redistribution]"


# `outcomes` by split: names of the Parquet files of a release, and of the configs of its card.

#: Scheme of the split that a source published.
PUBLISHED = "upstream"
#: Folder of the files in a release.
FOLDER = "data/outcomes"
#: Rows of questions that are in no split of the scheme.
UNASSIGNED = "unassigned"
#: Splits in the order in which `datasets` joins them as `split="all"`.
SPLITS = ("train", "validation", "test", UNASSIGNED)


def usual_scheme(schemes: Collection[str]) -> str:
    """The scheme used where none is named: the published one, else `dense`, else the first."""
    usual = (name for name in (PUBLISHED, "dense") if name in schemes)
    return next(usual, None) or min(schemes)


def folder_names(schemes: Collection[str]) -> dict[str, str]:
    """Scheme → its name as part of a path: `ood:not math` is `ood-not-math`.

    Names that would be one file, also where files have no case, end in a digest of the scheme.
    """
    plain = {name: re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:60] for name in schemes}
    taken = [short.lower() for short in plain.values()]
    return {
        name: short
        if short and taken.count(short.lower()) == 1
        else f"{short or 'scheme'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        for name, short in sorted(plain.items())
    }


def split_file(folder: str, split: str) -> str:
    """Path in a release of one split's outcomes."""
    return f"{FOLDER}/{folder}/{split}.parquet"


def config_name(scheme: str, folder: str, schemes: Collection[str]) -> str:
    """Name of the config of a scheme: `outcomes` for the usual one, else `outcomes__<folder>`."""
    return "outcomes" if scheme == usual_scheme(schemes) else f"outcomes__{folder}"


# Intervals of shares.


def wilson(hits: float, n: float, z: float = 1.959964) -> tuple[float, float, float]:
    """A share of `n` > 0 with its 95 % score interval (Wilson 1927): (share, low, high)."""
    centre = (hits + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(hits * (n - hits) / n + z * z / 4)
    return hits / n, max(0.0, centre - half), min(1.0, centre + half)


def widened(low: float, high: float, known: float, n: float) -> tuple[float, float]:
    """The limits of a share of `known` answers, for all `n`: those that are missing or undecided
    are all wrong at the lower limit and all right at the upper one (Manski 1989).

    low · known/n and 1 − (1 − high) · known/n.

    >>> widened(0.5, 0.75, 20, 40), widened(0.5, 0.75, 40, 40)
    ((0.25, 0.875), (0.5, 0.75))
    """
    part = min(1.0, known / n)
    return low * part, 1 - (1 - high) * part


#: Sum of scores, answers with a label, questions.
Counts = tuple[float, float, float]


def order_undecided(arms: Mapping[str, Counts], first: str) -> list[str]:
    """Arms whose order with `first` is open because labels are missing or undecided, and for that
    reason alone: those labels could reverse it, or Wilson's intervals overlap only once widened.

    >>> order_undecided({"evades": (20, 20, 40), "a": (36, 40, 40), "b": (4, 40, 40)}, "evades")
    ['a']
    >>> order_undecided({"a": (8.1, 40 - 1e-12, 40), "b": (8.1, 40, 40)}, "a")  # rounded
    []
    """
    hits, known, n = arms[first]
    results = []
    for name, (other_hits, other_known, other_n) in arms.items():
        open_labels = n - known + other_n - other_known
        # Means of graded scores are rounded; an arm without any label has no accuracy.
        if name == first or open_labels < 1e-6 or not min(known, other_known):
            continue
        if hits / n <= (other_hits + other_n - other_known) / other_n:
            results.append(name)
            continue
        own, other = wilson(hits, known)[1:], wilson(other_hits, other_known)[1:]
        apart = own[0] > other[1]
        if apart and widened(*own, known, n)[0] <= widened(*other, other_known, other_n)[1]:
            results.append(name)
    return sorted(results)


def undecided_words(first: str, others: Sequence[str]) -> str:
    """Why no arm is called the best.

    >>> undecided_words("a", ["b", "c"])
    'None is called best: the order of a and b, c depends on labels that are missing or undecided.'
    """
    names = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    return (
        f"None is called best: the order of {first} and {names} depends on labels that are "
        "missing or undecided."
    )


#: Name of the scheme; where it is, it is the default of `evaluate` and the other commands.
SCHEME = PUBLISHED
#: What sources call our three splits.
NAMES: Mapping[str, str] = {
    "train": "train", "training": "train",
    "validation": "validation", "valid": "validation", "val": "validation", "dev": "validation",
    "test": "test", "testing": "test", "eval": "test",
}  # fmt: skip
