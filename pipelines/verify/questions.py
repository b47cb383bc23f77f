"""Questions: ids are hashes of what is asked, and prompts, scorers and domains the recipe's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.collect.plan import ModelPrompts, provider_of, settings_of
from routeyard.pipelines.collect.request import RequestSettings
from routeyard.pipelines.common.files import sha256
from routeyard.pipelines.common.image_files import MOST_BYTES
from routeyard.pipelines.ingest.images import images_table
from routeyard.pipelines.ingest.queries import query_id, uniform_prompt
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.verify.evidence import (
    SAMPLE,
    Evidence,
    Results,
    agree,
    among,
    believed,
    contradiction,
    not_run,
    rows,
)
from routeyard.schemas import CONTRACTS
from routeyard.schemas.errors import RouteyardError
from routeyard.schemas.images import MARK

#: Questions that say exactly the same, at most: the id of the last of them counts the others.
_REPEATS = 64


def ids_of_questions(evidence: Evidence) -> Results:
    """Questions whose id is not the hash of question, options and references."""
    if not evidence.built:
        return
    queries = evidence.table("queries", ["query_id", "question", "choices", "references"])
    queries = among(queries, "query_id", evidence.withheld, False)
    wrong = []
    for row in queries.to_pylist():
        content = (row["question"], row["choices"] or [], row["references"] or [])
        if all(row["query_id"] != query_id(*content, n) for n in range(_REPEATS)):
            wrong.append(f"{row['query_id']}, expected {query_id(*content, 0)}")
    says = "the hash of their question, options and references"
    covers = [] if len(evidence.withheld) else ["query_id"]
    yield from agree("queries", "ids", says, queries.num_rows, wrong, *covers)
    if len(evidence.withheld):
        yield not_run("queries", f"ids of {len(evidence.withheld):,} questions", "no text is there")


def questions_of_sources(evidence: Evidence) -> Results:
    """Questions whose prompt, scorer, domain or task is not what their source says of all."""
    if not evidence.built:
        return
    of = evidence.rows("queries")
    columns = ["query_id", "source", "question", "choices", "prompt", "scorer", "domain", "task"]
    queries = evidence.table("queries", columns)
    for column in ("scorer", "domain", "task", "prompt"):
        wrong, examples, compared, left = 0, list[str](), 0, of
        for name in evidence.sources:
            stated = _of_all(evidence, name)
            if column not in stated:
                continue
            asked = among(queries, "source", pa.array([name]))
            if column == "prompt":
                asked = among(asked, "query_id", evidence.withheld, False)
            left -= asked.num_rows
            if column == "prompt":
                asked = evidence.some(asked, SAMPLE)
                texts = (asked.column(c).to_pylist() for c in ("question", "choices"))
                told = stated["prompt"]
                made = [uniform_prompt(q, c or [], told) for q, c in zip(*texts, strict=True)]
            else:
                made = [stated[column]] * asked.num_rows
            fresh = asked.select(["query_id"]).append_column(column, pa.array(made, pa.string()))
            bad, some = rows(asked, fresh, ("query_id",))
            wrong, examples, compared = wrong + bad, examples + some, compared + asked.num_rows
        if column == "prompt":
            says, covers = "made of question, options and instruction", [] if left else [column]
            found = (wrong, examples)
            yield from agree("queries", "prompts", says, compared, found, *covers)
        else:
            says = f"of the {column} that the recipe states of their source"
            found = (wrong, examples)
            yield from agree("queries", "questions", says, compared, found, kind="consistent")
        if left:
            why = "the recipe states none for all of their source, or this code cannot read it"
            yield not_run("queries", f"{column} of {left:,} questions", why)


def _of_all(evidence: Evidence, name: str) -> dict[str, str]:
    """Column → value that a source states for all of its questions; of prompts the instruction."""
    source = evidence.sources[name]
    fields = source.fields
    if fields is None or source.scorer is None:
        return {}
    stated: dict[str, str] = {}
    if not fields.scorer:
        stated["scorer"] = source.scorer
    if not fields.domain:
        stated["domain"] = source.domain
    if not fields.task:
        stated["task"] = source.task or source.name
    told = source.instruction
    if told is None and source.scorer in SCORERS.targets:  # not of a package that is not here
        told = SCORERS.get(source.scorer).instruction
    if told is not None and evidence.same_code and not (fields.prompt or fields.scorer):
        stated["prompt"] = told
    return stated


# Images of questions: the table against the questions, and files at hand against its hashes.


def images_of_questions(evidence: Evidence) -> Results:
    """Images whose row is not what their question says, or whose file has another hash."""
    if not evidence.has("queries") or not evidence.built:
        return
    queries = evidence.table("queries", ["query_id", "prompt", "metadata"])
    expected = images_table(queries)
    stored = evidence.whole("images")
    if not expected.num_rows and not stored.num_rows:
        return
    bad, examples = rows(stored, expected, CONTRACTS["images"].key)
    images = stored.to_pylist()
    marked = among(queries, "query_id", stored.column("query_id")).to_pylist()
    shown = {row["query_id"]: set(MARK.findall(row["prompt"])) for row in marked}
    unmarked = [
        f"{row['query_id']} has no mark of {row['image_id']}"
        for row in images
        if row["image_id"] not in shown.get(row["query_id"], ())
    ]
    wrong = (bad + len(unmarked), [*examples, *unmarked])
    yield from agree(
        "images", "images", "those that the questions name and mark", len(images), wrong
    )
    if wrong[0]:
        return
    if addresses := sum(row["sha256"] is None for row in images):
        yield believed("images", f"{addresses:,} addresses: what they lead to has no hash")
    files = {row["sha256"]: row["reference"] for row in images if row["sha256"] is not None}
    if files:
        yield from _files(files, evidence.images)


def _files(files: Mapping[str, str | None], folder: Path | None) -> Results:
    """Whether a folder holds the files of these hashes (hash → path)."""
    if folder is None:
        yield believed(
            "images", f"{len(files):,} files, which a release does not hold (`--images`)"
        )
        return
    there = (path for path in folder.rglob("*") if path.is_file())
    hashes = {sha256(path) for path in there if path.stat().st_size <= MOST_BYTES}
    lost = [
        f"{name or digest} is {_state(folder, name)}"
        for digest, name in files.items()
        if digest not in hashes
    ]
    says = f"files in {folder} with the stated SHA-256"
    yield from agree("images", "images", says, len(files), lost)


def _state(folder: Path, name: str | None) -> str:
    safe = name is not None and ".." not in Path(name).parts and "\0" not in name
    return "another file" if safe and (folder / str(name)).is_file() else "missing"


# Requests of answers against the recipe: their hashes are of model, parameters and messages.


def requests_of_recipe(evidence: Evidence) -> Results:
    """Sampled answers whose request is not what the recipe asks of their model."""
    collect = evidence.collect
    if not evidence.built or (collect is not None and collect.provider == "recorded"):
        return
    check = "request hashes against the recipe"
    if why := evidence.lacks("collect", "pool", "calls", "code"):
        yield not_run("responses", check, why)
        return
    wrong, same, elsewhere = [], 0, 0
    try:
        for row, right in _compared(evidence):
            same += right is True
            elsewhere += right is None
            if right is False:
                wrong.append(f"{row['query_id']}|{row['model_id']}|{row['sample']}")
        wrong += _repeated(evidence) if elsewhere else ()
    except RouteyardError as error:
        yield contradiction("responses", 1, 1, "requests cannot be made again", [error.what])
        return
    says = f"what the recipe asks: its prompts, parameters and addresses (seed {evidence.seed})"
    covers = () if elsewhere else ("request_hash",)
    yield from agree("responses", "requests", says, same, wrong, *covers)
    if elsewhere:
        of = f"{elsewhere:,} of {elsewhere + same:,}"
        why = "they hold an address of the environment whose digest the manifest does not state"
        yield not_run("responses", f"{of} {check}", why)
        says = f"what was asked in {of} sampled requests: system message, parameters, prompt"
        yield believed("responses", says)
    if not (wrong or elsewhere or same):
        yield not_run("responses", check, "no sampled answer has one")


def _compared(evidence: Evidence) -> Iterator[tuple[dict[str, Any], bool | None]]:
    """Each sampled answer, and whether its request is the recipe's; None where nobody can know."""
    pool, collect = evidence.pool, evidence.collect
    queries, sample = evidence.whole("queries"), _sample(evidence)
    limit = evidence.figures("collect").get("reask_truncated")
    larger = limit if isinstance(limit, int) else None
    for model in pool.models:
        rows = among(sample, "model_id", pa.array([model.model_id])).to_pylist()
        asks, provider = ModelPrompts(queries, model, collect), provider_of(model, pool)
        stated = _stated(evidence, provider)
        hashed = list(_settings(model, provider, collect, stated, larger))
        right: list[bool | None] = [
            any(row["request_hash"] == item.request_hash(messages) for item in hashed)
            for row in rows
            for messages in [asks.messages(row["at"])]
        ]
        if provider.id_in_environment and stated is None and not any(right):
            right = [None] * len(rows)
        yield from zip(rows, right, strict=True)


