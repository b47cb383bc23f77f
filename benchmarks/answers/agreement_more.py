"""Agreement on the smaller label data: BBH, MATH samples, HumanEval, OmnisBench, and so on.

Each function returns figures and the rows on which the two readings differ, as dictionaries.
"""

from __future__ import annotations

import ast
import contextlib
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import ScoringInput

Measured = tuple[dict[str, Any], list[dict[str, Any]]]


def bbh(data: Path) -> Measured:
    """`auto` against the rule "text after the last *the answer is*" and the published table."""
    import pandas as pd

    read = SCORERS.get("auto").read
    rows: Any = pd.read_parquet(data / "bbh" / "codex_raw.parquet")
    published: Any = pd.read_csv(data / "bbh" / "codex_published.csv").set_index(["task", "mode"])
    right: dict[tuple[str, str], list[bool]] = defaultdict(list)
    differing = []
    for row in rows.itertuples():
        question = row.input.rsplit("\nQ: ", 1)[-1].split("\nA:")[0]
        reading = read(ScoringInput(question, (row.target,)), row.prediction)
        _, mark, after = row.prediction.rpartition("the answer is")
        said = (after if mark else row.prediction).strip()
        theirs = said.rstrip(".").strip() == row.target.strip()
        ours = reading.outcome == "correct"
        right[str(row.task), str(row.mode)].append(ours)
        if ours != theirs:
            differing.append(_row("auto", row.target, theirs, said, reading, row.prediction))
    off = {
        "/".join(key): round(100 * sum(hits) / len(hits) - float(published.accuracy[key]), 2)
        for key, hits in right.items()
        if abs(100 * sum(hits) / len(hits) - float(published.accuracy[key])) > 0.01
    }
    return _figures(len(rows), differing) | {
        "runs": len(right),
        "runs_as_published": len(right) - len(off),
        "points_off": off,
    }, differing


def math_samples(data: Path) -> Measured:
    """`math` against upstream's verdicts on eight samples of 100 MATH questions."""
    import pandas as pd

    read = SCORERS.get("math").read
    queries: Any = pd.read_parquet(data / "math_samples" / "queries.parquet").set_index("query_id")
    rows: Any = pd.read_parquet(data / "math_samples" / "samples.parquet")
    differing = []
    for row in rows.itertuples():
        query = queries.loc[row.query_id]
        reading = read(ScoringInput(query.question, (query.answer,)), row.output)
        if (reading.outcome == "correct") != row.correct:
            differing.append(
                _row("math", query.answer, bool(row.correct), row.pred, reading, row.output)
            )
    return _figures(len(rows), differing), differing


def humaneval(data: Path) -> Measured:
    """`code` on the canonical solutions (all pass) and on a stub of each (none may)."""
    read = SCORERS.get("code").read
    tasks = _tasks(data)
    differing = []
    for task in tasks:
        asked = ScoringInput(
            task["prompt"], (task["test"],), metadata={"entry_point": task["entry_point"]}
        )
        for program, theirs in ((task["canonical_solution"], True), ("    return None\n", False)):
            reading = read(asked, program)
            if (reading.outcome == "correct") != theirs:
                differing.append(_row("code", task["task_id"], theirs, "", reading, program))
    return _figures(2 * len(tasks), differing), differing


