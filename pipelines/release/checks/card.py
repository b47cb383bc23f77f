"""The card: every figure in it, computed again from the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

import pyarrow as pa

from routeyard.pipelines.release.finding import Finding, first_line
from routeyard.pipelines.release.manifest import MANIFEST, code_version
from routeyard.pipelines.release.tables import contract_of
from routeyard.schemas import CONTRACTS, StoredTable
from routeyard.schemas.manifest import FORMAT, Manifest, digest_of

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
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
    version of this code or an earlier format, whose template may have used other words,
    or an add-on was not fetched, each line that differs is compared with the one that it
    stands for (`compare_lines`).

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
    whole = {**tables, **{name: contract_of(name).empty() for name in missing}}
    try:
        fresh = render_card(whole, card_facts(manifest))
    except Exception as error:  # facts of a stranger's manifest can be of any form
        why = f"cannot be computed again: {type(error).__name__}: {first_line(error)}"
        yield Finding("card", "README.md", why)
        return
    if card == fresh:
        return
    same_code = manifest.code_version == code_version() and manifest.format == FORMAT
    if same_code and not missing:
        yield Finding("card", "README.md", _first_difference(card, fresh))
        return
    rows = [f"{entry.rows:,}" for entry in manifest.tables.values()]
    compared = compare_lines(card.splitlines(), fresh.splitlines(), rows)
    for says in compared.false:
        yield Finding("card", "README.md", says)
    if unchecked is not None:
        unchecked += compared.unknown


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


def compare_lines(card: list[str], fresh: list[str], rows: Iterable[str] = ()) -> ComparedLines:
    """Each line of a card with figures against the line of the fresh card that it stands for.

    A line in the same words must have the same figures. A line in other words stands for one
    of the lines in its place that have other words too, and must have the figures of one of
    them. What is left has nothing to be compared with; its figures must be in the fresh card.

    Args:
        rows: Row counts in the manifest, as text: of tables that were not fetched too.
    """
    by_words: dict[str, list[list[str]]] = {}
    for line in fresh:
        by_words.setdefault(_words(line), []).append(_NUMBER.findall(line))
    known = {*_NUMBER.findall("\n".join(fresh)), *rows}
    own = {_words(line) for line in card}
    found = ComparedLines()
    for tag, start, end, first, last in SequenceMatcher(None, card, fresh, False).get_opcodes():
        if tag == "equal":
            continue
        others = [_NUMBER.findall(line) for line in fresh[first:last] if _words(line) not in own]
        for number, line in enumerate(card[start:end], start=start + 1):
            figures, said = _NUMBER.findall(line), f"line {number} says {line[:80]!r}"
            right = by_words.get(_words(line))
            unknown = [figure for figure in figures if figure not in known]
            if figures in (right or []) or (not figures and right is None):
                continue
            if right is not None:
                if not _counts_of_rows(figures, right, rows):
                    data = ", ".join(right[0]) or "none"
                    found.false.append(f"{said}, and the data give {data}")
            elif figures in others:
                others.remove(figures)
                found.reworded.append(line)
            elif unknown:
                found.false.append(f"{said}, and the data give no {unknown[0]}")
            else:
                found.unknown.append(f"line {number}: {line[:80]}")
    return found


def _counts_of_rows(figures: list[str], right: list[list[str]], rows: Iterable[str]) -> bool:
    """Whether a line differs from a fresh one only by rows of a table that was not fetched."""
    allowed = set(rows)
    return any(
        len(one) == len(figures)
        and all(a == b or (b == "0" and a in allowed) for a, b in zip(figures, one, strict=True))
        for one in right
    )


def _words(line: str) -> str:
    """A line without its figures."""
    return _NUMBER.sub("#", line)


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
