"""What the label audit finds, on small tables and on recorded outputs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.audit.labels import Audit, audit, intervals
from routeyard.pipelines.label.policies import decide
from routeyard.pipelines.label.rules import file_verdicts
from routeyard.schemas import DUPLICATES, QUERIES, RESPONSES
from tests.support.contract_tables import contract_table
from tests.support.label_tables import answer, qid, queries, question, responses


def audited(asked: pa.Table, texts: pa.Table, **options: object) -> Audit:
    verdicts = file_verdicts(asked, texts)
    labels = decide(asked, texts, verdicts)
    return audit(asked, texts, verdicts, labels, **options)  # type: ignore[arg-type]


def kinds(found: Audit) -> set[tuple[str, str]]:
    return {(one.kind, one.about) for one in found.findings}


def says(answer: object) -> str:
    return f"So the answer is {answer}."


def test_a_reference_that_models_agree_against_is_suspect_with_a_probability() -> None:
    asked = queries([str(i) for i in range(60)])
    texts: dict[str, list[str | None]] = {}
    for k in range(7):
        told: list[str | None] = [says(i) for i in range(60)]
        told[3] = says(7.0)  # all of them, against the reference
        for slip in range(3):  # mistakes of its own; different wrong answers are no agreement
            told[10 + (11 * k + slip) % 50] = says(1000 + 10 * k + slip)
        told[4] = says(500 + k)
        texts[f"m{k}"] = told
    found = audited(asked, responses(texts))
    assert {about for kind, about in kinds(found) if kind == "suspect_gold"} == {qid(3)}
    (row,) = [r for r in found.tables["suspect_gold"].to_pylist() if not r["apart"]]
    assert (row["agreeing"], row["answered"], row["references"]) == (7, 7, ["3"])
    (doubt,) = [one for one in found.findings if one.kind == "suspect_gold"]
    assert doubt.probability == row["probability"] > 0.2
    # Trap: one mistake that is copied seven times is one mistake. They are one family.
    copied = [says(i) if i % 6 else says(9000 + i) for i in range(60)]
    same = responses({f"copy{k}": list(copied) for k in range(7)})
    assert not [one for one in audited(asked, same).findings if one.kind == "suspect_gold"]


def test_a_model_that_cannot_be_read_is_a_finding() -> None:
    asked = queries([str(i) for i in range(30)])
    right: list[str | None] = [says(i) for i in range(30)]
    found = audited(asked, responses({"fine": right, "mute": ["I do not know."] * 30}))
    assert ("unreadable_model", "mute") in kinds(found)
    assert ("unreadable_model", "fine") not in kinds(found)
    rows = {row["model_id"]: row for row in found.tables["accuracy"].to_pylist()}
    assert rows["mute"]["accuracy"] is None  # nobody could read it: undecided, and no zero
    # nothing readable: the accuracy over readable answers is unknown, not 0
    assert rows["mute"]["accuracy_readable"] is None


def test_stored_labels_that_a_regrade_contradicts_are_listed() -> None:
    asked = queries(["9", "5", "1"])
    texts = responses({"m": [says("$9.00"), says("0.5"), says(1)]}, m=[0.0, 1.0, 1.0])
    found = audited(asked, texts)
    listed = {
        r["query_id"]: (r["stored"], r["regraded"])
        for r in found.tables["stored_labels"].to_pylist()
    }
    assert listed == {qid(0): ("incorrect", "correct"), qid(1): ("correct", "incorrect")}
    (accuracy,) = found.tables["stored_accuracy"].to_pylist()
    assert (accuracy["answers"], accuracy["differ"]) == (3, 2)
    (agreement,) = found.tables["agreement"].slice(0, 1).to_pylist()
    assert (agreement["scorer_a"], agreement["scorer_b"]) == ("given", "numeric")
    assert ("stored_labels_differ", "m") in kinds(found)


def test_conflicts_among_duplicates_are_listed() -> None:
    asked = queries(["1", "2", "3"])
    texts = responses({"m": [says(1), says(1), says(3)]})
    groups = DUPLICATES.from_rows(
        {"query_id": qid(i), "encoder": "e", "threshold": 0.99, "group_id": qid(0),
         "representative": i == 0, "similarity": 1.0, "label_conflict": True}
        for i in range(2)
    )  # fmt: skip
    found = audited(asked, texts, duplicates=groups)
    assert ("duplicate_conflict", qid(0)) in kinds(found)


def test_noise_interval_holds_what_doubt_could_do() -> None:
    labels = pa.table(
        {
            "query_id": [qid(i) for i in range(6)],
            "model_id": ["m"] * 6,
            "score": [1.0, 1.0, 0.0, 0.0, None, None],
            "correct": [True, True, False, False, None, None],
            "decided_by": ["numeric", "numeric", "numeric", "unreadable", None, None],
            "contested": [False, True, False, False, False, True],
            "n_samples": pa.array([1, 1, 1, 1, 0, 0], pa.int32()),
        }
    )
    (row,) = intervals(labels).to_pylist()
    # the failed call (fifth) is left out; the split one (sixth) is in doubt
    assert (row["n"], row["doubtful"], row["undecided"]) == (5, 2, 1)
    assert (row["low"], row["high"]) == (1 / 5, 3 / 5)
    assert (row["accuracy"], row["accuracy_readable"]) == (2 / 4, 2 / 3)
    assert intervals(labels, pa.table({"query_id": [qid(0)]}))["low"].to_pylist() == [0.0]


def _recorded(folder: Path, every: int) -> tuple[pa.Table, pa.Table]:
    """Every n-th MMLU-Pro question, with the label that upstream's letter implies."""
    raw = pq.read_table(folder / "queries.parquet")
    raw = raw.take(list(range(0, raw.num_rows, every)))
    numbers = raw["question_id"].to_pylist()
    asked = QUERIES.from_rows(
        question(row["question_id"], task=row["category"], question=row["question"],
                 choices=row["options"], references=[row["answer"]], scorer="mcq")
        for row in raw.to_pylist()
    )  # fmt: skip
    runs = pq.read_table(folder / "responses.parquet", columns=None)
    runs = runs.filter(pc.is_in(runs["question_id"], pa.array(numbers)))
    given = pc.equal(runs["pred"].cast(pa.string()), runs["answer_in_run"].cast(pa.string()))
    columns = {
        "query_id": pa.array([qid(n) for n in runs["question_id"].to_pylist()]),
        "model_id": runs["model"].cast(pa.string()),
        "sample": pa.array([0] * runs.num_rows, pa.int32()),
        "text": runs["output"].cast(pa.string()),
        "status": pa.array(["ok"] * runs.num_rows),
        "attempts": pa.array([1] * runs.num_rows, pa.int32()),
        "given_score": given.cast(pa.float64()),
        "graded_against": pa.array([[a] for a in runs["answer_in_run"].to_pylist()]),
    }
    return asked, contract_table("responses", columns)


