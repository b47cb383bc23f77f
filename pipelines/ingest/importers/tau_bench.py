"""τ-bench and τ²-bench: recorded agents with tools, one file of trials or of simulations.

Layouts checked against sierra-research/tau-bench (`historical_trajectories/*.json`: a list of
`task_id`, `trial`, `reward`, `info`, `traj`) and against results of tau2-bench (`simulations` with
`messages` that hold `usage`, `tasks`, `info.agent_info.llm`). A Parquet file has the columns of the
first, `messages` in place of `traj`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.common import files
from routeyard.pipelines.common.usage import TokenUsage
from routeyard.pipelines.ingest.importers import reading, spec
from routeyard.pipelines.ingest.importers.conversations import (
    TOKENS,
    add_trial,
    last_text,
    messages_in,
    sums_of,
)

#: How a simulation of tau2-bench ends when nobody could have succeeded.
_FAILED = ("agent_error", "infrastructure_error", "unexpected_error")


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """A trial is a sample; its steps are the replies of the agent."""
    for path in paths:
        if path.suffix == ".parquet":
            yield from _first_bench(files.rows(path), path, result)
            continue
        content = reading.load_json(path)
        if isinstance(content, dict) and "simulations" in content:
            yield from _second_bench(content, path, result)
        elif isinstance(content, list) and content and "reward" in content[0]:
            yield from _first_bench(reading.objects(content, str(path)), path, result)
        else:
            result.skip("files that are not of the format", path.name)


def _first_bench(rows: Any, path: Path, result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    result.choices.append(f"{path.name} names no model: its answers are those of {path.stem!r}")
    for number, row in enumerate(rows, 1):
        where = f"{path.name}, record {number}"
        reading.need(row, ("task_id", "reward"), where)
        info = row.get("info")
        info = reading.parse_json(info.encode(), where) if isinstance(info, str) else info
        task = reading.obj(reading.obj(info or {}, where).get("task") or {}, where)
        messages = messages_in(row.get("messages", row.get("traj")), where)
        yield _answer(
            row, messages, path.stem, f"{row['task_id']}", str(task.get("instruction") or ""),
            where, result, task_name=_domain(path.stem),
        )  # fmt: skip


def _second_bench(
    content: Mapping[str, Any], path: Path, result: spec.ImportResult
) -> Iterator[spec.ImportedAnswer]:
    where = path.name
    info = reading.obj(content.get("info") or {}, where)
    model = str(reading.obj(info.get("agent_info") or {}, where).get("llm") or path.stem)
    asked = {
        str(task.get("id")): _instructions(task)
        for task in reading.objects(content.get("tasks") or [], where)
    }
    domain = (info.get("environment_info") or {}).get("domain_name") or _domain(path.stem)
    for number, row in enumerate(reading.objects(content["simulations"], where), 1):
        at = f"{where}, simulation {number}"
        reading.need(row, ("task_id", "messages"), at)
        task = str(row["task_id"])
        yield _answer(
            row, messages_in(row["messages"], at), model, task, asked.get(task, ""), at, result,
            task_name=str(domain),
        )  # fmt: skip


def _answer(
    row: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    model: str,
    task: str,
    instruction: str,
    where: str,
    result: spec.ImportResult,
    *,
    task_name: str,
) -> spec.ImportedAnswer:
    query = f"{task_name}/{task}"
    first = next((str(m.get("content")) for m in messages if m.get("role") == "user"), "")
    question = result.questions.get(query) or spec.ImportedQuestion(
        query, instruction or first, task_name, prompt=instruction or first
    )
    result.ask(question, where)
    reward = row.get("reward", (row.get("reward_info") or {}).get("reward"))
    failed = row.get("termination_reason") in _FAILED
    outcome = None if failed else reading.score(reward, where)
    sample, steps = add_trial(
        result, messages, query, model, outcome, where, lambda message: _tokens(message, where)
    )
    return spec.ImportedAnswer(
        query=query,
        model=model,
        sample=sample,
        text=None if failed else last_text(messages),
        score=outcome,
        latency_s=sums_of(steps, ["latency_s"])["latency_s"],
        **sums_of(steps, TOKENS),
        calls=len(steps),
        status="error" if failed else None,
        error=str(row["termination_reason"]) if failed else None,
    )


def _tokens(message: Mapping[str, Any], where: str) -> TokenUsage:
    raw = message.get("raw_data")
    usage = (raw.get("usage") if isinstance(raw, dict) else None) or message.get("usage")
    return reading.usage(usage, where)


def _instructions(task: Mapping[str, Any]) -> str:
    told = (task.get("user_scenario") or {}).get("instructions")
    return reading.text(told) if told else ""


def _domain(stem: str) -> str:
    """Domain that a file's name states: airline, retail, telecom, banking; else the name."""
    known = ("airline", "retail", "telecom", "banking")
    return next((word for word in known if word in stem.lower()), stem)


IMPORTER = spec.importer("tau_bench", read)
