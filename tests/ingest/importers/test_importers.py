"""Each importer on files in the layout of its public repository."""

from __future__ import annotations

import csv
import json
import math
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from routeyard.flows.recipe import load
from routeyard.pipelines.common.errors import SourceError, UnknownName
from routeyard.pipelines.ingest import ingest
from routeyard.pipelines.ingest.guess_scorers import ScorerAgreement
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.write import ImportExists, ImportReport, run_import
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import ScoringInput


def _import(name: str, path: Path, tmp_path: Path) -> tuple[ImportReport, list[dict], list[dict]]:
    done = run_import(IMPORTERS.get(name), path, tmp_path / "yard" / "imports" / name)
    questions = pq.read_table(done.folder / "queries.parquet").to_pylist()
    answers = pq.read_table(done.folder / "responses.parquet").to_pylist()
    return done, questions, answers


def _json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def _jsonl(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _csv(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_every_importer_is_listed():
    folder = Path(__file__).parents[3] / "pipelines/ingest/importers"
    defined = {
        f"{file.stem}:{name}"
        for file in folder.glob("[!_]*.py")
        for names in re.findall(
            r"^@importer\(.*\)\ndef (\w+)|^(\w+) = importer\(", file.read_text(), re.MULTILINE
        )
        for name in names
        if name
    }
    listed = {target.rpartition(".")[2] for target in IMPORTERS.builtin.values()}
    assert defined == listed
    for name in IMPORTERS.names():
        importer = IMPORTERS.get(name)
        assert importer.name == name
        assert importer.license
        assert importer.layout


def routerbench(folder: Path, pandas_dtype: str = "object") -> Path:
    frame = pd.DataFrame(
        {
            "sample_id": ["mmlu.1", "mbpp.2"],
            "prompt": ["['2+2?']", "['first turn', 'second']"],
            "eval_name": ["mmlu", "mbpp"],
            "gpt-4": [1.0, 0.5],
            "yi": [0.0, float("nan")],
            "gpt-4|model_response": ["['4']", "['code']"],
            "yi|model_response": ["['5']", None],
            "gpt-4|total_cost": [0.001, 0.002],
            "yi|total_cost": [0.0, float("nan")],
            "oracle_model_to_route_to": ["gpt-4", "no_model_correct"],
        }
    )
    texts = [name for name in frame.columns if frame[name].dtype != float]
    frame[texts] = frame[texts].astype(pandas_dtype)
    frame.to_pickle(folder / "routerbench_0shot.pkl")
    return folder / "routerbench_0shot.pkl"


@pytest.mark.parametrize("dtype", ["object", "str"])
def test_routerbench(tmp_path, dtype):
    done, questions, answers = _import("routerbench", routerbench(tmp_path, dtype), tmp_path)
    assert [q["question"] for q in questions] == ["2+2?", "first turn\nsecond"]
    by = {(a["query"], a["model"]): a for a in answers}
    # An empty cell is a missing answer, and a cost of nothing is not known.
    assert set(by) == {("mmlu.1", "gpt-4"), ("mmlu.1", "yi"), ("mbpp.2", "gpt-4")}
    assert by["mmlu.1", "yi"]["cost_usd"] is None
    assert by["mbpp.2", "gpt-4"]["score"] == 0.5
    assert by["mmlu.1", "gpt-4"]["text"] == "4"
    assert done.left_out == {"pairs without answer": 1}
    assert "license: NOASSERTION" in done.recipe.read_text()


def test_embedllm_keeps_conflicting_repeats_as_samples(tmp_path):
    row = {
        "prompt_id": 7,
        "model_id": 0,
        "model_name": "a",
        "category": "piqa",
        "prompt": 'p, with "quotes"',
        "label": 1,
    }
    _csv(tmp_path / "d/train.csv", [row, {**row, "label": 0}, {**row, "model_name": "b"}])
    done, questions, answers = _import("embedllm", tmp_path / "d", tmp_path)
    assert [(a["model"], a["sample"], a["score"]) for a in answers] == [
        ("a", 0, 1.0),
        ("a", 1, 0.0),
        ("b", 0, 1.0),
    ]
    assert questions[0]["split"] == "train"
    assert "token usage" in done.lacks


def test_embedllm_takes_sizes_from_names_and_from_the_table_of_published_ones(tmp_path):
    names = ("Qwen__Qwen1.5-4B-Chat", "microsoft__phi-2", "microsoft/phi-2", "someone/phi-2")
    rows = [
        {"prompt_id": 7, "model_id": 0, "model_name": name, "category": "piqa", "prompt": "p",
         "label": 1}
        for name in names
    ]  # fmt: skip
    _csv(tmp_path / "d/test.csv", rows)
    done, *_ = _import("embedllm", tmp_path / "d", tmp_path)
    pool = yaml.safe_load(done.recipe.read_text())["pool"]["models"]
    sizes = {one["model_id"]: one.get("params_b") for one in pool}
    # A model of the same last name by somebody else is not the same model.
    assert sizes == dict(zip(names, (4.0, 2.7, 2.7, None), strict=True))


def test_sprout(tmp_path):
    struct = {"num_input_tokens": 5, "num_output_tokens": 9, "score": 0.25}
    rows = [
        {
            "key": "k1",
            "dataset": "gpqa",
            "dataset_level": None,
            "dataset_idx": 3,
            "prompt": "why",
            "golden_answer": "because",
            "aws-nova": struct,
            "gpt-4o": {**struct, "score": None},
        }
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "test-00000.parquet")
    done, questions, answers = _import("sprout", tmp_path / "test-00000.parquet", tmp_path)
    assert [(a["model"], a["score"], a["completion_tokens"]) for a in answers] == [
        ("aws-nova", 0.25, 9)
    ]
    assert answers[0]["cost_usd"] is None
    assert questions[0]["references"] == ["because"]
    assert done.left_out == {"pairs without score": 1}


def test_routereval(tmp_path):
    import pickle

    def pool(models: list[str], scores: list[list[float]]) -> dict:
        matrix = np.array(scores)
        return {
            "data": {"train_score": matrix, "val_score": matrix[:1], "test_score": matrix[:0]},
            "model": models,
            "prompt": {"train_prompt": ["p0", "p1"], "val_prompt": ["v0"], "test_prompt": []},
        }

    content = {
        "easy3": {
            "all_strong": pool(["a", "b"], [[1, 0], [0.5, 1]]),
            "all_weak": pool(["a", "c"], [[1, 1], [0.5, float("nan")]]),
        }
    }
    path = tmp_path / "arc_router_dataset.pkl"
    path.write_bytes(pickle.dumps(content))
    done, questions, answers = _import("routereval", path, tmp_path)
    assert len(questions) == 3
    # The model of both pools is taken once; a score that is not there stays away.
    assert len(answers) == 8
    assert done.left_out == {"pairs without score": 1}
    content["easy3"]["all_weak"]["data"]["train_score"][0][0] = 0.0
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(SourceError, match="two scores"):
        run_import(IMPORTERS.get("routereval"), path, tmp_path / "other")


def test_llmrouterbench_takes_identity_from_the_header(tmp_path):
    record = {
        "index": 1,
        "origin_query": "q",
        "prompt": "q, please",
        "prompt_tokens": 4,
        "completion_tokens": 6,
        "cost": 0.0,
        "score": None,
        "prediction": "",
        "ground_truth": "42",
        "raw_output": "it is 42",
    }
    failed = {**record, "index": 2, "raw_output": "Generation failed: timeout", "score": 0.0}
    run = {
        "performance": 0.5,
        "time_taken": 3.0,
        "cost": 0.0,
        "model_name": "true-model",
        "dataset_name": "aime",
        "split": "test",
        "demo": False,
        "records": [record, failed, {**record, "index": 3, "score": 1.0, "cost": 0.25}],
    }
    _json(tmp_path / "results/bench/other/other/wrong/x.json", run)
    done, _, answers = _import("llmrouterbench", tmp_path / "results", tmp_path)
    assert {a["model"] for a in answers} == {"true-model"}
    # An ungraded answer is kept without a score; a failed call is no wrong answer.
    assert [(a["query"], a["score"], a["cost_usd"]) for a in answers] == [
        ("aime/test/1", None, None),
        ("aime/test/3", 1.0, 0.25),
    ]
    assert done.left_out == {"failed calls": 1}


def routellm(folder: Path) -> Path:
    rows = [
        {
            "prompt": f"Question {i}\nAnswer:",
            "gpt-4-1106-preview": i < 9,
            "mistralai/Mixtral-8x7B-Instruct-v0.1": i % 2 == 0,
        }
        for i in range(12)
    ]
    _csv(folder / "mmlu_astronomy.csv", rows)
    return folder


def test_routellm(tmp_path):
    _, questions, answers = _import("routellm", routellm(tmp_path / "mmlu"), tmp_path)
    assert {q["task"] for q in questions} == {"astronomy"}
    strong = [a["score"] for a in answers if a["model"].startswith("gpt")]
    assert sum(strong) == 9
    assert all(a["text"] is None for a in answers)


def test_mixinstruct(tmp_path):
    row = {
        "id": "unified_chip2/1",
        "instruction": "say hi",
        "input": "",
        "output": "hi",
        "candidates": [
            {
                "decoding_method": "top_p",
                "model": "alpaca",
                "text": "hello",
                "scores": {"logprobs": -1.5, "bleu": 3.0, "bertscore": 0.75, "bartscore": -4.0},
            }
        ],
        "cmp_results": "{}",
    }
    _json(tmp_path / "test_data_prepared.json", [row])
    _, questions, answers = _import("mixinstruct", tmp_path / "test_data_prepared.json", tmp_path)
    assert (questions[0]["split"], answers[0]["score"]) == ("test", 0.75)
    path = tmp_path / "test_data_prepared.json"
    _, _, graded = _import("mixinstruct_bartscore", path, tmp_path / "other")
    assert graded[0]["score"] == pytest.approx(math.exp(-4.0))
    row["candidates"][0]["scores"]["bartscore"] = "-4.0"
    _json(path, [row])
    _, _, graded = _import("mixinstruct_bartscore", path, tmp_path / "text")
    assert graded[0]["score"] == pytest.approx(math.exp(-4.0))


def test_ulab_error_texts_are_missing_answers(tmp_path):
    row = {
        "task_name": "mmlu",
        "query": "pick",
        "ground_truth": "B",
        "metric": "em_mc",
        "choices": '{"text": ["x", "y"], "labels": ["A", "B"]}',
        "task_id": None,
        "model_name": "qwen",
        "response": "B",
        "token_num": 12,
        "input_tokens": 10,
        "output_tokens": 2,
        "response_time": 0.5,
        "performance": 1.0,
        "embedding_id": 0,
    }
    bad = {**row, "model_name": "llama", "response": "API Error: 429", "performance": 0.0}
    _jsonl(tmp_path / "default_routing_train_data.jsonl", [row, bad])
    done, questions, answers = _import("ulab", tmp_path, tmp_path)
    assert [a["model"] for a in answers] == ["qwen"]
    assert questions[0]["choices"] == ["x", "y"]
    assert done.left_out == {"failed calls": 1}


def test_routerarena(tmp_path):
    row = {
        "global index": "ArcMMLU_12",
        "prompt": "which?",
        "prediction": "gpt-4o-mini",
        "generated_result": {
            "generated_answer": "A",
            "success": True,
            "token_usage": {"input_tokens": 3, "output_tokens": 1, "total_tokens": 4},
            "provider": "openai",
            "error": None,
        },
        "accuracy": 1.0,
        "cost": 0.00001,
    }
    failed = {**row, "global index": "ArcMMLU_13", "accuracy": 0.0}
    failed["generated_result"] = {"generated_answer": None, "success": False, "error": "timeout"}
    _json(tmp_path / "router_inference/predictions/mine.json", [row, failed])
    done, questions, answers = _import("routerarena", tmp_path, tmp_path)
    assert [(a["score"], a["prompt_tokens"]) for a in answers] == [(1.0, 3)]
    assert {q["task"] for q in questions} == {"ArcMMLU"}
    assert done.left_out == {"failed or absent calls": 1}


def test_alpaca_eval(tmp_path):
    row = {
        "instruction": "write",
        "output_1": "ref",
        "generator_1": "gpt4_1106_preview",
        "dataset": "koala",
        "output_2": "mine",
        "generator_2": "claude",
        "annotator": "weighted_alpaca_eval_gpt4_turbo",
        "preference": 1.75,
    }
    folder = tmp_path / "results/claude/weighted_alpaca_eval_gpt4_turbo"
    _json(folder / "annotations.json", [row, {**row, "instruction": "sing", "preference": None}])
    done, questions, answers = _import("alpaca_eval", tmp_path / "results", tmp_path)
    assert [(a["model"], a["score"]) for a in answers] == [("claude", 0.75)]
    assert done.left_out == {"annotations without a preference": 1}
    assert len(questions) == 2


def test_zeroeval(tmp_path):
    row = {
        "id": "gsm8k-main-test-#0",
        "question": "6 times 3?",
        "answer": "work #### 18",
        "output": ['{"reasoning": "", "answer": "18"}'],
        "generator": "m/1",
        "configs": {"engine": "vllm"},
        "chat_history": ["Answer in JSON: 6 times 3?"],
    }
    _json(tmp_path / "result_dirs/gsm/model-a.json", [row])
    _json(tmp_path / "result_dirs/gsm.summary.json", [{"Model": "x"}])
    _, questions, answers = _import("zeroeval", tmp_path / "result_dirs", tmp_path)
    assert (questions[0]["references"], questions[0]["scorer"]) == (["18"], "numeric")
    assert (answers[0]["model"], answers[0]["served_model"]) == ("model-a", "m/1")


def test_a_hole_among_imported_options_keeps_its_place(tmp_path):
    # Trap: without the null, C would be Oslo.
    row = {"id": "1", "question": "Which?", "answer": "Paris", "output": ["C"], "generator": "m"}
    row["choices"] = ["Rome", None, "Paris", "Oslo"]
    _json(tmp_path / "result_dirs/mmlu-redux/m.json", [row])
    done, questions, _ = _import("zeroeval", tmp_path / "result_dirs", tmp_path)
    assert questions[0]["choices"] == ["Rome", "", "Paris", "Oslo"]
    assert questions[0]["references"] == ["C"]
    recipe, base = load(str(done.recipe))
    with pytest.raises(SourceError, match="option B of 4 has no text"):
        ingest(recipe.sources, base=base)


@pytest.mark.parametrize(
    ("task", "answer", "output", "scorer"),
    [
        # Output prediction: `em` would fold 'A b' and 'a b', and [1, 2] and (1, 2).
        ("crux", "'A b'", "[ANSWER]'A b'[/ANSWER]", "literal"),
        ("another", "(B)", "So it is (B).", "auto"),
    ],
)
def test_zeroeval_reads_program_output_and_other_tasks(tmp_path, task, answer, output, scorer):
    row = {"id": "1", "question": "Q?", "answer": answer, "output": [output], "generator": "m"}
    _json(tmp_path / f"result_dirs/{task}/m.json", [row])
    done, questions, _ = _import("zeroeval", tmp_path / "result_dirs", tmp_path)
    assert questions[0]["scorer"] == scorer
    asked = ScoringInput("Q?", tuple(questions[0]["references"]))
    assert SCORERS.get(scorer).read(asked, output).outcome == "correct"
    assert done.scorer_agreement is None  # nothing is graded


def test_an_import_says_which_rule_reads_its_graded_answers_as_the_source_does(tmp_path):
    graded = [("(A)", "So it is (A).", 1.0), ("no", "Answer: no", 1.0), ("7", "It is 8.", 0.0)]
    rows = [
        {
            "doc_id": n,
            "doc": {},
            "target": target,
            "arguments": {"gen_args_0": {"arg_0": f"Q{n}?", "arg_1": {"until": []}}},
            "resps": [[text]],
            "filtered_resps": [text],
            "exact_match": score,
        }
        for n, (target, text, score) in enumerate(graded)
    ]
    _jsonl(tmp_path / "m/samples_bbh_2026-01-01T00-00-00.0.jsonl", rows)
    done, questions, _ = _import("lm_eval", tmp_path / "m", tmp_path)
    assert {one["scorer"] for one in questions} == {"given"}
    assert done.scorer_agreement == ScorerAgreement("auto", 3, 3)


def test_no_rule_is_proposed_for_preferences(tmp_path):
    # Trap: a judge prefers the reference's answer in most rows, and `auto`, which finds no answer
    # right, "agrees" with it there: it was proposed as the scorer of a preference benchmark.
    rows = [
        {
            "instruction": f"Name a city with {n} letters.",
            "output_1": "Paris" if n % 2 else "Vienna",
            "generator_1": "reference",
            "dataset": "koala",
            "output_2": "Rome is a fine city.",
            "generator_2": "claude",
            "annotator": "judge",
            "preference": 2.0 if n % 5 == 0 else 1.0,
        }
        for n in range(40)
    ]
    _json(tmp_path / "results/claude/judge/annotations.json", rows)
    done, questions, _ = _import("alpaca_eval", tmp_path / "results", tmp_path)
    assert {one["scorer"] for one in questions} == {"given"}
    assert done.scorer_agreement is None


def _mmlu_pro_zip(folder: Path, model: str, field: str, answer: str) -> None:
    records: list[Any] = [
        {
            "question_id": 70,
            "question": "Which?",
            "options": ["x", "y", "z"],
            "answer": answer,
            "answer_index": 1,
            "category": "law",
            "src": "ori",
            "pred": None,
            field: "The answer is (B).",
        },
        "a stray string",
    ]
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(
        folder / f"model_outputs_{model}_5shots.zip", "w", zipfile.ZIP_DEFLATED
    ) as archive:
        archive.writestr(f"model_outputs_{model}_5shots.json", json.dumps(records))


def test_mmlu_pro_respects_the_letter_a_run_was_graded_against(tmp_path):
    folder = tmp_path / "eval_results"
    _mmlu_pro_zip(folder, "a", "generated_text", "B")
    _mmlu_pro_zip(folder, "b", "model_outputs", "B")
    _mmlu_pro_zip(folder, "c", "model_outputs", "C")
    done, questions, answers = _import("mmlu_pro", folder, tmp_path)
    assert [q["references"] for q in questions] == [["B"]]
    assert {a["model"]: a["graded_against"] for a in answers} == {"a": None, "b": None, "c": ["C"]}
    assert done.left_out == {"bare strings among the records": 3}


def test_lm_eval(tmp_path):
    row = {
        "doc_id": 0,
        "doc": {"question": "2+2"},
        "target": "4",
        "arguments": {"gen_args_0": {"arg_0": "Q: 2+2\nA:", "arg_1": {"until": ["\n"]}}},
        "resps": [["4."]],
        "filtered_resps": ["4"],
        "filter": "strict-match",
        "exact_match": 0.0,
        "doc_hash": "x",
    }
    other = {**row, "filter": "flexible-extract", "exact_match": 1.0}
    path = tmp_path / "meta__llama/samples_gsm8k_2026-01-02T03-04-05.678901.jsonl"
    _jsonl(path, [row, other])
    choice = {
        **row,
        "arguments": [["Q: sky?", " blue"], ["Q: sky?", " red"]],
        "resps": [[["-1.5", "True"]], [["-3.0", "False"]]],
        "filter": "none",
        "acc": 1.0,
    }
    choice.pop("exact_match")
    _jsonl(tmp_path / "meta__llama/samples_arc_2026-01-02T03-04-05.678901.jsonl", [choice])
    done, _, answers = _import("lm_eval", tmp_path, tmp_path)
    by = {a["query"]: a for a in answers}
    assert (by["gsm8k/0"]["score"], by["gsm8k/0"]["text"]) == (1.0, "4.")
    # A log-likelihood task generates no text.
    assert (by["arc/0"]["score"], by["arc/0"]["text"]) == (1.0, None)
    assert {a["model"] for a in answers} == {"meta__llama"}
    assert done.left_out == {"rows of another filter": 1}


def _inspect_sample(number: int, value: Any) -> dict:
    return {
        "id": number,
        "epoch": 1,
        "input": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "2+2?"}],
        "target": "4",
        "choices": None,
        "output": {
            "model": "gpt-x-2026",
            "choices": [
                {
                    "message": {"role": "assistant", "content": [{"type": "text", "text": "4"}]},
                    "stop_reason": "stop",
                }
            ],
            "usage": {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10},
            "time": 0.25,
        },
        "scores": {"match": {"value": value, "answer": "4"}},
    }


