"""Runs every hostile program in the sandbox as whoever calls it; one JSON line each.

Standard library only, so that it also runs under an interpreter that an
ordinary user can read: run_programs.py SANDBOX_FOLDER PROGRAMS_FOLDER CANARY PORT NAME
"""

import importlib.util
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

folder, programs, canary, port, name = sys.argv[1:]
spec = importlib.util.spec_from_file_location(
    "sandbox", f"{folder}/__init__.py", submodule_search_locations=[folder]
)
assert spec is not None
sys.modules["sandbox"] = importlib.util.module_from_spec(spec)
host = importlib.import_module("sandbox.host")

TEST = """
def check(candidate):
    assert candidate(20) == 41
    assert candidate(-3) == -5
"""
PROMPT = 'def answer(n):\n    """Twice n and one more."""\n'


def run(path: Path) -> dict[str, object]:
    source = path.read_text().replace("CANARY", canary).replace("PORT", port)
    source = source.replace("HOSTPID", str(os.getpid())).replace("\\0NAME", f"\\0{name}")
    job = {
        "kind": "check",
        "program": source,
        "setup": PROMPT,
        "entry_point": "answer",
        "tests": [TEST],
    }
    limits = host.ProgramLimits(cpu_s=1, wall_s=4.0, memory_mb=256)
    result = host.run(job, limits)
    return {"program": path.stem, "passed": result.passed, "reason": result.reason}


with ThreadPoolExecutor(4) as pool:
    for line in pool.map(run, sorted(Path(programs).glob("*.txt"))):
        print(json.dumps({**line, "uid": os.getuid()}), flush=True)
