"""The manifest's copies of what the recipe says, and tables that the recipe decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.audit.metering import NEEDED, audit, names_of
from routeyard.pipelines.common.pool import models_table
from routeyard.pipelines.common.sql import Runner, checks, runner
from routeyard.pipelines.verify.evidence import (
    SECTIONS,
    Evidence,
    Results,
    consistent,
    contradiction,
    not_run,
    proved,
    rows,
    values,
)
from routeyard.schemas import CONTRACTS, MODELS
from routeyard.schemas.errors import RouteyardError
from routeyard.schemas.release import WITHHELD

#: What a manifest says of a source as the recipe does.
_PASSED_ON = ("license", "url", "redistribute_text")


def recipe_validates(evidence: Evidence) -> Results:
    """Keys of the recipe that no recipe has: checks that read them cannot be made."""
    lost = [name for name in SECTIONS if name not in evidence.recipe]
    if len(lost) == len(SECTIONS) and not (evidence.manifest.stages or evidence.manifest.figures):
        check = "ids, prompts, requests, rules, split, prices and sources against the recipe"
        yield not_run("recipe", check, "the manifest holds no recipe and no stages of a build")
        return
    if lost:
        says = [f"`{name}` is missing, expected the section of a build" for name in lost]
        yield contradiction("recipe", len(lost), len(SECTIONS), "sections are not there", says)
        return
    wrong = [says for _, says, other in evidence.faults if not other]
    if wrong:
        what = "keys do not validate, and the checks that read them are not made"
        yield contradiction("recipe", len(wrong), len(wrong), what, wrong)
    elif evidence.faults:
        why = f"{evidence.faults[0][1]}; {evidence.other_code}"
        yield not_run("recipe", "whether the recipe is one", why)
    else:
        yield consistent("recipe", "every key is one of a recipe and has a value that it may have")


_CHECKS = Path(__file__).with_name("checks")


def stated_of_tables(evidence: Evidence) -> Results:
    """Contradictions between tables and what manifest and recipe state of them (`checks/`)."""
    figures = evidence.manifest.figures
    if not figures and evidence.built:
        yield not_run("figures", "counts of the stages", "the manifest holds none")
    if not figures and not evidence.built:
        return
    conditions = {
        "built": evidence.built,
        "same_code": evidence.same_code,
        "label": evidence.label is not None,
    }
    there = {*evidence.tables, *(name for name, holds in conditions.items() if holds)}
    values = {"samples": evidence.samples, "withheld": WITHHELD}
    empty = {name: contract.empty() for name, contract in CONTRACTS.items()}
    with runner(Path(__file__).with_name("exact.sql"), {**empty, **evidence.tables}) as run:
        _state(run, evidence)
        for about in ("figures", "manifest", "verdicts"):
            if about == "figures" and not figures:
                continue
            broken = False
            for check in checks(_CHECKS / about):
                if not there.issuperset(check.needs):
                    continue
                bad, examples = check.broken(run, **values)
                if bad:
                    broken = True
                    what = f"rows break the rule {check.says!r}"
                    yield contradiction(about, bad, bad, what, examples)
            if about == "figures" and not broken:
                says = "what stages counted, kept and removed adds up to the tables"
                yield consistent(about, says)
        exact = run.table("exact").column("name").to_pylist() if figures else []
    if exact:
        says = f"{', '.join(exact)}: rows of the tables, and of removals"
        yield proved("figures", says, *(f"figures.{name}" for name in exact))


def _state(run: Runner, evidence: Evidence) -> None:
    """Tables of what the manifest states (`manifest`) and of what is there (`held`, `present`)."""
    integers = "json_type(x) IN ('BIGINT', 'UBIGINT')"
    for sql in (
        f"CREATE MACRO whole(x) AS CASE WHEN {integers} THEN x::BIGINT END",
        "CREATE TABLE manifest AS SELECT $told::JSON AS told",
        "CREATE TABLE held AS SELECT unnest($names) AS name, unnest($rows) AS rows",
        "CREATE VIEW present AS SELECT name AS stage FROM held",
    ):
        params = {
            "told": evidence.manifest.model_dump_json(),
            "names": list(evidence.tables),
            "rows": [evidence.rows(name) for name in evidence.tables],
        }
        run.connection.execute(sql, {k: v for k, v in params.items() if f"${k}" in sql} or None)


def manifest_of_recipe(evidence: Evidence) -> Results:
    """Contradictions between the manifest's copies of what the recipe says, or tables, and it."""
    recipe = evidence.recipe
    if not evidence.manifest.figures and not evidence.built:
        return
    wrong: list[str] = []
    if isinstance(recipe.get("release"), Mapping):
        waived = [(w.get("gate"), w.get("reason")) for w in recipe["release"].get("waivers") or ()]
        listed = [(waiver.gate, waiver.reason) for waiver in evidence.manifest.waivers]
        if waived != listed:
            wrong.append(f"waivers {listed!r:.80}, expected {waived!r:.80} of the recipe")
    for check in (_silent, _listed, _rules):
        wrong += check(evidence)
    if wrong:
        yield contradiction("manifest", len(wrong), len(wrong), "entries differ", wrong)
    if evidence.pool is None:
        if evidence.built:
            yield not_run("models", "prices and sizes of the recipe", evidence.unread("pool"))
        return
    yield from _recipe_models(evidence)


