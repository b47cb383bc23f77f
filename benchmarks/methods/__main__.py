"""The papers' own routers on recorded data: small releases, and one page of their studies.

    python -m benchmarks.methods --data $ROUTEYARD_DATA --mmlu-pro RELEASE --out results

* CSCR on text footprints of MMLU-Pro: of a built release (`routeyard build mmlu_pro`) the
  models whose size is known, a seeded third of them unseen, descriptors from validation answers.
* Confidence-driven routing on `math_samples`: one answer of a model against the majority of
  its eight, preferences from their semantic entropy and from the reward model's scores.
* Probes on planted hidden states, whose one knowing layer is known: a test of the studies, not
  of a model. The commands for a real one are on the page.
* The real model of `routeyard demo --real`: `--only real --real RELEASE --workspace YARD`.
* Simulated agents, routed per question and per step: `--only agents`.
* Encoders trained end to end, on a few questions of RouterDC's pool and MMLU-Pro.

What is run with `--only` takes the place of its own parts of the page.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.methods import real, tuned
from benchmarks.methods.index import index
from benchmarks.methods.math_samples import math_samples
from benchmarks.methods.mmlu_pro import mmlu_pro
from benchmarks.methods.planted import planted
from benchmarks.studies.page import cut
from routeyard.extensions.tuning.training import HEADS
from routeyard.flows.console import line
from routeyard.flows.evaluation import evaluate as do
from routeyard.flows.evaluation.released import read_release, with_beside, with_embeddings
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.schemas.recipe import ENCODER

PARTS = ["cscr", "ablations", "confidence", "probes", "tuning", "real", "agents"]
_CSCR = [n for n in STUDIES.names() if n.startswith("cscr_") or n == "descriptor_similarity"]
ABLATIONS = [n for n in _CSCR if STUDIES.get(n).rows == "CSCR with"]
CSCR = [n for n in _CSCR if n not in ABLATIONS]
CONFIDENCE = ["confidence_rates", "confidence_sizes", "answer_quality", "router_ability"]
PROBES = [n for n in STUDIES.names() if n.startswith(("probe_", "router_a"))]
PROBES.remove("router_accuracy")
TUNING = ["tuning_ablation", "tuning_gains"]


def main(arguments: list[str] | None = None) -> None:
    """Make the releases, run the studies, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--mmlu-pro", type=Path, help="a built release of `mmlu_pro`")
    parser.add_argument("--real", type=Path, help="a built release of `real_tiny`")
    parser.add_argument("--workspace", type=Path, default=Path("yard"), help="where it was built")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--cache", type=Path, default=Path("yard/cache/embeddings"))
    parser.add_argument("--page", type=Path, default=Path("pipelines/evaluate/studies/METHODS.md"))
    parser.add_argument("--questions", type=int, help="of MMLU-Pro, drawn; default all")
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--full", action="store_true", help="tuning on all questions, on a GPU")
    parser.add_argument("--heads", help="of the trainable ones, commas between; default all")
    parser.add_argument("--only", choices=[*PARTS, "page"], action="append", help="again for more")
    given = parser.parse_args(arguments)
    wanted = given.only or PARTS
    if {"cscr", "ablations"} & set(wanted) and given.mmlu_pro is not None:
        folder = mmlu_pro(
            given.mmlu_pro, given.out / "mmlu_pro_sized", given.cache, given.questions
        )
        names = [*(CSCR if "cscr" in wanted else []), *(ABLATIONS if "ablations" in wanted else [])]
        _studies(names, folder, given)
    if "confidence" in wanted:
        folder = math_samples(given.data, given.out / "math_samples")
        _studies(CONFIDENCE, folder, given, embed=True)
    if "probes" in wanted:
        three = ("planted_a", "planted_b", "planted_c")
        a, b, c = (planted(given.out / n, k) for k, n in enumerate(three))
        joined, tested = {b.name: read_release(b)}, {c.name: read_release(c)}
        _studies(PROBES, a, given, pair=("small", "large"), joined=joined, tested=tested)
    if "tuning" in wanted:
        heads = tuple(given.heads.split(",")) if given.heads else tuple(HEADS)
        folders = []
        for name in tuned.MATRICES:
            folders.append(tuned.run(name, given.data, given.out, heads, full=given.full))
            _tuned(folders[-1], given.out / "tuned" / folders[-1].name, given)
        _tuned(folders[0], given.out / "tuned", given, ["tuning_across"], folders[1])
    if "real" in wanted and given.real is not None:
        tables = real.beside(given.real, given.out / "real", given.workspace)
        _studies(real.STUDIES, given.real, given, tables=tables, embed=True, pair=real.PAIR)
        about = given.out / "studies" / "real_tiny" / "a_release.md"
        about.write_text(real.told(tables), encoding="utf-8")
    if "agents" in wanted:
        _studies(["agentic_curve"], real.agents(given.out), given, pair=("sim-heron", "sim-ibis"))
    _page(given)


