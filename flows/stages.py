"""The stages of a build: the one list of what is made, of what, by which function, in which order.

`build`, `plan`, `status` and `refresh` walk this list. `python -m routeyard.flows.stages` prints
it as the table of ARCHITECTURE.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from routeyard.flows.tasks.collect import (
    ask_in_rounds,
    ask_in_shards,
    ask_models,
    import_answers,
    kept_steps,
    walk_trajectories,
)
from routeyard.flows.tasks.curate import (
    apply_rules,
    curated_tables,
    embed_in_shards,
    embed_queries,
    read_layers,
)
from routeyard.flows.tasks.label import (
    ask_judges,
    check_labels,
    decide_labels,
    lines_of_judges,
    read_reviews,
    score_responses,
)
from routeyard.flows.tracking import AFTER_CALLS, ATTEMPTS, ON_THIS_MACHINE
from routeyard.flows.workspace import (
    BuildContext,
    StageResult,
    StageWork,
    content,
    of_models,
    read,
    read_shards,
    review_files,
    write_table,
)
from routeyard.pipelines.audit.answers import AuditFinding
from routeyard.pipelines.common.errors import GateFailed
from routeyard.pipelines.common.staging import write_json
from routeyard.schemas.images import IMAGES
from routeyard.schemas.recipe import Collect, CurationRule, Pool, Recipe, Release, Source, Split

if TYPE_CHECKING:
    from routeyard.pipelines.common.matrix import Core

# The ingest and pool stages: sources → queries, pool → models.


def read_sources(
    context: BuildContext, *, sources: Sequence[Source], compared_with: Sequence[Source]
) -> StageWork:
    """Sources → queries, what was left out of them, and the texts they are compared with."""
    from routeyard.pipelines.common import files as named_files
    from routeyard.pipelines.curate.rule import removals
    from routeyard.pipelines.ingest import compared, ingest, pin
    from routeyard.pipelines.ingest.images import image_files

    sources = [pin(source) for source in sources]
    others = [pin(source) for source in compared_with]
    inputs: dict[str, str] = {}
    for source in (*sources, *others):
        if source.kind == "hub":
            inputs[source.name] = str(source.revision)
        else:
            where = f"source {source.name!r}"
            found = named_files.expand(str(source.path), base=context.base, where=where)
            inputs[source.name] = content(found)
    for source in sources:
        if shown := image_files(source, context.base):
            inputs[f"images of {source.name}"] = content(shown)

    def make(folder: Path) -> Mapping[str, Any]:
        done = ingest(sources, base=context.base, images=folder / IMAGES)
        write_table(done.queries, folder / "queries.parquet")
        left_out = removals("ingest", "query", done.removed)
        write_table(left_out, folder / "removals.parquet")
        if others:
            write_table(compared(others, base=context.base), folder / "external.parquet")
        return {
            "queries": done.queries.num_rows,
            "removed": left_out.num_rows,
            "sources": done.provenance,
            "notes": list(done.notes),
        }

    parameters = {
        "sources": [source.model_dump(mode="json") for source in sources],
        "compared_with": [source.model_dump(mode="json") for source in others],
        "scorers": _scorers(sources),
    }
    return StageWork(parameters, inputs, make)


def _scorers(sources: Sequence[Source]) -> dict[str, list[Any]]:
    """What ingest takes from each scorer: it tells models the form and checks references."""
    from routeyard.pipelines.label.scorers import SCORERS

    named = {str(source.scorer) for source in sources} & SCORERS.targets.keys()
    if any(source.fields is not None and source.fields.scorer for source in sources):
        named = set(SCORERS.names())  # rows name their scorer: it may be any
    scorers = {name: SCORERS.get(name) for name in sorted(named)}
    return {
        name: [one.instruction, one.needs_reference, one.lettered] for name, one in scorers.items()
    }


def list_models(context: BuildContext, *, pool: Pool) -> StageWork:
    """Pool → models."""
    from routeyard.pipelines.common.pool import models_table

    def make(folder: Path) -> Mapping[str, Any]:
        models = models_table(pool)
        write_table(models, folder / "models.parquet")
        return {"models": models.num_rows}

    return StageWork(pool.model_dump(mode="json"), {}, make)


# Certificate, gates and the release itself.

# Defects of what is to be released: findings of the audit, questions on two sides of a split.


def upstream_schemes(curate: Sequence[CurationRule]) -> set[str]:
    """Schemes that a source published: what leaks there is reported and stops nothing."""
    rules = (rule for rule in curate if rule.rule == "upstream_split")
    return {str(rule.parameters.get("scheme", "upstream")) for rule in rules}


def defects_of(
    tables: Mapping[str, Any], split: Split, curate: Sequence[CurationRule]
) -> list[AuditFinding]:
    """Findings of the audit over the tables of a release, and leaks of each of its schemes.

    Answers of injected models were stated by the recipe, and are not looked at.
    """
    import pyarrow.compute as pc

    from routeyard.flows.audits import free_arms, recording_of
    from routeyard.pipelines.audit.checks import audit_recording

    models = tables["models"]
    real = models.filter(pc.equal(models.column("kind"), "real"))
    own = {**tables, "splits": tables["splits"].slice(0, 0)}
    for name in ("labels", "responses"):
        own[name] = of_models(tables[name], real)
    found = audit_recording(recording_of(own), free=free_arms(models))
    return [*leaks_of(tables, split.keep_together, upstream_schemes(curate)), *found.findings]


def leaks_of(tables: Mapping[str, Any], together: Any, upstream: set[str]) -> list[AuditFinding]:
    """One finding for each scheme in which a test question is also in train or validation."""
    from routeyard.pipelines.curate.split import left_apart, one_question

    one = one_question(tables["queries"], tables.get("duplicates"), together)
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
        for scheme, leaked, total, some in left_apart(tables["splits"], one)
    ]


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

    pass
    from routeyard.pipelines.audit.metering import apply_waivers, as_answers, audit, known_of

    known = known_of(pool)
    canaries = _canaries(context, collect)

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
        found = audit(
            answers, tables["models"], collect.metering, queries=queries, canaries=canaries, **known
        )
        unresolved, waived = apply_waivers(found, release.waivers)
        findings = [asdict(finding) for finding in found]
        write_json(folder / "findings.json", findings)
        defects = defects_of(tables, split, curate)
        stopping, let = apply_waivers(defects, release.waivers)
        write_json(folder / "defects.json", [asdict(one) for one in defects])
        return {
            "findings": findings,
            "standing": [f"{one.model_id}: {one.count:,} {one.says}" for one in unresolved],
            "waived": [f"{one.model_id}: {one.count:,} {one.says}" for one, _ in waived],
            "defects": [f"{one.gate}: {one.about}: {one.says}" for one in defects],
            "grave": [f"{one.gate}: {one.about}: {one.says}" for one in stopping if one.stops],
            "defects_waived": [f"{one.gate}: {one.about}: {one.says}" for one, _ in let],
        }

    parameters = {
        "metering": collect.metering.model_dump(mode="json"),
        "waivers": [waiver.model_dump() for waiver in release.waivers],
        "known": known,
        "canaries": [] if canaries is None else canaries.to_pylist(),
        "keep_together": split.keep_together,
        "upstream": sorted(upstream_schemes(curate)),
    }
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
    return lines + [one for one in defects if one not in waived]


def _findings(found: Sized, waived: Sized) -> str:
    if not found:
        return "no finding"
    count = f"{len(found):,} finding{'s' if len(found) > 1 else ''}"
    return f"{count}, {len(waived):,} waived" if waived else count


def _canaries(context: BuildContext, collect: Collect) -> Any:
    """Canary answers of the workspace's last run; null where the recipe asks for none."""
    from routeyard.flows.ledgers import open_ledger
    from routeyard.pipelines.collect.known_answers import canary_answers

    if not collect.canary.prompts or collect.provider == "recorded":
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
         "`routeyard audit metering --recipe FILE` names the answers", "metering"),
    ):  # fmt: skip
        found: list[str] = audited.figures[key]
        if not found:
            continue
        more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
        failed = GateFailed(
            f"{says} stops this release: {'; '.join(found[:5])}{more}",
            where=f"benchmark {context.benchmark}; {audited.folder}/{file}.json",
            next_step=f"mend the cause ({mend}), or waive it by name in the recipe: "
            f"release.waivers: [{{gate: {gate}, reason: …}}]; the card will print the reason",
        )
        failed.findings = tuple(found)
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
        vectors, kept = read(stages["embed"], "embeddings"), tables["queries"].column("query_id")
        tables["embeddings"] = vectors.filter(pc.is_in(vectors.column("query_id"), kept))
    if recipe.hidden_states is not None:
        tables["hidden_states"] = _in_parts(stages["hidden_states"], "hidden_states")
    if recipe.collect.agent is not None:
        tables["steps"] = kept_steps(read(stages["collect"], "steps"), tables["responses"])
    sources = stages["ingest"].figures["sources"]
    closed = [one["source"] for one in sources if one.get("redistribute_text") is False]
    told = pc.invert(pc.is_in(tables["queries"].column("source"), pa.array(closed, pa.string())))
    if (shown := images_table(tables["queries"].filter(told))).num_rows:
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


