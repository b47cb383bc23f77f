"""What real trees hold besides the plain case: older runs, failures, prompts in other places.

Each layout is the one its importer's docstring says it was checked against.
"""

from __future__ import annotations

import json
import pickle
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common.errors import SourceError, Unsafe
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.reading import members
from routeyard.pipelines.ingest.importers.write import ImportReport, run_import


def _import(name: str, path: Path, tmp_path: Path) -> tuple[ImportReport, list[dict], list[dict]]:
    done = run_import(IMPORTERS.get(name), path, tmp_path / "yard" / "imports" / name)
    questions = pq.read_table(done.folder / "queries.parquet").to_pylist()
    return done, questions, pq.read_table(done.folder / "responses.parquet").to_pylist()


def _lines(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _document(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")


def test_routerbench_scores_stand_as_objects_and_a_repeated_row_counts_once(tmp_path):
    models = ["WizardLM/WizardLM-13B-V1.2", "gpt-4-1106-preview"]
    frame = pd.DataFrame(
        {
            "sample_id": [
                "mmlu-sociology.val.1",
                "grade-school-math.dev.2",
                "mmlu-sociology.val.1",
            ],
            "prompt": ["['Which?']", "['How many?']", "['Which?']"],
            "eval_name": ["mmlu-sociology", "grade-school-math", "mmlu-sociology"],
            models[0]: pd.Series([0.0, 0.25, 0.0], dtype=object),
            models[1]: pd.Series([1.0, 1.0, 1.0], dtype=object),
            f"{models[1]}|model_response": ["['B']", "['7']", "['B']"],
            f"{models[0]}|model_response": ["['A']", "['8']", "['A']"],
            f"{models[1]}|total_cost": [0.001, 0.002, 0.001],
            f"{models[0]}|total_cost": [1e-5, 2e-5, 1e-5],
            "oracle_model_to_route_to": [models[1], models[1], models[1]],
        }
    )
    frame.index.rename("idx", inplace=True)
    frame.to_pickle(tmp_path / "routerbench_0shot.pkl", protocol=5)
    # The same answers once more in long form; it lies beside and is not read.
    frame.to_pickle(tmp_path / "routerbench_raw.pkl", protocol=5)
    done, _, answers = _import("routerbench", tmp_path, tmp_path)
    assert sorted((a["model"], a["score"]) for a in answers) == [
        (models[0], 0.0),
        (models[0], 0.25),
        (models[1], 1.0),
        (models[1], 1.0),
    ]
    assert done.left_out == {"cells that repeat another row's": 2}


def test_routerbench_loses_no_label_to_a_repeated_id(tmp_path):
    # The true file repeats 14 ids: other prompts, and rows of which each holds half the scores.
    nan = float("nan")
    frame = pd.DataFrame(
        {
            "sample_id": ["a.1", "a.1", "b.2", "b.2", "c.3", "c.3"],
            "prompt": ["['One?']", "['Another?']", "['Two?']", "['Two?']", "['Six?']", "['Six?']"],
            "eval_name": ["a", "a", "b", "b", "c", "c"],
            "gpt-4": pd.Series([1.0, 0.0, 1.0, nan, 1.0, 0.0], dtype=object),
            "yi": pd.Series([0.0, 1.0, nan, 0.5, 1.0, 1.0], dtype=object),
            "gpt-4|model_response": ["['x']", "['y']", "['z']", None, "['p']", "['q']"],
            "yi|model_response": ["['x']", "['y']", None, "['w']", "['p']", "['p']"],
            "gpt-4|total_cost": [0.1, 0.2, 0.3, nan, 0.5, 0.6],
            "yi|total_cost": [0.1, 0.2, nan, 0.4, 0.5, 0.5],
        }
    )
    frame.to_pickle(tmp_path / "routerbench_0shot.pkl", protocol=5)
    done, questions, answers = _import("routerbench", tmp_path, tmp_path)
    assert [q["question"] for q in questions] == ["One?", "Another?", "Two?", "Six?"]
    found = {(a["query"], a["model"], a["sample"]): a["score"] for a in answers}
    assert found == {
        ("a.1", "gpt-4", 0): 1.0, ("a.1", "yi", 0): 0.0,
        ("a.1#2", "gpt-4", 0): 0.0, ("a.1#2", "yi", 0): 1.0,
        # Halves of one question are put together.
        ("b.2", "gpt-4", 0): 1.0, ("b.2", "yi", 0): 0.5,
        # Two grades of one model on one question are two samples.
        ("c.3", "gpt-4", 0): 1.0, ("c.3", "gpt-4", 1): 0.0, ("c.3", "yi", 0): 1.0,
    }  # fmt: skip
    assert done.left_out == {"cells that repeat another row's": 1}


def _routereval(folder: Path, **changes: Any) -> Path:
    """As `get_router_dataset.py` builds it: prompts once on top, pools three levels down."""
    train, val, test = np.array([2, 0]), np.array([1]), np.array([3])
    prompts = np.array(["p0", "p1", "p0", "p3"])
    scores = {"m1": [1, 0, 0, 1], "m2": [0, 1, 1, 1], "m3": [1, 1, 0, 0]}

    def pool(*models: str) -> dict:
        matrix = np.array([scores[m] for m in models], dtype=float).T
        data = {"train_score": matrix[train], "val_score": matrix[val], "test_score": matrix[test]}
        return {"data": data, "model": np.array(models)}

    def split(values: Any, kind: str) -> dict:
        return {f"train_{kind}": values[train], f"val_{kind}": values[val]} | {
            f"test_{kind}": values[test]
        }

    dataset = {
        "easy": {3: {"all_strong": pool("m1", "m2"), "all_weak": pool("m2", "m3")}},
        "hard": {10: {"strong_to_weak": pool("m1", "m3")}},
        "split_index": {"train_indices": train, "val_indices": val, "test_indices": test},
        "embedding": split(np.ones((4, 8)), "embed"),
        "prompt": split(prompts, "prompt"),
    }
    path = folder / "gsm8k_router_dataset.pkl"
    path.write_bytes(pickle.dumps(dataset | changes))
    return path


def test_routereval_pools_share_the_prompts_on_top(tmp_path):
    done, questions, answers = _import("routereval", _routereval(tmp_path), tmp_path)
    by = {q["id"]: q for q in questions}
    # Two rows with one text are two questions, each with its scores.
    assert [by[f"gsm8k/train-{i}"]["prompt"] for i in (0, 1)] == ["p0", "p0"]
    assert by["gsm8k/validation-0"]["prompt"] == "p1"
    assert by["gsm8k/test-0"]["split"] == "test"
    # Three models on four rows, though each stands in two pools.
    assert len(answers) == 12
    assert {(a["query"], a["score"]) for a in answers if a["model"] == "m3"} == {
        ("gsm8k/train-0", 0.0),
        ("gsm8k/train-1", 1.0),
        ("gsm8k/validation-0", 1.0),
        ("gsm8k/test-0", 0.0),
    }
    assert done.left_out == {}


def test_routereval_prompts_of_another_length_are_refused(tmp_path):
    wrong = {"train_prompt": ["p0"], "val_prompt": ["p1"], "test_prompt": ["p3"]}
    with pytest.raises(SourceError, match="1 prompts for 2 rows"):
        _import("routereval", _routereval(tmp_path, prompt=wrong), tmp_path)


def test_sprout_a_model_that_the_first_row_lacks_is_still_a_model(tmp_path):
    def cell(score: float | None) -> dict:
        return {
            "judge_response": "Score: 1",
            "num_input_tokens": 10,
            "num_output_tokens": 20,
            "response": "an answer",
            "score": score,
        }

    head = {"dataset_level": None, "dataset_idx": 0, "prompt": "p", "golden_answer": None}
    rows = [
        {**head, "key": "k1", "dataset": "openhermes/teknium", "openai-gpt-4o": cell(1.0)},
        {**head, "key": "k2", "dataset": "lighteval/MATH/all", "openai-gpt-4o": cell(0.5)},
    ]
    rows[0]["wxai-llama-3-2-1b-instruct"] = None
    rows[1]["wxai-llama-3-2-1b-instruct"] = cell(0.0)
    (tmp_path / "data").mkdir()
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "data/validation-00000-of-00001.parquet")
    done, questions, answers = _import("sprout", tmp_path / "data", tmp_path)
    assert sorted((a["query"], a["model"], a["score"], a["text"]) for a in answers) == [
        ("lighteval/MATH/all/k2", "openai-gpt-4o", 0.5, "an answer"),
        ("lighteval/MATH/all/k2", "wxai-llama-3-2-1b-instruct", 0.0, "an answer"),
        ("openhermes/teknium/k1", "openai-gpt-4o", 1.0, "an answer"),
    ]
    assert {q["split"] for q in questions} == {"validation"}
    assert done.left_out == {"pairs without answer": 1}


def _bench_run(index: int, output: Any, score: float | None, **header: Any) -> dict:
    record = {
        "index": index,
        "origin_query": "q",
        "prompt": "q, please",
        "prompt_tokens": 4,
        "completion_tokens": 6,
        "cost": 0.5,
        "score": score,
        "prediction": [{"role": "user", "content": "q"}],
        "ground_truth": {"answer": 42, "unit": "m"},
        "raw_output": output,
        "extra_fields": {},
    }
    return {
        "performance": 0.0,
        "time_taken": 1.0,
        "prompt_tokens": 4,
        "completion_tokens": 6,
        "cost": 0.5,
        "counts": 1,
        "model_name": "m",
        "dataset_name": "aime",
        "split": "test",
        "demo": False,
        "extra_metrics": {},
        "data_fingerprint": "f",
        "records": [record],
        **header,
    }


def test_llmrouterbench_takes_the_newest_run_that_is_no_demonstration(tmp_path):
    folder = tmp_path / "results/bench/aime/test/m"
    _document(folder / "result.json", _bench_run(1, "oldest", 0.0))
    _document(folder / "aime-test-m-20250101_000000.json", _bench_run(1, "old", 0.0))
    _document(folder / "aime-test-m-20250301_120000.json", _bench_run(1, "new", 1.0))
    _document(folder / "aime-test-m-20250401_120000.json", _bench_run(1, "demo", 0.0, demo=True))
    # The published archive has no level for the split.
    other = _bench_run(1, "other", 0.5, model_name="n")
    _document(tmp_path / "results/bench/aime/n/aime-test-n-20250101_000000.json", other)
    done, questions, answers = _import("llmrouterbench", tmp_path / "results", tmp_path)
    assert {(a["model"], a["text"], a["score"]) for a in answers} == {
        ("m", "new", 1.0),
        ("n", "other", 0.5),
    }
    assert questions[0]["references"] == ['{"answer": 42, "unit": "m"}']
    assert done.left_out == {
        "demonstration runs": 1,
        "older runs of the same model and dataset (aime-test-m-20250101_000000.json, "
        "result.json)": 2,
    }


def test_llmrouterbench_failures_of_all_three_kinds_are_missing_answers(tmp_path):
    run = _bench_run(1, "Generation failed: 429", 0.0)
    lost = {"origin_query": "", "prompt": "", "ground_truth": "", "score": None}
    for index, output in enumerate(("Processing failed: x", "Unexpected error: y"), start=2):
        # The last kind has lost its question: it is not the empty one.
        changed = {**run["records"][0], **lost, "index": index, "raw_output": output}
        run["records"].append(changed)
    run["records"].append({**run["records"][0], "index": 4, "raw_output": "fine", "score": 1.0})
    _document(tmp_path / "results/bench/aime/test/m/aime-test-m-20250101_000000.json", run)
    done, questions, answers = _import("llmrouterbench", tmp_path / "results", tmp_path)
    assert [a["text"] for a in answers] == ["fine"]
    assert len(questions) == 1
    assert done.left_out == {"failed calls": 3}


def test_mixinstruct_of_an_earlier_revision_is_one_list(tmp_path):
    scores = {"logprobs": -0.02, "rougeL": 0.2, "bleu": 5.6, "bertscore": 0.7549, "bleurt": -0.3}
    candidate = {"decoding_method": "top_p_sampling", "model": "alpaca-native", "text": "t"}
    row = {
        "id": "dolly_15k/closed_qa/12",
        "instruction": "Say why.",
        "input": "The sky is blue.",
        "output": "Scattering.",
        "candidates": [{**candidate, "scores": scores}],
    }
    _document(tmp_path / "data/val_data_prepared.json", [row])
    _lines(tmp_path / "data/train_data_prepared.jsonl", [{**row, "id": "itwgpt4/7"}])
    # Not of the dataset: the fusion step writes its own files beside it.
    _document(tmp_path / "data/top_bertscore_outputs.json", [{"x": 1}])
    _, questions, answers = _import("mixinstruct", tmp_path / "data", tmp_path)
    assert {(q["task"], q["split"]) for q in questions} == {
        ("dolly_15k", "validation"),
        ("itwgpt4", "train"),
    }
    assert [a["score"] for a in answers] == [0.7549, 0.7549]


def _routed(task: str, query: str, model: str, **changes: Any) -> dict:
    return {
        "task_name": task,
        "query": query,
        "ground_truth": "4",
        "metric": "GSM8K",
        "choices": None,
        "task_id": None,
        "model_name": model,
        "response": "4",
        "token_num": 453,
        "input_tokens": 449,
        "output_tokens": 4,
        "response_time": 1.78,
        "api_key_used": "",
        "performance": 1.0,
        "embedding_id": 42,
        "user_id": None,
        "fig_id": None,
        **changes,
    }


def test_ulab_reads_the_routed_answers_and_not_the_queries_beside_them(tmp_path):
    folder = tmp_path / "data/example_data"
    query = {"task_name": "gsm8k", "query": "2+2?", "ground_truth": "4", "metric": "GSM8K"}
    _lines(folder / "query_data/default_query_train.jsonl", [query])
    train = [
        _routed("gsm8k", "2+2?", "a"),
        _routed("gsm8k", "2+2?", "b", response="ERROR: timeout", performance=0.0, input_tokens=0),
        # The same words with another truth are another question, as upstream has it.
        _routed("gsm8k", "2+2?", "a", ground_truth="four", performance=0.0),
    ]
    _lines(folder / "routing_data/default_routing_train_data.jsonl", train)
    # Upstream cuts the rows, not the queries: a query's models may lie in both files.
    test = [_routed("gsm8k", "2+2?", "c"), _routed("gsm8k", "2+2?", "a", performance=0.0)]
    _lines(folder / "routing_data/default_routing_test_data.jsonl", test)
    done, questions, answers = _import("ulab", folder, tmp_path)
    assert sorted(q["references"][0] for q in questions) == ["4", "four"]
    # Two answers of one model to one question are samples, none of them lost.
    assert sorted((a["model"], a["sample"]) for a in answers) == [
        ("a", 0),
        ("a", 0),
        ("a", 1),
        ("c", 0),
    ]
    assert done.left_out == {"failed calls": 1}


def _prediction(index: str, model: str, **changes: Any) -> dict:
    result = {
        "generated_answer": "\\boxed{B}",
        "success": True,
        "token_usage": {"input_tokens": 79, "output_tokens": 5, "total_tokens": 84},
        "provider": "openrouter",
        "error": None,
    }
    row = {
        "global index": index,
        "prompt": "Please read the following …",
        "prediction": model,
        "generated_result": result,
        "cost": 2.7e-05,
        "accuracy": 1.0,
        "for_optimality": False,
    }
    return row | changes


def test_routerarena_folder_of_predictions(tmp_path):
    folder = tmp_path / "router_inference/predictions"
    first = [
        _prediction("ArcMMLU_655", "gemini"),
        # Other models' answers, by which upstream measures how far from optimal a router is.
        _prediction("ArcMMLU_655", "deepseek", for_optimality=True, accuracy=None, cost=None),
        _prediction("ArcMMLU_656", "gemini", generated_result=None, cost=None, accuracy=None),
    ]
    placeholder = {**first[0]["generated_result"], "provider": "placeholder"}
    _document(folder / "a-router.json", first)
    _document(folder / "b-router.json", [_prediction("ArcMMLU_655", "gemini")])
    _document(
        folder / "your-router.json",
        [_prediction("AIME_1", "gemini", generated_result=placeholder, accuracy=None)],
    )
    # The same index with other words: not the same question, and no answer of the benchmark.
    reworded = _prediction("ArcMMLU_655", "gemini", prompt="Carefully examine …", accuracy=None)
    _document(folder / "a-router-robustness.json", [reworded])
    done, _, answers = _import("routerarena", folder, tmp_path)
    assert sorted((a["model"], a["score"], a["cost_usd"]) for a in answers) == [
        ("deepseek", None, None),
        ("gemini", 1.0, 2.7e-05),
    ]
    assert done.left_out == {
        "failed or absent calls": 2,
        "repeats by another router, same answer": 1,
        "robustness files, which reword the queries": 1,
    }


def _logged(arguments: Any, resps: Any, **metrics: Any) -> dict:
    return {
        "doc_id": 0,
        "doc": {"q": "2+2?"},
        "target": "4",
        "arguments": arguments,
        "resps": resps,
        "filtered_resps": ["4"],
        "filter": "none",
        "metrics": list(metrics),
        "doc_hash": "x",
        "prompt_hash": "y",
        "target_hash": "z",
        **metrics,
    }


def test_lm_eval_newest_run_chat_prompts_and_requests_without_text(tmp_path):
    folder = tmp_path / "out/meta__dummy"
    old, new = "2026-01-02T03-04-05.678901", "2026-11-21T05-38-56.384990"
    settings = {"until": ["\n"], "max_gen_toks": 4}
    plain = {"gen_args_0": {"arg_0": "Q: 2+2?\nA:", "arg_1": settings}}
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}]
    # A conversation is logged as its JSON in a list of one.
    chat = {"gen_args_0": {"arg_0": [json.dumps(turns)], "arg_1": settings}}
    single = {"gen_args_0": {"arg_0": "Q: 2+2?\nA:", "arg_1": " 4"}}
    _lines(folder / f"samples_gen_{old}.jsonl", [_logged(plain, [["5"]], exact_match=0.0)])
    _lines(folder / f"samples_gen_{new}.jsonl", [_logged(plain, [["4"]], exact_match=1.0)])
    _lines(folder / f"samples_chat_{new}.jsonl", [_logged(chat, [["4"]], exact_match=1.0)])
    likely = _logged(single, [[["-0.7576", "False"]]], perplexity=-0.7576, acc=0)
    _lines(folder / f"samples_ll_{new}.jsonl", [likely])
    _document(folder / f"results_{new}.json", {"model_name": "meta/dummy", "results": {}})
    done, questions, answers = _import("lm_eval", tmp_path / "out", tmp_path)
    by = {a["query"]: a for a in answers}
    assert {a["model"] for a in answers} == {"meta/dummy"}
    assert (by["gen/0"]["text"], by["gen/0"]["score"]) == ("4", 1.0)
    # A single log-likelihood is no generated text, though it is logged as one string.
    assert (by["ll/0"]["text"], by["ll/0"]["score"]) == (None, 0.0)
    assert {q["id"]: q["question"] for q in questions}["chat/0"] == "Be brief.\n\n2+2?"
    older = f"older runs of the same model and task (meta__dummy/samples_gen_{old}.jsonl)"
    assert done.left_out == {older: 1}


