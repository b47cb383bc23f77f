"""Recorded agents: conversations of several calls, with a step for each reply of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from routeyard.pipelines.common import files
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.trajectories import iso_time, prefix_hashes
from routeyard.pipelines.common.usage import TokenUsage
from routeyard.pipelines.ingest import mapping
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.mapping import ANSWERS, STEPS, Record

# What importers of agents share: rows of steps, and reports of the SWE-bench harness.

Tokens = Callable[[Mapping[str, Any]], TokenUsage]


def harness_reports(paths: Sequence[Path], result: reading.ImportResult) -> dict[str, bool]:
    """Instance → whether it was resolved, from the SWE-bench harness's reports among the files."""
    resolved: dict[str, bool] = {}
    reports = (path for path in paths if path.suffix == ".json" and not path.name.endswith(_NAME))
    for _, content in reading.documents(
        reports,
        result,
        lambda item: isinstance(item, dict) and isinstance(item.get("resolved_ids"), list),
    ):
        judged = content.get("completed_ids") or content.get("submitted_ids") or []
        resolved |= dict.fromkeys(map(str, judged), False)
        resolved |= dict.fromkeys(map(str, content["resolved_ids"]), True)
    if not resolved:
        result.doubts.append(
            "whether instances were resolved is not known: put the harness's report, with "
            "`resolved_ids`, beside the trajectories"
        )
    return resolved


def steps_of(
    messages: Sequence[Mapping[str, Any]],
    key: Mapping[str, Any],
    arm: str,
    outcome: float | None,
    where: str,
    *,
    tokens: Tokens | None = None,
) -> list[dict[str, Any]]:
    """Rows of `steps`: each assistant's message with the prompt that all earlier ones are.

    Args:
        key: `query_id`, `model_id` and `sample` of the trajectory.
        tokens: Token classes that a message states; messages without a prompt count are no calls,
            such as a greeting that the harness wrote, if another message has one.
    """
    hashes = prefix_hashes([_read_by_model(message) for message in messages]) if messages else []
    steps: list[dict[str, Any]] = []
    metered = tokens is not None and any(tokens(m).prompt is not None for m in messages)
    for place, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        of = tokens(message) if tokens is not None else TokenUsage()
        if metered and of.prompt is None:
            continue
        called = [_tool(call) for call in message.get("tool_calls") or ()]
        text = message.get("content")
        steps.append(
            reading.step(
                key, len(steps), arm, called,
                said=None if text is None else reading.text(text),
                **of.columns,
                latency_s=reading.amount(message.get("generation_time_seconds"), where),
                requested_at=iso_time(message.get("timestamp"), where),
                parent=len(steps) - 1 if steps else None,
                prefix_hash=hashes[place - 1] if place else None,
                tools_called=called,
                outcome=outcome,
            )
        )  # fmt: skip
    return steps


def trial(
    result: reading.ImportResult,
    question: reading.ImportedQuestion,
    model: str,
    calls: Sequence[Mapping[str, Any]] | Callable[[Mapping[str, Any]], list[dict[str, Any]]],
    where: str,
    *,
    outcome: float | None,
    failed: bool = False,
    error: object = None,
    tokens: Tokens | None = None,
    **known: Any,
) -> reading.ImportedAnswer:
    """A model's next trial of a question as an answer; the result gets the question and the steps.

    Args:
        question: Where the id was asked before, the first one counts.
        calls: The messages of the conversation; or what gives the steps for their key.
        tokens: As `steps_of` takes it.
        known: Fields of the answer; tokens and seconds are by default those of its steps.
    """
    result.ask(result.questions.get(question.id) or question, where)
    sample = result.next_sample(question.id, model)
    key = {"query_id": question.id, "model_id": model, "sample": sample}
    if callable(calls):
        steps = calls(key)
    else:
        steps = steps_of(calls, key, model, outcome, where, tokens=tokens)
    result.steps += steps
    said = {**reading.sums_of(steps), **known}
    return reading.ImportedAnswer(
        query=question.id, model=model, sample=sample, score=outcome,
        status="error" if failed else None, error=str(error) if failed and error else None,
        **{**said, "text": None if failed else said["text"]},
    )  # fmt: skip


