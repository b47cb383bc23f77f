"""The site of one planted release: time, memory, size, and what its first page weighs.

`python -m benchmarks site --labels 300000 --json` builds a release of that many labels of 27
models (not timed) and then its site, in a separate process whose imports and first use are
left out by writing the site of a tiny release before.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.release_pandas import timed

_ROOT = Path(__file__).parents[1]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", type=int, default=300_000, help="labels in the release")
    parser.add_argument("--models", type=int, default=27)
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder by default")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="site-bench-", dir=arguments.folder) as folder:
        words = [sys.executable, "-m", "benchmarks.site", folder]
        done = subprocess.run(
            [*words, str(arguments.labels), str(arguments.models)],
            cwd=_ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"the site was not written:\n{done.stderr[-2000:]}")
        figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"labels": arguments.labels, "models": arguments.models, **figures}


def main() -> None:
    """Build and write in this process; prints the figures as the last line."""
    from routeyard.flows.site import write

    folder, labels, models = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    write([_built(folder / "small", 300, 3)], folder / "small.site")
    large, out = _built(folder / "large", labels, models), folder / "site"
    spent, index = timed(lambda: write([large], out))
    # The process that answers SQL is a child: its share counts when it has ended.
    answered = resource.getrusage(resource.RUSAGE_CHILDREN)
    pages = [path for path in out.rglob("*") if path.is_file()]
    figures = {
        "cpu_s": round(spent, 3),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "answering_peak_mb": answered.ru_maxrss // 1024,
        "site_mb": round(sum(path.stat().st_size for path in pages) / 1e6, 2),
        "files": len(pages),
        "index_kb": round(index.stat().st_size / 1e3, 1),
    }
    print(json.dumps(figures))


def _built(folder: Path, labels: int, models: int) -> Path:
    from benchmarks.release import stream
    from routeyard.datacards.card import render
    from routeyard.pipelines.release.build import write_release

    recipe = {"name": "bench", "version": "1.0.0"}
    tables = stream(labels, models)
    return write_release(tables, recipe=recipe, root=folder, render_card=render).path


if __name__ == "__main__":
    main()
