"""Certificate, gates and the release itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeyard.flows.tasks.collect import kept_steps
from routeyard.flows.tasks.curate import curated_tables
from routeyard.flows.workspace import (
    BuildContext,
    StageResult,
    StageWork,
    of_models,
    read,
    read_shards,
)
from routeyard.pipelines.audit.answers import AuditFinding
from routeyard.pipelines.common.errors import GateFailed
from routeyard.pipelines.common.staging import write_json
from routeyard.schemas.recipe import Collect, CurationRule, Pool, Recipe, Release, Split

if TYPE_CHECKING:
    from routeyard.pipelines.audit.answers import AuditCheck
    from routeyard.pipelines.common.matrix import Core

# Defects of what is to be released: findings of the audit, questions on two sides of a split.


def upstream_schemes(curate: Sequence[CurationRule]) -> set[str]:
    """Schemes that a source published: what leaks there is reported and stops nothing."""
    rules = (rule for rule in curate if rule.rule == "upstream_split")
    return {str(rule.parameters.get("scheme", "upstream")) for rule in rules}


def defects_of(
    tables: Mapping[str, Any],
    split: Split,
    curate: Sequence[CurationRule],
    own: Sequence[AuditCheck] = (),
) -> list[AuditFinding]:
    """Findings of the audit over the tables of a release, and leaks of each of its schemes.

    Answers of injected models were stated by the recipe, and are not looked at.
    """
    import pyarrow.compute as pc

    from routeyard.flows.audits import free_arms, recording_of
    from routeyard.pipelines.audit.checks import audit_recording

    models = tables["models"]
    real = models.filter(pc.equal(models.column("kind"), "real"))
    real_tables = {**tables, "splits": tables["splits"].slice(0, 0)}
    for name in ("labels", "responses"):
        real_tables[name] = of_models(tables[name], real)
    result = audit_recording(recording_of(real_tables), free=free_arms(models), own=own)
    return [*leaks_of(tables, split.keep_together, upstream_schemes(curate)), *result.findings]


def leaks_of(tables: Mapping[str, Any], together: Any, upstream: set[str]) -> list[AuditFinding]:
    """One finding for each scheme in which a test question is also in train or validation."""
    from routeyard.pipelines.curate.split import left_apart, one_question

    item = one_question(tables["queries"], tables.get("duplicates"), together)
    return [
        AuditFinding(
            kind="leak",
            about=f"split {scheme!r}" + (", as its source published it" * (scheme in upstream)),
            says=f"{leaked:,} of {total:,} test questions are also in train or validation, such "
            f"as {some[0]}",
            count=leaked,
            rows=tuple({"question": query} for query in some),
            effect="a router has seen the answers to these questions",
            severity="note" if scheme in upstream else "grave",
            key="sources[].fields.group, split.keep_together",
        )
        for scheme, leaked, total, some in left_apart(tables["splits"], item)
    ]


#: Folder beside a recipe whose checks are gates of its build.
CHECKS = "checks"
#: Computed for curation; a release holds them only on request (`release.include_embeddings`).
_ADD_ONS = frozenset({"embeddings"})


def audit_metering(
    context: BuildContext,
    *,
    pool: Pool,
    collect: Collect,
    release: Release,
    split: Split,
    curate: Sequence[CurationRule],
    curated: StageResult,
    responses: StageResult,
) -> StageWork:
    """Audits of what is to be released (metering, rows, splits), and what the recipe waives."""
    import pyarrow.compute as pc

    from routeyard.pipelines.audit.metering import apply_waivers, as_answers, audit, names_of
    from routeyard.pipelines.audit.own import checks_in

    names = names_of(pool)
    canaries = _canaries(context, collect)
    own = checks_in(folder) if any((folder := context.base / CHECKS).glob("*.sql")) else []

    def make(folder: Path) -> Mapping[str, Any]:
        tables = curated_tables(curated)
        # Answers of injected models were stated by the recipe; nobody metered them.
        real = tables["models"].filter(pc.equal(tables["models"].column("kind"), "real"))
        answers = of_models(tables["responses"], real)
        if collect.agent is not None:
            # What was metered are calls, not trajectories.
            steps = read(responses, "steps")
            tables, answers = {**tables, "steps": steps}, as_answers(steps)
        queries = tables["queries"]
        result = audit(
            answers, tables["models"], collect.metering, queries=queries, canaries=canaries,
            names=names,
        )  # fmt: skip
        unresolved, waived = apply_waivers(result, release.waivers)
        findings = [asdict(finding) for finding in result]
        write_json(folder / "findings.json", findings)
        defects = defects_of(tables, split, curate, own)
        stopping, let = apply_waivers(defects, release.waivers)
        write_json(folder / "defects.json", [asdict(defect) for defect in defects])
        return {
            "findings": findings,
            "standing": [f"{item.model_id}: {item.count:,} {item.says}" for item in unresolved],
            "waived": [f"{item.model_id}: {item.count:,} {item.says}" for item, _ in waived],
            "defects": [f"{defect.gate}: {defect.about}: {defect.says}" for defect in defects],
            "grave": [f"{item.gate}: {item.about}: {item.says}" for item in stopping if item.stops],
            "defects_waived": [f"{item.gate}: {item.about}: {item.says}" for item, _ in let],
        }

    parameters = {
        "metering": collect.metering.model_dump(mode="json"),
        "waivers": [waiver.model_dump() for waiver in release.waivers],
        "names": names,
        "canaries": [] if canaries is None else canaries.to_pylist(),
        "keep_together": split.keep_together,
        "upstream": sorted(upstream_schemes(curate)),
    }
    if own:
        parameters["checks"] = {item.kind: item.sql for item in own}
    inputs = {"curated": curated.fingerprint}
    if collect.agent is not None:
        inputs["steps"] = responses.fingerprint
    return StageWork(parameters, inputs, make)


def lines_of_audit(figures: Mapping[str, Any]) -> list[str]:
    """A line of counts, and one for each defect that the recipe does not waive."""
    defects, waived = figures["defects"], set(figures["defects_waived"])
    lines = [
        f"metering: {_findings(figures['findings'], figures['waived'])}; "
        f"results: {_findings(defects, waived)}"
    ]
    return lines + [defect for defect in defects if defect not in waived]


def _findings(sized: Sized, waived: Sized) -> str:
    if not sized:
        return "no finding"
    count = f"{len(sized):,} finding{'s' if len(sized) > 1 else ''}"
    return f"{count}, {len(waived):,} waived" if waived else count


def _canaries(context: BuildContext, collect: Collect) -> Any:
    """Canary answers of the workspace's last run; null where the recipe asks for none."""
    from routeyard.flows.ledgers import open_ledger
    from routeyard.pipelines.collect.collect import canary_answers

    if not collect.canary or collect.provider == "recorded":
        return None
    with open_ledger(context.root) as ledger:
        return canary_answers(ledger)


