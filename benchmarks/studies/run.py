"""Runs every applicable study on recorded matrices and writes one page of the tables.

    python -m benchmarks.studies [RELEASE …] [--workspace yard] [--page FILE] [--minutes 4]

Without RELEASE: all `RECORDED` recipes, built first where the workspace has no release of them
(ROUTEYARD_DATA names the folder of the recordings). A release's part of the page is replaced,
the others stay. A study that needs more than `--minutes` of processor time stops, and the page
says so. In a pool of more than two, studies of a pair take `pair_of`.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.studies.page import HEAD, cut, parts_of
from routeyard.flows.cli import run
from routeyard.flows.evaluation import evaluate as do
from routeyard.papers.reproduction import pair_in_place
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import lacking

#: Recipes over recorded outcomes; True where the questions' texts are part of them.
RECORDED = {
    "bbh": True,
    "livecodebench_execution": False,
    "mmlu_pro": True,
    "open_llm_leaderboard": False,
    "routellm_mmlu": True,
    "routerdc": True,
    "zeroeval_gsm": True,
}
#: What a release without texts says of its embeddings.
NO_TEXTS = "the recording names its questions without their texts"


class TooLong(BaseException):
    """A study used up its processor time; nothing on the way may take it for a fault."""


def main(arguments: list[str] | None = None) -> None:
    """Run the studies and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", type=Path, nargs="*")
    parser.add_argument("--workspace", type=Path, default=Path("yard"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--page", type=Path, default=Path("pipelines/evaluate/studies/RESULTS.md"))
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=4.0, help="of processor time, a study")
    parser.add_argument("--cache", type=Path, help="of embeddings; the workspace's by default")
    given = parser.parse_args(arguments)
    parts = parts_of(given.page)
    for release in given.releases or [built(name, given.workspace) for name in RECORDED]:
        name = release.resolve().parent.name
        parts[name] = cut(studied(release, given.out / name, given))
        # After each release: a run that is stopped keeps what it has.
        page = "\n".join([HEAD, *(parts[name] for name in sorted(parts))])
        given.page.write_text(page, encoding="utf-8")


def built(name: str, workspace: Path) -> Path:
    """The newest release of a recipe in the workspace, built where it is missing."""
    for again in (False, True):
        found = sorted((workspace / "releases" / name).glob("*/manifest.json"))
        if found:
            return found[-1].parent
        if not again and run(["build", name, "--workspace", str(workspace)]):
            break
    raise SystemExit(f"recipe {name} was not built; does ROUTEYARD_DATA hold its files?")


def studied(release: Path, out: Path, given: argparse.Namespace) -> str:
    """Run all studies that apply to a release; the text of its index."""
    from routeyard.flows.evaluation.released import out_folder, read_release, with_embeddings
    from routeyard.schemas.recipe import ENCODER

    name = release.resolve().parent.name
    folder, texts = out_folder(release, out), RECORDED.get(name, True)
    cache = given.cache or given.workspace / "cache" / "embeddings"
    tables = read_release(release)
    missing = texts and "embeddings" not in tables
    tables = with_embeddings(tables, None, missing, cache, ENCODER if missing else None)
    shared: dict[str, Any] = {"resamples": given.resamples, "seed": 0}
    about = do.context_of(release, tables, **shared)
    pair = None
    if about.core.n_models > 2 and about.core.splits:
        pair = pair_in_place(about.core, about.default_scheme())
    if pair is not None:
        about = do.context_of(release, tables, pair=pair, **shared)
    done: list[str] = []
    left: list[tuple[str, str, str]] = []
    for study in STUDIES.names():
        lacks = lacking(STUDIES.get(study), about)
        if lacks:
            need, then = lacks[0]
            left.append((study, need, NO_TEXTS if need == "embeddings" and not texts else then))
            continue
        try:
            with limited(given.minutes):
                do.run_study(study, about, release, folder)
        except TooLong:
            then = f"it took more than {given.minutes:g} minutes of processor time"
            left.append((study, "time", then))
            continue
        done.append(study)
        print(name, study, flush=True)
    do.write_index(folder, about.release, done, left)
    text = (folder / "index.md").read_text(encoding="utf-8")
    title, _, rest = text.partition("\n")
    said = f"{given.resamples} resamples; at most {given.minutes:g} minutes of processor a study."
    if pair is not None:
        said += f" Pair of models, where a study needs one: {pair[0]}, then {pair[1]}."
    return f"{title}\n\n{said}\n{rest}"


@contextmanager
def limited(minutes: float) -> Iterator[None]:
    """Raises TooLong inside after so much processor time of the process."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, 60 * minutes)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
