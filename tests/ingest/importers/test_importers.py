"""Each importer on files in the layout of its public repository, as `layouts.yaml` writes them."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from routeyard.flows.recipe import load
from routeyard.pipelines.common.errors import SourceError, UnknownName, Unsafe
from routeyard.pipelines.ingest import ingest
from routeyard.pipelines.ingest.guess_scorers import ScorerAgreement
from routeyard.pipelines.ingest.importers import IMPORTERS, reading
from routeyard.pipelines.ingest.importers.reading import members
from routeyard.pipelines.ingest.importers.write import ImportExists, run_import
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import ScoringInput
from tests.ingest.importers.made import (
    LAYOUTS,
    RECORDS,
    imported,
    write,
    write_case,
    write_csv,
    zipped,
)


def test_every_importer_says_its_licence_and_layout():
    for name in IMPORTERS.names():
        importer = IMPORTERS.get(name)
        assert importer.name == name
        assert importer.license
        assert importer.layout
    with pytest.raises(UnknownName, match="routerbench"):
        IMPORTERS.get("routerbnch")


def columns(names: list[str], rows: list[dict[str, Any]]) -> list[list[Any]]:
    return sorted(([row[name] for name in names] for row in rows), key=repr)


@pytest.mark.parametrize("name", LAYOUTS["cases"])
def test_a_layout_is_read(name: str, tmp_path: Path) -> None:
    case = LAYOUTS["cases"][name]
    source = write_case(name, tmp_path / "theirs")
    if "error" in case:
        with pytest.raises(SourceError, match=case["error"]):
            imported(case["importer"], source, tmp_path)
        return
    done, questions, answers = imported(case["importer"], source, tmp_path)
    for found, table in ((questions, "questions"), (answers, "answers")):
        if table in case:
            names, *expected = case[table]
            assert columns(names, found) == sorted(expected, key=repr)
    assert done.left_out == case.get("left_out", {})
    assert case.get("lacks", "") in " ".join(done.lacks)
    recipe = yaml.safe_load(done.recipe.read_text(encoding="utf-8"))
    for words in case.get("recipe", ()):  # and with it the card of the release
        assert words in str(recipe), recipe


def bench(path: Path, dtype: str = "object", **changes: Any) -> Path:
    """A pickle as RouterBench has it: a column for each model, its texts and its costs."""
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
        }
        | changes
    )
    frame["oracle_model_to_route_to"] = "gpt-4"
    texts = [name for name in frame.columns if frame[name].dtype != float]
    frame[texts] = frame[texts].astype(dtype)
    frame.to_pickle(path, protocol=5)
    return path


@pytest.mark.parametrize("dtype", ["object", "str"])
def test_routerbench(tmp_path, dtype):
    path = bench(tmp_path / "routerbench_0shot.pkl", dtype)
    done, questions, answers = imported("routerbench", path, tmp_path)
    assert [q["question"] for q in questions] == ["2+2?", "first turn\nsecond"]
    by = {(a["query"], a["model"]): a for a in answers}
    # An empty cell is a missing answer, and a cost of nothing is not known.
    assert set(by) == {("mmlu.1", "gpt-4"), ("mmlu.1", "yi"), ("mbpp.2", "gpt-4")}
    assert by["mmlu.1", "yi"]["cost_usd"] is None
    assert by["mbpp.2", "gpt-4"]["score"] == 0.5
    assert by["mmlu.1", "gpt-4"]["text"] == "4"
    assert done.left_out == {"pairs without answer": 1}
    assert "license: NOASSERTION" in done.recipe.read_text()


def test_routerbench_loses_no_label_to_a_repeated_id(tmp_path):
    # The true file repeats 14 ids: other prompts, and rows of which each holds half the scores.
    nan = float("nan")
    changes = {
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
    bench(tmp_path / "routerbench_0shot.pkl", **changes)
    # The same answers once more in long form; it lies beside and is not read.
    bench(tmp_path / "routerbench_raw.pkl", **changes)
    done, questions, answers = imported("routerbench", tmp_path, tmp_path)
    assert [q["question"] for q in questions] == ["One?", "Another?", "Two?", "Six?"]
    found = {(a["query"], a["model"], a["sample"]): a["score"] for a in answers}
    assert found == {
        ("a.1", "gpt-4", 0): 1.0, ("a.1", "yi", 0): 0.0,
        ("a.1#2", "gpt-4", 0): 0.0, ("a.1#2", "yi", 0): 1.0,
        # Halves of one question are put together.
        ("b.2", "gpt-4", 0): 1.0, ("b.2", "yi", 0): 0.5,
        # Two grades of one model on one question are two samples; an equal row counts once.
        ("c.3", "gpt-4", 0): 1.0, ("c.3", "gpt-4", 1): 0.0, ("c.3", "yi", 0): 1.0,
    }  # fmt: skip
    assert done.left_out == {"cells that repeat another row's": 1}


def test_embedllm_takes_sizes_from_names_and_from_the_table_of_published_ones(tmp_path):
    names = ("Qwen__Qwen1.5-4B-Chat", "microsoft__phi-2", "microsoft/phi-2", "someone/phi-2")
    path = write(tmp_path / "d/test.csv", "embedllm", [{"model_name": name} for name in names])
    done, *_ = imported("embedllm", path, tmp_path)
    pool = yaml.safe_load(done.recipe.read_text())["pool"]["models"]
    sizes = {one["model_id"]: one.get("params_b") for one in pool}
    # A model of the same last name by somebody else is not the same model.
    assert sizes == dict(zip(names, (4.0, 2.7, 2.7, None), strict=True))


def test_routereval_of_a_pool_with_its_own_prompts(tmp_path):
    def pool(models: list[str], scores: list[list[float]]) -> dict:
        matrix = np.array(scores)
        return {
            "data": {"train_score": matrix, "val_score": matrix[:1], "test_score": matrix[:0]},
            "model": models,
            "prompt": {"train_prompt": ["p0", "p1"], "val_prompt": ["v0"], "test_prompt": []},
        }

    strong = pool(["a", "b"], [[1, 0], [0.5, 1]])
    weak = pool(["a", "c"], [[1, 1], [0.5, float("nan")]])
    path = tmp_path / "arc_router_dataset.pkl"
    path.write_bytes(pickle.dumps({"easy3": {"all_strong": strong, "all_weak": weak}}))
    done, questions, answers = imported("routereval", path, tmp_path)
    # The model of both pools is taken once; a score that is not there stays away.
    assert (len(questions), len(answers)) == (3, 8)
    assert done.left_out == {"pairs without score": 1}
    weak["data"]["train_score"][0][0] = 0.0
    path.write_bytes(pickle.dumps({"easy3": {"all_strong": strong, "all_weak": weak}}))
    with pytest.raises(SourceError, match="two scores"):
        imported("routereval", path, tmp_path / "other")


def routereval(folder: Path, **changes: Any) -> Path:
    """As `get_router_dataset.py` builds it: prompts once on top, pools three levels down."""
    parts = {"train": np.array([2, 0]), "val": np.array([1]), "test": np.array([3])}
    scores = {"m1": [1, 0, 0, 1], "m2": [0, 1, 1, 1], "m3": [1, 1, 0, 0]}

    def split(values: Any, kind: str) -> dict:
        return {f"{part}_{kind}": values[rows] for part, rows in parts.items()}

    def pool(*models: str) -> dict:
        matrix = np.array([scores[m] for m in models], dtype=float).T
        return {"data": split(matrix, "score"), "model": np.array(models)}

    dataset = {
        "easy": {3: {"all_strong": pool("m1", "m2"), "all_weak": pool("m2", "m3")}},
        "hard": {10: {"strong_to_weak": pool("m1", "m3")}},
        "split_index": {f"{part}_indices": rows for part, rows in parts.items()},
        "embedding": split(np.ones((4, 8)), "embed"),
        "prompt": split(np.array(["p0", "p1", "p0", "p3"]), "prompt"),
    }
    path = folder / "gsm8k_router_dataset.pkl"
    path.write_bytes(pickle.dumps(dataset | changes))
    return path


def test_routereval_pools_share_the_prompts_on_top(tmp_path):
    done, questions, answers = imported("routereval", routereval(tmp_path), tmp_path)
    by = {q["id"]: q for q in questions}
    # Two rows with one text are two questions, each with its scores.
    assert [by[f"gsm8k/train-{i}"]["prompt"] for i in (0, 1)] == ["p0", "p0"]
    assert by["gsm8k/validation-0"]["prompt"] == "p1"
    assert by["gsm8k/test-0"]["split"] == "test"
    # Three models on four rows, though each is in two pools.
    assert len(answers) == 12
    assert {a["query"]: a["score"] for a in answers if a["model"] == "m3"} == {
        "gsm8k/train-0": 0.0, "gsm8k/train-1": 1.0, "gsm8k/validation-0": 1.0, "gsm8k/test-0": 0.0,
    }  # fmt: skip
    assert done.left_out == {}
    wrong = {"train_prompt": ["p0"], "val_prompt": ["p1"], "test_prompt": ["p3"]}
    with pytest.raises(SourceError, match="1 prompts for 2 rows"):
        imported("routereval", routereval(tmp_path, prompt=wrong), tmp_path / "other")


def routellm(folder: Path) -> Path:
    strong, weak = "gpt-4-1106-preview", "mistralai/Mixtral-8x7B-Instruct-v0.1"
    rows = [{"prompt": f"Q {i}\nAnswer:", strong: i < 9, weak: i % 2 == 0} for i in range(12)]
    write_csv(folder / "mmlu_astronomy.csv", rows)
    return folder


def test_routellm_and_the_same_import_again(tmp_path):
    source = routellm(tmp_path / "mmlu")
    done, questions, answers = imported("routellm", source, tmp_path)
    assert {q["task"] for q in questions} == {"astronomy"}
    strong = [a["score"] for a in answers if a["model"].startswith("gpt")]
    assert sum(strong) == 9
    assert all(a["text"] is None for a in answers)
    assert done.status == "created"
    assert imported("routellm", source, tmp_path)[0].status == "unchanged"
    (source / "mmlu_law.csv").write_text((source / "mmlu_astronomy.csv").read_text())
    with pytest.raises(ImportExists):
        imported("routellm", source, tmp_path)


def test_a_hole_among_imported_options_keeps_its_place(tmp_path):
    # Trap: without the null, C would be Oslo.
    options = {"answer": "Paris", "output": ["C"], "choices": ["Rome", None, "Paris", "Oslo"]}
    write(tmp_path / "result_dirs/mmlu-redux/m.json", "zeroeval", [options])
    done, questions, _ = imported("zeroeval", tmp_path / "result_dirs", tmp_path)
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
    rows = [{"answer": answer, "output": [output]}]
    write(tmp_path / f"result_dirs/{task}/m.json", "zeroeval", rows)
    done, questions, _ = imported("zeroeval", tmp_path / "result_dirs", tmp_path)
    assert questions[0]["scorer"] == scorer
    asked = ScoringInput("Q?", tuple(questions[0]["references"]))
    assert SCORERS.get(scorer).read(asked, output).outcome == "correct"
    assert done.scorer_agreement is None  # nothing is graded


def test_an_import_says_which_rule_reads_its_graded_answers_as_the_source_does(tmp_path):
    graded = [("(A)", "So it is (A).", 1.0), ("no", "Answer: no", 1.0), ("7", "It is 8.", 0.0)]
    rows = [
        {"doc_id": n, "doc": {}, "target": target, "arguments.gen_args_0.arg_0": f"Q{n}?",
         "resps": [[text]], "filtered_resps": [text], "exact_match": score, "filter": "gone"}
        for n, (target, text, score) in enumerate(graded)
    ]  # fmt: skip
    write(tmp_path / "m/samples_bbh_2026-01-01T00-00-00.0.jsonl", "lm_eval", rows)
    done, questions, _ = imported("lm_eval", tmp_path / "m", tmp_path)
    assert {one["scorer"] for one in questions} == {"given"}
    assert done.scorer_agreement == ScorerAgreement("auto", 3, 3)


def test_no_rule_is_proposed_for_preferences(tmp_path):
    # Trap: a judge prefers the reference's answer in most rows, and `auto`, which finds no answer
    # right, "agrees" with it there: it was proposed as the scorer of a preference benchmark.
    rows = [
        {"instruction": f"Name a city with {n} letters.", "output_1": ("Vienna", "Paris")[n % 2],
         "output_2": "Rome is a fine city.", "preference": 1.0 if n % 5 else 2.0}
        for n in range(40)
    ]  # fmt: skip
    write(tmp_path / "results/claude/judge/annotations.json", "alpaca_eval", rows)
    done, questions, _ = imported("alpaca_eval", tmp_path / "results", tmp_path)
    assert {one["scorer"] for one in questions} == {"given"}
    assert done.scorer_agreement is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        # It used to be a traceback: nobody can foresee every value of a stranger.
        ({"epoch": None}, None),
        ({"epoch": "\\ud800"}, None),
        ({"output": {"usage": 3}}, None),
        *(({"output.usage.input_tokens": odd}, "no number of tokens|no amount")
          for odd in (True, 9.5, -3, 10**17)),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_the_sources_fault(tmp_path, change, says):
    path = write(tmp_path / "log.json", "inspect", {"header": {}, "rows": [change]})
    with pytest.raises(SourceError, match=says) as error:
        run_import(IMPORTERS.get("inspect"), path, tmp_path / "out" / "inspect")
    assert error.value.where
    assert not says or "sample 1" in str(error.value.where)
    assert not list((tmp_path / "out").iterdir())


HEAD = b"prompt_id,model_id,model_name,category,prompt,label\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([{"model_id": "gone"}], "column 'model_id' is missing"),
        ([{"prompt": "one"}, {"prompt": "two"}], "two different questions"),
        ([{"label": 7}], r"not a number in \[0, 1\]"),
        (HEAD + "1,0,a,c,naïve,1\n".encode() + b"2,0,a,c,na\xefve,1\n", "utf-8|UTF-8"),
        (HEAD + b"1,0,a,c,p,1\n2,0,a\n", "number of fields"),
        (None, "nothing at"),
    ],
)
def test_bad_input_is_named_and_nothing_is_imported(tmp_path: Path, content: Any, says: str):
    target, path = tmp_path / "yard" / "imports" / "embedllm", tmp_path / "train.csv"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        write(path, "embedllm", content)
    with pytest.raises(SourceError, match=says) as error:
        run_import(IMPORTERS.get("embedllm"), path, target)
    assert error.value.exit_code == 2
    assert not target.exists()
    assert not target.parent.exists() or list(target.parent.iterdir()) == []


def test_an_error_in_an_importers_own_code_is_named_with_its_line(tmp_path: Path) -> None:
    """Trap: who writes an importer was told that the source is wrong, and not where it failed."""

    def read(paths: Any, result: Any) -> Any:
        yield reading.ImportedAnswer(question="not all it takes")  # type: ignore[call-arg]

    wrong = replace(IMPORTERS.get("ulab"), read=read)
    path = write(tmp_path / "a.jsonl", "ulab", [{}])
    with pytest.raises(SourceError, match=r"test_importers\.py:\d+"):
        run_import(wrong, path, tmp_path / "yard")


@pytest.mark.parametrize("ending", ["zip", "eval"])
def test_a_bomb_is_refused_before_it_unfolds_whatever_size_it_declares(tmp_path, ending):
    path = tmp_path / f"bomb.{ending}"
    zipped(path, {"x.json": b"0" * 50_000_000}, "zstd" if ending == "eval" else None, size=10)
    assert path.stat().st_size < 100_000
    with pytest.raises(Unsafe, match="unfolds to more than"):
        list(members(path, ".json"))


def test_many_honest_members_still_have_a_limit_and_names_that_climb_out_write_nothing(tmp_path):
    path = tmp_path / "many.zip"
    zipped(path, {f"../../{number}.json": bytes(range(200)) * 5 for number in range(5)})
    with pytest.raises(Unsafe):
        list(members(path, ".json", max_bytes=3_500))
    assert [name for name, _ in members(path, ".json")] == [f"../../{n}.json" for n in range(5)]
    assert [p.name for p in tmp_path.iterdir()] == ["many.zip"]


def _cut(content: bytearray) -> bytes:
    return bytes(content[:-30])


def _turned(place: int) -> Callable[[bytearray], bytes]:
    def damage(content: bytearray) -> bytes:
        content[place] ^= 0xFF
        return bytes(content)

    return damage


@pytest.mark.parametrize(
    ("packed", "damage"), [(None, _cut), ("zstd", _turned(60)), ("zstd", _turned(-60))]
)
def test_a_damaged_archive_is_named(tmp_path, packed, damage):
    path = tmp_path / "log.eval"
    zipped(path, {"header.json": bytes(range(256)) * 400}, packed)
    path.write_bytes(damage(bytearray(path.read_bytes())))
    with pytest.raises((SourceError, zipfile.BadZipFile), match="cannot be read"):
        list(members(path, ".json"))


def test_records_are_of_importers_that_there_are() -> None:
    assert {*RECORDS} <= {*IMPORTERS.names()}
    assert json.dumps(RECORDS)  # as their repositories write them
