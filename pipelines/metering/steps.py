"""An agent's calls as the rows that the metering audit reads: what was metered are calls."""

from __future__ import annotations

import json

import pyarrow as pa

from routeyard.pipelines.metering.audit import NEEDED
from routeyard.schemas import RESPONSES


def as_answers(steps: pa.Table) -> pa.Table:
    """One row for each call of `steps`, under the model that was asked.

    A call that several trajectories share was metered once and is listed once. The text of a search
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
        row = {name: step.get(name) for name in NEEDED}
        rows.append(
            row | {"model_id": step["acted_by"], "text": "\n".join([*said, *called]) or None}
        )
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


#: What the audit reads of an answer, as the contract of `responses` has it.
_SCHEMA = pa.schema([RESPONSES.schema.field(name) for name in NEEDED])