def check_metering(context: BuildContext, audited: StageResult) -> None:
    """Stop at findings that the recipe does not waive.

    Raises:
        GateFailed: names the first findings and how to waive them.
    """
    for says, key, file, mend, gate in (
        ("the audit", "grave", "defects", "`routeyard audit` names rows and recipe keys",
         "'audit:<kind>'"),
        ("the metering audit", "standing", "findings",
         "`routeyard audit WORKSPACE --recipe FILE` names the answers", "metering"),
    ):  # fmt: skip
        figure: list[str] = audited.figures[key]
        if not figure:
            continue
        more = f"; and {len(figure) - 5} more" if len(figure) > 5 else ""
        failed = GateFailed(
            f"{says} stops this release: {'; '.join(figure[:5])}{more}",
            where=f"benchmark {context.benchmark}; {audited.folder}/{file}.json",
            next_step=f"mend the cause ({mend}), or waive it by name in the recipe: "
            f"release.waivers: [{{gate: {gate}, reason: …}}]; the card will print the reason",
        )
        failed.findings = tuple(figure)
        raise failed


def certify_routability(
    context: BuildContext, *, release: Release, curated: StageResult, embeddings: StageResult | None
) -> StageWork:
    """Routability certificate over the curated tables.

    Reference routers read the questions through the embeddings that the release will have; where
    only curation needs them, through `tfidf`, as an evaluation of the release does.
    """
    from routeyard.pipelines.common.matrix import from_tables
    from routeyard.pipelines.evaluate.certificate import REFERENCE, certify
    from routeyard.pipelines.routers import ROUTERS

    own = release.include_embeddings and embeddings is not None

    def make(folder: Path) -> Mapping[str, Any]:
        tables = curated_tables(curated)
        core = from_tables(
            tables["queries"],
            tables["models"],
            tables["labels"],
            tables["responses"],
            read(embeddings, "embeddings") if embeddings is not None and own else None,
            tables["splits"],
            tables.get("duplicates"),
            verdicts=tables["verdicts"],
        )
        if embeddings is not None and not own:
            core = _with_tfidf(core)
        certificate = certify(core).to_json()
        write_json(folder / "certificate.json", certificate)
        return {"verdict": certificate["verdict"], "certificate": certificate}

    inputs = {"curated": curated.fingerprint}
    if embeddings is not None and own:
        inputs["embeddings"] = embeddings.fingerprint
    words = {} if embeddings is None or own else {"encoder": "tfidf"}
    return StageWork(words, inputs, make, ROUTERS.modules(REFERENCE))