def _zstandard_zip(path: Path, files: dict[str, bytes], *, size: int | None = None) -> None:
    """A zip whose members are packed with Zstandard, as newer Inspect writes its logs."""
    body, directory = b"", b""
    for name, content in files.items():
        packed = pa.compress(content, codec="zstd", asbytes=True)
        shared = struct.pack(
            "<HHHHHIIIHH",
            *(63, 0, 93, 0, 33, zlib.crc32(content), len(packed), size or len(content)),
            *(len(name), 0),
        )
        place = len(body)
        body += b"PK\x03\x04" + shared + name.encode() + packed
        directory += b"PK\x01\x02" + struct.pack("<H", 63) + shared
        directory += struct.pack("<HHHII", 0, 0, 0, 0, place) + name.encode()
    end = struct.pack("<HHHHIIH", 0, 0, len(files), len(files), len(directory), len(body), 0)
    path.write_bytes(body + directory + b"PK\x05\x06" + end)


def _eval_log(folder: Path, stamp: str, task_id: str, value: str) -> None:
    header = {
        "version": 2,
        "status": "success",
        "eval": {"eval_id": "e", "run_id": "r", "task": "sums", "task_id": task_id, "model": "o/g"},
        "plan": {"name": "plan", "steps": []},
        "stats": {},
        "invalidated": False,
    }
    sample = {
        "id": 1,
        "epoch": 1,
        "input": "2+2?",
        "choices": ["3", "4"],
        "target": ["4", "four"],
        "messages": [],
        "output": {
            "model": "g",
            "choices": [{"message": {"role": "assistant", "content": "4"}, "stop_reason": "stop"}],
            "completion": "4",
            "usage": {"input_tokens": 2, "output_tokens": 1, "total_tokens": 3},
            "time": 0.25,
        },
        "scores": {"match": {"value": value, "answer": "4", "explanation": "4", "history": []}},
        "error_retries": [],
        "events_data": {"messages": [], "calls": []},
    }
    failed = {**sample, "id": 2, "scores": {}, "error": {"message": "timeout"}}
    failed["output"] = {"model": "g", "choices": [], "completion": ""}
    folder.mkdir(exist_ok=True)
    members = {
        "_journal/start.json": json.dumps({"version": 2, "eval": header["eval"]}),
        "samples/1_epoch_1.json": json.dumps(sample),
        "samples/2_epoch_1.json": json.dumps(failed),
        "summaries.json": "[]",
        "header.json": json.dumps(header),
    }
    packed = {name: text.encode() for name, text in members.items()}
    _zstandard_zip(folder / f"{stamp}_sums_{task_id}.eval", packed)


