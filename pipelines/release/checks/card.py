"""The card: every figure in it, computed again from the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
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
) -> Iterator[Finding]:
    """Findings in `README.md`.

    It must be, word for word, what the tables give. Where the release names another
    version of this code or an earlier format, whose template may have used other words,
    or an add-on was not fetched, each figure of a line that differs must still be in
    the fresh card.
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
    for says in _false_figures(card, fresh, [entry.rows for entry in manifest.tables.values()]):
        yield Finding("card", "README.md", says)


def _false_figures(card: str, fresh: str, rows: Iterable[int]) -> Iterator[str]:
    """Lines of a card with a figure that neither the fresh card nor the manifest's rows hold."""
    known = set(fresh.splitlines())
    figures = {*_NUMBER.findall(fresh), *(f"{count:,}" for count in rows)}
    for number, line in enumerate(card.splitlines(), start=1):
        false = [found for found in _NUMBER.findall(line) if found not in figures]
        if line not in known and false:
            yield f"line {number} says {line[:80]!r}, and the data give no {false[0]}"


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
