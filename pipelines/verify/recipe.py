"""The manifest's copies of what the recipe says, and tables that the recipe decides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.audit.metering import NEEDED, audit, names_of
from routeyard.pipelines.common.pool import models_table
from routeyard.pipelines.common.sql import Check, Runner, quoted, runner
from routeyard.pipelines.release.checks import (
    SAME_CODE,
    named_files,
    release_checks,
    rules,
    stated,
    stated_text,
)
from routeyard.pipelines.verify.evidence import (
    SECTIONS,
    Evidence,
    Kind,
    ProofClaim,
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
from routeyard.schemas.text import literal

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


#: Checks of a release that are made here: contracts, references, derived tables and the card have
#: been (`database.check`).
_MADE_HERE = ("rules", "verdicts", "labels", "splits", "manifest", "figures")


def checks_of_release(evidence: Evidence) -> Results:
    """Rows that break the checks of a release (`release/checks.py`), and what the others show."""
    if not evidence.manifest.figures and evidence.built:
        yield not_run("figures", "counts of the stages", "the manifest holds none")
    if evidence.collect is None and evidence.built and evidence.rows("responses"):
        rules_ = "rules of answers that this code asked for, or that were recorded"
        yield not_run("responses", rules_, evidence.unread("collect"))
    there = {*evidence.tables, *([SAME_CODE] if evidence.same_code else [])}
    with runner(Path(__file__).with_name("exact.sql"), threads=2) as run:
        files = (f"data/{name}.parquet" for name in evidence.tables)
        paths = {file: literal(str(evidence.release / file)) for file in files}
        for sql in (*named_files(paths), *stated(quoted(stated_text(evidence.manifest)), "''")):
            run.connection.execute(sql)
        for origin in _MADE_HERE:
            unbroken: dict[tuple[Kind, str], list[Check]] = {}
            for check in release_checks(there, origin):
                about = origin if origin in ("manifest", "figures") else check.needs[0]
                bad, examples = check.broken(run)
                if bad:
                    what, of = f"rows break the rule {check.says!r}", evidence.rows(about)
                    yield contradiction(about, bad, max(bad, of), what, examples)
                else:
                    unbroken.setdefault((cast("Kind", check.kind), about), []).append(check)
            for (kind, about), checks in unbroken.items():
                yield from _unbroken(run, kind, about, checks, evidence.rows(about))
        if not evidence.manifest.figures:
            return
        run.give(**{n: c.empty() for n, c in CONTRACTS.items() if n not in evidence.tables})
        exact = run.table("exact").column("name").to_pylist()
    if exact:
        says = f"{', '.join(exact)}: rows of the tables, and of removals"
        yield proved("figures", says, *(f"figures.{name}" for name in exact))


def _unbroken(run: Runner, kind: Kind, about: str, checks: list[Check], of: int) -> Results:
    """What checks without a row that breaks them show of a table; of no row they say nothing."""
    of_name = {name: (group, group["rules"][name]) for group, name in rules()}
    (holds,) = run.connection.sql("FROM stated.recipe").to_arrow_table().to_pylist()
    says, covers = [], []
    for check in checks:
        group, rule = of_name.get(check.says, ({}, {}))
        if not holds.get(rule.get("when"), True):
            continue
        speaks = of
        if rule:
            where = f"WHERE {group['where']}" if "where" in group else ""
            counts = f"count(*) FILTER ({rule.get('of', 'true')}), count({rule.get('proves', '*')})"
            sql = f"SELECT {counts} FROM {group['from']} {where}"
            ((speaks, valued),) = run.connection.execute(sql).fetchall()
            if speaks and speaks >= valued and "proves" in rule:
                covers.append(f"{about}.{rule['proves']}")
        if not speaks and about not in ("manifest", "figures"):
            continue
        says.append(check.says if speaks >= of else f"{check.says} ({speaks:,} of them)")
    if says:
        rows_ = f"{of:,} rows: " if of else ""
        yield ProofClaim(kind, about, rows_ + "; ".join(says), tuple(covers))


def manifest_of_recipe(evidence: Evidence) -> Results:
    """Contradictions between what manifest and tables say of sources and models, and the recipe."""
    if not evidence.built:
        return
    listed = {row.get("source"): row for row in evidence.manifest.sources}
    compared = [
        (f"{key} of source {name!r}", listed[name].get(key), getattr(source, key))
        for name, source in evidence.sources.items()
        if name in listed
        for key in _PASSED_ON
    ]
    if wrong := list(values(compared)):
        yield contradiction("manifest", len(wrong), len(compared), "entries differ", wrong)
    if evidence.pool is None:
        yield not_run("models", "prices and sizes of the recipe", evidence.unread("pool"))
        return
    yield from _recipe_models(evidence)


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
        answers, evidence.whole("models"), evidence.collect.metering,
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