_HOUR_S = 3600.0
_ASKING = {"timeout_seconds": 24 * _HOUR_S, **AFTER_CALLS}
#: Below this many rows, starting worker processes costs more than the work.
_SMALL = 20_000


def needs_embeddings(recipe: Recipe) -> bool:
    """True when a curation rule reads the `embeddings` table, or the release is to hold it."""
    from routeyard.pipelines.curate import RULES

    return recipe.release.include_embeddings or any(
        "embeddings" in RULES.get(rule.rule).reads for rule in recipe.curate
    )


def _is_recorded(recipe: Recipe, root: Path) -> bool:
    return recipe.collect.provider == "recorded"


def _is_agent(recipe: Recipe, root: Path) -> bool:
    return not _is_recorded(recipe, root) and recipe.collect.agent is not None


def _is_asked(recipe: Recipe, root: Path) -> bool:
    return not _is_recorded(recipe, root) and recipe.collect.agent is None


def _is_reviewed(recipe: Recipe, root: Path) -> bool:
    return bool(review_files(root, recipe.name))


@dataclass(frozen=True)
class Stage:
    """One stage.

    Attributes:
        name: Its folder below `stages/`, and its name in manifests and `routeyard status`.
        makes: What later stages call its result.
        function: (context, sections, inputs) → what its output is made of. It reads, and neither
            writes nor asks: `status` calls it too. The release's function writes.
        sections: Keys of the recipe that it is given.
        inputs: What it reads of earlier stages, by `makes`; None where a stage was not wanted.
        prints: What `build` prints of its figures: a line, in which lists count their entries,
            or a function that returns lines.
        wanted: (recipe, workspace) → whether this build has it.
        part_of: The stage that it is a part of, in manifests and `routeyard status`.
        runs_with: The stage of `--until` with which it runs, where that is another one.
        each: Input of which each file is worked on alone, at the same time.
        shards: Does most of the work beforehand, in tasks that run at the same time (`--shards`).
        check: Raises where its result stops the build.
        task: Name of its Prefect task, where that is another one.
        retries: How often the task is tried again.
    """

    name: str
    makes: str
    function: Callable[..., Any]
    sections: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    prints: str | Callable[[Mapping[str, Any]], list[str]] = ""
    wanted: Callable[[Recipe, Path], bool] = lambda recipe, root: True
    part_of: str | None = None
    runs_with: str | None = None
    each: str | None = None
    shards: Callable[..., None] | None = None
    check: Callable[[BuildContext, StageResult], None] | None = None
    task: str | None = None
    retries: Mapping[str, Any] = field(default_factory=lambda: ON_THIS_MACHINE)

    @property
    def until(self) -> str:
        """The value of `--until` from which on it runs."""
        return self.runs_with or self.part_of or self.name

    def lines(self, figures: Mapping[str, Any]) -> list[str]:
        """What `build` prints about the stage's result."""
        if not isinstance(self.prints, str):
            return self.prints(figures)
        sizes = {k: len(v) if isinstance(v, list) else v for k, v in figures.items()}
        return [self.prints.format(**sizes)] if self.prints else []


