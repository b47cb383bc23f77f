"""The field's preference files, in and out."""

from __future__ import annotations

import csv
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routeyard.pipelines.common.errors import ContractError, SourceError
from routeyard.pipelines.curate.preference import COLUMNS, export_preferences, import_preferences
from routeyard.schemas import PREFERENCES

ARENA = [
    {
        "id": "30192", "model_a": "gpt-4-1106-preview", "model_b": "gpt-4-0613",
        "prompt": '["Is it right to\\nask, \\"why\\"?", "And now?"]',
        "response_a": '["Yes, it is.", null]', "response_b": '["No.", "Still no."]',
        "winner_model_a": "1", "winner_model_b": "0", "winner_tie": "0",
    },
    {
        "id": "53567", "model_a": "koala-13b", "model_b": "gpt-4-0613",
        "prompt": '["Was ist 2+2? \\ud83d\\ude00"]',
        "response_a": '["4"]', "response_b": '["vier, \\u00fcbrigens"]',
        "winner_model_a": "0", "winner_model_b": "0", "winner_tie": "1",
    },
]  # fmt: skip


def write_csv(path, records):
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(records)
    return path


def meaning(record):
    texts = {n: json.loads(record[n]) for n in ("prompt", "response_a", "response_b")}
    return {name: str(record[name]) for name in COLUMNS} | texts


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_round_trip_of_the_published_form(tmp_path, ending):
    table = import_preferences(write_csv(tmp_path / "arena.csv", ARENA))
    assert table.column("n_turns").to_pylist() == [2, 1]
    assert table.column("prompt")[1].as_py() == "Was ist 2+2? 😀"
    out = export_preferences(table, tmp_path / f"out.{ending}", entropies=False)
    again = import_preferences(out)
    assert again.equals(table)

    from routeyard.pipelines.common.files import rows

    written = list(rows(out))
    assert [list(row) for row in written] == [list(COLUMNS)] * 2
    assert [meaning(row) for row in written] == [meaning(row) for row in ARENA]


texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=30)


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    prompt=texts,
    responses=st.tuples(st.none() | texts, st.none() | texts),
    winner=st.sampled_from([(1, 0, 0), (0, 1, 0), (0, 0, 1)]),
    se=st.none() | st.floats(0, 10),
    ending=st.sampled_from(["csv", "jsonl", "parquet"]),
)
def test_our_records_come_back_as_they_were(tmp_path, prompt, responses, winner, se, ending):
    # Also prompts that look like JSON lists themselves, quotes, separators, empty answers.
    table = PREFERENCES.from_rows(
        [
            {
                "id": "p1", "query_id": "q1", "model_a": "a", "model_b": "b", "prompt": prompt,
                "response_a": responses[0], "response_b": responses[1],
                "winner_model_a": winner[0], "winner_model_b": winner[1], "winner_tie": winner[2],
                "se_a": se, "se_b": se, "delta": None, "basis": "semantic_entropy",
                "estimator": "discrete", "backend": None, "n_turns": 1,
            }
        ]
    )  # fmt: skip
    assert import_preferences(export_preferences(table, tmp_path / f"p.{ending}")).equals(table)


def test_a_prompt_that_looks_like_a_list_stays_one_turn(tmp_path):
    table = import_preferences(write_csv(tmp_path / "arena.csv", ARENA[1:]))
    rows = table.to_pylist()
    rows[0]["prompt"] = '["a", "b"]'
    listed = PREFERENCES.from_rows(rows)
    assert import_preferences(export_preferences(listed, tmp_path / "p.csv")).equals(listed)


def test_plain_text_is_one_turn_and_prompts_share_a_query(tmp_path):
    plain = [
        ARENA[1] | {"id": str(i), "prompt": "2+2?", "response_a": "[4", "response_b": "five"}
        for i in range(2)
    ]
    rows = import_preferences(write_csv(tmp_path / "p.csv", plain)).to_pylist()
    assert rows[0]["response_a"] == "[4"
    assert rows[0]["query_id"] == rows[1]["query_id"]


def test_half_an_emoji_does_not_stop_the_import(tmp_path):
    half = ARENA[1] | {"prompt": '["broken \\ud83d end"]'}
    table = import_preferences(write_csv(tmp_path / "p.csv", [half]))
    assert table.column("prompt")[0].as_py() == "broken \ufffd end"


def test_bad_records_are_named(tmp_path):
    for change, says in (
        ({"winner_tie": "maybe"}, "winner_tie is 'maybe'"),
        ({"response_a": '["4", "5"]'}, "different numbers of turns"),
        ({"prompt": "[null]"}, "prompt is empty"),
    ):
        path = write_csv(tmp_path / "p.csv", [ARENA[0], ARENA[1] | change])
        with pytest.raises(SourceError, match=says) as caught:
            import_preferences(path)
        assert "record 2" in caught.value.where
    with pytest.raises(ContractError, match="one_winner"):
        import_preferences(write_csv(tmp_path / "p.csv", [ARENA[1] | {"winner_model_a": "1"}]))
    (tmp_path / "p.jsonl").write_text(json.dumps({"id": 1}) + "\n")
    with pytest.raises(SourceError, match="'model_a' is missing"):
        import_preferences(tmp_path / "p.jsonl")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_datasets_loads_the_exported_file(tmp_path, ending):
    import datasets

    table = import_preferences(write_csv(tmp_path / "arena.csv", ARENA))
    out = export_preferences(table, tmp_path / f"train.{ending}", entropies=False)
    loader = {"csv": "csv", "jsonl": "json", "parquet": "parquet"}[ending]
    loaded = datasets.load_dataset(
        loader, data_files=str(out), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert loaded.column_names == list(COLUMNS)
    # What training scripts do with a row: turns from JSON, the winner from three flags.
    row = loaded[0]
    assert json.loads(row["prompt"])[1] == "And now?"
    assert [row[f"winner_{side}"] for side in ("model_a", "model_b", "tie")] == [1, 0, 0]
