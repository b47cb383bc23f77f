"""Images that a source names: read, checked, hashed, and kept beside the questions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import expanded
from routeyard.pipelines.common.image_files import describe_image, read_image
from routeyard.schemas import CONTRACTS
from routeyard.schemas.images import IMAGES, QuestionImage, images_of
from routeyard.schemas.recipe import Source


def folder_of(source: Source, base: Path) -> Path | None:
    """The folder that the source's paths of images start from.

    Raises:
        SourceError: it is missing.
    """
    if source.images_in is None:
        return None
    folder = base / Path(expanded(source.images_in)).expanduser()
    if not folder.is_dir():
        raise SourceError(
            f"there is no folder {source.images_in}",
            where=f"source {source.name!r}, images_in",
            next_step="correct 'images_in': it starts from the recipe's folder",
        )
    return folder


def image_files(source: Source, base: Path) -> list[Path]:
    """Every file in the source's folder of images, whatever its name ends in."""
    folder = folder_of(source, base)
    paths = folder.rglob("*") if folder is not None else ()
    return sorted(item for item in paths if item.is_file())


class SourceImages:
    """Reads the images of one source's rows.

    Args:
        base: Folder that the recipe's paths start from; None where no file may be read.
        keep: Folder that gets each file under its SHA-256, for requests; None keeps none.
    """

    def __init__(self, source: Source, base: Path | None, keep: Path | None = None) -> None:
        self._source, self._keep = source, keep
        self._folder = None if base is None else folder_of(source, base)
        self._known: dict[tuple[str, str], QuestionImage] = {}

    def of(self, value: Any, place: str) -> list[QuestionImage]:
        """Images of one row: a path, an address, bytes, an object with one of them, or a list.

        Raises:
            SourceError: a file is missing, is no image, is too large or has another hash than
                stated; a value is of another kind.
        """
        listed = value if isinstance(value, list | tuple) else [value]
        return [entry for item in listed for entry in self._image(item, place)]

    def _image(self, item: Any, place: str) -> Iterator[QuestionImage]:
        said = _said(item, place)
        if said is None:
            return
        name, data = said.get("path") or said.get("url"), said.get("bytes")
        licence = str(said.get("license") or self._source.license)
        if not data and _is_address(str(name), place):
            digest = hashlib.sha256(str(name).encode()).hexdigest()
            yield QuestionImage(digest[:20], name, None, None, None, None, None, licence)
            return
        key = None if data else (str(name), licence)
        result = self._known.get(key) if key else None
        if result is None:
            result = self._read(name, data or None, licence, place)
        if key:
            self._known[key] = result
        if said.get("sha256") not in (None, result.sha256):
            raise SourceError(
                f"the image {name!r} has SHA-256 {result.sha256}, and its row states "
                f"{said['sha256']!r:.80}",
                where=place,
                next_step="fetch the file again, or correct the row",
            )
        yield result

    def _read(
        self, name: str | None, data: bytes | None, licence: str, place: str
    ) -> QuestionImage:
        if data is None:
            if self._folder is None:
                raise SourceError(
                    f"the source names the image {name!r}, and no folder of images",
                    where=place,
                    next_step="write 'images_in: FOLDER' beside its 'path': only files in that "
                    "folder are read and sent",
                )
            data = read_image(name or "", self._folder, place)
        kind, width, height = describe_image(data, f"{place}, {name!r:.200}" if name else place)
        digest = hashlib.sha256(data).hexdigest()
        if self._keep is not None:
            self._keep.mkdir(exist_ok=True)
            (self._keep / digest).write_bytes(data)
        return QuestionImage(digest[:20], name, digest, len(data), kind, width, height, licence)


def _said(item: Any, place: str) -> Mapping[str, Any] | None:
    """What a row says of one image, as an object; None where it says nothing.

    Raises:
        SourceError: it is neither a path, an address, bytes, nor an object with one of them.
    """
    plain = "path" if isinstance(item, str) else "bytes" if isinstance(item, bytes) else None
    said = {plain: item} if plain else item
    if said is None or (isinstance(said, Mapping) and not any(said.values())):
        return None
    if isinstance(said, Mapping):
        name, data = said.get("path") or said.get("url"), said.get("bytes")
        if (name or data) and isinstance(name, str | None) and isinstance(data, bytes | None):
            return said
    raise SourceError(
        f"expected an image as a path, an address or bytes; found {type(item).__name__}",
        where=place,
        next_step="map 'fields.images' to a column of paths, or of objects with 'path', 'url' or "
        "'bytes'",
    )


def _is_address(name: str, place: str) -> bool:
    """Whether it is an address, which is never fetched here."""
    if "://" not in name and not name.startswith("data:"):
        return False
    parts = urlsplit(name)
    if parts.scheme in ("http", "https") and parts.hostname and parts.username is None:
        return True
    raise SourceError(
        f"the image {name[:80]!r} is neither a path nor an address that models can be sent",
        where=place,
        next_step="name a file in 'images_in', or an http(s) address without a password",
    )


def images_table(queries: pa.Table) -> pa.Table:
    """Table `images`: what the metadata of the questions says of their images."""
    if not queries.num_rows:
        return CONTRACTS["images"].empty()
    some = pc.fill_null(pc.match_substring(queries.column("metadata"), f'"{IMAGES}"'), False)
    asked = queries.filter(some).select(["query_id", "metadata"]).to_pylist()
    rows = [
        {"query_id": row["query_id"], "place": place, **image.entry}
        for row in asked
        for place, image in enumerate(images_of(row["metadata"]))
    ]
    return CONTRACTS["images"].from_rows(rows, where="images of questions")
