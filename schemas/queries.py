"""Contract of `queries`: what is asked, once per question."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules

QUERIES = Contract(
    "queries",
    "What is asked, once per question.",
    key=("query_id",),
    columns=columns(
        query_id="string: `q` + 20 hex digits: hash of question, choices, references and repeat "
        "count",
        source="string: name of the source in the recipe",
        source_id="string: the question's own id or row number in its source",
        task="string: task (dataset or subject) the question belongs to",
        domain="string: broad field: knowledge, math, code, reading, …",
        question="string: what is asked, without instructions or choices",
        prompt="string: the full user message, with choices and the answer-format instruction; "
        "where answers were recorded elsewhere, not what the models were sent (the card says so)",
        choices="list<string>: options in order, empty for open questions",
        references="list<string>: accepted answers, of which any one is right; for choices the "
        "letter; for code tests, which all have to pass; empty only for scorers that need none",
        scorer="string: name of the rule scorer that reads the answer",
        metadata="string: JSON object of further source fields, keys sorted",
    ),
    rules=rules(
        id_form="regexp_full_match(query_id, 'q[0-9a-f]{20}')",
        asks_something="length(trim(question)) > 0 AND length(trim(prompt)) > 0",
    ),
)