#: Stages of a build that always have figures.
_STAGES = ("ingest", "pool", "collect", "label", "curate", "audit", "certify")
#: Tables that every build writes.
_TABLES = ("queries", "models", "responses", "verdicts", "labels", "splits")


def _silent(evidence: Evidence) -> Iterator[str]:
    """Tables, and stages of this version of the code without figures, that a build has."""
    if not evidence.built:
        return
    for table in _TABLES:
        if table not in evidence.manifest.tables:
            yield f"the table {table!r} is not there, expected that of a build"
    if evidence.same_code:
        for stage in _STAGES:
            if not evidence.figures(stage):
                yield f"the stage {stage!r} has no figures, expected those of a build"


def _recipe_models(evidence: Evidence) -> Results:
    """Contradictions between `models` and the recipe's pool without what curation removed."""
    assert evidence.pool is not None
    try:
        stated = models_table(evidence.pool)
    except RouteyardError:
        stated = MODELS.empty()
    if not stated.num_rows:
        yield not_run("models", "prices and sizes of the recipe", "no model is in both")
        return
    gone = evidence.table("removals", ["entity", "key"])
    gone = gone.filter(pc.equal(gone.column("entity"), "model")).column("key")
    there = evidence.table("models", stated.column_names)
    there = there.filter(pc.is_in(there.column("model_id"), value_set=evidence.real))
    removed = pc.is_in(stated.column("model_id"), value_set=gone.combine_chunks())
    bad, examples = rows(there, stated.filter(pc.invert(removed)), ("model_id",))
    strange = sorted({*gone.to_pylist()} - {*stated.column("model_id").to_pylist()})
    examples += [f"{name} was removed, expected a model of the recipe's pool" for name in strange]
    if bad := bad + len(strange):
        what = "models differ from the recipe's pool"
        yield contradiction("models", bad, max(bad, there.num_rows), what, examples)
    else:
        yield consistent("models", "prices, sizes and families are those of the recipe's pool")


def _listed(evidence: Evidence) -> Iterator[str]:
    """Sources of the manifest against those of the recipe, and against what was ingested."""
    if not evidence.built:
        return
    listed: dict[Any, Mapping[str, Any]]
    listed = {row.get("source"): row for row in evidence.manifest.sources}
    names = [item.get("name") for item in evidence.recipe["sources"]]
    for name in sorted(set(names) ^ set(listed), key=str):
        yield f"source {name!r} is not in both, expected the recipe's sources in the manifest"
    for name, source in evidence.sources.items():
        if row := listed.get(name):
            stated = source.model_dump(mode="json")
            yield from values(
                (f"{key} of source {name!r}", row.get(key), stated[key]) for key in _PASSED_ON
            )
    figures = evidence.figures("ingest")
    if "sources" in figures:
        yield from values([("sources", figures["sources"], list(evidence.manifest.sources))])
    counts = [row.get("queries") for row in evidence.manifest.sources]
    if isinstance(figures.get("queries"), int) and all(isinstance(count, int) for count in counts):
        yield from values([("questions of all sources", figures["queries"], sum(counts))])


def _rules(evidence: Evidence) -> Iterator[str]:
    """Rules that the manifest says were applied against those of the recipe."""
    listed = evidence.figures("curate").get("rules")
    if evidence.curation is None or not isinstance(listed, list):
        return
    applied = [entry if isinstance(entry, Mapping) else {} for entry in listed]
    names = [rule.rule for rule in evidence.curation]
    yield from values([("rules applied", [entry.get("rule") for entry in applied], names)])
    for rule, item in zip(evidence.curation, applied, strict=False):
        own = item.get("parameters") or {}
        yield from values(
            (f"{name} of the rule {rule.rule!r}", own.get(name), value)
            for name, value in rule.parameters.items()
        )


# The metering audit against the answers: run once more, and compared with the manifest's.