def _stated(evidence: Evidence, provider: Any) -> str | None:
    """Digest of an address from the environment, or the name of a server on loopback."""
    addresses = evidence.figures("collect").get("addresses")
    result = addresses.get(provider.name) if isinstance(addresses, Mapping) else None
    return result if isinstance(result, str) else None


def _repeated(evidence: Evidence) -> Iterator[str]:
    """Models whose requests have fewer hashes than questions: two prompts have two hashes."""
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
    sample = evidence.sampled.table
    if sample is None:
        return evidence.table("responses", columns).slice(0, 0)
    queries = evidence.table("queries", ["query_id"]).column("query_id").combine_chunks()
    sample = among(sample.select(columns), "query_id", evidence.withheld, False)
    sample = sample.append_column("at", pc.index_in(sample.column("query_id"), queries))
    return sample.drop_null()


def _settings(
    model: Any, provider: Any, collect: Any, stated: str | None, larger: int | None
) -> Iterator[RequestSettings]:
    """What a model's requests say beside the messages, with each limit of tokens."""
    for limit in dict.fromkeys((None, larger)):
        settings = settings_of(model, provider, collect, max_tokens=limit)
        if provider.id_in_environment:
            # A loopback server whose address the environment names is known by its name.
            settings = replace(settings, provider=stated or provider.name)
        yield settings
