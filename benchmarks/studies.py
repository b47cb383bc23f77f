"""Runs every applicable study on built releases and writes one page of the tables.

    python -m benchmarks.studies RELEASE [RELEASE …] --out results [--page FILE] [--embed]

A release's part of the page is replaced, the others stay. Builds nothing: `routeyard build
open_llm_leaderboard`, `… bbh`, `… routerdc`, `… mmlu_pro` and the other recorded recipes make the
releases.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from flows.cli import run

#: Rows of a table that the page shows; the whole is in the study's own files.
SHOWN = 12
#: How the part of a release begins.
PART = "## Studies of "
HEAD = (
    "# Studies on recorded matrices\n\nMade by `python -m benchmarks.studies`; the commands that "
    f"make each table stand under it. Long tables show their first {SHOWN} rows.\n"
)


def main(arguments: list[str] | None = None) -> None:
    """Run the studies and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--page", type=Path, default=Path("pipelines/studies/RESULTS.md"))
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--embed", action="store_true")
    parser.add_argument("--cache", type=Path, default=Path("yard/cache/embeddings"))
    given = parser.parse_args(arguments)
    parts = _parts(given.page)
    for release in given.releases:
        name = release.resolve().parent.name
        out = given.out / name
        command = ["study", "all", str(release), "--out", str(out)]
        command += ["--resamples", str(given.resamples), "--cache", str(given.cache)]
        command += ["--embed"] if given.embed else []
        if run(command):
            raise SystemExit(f"studies of {name} failed")
        text = (out / "index.md").read_text(encoding="utf-8")
        parts[name] = cut(text)
        # After each release: a run that is stopped keeps what it has.
        page = "\n".join([HEAD, *(parts[name] for name in sorted(parts))])
        given.page.write_text(page, encoding="utf-8")


def _parts(page: Path) -> dict[str, str]:
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


if __name__ == "__main__":
    main()
