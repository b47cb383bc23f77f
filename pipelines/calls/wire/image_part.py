"""Content parts of a message that show images: hashed by what they name, sent as what they show."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import BadInput, RecipeError
from routeyard.schemas.images import MARK, QuestionImage


class ImagePart(dict[str, Any]):
    """A part of type `image_url`. As a mapping it names the image by its SHA-256 or its address.

    Attributes:
        tokens: Tokens that the provider counts for it at most.
    """

    def __init__(self, image: QuestionImage, folder: Path | None, tokens: int) -> None:
        url = image.reference if image.sha256 is None else f"sha256:{image.sha256}"
        super().__init__(type="image_url", image_url={"url": url})
        self.tokens = tokens
        self._image, self._folder = image, folder

    def sent(self) -> dict[str, Any]:
        """The part with a file as a `data:` URL. An address is sent as it is, and never fetched.

        Raises:
            BadInput: the file is missing, or another than that of the question.
        """
        image = self._image
        if image.sha256 is None:
            return dict(self)
        try:
            data = b"" if self._folder is None else (self._folder / image.sha256).read_bytes()
        except OSError:
            data = b""
        if hashlib.sha256(data).hexdigest() != image.sha256:
            raise BadInput(
                f"the image {image.reference or image.image_id!r} with SHA-256 {image.sha256} is "
                "missing in the workspace, or changed there",
                where="the workspace's stage `ingest`, folder `question_images`",
                next_step="run `routeyard build` on the recipe again: it reads the images anew",
            )
        encoded = base64.b64encode(data).decode("ascii")
        return {
            "type": "image_url",
            "image_url": {"url": f"data:{image.media_type};base64,{encoded}"},
        }


def content_with_images(
    text: str, images: Sequence[QuestionImage], folder: Path | None, tokens: int, where: str
) -> list[dict[str, Any]]:
    """A user message's content: text and images in the order in which the text has their marks.

    Raises:
        RecipeError: the text lacks an image of the question.
    """
    known = {image.image_id: image for image in images}
    parts: list[dict[str, Any]] = []
    said = ""
    pieces = MARK.split(text)
    for before, found in zip(pieces[::2], [*pieces[1::2], None], strict=True):
        said += before
        if found is not None and found not in known:
            said += f"[image:{found}]"
            continue
        if said.strip():
            parts.append({"type": "text", "text": said.strip("\n")})
        said = ""
        if found is not None:
            parts.append(ImagePart(known[found], folder, tokens))
    if lost := sorted(known.keys() - set(pieces[1::2])):
        raise RecipeError(
            f"the prompt leaves out the image {lost[0]} of its question",
            where=where,
            next_step="use '{{ prompt }}' or '{{ question }}' whole: they hold the images' marks",
        )
    return parts


def message_as_sent(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message with its images as they are sent."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = [part.sent() if isinstance(part, ImagePart) else part for part in content]
    return {**message, "content": parts}


def image_tokens(message: Mapping[str, Any]) -> int:
    """Tokens that a provider counts for the images of a message at most."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return sum(part.tokens for part in parts if isinstance(part, ImagePart))
