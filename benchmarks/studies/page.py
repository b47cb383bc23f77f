"""The page of studies: a part for each release, long tables cut."""

from __future__ import annotations

from pathlib import Path

#: Rows of a table that the page shows; the whole is in the study's own files.
SHOWN = 12
#: How the part of a release begins.
PART = "## Studies of "
HEAD = (
    "# Studies on recorded matrices\n\nMade by `python -m benchmarks.studies`; the commands that "
    f"make each table are under it. Long tables show their first {SHOWN} rows.\n"
)


def parts_of(page: Path) -> dict[str, str]:
    """Release → its part of a page that is there already."""
    if not page.is_file():
        return {}
    pieces = page.read_text(encoding="utf-8").split(f"\n{PART}")[1:]
    return {piece.partition("\n")[0]: f"{PART}{piece}" for piece in pieces}


def cut(text: str) -> str:
    """The page with long tables cut, headings one level down."""
    out: list[str] = []
    rows = 0
    for line in text.splitlines():
        rows = rows + 1 if line.startswith("|") else 0
        if rows == SHOWN + 3:
            out.append("| … |")
        if rows < SHOWN + 3:
            out.append(f"#{line}" if line.startswith("#") else line)
    return "\n".join(out) + "\n"
