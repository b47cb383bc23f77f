"""Requests of answers against the recipe: their hashes are of model, parameters and messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc

from routeyard.pipelines.calls.request import RequestSettings
from routeyard.pipelines.collect.model_prompts import ModelPrompts
from routeyard.pipelines.collect.settings import provider_of, settings_of
from routeyard.pipelines.errors import RouteyardError
from routeyard.pipelines.proof.claims import Results, believed, contradiction, proved
from routeyard.pipelines.proof.evidence import Evidence


def requests_of_recipe(evidence: Evidence) -> Results:
    """Sampled answers whose request is not what the recipe asks of their model."""
    collect, pool = evidence.collect, evidence.pool
    sample = evidence.sampled.table if evidence.sampled is not None else None
    if collect is None or pool is None or sample is None or not evidence.has("queries"):
        return
    if collect.provider == "recorded" or evidence.has("steps") or not evidence.built:
        return
    if not evidence.same_code:
        yield believed("responses", "what was asked: another version of the code asked")
        return
    queries = evidence.whole("queries")
    hidden = pc.is_in(sample.column("query_id"), value_set=evidence.withheld)
    sample = sample.filter(pc.and_(pc.invert(hidden), pc.is_valid(sample.column("request_hash"))))
    at = pc.index_in(sample.column("query_id"), queries.column("query_id").combine_chunks())
    sample = sample.select(["query_id", "model_id", "sample", "request_hash"])
    sample = sample.append_column("at", at).filter(pc.is_valid(at))
    wrong, same, elsewhere = [], 0, Counter[str]()
    for model in pool.models:
        rows = sample.filter(pc.equal(sample.column("model_id"), model.model_id)).to_pylist()
        if not rows:
            continue
        try:
            asks = ModelPrompts(queries, model, collect)
            provider = provider_of(model, pool)
            hashed = list(_settings(model, provider, collect))
            differ = [row for row in rows if not _is_of(row, hashed, asks)]
        except RouteyardError as error:
            yield contradiction("responses", 1, 1, "requests cannot be made again", [error.what])
            return
        if len(differ) == len(rows) and "$" in provider.base_url:
            elsewhere[model.model_id] = len(rows)
            continue
        same += len(rows) - len(differ)
        wrong += [f"{r['query_id']}|{r['model_id']}|{r['sample']}" for r in differ]
    if wrong:
        what = "requests are not what the recipe asks: other prompts, parameters or addresses"
        yield contradiction("responses", len(wrong), same + len(wrong), what, wrong)
    elif same:
        says = f"{same:,} requests are of the recipe's prompts and parameters"
        whole = sample.num_rows >= evidence.rows("responses")
        yield proved("responses", says + ("" if whole else f" (a sample, seed {evidence.seed})"))
    if elsewhere:
        says = f"what {len(elsewhere)} models were asked: their address came from the environment"
        yield believed("responses", says)


def _settings(model: Any, provider: Any, collect: Any) -> Iterator[RequestSettings]:
    """What a model's requests say beside the messages, with each limit of tokens."""
    for limit in dict.fromkeys((None, collect.reask_truncated)):
        settings = settings_of(model, provider, collect, max_tokens=limit)
        # A loopback server whose address the environment names is known by its name.
        yield replace(settings, provider=provider.name) if "$" in provider.base_url else settings


def _is_of(row: dict[str, Any], hashed: list[RequestSettings], asks: ModelPrompts) -> bool:
    messages = asks.messages(row["at"])
    return any(row["request_hash"] == one.request_hash(messages) for one in hashed)
