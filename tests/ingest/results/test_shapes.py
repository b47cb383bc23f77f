"""Public results in their original layouts are read as they lie there, with their accuracies."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from routeyard.pipelines.ingest.results import AggregatesOnly, Results, read_results

#: Folder below `shapes` → (arm, suite or None for all) → mean score, as its README states it.
TRUE: dict[str, dict[tuple[str, str | None], float]] = {
    "swebench_mini_info": {
        ("gpt-5", None): 0.650, ("gpt-5-mini", None): 0.598, ("sonnet-4", None): 0.648,
        ("sonnet-4-5", None): 0.706,
    },
    "routerarena_cached": {
        ("claude-3-haiku-20240307", None): 0.532483,
        # The README says 0.724709; the mean of its 640 scores is this.
        ("gemini-2.0-flash-001", None): 0.724708,
    },
    "swe_reports/results": {
        ("gpt-5.2", None): 28 / 102, ("claude-opus-4.5", None): 27 / 102,
        ("gemini-2.5-pro", None): 4 / 102,
    },
    "swe_reports/evaluation": {
        ("20240825_SWE-agent_deepseek-chat-v2", None): 9 / 91,
        ("20240825_SWE-agent_gpt-4o-2024-05-13", None): 6 / 91,
    },
    "routellm_wide_bool": {
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "gsm8k_responses"): 0.638362,
        ("gpt-4-1106-preview", "gsm8k_responses"): 0.856710,
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mmlu_formal_logic"): 0.388889,
        ("gpt-4-1106-preview", "mmlu_formal_logic"): 0.642857,
    },
    "trustedrouter_gateway": {
        ("deepseek/deepseek-v4-flash", None): 0.30, ("trustedrouter/socrates-1.1", None): 0.10,
    },
    "inspect_logs": {
        ("openai/gpt-4o-mini", "popularity"): 0.8,
        ("anthropic/claude-sonnet-4-0", "inspect_evals/arc_easy"): 1.0,
        ("ollama/qwen2.5:0.5b", "inspect_evals/arc_easy"): 1 / 3,
    },
    "lm_eval_harness": {
        ("RylanSchaeffer/mem_Qwen3-93M_minerva_math_rep_0_sbst_1.0000_epch_1_ot_1", None): 0.0,
    },
    "helm_runs": {
        ("eleutherai/pythia-1b-v0", None): 0.3,
        ("openai/gpt2", "mmlu:subject=philosophy,method=multiple_choice_joint"): 0.1,
        ("openai/gpt2", "narrative_qa"): 0.0,
    },
    "mint_multiturn": {
        ("claude-2", "gsm8k"): 0.854167, ("claude-2", "hotpotqa"): 0.465116,
        ("gpt-3.5-turbo-0613", "gsm8k"): 0.437500, ("gpt-3.5-turbo-0613", "hotpotqa"): 0.279070,
    },
}  # fmt: skip


def accuracy(table: pa.Table, arm: str, suite: str | None) -> float:
    rows = [
        row
        for row in table.select(["arm", "suite", "score"]).to_pylist()
        if row["arm"] == arm and suite in (None, row["suite"]) and row["score"] is not None
    ]
    return float(sum(row["score"] for row in rows) / len(rows))


@pytest.mark.parametrize("folder", TRUE)
def test_accuracies_of_original_layouts(folder: str, data: Path) -> None:
    found = read_results(data / "shapes" / folder)
    for (arm, suite), true in TRUE[folder].items():
        assert accuracy(found.table, arm, suite) == pytest.approx(true, abs=6e-7), (arm, suite)
    keys = found.table.group_by(["arm", "suite", "question", "sample"]).aggregate([])
    assert keys.num_rows == found.table.num_rows


def kinds(found: Results, kind: str) -> str:
    return " | ".join(note.says for note in found.notes if note.kind == kind)


def test_traps_of_original_layouts_are_named(data: Path) -> None:
    arena = read_results(data / "shapes" / "routerarena_cached")
    assert "'success' is True in every row" in kinds(arena, "choice")
    assert "1 scores are not in [0, 1] (-0.0330189)" in kinds(arena, "value")
    assert "'evaluation_result.metric' names 6 metrics" in kinds(arena, "choice")
    mint = read_results(data / "shapes" / "mint_multiturn")
    assert "'state.latest_output.success' is False in every row" in kinds(mint, "choice")
    logs = kinds(read_results(data / "shapes" / "inspect_logs"), "status")
    for says in ("ended as 'cancelled'", "'...'", "counts 2,340 samples and holds 1",
                 "'hardcoded/hardcoded'", "1 of 1 samples of data_cvebench"):  # fmt: skip
        assert says in logs
    harness = kinds(read_results(data / "shapes" / "lm_eval_harness"), "status")
    assert "holds 10 of the 5,000 samples" in harness
    assert "mixes the splits test, valid" in kinds(
        read_results(data / "shapes" / "helm_runs"), "status"
    )
    reports = read_results(data / "shapes" / "swe_reports" / "results")
    assert "gpt-5.2 lists 87 of the 102 questions" in kinds(reports, "status")


@pytest.mark.parametrize(
    "folder", ["leaderboards_agg/public", "leaderboards_agg/aider", "lm_eval_harness/evals"]
)
def test_aggregates_are_not_taken_for_questions(folder: str, data: Path) -> None:
    with pytest.raises(AggregatesOnly, match="aggregates, not answers"):
        read_results(data / "shapes" / folder)
