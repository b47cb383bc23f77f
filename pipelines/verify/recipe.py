"""The manifest's copies of what the recipe says, and tables that the recipe decides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

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
    agree,
    among,
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
    wrong = list(values(compared))
    says = "what the recipe says of its sources"
    yield from agree("manifest", "entries", says, len(compared), wrong, kind="consistent")
    stated = _models_of(evidence)
    if not stated.num_rows:
        why = evidence.lacks("pool") or "no model is in both"
        yield not_run("models", "prices and sizes of the recipe", why)
        return
    gone = evidence.table("removals", ["entity", "key"])
    gone = among(gone, "entity", pa.array(["model"])).column("key")
    there = among(evidence.table("models", stated.column_names), "model_id", evidence.real)
    bad, examples = rows(there, among(stated, "model_id", gone, False), ("model_id",))
    strange = sorted({*gone.to_pylist()} - {*stated.column("model_id").to_pylist()})
    examples += [f"{name} was removed, expected a model of the recipe's pool" for name in strange]
    wrong_rows = (bad + len(strange), examples)
    says = "those of the recipe's pool, with their prices, sizes and families"
    yield from agree("models", "models", says, there.num_rows, wrong_rows, kind="consistent")


def _models_of(evidence: Evidence) -> pa.Table:
    """The models of the recipe's pool; none where it cannot be read."""
    try:
        return MODELS.empty() if evidence.pool is None else models_table(evidence.pool)
    except RouteyardError:
        return MODELS.empty()


# The metering audit against the answers: run once more, and compared with the manifest's.

#: Answers beyond which only those of some models are audited without `--full`: findings are about
#: one model each.
_MOST = 400_000
#: Columns of text, which no check reads where no tokens were counted.
_TEXTS = ("text", "logprobs")


def metering_of_answers(evidence: Evidence) -> Results:
    """Contradictions between the metering audit in the manifest and one of the answers."""
    stated = "audit" in evidence.manifest.figures
    if not evidence.built and not stated:
        return
    why = (
        evidence.lacks("collect", "pool", "calls", "texts") if stated else "no findings are stated"
    )
    if why:
        yield not_run("figures.audit", "the metering audit of the answers", why)
        return
    findings = evidence.figures("audit").get("findings")
    if not isinstance(findings, list):
        yield contradiction("figures.audit", 1, 1, "findings are no list", [str(findings)[:60]])
        return
    names = sorted(evidence.real.to_pylist())
    share = max(1, len(names) * _MOST // max(evidence.rows("responses"), 1))
    audited = evidence.some(pa.table({"model_id": names}), share).column("model_id").to_pylist()
    told = {(str(one.get("check")), str(one.get("model_id")), one.get("count"))
            for one in findings if isinstance(one, Mapping)}  # fmt: skip
    told = {key for key in told if key[0] != "canary_drift" and key[1] not in {*names} - {*audited}}
    answers, counted = _answers(evidence, audited)
    fresh = audit(
        answers, evidence.whole("models"), evidence.collect.metering, names=names_of(evidence.pool),
        queries=evidence.table("queries", ["query_id", "prompt"]) if counted else None,
    )  # fmt: skip
    made = {(item.check, item.model_id, item.count) for item in fresh}
    wrong = [f"{_shown(key)} is not listed" for key in sorted(made - told)]
    wrong += [
        f"{_shown(key)} is listed, and the answers have none"
        for key in sorted(told - made, key=str)
    ]
    some = f", of {len(audited)} of {len(names)} models (seed {evidence.seed}; `--full` audits all)"
    says = f"those of {answers.num_rows:,} answers{'' if len(audited) == len(names) else some}"
    covers = ["figures.audit.findings"] if len(audited) == len(names) else []
    of = len(told | made)
    yield from agree("figures.audit", "findings of the metering audit", says, of, wrong, *covers)


def _answers(evidence: Evidence, models: list[str]) -> tuple[pa.Table, bool]:
    """Answers of real models, and whether tokens of any were counted; else without their texts."""
    counts = evidence.table("responses", ["prompt_tokens", "completion_tokens"])
    counted = any(column.null_count < len(column) for column in counts.columns)
    answers = evidence.table("responses", [n for n in NEEDED if counted or n not in _TEXTS])
    for name in _TEXTS:
        if name not in answers.column_names:
            answers = answers.append_column(name, pa.nulls(answers.num_rows, pa.string()))
    return among(answers, "model_id", pa.array(models, pa.string())), counted


def _shown(key: tuple[str, str, Any]) -> str:
    check, model_id, count = key
    return f"{check} of {model_id} ({count} answers)"