_COLLECT: dict[str, Any] = {
    "name": "collect",
    "makes": "responses",
    "sections": ("pool", "collect"),
    "inputs": ("queries", "models"),
    "prints": "{responses:,} responses",
}

STAGES = (
    Stage(
        "ingest",
        "queries",
        read_sources,
        sections=("sources", "compared_with"),
        prints="{queries:,} questions",
        retries={"timeout_seconds": 6 * _HOUR_S, **ATTEMPTS},
    ),
    Stage("pool", "models", list_models, ("pool",), prints="{models} models", runs_with="ingest"),
    # A recipe has one of the three ways to collect.
    Stage(function=import_answers, wanted=_is_recorded, task="import recorded", **_COLLECT),
    Stage(function=walk_trajectories, wanted=_is_agent, retries=_ASKING, **_COLLECT),
    Stage(function=ask_models, wanted=_is_asked, shards=ask_in_shards, retries=_ASKING, **_COLLECT),
    Stage(
        "verdicts",
        "verdicts",
        score_responses,
        sections=("label",),
        inputs=("queries", "responses"),
        each="responses",
        part_of="label",
        task="file verdicts",
    ),
    Stage("reviews", "reviews", read_reviews, wanted=_is_reviewed, part_of="label"),
    Stage(
        "hear",
        "judged",
        ask_judges,
        sections=("label", "collect"),
        inputs=("queries", "responses", "verdicts", "reviews"),
        prints=lines_of_judges,
        wanted=lambda recipe, root: bool(recipe.label.verifiers or recipe.label.judges),
        part_of="label",
        retries=_ASKING,
    ),
    Stage(
        "label",
        "labels",
        decide_labels,
        sections=("label",),
        inputs=("queries", "responses", "verdicts", "reviews", "judged"),
        prints="{labels:,} labels, {undecided:,} undecided",
        check=check_labels,
    ),
    Stage(
        "embed",
        "embeddings",
        embed_queries,
        sections=("embed",),
        inputs=("queries",),
        wanted=lambda recipe, root: needs_embeddings(recipe),
        shards=embed_in_shards,
        prints="{embeddings:,} questions",
        runs_with="curate",
    ),
    Stage(
        "curate",
        "curated",
        apply_rules,
        sections=("curate", "split", "split_is_written", "pool", "collect"),
        inputs=("queries", "models", "responses", "labels", "embeddings"),
        prints="{rules} rules",
    ),
    Stage(
        "hidden_states",
        "layers",
        read_layers,
        sections=("hidden_states", "pool", "collect"),
        inputs=("curated",),
        wanted=lambda recipe, root: recipe.hidden_states is not None,
        prints="{queries:,} questions, {layers} layers of {width}",
        runs_with="curate",
    ),
    Stage(
        "audit",
        "audited",
        audit_metering,
        sections=("pool", "collect", "release", "split", "curate"),
        inputs=("curated", "responses"),
        prints=lines_of_audit,
        check=check_metering,
        runs_with="certify",
    ),
    Stage(
        "certify",
        "certified",
        certify_routability,
        sections=("release",),
        inputs=("curated", "embeddings"),
        prints="{verdict}",
    ),
)
#: The last one: it stores no output, it writes the release from those of all stages.
RELEASE = Stage("release", "release", write_benchmark)
#: What `--until` takes, in order.
UNTIL = tuple(dict.fromkeys(stage.until for stage in (*STAGES, RELEASE)))


