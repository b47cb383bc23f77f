"""Environments of peers whose dependencies do not go with ours, at pinned versions.

`python -m benchmarks peers --folder DIR` makes one virtual environment for each with pip
(about 2 GB in all); `python -m benchmarks all --peers DIR` and `ROUTEYARD_PEERS=DIR` use them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

#: Environment → what is installed there.
PEERS: dict[str, tuple[str, ...]] = {
    "lm_eval": ("lm-eval[api]==0.4.13",),
    "inspect_ai": ("inspect_ai==0.3.285", "openai"),
}
_ALONE = Path(__file__).parent / "alone"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, required=True)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    made = {}
    for name, wanted in PEERS.items():
        home = arguments.folder / name
        if not (home / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(home / "bin" / "pip"), "install", "-q", *wanted], check=True)
        made[name] = str(home)
    return made


def python(name: str) -> Path | None:
    """The interpreter of a peer's environment in the folder ROUTEYARD_PEERS, if it is there."""
    folder = os.environ.get("ROUTEYARD_PEERS")
    found = Path(folder or "", name, "bin", "python")
    return found if folder and found.exists() else None


def ask(name: str, script: str, *arguments: str, rows: str = "") -> dict[str, Any] | None:
    """What a script in `alone/` prints in the peer's environment; None where it is absent.

    Raises:
        RuntimeError: the peer failed; its last words.
    """
    interpreter = python(name)
    if interpreter is None:
        return None
    done = subprocess.run(
        [str(interpreter), str(_ALONE / f"{script}.py"), *arguments],
        input=rows,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": "", "HF_HUB_OFFLINE": "1"},
    )
    if done.returncode:
        raise RuntimeError(f"{script} failed in {name}: {done.stderr.strip()[-800:]}")
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed
