"""Meaning clusters: batched rounds with cheap equality and a cache against the plain loop.

Both cluster the same answers through the same scorer (answer equivalence, both
directions), each in a separate process that starts with empty caches; the
clusters must be equal. `speedup_vs_loop` is for answers that disagree as often
as real ones do, `speedup_all_disagree` for a pool that never agrees with itself.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

#: What clusters: answers, scorer → (clusters per prompt, CPU seconds, questions asked).
Clusterer = Callable[[list[list[str]], str], tuple[list[list[int]], float, int]]
QUESTION = "How many?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prompts", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument(
        "--disagreement",
        type=float,
        default=0.12,
        help="share of prompts whose samples disagree (as in the MATH samples of one real model)",
    )
    parser.add_argument("--scorer", default="numeric", help="rule scorer that decides equivalence")
    parser.add_argument("--seed", type=int, default=0)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    figures = compare(arguments, arguments.disagreement)
    hardest = compare(arguments, 1.0)
    return {
        "prompts": arguments.prompts,
        "samples": arguments.samples,
        "disagreement": arguments.disagreement,
        "scorer": arguments.scorer,
        **figures,
        "speedup_all_disagree": hardest["speedup_vs_loop"],
        "entailment_calls_all_disagree": hardest["entailment_calls"],
        "entailment_calls_naive_all_disagree": hardest["entailment_calls_naive"],
    }


def compare(arguments: argparse.Namespace, disagreement: float) -> dict[str, Any]:
    answers = sampled_answers(arguments.prompts, arguments.samples, disagreement, arguments.seed)
    ours, batched_s, calls = _alone(batched, answers, arguments.scorer)
    plain, loop_s, asked = _alone(loop, answers, arguments.scorer)
    return {
        "clusters": sum(max(row) + 1 for row in plain),
        "clusters_equal": ours == plain,
        "batched_cpu_s": round(batched_s, 3),
        "loop_cpu_s": round(loop_s, 3),
        "speedup_vs_loop": round(loop_s / batched_s, 2),
        "entailment_calls": calls,
        "entailment_calls_naive": asked,
    }


def batched(answers: list[list[str]], scorer: str) -> tuple[list[list[int]], float, int]:
    from routeyard.pipelines.curate.entailment import scorer_equivalence
    from routeyard.pipelines.curate.preference import AnswerGroup, answer_key, cluster

    backend = scorer_equivalence()
    started = time.process_time()
    groups = [
        AnswerGroup(QUESTION, tuple(row), tuple(answer_key(a, a) for a in row), scorer)
        for row in answers
    ]
    found = cluster(groups, backend)
    elapsed = time.process_time() - started
    return [[] if a is None else a.tolist() for a in found.assignments], elapsed, found.calls


def loop(answers: list[list[str]], scorer: str) -> tuple[list[list[int]], float, int]:
    from routeyard.pipelines.curate.entailment import Pair, scorer_equivalence

    backend = scorer_equivalence()
    asked = 0

    def entails(premise: str, hypothesis: str) -> bool:
        nonlocal asked
        asked += 1
        return bool(backend.entails([Pair(QUESTION, premise, hypothesis, scorer)])[0])

    started = time.process_time()
    found = []
    for row in answers:
        representatives: list[str] = []
        clusters = []
        for answer in row:
            for number, known in enumerate(representatives):
                if entails(known, answer) and entails(answer, known):
                    clusters.append(number)
                    break
            else:
                clusters.append(len(representatives))
                representatives.append(answer)
        found.append(clusters)
    return found, time.process_time() - started, asked


def sampled_answers(prompts: int, samples: int, disagreement: float, seed: int) -> list[list[str]]:
    """Seeded answers as models write them: mostly one value, some others, in several forms.

    Where samples disagree, the share of the main answer is uniform on 0.3 to 0.9.
    One answer in four is written in another form than digits alone, one in
    twenty with a unit (4 % of what the scorer extracts from GSM8K answers is no
    plain numeral).
    """
    rng = np.random.default_rng(seed)
    base = rng.integers(2, 100_000, prompts)
    share = np.where(rng.random(prompts) < disagreement, rng.uniform(0.3, 0.9, prompts), 1.0)
    main = rng.random((prompts, samples)) < share[:, None]
    values = np.where(main, base[:, None], base[:, None] + rng.integers(1, 6, (prompts, samples)))
    forms = rng.choice(5, (prompts, samples), p=[0.75, 0.1, 0.05, 0.05, 0.05])
    write = (str, "{:,}".format, "${}".format, "{}.0".format, "{} apples".format)
    return [
        [write[form](value) for value, form in zip(row, kinds, strict=True)]
        for row, kinds in zip(values.tolist(), forms.tolist(), strict=True)
    ]


def _alone(
    clusterer: Clusterer, answers: list[list[str]], scorer: str
) -> tuple[list[list[int]], float, int]:
    """Run in a fresh process: the scorers remember what they have read."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(clusterer, answers, scorer).result()
