"""Prompt templates: text files with a version and `{{names}}` that are filled once.

What is filled in is material to judge, written by models that may want another
verdict: it can neither close the tag around it nor open one of the template's,
and what would be read as a verdict (`[[1]]`, `Rating: [5]`, and `LLM 2` where answers are
numbered) is not left in one piece, so that a judge that quotes it gives none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from routeyard.pipelines.errors import BadInput, did_you_mean
from routeyard.pipelines.io.untrusted import short_text
from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("templates")


_FOLDER = Path(__file__).parent / "prompts"
#: Places in the prompt files of other projects, as Python's `str.format` fills them → ours.
_FORMAT = {"question": "question", "output": "answer", "answer": "references"}
#: Bytes of a template's file.
_MOST = 1_000_000

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

    @property
    def numbered(self) -> bool:
        """Whether several answers are listed as LLM 1, LLM 2, …, and not by letters."""
        return "numbered" in _RE["name"].findall(self.text)

    def fill(self, values: Mapping[str, str], *, fenced: Mapping[str, str] | None = None) -> str:
        """The prompt. Values are not read again, so an answer may hold `{{question}}`.

        Args:
            values: Put in as `fence` leaves them.
            fenced: Put in as they are: their parts went through `fence` before.
        """
        ready = {name: self.fence(value) for name, value in values.items()} | dict(fenced or {})
        return _RE["name"].sub(lambda match: ready[match[1]], self.text)

    def fence(self, value: str) -> str:
        """The value with the template's tags and whatever reads as a verdict taken apart."""
        names = "|".join(sorted({*_RE["tag"].findall(self.text), *_NAMES_OF_TAGS}))
        # Look-alikes of the bracket count: a model reads them as one.
        tag = re.compile(rf"[<＜‹〈⟨﹤]([\s/\\／]{{0,5}}(?:{names})\b)", re.IGNORECASE)
        value = _RE["verdict"].sub(r"[ [\1] ]", tag.sub(r"&lt;\1", value))
        value = _RE["grade"].sub(r"\1[ \2 ]", value)
        if '"""' in self.text:  # the prompt delimits values so
            value = value.replace('"""', "'''")
        return _RE["named"].sub(r"\1-\2", value) if self.numbered else value


def shipped() -> list[str]:
    """Names of the templates that come with Routeyard, which a recipe may name."""
    return sorted({file.name.split(".")[0] for file in _FOLDER.glob("*.txt")})


def load_template(default: str, given: str | None, *, names: frozenset[str]) -> Template:
    """The template that is given, else the newest default of that name.

    Args:
        given: A file, the name of one that is shipped, or the prompt itself (it has
            `{{answer}}` or another name in it; that is what a loaded recipe holds).
        names: What the caller fills in; the text may use no other name and must
            use `answer` or `answers`.

    Raises:
        BadInput: the file is missing, or uses an unknown name.
    """
    if given is None:
        return _newest(default)
    if _RE["name"].search(given):
        found, where = Template("file", given), "the prompt in `template`"
    elif given in shipped():
        found, where = _newest(given), f"template {given!r}"
    else:
        found, where = Template("file", read_template(Path(given))), given
    used = set(_RE["name"].findall(found.text))
    for name in sorted(used - names):
        raise BadInput(
            f"the prompt template uses {{{{{name}}}}}, which nothing fills",
            where=where,
            next_step=did_you_mean(name, names),
        )
    if not used & {"answer", "answers", "numbered"}:
        raise _no_answer(where)
    return found


def read_template(path: Path) -> str:
    """The text of a template's file.

    Raises:
        BadInput: it cannot be read, or has no place for an answer: a recipe holds it from here
            on, and what is no template would be shown, or sent, as if it were one.
    """
    try:
        text = short_text(path, _MOST)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"the prompt template cannot be read: {error}",
            where=str(path),
            next_step="name a UTF-8 text file, one of those shipped "
            f"({', '.join(shipped())}), or leave `template` out for the default",
        ) from error
    text = formatted(text)
    if not _RE["name"].search(text):
        raise _no_answer(str(path))
    return text


def formatted(text: str) -> str:
    """The text, with the places of a `str.format` prompt (`{question}`, `{output}`, `{answer}`).

    The prompt of xVerify has those three; a text that has other places, or not all three, is
    returned as it is.
    """
    places = set(re.findall(r"\{(\w{1,40})\}", text))
    if _RE["name"].search(text) or places != set(_FORMAT):
        return text
    return re.sub(r"\{(\w{1,40})\}", lambda found: f"{{{{{_FORMAT[found[1]]}}}}}", text)


def _no_answer(where: str) -> BadInput:
    return BadInput(
        "the prompt template never shows the answer",
        where=where,
        next_step="write {{answer}} where the model's output belongs",
    )


def _newest(name: str) -> Template:
    file = max(_FOLDER.glob(f"{name}.*.txt"), key=lambda found: int(found.suffixes[0][1:]))
    return Template(f"{name}.{file.suffixes[0][1:]}", file.read_text(encoding="utf-8"))