def test_inspect_logs_packed_with_zstandard_and_a_task_that_was_retried(tmp_path):
    folder = tmp_path / "logs"
    _eval_log(folder, "2026-11-20T05-34-50-00-00", "t1", "I")
    _eval_log(folder, "2026-11-21T05-34-50-00-00", "t1", "C")
    done, questions, answers = _import("inspect", folder, tmp_path)
    # A sample that ended in an error is an answer that is missing, and not a wrong one.
    said = [(a["score"], a["text"], a["prompt_tokens"], a["status"]) for a in answers]
    assert said == [(1.0, "4", 2, None), (None, None, None, "error")]
    assert questions[0]["references"] == ["4", "four"]
    assert done.left_out == {
        "older logs of a task that was retried (2026-11-20T05-34-50-00-00_sums_t1.eval)": 1,
    }


def test_a_zstandard_bomb_is_refused_whatever_size_it_declares(tmp_path):
    path = tmp_path / "bomb.eval"
    _zstandard_zip(path, {"header.json": b"0" * 50_000_000}, size=10)
    assert path.stat().st_size < 100_000
    with pytest.raises(Unsafe, match="unfolds to more than"):
        list(members(path, ".json"))


@pytest.mark.parametrize("place", [60, -60])
def test_a_damaged_zstandard_member_is_named(tmp_path, place):
    path = tmp_path / "log.eval"
    _zstandard_zip(path, {"header.json": bytes(range(256)) * 40})
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises((SourceError, zipfile.BadZipFile), match="cannot be read"):
        list(members(path, ".json"))