class Complete(Protocol):
    """Gives the results of a stage, one for each set of what its function is given."""

    def __call__(
        self, stage: Stage, given: Sequence[Mapping[str, Any]], processes: int
    ) -> list[StageResult]: ...


def walk(
    recipe: Recipe, context: BuildContext, complete: Complete, until: str = "certify"
) -> Iterator[tuple[Stage, list[StageResult]]]:
    """Each stage that the recipe wants with its results, in order, up to a stage of `UNTIL`.

    Args:
        complete: Makes a stage's results, or finds those that are stored.
    """
    made: dict[str, Any] = {}

    def run(stage: Stage, **more: Any) -> list[StageResult]:
        given = {key: getattr(recipe, key) for key in stage.sections}
        given |= {name: made.get(name) for name in stage.inputs} | more
        parts, processes = [given], 1
        if stage.each is not None:
            source: StageResult = made[stage.each]
            parts = [{**given, stage.each: path} for path in source.parts(stage.each)]
            processes = context.jobs if source.figures[stage.each] >= _SMALL else 1
        results = complete(stage, parts, processes)
        made[stage.makes] = results if stage.each is not None else results[0]
        return results

    def in_rounds(stage: Stage) -> list[StageResult]:
        def label(rows: list[list[int]]) -> tuple[StageResult, StageResult]:
            run(stage, rows=rows)
            for later in (one for one in STAGES if one.until == "label"):
                if later.wanted(recipe, context.root):
                    run(later)
            return made["responses"], made["labels"]

        given = {"pool": recipe.pool, "collect": recipe.collect, "queries": made["queries"]}
        made["responses"] = ask_in_rounds(context, **given, complete=label)
        return [made["responses"]]

    for stage in STAGES:
        if UNTIL.index(stage.until) > UNTIL.index(until):
            return
        if not stage.wanted(recipe, context.root):
            continue
        asks = stage.function is ask_models and recipe.collect.strategy == "informative"
        yield stage, in_rounds(stage) if asks else run(stage)


def as_table() -> str:
    """The list as a Markdown table."""
    lines = ["| Stage | Made from | Recipe | Makes | Function |", "| --- | --- | --- | --- | --- |"]
    for stage in STAGES:
        name = f"{stage.part_of}: {stage.name}" if stage.part_of else stage.name
        keys = (f"`{key}`" for key in stage.sections if key in Recipe.model_fields)
        function = f"`{stage.function.__module__}.{stage.function.__name__}`"
        inputs = ", ".join(stage.inputs)
        lines.append(f"| {name} | {inputs} | {', '.join(keys)} | {stage.makes} | {function} |")
    function = f"`{RELEASE.function.__module__}.{RELEASE.function.__name__}`"
    return "\n".join([*lines, f"| release | all of them | all of it | release | {function} |"])


if __name__ == "__main__":
    print(as_table())
