"""Makes `docs/showcase/`: `python docs/showcase.py`, or with the folder to work in.

One command from recorded answers (`ROUTEYARD_DATA`) to the pages: build, compare the reference
routers, write figures and charts. Questions and answers belong to their sources and stay out.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

SHOWCASE = Path(__file__).parent / "showcase"
#: Recipes whose releases are shown.
SHOWN = ("mmlu_pro", "zeroeval_gsm", "routellm_mmlu")
#: Resamples, and settings of each curve.
RESAMPLES, POINTS = 2_000, 40


def evaluated(recipe: str, yard: Path) -> tuple[Path, Path]:
    """The release of a shipped recipe, and the folder of its evaluation."""
    from routeyard.flows.build import run_build
    from routeyard.flows.evaluation.evaluate import evaluate_into
    from routeyard.pipelines.evaluate.settings import EvaluationSettings

    release = Path(run_build(recipe, str(yard))["release"]["path"])
    results = yard / "results" / recipe
    settings = EvaluationSettings(
        pair_routers=False, embed=True, encoder="tfidf", resamples=RESAMPLES, points=POINTS
    )
    evaluate_into(release, results, None, settings, certificate=False)
    return release, results


def make(yard: Path) -> Path:
    """Build, evaluate and write the pages of all; returns their index."""
    from routeyard.flows.site import write

    releases, results = zip(*(evaluated(recipe, yard) for recipe in SHOWN), strict=True)
    shutil.rmtree(SHOWCASE, ignore_errors=True)
    return write(releases, SHOWCASE, results=results, texts=False)


if __name__ == "__main__":
    sys.stdout.write(f"{make(Path(sys.argv[1] if len(sys.argv) > 1 else 'yard'))}\n")