def _helm_run(folder: Path, *, success: bool = True, perturbed: bool = False) -> None:
    """Files of one HELM run with one instance, in the layout of its release 0.5."""
    name = {"split": "test"}
    stats = [
        {"name": {"name": "num_prompt_tokens", **name}, "count": 1, "mean": 790.0},
        {"name": {"name": "exact_match", **name}, "count": 1, "mean": 1.0},
        {"name": {"name": "quasi_exact_match", **name}, "count": 1, "mean": 0.0},
    ]
    rows = [{"instance_id": "id7", "train_trial_index": 0, "stats": stats}]
    if perturbed:
        rows.append({**rows[0], "perturbation": {"name": "typos"}})
    instance = {
        "id": "id7",
        "split": "valid",
        "input": {"text": "Which is a fruit?"},
        "references": [
            {"output": {"text": "apple"}, "tags": ["correct"]},
            {"output": {"text": "stone"}, "tags": []},
        ],
    }
    state = {
        "instance": instance,
        "train_trial_index": 0,
        "output_mapping": {"A": "stone", "B": "apple"},
        "request": {"prompt": "Which is a fruit?\nAnswer:", "model_deployment": "hub/m-1"},
        "result": {"success": success, "completions": [{"text": " B"}] if success else []},
    }
    folder.mkdir(parents=True)
    (folder / "per_instance_stats.json").write_text(json.dumps(rows))
    (folder / "scenario_state.json").write_text(json.dumps({"request_states": [state]}))
    run = {"name": "fruit:model=maker_m-1", "adapter_spec": {"model": "maker/m-1"}}
    (folder / "run_spec.json").write_text(json.dumps(run))


def test_helm_takes_the_metric_and_not_the_request_that_succeeded(tmp_path):
    # The trap: `result.success` says that the request was answered, and the output is a letter.
    _helm_run(tmp_path / "runs" / "fruit:model=maker_m-1", perturbed=True)
    done, questions, answers = _import("helm", tmp_path / "runs", tmp_path)
    assert [(a["model"], a["score"], a["text"]) for a in answers] == [("maker/m-1", 1.0, " B")]
    assert (answers[0]["prompt_tokens"], answers[0]["served_model"]) == (790, "hub/m-1")
    assert (questions[0]["choices"], questions[0]["references"]) == (["stone", "apple"], ["B"])
    assert (questions[0]["id"], questions[0]["split"]) == ("fruit/id7", "validation")
    assert done.left_out == {"perturbed copies of instances": 1}
    assert "is exact_match, not quasi_exact_match" in done.recipe.read_text(encoding="utf-8")


def test_a_helm_request_that_failed_is_an_error(tmp_path):
    _helm_run(tmp_path / "runs" / "fruit:model=maker_m-1", success=False)
    _, _, answers = _import("helm", tmp_path / "runs", tmp_path)
    assert (answers[0]["status"], answers[0]["text"]) == ("error", None)
