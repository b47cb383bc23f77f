"""Systems of the five papers beside implementations from scratch: the largest difference of each.

`python -m benchmarks papers --write docs/papers.md` runs each comparison and writes the table
there. A comparison is a test that computes the paper's formula once more, in plain loops that
share no code with ours; every number that it compares is recorded.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- differences: begin -->", "<!-- differences: end -->"


class Compared(NamedTuple):
    """A system, the paper it is from, what it is compared with, and the test that does it."""

    paper: str
    system: str
    against: str
    test: str


_ROUTERS = "tests/routers/"
_METRICS = "tests/evaluate/metrics/test_registry.py::test_every_metric_equals_its_plain_loop"
_LOOPS = f"{_ROUTERS}test_gradients.py::test_a_networks_loss_and_gradient_equal_loops"
_LOSS = "loss and gradient, in loops over its formula"
_NETWORKS = {
    "MESS+": "mess-plus", "CP-Router": "cp-router", "P2L": "p2l", "EmbedLLM": "embedllm",
    "ModelSpider": "model-spider", "MIRT": "mirt", "IRT-Router": "nirt", "Zooter": "zooter",
    "EquiRouter": "equirouter", "HybridLLM": "hybrid-llm", "RouterDC": "routerdc",
}  # fmt: skip
COMPARISONS = (
    *(
        Compared("Plateau", f"router {name}", _LOSS, f"{_LOOPS}[{ours}]")
        for name, ours in _NETWORKS.items()
    ),
    Compared("Plateau", "router RouterDC, published loss", "its code's steps, row by row",
             f"{_ROUTERS}test_published.py::test_routerdc_draws_questions_to_models_as_published"),
    Compared("Plateau", "router Avengers-Pro", "clusters, ranks and choices from its paper",
             f"{_ROUTERS}test_published.py::test_avengers_pro_chooses_as_its_paper_computes"),
    Compared("Plateau", "router EmbedLLM, scores", "its formula on the fitted arrays",
             f"{_ROUTERS}test_published.py::test_embedllm_scores_as_its_formula"),
    Compared("Plateau", "router IRT-Router, scores", "its formula on the fitted arrays",
             f"{_ROUTERS}test_published.py::test_nirt_scores_as_its_formula"),
    Compared("Plateau, RouterBench+, CSCR, RouterXBench, confidence router",
             "every metric (utility, AUDC, area, QNC, peak, AUROC, LPM, MPM, HCR, CPT, …)",
             "a plain loop over questions, on awkward matrices", _METRICS),
    Compared("RouterXBench", "ProbeDirichlet and the other probes",
             "scores and gradients, in loops over layers",
             f"{_ROUTERS}test_probes.py::test_scores_and_gradients_are_those_of_plain_loops"),
    Compared("Confidence router", "semantic entropy, four estimators", "the formulas as they stand",
             "tests/curate/test_entropy.py::test_equals_the_formulas"),
    Compared("CSCR", "cost-spectrum loss (equation 8)", "loops over questions, bands and models",
             f"{_ROUTERS}test_contrastive.py::test_the_spectrum_loss_is_equation_8"),
    Compared("CSCR", "plain contrastive loss (equation 6)", "loops over questions and models",
             f"{_ROUTERS}test_contrastive.py::"
             "test_the_plain_loss_is_equation_6_and_the_spectrum_of_one_band"),
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="words of a system; the others are left out")
    parser.add_argument("--write", type=Path, help="page whose table is written anew")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    chosen = [one for one in COMPARISONS if arguments.only.lower() in one.system.lower()]
    rows = [{**one._asdict(), **largest(one.test)} for one in chosen]
    if arguments.write:
        page = arguments.write.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        old, _, after = rest.partition(END)
        text = f"{before}{BEGIN}\n{table(rows, old)}{END}{after}"
        arguments.write.write_text(text, encoding="utf-8")
    return {"rows": rows, "exit": int(any(row["exit"] for row in rows))}


def largest(test: str) -> dict[str, Any]:
    """How many numbers a test compares, and the largest difference between two of them."""
    import pytest

    seen: list[float] = []
    approx: Any = type(pytest.approx(1.0))  # of arrays and lists too, number by number
    plain = approx.__eq__

    def recorded(self: Any, actual: Any) -> bool:
        same: bool = plain(self, actual)
        number = isinstance(self.expected, float | int) and np.ndim(actual) == 0
        if same and number and actual is not None:
            seen.append(abs(float(actual) - float(self.expected)))
        return same

    approx.__eq__ = recorded
    try:
        code = pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", test])
    finally:
        approx.__eq__ = plain
    finite = [one for one in seen if one == one and one != float("inf")]
    return {"compared": len(finite), "largest": max(finite, default=None), "exit": int(code)}


def table(rows: list[dict[str, Any]], old: str = "") -> str:
    """The rows as Markdown, in the order of `COMPARISONS`; of those not run, the old ones."""
    kept = {line.split(" | ")[1]: line for line in old.splitlines() if line.count(" | ") > 4}
    lines = ["| Paper | System | Compared with | Numbers | Largest difference | Test |",
             "| --- | --- | --- | ---: | ---: | --- |"]  # fmt: skip
    new = {row["system"]: row for row in rows}
    for one in COMPARISONS:
        row = new.get(one.system, {})
        if not row:
            lines += [kept[one.system]] if one.system in kept else []
            continue
        far = "–" if row["largest"] is None else f"{row['largest']:.1e}"
        file, _, name = row["test"].partition("::")
        lines.append(
            f"| {row['paper']} | {row['system']} | {row['against']} | {row['compared']:,} | {far} "
            f"| `{file}`, `{name}` |"
        )
    return "\n".join(lines) + "\n"
