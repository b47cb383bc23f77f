"""Contract of `queries`: what is asked, once per question."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

QUERIES = Contract(
    name="queries",
    says="What is asked, once per question.",
    key=("query_id",),
    columns=(
        Column(
            "query_id",
            pa.string(),
            "`q` + 20 hex digits: hash of question, choices, references and repeat count",
        ),
        Column("source", pa.string(), "name of the source in the recipe"),
        Column("source_id", pa.string(), "the question's own id or row number in its source"),
        Column("task", pa.string(), "task (dataset or subject) the question belongs to"),
        Column("domain", pa.string(), "broad field: knowledge, math, code, reading, …"),
        Column("question", pa.string(), "what is asked, without instructions or choices"),
        Column(
            "prompt",
            pa.string(),
            "the full user message, with choices and the answer-format instruction; where answers "
            "were recorded elsewhere, not what the models were sent (the card says so)",
        ),
        Column("choices", pa.list_(pa.string()), "options in order, empty for open questions"),
        Column(
            "references",
            pa.list_(pa.string()),
            "accepted answers, of which any one is right; for choices the letter; for code tests, "
            "which all have to pass; empty only for scorers that need none",
        ),
        Column("scorer", pa.string(), "name of the rule scorer that reads the answer"),
        Column("metadata", pa.string(), "JSON object of further source fields, keys sorted"),
    ),
    rules=(
        RowRule("id_form", "regexp_full_match(query_id, 'q[0-9a-f]{20}')"),
        RowRule("asks_something", "length(trim(question)) > 0 AND length(trim(prompt)) > 0"),
    ),
)
