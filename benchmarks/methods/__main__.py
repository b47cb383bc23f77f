"""The papers' own routers on recorded data: small releases, and one page of their studies.

    python -m benchmarks.methods --data $ROUTEYARD_DATA --mmlu-pro RELEASE --out results

* CSCR on text footprints of MMLU-Pro: of a built release (`routeyard build mmlu_pro`) the
  models whose size is known, a seeded third of them unseen, descriptors from validation answers.
* Confidence-driven routing on `math_samples`: one answer of a model against the majority of
  its eight, preferences from their semantic entropy and from the reward model's scores.
* Probes on planted hidden states, whose one knowing layer is known: a test of the studies, not
  of a model. The commands for a real one stand on the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.methods.math_samples import math_samples
from benchmarks.methods.mmlu_pro import mmlu_pro
from benchmarks.methods.planted import planted
from benchmarks.studies import cut
from flows.actions import study as do
from flows.actions.evaluate import ENCODER
from flows.actions.released import read_release, with_embeddings
from flows.show.console import line
from pipelines.studies import STUDIES

PARTS = ["cscr", "ablations", "confidence", "probes"]
_CSCR = [n for n in STUDIES.names() if STUDIES.targets[n].startswith("pipelines.studies.cscr")]
ABLATIONS = [n for n in _CSCR if "ablations" in STUDIES.targets[n]]
CSCR = [n for n in _CSCR if n not in ABLATIONS]
CONFIDENCE = ["confidence_rates", "confidence_sizes", "answer_quality", "router_ability"]
PROBES = [n for n in STUDIES.names() if n.startswith(("probe_", "router_a"))]
PROBES.remove("router_accuracy")


def main(arguments: list[str] | None = None) -> None:
    """Make the releases, run the studies, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--mmlu-pro", type=Path, help="a built release of `mmlu_pro`")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--cache", type=Path, default=Path("yard/cache/embeddings"))
    parser.add_argument("--page", type=Path, default=Path("pipelines/studies/METHODS.md"))
    parser.add_argument("--questions", type=int, help="of MMLU-Pro, drawn; default all")
    parser.add_argument("--resamples", type=int, default=500)
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
    _page(given)


def _studies(names: Sequence[str], folder: Path, given: Any, **how: Any) -> None:
    """The studies of one release, whose evaluations are made once for all of them."""
    tables = with_embeddings(
        read_release(folder), None, how.pop("embed", False), given.cache, ENCODER
    )
    one = do.given_of(folder, tables, resamples=given.resamples, **how)
    out = given.out / "studies" / folder.name
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        do.run_study(name, one, folder, out)
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
    ]
    for folder in sorted((given.out / "studies").iterdir()):
        parts += [cut(f.read_text(encoding="utf-8")) for f in sorted(folder.glob("*.md"))]
    given.page.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
