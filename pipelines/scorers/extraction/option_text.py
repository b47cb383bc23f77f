"""Which option a text repeats: word for word, in its first clause, or but for slips of spelling."""

from __future__ import annotations

import re
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from difflib import SequenceMatcher

from routeyard.pipelines.scorers.comparison.words import normalise
from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("option_text")


#: Letter → normalised text of each option.
Options = Mapping[str, str]

#: How alike the text behind a letter and that letter's option must be, and the lengths of
#: options for which slips are looked past: in a short one each sign counts.
_NEAR, _LEAST_NEAR, _MOST_NEAR = 0.9, 20, 400


class ReadOptions(Options):
    """The texts of a question's options, each normalised when it is first read.

    Most outputs name an option by its letter, and the texts of the others are never compared.
    """

    def __init__(self, letters: str, texts: tuple[str, ...]) -> None:
        self._texts = dict(zip(letters, texts, strict=False))
        self._known: dict[str, str] = {}

    def __getitem__(self, letter: str) -> str:
        if letter not in self._known:
            self._known[letter] = normalise(self._texts[letter])
        return self._known[letter]

    def items(self) -> ItemsView[str, str]:
        return self._all().items()

    def values(self) -> ValuesView[str]:
        return self._all().values()

    def _all(self) -> dict[str, str]:
        if len(self._known) < len(self._texts):
            self._known = {letter: self[letter] for letter in self._texts}
        return self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def repeats(said: str, letter: str, contents: Options) -> bool:
    """Whether `said` begins with the option of that letter, but for slips of spelling.

    With slips it must be nearer to that option than to any other.
    """
    content = contents[letter]
    if (said + " ").startswith(content + " "):
        return True
    same_start = said.split(" ", 1)[0] == content.split(" ", 1)[0]  # not "True. …" before it
    if not same_start or not _LEAST_NEAR <= len(content) <= _MOST_NEAR:
        return False
    own = _likeness(said, content)
    return own >= _NEAR and all(
        own > _likeness(said, text) for other, text in contents.items() if other != letter
    )


def _likeness(said: str, content: str) -> float:
    """Share of signs that two texts have in common; 0 where it cannot come near enough."""
    matcher = SequenceMatcher(None, said[: len(content)], content, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= _NEAR else 0.0


def _most(options: Options) -> int:
    """Signs within which a text can repeat an option, with markup around it."""
    return 3 * max(map(len, options.values()), default=0) + 60


def beginning(text: str, options: Options) -> str:
    """As much of a text as can repeat an option, up to a word's end."""
    most, text = _most(options), text.lstrip()
    return text if len(text) <= most else text[:most].rsplit(None, 1)[0]


def matching(text: str, options: Options) -> str | None:
    """Letter of the option that a text equals, else of the longest one that opens it."""
    said = normalise(beginning(text, options))
    if not said:
        return None
    if said in options.values():
        return equal(text, options)
    opening = [
        (len(content), letter)
        for letter, content in options.items()
        if len(content) > 3 and (said + " ").startswith(content + " ")
    ]
    if not opening and (clause := _RE["clause"].match(text)):
        return equal(clause[0], options)
    longest = max(opening, default=(0, ""))
    return longest[1] if [size for size, _ in opening].count(longest[0]) == 1 else None


def contradicts(text: str, letter: str, stop: int, options: Options) -> bool:
    """Whether the text of another option follows a letter: "A: No." where A is "Yes"."""
    behind = labelled(text, stop)
    if behind is None:
        return False
    sentence = _RE["sentence"].match(text, behind.end())[0]  # type: ignore[index]
    own = options.get(letter, "") if sentence else ""
    said = normalise(beginning(sentence, options)) if own else ""
    if not said or (said + " ").startswith(own + " "):
        return False
    return any(content == said for other, content in options.items() if other != letter)


def labelled(text: str, stop: int) -> re.Match[str] | None:
    """What is between a letter that ends at `stop` and the text of an option behind it."""
    return _RE["label"].match(text, stop, stop + 8)


def equal(text: str, options: Options) -> str | None:
    """Letter of the one option that a text equals."""
    said = normalise(text) if len(text) <= _most(options) else ""
    exact = [letter for letter, content in options.items() if content == said != ""]
    return exact[0] if len(exact) == 1 else None