@pytest.mark.parametrize("ending", [".json", ".eval"])
def test_inspect(tmp_path, ending):
    header = {"version": 2, "status": "success", "eval": {"task": "sums", "model": "openai/gpt-x"}}
    samples = [_inspect_sample(1, "C"), _inspect_sample(2, "N"), _inspect_sample(3, 0.5)]
    path = tmp_path / f"log{ending}"
    if ending == ".json":
        _json(path, {**header, "samples": samples})
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header.json", json.dumps(header))
            for sample in samples:
                name = f"samples/{sample['id']}_epoch_1.json"
                archive.writestr(name, json.dumps(sample))
    _, questions, answers = _import("inspect", path, tmp_path)
    # `N` is no answer: not a wrong one.
    assert [a["score"] for a in answers] == [1.0, None, 0.5]
    assert answers[0]["served_model"] == "gpt-x-2026"
    assert questions[0]["question"] == "be brief\n\n2+2?"


@pytest.mark.parametrize(
    "change", [{"epoch": None}, {"epoch": "\\ud800"}, {"output": {"usage": 3}}]
)
def test_a_value_of_another_kind_is_the_sources_fault(tmp_path, change):
    # It used to be a traceback out of the importer: nobody can foresee every value of a stranger.
    header = {"version": 2, "status": "success", "eval": {"task": "sums", "model": "openai/gpt-x"}}
    _json(tmp_path / "log.json", {**header, "samples": [{**_inspect_sample(1, "C"), **change}]})
    with pytest.raises(SourceError) as error:
        run_import(IMPORTERS.get("inspect"), tmp_path / "log.json", tmp_path / "out" / "inspect")
    assert error.value.where
    assert not list((tmp_path / "out").iterdir())


