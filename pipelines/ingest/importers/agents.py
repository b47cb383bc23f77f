"""Recorded agents: conversations of several calls, with a step for each reply of the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from routeyard.pipelines.common import files
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.trajectories import iso_time, prefix_hashes
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.mapping import ANSWERS, STEPS, Record, importer

# What importers of agents share: steps of conversations, and reports of the SWE-bench harness.


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


def steps_of(messages: Sequence[Mapping[str, Any]], where: str) -> list[dict[str, Any]]:
    """Calls of a conversation: each assistant's message, which was asked all earlier ones.

    Where some state a prompt count in their `_usage`, those without one are no calls, such as a
    greeting that the harness wrote.
    """
    # What the model reads of a message: not its times and counts.
    read = ("role", "content", "tool_calls", "name")
    hashes = prefix_hashes([{k: m[k] for k in read if m.get(k) is not None} for m in messages])
    used = [reading.usage(message.get("_usage"), where) for message in messages]
    metered = any(usage.prompt is not None for usage in used)
    steps: list[dict[str, Any]] = []
    for place, (message, usage) in enumerate(zip(messages, used, strict=True)):
        if message.get("role") != "assistant" or (metered and usage.prompt is None):
            continue
        called = [*map(reading.tool_name, message.get("tool_calls") or ())]
        steps.append(
            {
                **usage.columns,
                "called": called,
                "said": reading.output_text(message.get("content")),
                "latency_s": reading.amount(message.get("generation_time_seconds"), where),
                "requested_at": iso_time(message.get("timestamp"), where),
                "parent": len(steps) - 1 if steps else None,
                "prefix_hash": hashes[place - 1] if place else None,
                "tools_called": called,
            }
        )
    return steps


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
    said = (
        m["content"]
        for m in reversed(messages)
        if m.get("role") == "assistant" and m.get("content")
    )
    return next(map(reading.text, said), None)


def first_asked(messages: Sequence[Mapping[str, Any]], other: str) -> str:
    """What the user says first; `other` where there is nothing."""
    return next((str(m.get("content")) for m in messages if m.get("role") == "user"), other)


def ended(failed: object, why: object, **said: Any) -> dict[str, Any]:
    """Fields of an answer; of one that failed only why."""
    if not failed:
        return said
    return {
        **said,
        "score": None,
        "text": None,
        "status": "error",
        "error": str(why) if why else None,
    }


# mini-swe-agent: one file per trajectory, `<instance>.traj.json`.
#
# Layout: `info` (`exit_status`, `model_stats` with `instance_cost` and `api_calls`,
# `config.model`),
# `messages` whose `extra.response` holds the reply with its usage, `trajectory_format`. Whether an
# instance is resolved is not in it: a report of the SWE-bench harness (`resolved_ids`) beside the
# files says so.

_NAME = ".traj.json"


@importer("mini_swe_agent")
def mini_swe_agent(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
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
        messages = [_message(entry) for entry in messages_in(content["messages"], where)]
        served = next((m["_served"] for m in messages if m["_served"]), None)
        asked = first_asked(messages, task)
        yield where, {
            "id": task, "question": asked, "prompt": asked, "task": "swe_bench", "domain": "code",
            "model": settings.get("model_name") or served or path.parent.name,
            "score": resolved.get(task),
            "text": str(info.get("submission") or last_text(messages) or "") or None,
            "cost_usd": reading.within(info, where, "model_stats").get("instance_cost"),
            STEPS: steps_of(messages, where),
        }  # fmt: skip


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with the usage, model and time (seconds since 1970) in its `extra`."""
    extra = message.get("extra")
    extra = extra if isinstance(extra, dict) else {}
    reply = extra.get("response")
    reply = reply if isinstance(reply, dict) else {}
    own = {**message, "_usage": reply.get("usage"), "_served": reply.get("model")}
    seconds = extra.get("timestamp")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 1e9 < seconds < 1e11:
        own["timestamp"] = datetime.fromtimestamp(seconds, UTC).isoformat()
    return own


