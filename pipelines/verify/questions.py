"""Questions: ids are hashes of what is asked, and prompts, scorers and domains the recipe's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
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
    believed,
    consistent,
    contradiction,
    not_run,
    proved,
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
    there = pc.invert(pc.is_in(queries.column("query_id"), value_set=evidence.withheld))
    queries = queries.filter(there)
    wrong, seen = [], Counter[str]()
    for row in queries.to_pylist():
        content = (row["question"], row["choices"] or [], row["references"] or [])
        first = query_id(*content, 0)
        seen[first] += 1
        if row["query_id"] == first:
            continue
        if all(row["query_id"] != query_id(*content, n) for n in range(1, _REPEATS)):
            wrong.append(f"{row['query_id']}, expected {first}")
    if wrong:
        what = "ids are not the hash of their question, options and references"
        yield contradiction("queries", len(wrong), queries.num_rows, what, wrong)
    elif queries.num_rows:
        says = f"{queries.num_rows:,} ids are the hashes of question, options and references"
        yield proved("queries", says, *([] if len(evidence.withheld) else ["query_id"]))
    if len(evidence.withheld):
        yield not_run("queries", f"ids of {len(evidence.withheld):,} questions", "no text is there")


def questions_of_sources(evidence: Evidence) -> Results:
    """Questions whose prompt, scorer, domain or task is not what their source says of all."""
    if not evidence.built:
        return
    columns = ["query_id", "source", "question", "choices", "prompt", "scorer", "domain", "task"]
    queries = evidence.table("queries", columns)
    hidden = pc.is_in(queries.column("query_id"), value_set=evidence.withheld)
    wrong, examples, prompts = 0, list[str](), 0
    same = dict.fromkeys(("scorer", "domain", "task", "prompt"), 0)
    for name in evidence.sources:
        stated = _of_all(evidence, name)
        instruction = stated.pop("instruction", None)
        own = pc.equal(queries.column("source"), name)
        questions = queries.filter(own)
        expected = [(questions, c, [value] * questions.num_rows) for c, value in stated.items()]
        if instruction is not None:
            questions = queries.filter(pc.and_(own, pc.invert(hidden)))
            same["prompt"] += questions.num_rows
            if not evidence.full and questions.num_rows > SAMPLE:
                drawn = np.random.Generator(np.random.PCG64(evidence.seed))
                places = np.sort(drawn.choice(questions.num_rows, SAMPLE, False))
                questions = questions.take(pa.array(places))
            texts = (questions.column(column).to_pylist() for column in ("question", "choices"))
            fresh = [uniform_prompt(q, c or [], instruction) for q, c in zip(*texts, strict=True)]
            expected.append((questions, "prompt", fresh))
            prompts += questions.num_rows
        for stored, column, right in expected:
            if column != "prompt":
                same[column] += stored.num_rows
            made = stored.select(["query_id"]).append_column(column, pa.array(right, pa.string()))
            bad, some = rows(stored, made, ("query_id",))
            wrong, examples = wrong + bad, examples + some
    if wrong:
        what = "columns differ from what the recipe says of their source"
        yield contradiction("queries", wrong, queries.num_rows, what, examples)
        return
    for column in ("scorer", "domain", "task"):
        if same[column]:
            says = f"{column} of {same[column]:,} questions: what the recipe states of their source"
            yield consistent("queries", says)
    of = queries.num_rows
    if prompts:
        says = f"{prompts:,} prompts are made of question, options and instruction"
        yield proved("queries", says, *(["prompt"] if same["prompt"] == of else []))
    for column, count in same.items():
        if count < of:
            why = "the recipe states none for all of their source, or this code cannot read it"
            yield not_run("queries", f"{column} of {of - count:,} questions", why)


def _of_all(evidence: Evidence, name: str) -> dict[str, str]:
    """Column → value that a source states for all of its questions, and its instruction."""
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
    if not fields.prompt and evidence.same_code and not fields.scorer:
        try:
            instruction = source.instruction
            stated["instruction"] = (
                SCORERS.get(source.scorer).instruction if instruction is None else instruction
            )
        except RouteyardError:
            pass  # a scorer of another package, or none
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
    named = pc.is_in(queries.column("query_id"), stored.column("query_id").combine_chunks())
    marked = queries.filter(named).to_pylist()
    shown = {row["query_id"]: set(MARK.findall(row["prompt"])) for row in marked}
    unmarked = [
        f"{row['query_id']} has no mark of {row['image_id']}"
        for row in images
        if row["image_id"] not in shown.get(row["query_id"], ())
    ]
    if bad := bad + len(unmarked):
        what = "images are not those that the questions name and mark"
        yield contradiction("images", bad, len(images), what, [*examples, *unmarked])
        return
    yield proved("images", f"{len(images):,} images are those that the questions name and mark")
    files = {row["sha256"]: row["reference"] for row in images if row["sha256"] is not None}
    if addresses := sum(row["sha256"] is None for row in images):
        yield believed("images", f"{addresses:,} addresses: what they lead to has no hash")
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
    if lost:
        what = f"images have no file with their SHA-256 in {folder}"
        yield contradiction("images", len(lost), len(files), what, lost)
    else:
        yield proved("images", f"{len(files):,} files have the stated SHA-256")


def _state(folder: Path, name: str | None) -> str:
    safe = name is not None and ".." not in Path(name).parts and "\0" not in name
    return "another file" if safe and (folder / str(name)).is_file() else "missing"


# Requests of answers against the recipe: their hashes are of model, parameters and messages.


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
    limit = evidence.figures("collect").get("reask_truncated")
    larger = limit if isinstance(limit, int) else None
    for model in pool.models:
        rows = sample.filter(pc.equal(sample.column("model_id"), model.model_id)).to_pylist()
        asks, provider = ModelPrompts(queries, model, collect), provider_of(model, pool)
        stated = _stated(evidence, provider)
        hashed = list(_settings(model, provider, collect, stated, larger))
        right: list[bool | None] = [_is_of(row, hashed, asks) for row in rows]
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
    model: Any, provider: Any, collect: Any, stated: str | None, larger: int | None
) -> Iterator[RequestSettings]:
    """What a model's requests say beside the messages, with each limit of tokens."""
    for limit in dict.fromkeys((None, larger)):
        settings = settings_of(model, provider, collect, max_tokens=limit)
        if provider.id_in_environment:
            # A loopback server whose address the environment names is known by its name.
            settings = replace(settings, provider=stated or provider.name)
        yield settings


def _is_of(row: dict[str, Any], hashed: list[RequestSettings], asks: ModelPrompts) -> bool:
    messages = asks.messages(row["at"])
    return any(row["request_hash"] == item.request_hash(messages) for item in hashed)
