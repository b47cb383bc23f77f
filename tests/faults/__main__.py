"""All of the fault suite by one command: its table is printed, and put into docs/FAULTS.md.

    python -m tests.faults                  as whoever calls it, two parts beside each other
    python -m tests.faults --share 0.1      a tenth of the tries
    python -m tests.faults --write          also puts its rows into docs/FAULTS.md
    python -m tests.faults test_disk.py "test_fuzz.py::test_scorers" --write    those alone
    sudo python -m tests.faults --user NAME --write

Part by part: what is found in one is written at once (importers are added up), so that a run
which is cut can go on with the parts that are left.

`--user` (root only) runs it as an ordinary user who sees this tree and this Python, and has a
home of its own: some attacks differ, e.g. what a folder without the right to write stops.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from routeyard.pipelines.ingest.importers import IMPORTERS
from tests.faults.attacks import ATTACKS, Row, read, table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/FAULTS.md"


def command(test: str) -> list[str]:
    words = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-q"]
    return [*words, f"tests/faults/{test.removeprefix('tests/faults/')}"]


def parts(given: list[str], share: str) -> list[str]:
    """What is run on its own: a file of the suite, or a kind of fuzz; in full, importers one by
    one."""
    files = dict.fromkeys(file for _, file in ATTACKS.values() if file != "test_fuzz.py")
    fuzz = [
        f"test_fuzz.py::test_{kind}" for kind in ("scorers", "importers", "recipes", "manifests")
    ]
    found: list[str] = []
    for test in given or [*files, *fuzz]:
        split = share == "full" and test.endswith("::test_importers")
        each = sorted(IMPORTERS.builtin) if split else []
        found += [f"{test}[{name}]" for name in each] or [test]
    return found


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
    group = pwd.getpwnam(user).pw_gid  # a user's own group need not have the user's name
    lines.append(f"exec setpriv --reuid {user} --regid {group} --init-groups {shlex.join(words)}")
    return ["unshare", "-m", "sh", "-c", "\n".join(lines)]


def run(share: str, user: str | None, test: str) -> tuple[int, dict[str, Row], float]:
    """Exit code, rows, and seconds of computing of one part."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        home = folder / "home"
        home.mkdir()
        said = home / "rows.json"
        words = command(test)
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
        _, status, used = os.wait4(subprocess.Popen(words, cwd=ROOT, env=environment).pid, 0)
        code = os.waitstatus_to_exitcode(status)
        rows = json.loads(said.read_text(encoding="utf-8")) if said.is_file() else []
    return code, {one["attack"]: Row(**one) for one in rows}, used.ru_utime + used.ru_stime


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
    parser.add_argument("tests", nargs="*", help="files of tests/faults or tests in them")
    parser.add_argument("--share", default="full", help="'full', or a share such as 0.1")
    parser.add_argument("--processes", type=int, default=2, help="parts beside each other")
    parser.add_argument("--user", help="run as this user (root only)")
    parser.add_argument("--write", action="store_true", help=f"put the rows into {PAGE.name}")
    given = parser.parse_args()
    failed: list[str] = []
    found: dict[str, Row] = {}
    one_by_one = threading.Lock()

    def part(test: str) -> None:
        begun = time.monotonic()
        code, rows, computed = run(given.share, given.user, test)
        with one_by_one:
            for name, row in rows.items():
                if name in found:
                    found[name].add(row)
                else:
                    found[name] = row
            if code:
                failed.append(test)
            elif given.write:
                written = {name: found[name] for name in rows}
                put("ordinary user" if given.user or os.getuid() else "root", written)
            took = f"{computed:.0f} s of computing in {time.monotonic() - begun:.0f} s"
            print(f"{test}: {'not held' if code else 'held'}, {took}", flush=True)

    with ThreadPoolExecutor(given.processes) as pool:
        list(pool.map(part, parts(given.tests, given.share)))
    print(table(found))
    sys.exit(f"not held: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