def _tasks(data: Path) -> list[dict[str, Any]]:
    with gzip.open(data / "humaneval" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def omnisbench(data: Path) -> Measured:
    """Scorers by grader against the stored `passed` of graded items."""
    import pyarrow.parquet as pq

    rows = pq.read_table(data / "omnisbench" / "items.parquet").to_pylist()
    # A HumanEval prompt may define helpers that the answer calls.
    prompts = {task["task_id"]: task["prompt"] for task in _tasks(data)}
    scorers = {"code_unittest": "code", "numeric_match": "numeric", "livecodebench": "code"}
    differing, read_rows = [], 0
    for row in rows:
        name = scorers[row["grader"]]
        metadata = json.loads(row["meta"] or "{}")
        if not row["reference"]:
            continue
        reading = SCORERS.get(name).read(
            ScoringInput(prompts.get(row["item_id"], ""), (row["reference"],), metadata=metadata),
            row["response_text"] or "",
        )
        read_rows += 1
        if (reading.outcome == "correct") != row["passed"]:
            differing.append(
                _row(name, row["item_id"], row["passed"], "", reading, row["response_text"] or "")
            )
    return _figures(read_rows, differing) | {"without_reference": len(rows) - read_rows}, differing


def routellm_gsm8k(data: Path) -> Measured:
    """`numeric` against RouteLLM's stored labels of two models' answers."""
    import pandas as pd

    read = SCORERS.get("numeric").read
    lines = (data / "gsm8k" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    gold = [json.loads(line)["answer"].rpartition("#### ")[2] for line in lines]
    rows: Any = pd.read_parquet(data / "routellm" / "gsm8k.parquet")
    differing = []
    for row in rows.itertuples():
        reading = read(ScoringInput(row.prompt, (gold[row.row],)), row.response)
        if (reading.outcome == "correct") != row.correct:
            differing.append(
                _row("numeric", gold[row.row], bool(row.correct), "", reading, row.response)
            )
    return _figures(len(rows), differing), differing


def gsm8k_as_math(data: Path) -> Measured:
    """`math` against ZeroEval's rule, on a seeded tenth of the GSM8K responses."""
    import pandas as pd

    read = SCORERS.get("math").read
    folder = data / "zeroeval_gsm"
    keys = ["query_id", "model"]
    queries: Any = pd.read_parquet(folder / "queries.parquet").set_index("query_id")
    responses = pd.read_parquet(folder / "responses.parquet").astype(dict.fromkeys(keys, str))
    upstream = pd.read_parquet(folder / "upstream_labels.parquet").astype(dict.fromkeys(keys, str))
    rows: Any = responses.sample(frac=0.1, random_state=15).merge(upstream, on=keys)
    differing = []
    for row in rows.itertuples():
        query = queries.loc[row.query_id]
        gold = query.gold_answer.lstrip("# ")
        reading = read(ScoringInput(query.question, (gold,)), row.output)
        if (reading.outcome == "correct") != row.correct:
            differing.append(
                _row("math", gold, bool(row.correct), row.extracted, reading, row.output)
            )
    return _figures(len(rows), differing), differing


def alpaca(data: Path) -> Measured:
    """`given` on judge preferences: the win rates it carries against the leaderboard's."""
    import pandas as pd

    read = SCORERS.get("given").read
    rows: Any = pd.read_parquet(data / "alpaca_eval" / "annotations.parquet")
    rows["carried"] = [
        read(ScoringInput("", (), metadata={"given_score": float(p) - 1}), "").score
        for p in rows.preference
    ]
    rates = 100 * rows.groupby("model", observed=True).carried.mean()
    board: Any = pd.read_csv(data / "alpaca_eval" / "leaderboard.csv")
    named = board.set_index(board.columns[0]).win_rate
    off = (rates - named.reindex(rates.index)).dropna().abs()
    figures = {"responses": len(rows), "models": len(off), "points_off_most": float(off.max())}
    return figures, []


def math_verify_cases(tests: Path) -> Measured:
    """`math` on the comparisons of math-verify's own tests, references and texts unchanged."""
    read = SCORERS.get("math").read
    rows, differing = 0, []
    for path in sorted(tests.glob("test_*.py")):
        for gold, said, theirs in _comparisons(ast.parse(path.read_text(encoding="utf-8"))):
            reading = read(ScoringInput("", (gold,)), said)
            rows += 1
            if (reading.outcome == "correct") != theirs:
                differing.append(_row("math", gold, theirs, "", reading, said))
    return _figures(rows, differing), differing


def _comparisons(tree: ast.AST) -> Iterator[tuple[str, str, bool]]:
    """(gold, text, expected) of every parametrised test that compares two texts."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if getattr(call.func, "attr", "") != "parametrize" or len(call.args) < 2:
            continue
        names = [name.strip() for name in ast.literal_eval(call.args[0]).split(",")]
        if not {"gold", "pred", "expected"} <= set(names) or not isinstance(call.args[1], ast.List):
            continue
        for element in call.args[1].elts:
            with contextlib.suppress(ValueError):
                row = dict(zip(names, ast.literal_eval(element), strict=False))
                if isinstance(row["gold"], str) and isinstance(row["pred"], str):
                    yield row["gold"], row["pred"], bool(row["expected"])


def _row(
    scorer: str, reference: str, theirs: bool, said: object, reading: Any, output: str
) -> dict[str, Any]:
    return {
        "scorer": scorer,
        "reference": reference,
        "theirs": theirs,
        "their_reading": said,
        "ours": reading.outcome,
        "our_reading": reading.reason,
        "output": output,
    }


def _figures(rows: int, differing: list[dict[str, Any]]) -> dict[str, Any]:
    return {"responses": rows, "agreement": 1 - len(differing) / rows, "differing": len(differing)}


MORE = {
    "bbh": bbh,
    "math_samples": math_samples,
    "humaneval": humaneval,
    "omnisbench": omnisbench,
    "routellm_gsm8k": routellm_gsm8k,
    "gsm8k_as_math": gsm8k_as_math,
    "alpaca": alpaca,
}
