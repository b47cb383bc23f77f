"""Images of questions: what a question's metadata says of each, and the mark in its text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

#: Key of `queries.metadata` that lists the images of a question.
IMAGES = "question_images"
#: Where an image belongs in the text of a question, by the first digits of its SHA-256.
MARK = re.compile(r"\[image:([0-9a-f]{20})\]")
#: The same for engines without groups, and what an encoder of texts reads in its place.
PLAIN_MARK, UNSEEN = r"\[image:[0-9a-f]{20}\]", "[image]"
#: Places that sources write: `<image 2>`; `<image>` is the first one.
_PLACE = re.compile(r"<image ?(\d{0,3})>")


@dataclass(frozen=True, slots=True)
class QuestionImage:
    """One image of a question; the table `images` explains the fields."""

    image_id: str
    reference: str | None
    sha256: str | None
    bytes: int | None
    media_type: str | None
    width: int | None
    height: int | None
    license: str

    @property
    def mark(self) -> str:
        """What its question says where the image belongs."""
        return f"[image:{self.image_id}]"

    @property
    def entry(self) -> dict[str, Any]:
        """The fields, JSON-ready."""
        return asdict(self)


_FIELDS = {field.name for field in fields(QuestionImage)}


def images_of(metadata: str | None) -> list[QuestionImage]:
    """Images that a question's metadata lists; entries of another form are left out."""
    if not metadata or f'"{IMAGES}"' not in metadata:
        return []
    listed = json.loads(metadata).get(IMAGES)
    if not isinstance(listed, list):
        return []
    return [
        QuestionImage(**row) for row in listed if isinstance(row, Mapping) and row.keys() == _FIELDS
    ]


def with_marks(texts: Sequence[str], images: Sequence[QuestionImage]) -> list[str]:
    """Texts of a question with the marks of its images: at `<image N>`, else before the first."""
    placed: set[int] = set()

    def mark(match: re.Match[str]) -> str:
        number = int(match[1] or 1)
        if not 1 <= number <= len(images):
            return match[0]
        placed.add(number)
        return images[number - 1].mark

    first, *others = (_PLACE.sub(mark, text) for text in texts)
    before = [image.mark for number, image in enumerate(images, 1) if number not in placed]
    return ["\n".join([*before, first]), *others]


def marks_last(text: str) -> tuple[str, str]:
    """What an encoder of texts reads of a question, and the marks that it does not see."""
    result = MARK.findall(text)
    return (MARK.sub(UNSEEN, text), "".join(f"\n[image:{key}]" for key in result)) if result else (
        text, "",
    )  # fmt: skip