def test_same_import_again_is_unchanged_and_another_is_refused(tmp_path):
    source = routellm(tmp_path / "mmlu")
    assert _import("routellm", source, tmp_path)[0].status == "created"
    assert _import("routellm", source, tmp_path)[0].status == "unchanged"
    (source / "mmlu_law.csv").write_text((source / "mmlu_astronomy.csv").read_text())
    with pytest.raises(ImportExists):
        _import("routellm", source, tmp_path)


def _bad_columns(folder: Path) -> Path:
    _csv(folder / "train.csv", [{"prompt_id": 1, "model": "a", "label": 1}])
    return folder / "train.csv"


def _mixed_encoding(folder: Path) -> Path:
    head = b"prompt_id,model_id,model_name,category,prompt,label\n"
    (folder / "train.csv").write_bytes(
        head + "1,0,a,c,naïve,1\n".encode() + b"2,0,a,c,na\xefve,1\n"
    )
    return folder / "train.csv"


def _colliding(folder: Path) -> Path:
    row = {"model_id": 0, "model_name": "a", "category": "c", "label": 1, "prompt_id": 5}
    _csv(folder / "train.csv", [{**row, "prompt": "one"}, {**row, "prompt": "two"}])
    return folder / "train.csv"


def _bad_label(folder: Path) -> Path:
    row = {"model_id": 0, "model_name": "a", "category": "c", "prompt_id": 5, "prompt": "one"}
    _csv(folder / "train.csv", [{**row, "label": 7}])
    return folder / "train.csv"


