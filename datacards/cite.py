"""How to cite a release, and when it was made: from the release itself, never from a clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def bibtex(facts: Mapping[str, Any]) -> str:
    """A BibTeX entry of a release that states no citation.

    Args:
        facts: name, version and, if known, recipe and fingerprint.
    """
    words = (facts.get("recipe") or {}).get("release") or {}
    title = _plain(words.get("title") or facts["name"])
    version = _plain(facts["version"])
    key = re.sub(r"[^a-z0-9]+", "_", f"{facts['name']} {facts['version']}".lower()).strip("_")
    lines = [f"@misc{{{key},", f"  title = {{{title}}},", f"  version = {{{version}}},"]
    if date := facts.get("date_published"):
        lines.append(f"  year = {{{date[:4]}}},")
    if facts.get("fingerprint"):
        lines.append(f"  note = {{Routeyard release, fingerprint {facts['fingerprint']}}},")
    else:
        lines.append("  note = {LLM-routing benchmark built with Routeyard},")
    return "\n".join(lines) + "\n}"


def _plain(text: str) -> str:
    return re.sub(r"[\\{}@%#$&~^]", "", " ".join(str(text).split()))
