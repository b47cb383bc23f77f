"""The card: every figure in it, computed again from the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.errors import RecipeError
from routeyard.pipelines.io.plain_yaml import read_text
from routeyard.pipelines.release.derived_tables import columns_of
from routeyard.pipelines.release.finding import Finding, first_line
from routeyard.pipelines.release.manifest import MANIFEST, code_version
from routeyard.schemas import CONTRACTS, StoredTable
from routeyard.schemas.manifest import Manifest, digest_of

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
#: What a certificate can say.
_VERDICTS = ("not routable", "headroom not reached", "headroom only", "routable")
Render = Callable[[Mapping[str, pa.Table | StoredTable], Mapping[str, object]], str]


def check_card(
    release: Path,
    manifest: Manifest,
    readable: set[str],
    tables: Mapping[str, pa.Table | StoredTable],
    render_card: Render,
    unchecked: list[str] | None = None,
) -> Iterator[Finding]:
    """Findings in `README.md`.

    It must be, word for word, what the tables give. Where the release names another
    version of this code, whose template may have used other words, or an add-on was not
    fetched, each line that differs is compared with the one in its place (`compare_lines`).

    Args:
        unchecked: Gets the lines that have nothing to be compared with.
    """
    expected = {n for n, e in manifest.tables.items() if e.kind == "core"}
    if "README.md" not in readable or not expected <= tables.keys():
        return
    try:
        card = (release / "README.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        yield Finding("card", "README.md", f"cannot be read: {first_line(error)}")
        return
    waivers = [waiver.model_dump() for waiver in manifest.waivers]
    parts = [manifest.name, manifest.version, manifest.content, manifest.recipe, waivers, card]
    if digest_of(parts) != manifest.fingerprint:
        yield Finding("fingerprint", MANIFEST, "is not that of this recipe, card and content")
    missing = [name for name in manifest.tables if name not in tables and name in CONTRACTS]
    whole = {**tables, **{name: CONTRACTS[name].empty() for name in missing}}
    try:
        fresh = render_card(whole, card_facts(manifest))
    except Exception as error:  # facts of a stranger's manifest can be of any form
        why = f"cannot be computed again: {type(error).__name__}: {first_line(error)}"
        yield Finding("card", "README.md", why)
        return
    if card == fresh:
        return
    if manifest.code_version == code_version() and not missing:
        yield Finding("card", "README.md", _first_difference(card, fresh))
        return
    rows = [f"{entry.rows:,}" for entry in manifest.tables.values()]
    models = columns_of(whole["models"], ["model_id"]).column("model_id").to_pylist()
    compared = compare_lines(card.splitlines(), fresh.splitlines(), rows, models)
    for says in (*compared.false, *_header(card, fresh, manifest)):
        yield Finding("card", "README.md", says)
    if unchecked is not None:
        unchecked += [*compared.unknown, *compared.reworded]


@dataclass
class ComparedLines:
    """Lines of a card by another version of the code, against those of a fresh one.

    Attributes:
        false: What lines say that the data do not.
        reworded: Lines whose words are other ones and whose figures are the same.
        unknown: Lines that the fresh card has nothing to compare with.
    """

    false: list[str] = field(default_factory=list)
    reworded: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def say(self, number: int, line: str, data: str) -> None:
        """Note a line whose figures or names are not those of the data."""
        self.false.append(f"line {number} says {line[:80]!r}, and the data give {data}")


def compare_lines(
    card: list[str], fresh: list[str], rows: Iterable[str] = (), models: Iterable[str] = ()
) -> ComparedLines:
    """Each line of a card with figures or names against the line of the fresh card in its place.

    Names are those of models and verdicts. A line in the same words must have the same figures
    and names. A line in other words matches one of the lines in its place that have other
    words too, and must have the figures and names of one of them. What is left has nothing to be
    compared with; its figures must be in the fresh card.

    Args:
        rows: Row counts in the manifest, as text: of tables that were not fetched too.
        models: Ids of the models.
    """
    names = sorted({*models, *_VERDICTS}, key=len, reverse=True)
    fact = re.compile("|".join([*map(re.escape, names), _NUMBER]))

    def words(line: str) -> str:
        return fact.sub("#", line)

    by_words: dict[str, list[list[str]]] = {}
    for line in fresh:
        by_words.setdefault(words(line), []).append(fact.findall(line))
    known = {*fact.findall("\n".join(fresh)), *rows}
    own = {words(line) for line in card}
    found = ComparedLines()
    for tag, start, end, first, last in SequenceMatcher(None, card, fresh, False).get_opcodes():
        if tag == "equal":
            continue
        others = [fact.findall(line) for line in fresh[first:last] if words(line) not in own]
        for number, line in enumerate(card[start:end], start=start + 1):
            figures, right = fact.findall(line), by_words.get(words(line))
            if figures in (right or []) or not line.strip():
                continue
            if right is None and figures in others:
                others.remove(figures)
                found.reworded.append(line)
            elif right is not None:
                if not _counts_of_rows(figures, right, rows):
                    found.say(number, line, ", ".join(right[0]) or "none")
            elif wrong := _named_otherwise(figures, others, names):
                found.say(number, line, ", ".join(wrong))
            elif unknown := [figure for figure in figures if figure not in known]:
                found.say(number, line, f"no {unknown[0]}")
            else:
                found.unknown.append(f"line {number}: {line[:80]}")
    return found


def _named_otherwise(
    facts: list[str], others: list[list[str]], names: Collection[str]
) -> list[str] | None:
    """Figures and names of a line in that place that has the same figures and other names."""
    numbers = [one for one in facts if one not in names]
    same = (one for one in others if [n for n in one if n not in names] == numbers)
    return next(same, None) if numbers else None


def _header(card: str, fresh: str, manifest: Manifest) -> Iterator[str]:
    """What the YAML of a card tells a hub: its licence, and which files a dataset is read from."""
    try:
        (told, expected) = (_yaml(text) for text in (card, fresh))
    except RecipeError as error:
        yield f"has a header that cannot be read: {error.what}"
        return
    if told.get("license") != expected.get("license"):
        yield f"has license {told.get('license')!r}, expected {expected.get('license')!r}"
    for path in _paths(told.get("configs")):
        if path not in manifest.files:
            yield f"reads its data from {path[:80]!r}, which is no file of this release"


def _yaml(card: str) -> Mapping[str, Any]:
    parts = card.split("---\n", 2)
    content = read_text(parts[1], where="README.md") if len(parts) == 3 and not parts[0] else {}
    return content if isinstance(content, Mapping) else {}


def _paths(value: Any) -> Iterator[str]:
    """Every `path` and every file in a header's `configs`."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key in ("path", "data_files", "data_dir") and isinstance(part, str):
                yield part
            yield from _paths(part)
    elif isinstance(value, list):
        for part in value:
            yield from [part] if isinstance(part, str) else _paths(part)


