"""Routing benchmarks as they are published: their records, which `importers.yaml` maps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines.common import files, pickles
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.untrusted import bounded
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.mapping import ANSWERS, Record, importer, mapping_of

# EmbedLLM: `train.csv`, `val.csv`, `test.csv` with one 0/1 label per model and prompt.
#
# File names and licence checked against the pages of the dataset RZ412/EmbedLLM, columns
# against richardzhuang0412/EmbedLLM (`data_preprocessing/download_data.py`,
# `algorithm/knn.py`, `algorithm/mf.py`); not checked against a file. Its reader takes the
# better of repeated labels and 0 for missing ones; here repeats are samples and what is
# missing is missing.

embedllm = importer("embedllm")()

# MixInstruct: instructions with the candidates of several models and their metrics.
#
# Layout checked against the card and the list of files of the dataset
# llm-blender/mix-instruct and against its reader in yuchenlin/LLM-Blender
# (`llm_blender/pair_ranker/data.py`: JSON lines or one JSON list).

mixinstruct = importer("mixinstruct")()
mixinstruct_bartscore = importer("mixinstruct_bartscore")()

# AlpacaEval: `<model>/<annotator>/annotations.json`, preferences of a judge.

alpaca_eval = importer("alpaca_eval")()


# LLMRouterBench: a tree `results/bench/<dataset>/<split>/<model>/…json`.
#
# Layout checked against what ynulihao/LLMRouterBench writes (`data_collector/storage.py`,
# `runner.py`, `generators/generator.py`) and reads (`baselines/data_loader.py`); the
# published archive has one level less (`bench-release/<dataset>/<model>/…json`). As
# there, the newest run by the time in the file's name counts. Its reader takes a null
# score as 0; here such an answer has no score.

_HEADER = ("model_name", "dataset_name", "split", "records")
_RECORD = mapping_of("llmrouterbench").needs
#: How the three places that catch an error write it in place of the output.
_LLMROUTERBENCH_FAILED = ("Generation failed: ", "Processing failed: ", "Unexpected error: ")


@importer("llmrouterbench", newest_first=re.compile(r"\d{8}_\d{6}(?=\.json$)"))
def llmrouterbench(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
    """Identity comes from the header, not from the path; failed calls are missing answers."""
    seen: set[tuple[str, ...]] = set()
    for path in paths:
        content = reading.load_json(path)
        if reading.stray(result, content, (*_HEADER, "records"), path.name):
            continue
        run = reading.obj(content, str(path))
        reading.need(run, _HEADER, str(path))
        model, dataset, split = identity = tuple(str(run[key]) for key in _HEADER[:3])
        if run.get("demo"):
            result.left_out["demonstration runs"] += 1
            continue
        if identity in seen:
            result.skip("older runs of the same model and dataset", path.name)
            continue
        seen.add(identity)
        rows = reading.objects(run["records"], str(path))
        for where, record in reading.records(rows, _RECORD, path.name):
            output = reading.text(record.get("raw_output"))
            # A failed record may have lost its question too: it is looked at first.
            if output.startswith(_LLMROUTERBENCH_FAILED):
                result.left_out["failed calls"] += 1
            elif not output and reading.score(record["score"], where) is None:
                result.left_out["records without output and score"] += 1
            else:
                asked = reading.text(record["origin_query"]) or record["prompt"]
                own = {"_model": model, "_dataset": dataset, "_split": split, "_asked": asked}
                yield where, {**record, **own}


# RouteLLM: `mmlu_<subject>.csv` and `gsm8k_responses.csv`, a strong and a weak model.


@importer("routellm")
def routellm(
    row: dict[str, Any], where: str, path: Path, result: reading.ImportResult
) -> dict[str, Any]:
    """Every column besides `prompt` and `<model>_response` is a model."""
    names = [n for n in row if n not in ("prompt", "", "Unnamed: 0")]
    models = [n for n in names if not n.endswith("_response")]
    odd = [n for n in models if row[n].strip().lower() not in ("true", "false", "", "0", "1")]
    if odd or len(models) < 2:
        raise SourceError(
            f"column {odd[0]!r} is no model's True/False" if odd else "two models are expected",
            where=where,
            next_step=f"expected: {routellm.layout}",
        )
    answers = [
        {"_model": model, "_score": row[model], "_text": row.get(f"{model}_response"),
         "_where": f"{where}, {model}"}
        for model in models
    ]  # fmt: skip
    return {"_task": path.stem.removeprefix("mmlu_").removesuffix("_responses"), ANSWERS: answers}


# RouterArena: a router's predictions, one model's answer per query.
#
# Layout checked against files of RouteWorks/RouterArena (`router_inference/predictions/`:
# `vllm-sr.json`, `sqwish-router.json`, `your-router-robustness.json`) and against the
# scripts that write and check them (`llm_inference/run.py`, `llm_evaluation/run.py`,
# `router_inference/check_config_prediction_files.py`).


@importer("routerarena")
def routerarena(
    row: dict[str, Any], where: str, path: Path, result: reading.ImportResult
) -> dict[str, Any]:
    """Placeholders and failed calls are counted, not imported."""
    index = str(row["global index"])
    own: dict[str, Any] = {"_task": index.rsplit("_", 1)[0], ANSWERS: []}
    call = reading.within(row, where, "generated_result")
    absent = not call.get("success") or call.get("provider") == "placeholder"
    if absent or (call.get("generated_answer") is None and row.get("accuracy") is None):
        result.left_out["failed or absent calls"] += 1
        return own
    output, key = reading.output_text(call["generated_answer"]), (index, str(row["prediction"]))
    if key in result.seen:
        # Several routers that chose the same model share one cached answer.
        same = "same answer" if result.seen[key] == output else "other answer"
        result.left_out[f"repeats by another router, {same}"] += 1
        return own
    result.seen[key] = output
    usage = reading.within(call, where, "token_usage")
    return {**own, ANSWERS: [{**row, "generated_answer": output, "token_usage": usage}]}


# RouterBench: `routerbench_{0,5}shot.pkl`, a wide pandas pickle of eleven models.
#
# Columns checked against what withmartian/routerbench writes and reads
# (`convertors/common.py`, `convertors/martian_evals_convertor.py`, `utils.py`,
# `evaluate_routers.py`), and against the list of columns, blocks and pickled names that
# Hbin77/tierroute holds of the very file (`src/tierroute/adapters/routerbench.py`); the
# file itself was not at hand. It holds the scores of the eleven models as objects.


@importer("routerbench")
def routerbench(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
    """A question of the wide frame with one answer per model; an empty cell is a missing answer.

    The file repeats some ids: with another prompt, which is another question (`id#2`), or with the
    same one, each row holding the cells the other lacks.
    """
    for file in paths:
        frame = pickles.read(file)
        if not isinstance(frame, pickles.Frame):
            raise SourceError("the pickle holds no data frame", where=str(file))
        columns = list(frame.columns)
        reading.need(dict.fromkeys(columns), mapping_of("routerbench").needs, str(file))
        models = [name for name in columns if f"{name}|total_cost" in columns]
        if not models:
            raise SourceError("no column has a twin '<model>|total_cost'", where=str(file))
        asked: dict[str, dict[tuple[str, str], list[Record]]] = {}
        for number, row in enumerate(frame.rows(), 1):
            name = str(row["sample_id"])
            called = f"{file.stem}/{name}" if len(paths) > 1 else name
            key = (_unwrapped(row["prompt"]), str(row["eval_name"]))
            rows = asked.setdefault(called, {}).setdefault(key, [])
            rows.append((f"{file.name}, row {number}", dict(row)))
        for called, apart in asked.items():
            for number, ((prompt, task), rows) in enumerate(apart.items(), 1):
                name = called if number == 1 else f"{called}#{number}"
                cells = [cell for model in models for cell in _cells(result, model, rows)]
                own = {"id": name, "question": prompt, "prompt": prompt, "task": task}
                yield rows[0][0], {**own, ANSWERS: cells}


def _cells(
    result: reading.ImportResult, model: str, rows: Sequence[Record]
) -> list[dict[str, Any]]:
    """A model's answers; halves are put together, a second graded answer is a sample."""
    answers: list[dict[str, Any]] = []
    for where, row in rows:
        cell = {
            "score": reading.score(row[model], f"{where}, {model}"),
            "text": _unwrapped(row.get(f"{model}|model_response")) or None,
            "cost_usd": reading.spent(row[f"{model}|total_cost"], None, where),
        }
        if cell["score"] is None and cell["text"] is None:
            continue
        # The cells of a half do not contradict each other: what both know is the same.
        half = next(
            (
                answer
                for answer in answers
                if all(None in (answer[k], v) or answer[k] == v for k, v in cell.items())
            ),
            None,
        )
        if half is None:
            answers.append(cell)
        elif half == cell:
            result.left_out["cells that repeat another row's"] += 1
        else:
            half |= {name: value for name, value in cell.items() if half[name] is None}
    if not answers:
        result.left_out["pairs without answer"] += 1
    return [{**answer, "model": model, "sample": at} for at, answer in enumerate(answers)]