def _torn_row(folder: Path) -> Path:
    head = "prompt_id,model_id,model_name,category,prompt,label\n"
    (folder / "train.csv").write_text(head + "1,0,a,c,p,1\n2,0,a\n")
    return folder / "train.csv"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_bad_columns, "column 'model_id' is missing"),
        (_mixed_encoding, "utf-8|UTF-8"),
        (_colliding, "two different questions"),
        (_bad_label, r"not a number in \[0, 1\]"),
        (_torn_row, "number of fields"),
        (lambda folder: folder / "absent", "nothing at"),
    ],
)
def test_bad_input_is_named_and_nothing_is_imported(
    tmp_path: Path, make: Callable[[Path], Path], says: str
):
    target = tmp_path / "yard" / "imports" / "embedllm"
    with pytest.raises(SourceError, match=says) as error:
        run_import(IMPORTERS.get("embedllm"), make(tmp_path), target)
    assert error.value.exit_code == 2
    assert not target.exists()
    assert not target.parent.exists() or list(target.parent.iterdir()) == []


def test_unknown_format_is_suggested():
    with pytest.raises(UnknownName) as error:
        IMPORTERS.get("routerbnch")
    assert "routerbench" in str(error.value)


@pytest.mark.parametrize("usage", [True, 9.5, -3, 10**17])
def test_tokens_that_cannot_be_are_refused_with_the_sample(tmp_path, usage):
    header = {"version": 2, "status": "success", "eval": {"task": "sums", "model": "openai/gpt-x"}}
    sample = _inspect_sample(1, "C")
    sample["output"]["usage"]["input_tokens"] = usage
    _json(tmp_path / "log.json", {**header, "samples": [sample]})
    with pytest.raises(SourceError, match=r"no number of tokens|no amount") as error:
        run_import(IMPORTERS.get("inspect"), tmp_path / "log.json", tmp_path / "out" / "inspect")
    assert "sample 1" in str(error.value.where)
