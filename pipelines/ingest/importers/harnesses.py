"""Logs and results of evaluation harnesses, each as its program writes them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from routeyard.pipelines.common import files
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.importers.reading import FORMATS, members
from routeyard.pipelines.ingest.mapping import ANSWERS, Record, importer, mapping_of

# HELM: a folder per run with `per_instance_stats.json`, `scenario_state.json` and `run_spec.json`.
#
# Layout checked against runs that its release 0.5 wrote (hellaswag, MMLU and NarrativeQA), as they
# are published among the test data of evaleval/every_eval_ever.

#: Metrics in [0, 1], the one that counts first.
_HELM_METRICS = FORMATS["helm"]["metrics"]


@importer("helm")
def helm(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
    """One run in a folder; its metric is the first of `_HELM_METRICS` that its instances have."""
    for path in paths:
        name, rows = path.parent.name, reading.load_json(path)
        if reading.stray(result, rows, ("instance_id", "stats"), name):
            continue
        spec = _object(path.with_name("run_spec.json"))
        states = _states(_object(path.with_name("scenario_state.json")))
        model = _model(spec.get("adapter_spec") or {}, name)
        if model is None:
            result.skip("runs that name no model (run_spec.json)", name)
            continue
        task = str(spec.get("name") or name)
        for stated in (model, model.replace("/", "_")):
            task = task.replace(f"model={stated}", "")
        run = {"task": task.strip(",:-"), "model": model}
        yield from _helm_run(reading.objects(rows, str(path)), states, name, run, result)


def _helm_run(
    rows: list[dict[str, Any]], states: Mapping[tuple[str, int], dict[str, Any]], name: str,
    run: Mapping[str, str], result: reading.ImportResult,
) -> Iterator[Record]:  # fmt: skip
    stats = [_stats(row) for row in rows]
    known = [m for m in _HELM_METRICS if any(m in item for item in stats)]
    if not known:
        result.skip("runs without a metric from 0 to 1", name)
        return
    if known[1:]:
        result.choices.append(f"the score of {name} is {known[0]}, not {', '.join(known[1:])}")
    splits = sorted({str(state["instance"].get("split")) for state in states.values()})
    if len(splits) > 1:
        result.doubts.append(f"{name} mixes the splits {', '.join(splits)}")
    for row, stat in zip(rows, stats, strict=True):
        where = f"{name}, instance {row.get('instance_id')}"
        reading.need(row, ("instance_id", "stats"), where)
        if row.get("perturbation"):
            result.left_out["perturbed copies of instances"] += 1
            continue
        query, trial = f"{run['task']}/{row['instance_id']}", int(row.get("train_trial_index") or 0)
        state = states.get((str(row["instance_id"]), trial), {})
        reply = state.get("result") or {}
        completions = reply.get("completions") or [{}]
        yield where, {
            **stat, **run, **_question(query, state), "id": query, "sample": trial,
            "text": completions[0].get("text"), "score": stat.get(known[0]),
            "served_model": (state.get("request") or {}).get("model_deployment"),
            "status": "error" if reply.get("success") is False else None,
        }  # fmt: skip


def _object(path: Path) -> dict[str, Any]:
    """The object in a file beside a run's; empty without one."""
    if not path.is_file():
        return {}
    reading.inside(path, path.parent)
    return reading.obj(reading.load_json(path), str(path))


