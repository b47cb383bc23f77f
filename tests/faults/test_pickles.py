"""Damaged and hostile pickles: an answer or one of our errors, in this very process."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
_READ = """
import json, sys, time
import encodings.raw_unicode_escape  # Python's own, for a text of protocol 0
from pathlib import Path
from routeyard.pipelines.common.errors import RouteyardError
from routeyard.pipelines.common.pickles import load

def watch(event, arguments):
    # Whatever a pickle could ask for goes through one of these.
    if event.split(".")[0] in ("os", "subprocess", "socket", "ctypes", "shutil", "pty", "exec"):
        if event not in ("os.listdir", "os.scandir"):
            print(json.dumps({"reached": event}), flush=True)

path = Path(sys.argv[1])
path.write_bytes(Path(sys.argv[2]).read_bytes())
try:
    load(path)  # imports what reading needs, before the watch begins
except RouteyardError:
    pass
sys.addaudithook(watch)
for line in sys.stdin:
    path.write_bytes(bytes.fromhex(line))
    try:
        load(path)
        print(json.dumps({"said": "read"}), flush=True)
    except RouteyardError as error:
        print(json.dumps({"said": type(error).__name__}), flush=True)
"""


def _frame() -> pd.DataFrame:
    frame = pd.DataFrame({"sample_id": ["a", "b"], "prompt": ["x", None], "n": [1, 2]})
    frame["o"] = np.array([np.float64(1.5), "t"], dtype=object)
    frame["c"] = frame["prompt"].astype("category")
    return frame


def test_mutated_pickles(tmp_path, row, size, mutants):
    """None crashes the process that reads it, and none reaches outside of it."""
    written = sorted((ROOT / "tests/pickles/written").glob("*.pkl"))
    seeds = [path.read_bytes() for path in written]
    seeds += [pickle.dumps(_frame(), protocol) for protocol in (2, 4, 5)]
    seeds += [pickle.dumps({"data": {"train_score": np.eye(3)}, "model": np.array(["m"])})]
    count = size(40, 10_000) // len(seeds) + 1
    cases = [bytes(case) for seed in seeds for case in mutants(seed, count)]
    (tmp_path / "seed").write_bytes(seeds[-2])
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(tmp_path / "x.pkl"), str(tmp_path / "seed")],
        input="\n".join(case.hex() for case in cases),
        capture_output=True,
        text=True,
        cwd=ROOT,
        # A measurement of coverage would write files of its own there.
        env={k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")}
        | {"PYTHONWARNINGS": "ignore"},
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    answers = [line["said"] for line in said if "said" in line]
    found = row("mutated pickles (RouterBench, RouterEval)")
    found.tried += len(cases)
    found.held += len(answers)
    assert done.returncode == 0, done.stderr[-2000:]
    assert [line for line in said if "reached" in line] == []
    assert len(answers) == len(cases)
    assert set(answers) <= {"read", "SourceError", "Unsafe"}
    assert len(set(answers)) == 3  # the mutants are of every kind
