"""HELM: a folder per run with `per_instance_stats.json`, `scenario_state.json` and `run_spec.json`.

Layout checked against runs that its release 0.5 wrote (hellaswag, MMLU and NarrativeQA), as they
are published among the test data of evaleval/every_eval_ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.ingest.importers import reading, spec

#: Metrics in [0, 1], the one that counts first; a run's own list comes before.
_METRICS = (
    "exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match",
    "chain_of_thought_correctness", "final_number_exact_match", "math_equiv_chain_of_thought",
    "math_equiv", "code_eval_acc", "pass", "test_avg", "f1_score", "rouge_l",
    "ifeval_strict_accuracy",
)  # fmt: skip
#: Metrics of what a request took, in the order of the fields they fill.
_USAGE = ("num_prompt_tokens", ("num_output_tokens", "num_completion_tokens"), "inference_runtime")


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """One run per folder; its metric is the first of `_METRICS` that its instances have."""
    for path in paths:
        folder = path.parent
        rows = reading.load_json(path)
        if reading.stray(result, rows, ("instance_id", "stats"), folder.name):
            continue
        spec_file, state_file = folder / "run_spec.json", folder / "scenario_state.json"
        run = _object(spec_file, folder) | {"folder": folder.name}
        states = _states(_object(state_file, folder))
        model = _model(run)
        if model is None:
            result.skip("runs that name no model (run_spec.json)", folder.name)
            continue
        yield from _run(reading.objects(rows, str(path)), states, run, model, result)


def _run(
    rows: list[dict[str, Any]], states: Mapping[tuple[str, int], dict[str, Any]],
    run: Mapping[str, Any], model: str, result: spec.ImportResult,
) -> Iterator[spec.ImportedAnswer]:  # fmt: skip
    task = str(run.get("name") or run["folder"]).replace(f"model={model}", "").replace(
        f"model={model.replace('/', '_')}", "").strip(",:-")  # fmt: skip
    stats = [_stats(row) for row in rows]
    metric = next((m for m in _METRICS if any(m in one for one in stats)), None)
    if metric is None:
        result.skip("runs without a metric from 0 to 1", str(run["folder"]))
        return
    others = [m for m in _METRICS if m != metric and any(m in one for one in stats)]
    if others:
        result.choices.append(f"the score of {run['folder']} is {metric}, not {', '.join(others)}")
    splits = sorted({str(state["instance"].get("split")) for state in states.values()})
    if len(splits) > 1:
        result.doubts.append(f"{run['folder']} mixes the splits {', '.join(splits)}")
    for row, found in zip(rows, stats, strict=True):
        where = f"{run['folder']}, instance {row.get('instance_id')}"
        reading.need(row, ("instance_id", "stats"), where)
        query, trial = f"{task}/{row['instance_id']}", int(row.get("train_trial_index") or 0)
        if row.get("perturbation"):
            result.left_out["perturbed copies of instances"] += 1
            continue
        state = states.get((str(row["instance_id"]), trial), {})
        result.ask(_question(query, task, state, where), where)
        score = reading.score(found.get(metric), where)
        yield _answer(query, model, trial, score, state, found, where)


def _answer(
    query: str, model: str, trial: int, score: float | None, state: Mapping[str, Any],
    found: Mapping[str, Any], where: str,
) -> spec.ImportedAnswer:  # fmt: skip
    """One instance's answer; `found` holds the metrics of what the request took."""
    prompt_tokens, completion_tokens, seconds = (_first(found, names) for names in _USAGE)
    failed = (state.get("result") or {}).get("success") is False
    return spec.ImportedAnswer(
        query=query,
        model=model,
        sample=trial,
        text=_text(state),
        score=score,
        served_model=(state.get("request") or {}).get("model_deployment"),
        prompt_tokens=reading.count(prompt_tokens, where),
        completion_tokens=reading.count(completion_tokens, where),
        latency_s=reading.amount(seconds, where),
        status="error" if failed else None,
    )


def _object(path: Path, folder: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    reading.inside(path, folder)
    return reading.obj(reading.load_json(path), str(path))


def _states(content: Mapping[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    """(instance, trial) → the request and its result."""
    return {
        (str(state["instance"].get("id")), int(state.get("train_trial_index") or 0)): state
        for state in content.get("request_states") or ()
        if isinstance(state, dict) and isinstance(state.get("instance"), dict)
        and not state["instance"].get("perturbation")
    }  # fmt: skip


def _model(run: Mapping[str, Any]) -> str | None:
    """The model of a run, as its specification or the folder's name states it."""
    adapter = run.get("adapter_spec") or {}
    named = adapter.get("model") or adapter.get("model_deployment")
    if named:
        return str(named)
    parts = str(run["folder"]).replace(":", ",").replace("-model=", ",model=").split(",")
    return next((one.removeprefix("model=") for one in parts if one.startswith("model=")), None)


def _stats(row: Mapping[str, Any]) -> dict[str, Any]:
    """Metric → mean of an instance."""
    found = {}
    for one in row.get("stats") or ():
        name = one.get("name")
        label = name.get("name") if isinstance(name, dict) else name
        if label is not None and one.get("count", 1):
            found[str(label)] = one.get("mean", one.get("sum"))
    return found


def _first(found: Mapping[str, Any], names: str | tuple[str, ...]) -> Any:
    listed = (names,) if isinstance(names, str) else names
    return next((found[name] for name in listed if name in found), None)


def _question(query: str, task: str, state: Mapping[str, Any], where: str) -> spec.ImportedQuestion:
    instance = state.get("instance") or {}
    asked = reading.text((instance.get("input") or {}).get("text"))
    references = [one for one in instance.get("references") or () if isinstance(one, dict)]
    options = state.get("output_mapping") or {}
    right = [reading.text((one.get("output") or {}).get("text")) for one in references
             if "correct" in (one.get("tags") or ())]  # fmt: skip
    letters = [letter for letter, text in options.items() if text in right]
    return spec.ImportedQuestion(
        id=query,
        question=asked or query,
        prompt=reading.text((state.get("request") or {}).get("prompt")) or None,
        task=task,
        choices=tuple(reading.text(text) for text in options.values()),
        references=tuple(letters or right),
        split=reading.split_named(str(instance.get("split"))),
    )


def _text(state: Mapping[str, Any]) -> str | None:
    completions = (state.get("result") or {}).get("completions") or ()
    return reading.output_text(completions[0].get("text")) if completions else None


IMPORTER = spec.importer("helm", read)