# MINT: one conversation of several turns per line.
#
# Layout checked against xingyaoww/mint-bench: `data/outputs/<model>/<feedback>/<setting>/<kind>/
# <task>/results.jsonl`. The outcome is `state.success`, not `state.latest_output.success`; task ids
# are unique inside a task only.

_ERRORS = ("error", "exception")


@importer("mint")
def mint(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
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
            why = str(state.get("terminate_reason") or "")
            failed = any(word in why for word in _ERRORS) or bool(state.get("error"))
            history = messages_in(state.get("history") or [], where)
            # An empty counter is unknown, not free.
            counted = reading.within(state, where, "token_counter")
            yield where, {
                "id": f"{task}/{asked['task_id']}", "question": asked["prompt"],
                "prompt": asked["prompt"], "task": task, "references": asked.get("reference"),
                **{name: counted.get(name) for name in reading.TOKENS[:2]},
                **ended(failed, why, score=state.get("success"), text=last_text(history)),
                "model": arm, STEPS: steps_of(history, where),
            }  # fmt: skip


def _place(path: Path) -> tuple[str, str, str]:
    """(model, setting, task) that the folders name."""
    parts = path.parts
    task = path.parent.name
    if "outputs" in parts and len(parts) > parts.index("outputs") + 3:
        at = parts.index("outputs")
        return parts[at + 1], "/".join(parts[at + 2 : at + 4]), task
    return (parts[-6] if len(parts) > 5 else path.stem), "", task


# OpenHands: `output.jsonl` of an evaluation, one trajectory per line.
#
# Layout: `instance_id`, `instruction`, `metadata.llm_config.model`, `metrics` (`accumulated_cost`,
# `token_usages` and `response_latencies` by `response_id`), `test_result.git_patch`, `error`;
# `report.resolved` where it was graded, else a report of the SWE-bench harness beside it.


@importer("openhands")
def openhands(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
    """Each line is a sample; its steps are the calls whose usage was noted."""
    reports = [path for path in paths if path.suffix == ".json"]
    resolved = harness_reports(reports, result) if reports else {}
    for path in (item for item in paths if item.suffix == ".jsonl"):
        for number, row in enumerate(files.rows(path), 1):
            where = f"{path.name}, record {number}"
            if "instance_id" not in row or "metrics" not in row:
                result.left_out["records that are no trajectories"] += 1
                continue
            metrics, tested = (reading.within(row, where, n) for n in ("metrics", "test_result"))
            report = row.get("report") or tested.get("report")
            graded = report.get("resolved") if isinstance(report, dict) else None
            task = str(row["instance_id"])
            score = graded if isinstance(graded, bool) else resolved.get(task)
            patch = str(tested.get("git_patch") or "") or None
            settings, error = reading.within(row, where, "metadata", "llm_config"), row.get("error")
            yield where, {
                "id": task, "question": row.get("instruction") or task, "metrics": metrics,
                "model": settings.get("model") or "unknown", STEPS: _calls(metrics, where),
                **ended(error, error, score=score, text=patch),
            }  # fmt: skip


def _calls(metrics: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """The noted usages with their seconds; OpenHands keeps cached tokens among the prompt's."""
    waited = {
        item.get("response_id"): item.get("latency")
        for item in reading.objects(metrics.get("response_latencies") or [], where)
    }
    noted = reading.objects(metrics.get("token_usages") or [], where)
    return [{**item, "_waited": waited.get(item.get("response_id"))} for item in noted]


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


@importer("tau_bench")
def tau_bench(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
    """A trial is a sample; its steps are the replies of the agent."""
    for path in paths:
        table = path.suffix == ".parquet"
        content = files.rows(path) if table else reading.load_json(path)
        if isinstance(content, dict) and "simulations" in content:
            yield from _trials(path, content, reading.objects(content["simulations"], path.name))
        elif table or (isinstance(content, list) and content and "reward" in content[0]):
            says = f"{path.name} names no model: its answers are those of {path.stem!r}"
            result.choices.append(says)
            rows = content if table else reading.objects(content, str(path))
            yield from _trials(path, {}, rows)
        else:
            result.skip("files that are not of the format", path.name)


def _trials(
    path: Path, head: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]
) -> Iterator[Record]:
    """The trials of τ-bench, or those of τ²-bench, whose file has a head with the tasks."""
    of, kind = path.name, "simulation" if head else "record"
    model = reading.within(head, of, "info", "agent_info").get("llm") or path.stem
    domain = reading.within(head, of, "info", "environment_info").get("domain_name")
    domain = str(domain or _domain(path.stem))
    told = {
        str(task.get("id")): (task.get("user_scenario") or {}).get("instructions")
        for task in reading.objects(head.get("tasks") or [], of)
    }
    for number, row in enumerate(rows, 1):
        where = f"{of}, {kind} {number}"
        reading.need(row, ("task_id", "messages" if head else "reward"), where)
        messages = messages_in(row.get("messages", row.get("traj")), where)
        info, why = row.get("info"), row.get("termination_reason")
        info = reading.parse_json(info.encode(), where) if isinstance(info, str) else info
        own = {} if head else reading.within({"info": info}, where, "info", "task")
        instruction = told.get(str(row["task_id"])) or own.get("instruction")
        asked = reading.text(instruction) if instruction else first_asked(messages, "")
        reward = row.get("reward", (row.get("reward_info") or {}).get("reward"))
        yield where, {
            "id": f"{domain}/{row['task_id']}", "task": domain, "question": asked,
            "prompt": asked, "model": model,
            STEPS: steps_of([{**m, "_usage": _usage(m)} for m in messages], where),
            **ended(why in _FAILED, why, score=reward, text=last_text(messages)),
        }  # fmt: skip


def _usage(message: Mapping[str, Any]) -> Any:
    raw = message.get("raw_data")
    return (raw.get("usage") if isinstance(raw, dict) else None) or message.get("usage")


def _domain(stem: str) -> str:
    """Domain that a file's name states: airline, retail, telecom, banking; else the name."""
    known = ("airline", "retail", "telecom", "banking")
    return next((word for word in known if word in stem.lower()), stem)


# TwinRouterBench: the question bank of its static track, one step of an agent per line.
#
# Layout: `question_bank.jsonl` with `id`, `benchmark`, `instance_id`, `step_index`, `total_steps`,
# `messages`, `target_tier` and `target_tier_id`, as its `main/dataset.py`, `main/tiers.py` and
# `main/eval/runner.py` (CommonstackAI/TwinRouterBench, 7b35f7f) read them; the bank itself was not
# at hand.

#: From the cheapest to the strongest; a model of the pool is whatever serves a tier.
TIERS = ("low", "mid", "mid_high", "high")
_ASSUMED = (
    "a label is the cheapest tier that sufficed: every stronger tier counts as right, as in "
    "the benchmark's own grading, though it may not have been executed"
)
_SHARED = "steps of one trajectory share most of their prompts: keep them on one side of a split"


@importer("twin_router_bench")
def twin_router_bench(
    row: dict[str, Any], where: str, path: Path, result: reading.ImportResult
) -> dict[str, Any]:
    """A step is a question, a tier an arm: its label says which tiers suffice."""
    if _ASSUMED not in result.choices:
        result.choices.append(_ASSUMED)
        result.doubts.append(_SHARED)
    target, name = reading.count(row["target_tier_id"], where), row.get("target_tier")
    if target is None or target >= len(TIERS) or name not in (None, TIERS[target]):
        raise SourceError(
            f"expected a tier from 0 to 3 and its name, found {row['target_tier_id']!r} "
            f"and {name!r}",
            where=where,
        )
    said = [
        f"{item['role']}:\n{reading.text(item.get('content') or item.get('tool_calls') or '')}"
        for item in messages_in(row["messages"], where)
    ]
    tiers = [{"_tier": tier, "_suffices": n >= target} for n, tier in enumerate(TIERS)]
    return {"_prompt": "\n\n".join(said), ANSWERS: tiers}