def _with_tfidf(core: Core) -> Core:
    """The core with vectors of the questions' words, learned from the default scheme's train
    questions; without a split all may shape the space."""
    import numpy as np

    from routeyard.pipelines.common.encoders import NAME, tfidf
    from routeyard.pipelines.evaluate.experiment import default_scheme

    train = np.ones(core.n_queries, dtype=bool)
    if core.splits:
        train = core.splits[default_scheme(core)] == "train"
    return replace(core, embeddings=tfidf(core.questions, train), encoder=NAME)


def write_benchmark(
    context: BuildContext, *, recipe: Recipe, stages: Mapping[str, StageResult]
) -> dict[str, Any]:
    """Path, status and fingerprint of the release: tables, database, card, manifest, written whole.

    Args:
        stages: Every finished stage by its name; the manifest keeps their fingerprints.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from routeyard.datacards.card import render
    from routeyard.datacards.charts import can_draw
    from routeyard.datacards.files import render as render_files
    from routeyard.pipelines.ingest.images import images_table
    from routeyard.pipelines.label.error_rates import label_errors
    from routeyard.pipelines.release.build import write_release

    tables = {k: v for k, v in curated_tables(stages["curate"]).items() if k not in _ADD_ONS}
    if recipe.release.include_embeddings:
        vectors, ids = read(stages["embed"], "embeddings"), tables["queries"].column("query_id")
        tables["embeddings"] = vectors.filter(pc.is_in(vectors.column("query_id"), ids))
    if recipe.hidden_states is not None:
        tables["hidden_states"] = _in_parts(stages["hidden_states"], "hidden_states")
    if recipe.collect.agent is not None:
        tables["steps"] = kept_steps(read(stages["collect"], "steps"), tables["responses"])
    sources = stages["ingest"].figures["sources"]
    closed = [source["source"] for source in sources if source.get("redistribute_text") is False]
    mask = pc.invert(pc.is_in(tables["queries"].column("source"), pa.array(closed, pa.string())))
    if (shown := images_table(tables["queries"].filter(mask))).num_rows:
        tables["images"] = shown
    if recipe.release.zoo is not None:
        check_zoo(recipe.release.zoo, tables)
    released = write_release(
        tables,
        recipe=recipe.model_dump(mode="json"),
        root=context.root / "releases",
        render_card=render,
        render_files=partial(render_files, draw=can_draw()),
        figures={
            **{name: _short(done.figures) for name, done in stages.items()},
            "label_errors": label_errors(
                *(tables[name] for name in ("queries", "responses", "labels"))
            ),
        },
        fingerprints={name: done.fingerprint for name, done in stages.items()},
        sources=sources,
        waivers=[waiver.model_dump() for waiver in recipe.release.waivers],
    )
    return {
        "path": str(released.path),
        "status": released.status,
        "fingerprint": released.fingerprint,
    }


def _in_parts(made: StageResult, table: str) -> Any:
    """A stage's table, part by part: it may be larger than memory."""
    from routeyard.pipelines.release.database import Streamed

    return Streamed(lambda: (read_shards([part], table) for part in made.parts(table)))


def check_zoo(text: str, tables: Mapping[str, Any]) -> None:
    """Stop where the zoo's results are not about these labels, costs and splits.

    Raises:
        GateFailed: says so, and how to make them anew.
    """
    import json

    from routeyard.pipelines.common.matrix import core_of
    from routeyard.pipelines.evaluate.fit import hash_of

    results = json.loads(text)
    core = core_of({k: v for k, v in tables.items() if k != "embeddings"})
    if results["scheme"] in core.splits and hash_of(core, results["scheme"]) == results["data"]:
        return
    raise GateFailed(
        "the zoo's results were measured on other labels, costs or splits",
        where="release.zoo",
        next_step="build without `release.zoo`, run `routeyard zoo run` on that release, and name "
        "its zoo.json",
    )


def _short(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Figures without the rows of findings, which stay in the workspace: a manifest is read."""
    out = dict(figures)
    if isinstance(out.get("findings"), list):
        out["findings"] = [{k: v for k, v in f.items() if k != "rows"} for f in out["findings"]]
    return out