def messages_in(value: Any, where: str) -> list[dict[str, Any]]:
    """A list of messages with roles, also as JSON in a text.

    Raises:
        SourceError: it is something else.
    """
    if isinstance(value, str):
        value = reading.parse_json(value.encode(), where)
    messages = reading.objects(value, where)
    if not all(isinstance(item.get("role"), str) for item in messages):
        raise SourceError("each message is expected to have a role", where=where)
    return messages


def last_text(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Text of the model's last reply that has one."""
    texts = (
        reading.text(message["content"])
        for message in reversed(messages)
        if message.get("role") == "assistant" and message.get("content")
    )
    return next(texts, None)


def _read_by_model(message: Mapping[str, Any]) -> dict[str, Any]:
    """What of a message the model reads: not its times and counts."""
    return {
        name: message[name]
        for name in ("role", "content", "tool_calls", "name")
        if message.get(name) is not None
    }


def _tool(call: Any) -> str:
    of = call.get("function", call) if isinstance(call, Mapping) else {}
    return str(of.get("name") if isinstance(of, Mapping) else of)


# mini-swe-agent: one file per trajectory, `<instance>.traj.json`.
#
# Layout: `info` (`exit_status`, `model_stats` with `instance_cost` and `api_calls`,
# `config.model`),
# `messages` whose `extra.response` holds the reply with its usage, `trajectory_format`. Whether an
# instance is resolved is not in it: a report of the SWE-bench harness (`resolved_ids`) beside the
# files says so.

_NAME = ".traj.json"


def mini_swe_agent_read(
    paths: Sequence[Path], result: reading.ImportResult
) -> Iterator[reading.ImportedAnswer]:
    """Each trajectory is a sample; its steps are the replies of the model."""
    resolved = harness_reports(paths, result)
    recorded = (item for item in paths if item.name.endswith(_NAME))
    for path, content in reading.documents(
        recorded, result, lambda item: isinstance(item, dict) and "messages" in item
    ):
        where = path.name
        info = reading.within(content, where, "info")
        settings = reading.within(info, where, "config", "model")
        task = str(content.get("instance_id") or where.removesuffix(_NAME))
        messages = [_with_time(entry) for entry in messages_in(content["messages"], where)]
        model = str(settings.get("model_name") or _served(messages) or path.parent.name)
        asked = next((str(m.get("content")) for m in messages if m["role"] == "user"), task)
        cost = reading.within(info, where, "model_stats").get("instance_cost")
        answer = trial(
            result, _swe_bench(task, asked), model, messages, where,
            outcome=float(resolved[task]) if task in resolved else None,
            tokens=partial(_usage, where),
            text=str(info.get("submission") or last_text(messages) or "") or None,
        )  # fmt: skip
        counted = answer.prompt_tokens or answer.calls
        yield replace(answer, cost_usd=reading.spent(cost, counted, where))


def _swe_bench(task: str, asked: str) -> reading.ImportedQuestion:
    return reading.ImportedQuestion(task, asked, "swe_bench", prompt=asked, domain="code")


def _with_time(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with the time in its `extra`, as seconds since 1970."""
    extra = message.get("extra")
    seconds = extra.get("timestamp") if isinstance(extra, dict) else None
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 1e9 < seconds < 1e11:
        return {**message, "timestamp": datetime.fromtimestamp(seconds, UTC).isoformat()}
    return {**message}


def _response(message: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = message.get("extra")
    result = extra.get("response") if isinstance(extra, dict) else None
    return result if isinstance(result, dict) else {}


def _usage(where: str, message: Mapping[str, Any]) -> TokenUsage:
    return reading.usage(_response(message).get("usage"), where)


def _served(messages: Sequence[Mapping[str, Any]]) -> str | None:
    models = (response.get("model") for response in map(_response, messages))
    return next((str(model) for model in models if model), None)


MINI_SWE_AGENT_IMPORTER = reading.importer("mini_swe_agent", mini_swe_agent_read)


# MINT: one conversation of several turns per line.
#
# Layout checked against xingyaoww/mint-bench: `data/outputs/<model>/<feedback>/<setting>/<kind>/
# <task>/results.jsonl`. The outcome is `state.success`, not `state.latest_output.success`; task ids
# are unique inside a task only.

_ERRORS = ("error", "exception")


def mint_read(
    paths: Sequence[Path], result: reading.ImportResult
) -> Iterator[reading.ImportedAnswer]:
    """One answer for each conversation; model, setting and task are folders."""
    placed = {path: _place(path) for path in paths}
    settings = {setting for _, setting, _ in placed.values()}
    for path, (model, setting, task) in placed.items():
        arm = model if len(settings) == 1 else f"{model} ({setting})"
        rows = files.rows(path, "jsonl")
        for at, row in reading.records(rows, ("state", "task"), path.name, result):
            where = f"{path.parent.name}/{at}"
            state, asked = reading.obj(row["state"], where), reading.obj(row["task"], where)
            reading.need(asked, ("task_id", "prompt"), where)
            prompt = reading.text(asked["prompt"])
            question = reading.ImportedQuestion(
                f"{task}/{asked['task_id']}", prompt, task, prompt=prompt,
                references=reading.texts(asked.get("reference")),
            )  # fmt: skip
            ended = str(state.get("terminate_reason") or "")
            failed = any(word in ended for word in _ERRORS) or bool(state.get("error"))
            success = state.get("success")
            history = messages_in(state.get("history") or [], where)
            # An empty counter is unknown, not free.
            counted = reading.within(state, where, "token_counter")
            counts: dict[str, Any] = {
                n: reading.count(counted.get(n), where) for n in reading.TOKENS[:2]
            }
            answer = trial(
                result, question, arm, history, where, failed=failed, error=ended,
                outcome=None if failed or success is None else reading.score(success, where),
                text=last_text(history), **counts,
            )  # fmt: skip
            yield replace(answer, calls=answer.calls or None)


def _place(path: Path) -> tuple[str, str, str]:
    """(model, setting, task) that the folders name."""
    parts = path.parts
    task = path.parent.name
    if "outputs" in parts and len(parts) > parts.index("outputs") + 3:
        at = parts.index("outputs")
        return parts[at + 1], "/".join(parts[at + 2 : at + 4]), task
    return (parts[-6] if len(parts) > 5 else path.stem), "", task


MINT_IMPORTER = reading.importer("mint", mint_read)


# OpenHands: `output.jsonl` of an evaluation, one trajectory per line.
#
# Layout: `instance_id`, `instruction`, `metadata.llm_config.model`, `metrics` (`accumulated_cost`,
# `token_usages` and `response_latencies` by `response_id`), `test_result.git_patch`, `error`;
# `report.resolved` where it was graded, else a report of the SWE-bench harness beside it.


def openhands_records(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
    """Each line is a sample; its steps are the calls whose usage was noted."""
    reports = [path for path in paths if path.suffix == ".json"]
    resolved = harness_reports(reports, result) if reports else {}
    for path in (item for item in paths if item.suffix == ".jsonl"):
        for number, row in enumerate(files.rows(path), 1):
            where = f"{path.name}, record {number}"
            if "instance_id" not in row or "metrics" not in row:
                result.left_out["records that are no trajectories"] += 1
                continue
            metrics = reading.within(row, where, "metrics")
            task, error = str(row["instance_id"]), str(row.get("error") or "") or None
            first = result.questions.get(task)
            patch = reading.within(row, where, "test_result").get("git_patch")
            settings = reading.within(row, where, "metadata", "llm_config")
            yield where, {
                "_id": task, "_status": "error" if error else None, "_error": error,
                "_asked": first.question if first else str(row.get("instruction") or task),
                "_model": settings.get("model") or "unknown",
                "_outcome": None if error else _outcome(row, task, resolved, where),
                "_text": None if error else str(patch or "") or None,
                "_cost": metrics.get("accumulated_cost"), STEPS: _calls(metrics, where),
            }  # fmt: skip


def _outcome(
    row: Mapping[str, Any], task: str, resolved: Mapping[str, bool], where: str
) -> float | None:
    report = row.get("report") or reading.within(row, where, "test_result").get("report")
    if isinstance(report, dict) and isinstance(report.get("resolved"), bool):
        return float(report["resolved"])
    return float(resolved[task]) if task in resolved else None


def _calls(metrics: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """The noted usages with their seconds; OpenHands keeps cached tokens among the prompt's."""
    waited = {
        item.get("response_id"): item.get("latency")
        for item in reading.objects(metrics.get("response_latencies") or [], where)
    }
    noted = reading.objects(metrics.get("token_usages") or [], where)
    return [{**item, "_waited": waited.get(item.get("response_id"))} for item in noted]


OPENHANDS_IMPORTER = mapping.importer("openhands", openhands_records)


# τ-bench and τ²-bench: recorded agents with tools, one file of trials or of simulations.
#
# Layouts checked against sierra-research/tau-bench (`historical_trajectories/*.json`: a list of
# `task_id`, `trial`, `reward`, `info`, `traj`) and against results of tau2-bench (`simulations`
# with
# `messages` that hold `usage`, `tasks`, `info.agent_info.llm`). A Parquet file has the columns of
# the
# first, `messages` in place of `traj`.

#: How a simulation of tau2-bench ends when nobody could have succeeded.
_FAILED = ("agent_error", "infrastructure_error", "unexpected_error")


def tau_bench_read(
    paths: Sequence[Path], result: reading.ImportResult
) -> Iterator[reading.ImportedAnswer]:
    """A trial is a sample; its steps are the replies of the agent."""
    for path in paths:
        if path.suffix == ".parquet":
            trials = _first_bench(files.rows(path), path, result)
        else:
            content = reading.load_json(path)
            if isinstance(content, dict) and "simulations" in content:
                trials = _second_bench(content, path)
            elif isinstance(content, list) and content and "reward" in content[0]:
                trials = _first_bench(reading.objects(content, str(path)), path, result)
            else:
                result.skip("files that are not of the format", path.name)
                continue
        for where, row, messages, model, domain, instruction in trials:
            first = next((str(m.get("content")) for m in messages if m.get("role") == "user"), "")
            asked, ended = instruction or first, row.get("termination_reason")
            reward = row.get("reward", (row.get("reward_info") or {}).get("reward"))
            query, failed = f"{domain}/{row['task_id']}", ended in _FAILED
            yield trial(
                result, reading.ImportedQuestion(query, asked, domain, prompt=asked), model,
                messages, where, outcome=None if failed else reading.score(reward, where),
                failed=failed, error=ended, text=last_text(messages),
                tokens=partial(_tokens, where),
            )  # fmt: skip


#: Place, record, messages, model, domain and instruction of a trial.
_Trial: TypeAlias = "tuple[str, Mapping[str, Any], list[dict[str, Any]], str, str, str]"


def _first_bench(rows: Any, path: Path, result: reading.ImportResult) -> Iterator[_Trial]:
    result.choices.append(f"{path.name} names no model: its answers are those of {path.stem!r}")
    for number, row in enumerate(rows, 1):
        where = f"{path.name}, record {number}"
        reading.need(row, ("task_id", "reward"), where)
        info = row.get("info")
        info = reading.parse_json(info.encode(), where) if isinstance(info, str) else info
        task = reading.within({"info": info}, where, "info", "task")
        messages = messages_in(row.get("messages", row.get("traj")), where)
        yield (
            where,
            row,
            messages,
            path.stem,
            _domain(path.stem),
            str(task.get("instruction") or ""),
        )


def _second_bench(content: Mapping[str, Any], path: Path) -> Iterator[_Trial]:
    where = path.name
    model = str(reading.within(content, where, "info", "agent_info").get("llm") or path.stem)
    asked = {
        str(task.get("id")): _instructions(task)
        for task in reading.objects(content.get("tasks") or [], where)
    }
    domain = (content.get("info") or {}).get("environment_info") or {}
    domain = str(domain.get("domain_name") or _domain(path.stem))
    for number, row in enumerate(reading.objects(content["simulations"], where), 1):
        at = f"{where}, simulation {number}"
        reading.need(row, ("task_id", "messages"), at)
        instruction = asked.get(str(row["task_id"]), "")
        yield at, row, messages_in(row["messages"], at), model, domain, instruction


def _tokens(where: str, message: Mapping[str, Any]) -> TokenUsage:
    raw = message.get("raw_data")
    usage = (raw.get("usage") if isinstance(raw, dict) else None) or message.get("usage")
    return reading.usage(usage, where)


def _instructions(task: Mapping[str, Any]) -> str:
    instructions = (task.get("user_scenario") or {}).get("instructions")
    return reading.text(instructions) if instructions else ""


def _domain(stem: str) -> str:
    """Domain that a file's name states: airline, retail, telecom, banking; else the name."""
    known = ("airline", "retail", "telecom", "banking")
    return next((word for word in known if word in stem.lower()), stem)


TAU_BENCH_IMPORTER = reading.importer("tau_bench", tau_bench_read)


# TwinRouterBench: the question bank of its static track, one step of an agent per line.
#
# Layout: `question_bank.jsonl` with `id`, `benchmark`, `instance_id`, `step_index`, `total_steps`,
# `messages`, `target_tier` and `target_tier_id`, as its `main/dataset.py`, `main/tiers.py` and
# `main/eval/runner.py` (CommonstackAI/TwinRouterBench, 7b35f7f) read them; the bank itself was not
# at hand.

#: From the cheapest to the strongest; a model of the pool is whatever serves a tier.
TIERS = ("low", "mid", "mid_high", "high")
_COLUMNS = mapping.mapping_of("twin_router_bench").needs


def twin_router_bench_records(
    paths: Sequence[Path], result: reading.ImportResult
) -> Iterator[Record]:
    """A step is a question, a tier an arm: its label says which tiers suffice."""
    result.choices.append(
        "a label is the cheapest tier that sufficed: every stronger tier counts as right, as in "
        "the benchmark's own grading, though it may not have been executed"
    )
    result.doubts.append(
        "steps of one trajectory share most of their prompts: keep them on one side of a split"
    )
    for path in paths:
        for where, row in reading.records(reading.json_rows(path), _COLUMNS, path.name, result):
            target = reading.count(row["target_tier_id"], where)
            if target is None or target >= len(TIERS) or _other(row.get("target_tier"), target):
                raise SourceError(
                    f"expected a tier from 0 to 3 and its name, found {row['target_tier_id']!r} "
                    f"and {row.get('target_tier')!r}",
                    where=where,
                )
            tiers = [{"_tier": tier, "_suffices": n >= target} for n, tier in enumerate(TIERS)]
            yield where, {**row, "_prompt": _prompt(row["messages"], where), ANSWERS: tiers}


def _other(name: Any, target: int) -> bool:
    """Whether a tier's name is not that of its number."""
    return name is not None and name != TIERS[target]


def _prompt(messages: Any, where: str) -> str:
    """The messages as one text, each under its role."""
    return "\n\n".join(
        f"{item['role']}:\n{reading.text(item.get('content') or item.get('tool_calls') or '')}"
        for item in messages_in(messages, where)
    )


TWIN_ROUTER_BENCH_IMPORTER = mapping.importer("twin_router_bench", twin_router_bench_records)
