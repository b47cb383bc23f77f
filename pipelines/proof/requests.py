"""Requests of answers against the recipe: their hashes are of model, parameters and messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.calls.request import RequestSettings
from routeyard.pipelines.collect.model_prompts import ModelPrompts
from routeyard.pipelines.collect.settings import provider_of, settings_of
from routeyard.pipelines.errors import RouteyardError
from routeyard.pipelines.proof.claims import Results, believed, contradiction, not_run, proved
from routeyard.pipelines.proof.evidence import Evidence


def requests_of_recipe(evidence: Evidence) -> Results:
    """Sampled answers whose request is not what the recipe asks of their model."""
    collect = evidence.collect
    if not evidence.built or (collect is not None and collect.provider == "recorded"):
        return
    if why := _cannot_be_made(evidence):
        yield not_run("responses", "request hashes against the recipe", why)
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
        wrong += _repeated(evidence) if elsewhere else ()
    except RouteyardError as error:
        yield contradiction("responses", 1, 1, "requests cannot be made again", [error.what])
        return
    if wrong:
        what = "requests are not what the recipe asks: other prompts, parameters or addresses"
        yield contradiction("responses", len(wrong), same + len(wrong), what, wrong)
    elif same:
        says = f"{same:,} requests are of the recipe's prompts and parameters"
        covers = () if elsewhere else ("request_hash",)
        yield proved("responses", f"{says} (a sample, seed {evidence.seed})", *covers)
    if elsewhere:
        check = f"{elsewhere:,} of {elsewhere + same:,} request hashes against the recipe"
        why = "they hold an address of the environment whose digest the manifest does not state"
        yield not_run("responses", check, why)
        says = f"what was asked in {elsewhere:,} of {elsewhere + same:,} sampled requests"
        yield believed("responses", f"{says}: system message, parameters, prompt")
    if not (wrong or elsewhere or same):
        yield not_run("responses", "request hashes against the recipe", "no sampled answer has one")


def _cannot_be_made(evidence: Evidence) -> str:
    """Why requests cannot be made again; empty where they can."""
    if evidence.collect is None or evidence.pool is None:
        return evidence.unread("collect" if evidence.collect is None else "pool")
    if evidence.has("steps"):
        return "those of an agent hold what its tools gave back"
    return "" if evidence.same_code else evidence.other_code


def _compared(evidence: Evidence) -> Iterator[tuple[dict[str, Any], bool | None]]:
    """Each sampled answer, and whether its request is the recipe's; None where nobody can know."""
    pool, collect = evidence.pool, evidence.collect
    assert pool is not None
    assert collect is not None
    queries, sample = evidence.whole("queries"), _sample(evidence)
    for model in pool.models:
        rows = sample.filter(pc.equal(sample.column("model_id"), model.model_id)).to_pylist()
        asks, provider = ModelPrompts(queries, model, collect), provider_of(model, pool)
        stated = _stated(evidence, provider)
        hashed = list(_settings(model, provider, collect, stated))
        right: list[bool | None] = [_is_of(row, hashed, asks) for row in rows]
        if "$" in provider.base_url and stated is None and not any(right):
            right = [None] * len(rows)
        yield from zip(rows, right, strict=True)


def _stated(evidence: Evidence, provider: Any) -> str | None:
    """Digest of an address from the environment, or the name of a server on loopback."""
    told = evidence.figures("collect").get("addresses")
    found = told.get(provider.name) if isinstance(told, Mapping) else None
    return found if isinstance(found, str) else None


def _repeated(evidence: Evidence) -> Iterator[str]:
    """Models whose requests have fewer hashes than questions: two prompts have two hashes."""
    assert evidence.pool is not None
    framed = {model.model_id for model in evidence.pool.models if model.prompt is not None}
    sample = _sample(evidence)
    prompts = evidence.table("queries", ["prompt"]).column("prompt").take(sample.column("at"))
    sample = sample.append_column("prompt", prompts)
    counts = sample.group_by("model_id").aggregate(
        [("prompt", "count_distinct"), ("request_hash", "count_distinct")]
    )
    for row in counts.sort_by("model_id").to_pylist():
        asked, hashes = row["prompt_count_distinct"], row["request_hash_count_distinct"]
        if row["model_id"] not in framed and hashes < asked:
            yield f"{row['model_id']} has {hashes:,} hashes of {asked:,} prompts"


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


def _settings(
    model: Any, provider: Any, collect: Any, stated: str | None
) -> Iterator[RequestSettings]:
    """What a model's requests say beside the messages, with each limit of tokens."""
    for limit in dict.fromkeys((None, collect.reask_truncated)):
        settings = settings_of(model, provider, collect, max_tokens=limit)
        if "$" in provider.base_url:
            # A loopback server whose address the environment names is known by its name.
            settings = replace(settings, provider=stated or provider.name)
        yield settings


def _is_of(row: dict[str, Any], hashed: list[RequestSettings], asks: ModelPrompts) -> bool:
    messages = asks.messages(row["at"])
    return any(row["request_hash"] == one.request_hash(messages) for one in hashed)
