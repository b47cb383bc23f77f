"""OpenHands: `output.jsonl` of an evaluation, one trajectory per line.

Layout: `instance_id`, `instruction`, `metadata.llm_config.model`, `metrics` (`accumulated_cost`,
`token_usages` and `response_latencies` by `response_id`), `test_result.git_patch`, `error`;
`report.resolved` where it was graded, else a report of the SWE-bench harness beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.common import files
from routeyard.pipelines.ingest.importers import reading, spec
from routeyard.pipelines.ingest.importers.conversations import TOKENS, harness_reports, sums_of


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Each line is a sample; its steps are the calls whose usage was noted."""
    reports = [path for path in paths if path.suffix == ".json"]
    resolved = harness_reports(reports, result) if reports else {}
    for path in (one for one in paths if one.suffix == ".jsonl"):
        for number, row in enumerate(files.rows(path), 1):
            where = f"{path.name}, record {number}"
            if "instance_id" not in row or "metrics" not in row:
                result.left_out["records that are no trajectories"] += 1
                continue
            yield _answer(row, where, resolved, result)


def _answer(
    row: Mapping[str, Any], where: str, resolved: Mapping[str, bool], result: spec.ImportResult
) -> spec.ImportedAnswer:
    task = str(row["instance_id"])
    metrics = reading.obj(row["metrics"] or {}, where)
    told = reading.obj(row.get("metadata") or {}, where)
    model = str(reading.obj(told.get("llm_config") or {}, where).get("model") or "unknown")
    asked = str(row.get("instruction") or task)
    result.ask(result.questions.get(task) or spec.ImportedQuestion(
        task, asked, "swe_bench", prompt=asked, domain="code"
    ), where)  # fmt: skip
    failed = bool(row.get("error"))
    outcome = None if failed else _outcome(row, task, resolved, where)
    sample = result.next_sample(task, model)
    key = {"query_id": task, "model_id": model, "sample": sample}
    steps = list(_steps(metrics, key, model, outcome, where))
    result.steps += steps
    counts = sums_of(steps, TOKENS)
    cost = metrics.get("accumulated_cost")
    patch = reading.obj(row.get("test_result") or {}, where).get("git_patch")
    return spec.ImportedAnswer(
        query=task, model=model, sample=sample, text=None if failed else str(patch or "") or None,
        score=outcome, cost_usd=reading.spent(cost, counts["prompt_tokens"], where),
        latency_s=sums_of(steps, ["latency_s"])["latency_s"], calls=len(steps),
        status="error" if failed else None, error=str(row["error"]) if failed else None, **counts,
    )  # fmt: skip


def _outcome(
    row: Mapping[str, Any], task: str, resolved: Mapping[str, bool], where: str
) -> float | None:
    report = row.get("report") or reading.obj(row.get("test_result") or {}, where).get("report")
    if isinstance(report, dict) and isinstance(report.get("resolved"), bool):
        return float(report["resolved"])
    return float(resolved[task]) if task in resolved else None


def _steps(
    metrics: Mapping[str, Any],
    key: Mapping[str, Any],
    model: str,
    outcome: float | None,
    where: str,
) -> Iterator[dict[str, Any]]:
    """A row for each noted usage; OpenHands keeps cached tokens among the prompt's."""
    waited = {
        one.get("response_id"): one.get("latency")
        for one in reading.objects(metrics.get("response_latencies") or [], where)
    }
    noted = reading.objects(metrics.get("token_usages") or [], where)
    for number, one in enumerate(noted):
        counts = {name: reading.count(one.get(name), where) for name in TOKENS}
        yield {
            **key, **counts, "step": number, "acted_by": str(one.get("model") or model),
            "action": "answer" if number == len(noted) - 1 else "call",
            "queries": [], "found": [], "status": "ok", "attempts": 1,
            "latency_s": reading.amount(waited.get(one.get("response_id")), where),
            "outcome": outcome,
        }  # fmt: skip


IMPORTER = spec.importer("openhands", read)