@pytest.mark.slow
@pytest.mark.data
def test_mmlu_pro_faults_are_found(data: Path) -> None:
    found = kinds(audited(*_recorded(data / "mmlu_pro", 1)))
    # one run answers the few-shot questions too, one appends spurious final lines
    runs = {about for kind, about in found if kind == "conflicting_run"}
    assert runs == {"gemini-1.5-pro-002", "Qwen1.5-72B-Chat"}
    # five runs hold G wherever nothing was extracted, a sixth holds I
    filled = {about for kind, about in found if kind == "constant_fill_in"}
    expected = {
        "Meta-Llama-3_1-70B",
        "Meta-Llama-3_1-70B-Instruct",
        "Meta-Llama-3_1-8B",
        "Meta-Llama-3_1-8B-Instruct",
        "mathstral-7B",
        "gemini-1.5-flash-002",
    }
    # and no other: 36 unreadable answers of gemini-1.5-pro-002 look like it by chance
    assert filled == expected


@pytest.mark.data
def test_routellm_gsm8k_labels_that_upstream_got_wrong(data: Path) -> None:
    raw = pq.read_table(data / "routellm" / "gsm8k.parquet").to_pylist()
    with open(data / "gsm8k" / "test.jsonl") as file:
        import json

        gold = {
            r["question"].strip(): r["answer"].split("####")[1].strip()
            for r in map(json.loads, file)
        }
    rows = {row["row"]: row["prompt"] for row in raw}
    known = sorted(row for row, prompt in rows.items() if prompt.strip() in gold)
    assert len(known) == 1319
    asked = QUERIES.from_rows(
        question(n, task="gsm8k", question=rows[n], references=[gold[rows[n].strip()]])
        for n in known
    )
    texts = RESPONSES.from_rows(
        answer(row["row"], row["model"], text=row["response"], given_score=float(row["correct"]))
        for row in raw
    )
    found = audited(asked, texts)
    listed = found.tables["stored_labels"]
    # A regrade that reads a marked or last number finds 52. Reading concluding sentences finds
    # about 75 more, of which 24 of 27 read by hand are upstream's faults ("109 years old 10 years
    # from now" is 109), and nearly all of them answers that upstream rejected.
    assert listed.num_rows >= 52
    rejected = sum(row["stored"] == "incorrect" for row in listed.to_pylist())
    assert rejected >= 0.9 * listed.num_rows
    faults = {(r["stored"], r["extracted"], r["references"][0]) for r in listed.to_pylist()}
    assert ("correct", "0.5", "5") in faults
    assert ("incorrect", "$20.00", "20") in faults
    accuracy = {r["model_id"]: r for r in found.tables["stored_accuracy"].to_pylist()}
    strong = next(r for name, r in accuracy.items() if name.startswith("gpt-4"))
    assert round(strong["stored"], 3) == 0.857
    assert strong["regraded"] >= 0.889
    assert any(one.kind == "stored_labels_differ" for one in found.findings)
