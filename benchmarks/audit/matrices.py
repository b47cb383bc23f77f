"""Published matrices of `ROUTEYARD_DATA` as recordings, each by a query over its files."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pyarrow as pa

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import DATA_HINT
from routeyard.schemas.contracts import RECORDING, recording

_ZEROEVAL = """
        SELECT r.model AS arm, r.query_id AS question, l.correct::DOUBLE AS score, r.output AS text,
               q.question AS prompt, q.gold_answer AS reference
        FROM '{FOLDER/responses}' r JOIN '{FOLDER/queries}' q USING (query_id)
        LEFT JOIN '{FOLDER/upstream_labels}' l USING (query_id, model)"""
#: Matrix → query; `{…}` is a file. Columns are those of a recording.
QUERIES = {
    "zeroeval_gsm": _ZEROEVAL.replace("FOLDER", "zeroeval_gsm"),
    "mmlu_pro": """
        SELECT r.model AS arm, r.question_id AS question, q.category AS suite,
               (r.pred = r.answer_in_run)::DOUBLE AS score, r.output AS text,
               q.question || chr(10) || array_to_string(q.options, chr(10)) AS prompt,
               r.answer_in_run AS reference
        FROM '{mmlu_pro/responses}' r JOIN '{mmlu_pro/queries}' q USING (question_id)""",
    "routellm_mmlu": """
        SELECT model AS arm, subject || '/' || row AS question, subject AS suite,
               correct::DOUBLE AS score, prompt FROM '{routellm/mmlu}'""",
    "routellm_gsm8k": """
        SELECT model AS arm, row AS question, correct::DOUBLE AS score, response AS text, prompt
        FROM '{routellm/gsm8k}'""",
    "routellm_mt_bench": """
        SELECT model AS arm, question_id || '/' || turn AS question, category AS suite,
               score / 10 AS score, prompt FROM '{routellm/mt_bench}'""",
    "routerdc": """
        SELECT arm[7:] AS arm, query_id AS question, task AS suite, score, question AS prompt,
               CASE WHEN split = 'train' THEN 'train' WHEN split = 'test' THEN 'test' END AS split
        FROM (UNPIVOT '{routerdc/matrix}' ON COLUMNS('^score:') INTO NAME arm VALUE score)""",
    "open_llm_leaderboard_v2": """
        SELECT model AS arm, task || '/' || "index" AS question, task AS suite, score
        FROM '{open_llm_leaderboard_v2/scores}'""",
    "livecodebench_execution": """
        SELECT model AS arm, coalesce(sample_id, question_id) AS question, difficulty AS suite,
               "Pass@1_1" / 100 AS score
        FROM '{livecodebench/passrates}' WHERE task = 'execution'""",
    "livecodebench_generation": """
        SELECT model AS arm, question_id AS question, platform || '/' || difficulty AS suite,
               "pass@1" / 100 AS score
        FROM '{livecodebench/passrates}' WHERE task = 'generation_2024_02_26'""",
    "omnisbench": """
        SELECT policy AS arm, item_id AS question, dataset AS suite, passed::DOUBLE AS score,
               dense_rank() OVER (ORDER BY run) - 1 AS sample,
               response_text AS text, cost_usd, input_tokens AS prompt_tokens,
               output_tokens AS completion_tokens, latency_ms / 1000 AS latency_s, reference
        FROM '{omnisbench/items}'""",
    "alpaca_eval": """
        SELECT model AS arm, instruction_id AS question, dataset AS suite, preference - 1 AS score,
               output AS text, instruction AS prompt, price_per_example AS cost_usd,
               time_per_example AS latency_s FROM '{alpaca_eval/annotations}'""",
    "bbh_codex": """
        SELECT 'codex ' || mode AS arm, task || '/' || i AS question, task AS suite,
               NULL AS score, prediction AS text, input AS prompt, target AS reference
        FROM '{bbh/codex_raw}'""",
    "crux_sample": _ZEROEVAL.replace("FOLDER", "crux_sample"),
    "gsm8k_solutions": """
        SELECT model AS arm, row AS question, is_correct::DOUBLE AS score, solution AS text,
               question AS prompt FROM '{gsm8k/example_model_solutions}'""",
    "math_samples": """
        SELECT 'qwen' AS arm, query_id AS question, sample, s.correct::DOUBLE AS score,
               output AS text, question AS prompt, answer AS reference
        FROM '{math_samples/samples}' s JOIN '{math_samples/queries}' q USING (query_id)""",
    "evouna_nq": """
        SELECT model AS arm, item_id AS question, judged::DOUBLE AS score, output AS text,
               question AS prompt FROM '{judged/evouna_nq}'""",
    "mathvista": """
        SELECT model AS arm, item_id AS question, answer_type AS suite, judged::DOUBLE AS score,
               output AS text, question AS prompt, "references"[1] AS reference
        FROM '{judged/mathvista}'""",
    "theoremqa": """
        SELECT model AS arm, item_id AS question, judged::DOUBLE AS score, output AS text,
               question AS prompt FROM '{judged/theoremqa}'""",
    "gaokao_mcq": """
        SELECT model AS arm, item_id AS question, judged::DOUBLE AS score, output AS text,
               question AS prompt FROM '{judged/gaokao_mcq}'""",
    "mint_bench": """
        SELECT model || ' @' || max_turns AS arm, task_id AS question, task AS suite,
               success::DOUBLE AS score, terminate AS status, error_kind AS error,
               prompt_tokens, completion_tokens FROM '{matrices/mint_bench_labels}'""",
    "mint_bench_texts": """
        SELECT model || ' @' || max_turns AS arm, t.task_id AS question, t.task AS suite,
               success::DOUBLE AS score, last AS text, q.question AS prompt, reference
        FROM '{matrices/mint_bench_texts}' t
        JOIN '{matrices/mint_bench_questions}' q USING (task, task_id)""",
    "numersense": """
        SELECT model || ' ' || mode AS arm, session_id AS question, output AS text,
               question AS prompt, answer AS reference FROM '{matrices/numersense_v2_outputs}'""",
    "evalperf": """
        SELECT model AS arm, task_id AS question, pass1 / 100 AS score
        FROM '{matrices/evalperf_passrates}'""",
    "tau_bench": """
        SELECT 'gpt-4o' AS arm, task_id AS question, trial AS sample, reward AS score
        FROM '{trajectories/tau_bench_airline_gpt4o}'""",
}  # fmt: skip


def data() -> Path:
    """The folder of published data (`ROUTEYARD_DATA`)."""
    if not (folder := os.environ.get("ROUTEYARD_DATA")):
        raise SourceError("ROUTEYARD_DATA is not set", next_step=DATA_HINT)
    return Path(folder)


def matrix(name: str) -> pa.Table:
    """A published matrix as a recording, in the order of its file."""
    query = QUERIES[name]
    with duckdb.connect(config={"threads": 2}) as connection:
        for file in sorted(data().glob("**/*.parquet")):
            short = str(file.relative_to(data()).with_suffix(""))
            query = query.replace(f"{{{short}}}", str(file))
        found = connection.sql(query).to_arrow_table()
    columns = {
        field.name: found.column(field.name)
        for field in RECORDING
        if field.name in found.column_names
    }
    return recording(columns)
