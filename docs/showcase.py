"""Makes a page of `docs/showcase/`: `python docs/showcase.py mmlu_pro`, or `zeroeval_gsm`, ….

One command from recorded answers (`ROUTEYARD_DATA`) to the page: build, compare the reference
routers, write figures and charts. Questions and answers belong to their sources and stay out.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

SHOWCASE = Path(__file__).parent / "showcase"
#: Recipe → what its page shows.
PAGES = {
    "mmlu_pro": "29 models, 12,032 questions of MMLU-Pro",
    "zeroeval_gsm": "43 models, GSM8K",
    "routellm_mmlu": "a strong and a weak model on MMLU",
}
RESAMPLES = 2_000


def make(name: str, yard: Path) -> Path:
    """Build a shipped recipe, evaluate, and write its page; returns it."""
    from routeyard.flows.build import run_build
    from routeyard.flows.evaluation.evaluate import evaluate_into
    from routeyard.flows.site import write
    from routeyard.pipelines.experiment.settings import EvaluationSettings

    built = run_build(name, str(yard))
    release = Path(built["release"]["path"])
    results = yard / "results" / name
    settings = EvaluationSettings(
        pair_routers=False, embed=True, encoder="tfidf", resamples=RESAMPLES
    )
    evaluate_into(release, results, None, settings, certificate=False)
    out = SHOWCASE / name
    shutil.rmtree(out, ignore_errors=True)
    write([release], out, results=[results], texts=False)
    return next(out.glob("*/*/index.html"))


if __name__ == "__main__":
    page = make(sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "yard"))
    sys.stdout.write(f"{page}\n")
