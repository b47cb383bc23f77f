"""Prompt templates: text files with a version and `{{names}}` that are filled once.

What is filled in is material to judge, written by models that may want another
verdict: it can neither close the tag it stands in nor open one of the template's,
and what would be read as a verdict (`[[1]]`) is not left in one piece, so that a
judge that quotes it gives none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import BadInput, did_you_mean

_FOLDER = Path(__file__).parent / "prompts"
_NAME = re.compile(r"\{\{\s?(\w{1,40})\s?\}\}")
_TAG = re.compile(r"<(\w{1,40})[\s>]")
#: What a judge's verdict looks like: a number, letters, `none`.
_VERDICT = re.compile(
    r"\[\s{0,5}\[(\s{0,5}(?:\d{1,3}|[A-Z](?:\s{0,5},\s{0,5}[A-Z]){0,30}|none|(?:in)?correct)\s{0,5})\]\s{0,5}\]",
    re.IGNORECASE,
)


#: Tags of the templates that come with Routeyard; every template's are fenced.
_NAMES_OF_TAGS = ("question", "answer", "output", "reference", "references", "truth")


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt. `version` changes with its text, whatever the file is called."""

    name: str
    text: str

    @property
    def version(self) -> str:
        return f"{self.name}-{hashlib.sha256(self.text.encode()).hexdigest()[:8]}"

    def fill(self, values: Mapping[str, str], *, fenced: Mapping[str, str] | None = None) -> str:
        """The prompt. Values are not read again, so an answer may hold `{{question}}`.

        Args:
            values: Put in as `fence` leaves them.
            fenced: Put in as they are: their parts went through `fence` before.
        """
        ready = {name: self.fence(value) for name, value in values.items()} | dict(fenced or {})
        return _NAME.sub(lambda match: ready[match[1]], self.text)

    def fence(self, value: str) -> str:
        """The value with the template's tags and whatever reads as a verdict taken apart."""
        names = "|".join(sorted({*_TAG.findall(self.text), *_NAMES_OF_TAGS}))
        # Look-alikes of the bracket count: a model reads them as one.
        tag = re.compile(rf"[<＜‹〈⟨﹤]([\s/\\／]{{0,5}}(?:{names})\b)", re.IGNORECASE)
        value = tag.sub(r"&lt;\1", value)
        return _VERDICT.sub(r"[ [\1] ]", value)


def load_template(default: str, path: str | None, *, names: frozenset[str]) -> Template:
    """The template in `path`, else the newest default of that name.

    Args:
        names: What the caller fills in; the text may use no other name and must
            use `answer` or `answers`.

    Raises:
        BadInput: the file is not there, or uses a name nobody fills.
    """
    if path is None:
        file = max(_FOLDER.glob(f"{default}.*.txt"), key=lambda found: int(found.suffixes[0][1:]))
        return Template(f"{default}.{file.suffixes[0][1:]}", file.read_text(encoding="utf-8"))
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"the prompt template cannot be read: {error}",
            where=path,
            next_step="name a UTF-8 text file, or leave `template` out for the default",
        ) from error
    used = set(_NAME.findall(text))
    for name in sorted(used - names):
        raise BadInput(
            f"the prompt template uses {{{{{name}}}}}, which nothing fills",
            where=path,
            next_step=did_you_mean(name, names),
        )
    if not used & {"answer", "answers"}:
        raise BadInput(
            "the prompt template never shows the answer",
            where=path,
            next_step="write {{answer}} where the model's output belongs",
        )
    return Template("file", text)
