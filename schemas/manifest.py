"""The manifest of a release: its files, what they were made from, and how to check them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from routeyard.schemas.strict import Strict
from routeyard.schemas.waiver import Waiver

#: Columns that a clock wrote: they differ between two runs that are otherwise equal.
MEASURED_COLUMNS = frozenset({"requested_at", "latency_s", "ttft_s"})

#: Format of the releases that are written and read.
FORMAT = 10


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
        told: dict[str, Any] = write(self)
        if self.contract == 1:
            told.pop("contract", None)
        return told


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
