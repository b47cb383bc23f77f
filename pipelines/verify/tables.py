"""Questions, images, requests, verdicts and labels against what they follow from."""

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
from routeyard.pipelines.common.sql import runner
from routeyard.pipelines.ingest.images import images_table
from routeyard.pipelines.ingest.queries import query_id, uniform_prompt
from routeyard.pipelines.label.error_rates import label_errors
from routeyard.pipelines.label.policies import decide
from routeyard.pipelines.label.rules import file_verdicts
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import FAMILIES
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
    values,
)
from routeyard.schemas import CONTRACTS
from routeyard.schemas.errors import RouteyardError
from routeyard.schemas.images import MARK
from routeyard.schemas.statuses import NO_RULE

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


# Verdicts against texts, labels against verdicts: scorers and policy read them once more.

_VERDICTS_KEY = ("query_id", "model_id", "sample", "scorer", "scorer_version")
_READ = ("outcome", "score", "extracted", "span_start", "span_end", "conflict")
_QUESTION = ("query_id", "question", "prompt", "choices", "references", "scorer", "metadata",
             "source", "source_id", "task", "domain")  # fmt: skip
_LABELS_KEY = ("query_id", "model_id")
_DECIDED = ("score", "correct", "decided_by", "contested", "n_samples")
_BY_MODEL = [("model_id", "ascending"), ("query_id", "ascending")]


def verdicts_of_texts(evidence: Evidence) -> Results:
    """Contradictions between verdicts and what today's scorers read in the same texts."""
    if not evidence.rows("verdicts"):
        return
    yield from _by_others(evidence.table("verdicts", ["scorer", "scorer_version"]))
    sample = evidence.sampled.table
    if sample is None:
        return
    queries = evidence.table("queries", list(_QUESTION))
    if count := len(evidence.withheld):
        check = f"verdicts on {count:,} questions against texts"
        yield not_run("verdicts", check, "their text is withheld")
    left = {
        name: why
        for name in sorted(set(pc.unique(queries.column("scorer")).to_pylist()) - {NO_RULE})
        if (why := _unread(evidence, name))
    }
    for name, why in left.items():
        yield not_run("verdicts", f"verdicts of {name!r} against texts", why)
    queries = among(queries, "query_id", evidence.withheld, False)
    queries = among(queries, "scorer", pa.array(left, pa.string()), False)
    sample = among(sample, "query_id", queries.column("query_id"))
    sample = among(sample, "model_id", evidence.real)
    if not sample.num_rows:
        return
    try:
        tables = {
            "verdicts": evidence.tables["verdicts"],
            "expected": file_verdicts(queries, sample),
        }
    except RouteyardError as error:
        yield not_run("verdicts", "verdicts against texts", f"scorers cannot run: {error.what}")
        return
    with runner(Path(__file__).with_name("verdicts.sql"), tables) as run:
        known, again = run.table("known"), run.table("again")
    without = [] if evidence.same_code else ["reason"]
    scorers = set(again.column("scorer").to_pylist())
    covers = [*_READ, *([] if without or "code" in scorers else ["reason"])]
    whole = evidence.full or sample.num_rows >= evidence.rows("responses")
    how = "all" if evidence.full else f"a sample of {sample.num_rows:,} answers"
    says = f"what their scorer ({', '.join(sorted(scorers))}) reads in the text ({how}"
    says += ")" if whole else f", seed {evidence.seed})"
    wrong = rows(known, again, _VERDICTS_KEY, without)
    yield from agree("verdicts", "verdicts", says, again.num_rows, wrong, *covers)


def _unread(evidence: Evidence, scorer: str) -> str:
    """Why a scorer does not read its answers again; empty where it does."""
    if scorer == "code":  # of a stranger, in the jail
        return "" if evidence.full else "`--full` runs the programs"
    if scorer in ("bartscore", "meteor"):
        return "they need weights or data"
    return "" if scorer in SCORERS.targets else "that scorer is not installed here"


