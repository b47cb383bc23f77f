"""All of the fault suite by one command: its table is printed, and put into docs/FAULTS.md.

    python -m tests.faults                  as whoever calls it, in two processes
    python -m tests.faults --share 0.1      a tenth of the tries
    python -m tests.faults --write          also puts its rows into docs/FAULTS.md
    sudo python -m tests.faults --user NAME --write

`--user` (root only) runs it as an ordinary user who sees this tree and this Python, and has a
home of its own: some attacks differ, e.g. what a folder without the right to write stops.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.faults.attacks import Row, read, table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/FAULTS.md"


def command(processes: int, tests: list[str]) -> list[str]:
    words = [sys.executable, "-m", "pytest", "-n", str(processes), "-p", "no:cacheprovider", "-q"]
    return [*words, *(tests or ["tests/faults"])]


def as_user(user: str, words: list[str], home: Path) -> list[str]:
    """The words in a view of the file system in which that user can read this Python.

    An interpreter may lie in root's home, which nobody else can enter: a mount that only this
    process sees puts the interpreter's folder where it is expected, in an empty home.
    """
    lines = ["set -e"]
    real = Path(os.path.realpath(sys.executable))
    closed = Path.home()
    if closed in real.parents:
        inner, shown = real.relative_to(closed).parts[0], home / "shown"
        lines += [
            f"mkdir -p {shown / inner}",
            f"mount --rbind {closed / inner} {shown / inner}",
            f"chmod 755 {shown}",
            f"mount --rbind {shown} {closed}",
        ]
    lines.append(f"exec setpriv --reuid {user} --regid {user} --init-groups {shlex.join(words)}")
    return ["unshare", "-m", "sh", "-c", "\n".join(lines)]


def run(
    share: str, user: str | None, processes: int, tests: list[str]
) -> tuple[int, dict[str, Row]]:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        home = folder / "home"
        home.mkdir()
        said = home / "rows.json"
        words = command(processes, tests)
        environment = {
            **os.environ,
            "ROUTEYARD_FAULTS": share,
            "ROUTEYARD_FAULTS_TABLE": str(said),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(home),
        }
        if user:
            subprocess.run(["chown", f"{user}:", str(home)], check=True)
            words = as_user(user, words, folder)
            environment["HOME"] = str(home)
        code = subprocess.run(words, cwd=ROOT, env=environment).returncode
        rows = json.loads(said.read_text(encoding="utf-8")) if said.is_file() else []
    return code, {one["attack"]: Row(**one) for one in rows}


def put(part: str, rows: dict[str, Row]) -> None:
    """Put rows into their table in the page; those that were not tried now stay."""
    page = PAGE.read_text(encoding="utf-8")
    marks = re.compile(rf"(<!-- {part} -->\n).*?(\n<!-- end -->)", re.S)
    found = marks.search(page)
    if not found:
        raise SystemExit(f"{PAGE} has no mark for {part!r}")
    text = table({**read(found[0]), **rows})
    PAGE.write_text(marks.sub(lambda m: f"{m[1]}\n{text}{m[2]}", page), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the fault suite and print its table.")
    parser.add_argument("tests", nargs="*", help="files of tests/faults; default: all")
    parser.add_argument("--share", default="full", help="'full', or a share such as 0.1")
    parser.add_argument("--processes", type=int, default=2, help="of pytest")
    parser.add_argument("--user", help="run as this user (root only)")
    parser.add_argument("--write", action="store_true", help=f"put the rows into {PAGE.name}")
    given = parser.parse_args()
    code, rows = run(given.share, given.user, given.processes, given.tests)
    print(table(rows))
    if given.write and code == 0:
        put("ordinary user" if given.user or os.getuid() else "root", rows)
    sys.exit(code)


if __name__ == "__main__":
    main()