def _tuned(
    folder: Path, runs: Path, given: Any, names: Sequence[str] = TUNING, other: Path | None = None
) -> None:
    """Studies of encoders trained on a release, or on it and another one."""
    files = sorted(runs.glob("tuned.parquet")) or sorted(runs.glob("*/tuned.parquet"))
    tables = with_beside(read_release(folder), files)
    joined = {} if other is None else {other.name: read_release(other)}
    one = do.context_of(folder, tables, resamples=given.resamples, joined=joined)
    out = given.out / "studies" / folder.name
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        do.run_study(name, one, folder, out)
        line("methods", f"{name} of {folder.name}")


def _studies(names: Sequence[str], folder: Path, given: Any, **how: Any) -> None:
    """The studies of one release, whose evaluations are made once for all of them."""
    read = how.pop("tables", None) or read_release(folder)
    lacks = how.pop("embed", False) and "embeddings" not in read
    tables = with_embeddings(read, None, lacks, given.cache, ENCODER if lacks else None)
    one = do.context_of(folder, tables, resamples=given.resamples, **how)
    out = given.out / "studies" / do.named(folder)[0]
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        do.run_study(name, one, folder, out, one_of_many=True)
        line("methods", f"{name} of {folder.name}")


def _page(given: Any) -> None:
    drawn = "all questions" if given.questions is None else f"{given.questions:,} questions"
    parts = [
        "# The papers' own routers\n\nMade by `python -m benchmarks.methods`, which says how its "
        "small releases are made from recorded data. Intervals are 95 %, by "
        f"{given.resamples} resamples.\n\n"
        f"- `mmlu_pro_sized`: {drawn} of MMLU-Pro with the recorded answers of the models whose "
        "size is known; cost is the number of parameters; descriptors are text footprints (there "
        "are no log-probabilities); a third of the models is unseen.\n"
        "- `math_samples`: one model, eight samples of 100 MATH questions; `small` is one answer, "
        "`large` the majority of eight. The eight disagree on 12 questions, so there is little to "
        "gain: 40 questions are tested.\n"
        "- `planted_*`: made-up hidden states of which one layer knows. For a real model: "
        "`routeyard hidden-states RELEASE --model FOLDER --model-id ID --out states`, then "
        "`routeyard study router_ability RELEASE --pair SMALL,LARGE --also states "
        "[--join OTHER] [--test-on THIRD]`.\n"
        "- `real_tiny`: a real model of 135M parameters on one machine; what its release holds "
        "is in a separate section. Its figures are of answers that Routeyard's former server of "
        "the model gave; llama.cpp's own server gives others.\n"
        "- `agent_demo`: made-up two-step questions and SIMULATED agents that search: it shows "
        "what the study does, and says nothing about any real model.\n"
        f"- `routerdc_few`, `mmlu_pro_few`: {tuned.FEW['train']} train, "
        f"{tuned.FEW['validation']} validation and {tuned.FEW['test']} test questions of "
        f"RouterDC's English tasks and of MMLU-Pro; MiniLM, {tuned.SETTINGS.tokens} tokens of a "
        f"question, {tuned.SETTINGS.epochs} epochs from the frozen head, one seed, one core. A "
        "gain of exactly 0.00 means that no step routed better on validation than the frozen "
        "start, which was kept. Sections below are of what was run; `--only tuning` goes on "
        "with the heads and releases that are missing. In full, on an accelerator: "
        "`python -m benchmarks.methods --only tuning --full`; the "
        "paper's own cells: `routeyard build nine_by_300k` (`routeyard plan nine_by_300k` says "
        "what that costs), then, with `--scheme dense` for 30k and `--scheme sparse` for 300k, "
        "`routeyard zoo tune yard/releases/nine_by_300k/1.0.0 --encoders "
        "answerdotai/ModernBERT-base,answerdotai/ModernBERT-large --seeds 42,1337,2026,7,99 "
        "--device cuda --precision bf16 --micro 16 --out tuned`, which says what it takes before "
        "it loads weights (`--plan`: and stops).\n"
    ]
    made = [
        cut(file.read_text(encoding="utf-8"))
        for folder in sorted((given.out / "studies").iterdir())
        for file in sorted(folder.glob("*.md"))
    ]
    before = given.page.read_text(encoding="utf-8") if given.page.is_file() else ""
    sections = merged(before, made)
    results = (Path(__file__).parents[2] / "pipelines/evaluate/studies/RESULTS.md").read_text(
        "utf-8"
    )
    parts.append(index([*sections, results]))
    given.page.write_text("\n".join(parts + sections), encoding="utf-8")


def merged(page: str, made: Sequence[str]) -> list[str]:
    """Sections of a page, those made anew in the place of their namesakes, others at the end."""
    had = [f"### {text.rstrip()}\n" for text in page.split("\n### ")[1:]]
    found = {_key(text): text for text in had}
    found |= {_key(text): text for text in made}
    return list(found.values())


def _key(section: str) -> tuple[str, str]:
    """A section's title and the release it is of."""
    release = re.search(r"Release `([^`]+)`", section)
    return section.partition("\n")[0], release[1] if release else ""


if __name__ == "__main__":
    main()
