"""The zoo on real matrices: `python -m benchmarks zoo NAME --out FOLDER`.

NAME is `routerdc`, `bbh`, `mmlu_pro` or `gsm8k`; the data are those of ROUTEYARD_DATA.
Each name builds labels and splits from the recorded outcomes, runs the zoo's full
protocol and writes its tables; RouterDC is also read off task by task, as its paper does.
`--splits N` draws N splits (seeds 42, 43, …) and adds a table over them, `--page FILE`
keeps the table, `--questions N` takes a drawn part of the questions.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.zoo.matrices import ENGLISH, MATRICES, single_rows
from routeyard.pipelines.common.matrix import Core


def macro(core: Core, done: Any, bench: Any, encoder: str) -> list[tuple[str, float]]:
    """(router, macro accuracy over tasks in per cent) of the winners, best first."""
    from routeyard.pipelines.evaluate.metrics.selection import at_choice, best
    from routeyard.pipelines.evaluate.zoo.run import scores

    test = core.take(core.rows(bench.scheme, "test"))
    found = []
    for router, kept in scores(done, encoder).items():
        choice = best(kept.astype(np.float64), ~np.isnan(test.labels), np.arange(core.n_models))
        hit = at_choice(test.labels, choice)
        each = [float(hit[test.tasks == task].mean()) for task in np.unique(test.tasks)]
        found.append((router, 100 * float(np.mean(each))))
    return sorted(found, key=lambda row: -row[1])


def first_to_fifth(core: Core, done: Any, bench: Any, encoder: str) -> dict[str, float] | None:
    """What this split's test questions say of the first and the fifth of its winners.

    Points between them, the paired standard error of that, the share of questions on
    which they do not do equally well, and the number of questions; None below five.
    """
    from routeyard.pipelines.evaluate.metrics.selection import at_choice, best
    from routeyard.pipelines.evaluate.zoo.run import scores

    test = core.take(core.rows(bench.scheme, "test"))
    test = test.take(np.flatnonzero(~np.all(np.isnan(test.labels), axis=1)))
    can, order = ~np.isnan(test.labels), np.arange(core.n_models)
    hits = [
        at_choice(test.labels, best(kept.astype(np.float64), can, order))
        for kept in scores(done, encoder).values()
    ]
    if len(hits) < 5:
        return None
    ranked = sorted(hits, key=lambda hit: -float(hit.mean()))
    gap = ranked[0] - ranked[4]
    return {
        "points": 100 * float(gap.mean()),
        "error": 100 * float(gap.std(ddof=1) / np.sqrt(len(gap))),
        "differ": float(np.mean(gap != 0)),
        "questions": len(gap),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("matrix", choices=sorted(MATRICES))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--encoders", default="tfidf")
    parser.add_argument("--routers", default="all")
    parser.add_argument("--seed", type=int, default=42, help="of the drawn splits")
    parser.add_argument("--splits", type=int, default=1, help="how many, drawn from --seed on")
    parser.add_argument("--questions", type=int, help="a drawn part of the questions")
    parser.add_argument("--page", type=Path, help="where to keep the table")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runner", choices=("threads", "dask"), default="threads")
    parser.add_argument("--cache", type=Path, default=Path("yard/cache/embeddings"))


def run(given: argparse.Namespace) -> dict[str, Any]:
    seeds = range(given.seed, given.seed + given.splits)
    found, pages, ranks = [], [], []
    for seed in seeds:
        out = given.out if given.splits == 1 else given.out / f"split-{seed}"
        figures, standings = one(given, seed, out)
        found.append(figures)
        ranks.append(standings)
        pages.append((out / "table.md").read_text(encoding="utf-8"))
    page = pages[0]
    if given.splits > 1:
        references = [figures["references"] for figures in found]
        page = over_splits(f"Zoo: {given.matrix}", _command(given), ranks, references)
        page += resolution([figures["first_to_fifth"] for figures in found])
        (given.out / "table.md").write_text(page, encoding="utf-8")
    if given.page is not None:
        given.page.parent.mkdir(parents=True, exist_ok=True)
        given.page.write_text(page, encoding="utf-8")
    return found[0] if given.splits == 1 else {str(s): f for s, f in zip(seeds, found, strict=True)}


def one(given: argparse.Namespace, seed: int, out: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """One split: (figures, router → test accuracy); tables are written under `out`."""
    from routeyard.flows.evaluation import zoo
    from routeyard.flows.evaluation.released import vectors
    from routeyard.pipelines.evaluate.experiment import registered
    from routeyard.pipelines.evaluate.zoo.report import overall

    data = Path(os.environ.get("ROUTEYARD_DATA", "data"))
    core, queries = MATRICES[given.matrix](data, seed)
    if given.questions is not None:
        core = core.take(part(core, given.questions))
    names = given.encoders.split(",")
    tables = {"queries": _of(queries, core.query_ids)}
    matrices = vectors(tables, core, names, scheme="dense", cache=given.cache)
    specs = registered(None if given.routers == "all" else given.routers.split(","))
    out.mkdir(parents=True, exist_ok=True)
    began, used = time.perf_counter(), time.process_time()
    done, bench = zoo.run(
        core, "dense", matrices, specs, out, title=f"Zoo: {given.matrix}",
        runner=given.runner, workers=given.workers, notes=[f"Made by `{_command(given)}`.", ""],
    )  # fmt: skip
    passed, cpu = time.perf_counter() - began, time.process_time() - used
    routers = {router for router, _ in done.rankings}
    ranked = sorted(routers, key=lambda r: -overall(done.rankings, r)[0])
    means = {r: overall(done.rankings, r)[0] for r in ranked}
    found: dict[str, Any] = {
        "cells": len(done.results),
        "wall_s": round(passed, 1),
        "cpu_s": round(cpu, 1),
        "cells_cpu_s": round(sum(r.cpu_s for r in done.results), 1),
        "routers": {r: round(100 * value, 2) for r, value in means.items()},
        "seconds": {r: _seconds(done, r) for r in ranked},
        "peak_mb": {r: round(max(s.peak_mb for k, s in done.rankings.items() if k[0] == r))
                    for r in ranked},
        "refused": {router: why for (router, _), why in sorted(done.refused.items())},
        "references": {k: round(100 * v, 2) for k, v in done.references.items()},
    }  # fmt: skip
    found["first_to_fifth"] = first_to_fifth(core, done, bench, names[0])
    if given.matrix == "routerdc":
        found["single"] = single_rows(data)
        page = (out / "table.md").read_text(encoding="utf-8")
        for encoder in names:
            rows = macro(core, done, bench, encoder)
            found[f"macro[{encoder}]"] = {router: round(value, 2) for router, value in rows}
            page += f"\nMacro over {', '.join(ENGLISH)}, {encoder}, seed 42 of the winner:\n\n"
            page += "".join(f"- {router}: {value:.2f}\n" for router, value in rows)
        (out / "table.md").write_text(page, encoding="utf-8")
    return found, means


def part(core: Core, n: int) -> Any:
    """Rows of n questions, the same share of every split, drawn with seed 0."""
    rows = np.random.default_rng(0).permutation(core.n_queries)
    splits = core.splits["dense"]
    taken = [
        rows[splits[rows] == name][: round(n * float(np.mean(splits == name)))]
        for name in ("train", "validation", "test")
    ]
    return np.sort(np.concatenate(taken))


def over_splits(
    title: str,
    command: str,
    ranks: Sequence[Mapping[str, float]],
    references: Sequence[Mapping[str, float]],
) -> str:
    """The table over splits: mean ± sd, and the difference from the first with its error.

    The difference is taken split by split: a split that is easy is easy for all.
    """
    routers = sorted(
        set.intersection(*(set(one) for one in ranks)),
        key=lambda r: -float(np.mean([one[r] for one in ranks])),
    )
    first = np.array([one[routers[0]] for one in ranks])
    lines = [
        f"# {title}", "", f"Made by `{command}`.", "",
        f"Mean ± sd over {len(ranks)} drawn splits of routing accuracy on test, per cent; behind: "
        "mean difference from the first row ± its standard error, in points.", "",
        "| router | accuracy | behind |", "| --- | ---: | ---: |",
    ]  # fmt: skip
    for router in routers:
        own = np.array([one[router] for one in ranks])
        behind = 100 * (own - first)
        error = behind.std(ddof=1) / np.sqrt(len(ranks))
        lines.append(
            f"| {router} | {100 * own.mean():.2f} ± {100 * own.std(ddof=1):.2f} | "
            f"{behind.mean():+.2f} ± {error:.2f} |"
        )
    top = [100 * float(np.mean([one[r] for one in ranks])) for r in routers[:5]]
    lines += ["", f"Spread of the top five: {max(top) - min(top):.2f} points.", ""]
    lines += ["| reference | accuracy |", "| --- | ---: |"]
    for name in references[0]:
        values = [one[name] for one in references]
        lines.append(f"| {name} | {np.mean(values):.2f} ± {np.std(values, ddof=1):.2f} |")
    return "\n".join(lines) + "\n"


def resolution(found: Sequence[Mapping[str, float] | None], asked: float = 0.6) -> str:
    """Whether a split of this size can tell routers apart that differ by `asked` points.

    Two routers that do not do equally well on a share d of n questions differ by a mean with
    a standard error of at most √(d/n).
    """
    known = [one for one in found if one is not None]
    if not known:
        return ""
    each = "; ".join(f"{one['points']:.2f} ± {one['error']:.2f}" for one in known)
    error = float(np.mean([one["error"] for one in known]))
    differ = float(np.mean([one["differ"] for one in known]))
    n = known[0]["questions"]
    need = (1.96 * 100 / asked) ** 2 * differ
    can = "can" if asked >= 1.96 * error else "cannot"
    return (
        f"\nFrom the first to the fifth within each split of {n:,} test questions: {each} points "
        f"(paired standard error). {asked} points are {asked / error:.1f} standard errors: one "
        f"split {can} tell them from none. The two do not do equally well on {differ:.0%} of the "
        f"questions; to resolve {asked} points at 95 % takes about {round(need, -2):,.0f} test "
        "questions.\n"
    )


def _seconds(done: Any, router: str) -> float:
    """Processor seconds of all cells of a router."""
    return round(float(sum(r.cpu_s for r in done.results if r.cell.router == router)), 1)


def _of(queries: pa.Table, ids: Sequence[str]) -> pa.Table:
    """The questions of a core, in the table's order."""
    import pyarrow.compute as pc

    return queries.filter(pc.is_in(queries.column("query_id"), pa.array(ids)))


def _command(given: argparse.Namespace) -> str:
    """What makes the page, with every setting that is not the default."""
    said = f"python -m benchmarks zoo {given.matrix} --encoders {given.encoders}"
    for name, default in (("routers", "all"), ("seed", 42), ("splits", 1), ("questions", None)):
        value = getattr(given, name)
        said += "" if value == default else f" --{name} {value}"
    return said
