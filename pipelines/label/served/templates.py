"""Prompt templates: text files with a version and `{{names}}` that are filled once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import BadInput, did_you_mean

_FOLDER = Path(__file__).parent / "prompts"
_NAME = re.compile(r"\{\{\s?(\w{1,40})\s?\}\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt. `version` changes with its text, whatever the file is called."""

    name: str
    text: str

    @property
    def version(self) -> str:
        return f"{self.name}-{hashlib.sha256(self.text.encode()).hexdigest()[:8]}"

    def fill(self, values: Mapping[str, str]) -> str:
        """The prompt. Values are not read again, so an answer may hold `{{question}}`."""
        return _NAME.sub(lambda match: values[match[1]], self.text)


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