def _by_others(filed: pa.Table) -> Results:
    """What no computation here can repeat: judges, people, scorers of other versions."""
    counted = filed.group_by(["scorer", "scorer_version"]).aggregate([([], "count_all")])
    for row in counted.sort_by([(name, "ascending") for name in filed.column_names]).to_pylist():
        name, version = row["scorer"], row["scorer_version"]
        of = f"{row['count_all']:,} verdicts of {name!r}"
        if name.startswith(FAMILIES):
            yield believed("verdicts", f"{of}, of a model or a person")
        elif name not in SCORERS.targets:
            yield believed("verdicts", f"{of}, which is not installed here")
        elif version != (today := SCORERS.get(name).version):
            why = f"they are by version {version}; this code has version {today}"
            yield not_run("verdicts", f"{of} against texts", why)


def labels_of_verdicts(evidence: Evidence) -> Results:
    """Contradictions between labels and what the policy makes of the verdicts."""
    labels = evidence.table("labels", [*_LABELS_KEY, *_DECIDED])
    of = labels.num_rows
    why = evidence.lacks("label")
    if not why and not (evidence.has("responses") and evidence.rows("verdicts")):
        if evidence.built and of and not evidence.has("responses", "verdicts"):
            what = "labels have no response and no verdict to follow from"
            yield contradiction("labels", of, of, what, [])
            return
        why = "" if evidence.built or not of else f"{of:,} labels come without verdicts"
    if why:
        yield not_run("labels", "labels against verdicts by the recipe's policy", why)
        return
    stored = among(labels, "model_id", evidence.real)
    injected = of - stored.num_rows
    if injected and "pseudo_specialists" not in evidence.applied:
        yield believed("labels", f"{injected:,} labels of injected models, drawn by a rule")
    responses = evidence.table("responses", [*_LABELS_KEY, "sample", "status"])
    verdicts = ["sample", "scorer", "scorer_version", "outcome", "score", "conflict"]
    expected = decide(
        evidence.table("queries", ["query_id", "task", "scorer"]),
        among(responses, "model_id", evidence.real),
        evidence.table("verdicts", [*_LABELS_KEY, *verdicts]),
        policy=evidence.label,
    )
    if not evidence.built:  # a build makes a label of every pair with a response
        there = stored.select(_LABELS_KEY)
        expected = expected.join(there, list(_LABELS_KEY), join_type="left semi")
    expected = expected.sort_by(_BY_MODEL).select(stored.column_names)
    wrong = rows(stored, expected, _LABELS_KEY)
    says = "what the recipe's policy makes of the verdicts"
    covers = () if injected else _DECIDED
    yield from agree("labels", "labels", says, stored.num_rows, wrong, *covers)


#: Answers beyond which the estimate of wrong labels is only made again with `--full`.
_MOST = 100_000


def errors_of_labels(evidence: Evidence) -> Results:
    """The estimate of wrong labels against answers and labels: made once more."""
    stored, check = evidence.figures("label_errors"), "the estimate of wrong labels"
    why = evidence.lacks("code", "texts") if stored else "the manifest holds none"
    if not why and not evidence.full and evidence.rows("responses") > _MOST:
        why = f"of more than {_MOST:,} answers only `--full` makes it"
    if why:
        if stored or evidence.built:
            yield not_run("figures.label_errors", check, why)
        return
    fresh: dict[str, Any] = label_errors(
        evidence.table("queries", ["query_id", "scorer", "references", "choices"]),
        evidence.table("responses", ["query_id", "model_id", "text"]),
        evidence.table("labels", ["query_id", "model_id", "decided_by", "correct"]),
    )
    names = sorted(stored.keys() | fresh.keys())
    wrong = list(values((name, stored.get(name), fresh.get(name)) for name in names))
    says = "what answers, labels and measured error rates give"
    covers = (f"figures.label_errors.{name}" for name in names)
    yield from agree("figures.label_errors", "figures", says, len(names), wrong, *covers)
