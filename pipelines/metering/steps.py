"""An agent's calls as the rows that the metering audit reads: what was metered are calls."""

from __future__ import annotations

import json

import pyarrow as pa


def as_answers(steps: pa.Table) -> pa.Table:
    """One row for each call of `steps`, under the model that was asked.

    A call that several trajectories share was metered once and stands once. The text of a search
    is what it said and the arguments of its calls, which is what its tokens are made of.
    """
    seen: set[tuple[str, int]] = set()
    rows = []
    for step in steps.to_pylist():
        key = (step["request_hash"], step["sample"])
        if key in seen:
            continue
        seen.add(key)
        called = [json.dumps({"query": query}, ensure_ascii=False) for query in step["queries"]]
        said = [] if step["said"] is None else [step["said"]]
        rows.append(
            {
                **{
                    name: step[name]
                    for name in (
                        "query_id", "sample", "status", "served_model", "prompt_tokens",
                        "completion_tokens", "reasoning_tokens", "cost_usd", "cost_source",
                        "latency_s",
                    )
                },
                "model_id": step["acted_by"],
                "text": "\n".join([*said, *called]) or None,
                "logprobs": None,
            }
        )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


_SCHEMA = pa.schema(
    [
        ("query_id", pa.string()),
        ("model_id", pa.string()),
        ("sample", pa.int32()),
        ("status", pa.string()),
        ("text", pa.string()),
        ("served_model", pa.string()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("reasoning_tokens", pa.int64()),
        ("cost_usd", pa.float64()),
        ("cost_source", pa.string()),
        ("latency_s", pa.float64()),
        ("logprobs", pa.string()),
    ]
)