def _counts_of_rows(figures: list[str], right: list[list[str]], rows: Iterable[str]) -> bool:
    """Whether a line differs from a fresh one only by rows of a table that was not fetched."""
    allowed = set(rows)
    return any(
        len(one) == len(figures)
        and all(a == b or (b == "0" and a in allowed) for a, b in zip(figures, one, strict=True))
        for one in right
    )


def _first_difference(card: str, fresh: str) -> str:
    pairs = zip(card.splitlines(), fresh.splitlines(), strict=False)
    for number, (old, new) in enumerate(pairs, start=1):
        if old != new:
            return f"line {number} says {old[:80]!r}, the data say {new[:80]!r}"
    return "differs in length from what the data give"


_FACTS = (
    "name", "version", "recipe", "stages", "sources", "waivers", "figures", "code_version",
    "content", "content_without_times",
)  # fmt: skip


def card_facts(manifest: Manifest) -> dict[str, object]:
    """What `write_release` gave the card's renderer, read back from the manifest."""
    facts = manifest.model_dump(mode="json")
    files = {name: entry for name, entry in facts["files"].items() if name.startswith("data/")}
    further = sorted(manifest.files.keys() - files.keys() - {"README.md"})
    return {**{key: facts[key] for key in _FACTS}, "files": files, "further": further}
