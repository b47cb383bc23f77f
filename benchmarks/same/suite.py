"""What a commit's own tests refuse, cover and catch, recorded beside its results."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.same.differences import Difference
from benchmarks.same.side import environment, variables

#: Share of each area's mutants that is tried: about 300 of all.
SHARE = "0.05"


def record(
    tree: Path, folder: Path, data: Path | None, select: Sequence[str], *, whole: bool
) -> None:
    """Run a checkout's tests; writes `refusals.jsonl`, and with `whole` coverage and mutants."""
    made = (folder / "env").exists()
    python = folder / "env" / "bin" / "python" if made else environment(tree, folder / "env")
    rows = folder / "rows"
    rows.mkdir(exist_ok=True)
    more = variables(folder, data)
    plugin = str(Path(__file__).with_name("plugin"))
    more |= {"PYTHONPATH": plugin, "SAME_REFUSALS": str(rows.resolve())}
    tests = ["-m", "pytest", "-q", "-p", "same_refusals", "-p", "no:cacheprovider", *select]
    covered = ["-m", "coverage", "run"] if whole else []
    log = (folder / "tests.txt").open("w", encoding="utf-8")
    subprocess.run([python, *covered, *tests], cwd=tree, env=more, stdout=log, stderr=log)
    texts = [path.read_text(encoding="utf-8") for path in sorted(rows.glob("*.jsonl"))]
    (folder / "refusals.jsonl").write_text("".join(texts), encoding="utf-8")
    if whole:
        _cover(python, tree, folder, more)
        with (folder / "mutants.txt").open("w", encoding="utf-8") as file:
            words = ["-m", "tests.mutation", "--share", SHARE]
            subprocess.run([python, *words], cwd=tree, env=more, stdout=file, stderr=file)


def _cover(python: Path, tree: Path, folder: Path, more: dict[str, str]) -> None:
    """Branches covered, by package, in `coverage.json`."""
    for words in (["combine", "-q"], ["json", "-q", "-o", str(folder / "lines.json")]):
        subprocess.run([python, "-m", "coverage", *words], cwd=tree, env=more)
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, one in json.loads((folder / "lines.json").read_text())["files"].items():
        parts = Path(name).parts
        package = "/".join(parts[: 2 if parts[0] in ("pipelines", "extensions") else 1])
        sums[package][0] += one["summary"]["covered_branches"]
        sums[package][1] += one["summary"]["num_branches"]
    shares = {name: round(a / b, 4) if b else None for name, (a, b) in sorted(sums.items())}
    (folder / "coverage.json").write_text(json.dumps(shares, indent=1), encoding="utf-8")


def compared(old: Path, new: Path) -> dict[str, Any]:
    """Refusals of both sides: counts, those that lack a place or a next step, and differences.

    Empty where a side has no tests recorded. A test is known by its name, whatever its file.
    """
    files = [side / "refusals.jsonl" for side in (old, new)]
    if not all(file.is_file() for file in files):
        return {}
    before, now = (_rows(file) for file in files)
    found = []
    for test, rows in sorted(before.items()):
        others = now.get(test)
        if others is None:
            found.append(Difference(f"refusals/{test}", f"{len(rows)} only before"))
        elif rows != others:
            found.append(Difference(f"refusals/{test}", f"{rows} → {others}"[:400]))
    counts = [sum(map(len, side.values())) for side in (before, now)]
    bare = [test for test, rows in now.items() if any(not row[2] and not row[3] for row in rows)]
    return {
        "before": counts[0], "now": counts[1], "tests_only_now": len(now.keys() - before.keys()),
        "neither_place_nor_next_step": sorted(bare), "differences": found,
    }  # fmt: skip


def _rows(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Test → (number, exit code, place named, next step named) of each of its refusals.

    The kind of an error is kept in the file and not compared: later commits may name it otherwise.
    """
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found[row["test"]].append((row["number"], row["exit"], row["where"], row["next"]))
    return {test: sorted(rows) for test, rows in found.items()}
