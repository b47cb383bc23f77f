"""Rule scoring of recorded responses against plain math-verify on the same responses.

GSM8K (56,717 responses): `responses_per_s` is what one core does with the scorer
`math` (`numeric` is given beside it), in CPU seconds, the symbolic worker and its
start included. `ratio_to_math_verify` compares it with
`verify(parse(gold), parse(output))` on a seeded sample of the same responses, since
that takes minutes. `symbolic_share` is the share of responses for which the worker
was asked. `math_like` holds the same figures for 800 samples of 100 MATH questions,
whole outputs and the answers that upstream extracted. Reads ROUTEYARD_DATA
(`zeroeval_gsm/`, `math_samples/`).
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

#: (question, gold, output, upstream's verdict)
Row = tuple[str, str, str, bool]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--responses", type=int, default=0, help="first N responses; 0 for all")
    parser.add_argument("--math-verify-sample", type=int, default=1_500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=["gsm8k", "math_like"], help="one set")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if arguments.only != "math_like":
        found |= _gsm8k(arguments)
    if arguments.only != "gsm8k":
        found["math_like"] = {
            "whole_outputs": _math_like(_math_rows("output")),
            "extracted_answers": _math_like(_math_rows("pred")),
        }
    return found


def _math_like(rows: list[Row]) -> dict[str, Any]:
    seconds, asked, agreed = _ours("math", rows)
    theirs, theirs_agreed = _math_verify(rows)
    return {
        "responses": len(rows),
        "responses_per_s": round(len(rows) / seconds),
        "math_verify_responses_per_s": round(len(rows) / theirs),
        "ratio_to_math_verify": round(theirs / seconds, 2),
        "symbolic_share": round(asked / len(rows), 5),
        "agreement_with_upstream": round(agreed / len(rows), 5),
        "math_verify_agreement_with_upstream": round(theirs_agreed / len(rows), 5),
    }


def _gsm8k(arguments: argparse.Namespace) -> dict[str, Any]:
    rows = _rows(arguments.responses)
    math_seconds, asked, agreed = _ours("math", rows)
    numeric_seconds, _, numeric_agreed = _ours("numeric", rows)
    sample = _sample(rows, arguments.math_verify_sample, arguments.seed)
    theirs, theirs_agreed = _math_verify(sample)
    per_s = len(rows) / math_seconds
    return {
        "responses": len(rows),
        "responses_per_s": round(per_s),
        "numeric_responses_per_s": round(len(rows) / numeric_seconds),
        "math_verify_responses_per_s": round(len(sample) / theirs),
        "ratio_to_math_verify": round(per_s / (len(sample) / theirs), 2),
        "symbolic_share": round(asked / len(rows), 5),
        "agreement_with_upstream": round(agreed / len(rows), 5),
        "numeric_agreement_with_upstream": round(numeric_agreed / len(rows), 5),
        "math_verify_agreement_with_upstream": round(theirs_agreed / len(sample), 5),
        "math_verify_sample": len(sample),
    }


def _data() -> Path:
    folder = os.environ.get("ROUTEYARD_DATA")
    if not folder:
        raise SystemExit("ROUTEYARD_DATA does not name a folder of recorded outputs")
    return Path(folder)


def _math_rows(column: str) -> list[Row]:
    """The 800 MATH samples; an extracted answer is in a box, as it did."""
    import pyarrow.parquet as pq

    data = _data() / "math_samples"
    queries = {row["query_id"]: row for row in pq.read_table(data / "queries.parquet").to_pylist()}
    rows = []
    for row in pq.read_table(data / "samples.parquet").to_pylist():
        query = queries[row["query_id"]]
        output = row["output"] if column == "output" else f"\\boxed{{{row[column]}}}"
        rows.append((query["question"], query["answer"], output, bool(row["correct"])))
    return rows


def _rows(limit: int) -> list[Row]:
    import pyarrow.parquet as pq

    data = _data() / "zeroeval_gsm"
    queries = {
        row["query_id"]: (row["question"], row["gold_answer"])
        for row in pq.read_table(data / "queries.parquet").to_pylist()
    }
    keys = [("query_id", "ascending"), ("model", "ascending")]
    responses = pq.read_table(data / "responses.parquet").to_pylist()
    upstream = {
        (row["query_id"], row["model"]): row["correct"]
        for row in pq.read_table(data / "upstream_labels.parquet").to_pylist()
    }
    responses.sort(key=lambda row: tuple(str(row[key]) for key, _ in keys))
    rows = [
        (*queries[row["query_id"]], row["output"], upstream[row["query_id"], row["model"]])
        for row in responses
    ]
    return rows[:limit] if limit else rows


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _ours(name: str, rows: list[Row]) -> tuple[float, int, int]:
    """(CPU seconds, responses that needed the worker, agreements with upstream)."""
    from routeyard.pipelines.label.scorers import SCORERS, symbolic
    from routeyard.pipelines.label.scorers.scorer import ScoringInput

    read = SCORERS.get(name).read
    for question, gold, output, _ in rows[:5]:  # compiles, as math-verify's first comparison does
        read(ScoringInput(question, (gold,)), output)
    symbolic.close()
    began = _cpu()
    asked = agreed = 0
    with patch.object(symbolic, "same", wraps=symbolic.same) as same:
        for question, gold, output, correct in rows:
            before = same.call_count
            reading = read(ScoringInput(question, (gold,)), output)
            asked += same.call_count > before
            agreed += (reading.outcome == "correct") == correct
    symbolic.close()  # the worker's CPU seconds count once it has ended
    return _cpu() - began, asked, agreed


def _sample(rows: list[Any], size: int, seed: int) -> list[Any]:
    import numpy as np

    chosen = np.random.default_rng(seed).permutation(len(rows))[:size]
    return [rows[index] for index in sorted(chosen.tolist())]


def _math_verify(rows: list[Row]) -> tuple[float, int]:
    """CPU seconds and agreements of math-verify with its defaults, time-outs off."""
    from math_verify import parse, verify

    verify(parse("1"), parse("1"))  # imports and compiles
    began = time.process_time()
    agreed = 0
    for _, gold, output, correct in rows:
        # Its reader wants mathematics in dollars; ours is given the reference unchanged.
        bare = gold.lstrip("# ")
        wanted = parse(f"${bare}$" if "\\" in bare else bare, parsing_timeout=None)
        got = parse(output, parsing_timeout=None)
        agreed += bool(verify(wanted, got, timeout_seconds=None)) == correct
    return time.process_time() - began, agreed