#: Answers beyond which only those of some models are audited without `--full`: findings are about
#: one model each.
_MOST = 400_000
#: Columns of text, which no check reads where no tokens were counted.
_TEXTS = ("text", "logprobs")


def metering_of_answers(evidence: Evidence) -> Results:
    """Contradictions between the metering audit in the manifest and one of the answers."""
    if not evidence.built and "audit" not in evidence.manifest.figures:
        return
    if why := _cannot_be_made(evidence):
        yield not_run("figures.audit", "the metering audit of the answers", why)
        return
    assert evidence.collect is not None
    assert evidence.pool is not None
    findings = evidence.figures("audit").get("findings")
    if not isinstance(findings, list):
        yield contradiction("figures.audit", 1, 1, "findings are no list", [str(findings)[:60]])
        return
    stored = {_id(row): row for row in findings}
    stored = {key: row for key, row in stored.items() if key[0] != "canary_drift"}
    audited = _metering_models(evidence)
    others = set(evidence.real.to_pylist()) - set(audited)
    stored = {key: row for key, row in stored.items() if key[1] not in others}
    answers, counted = _answers(evidence, audited)
    queries = evidence.table("queries", ["query_id", "prompt"]) if counted else None
    fresh = audit(
        answers, evidence.table("models", _MODEL), evidence.collect.metering,
        queries=queries, names=names_of(evidence.pool),
    )  # fmt: skip
    expected = {(item.check, item.model_id, item.count): {"says": item.says} for item in fresh}
    wrong = [f"{_shown(key)} is not listed" for key in expected if key not in stored]
    wrong += [
        f"{_shown(key)} is listed, and the answers have none"
        for key in stored
        if key not in expected
    ]
    if wrong:
        what = "findings of the metering audit differ from those of the answers"
        yield contradiction("figures.audit", len(wrong), len({**stored, **expected}), what, wrong)
    else:
        says = f"{len(expected):,} findings follow from {answers.num_rows:,} answers"
        if others:
            some = f"{len(audited)} of {len(evidence.real)} models, seed {evidence.seed}"
            says += f" (a sample: {some}; `--full` audits all)"
        yield proved("figures.audit", says, *([] if others else ["figures.audit.findings"]))


def _cannot_be_made(evidence: Evidence) -> str:
    """Why the audit cannot be made again from what the release holds; empty where it can."""
    if "audit" not in evidence.manifest.figures:
        return "the manifest states no findings of one"
    if evidence.collect is None or evidence.pool is None:
        return evidence.unread("collect" if evidence.collect is None else "pool")
    if evidence.has("steps"):
        return "the audit of an agent's calls, some of which are left out"
    return "the audit read texts that are withheld" if len(evidence.withheld) else ""


_MODEL = (
    "model_id",
    "price_in",
    "price_out",
    "price_date",
    "price_up_to",
    "kind",
    "provider",
    "price_cache_read",
    "price_cache_write",
    "price_in_beyond",
    "price_out_beyond",
    "price_cache_read_beyond",
    "price_cache_write_beyond",
)


def _metering_models(evidence: Evidence) -> list[str]:
    """Real models whose answers are audited: all, or as many as have so many answers, drawn."""
    names: list[str] = evidence.real.to_pylist()
    if evidence.full or evidence.rows("responses") <= _MOST:
        return names
    drawn = np.random.Generator(np.random.PCG64(evidence.seed)).permutation(sorted(names))
    share = len(names) * _MOST // evidence.rows("responses")
    return [str(name) for name in drawn[: max(1, share)]]


def _answers(evidence: Evidence, models: list[str]) -> tuple[pa.Table, bool]:
    """Answers of real models, and whether tokens of any were counted; else without their texts."""
    counts = evidence.table("responses", ["prompt_tokens", "completion_tokens"])
    counted = any(column.null_count < len(column) for column in counts.columns)
    answers = evidence.table("responses", [n for n in NEEDED if counted or n not in _TEXTS])
    for name in _TEXTS:
        if name not in answers.column_names:
            answers = answers.append_column(name, pa.nulls(answers.num_rows, pa.string()))
    there = pc.is_in(answers.column("model_id"), value_set=pa.array(models, pa.string()))
    return answers.filter(there), counted


def _id(row: Any) -> tuple[str, str, int]:
    result = row if isinstance(row, Mapping) else {}
    count = result.get("count")
    return (
        str(result.get("check")),
        str(result.get("model_id")),
        count if isinstance(count, int) else -1,
    )


def _shown(key: tuple[str, str, int]) -> str:
    check, model_id, count = key
    return f"{check} of {model_id} ({count:,} answers)"
