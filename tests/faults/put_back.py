"""The faults that were mended, put back one at a time: the test that holds each has to fail.

    python -m tests.faults.put_back              all of them, a table in Markdown
    python -m tests.faults.put_back pickles diff

Each is tried in a copy of the tree, so that nothing here is changed. A change that no longer
fits the code, or whose test passes, ends the command with an error.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.faults.mended import FAULTS, Fault

ROOT = Path(__file__).parents[2]
COPIED = (
    "routeyard",
    "schemas",
    "pipelines",
    "papers",
    "flows",
    "datacards",
    "tests",
    "pyproject.toml",
)
#: The reader of pickles that was replaced, in short.
_ALLOWED = """

def _allowed(stream: Any) -> Any:
    import importlib
    import pickle

    known = ("numpy", "pandas", "pyarrow", "_codecs", "builtins")

    class Reader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if module.partition(".")[0] not in known or name in ("eval", "exec", "open", "getattr"):
                raise Refused(name)
            return getattr(importlib.import_module(module), name)

    return Reader(stream).load()
"""


def place(fault: Fault, tree: Path) -> tuple[Path, str]:
    """The file to change and its text, which has the line to change once."""
    path = tree / fault.file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text.count(fault.right) != 1:
        raise SystemExit(
            f"{fault.file} has {text.count(fault.right)} times: {fault.right!r}; "
            f"mend the entry {fault.was!r} in tests/faults/mended.py"
        )
    return path, text


def put_back(fault: Fault, tree: Path) -> None:
    """Change the one place in a copy of the tree."""
    path, text = place(fault, tree)
    text = text.replace(fault.right, fault.wrong)
    path.write_text(text + (_ALLOWED if "_allowed(" in fault.wrong else ""), encoding="utf-8")


def tried(fault: Fault) -> str:
    """What the test says with the fault put back: `1 failed, 3 passed in 2 s`."""
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made)
        tree.chmod(0o755)
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(
                    ROOT / name,
                    tree / name,
                    symlinks=True,
                    ignore=shutil.ignore_patterns("__pycache__"),
                )
            else:
                shutil.copy(ROOT / name, tree / name)
        put_back(fault, tree)
        words = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*words, "--tb=no", fault.test],
            cwd=tree,
            capture_output=True,
            text=True,
            # Of the corruptions of a release a plain run tries some.
            env=dict(os.environ, **({"ROUTEYARD_FAULTS": "full"} if "[" in fault.test else {})),
        )
        lines = [line for line in done.stdout.splitlines() if line.strip()] or ["it crashed"]
        if done.returncode == 0:
            raise SystemExit(f"with the fault back the test passes: {fault.was} ({lines[-1]})")
        if done.returncode > 1:
            raise SystemExit(f"the test did not run: {fault.test} ({lines[-1]})")
        return lines[-1].strip("= ") if done.returncode == 1 else f"exit {done.returncode}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Put each mended fault back; its test must fail.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(FAULTS)}; default: all")
    names = parser.parse_args().names or list(FAULTS)
    if unknown := {*names} - {*FAULTS}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    for name in names:
        place(FAULTS[name], ROOT)
    print("| name | the fault | what its test says with it |\n| --- | --- | --- |", flush=True)
    for name in names:
        fault = FAULTS[name]
        print(f"| {name} | {fault.was} | {tried(fault).partition(' in ')[0]} |", flush=True)


if __name__ == "__main__":
    main()