def _states(content: Mapping[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    """(instance, trial) → the request and its result."""
    return {
        (str(state["instance"].get("id")), int(state.get("train_trial_index") or 0)): state
        for state in content.get("request_states") or ()
        if isinstance(state, dict) and isinstance(state.get("instance"), dict)
        and not state["instance"].get("perturbation")
    }  # fmt: skip


def _model(adapter: Mapping[str, Any], folder: str) -> str | None:
    """The model of a run, as its specification or the folder's name states it."""
    named = adapter.get("model") or adapter.get("model_deployment")
    if named:
        return str(named)
    parts = folder.replace(":", ",").replace("-model=", ",model=").split(",")
    return next((part.removeprefix("model=") for part in parts if part.startswith("model=")), None)


def _stats(row: Mapping[str, Any]) -> dict[str, Any]:
    """Metric → mean of an instance."""
    stats = {}
    for item in row.get("stats") or ():
        name = item.get("name")
        label = name.get("name") if isinstance(name, dict) else name
        if label is not None and item.get("count", 1):
            stats[str(label)] = item.get("mean", item.get("sum"))
    return stats


def _question(query: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked, and the references: letters where there are options."""
    instance = state.get("instance") or {}
    references = [item for item in instance.get("references") or () if isinstance(item, dict)]
    options = state.get("output_mapping") or {}
    right = [reading.text((reference.get("output") or {}).get("text")) for reference in references
             if "correct" in (reference.get("tags") or ())]  # fmt: skip
    letters = [letter for letter, text in options.items() if text in right]
    prompt = reading.text((state.get("request") or {}).get("prompt"))
    return {
        "question": reading.text((instance.get("input") or {}).get("text")) or query,
        **({"prompt": prompt} if prompt else {}),
        "choices": tuple(reading.text(text) for text in options.values()),
        "references": letters or right,
        "split": reading.split_of(str(instance.get("split"))),
    }  # fmt: skip


# lm-evaluation-harness: `samples_<task>_<time>.jsonl`, written with `--log_samples`.
#
# Layout checked against the writer in EleutherAI/lm-evaluation-harness
# (`lm_eval/loggers/evaluation_tracker.py`) and against files that its release 0.4.13
# wrote for a generation, a multiple-choice and a log-likelihood task.

_LM_EVAL_COLUMNS = mapping_of("lm_eval").needs
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T[\d\-.:]+(?=\.json)")
_NAME = re.compile(rf"samples_(?P<task>.+)_{_STAMP.pattern}")
#: Metrics in [0, 1], the most telling first.
_LM_EVAL_METRICS = FORMATS["lm_eval"]["metrics"]
#: The filter that counts where a task has several.
_FILTERS = ("flexible-extract", "none", "strict-match")


@importer("lm_eval", newest_first=_STAMP)
def lm_eval(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
    """One folder per model, the newest run of a task; of several filters the first known one."""
    seen: set[tuple[str, str]] = set()
    run_of = cache(_run_of)
    for path in paths:
        named = _NAME.match(path.name)
        task = named["task"] if named else path.stem.removeprefix("samples_")
        (model, counted), name = run_of(path.parent), f"{path.parent.name}/{path.name}"
        if (model, task) in seen:
            result.skip("older runs of the same model and task", name)
            continue
        rows = list(files.rows(path, "jsonl"))
        if reading.stray(result, rows, _LM_EVAL_COLUMNS, name):
            continue
        seen.add((model, task))
        said = counted.get(task)
        asked = said.get("effective") if isinstance(said, dict) else None
        held = len({str(row.get("doc_id")) for row in rows})
        if isinstance(asked, int) and asked > held:
            result.doubts.append(f"{path.name} holds {held:,} of the {asked:,} samples of its run")
        yield from _lm_eval_run(result, path, rows, task, model)


def _lm_eval_run(
    result: reading.ImportResult, path: Path, rows: list[dict[str, Any]], task: str, model: str
) -> Iterator[Record]:
    kinds = {str(row.get("filter", "none")) for row in rows}
    chosen = next((name for name in _FILTERS if name in kinds), min(kinds, default="none"))
    for line, row in enumerate(rows, start=1):
        where = f"{model}/{path.name}, line {line}"
        reading.need(row, _LM_EVAL_COLUMNS, where)
        if str(row.get("filter", "none")) != chosen:
            result.left_out["rows of another filter"] += 1
            continue
        prompt, generates = _request(row["arguments"], where)
        target = reading.text(row["target"])
        yield where, {
            "id": f"{task}/{row['doc_id']}", "question": prompt, "prompt": prompt, "task": task,
            "references": [target] if target else None, "model": model, "score": _score(row, where),
            "text": _generated(row["resps"]) if generates else None,
        }  # fmt: skip


def _run_of(folder: Path) -> tuple[str, dict[str, Any]]:
    """The model in the newest `results_<time>.json`, else the folder's name; task → its counts.

    The folder is called after the model, with `__` for what a file name cannot hold.
    """
    for results in reading.newest_first(folder.glob("results_*.json"), _STAMP):
        reading.inside(results, folder)
        content = reading.obj(reading.load_json(results), str(results))
        if name := content.get("model_name"):
            samples = content.get("n-samples")
            return str(name), samples if isinstance(samples, dict) else {}
    return folder.name or "model", {}


def _request(arguments: Any, where: str) -> tuple[str, bool]:
    """Prompt of the first request, and whether it asks for text: then it has settings.

    Logged as `{"gen_args_0": {"arg_0": …, "arg_1": …}}`, by old versions as lists. A
    request for a log-likelihood has a continuation in place of the settings.
    """
    first: Any = arguments
    if isinstance(arguments, dict):
        first = arguments.get("gen_args_0", next(iter(arguments.values()), None))
        first = list(first.values()) if isinstance(first, dict) else first
    elif isinstance(arguments, list) and arguments:
        first = arguments[0]
    prompt = _asked(first[0]) if isinstance(first, list) and first else ""
    if not prompt.strip():
        raise SourceError("'arguments' holds no prompt", where=where)
    return prompt, len(first) > 1 and isinstance(first[1], dict)


def _asked(prompt: Any) -> str:
    """A prompt: plain text, or a conversation as JSON, which is in a list of one."""
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        return ""
    if prompt.startswith("[{"):
        try:
            turns = json.loads(prompt)
        except ValueError:
            return prompt
        if all(isinstance(turn, dict) and isinstance(turn.get("content"), str) for turn in turns):
            return "\n\n".join(turn["content"] for turn in turns)
    return prompt


def _generated(responses: Any) -> str | None:
    """The first text among the nested responses of a request for text."""
    while isinstance(responses, list) and responses:
        responses = responses[0]
    return responses if isinstance(responses, str) else None


def _score(row: dict[str, Any], where: str) -> float | None:
    for metric in _LM_EVAL_METRICS:
        if metric in row and not isinstance(row[metric], list | dict):
            value = reading.number(row[metric], where)
            if value is not None and 0 <= value <= 1:
                return value
    return None


# MMLU-Pro's `eval_results`: one zip per model, holding one JSON list.

_MMLU_PRO_COLUMNS = mapping_of("mmlu_pro").needs
_OUTPUTS = ("model_outputs", "generated_text")
#: What a revision of a question may change.
_REVISED = ("question", "options", "answer", "category")


@importer("mmlu_pro")
def mmlu_pro(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
    """Runs that were graded against a revised key carry that key per answer.

    Upstream revised some questions between runs: the variant that most runs
    used is the question, and a run of another variant keeps its own gold letter.
    """
    variants: dict[str, Counter[tuple[Any, ...]]] = {}
    for file in paths:
        for _, row in _records(file, reading.ImportResult(file)):
            variants.setdefault(str(row["question_id"]), Counter())[_variant(row)] += 1
    # The most used variant; the text decides between equally used ones.
    best = {
        name: max(variant.items(), key=lambda item: (item[1], item[0][:2]))[0]
        for name, variant in variants.items()
    }
    for file in paths:
        model = re.sub(r"_[05]shots?$", "", file.stem.removeprefix("model_outputs_"))
        for where, row in _records(file, result):
            asked, key = best[str(row["question_id"])], reading.texts(row["answer"])
            output = next((row[name] for name in _OUTPUTS if row.get(name) is not None), None)
            if output is None:
                result.left_out["records without output"] += 1
            answer = {"_model": model, "_output": output,
                      "_graded_against": None if key == asked[2] else key}  # fmt: skip
            answers = [answer] if output is not None else []
            yield where, {**row, **dict(zip(_REVISED, asked, strict=True)), ANSWERS: answers}


def _variant(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a record has of each key of `_REVISED`."""
    question, category = (reading.text(row[name]) for name in ("question", "category"))
    return question, reading.options(row["options"]), reading.texts(row["answer"]), category


def _records(path: Path, result: reading.ImportResult) -> Iterator[Record]:
    zipped = path.suffix == ".zip"
    documents = members(path, ".json") if zipped else [(path.name, reading.whole(path))]
    for name, data in documents:
        if name.startswith("__MACOSX"):
            continue
        where = f"{path.name}:{name}" if zipped else path.name
        rows = reading.parse_json(data, where)
        if not isinstance(rows, list):
            raise SourceError("a list of records is expected", where=where)
        for number, row in enumerate(rows, 1):
            if isinstance(row, str):
                result.left_out["bare strings among the records"] += 1
                continue
            place = f"{where}, record {number}"
            if not isinstance(row, dict):
                raise SourceError("a record is no object", where=place)
            reading.need(row, _MMLU_PRO_COLUMNS, place)
            yield place, row


# ZeroEval: `result_dirs/<task>/<model>.json`, raw outputs of one model per file.

#: Task of the path → rule scorer that reads its answers; of others the references' shapes say.
_SCORERS = {"gsm": "numeric", "math": "math", "mmlu": "mcq", "crux": "literal", "zebra": "given"}


@importer("zeroeval")
def zeroeval(
    row: dict[str, Any], where: str, path: Path, result: reading.ImportResult
) -> dict[str, Any] | None:
    """Outputs are labelled here, by a rule scorer, not as upstream labelled them."""
    if path.name.endswith(".summary.json"):
        return None
    task, history = path.parent.name, row.get("chat_history")
    scorer = next((s for start, s in _SCORERS.items() if task.startswith(start)), "auto")
    prompt = reading.text(history[0]) if isinstance(history, list) and history else None
    outputs = row["output"] if isinstance(row["output"], list) else [row["output"]]
    answers = [
        {
            "_sample": sample,
            "_output": output,
            "_model": path.stem,
            "generator": row.get("generator"),
        }
        for sample, output in enumerate(outputs)
    ]
    return {
        "_scorer": scorer, "_references": _references(row, scorer), ANSWERS: answers,
        "_asked": reading.text(row.get("question")) or prompt or "",
        **({} if prompt is None else {"_prompt": prompt}),
    }  # fmt: skip


def _references(row: dict[str, Any], scorer: str) -> tuple[str, ...]:
    answer = row.get("answer", row.get("correct_answer"))
    if scorer == "numeric" and isinstance(answer, str):
        return (answer.rsplit("####", 1)[-1].lstrip("# ").strip(),)
    choices = reading.options(row.get("choices"))
    if scorer == "mcq" and isinstance(answer, str) and answer in choices:
        return (chr(ord("A") + choices.index(answer)),)
    return reading.texts(answer)