def _unwrapped(value: Any) -> str:
    """The text inside `['…']`, the form in which a list of one text was stored."""
    if value is None or value != value:
        return ""
    text = str(value)
    if text.startswith("[") and text.endswith("]") and len(text) < 1_000_000:
        try:
            parts = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text
        if isinstance(parts, list) and parts and all(isinstance(part, str) for part in parts):
            return "\n".join(parts)
    return text


# RouterEval: pickles of score matrices per pool size and composition.
#
# Layout checked against the generator and the test script of MilkThink-Lab/RouterEval
# (`get_router_dataset.py`, `test_router.py`; its data are on a cloud drive and were not
# at hand): `easy` → 3, 5 and `hard` → 10, 100, 1000 → `all_strong`, `all_weak`,
# `strong_to_weak` → `data` and `model`; `prompt`, `split_index` and `embedding` are
# once, at the top. All pools share one division, so a row is the same question in each.


@importer("routereval")
def routereval(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
    """The rows of all pools; a model in several pools has one score per question."""
    for path in paths:
        pools = list(_pools(pickles.read(path), (), 0))
        if not pools:
            raise SourceError(
                "the pickle holds no pool with 'data' and 'model'",
                where=str(path),
                next_step=f"expected: {routereval.layout}",
            )
        scores: dict[tuple[str, str], float] = {}
        task = path.stem.removesuffix("_router_dataset")
        for name, pool in pools:
            where = f"{path.name}, {'/'.join(name) or 'top'}"
            for place, row in _pool(task, pool, where):
                own = []
                for item in row[ANSWERS]:
                    score = reading.score(item["score"], place)
                    key = (row["id"], item["model"])
                    if score is None or key not in scores:
                        own.append(item)
                    if score is not None and scores.setdefault(key, score) != score:
                        raise SourceError(
                            f"{item['model']!r} has two scores for one question", where=where
                        )
                yield place, {**row, ANSWERS: own}


def _pools(
    node: Any, name: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    if not isinstance(node, dict) or depth > 4:
        return
    if "data" in node and "model" in node:
        yield name, node
        return
    # The prompts are once above the pools of every size and composition.
    shared = {"prompt": node["prompt"]} if "prompt" in node else {}
    for key in sorted(node, key=str):
        inner = node[key]
        if isinstance(inner, dict) and key not in ("prompt", "split_index", "embedding"):
            yield from _pools({**shared, **inner}, (*name, str(key)), depth + 1)


def _pool(task: str, pool: Mapping[str, Any], where: str) -> Iterator[Record]:
    models = [str(name) for name in pool["model"]]
    data, prompts = pool["data"], pool.get("prompt")
    if not isinstance(data, dict):
        raise SourceError("'data' is no dictionary of score matrices", where=where)
    reading.need(data, [f"{short}_score" for short in reading.SPLITS], where)
    for short, split in reading.SPLITS.items():
        rows = data[f"{short}_score"]
        texts = prompts.get(f"{short}_prompt") if isinstance(prompts, dict) else None
        if texts is not None and len(texts) != len(rows):
            raise SourceError(
                f"{split}: {len(texts)} prompts for {len(rows)} rows of scores", where=where
            )
        for number, row in enumerate(rows):
            place = f"{where}, {split} row {number + 1}"
            if len(row) != len(models):
                raise SourceError(f"{len(row)} scores for {len(models)} models", where=place)
            # Not the text: several rows may ask the same, and keep a score each.
            query = f"{task}/{split}-{number}"
            asked = reading.text(texts[number]) if texts is not None else ""
            if not asked.strip():
                asked = f"[question {query}: its text is not in the file]"
            cells = [{"model": m, "score": s} for m, s in zip(models, row, strict=True)]
            own = {"id": query, "question": asked, "prompt": asked, "task": task, "split": split}
            yield place, {**own, ANSWERS: cells}


# SPROUT (CARROT): Parquet with one struct of tokens and score per model.
#
# Layout checked against what reads the dataset, not against a file: somerstep/CARROT
# (`carrot/gen_sprout.py`, `LLMJudge.ipynb`: six columns, then the models) and two public
# loaders with its files (`data/{train,validation,test}-0000k-of-0000n.parquet`) and its
# fields (`judge_response`, `num_input_tokens`, `num_output_tokens`, `response`, `score`).
# SPROUT-o3mini has the same columns and one more model.


@importer("sprout")
def sprout(
    row: dict[str, Any], where: str, path: Path, result: reading.ImportResult
) -> dict[str, Any]:
    """A model has a struct with a score. Tokens are given, dollars are not: costs stay unknown."""
    models = result.seen.get(path) or result.seen.setdefault(path, _sprout_models(path))
    cells = {model: row[model] for model in models if isinstance(row.get(model), dict)}
    if absent := len(models) - len(cells):
        result.left_out["pairs without answer"] += absent
    answers = [{**c, "_model": m, "_where": f"{where}, {m}"} for m, c in cells.items()]
    return {ANSWERS: answers}


def _sprout_models(path: Path) -> list[str]:
    """Columns that hold a struct with a score: the schema knows, a single row may lack some."""
    structs = [field for field in pq.read_schema(bounded(path)) if pa.types.is_struct(field.type)]
    models = [field.name for field in structs if field.type.get_field_index("score") >= 0]
    if not models:
        raise SourceError(
            "no column is a model's struct",
            where=str(path),
            next_step=f"expected: {sprout.layout}",
        )
    return models


# ulab LLMRouter: JSONL of one routed answer per line.
#
# Layout checked against ulab-uiuc/LLMRouter: `llmrouter/data/README.md` (output formats)
# and `llmrouter/data/api_calling_evaluation.py`, which writes the files. A question is
# what upstream takes as one: task, query and ground truth.

_ULAB_COLUMNS = mapping_of("ulab").needs
#: What `call_api` and the script around it write in place of a response.
_ULAB_FAILED = ("API Error", "ERROR: ")


@importer("ulab")
def ulab(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
    """Error texts in place of a response are missing answers."""
    # Files of the same ending beside the routed answers hold only the queries.
    paths = [path for path in paths if "routing" in path.name] or paths
    #: Question → its id and split: one of both files keeps the split it came with.
    known: dict[tuple[str, ...], tuple[str, str | None]] = {}
    for path in paths:
        split = next((s for s in ("train", "test") if f"_{s}" in path.stem), None)
        for where, row in reading.records(
            files.rows(path, "jsonl"), _ULAB_COLUMNS, path.name, result
        ):
            asked = tuple(reading.text(row[key]) for key in _ULAB_COLUMNS[:3])
            query, first = known.setdefault(asked, (f"{asked[0]}/{len(known)}", split))
            options = _choices(row.get("choices"), where)
            own: dict[str, Any] = {"_id": query, "_split": first, "_choices": options}
            output = row["response"]
            unanswered = output is None and row["performance"] is None
            if unanswered or str(output).startswith(_ULAB_FAILED):
                result.left_out["failed calls"] += 1
                own[ANSWERS] = []
            yield where, {**row, **own}


def _choices(value: object, where: str) -> tuple[str, ...]:
    """Options of a JSON string that holds a list, or an object with `text`."""
    if isinstance(value, str):
        value = reading.parse_json(value.encode(), where) if value.strip() else None
    if isinstance(value, dict):
        value = value.get("text")
    return reading.options(value)
