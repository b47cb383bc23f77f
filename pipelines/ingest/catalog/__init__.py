"""The catalog: one YAML per source dataset, by domain; a recipe names one with `catalog:`.

An entry says where the dataset is stored, how its columns become a query, what is known of
it (`about`) and two or three rows in its own column layout (`fixture`), written by us.
Read `README.md` for how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from pydantic import ValidationError

from routeyard.pipelines.common.errors import RecipeError, UnknownName, did_you_mean
from routeyard.schemas.recipe import Source
from routeyard.schemas.text import own_table

#: Keys of an entry that are no part of a source.
_BESIDE = ("about", "fixture")
#: What each of them holds.
_PARTS = {"about": ("evidence", "unconfirmed", "citation", "defects"), "fixture": ("rows",)}


@dataclass(frozen=True, slots=True)
class Entry:
    """One dataset of the catalog.

    Attributes:
        evidence: What the columns were confirmed from.
        columns: Columns of the dataset's own layout, in order.
        unconfirmed: Columns that no documentation confirms.
        citation: Whom to cite.
        defects: What is known to be wrong or surprising.
        rows: Rows in the dataset's layout, written by us.
        becomes: The queries they must become: question, choices, references, task, scorer.
    """

    name: str
    source: Source
    evidence: str
    columns: tuple[str, ...]
    unconfirmed: tuple[str, ...]
    citation: str
    defects: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    becomes: tuple[Mapping[str, Any], ...]


def names() -> list[str]:
    """Sources the catalog holds."""
    return sorted(_files())


def domains() -> dict[str, list[str]]:
    """Domain → its sources; each is a folder."""
    result: dict[str, list[str]] = {}
    for name, (domain, _) in sorted(_files().items()):
        result.setdefault(domain, []).append(name)
    return dict(sorted(result.items()))


def from_catalog(source: Source) -> Source:
    """The source with the catalog's entry filled in; what the recipe says wins."""
    if source.catalog is None:
        return source
    content = _content(source.catalog, where=f"source {source.name!r}")
    said = source.model_dump(exclude_unset=True, exclude={"catalog"})
    stated = {key: value for key, value in content.items() if key not in _BESIDE}
    try:
        return Source.model_validate({**stated, **said})
    except ValidationError as error:
        raise RecipeError(
            f"source {source.name!r} does not fit the catalog's {source.catalog!r}: {error}"
        ) from error


def entry(name: str) -> Entry:
    """Everything the catalog says of one dataset.

    Raises:
        UnknownName: there is no such entry.
    """
    content = _content(name, where="catalog")
    for key, holds in _PARTS.items():
        lacking = [part for part in holds if part not in (content.get(key) or {})]
        if lacking:
            raise RecipeError(
                f"the catalog's {name!r} lacks {key}: {', '.join(lacking)}",
                where=str(_files()[name][1]),
                next_step="write them as its neighbours do; pipelines/ingest/catalog/README.md "
                "says what each holds",
            )
    about, fixture = content["about"], content["fixture"]
    rows = tuple(fixture["rows"])
    layout = dict.fromkeys(key for row in rows for key in row if not key.startswith("_"))
    return Entry(
        name=name,
        source=from_catalog(Source(name=name, catalog=name)),
        evidence=about["evidence"],
        columns=tuple(layout),
        unconfirmed=tuple(about["unconfirmed"]),
        citation=about["citation"],
        defects=tuple(about["defects"]),
        rows=rows,
        becomes=tuple(fixture.get("becomes", ())),
    )


@cache
def _files() -> dict[str, tuple[str, Traversable]]:
    """Name → (domain, file)."""
    result: dict[str, tuple[str, Traversable]] = {}
    for folder in files(__name__).iterdir():
        if folder.is_dir():
            for file in folder.iterdir():
                if file.name.endswith(".yaml"):
                    result[file.name[:-5]] = (folder.name, file)
    return result


@cache
def _text(name: str) -> str:
    return _files()[name][1].read_text(encoding="utf-8")


def _content(name: str, *, where: str) -> dict[str, Any]:
    if name not in _files():
        raise UnknownName(
            f"there is no source {name!r} in the catalog",
            where=where,
            next_step=did_you_mean(name, names()),
        )
    content: dict[str, Any] = own_table(_files()[name][1])
    return content
