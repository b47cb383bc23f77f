"""Manifest and tables against the recipe; metering audit and curation rules applied once more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from routeyard.pipelines.audit.metering import NEEDED, audit, names_of
from routeyard.pipelines.common.pool import models_table
from routeyard.pipelines.common.sql import Check, Runner, quoted, runner
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.curate.entailment import scorer_equivalence
from routeyard.pipelines.curate.rule import Curated
from routeyard.pipelines.curate.split import split
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
from routeyard.schemas.recipe import CurationRule
from routeyard.schemas.release import SCHEME
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


# Curation rules applied once more: schemes, seen models, injected models, pairs of answers.

#: Rules that make rows of what a release holds → the tables that they read of it beside queries
#: and models. Rules that remove questions or models read what is no longer there.
_AGAIN: Mapping[str, tuple[str, ...]] = {
    "dense_sparse": ("duplicates",),
    "out_of_distribution": ("duplicates",),
    "upstream_split": (),
    "unseen_models": (),
    "pseudo_specialists": ("labels", "responses"),
    "preference": ("labels", "responses", "verdicts"),
}
#: Rule → schemes that it may make, where it cannot be applied again.
_SCHEMES: Mapping[str, tuple[str, ...]] = {
    "dense_sparse": ("dense", "sparse"),
    "out_of_distribution": ("ood:*",),
    "upstream_split": (SCHEME,),
}
#: Tables of which a rule makes all rows.
_OWN = ("entropies", "preferences", "model_splits", "signals")
#: Answers of two models whose pairs are all made again without `--full`, and the questions of
#: which they are where there are more.
_ANSWERS, _QUESTIONS = 4_000, 200
#: What decides that two answers mean the same → whether this machine can be asked.
_DECIDERS: Mapping[str, Callable[[], Any]] = {
    "equality": lambda: None,
    "equivalence": scorer_equivalence,
}


def rules_again(evidence: Evidence) -> Results:
    """Contradictions between what rules and split of the recipe make, and what is there."""
    if not evidence.built:
        return
    if evidence.curation is None:
        yield not_run("splits", "rules and split applied again", evidence.unread("curate"))
        return
    known: list[str] = []
    for place, rule in enumerate(evidence.curation):
        if rule.rule not in _AGAIN:
            why = "it read questions, models or vectors that a release does not hold"
            yield not_run("curate", f"the rule {rule.rule!r} applied again", why)
            continue
        scheme = rule.parameters.get("scheme")
        known += [str(scheme)] if scheme else _SCHEMES.get(rule.rule, ())
        why = _not_again(evidence, place)
        if why:
            yield not_run("curate", f"the rule {rule.rule!r} applied again", why)
            continue
        try:
            yield from _applied(evidence, place, rule)
        except RouteyardError as error:
            yield contradiction(
                "curate", 1, 1, "rules cannot be applied", [f"{rule.rule}: {error.what}"]
            )
    yield from _splits(evidence, known)


def _not_again(evidence: Evidence, place: int) -> str:
    """Why a rule cannot be applied to what the release holds; empty where it can."""
    assert evidence.curation is not None
    if why := evidence.lacks("code", "texts"):
        return why
    later = {f"curate.{rule.rule}" for rule in evidence.curation[place + 1 :]}
    removed = evidence.table("removals", ["stage", "entity"]).to_pylist()
    if later & {row["stage"] for row in removed if row["entity"] in ("query", "model")}:
        return "later rules removed questions or models that it read"
    rule = evidence.curation[place]
    backend = rule.parameters.get("backend", "equivalence")
    if rule.rule == "preference" and backend not in _DECIDERS:
        return "what decided that answers mean the same is a model"
    return ""


def _applied(evidence: Evidence, place: int, rule: CurationRule) -> Results:
    tables, whole = _read(evidence, place, rule)
    parameters = dict(rule.parameters)
    if rule.rule == "preference":
        parameters["entailment"] = _DECIDERS[str(parameters.get("backend", "equivalence"))]()
        parameters["self_assessment"] = False
    made: Curated = RULES.get(rule.rule).apply(tables, **parameters)
    says = f"what the recipe's rule {rule.rule!r} makes"
    says += "" if whole else f" (a sample of {tables['queries'].num_rows:,} questions)"
    sound = True
    for name, fresh in {**made.added, **({"removals": made.removed} if whole else {})}.items():
        if name == "splits":
            evidence.schemes |= set(fresh.column("scheme").to_pylist())
        stored, fresh = _own(evidence, name, fresh, tables, rule.rule)
        contract = CONTRACTS[name]
        fresh = contract.conform(fresh, where=name)
        without = ["self_assessment"] if name == "signals" else []
        wrong = rows(stored, fresh, contract.key, without)
        covers = [column for column in fresh.column_names if column not in without]
        sound = sound and not wrong[0]
        kept = covers if name in _OWN else ()
        yield from agree(name, "rows", says, fresh.num_rows, wrong, *kept)
    if whole:
        figures = _figures(evidence, place)
        made_figures = json.loads(json.dumps(made.figures))
        differ = list(values((n, figures.get(n), item) for n, item in made_figures.items()))
        sound = sound and not differ
        yield from agree("figures.curate", "figures", says, len(made_figures), differ)
    if sound:
        evidence.applied.add(rule.rule)


def _read(evidence: Evidence, place: int, rule: CurationRule) -> tuple[dict[str, pa.Table], bool]:
    """The tables as the rule saw them, and whether that is all of them."""
    assert evidence.curation is not None
    names = ("queries", "models", *_AGAIN[rule.rule])
    earlier = [item.rule for item in evidence.curation[:place]]
    queries = evidence.whole("queries")
    wanted = [str(rule.parameters.get(side)) for side in ("strong", "weak")]
    answers = len(wanted) * evidence.samples * queries.num_rows
    if rule.rule == "preference" and answers > _ANSWERS:
        queries = evidence.some(queries, _QUESTIONS)
    whole = queries.num_rows == evidence.rows("queries")
    tables = {"queries": queries}
    for name in names[1:]:
        if name == "duplicates" and ("dedup" not in earlier or not evidence.rows(name)):
            continue
        table = evidence.whole(name)
        if "model_id" in table.column_names and "pseudo_specialists" not in earlier:
            table = among(table, "model_id", evidence.real)
        if rule.rule == "preference" and name != "models":
            table = among(table, "model_id", pa.array(wanted))
            table = among(table, "query_id", queries.column("query_id"))
        tables[name] = table
    return tables, whole


def _own(
    evidence: Evidence, name: str, fresh: pa.Table, tables: Mapping[str, pa.Table], rule: str
) -> tuple[pa.Table, pa.Table]:
    """Rows of a table that the rule is to have made: those stored, and those made now."""
    stored = evidence.whole(name)
    if name in tables:  # the rule extends it: what it was given is left out of both
        before = tables[name].column("model_id")
        return among(stored, "model_id", before, False), among(fresh, "model_id", before, False)
    if name == "removals":
        return among(stored, "stage", pa.array([f"curate.{rule}"])), fresh
    if "scheme" in stored.column_names:
        return among(stored, "scheme", fresh.column("scheme")), fresh
    return among(stored, "query_id", tables["queries"].column("query_id")), fresh


def _figures(evidence: Evidence, place: int) -> Mapping[str, Any]:
    rules: Any = evidence.figures("curate").get("rules")
    rule = rules[place] if isinstance(rules, list) and place < len(rules) else {}
    figures = rule.get("figures") if isinstance(rule, Mapping) else None
    return figures if isinstance(figures, Mapping) else {}


def _splits(evidence: Evidence, made: Sequence[str]) -> Results:
    """The recipe's own scheme, and schemes that nothing makes."""
    stored = evidence.whole("splits")
    schemes = sorted(set(stored.column("scheme").to_pylist()))
    settings = evidence.split
    assert evidence.curation is not None
    if settings is None:
        check = f"{len(schemes)} schemes ({', '.join(schemes)[:200]}) made again"
        yield not_run("splits", check, evidence.unread("split"))
        return
    plugged = any(rule.rule not in RULES.builtin for rule in evidence.curation)
    unknown = [
        name
        for name in (*schemes, *_model_schemes(evidence))
        if name != settings.scheme and not any(fnmatchcase(name, item) for item in made)
    ]
    if unknown and not plugged:
        strange = [
            f"{name!r}, expected {settings.scheme!r} or one that a rule makes" for name in unknown
        ]
        yield contradiction("splits", len(unknown), len(schemes), "schemes are nobody's", strange)
    if settings.scheme not in schemes or any(fnmatchcase(settings.scheme, item) for item in made):
        return
    if why := evidence.lacks("texts", "code"):
        yield not_run("splits", f"scheme {settings.scheme!r} made again", why)
        return
    own = among(stored, "scheme", pa.array([settings.scheme]))
    duplicates = evidence.whole("duplicates") if evidence.rows("duplicates") else None
    try:
        made_again = split(evidence.whole("queries"), duplicates, **settings.model_dump())
    except RouteyardError as error:
        yield contradiction("splits", 1, 1, "schemes cannot be made again", [error.what])
        return
    says = f"where the recipe's split puts them (scheme {settings.scheme!r})"
    covers = [] if {*schemes} - evidence.schemes - {settings.scheme} else ["split"]
    wrong = rows(own, made_again, ("query_id",))
    yield from agree("splits", "questions", says, made_again.num_rows, wrong, *covers)


def _model_schemes(evidence: Evidence) -> list[str]:
    usual = {
        str(rule.parameters.get("scheme", "unseen_models"))
        for rule in evidence.curation or ()
        if rule.rule == "unseen_models"
    }
    there = evidence.table("model_splits", ["scheme"]).column("scheme").to_pylist()
    # Without such a rule a check of the release says that no rule makes the table.
    return sorted(set(there) - usual) if usual else []
