"""Our labels beside those that upstream stored, response by response, on recorded outputs.

Reads all label data below ROUTEYARD_DATA (`agreement_more` the smaller sets). Writes
every response on which the two readings differ to `OUT/<set>_differing.csv`
(`mmlu_pro_differing.parquet`), with both readings, so that a person can judge.
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path
from typing import Any

from benchmarks.answers.agreement_more import MORE, math_verify_cases
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import DATA_HINT
from routeyard.pipelines.label.scorers import SCORERS, symbolic
from routeyard.pipelines.label.scorers.scorer import ScoringInput


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the differences")
    parser.add_argument("--only", choices=["gsm8k", "mmlu_pro", *MORE], help="one set")
    parser.add_argument("--math-verify-tests", type=Path, help="tests/ of its source distribution")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    folder = os.environ.get("ROUTEYARD_DATA")
    if not folder:
        raise SourceError("ROUTEYARD_DATA is not set", next_step=DATA_HINT)
    arguments.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    if arguments.math_verify_tests is not None:
        found["math_verify"], differing = math_verify_cases(arguments.math_verify_tests)
        _write(differing, arguments.out / "math_verify_differing.csv")
        symbolic.close()
        return found
    if arguments.only in (None, "gsm8k"):
        found["gsm8k"] = gsm8k(Path(folder) / "zeroeval_gsm", arguments.out)
    if arguments.only in (None, "mmlu_pro"):
        found["mmlu_pro"] = mmlu_pro(Path(folder) / "mmlu_pro", arguments.out)
    for name, measure in MORE.items():
        if arguments.only in (None, name):
            found[name], differing = measure(Path(folder))
            _write(differing, arguments.out / f"{name}_differing.csv")
    symbolic.close()
    return found


def _write(rows: list[dict[str, Any]], path: Path) -> None:
    if rows:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def gsm8k(data: Path, out: Path) -> dict[str, Any]:
    """Agreement of `numeric` with ZeroEval's rule, and accuracies against the published table."""
    import pandas as pd

    read = SCORERS.get("numeric").read
    queries = pd.read_parquet(data / "queries.parquet").set_index("query_id")
    gold = queries["gold_answer"].str.lstrip("# ")
    asked = {i: ScoringInput(str(queries.at[i, "question"]), (gold[i],)) for i in queries.index}
    keys = ["query_id", "model"]
    responses = pd.read_parquet(data / "responses.parquet").astype(dict.fromkeys(keys, str))
    upstream = pd.read_parquet(data / "upstream_labels.parquet").astype(dict.fromkeys(keys, str))
    both = responses.merge(upstream, on=keys, validate="one_to_one")
    readings = [read(asked[i], text) for i, text in zip(both.query_id, both.output, strict=True)]
    both["ours"] = [one.outcome == "correct" for one in readings]
    both["our_reading"] = [one.reason for one in readings]
    both["gold"] = both.query_id.map(gold)
    differ = both[both.ours != both.correct]
    columns = [*keys, "gold", "correct", "extracted", "ours", "our_reading", "output"]
    differ[columns].to_csv(out / "gsm8k_differing.csv", index=False)
    published = pd.read_csv(data / "published.csv").dropna(subset=["model"]).set_index("model").acc
    off = (100 * both.groupby("model").ours.mean() - published).dropna().abs()
    return {
        "responses": len(both),
        "agreement": float((both.ours == both.correct).mean()),
        "differing": len(differ),
        "models": len(off),
        "models_within_half_a_point": int((off <= 0.5).sum()),
        "points_off": {model: round(float(v), 2) for model, v in off[off > 0.5].items()},
    }


def mmlu_pro(data: Path, out: Path) -> dict[str, Any]:
    """Agreement of `mcq` with the stored letters per run, and runs with a constant fill-in.

    Agreement is over responses in which both name one option; `several_options` counts the
    contested ones that name more than one in a breath.
    """
    import pandas as pd

    read = SCORERS.get("mcq").read
    queries = pd.read_parquet(data / "queries.parquet").set_index("question_id")
    variants = pd.read_parquet(data / "question_variants.parquet")
    asked = _asked(queries, variants)
    rows = pd.read_parquet(data / "responses.parquet")
    readings = [
        read(asked.get((question, model)) or asked[question, None], output)
        for question, model, output in zip(
            rows.question_id, rows.model.astype(str), rows.output, strict=True
        )
    ]
    rows["ours"] = [one.extracted for one in readings]
    rows["outcome"] = [one.outcome for one in readings]
    rows["conflict"] = [one.conflict for one in readings]
    rows["pred"] = rows.pred.astype(object)
    decided = rows.ours.notna() & rows.pred.notna()
    rows["agree"] = rows.ours == rows.pred
    differ = rows[decided & ~rows.agree]
    differ[["question_id", "model", "pred", "ours", "outcome", "output"]].to_parquet(
        out / "mmlu_pro_differing.parquet"
    )
    runs = {}
    for model, run_rows in rows.groupby("model", observed=True):
        both = run_rows[decided.loc[run_rows.index]]
        unread = run_rows[run_rows.outcome == "abstain"]
        # A letter drawn at random would be spread over ten; a fill-in is on most of them.
        filled = unread.pred.dropna().value_counts(normalize=True)
        share = float(filled.iloc[0]) if len(unread.pred.dropna()) >= 20 else None
        constant = filled.index[0] if share is not None and share > 0.5 else None
        runs[str(model)] = {
            "responses": len(run_rows),
            "agreement": float(both.agree.mean()),
            "unreadable": float((run_rows.outcome == "abstain").mean()),
            "several_options": float((run_rows.ours.isna() & run_rows.conflict).mean()),
            "conflicts": float(run_rows.conflict.mean()),
            "constant_fill_in": constant,
            "fill_in_share": share,
        }
    return {
        "responses": len(rows),
        "agreement": float(rows[decided].agree.mean()),
        "differing": len(differ),
        "several_options": int((rows.ours.isna() & rows.conflict).sum()),
        "runs_with_constant_fill_in": sorted(
            name for name, figures in runs.items() if figures["constant_fill_in"]
        ),
        "runs": runs,
    }


def _asked(queries: Any, variants: Any) -> dict[tuple[int, str | None], ScoringInput]:
    """(question, run or None) → the question as that run saw it."""
    asked: dict[tuple[int, str | None], ScoringInput] = {
        (i, None): ScoringInput(row.question, (str(row.answer),), tuple(row.options))
        for i, row in queries.iterrows()
    }
    for row in variants.itertuples():
        seen = ScoringInput(row.question, (str(row.answer),), tuple(row.options))
        asked |= {(row.question_id, str(model)): seen for model in row.models}
    return asked
