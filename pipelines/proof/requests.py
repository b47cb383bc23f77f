"""Requests of answers against the recipe: their hashes are of model, parameters and messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.calls.request import RequestSettings
from routeyard.pipelines.collect.model_prompts import ModelPrompts
from routeyard.pipelines.collect.settings import provider_of, settings_of
from routeyard.pipelines.errors import RouteyardError
from routeyard.pipelines.proof.claims import Results, believed, contradiction, proved
from routeyard.pipelines.proof.evidence import Evidence


def requests_of_recipe(evidence: Evidence) -> Results:
    """Sampled answers whose request is not what the recipe asks of their model."""
    collect = evidence.collect
    if collect is None or evidence.pool is None or not evidence.built:
        return
    if collect.provider == "recorded" or not evidence.has("queries") or evidence.has("steps"):
        return
    if not evidence.same_code:
        yield believed("responses", "what was asked: another version of the code asked")
        return
    wrong, same, elsewhere = [], 0, 0
    try:
        for row, right in _compared(evidence):
            if right:
                same += 1
            elif right is None:
                elsewhere += 1
            else:
                wrong.append(f"{row['query_id']}|{row['model_id']}|{row['sample']}")
    except RouteyardError as error:
        yield contradiction("responses", 1, 1, "requests cannot be made again", [error.what])
        return
    if wrong:
        what = "requests are not what the recipe asks: other prompts, parameters or addresses"
        yield contradiction("responses", len(wrong), same + len(wrong), what, wrong)
    elif same:
        says = f"{same:,} requests are of the recipe's prompts and parameters"
        yield proved("responses", f"{says} (a sample, seed {evidence.seed})")
    if elsewhere:
        says = f"{elsewhere:,} sampled requests to addresses that came from the environment"
        yield believed("responses", says)


def _compared(evidence: Evidence) -> Iterator[tuple[dict[str, Any], bool | None]]:
    """Each sampled answer, and whether its request is the recipe's; None where nobody can know."""
    pool, collect = evidence.pool, evidence.collect
    assert pool is not None
    assert collect is not None
    queries, sample = evidence.whole("queries"), _sample(evidence)
    for model in pool.models:
        rows = sample.filter(pc.equal(sample.column("model_id"), model.model_id)).to_pylist()
        asks, provider = ModelPrompts(queries, model, collect), provider_of(model, pool)
        hashed = list(_settings(model, provider, collect))
        right: list[bool | None] = [_is_of(row, hashed, asks) for row in rows]
        if "$" in provider.base_url and not any(right):
            right = [None] * len(rows)
        yield from zip(rows, right, strict=True)


def _sample(evidence: Evidence) -> pa.Table:
    """Sampled answers that have a request and whose question's text is there, with its row."""
    columns = ["query_id", "model_id", "sample", "request_hash"]
    sample = evidence.sampled.table if evidence.sampled is not None else None
    if sample is None:
        return evidence.table("responses", columns).slice(0, 0)
    queries = evidence.table("queries", ["query_id"]).column("query_id").combine_chunks()
    hidden = pc.is_in(sample.column("query_id"), value_set=evidence.withheld)
    there = pc.and_(pc.invert(hidden), pc.is_valid(sample.column("request_hash")))
    sample = sample.select(columns).filter(there)
    sample = sample.append_column("at", pc.index_in(sample.column("query_id"), queries))
    return sample.filter(pc.is_valid(sample.column("at")))


def _settings(model: Any, provider: Any, collect: Any) -> Iterator[RequestSettings]:
    """What a model's requests say beside the messages, with each limit of tokens."""
    for limit in dict.fromkeys((None, collect.reask_truncated)):
        settings = settings_of(model, provider, collect, max_tokens=limit)
        # A loopback server whose address the environment names is known by its name.
        yield replace(settings, provider=provider.name) if "$" in provider.base_url else settings


def _is_of(row: dict[str, Any], hashed: list[RequestSettings], asks: ModelPrompts) -> bool:
    messages = asks.messages(row["at"])
    return any(row["request_hash"] == one.request_hash(messages) for one in hashed)
