"""Verification of a release: its seal, then every part of it that can be computed again.

Each check gives findings (contradictions) and claims: what it proved, what is consistent, what
rests on the publisher's word, and which check could not be made. What no check proved is listed as
believed, column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.pipelines.common.matrix import core_of
from routeyard.pipelines.evaluate.certificate import (
    GAPS,
    REFERENCE,
    Certificate,
    Collapse,
    Figure,
    certify,
    verdict_of,
)
from routeyard.pipelines.evaluate.experiment import default_scheme
from routeyard.pipelines.release.build import RenderCard, RenderFiles
from routeyard.pipelines.release.checks import FILE
from routeyard.pipelines.release.manifest import Finding, first_line, read_manifest
from routeyard.pipelines.verify.curated import rules_again
from routeyard.pipelines.verify.database import (
    Verification,
    card_facts,
    check,
    unreadable,
)
from routeyard.pipelines.verify.evidence import (
    CLOSE,
    SAMPLE,
    Evidence,
    Proof,
    Results,
    Sample,
    believed,
    consistent,
    contradiction,
    not_run,
    proved,
    values,
)
from routeyard.pipelines.verify.labels import (
    errors_of_labels,
    labels_of_verdicts,
    verdicts_of_texts,
)
from routeyard.pipelines.verify.questions import (
    ids_of_questions,
    images_of_questions,
    questions_of_sources,
    requests_of_recipe,
)
from routeyard.pipelines.verify.recipe import (
    checks_of_release,
    manifest_of_recipe,
    metering_of_answers,
    recipe_validates,
)
from routeyard.schemas import CONTRACTS, StoredTable
from routeyard.schemas.errors import BadInput
from routeyard.schemas.questions import looked_for_duplicates

# The certificate against labels, costs and splits: its figures computed again.

#: Resamples of the intervals without `--full`: enough to tell an interval from an invented one.
_FEW = 200
#: An interval of few resamples may differ by so much of its width: six standard errors of a
#: 2.5 % quantile of `_FEW` resamples, which is 0.19 of a standard deviation.
_APART = 0.3
#: Figures that depend on how ties, halves and guesses are treated, which versions of the code have
#: changed: under another version than today's they are only compared roughly.
_BY_METHOD = (
    "crossfitted",
    "corrected",
    "stability",
    "resolvable_difference",
    "task_oracle",
    "redundancy",
    "hard_share",
    "mix",
    "dominated_share",
)
_ROUGHLY = 0.1
_COUNTS = (
    "n_queries", "n_compared", "n_test", "n_models", "coverage", "scheme", "measure", "best_single",
)  # fmt: skip
#: What the same code says of the same tables, word for word.
_MADE = ("format", "rule", "test_in_train", "order_undecided")
#: Settings that a build never changes.
_BUILT = {"seed": 0, "clustered_by": None}
#: Figures that need the options of questions, which are withheld with their text.
_OF_OPTIONS = ("chance_corrected",)


def certificate_of_tables(evidence: Evidence) -> Results:
    """Contradictions between the certificate and the tables."""
    stored = evidence.figures("certify").get("certificate")
    if not isinstance(stored, Mapping) and evidence.built and evidence.same_code:
        results = ["a verdict without figures"]
        yield contradiction("certificate", 1, 1, "certificates are not there", results)
    elif not isinstance(stored, Mapping) and evidence.built:
        yield not_run("certificate", "the certificate computed again", "the manifest holds none")
    if not isinstance(stored, Mapping):
        return
    resamples = stored.get("resamples")
    if not isinstance(resamples, int) or not 1 <= resamples <= 100_000:
        yield contradiction("certificate", 1, 1, "figures differ", [f"resamples {resamples!r}"])
        return
    exact = evidence.full or resamples <= _FEW
    try:
        fresh = _fresh(evidence, stored, resamples if exact else _FEW)
    except (BadInput, TypeError, ValueError, KeyError) as error:
        yield contradiction("certificate", 1, 1, "certificates cannot be computed", [str(error)])
        return
    wrong, intervals = _compared(evidence, stored, fresh, exact)
    of = len(stored.get("figures") or ()) + len(fresh.models)
    if wrong:
        what = "figures differ from what labels, costs and splits give"
        yield contradiction("certificate", len(wrong), of, what, wrong)
    else:
        how = "" if evidence.same_code else "; those that depend on the code's version roughly"
        says = f"{of:,} figures follow from labels, costs and splits{how}"
        yield proved("certificate", says, "figures.certify.certificate")
    if intervals:
        what = "intervals differ from those of resampling with the stored seed"
        yield contradiction("certificate", len(intervals), of, what, intervals)
    elif exact:
        yield proved("certificate", f"intervals of {resamples:,} resamples follow from the seed")
    else:
        says = f"intervals agree with {_FEW} separate resamples (`--full` computes all)"
        yield consistent("certificate", says)
    yield from _routers(evidence, stored, fresh)


def _fresh(evidence: Evidence, stored: Mapping[str, Any], resamples: int) -> Certificate:
    names = ("queries", "models", "outcomes", "splits", "duplicates", "model_splits", "embeddings")
    tables = {name: evidence.tables[name] for name in names if evidence.has(name)}
    samples = pc.max(evidence.table("labels", ["n_samples"]).column("n_samples")).as_py() or 0
    if samples > 1 and evidence.has("verdicts"):
        tables |= {name: evidence.tables[name] for name in ("verdicts", "labels")}
    if not looked_for_duplicates(evidence.recipe):
        tables.pop("duplicates", None)  # an empty table says nothing
    core = core_of(tables)
    default = default_scheme(core) if core.splits else None
    return certify(
        core,
        scheme=None if stored.get("scheme") == default else stored.get("scheme"),
        measure=stored.get("measure"),
        resamples=resamples,
        seed=int(stored.get("seed") or 0),
        cluster=stored.get("clustered_by"),
        routers=_fitted(evidence, stored),
    )


def _fitted(evidence: Evidence, stored: Mapping[str, Any]) -> Sequence[str]:
    """Reference routers that are fitted again: without embeddings only those that need none."""
    if evidence.full and evidence.rows("embeddings"):
        return REFERENCE
    return ("task-map",) if stored.get("routers") else ()


def _compared(
    evidence: Evidence, stored: Mapping[str, Any], fresh: Certificate, exact: bool
) -> tuple[list[str], list[str]]:
    """Differences in values, and in intervals."""
    wrong = list(_facts(evidence, stored, fresh))
    intervals: list[str] = []
    for name, figure in (stored.get("figures") or {}).items():
        item = fresh.figures.get(name)
        if item is None or (len(evidence.withheld) and any(part in name for part in _OF_OPTIONS)):
            continue  # of another version of the code, or of options that are withheld
        by_method = not evidence.same_code and any(part in name for part in _BY_METHOD)
        if by_method and _roughly(figure.get("value"), item.value):
            continue
        wrong += values([(name, figure.get("value"), item.value)])
        # A share of models moves by whole models.
        step = 2 / fresh.n_models if name == "dominated_share" and not exact else 0.0
        intervals += _interval(name, figure, item.low, item.high, exact, step)
    rows = {row.get("model_id"): row for row in stored.get("models") or ()}
    for model in fresh.models:
        row = rows.pop(model.model_id, {})
        names = ("accuracy", "n_labels", "mean_cost", "dominated")
        named = [(f"{n} of {model.model_id}", row.get(n), getattr(model, n)) for n in names]
        wrong += values(named)
        intervals += _interval(model.model_id, row, model.low, model.high, exact)
    return [*wrong, *(f"{name!r} is no model of the release" for name in rows)], intervals


def _facts(evidence: Evidence, stored: Mapping[str, Any], fresh: Certificate) -> Iterator[str]:
    """Differences in what is no figure, and in which figures there are."""
    yield from values((name, stored.get(name), getattr(fresh, name)) for name in _COUNTS)
    if not evidence.same_code:
        return
    made = fresh.to_json()
    for name in sorted(stored.keys() ^ made.keys()):
        yield f"{name} is not in both, expected what a certificate says"
    if evidence.built:  # a build certifies with the defaults
        yield from values((name, stored.get(name), right) for name, right in _BUILT.items())
    names = {*_MADE, *(["folds"] if fresh.routers else [])}
    names |= {"encoder"} if evidence.rows("embeddings") else set()
    names -= {"test_in_train"} if len(evidence.withheld) else set()
    yield from values((name, stored.get(name), made[name]) for name in sorted(names))
    for name in sorted(set(stored.get("figures") or ()) ^ set(fresh.figures)):
        yield f"{name} is not in both, expected the same figures"


def _interval(
    name: str,
    stored: Mapping[str, Any],
    low: float | None,
    high: float | None,
    exact: bool,
    step: float = 0.0,
) -> Iterator[str]:
    ends = (stored.get("low"), stored.get("high"))
    if low is None or high is None or None in ends:
        if ends != (low, high):
            yield f"{name} {ends[0]!r} to {ends[1]!r}, expected {low!r} to {high!r}"
        return
    apart = CLOSE if exact else _APART * (high - low) + 0.002 * max(abs(low), abs(high)) + step
    if any(
        not isinstance(end, int | float) or abs(end - right) > apart
        for end, right in zip(ends, (low, high), strict=True)
    ):
        yield f"{name} {ends[0]!r} to {ends[1]!r}, expected {low:.4g} to {high:.4g}"


def _routers(evidence: Evidence, stored: Mapping[str, Any], fresh: Certificate) -> Results:
    """Reference routers and the verdict.

    Those that need embeddings are fitted again only with `--full`, and where they are released;
    what the best single model reaches in their place is the same for all of them.
    """
    rows = stored.get("routers") or []
    own = {router.router: router for router in fresh.routers} if evidence.same_code else {}
    singles = {item.accuracy - item.gain for item in own.values()}
    wrong: list[str] = []
    for row in rows:
        name, accuracy = row.get("router"), row.get("accuracy")
        right = {"accuracy": own[name].accuracy} if name in own else {}
        if singles and isinstance(accuracy, int | float):
            right["gain"] = right.get("accuracy", accuracy) - min(singles)
        wrong += values(((f"{k} of {name}", row.get(k), v) for k, v in right.items()), 1e-6)
    if wrong:
        what = "figures of reference routers differ"
        yield contradiction("certificate", len(wrong), 2 * len(rows), what, wrong)
    elif own:
        yield proved("certificate", f"{len(own)} reference routers, fitted again")
    if left := [row for row in rows if row.get("router") not in own]:
        here = evidence.rows("embeddings")
        why = "only `--full` fits them" if here else "their embeddings are not released"
        says = f"{len(left)} reference routers (not fitted again: {why})"
        yield believed("certificate", says)
        yield not_run("certificate", f"{len(left)} reference routers fitted again", (
            "`--full` fits them" if here else "no embeddings are released"
        ))  # fmt: skip
    yield from _verdict(evidence, stored, fresh)


def _verdict(evidence: Evidence, stored: Mapping[str, Any], fresh: Certificate) -> Results:
    """The verdict and its words, by the certificate's own figures and the written rule."""
    try:
        tried = [Collapse(**row) for row in stored.get("routers") or []]
        figures = {name: Figure(**item) for name, item in (stored.get("figures") or {}).items()}
        if any(name not in figures for name in (*GAPS, "resolvable_difference")):
            why = "the certificate lacks figures that the rule reads"
            yield not_run("certificate", "the verdict by its rule", why)
            return
        right, words = verdict_of(
            str(stored.get("best_single")), figures, tried, stored.get("routers_reason"),
            folds=stored.get("folds") or 0, compared=fresh.n_compared, queries=fresh.n_queries,
            undecided=fresh.order_undecided,
        )  # fmt: skip
    except (TypeError, ValueError, AttributeError) as error:
        yield contradiction("certificate", 1, 1, "certificates cannot be read", [str(error)])
        return
    wrong = list(
        values(
            [
                ("verdict", stored.get("verdict"), right),
                ("verdict of the stage", evidence.figures("certify").get("verdict"), right),
                ("words", stored.get("words") if evidence.same_code else words, words),
            ]
        )
    )
    if wrong:
        says = [f"{item} by its own figures" for item in wrong]
        yield contradiction("certificate", len(wrong), 3, "verdicts differ from the rule", says)
    else:
        follows = f"the verdict {right!r} follows from its figures by the rule"
        yield proved("certificate", follows, "figures.certify.verdict")


def _roughly(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return True  # a version may have known it, or had a reason not to
    return isinstance(a, int | float) and abs(a - b) <= _ROUGHLY


#: Every proof and the tables without which it cannot be made, in the order in which a person reads
#: them.
PROOFS: tuple[tuple[Callable[[Evidence], Results], tuple[str, ...]], ...] = (
    (recipe_validates, ()),
    (ids_of_questions, ("queries",)),
    (questions_of_sources, ("queries",)),
    (images_of_questions, ("queries",)),
    (requests_of_recipe, ("queries", "responses")),
    (verdicts_of_texts, ("queries", "responses", "verdicts")),
    (rules_again, ("queries", "models", "splits")),
    (labels_of_verdicts, ("queries", "labels")),
    (checks_of_release, ()),
    (errors_of_labels, ("queries", "responses", "labels")),
    (manifest_of_recipe, ("models",)),
    (metering_of_answers, ("queries", "models", "responses")),
    (certificate_of_tables, ("queries", "models", "labels", "outcomes")),
)


def verify(
    release: Path,
    *,
    render_card: RenderCard,
    render_files: RenderFiles | None = None,
    full: bool = False,
    signer: str | None = None,
    images: Path | None = None,
    draws: bool = True,
) -> Proof:
    """Findings of a release, and what of it is proved, consistent and believed.

    Args:
        render_card: Renders the card again from the data.
        render_files: Renders plots and metadata again.
        full: Compute all verdicts, intervals and reference routers, and run the programs that
            models wrote; else a sample, whose size the claims name.
        signer: Public key (text or file) whose signature of the manifest is required.
        images: Folder whose image files are compared with the hashes of the questions' images.
        draws: Whether `render_files` draws plots; else they are not compared.
    """
    proof = Proof()
    if result := unreadable(release):
        proof.add(result)
        return proof
    run = Verification(release, read_manifest(release), render_card, signer)
    manifest = run.manifest
    rows = manifest.tables["responses"].rows if "responses" in manifest.tables else 0
    # The seed follows from all that the release says: it cannot be chosen apart from that.
    sample = Sample(rows, rows if full else SAMPLE, int(manifest.digest[:8] or "0", 16))
    run.watch["responses"] = sample.add
    proof.add(check(run))
    if any(finding.check != "signature" for finding in proof.findings):
        return proof  # what is damaged, or not what was sealed, is not computed further
    proof.add(_seal(run))
    evidence = Evidence(release, manifest, run.tables, full, sample, images=images)
    for prove, needed in PROOFS:
        about = prove.__name__.replace("_", " ")
        if lost := [name for name in needed if not evidence.has(name)]:
            proof.add([not_run("release", about, f"there is no table {lost[0]!r} that is sound")])
            continue
        try:
            proof.add(prove(evidence))
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:  # figures and recipes of a stranger can be of any form
            why = f"cannot be computed: {type(error).__name__}: {first_line(error)}"
            proof.findings.append(Finding("proof", about, why))
    evidence.forget()
    proof.add(_files(evidence, run.readable, render_files, draws))
    proof.add(_word(evidence))
    proof.add(_unproved(evidence, proof.covered))
    return proof


def _seal(run: Verification) -> Results:
    """What `check` established."""
    manifest = run.manifest
    says = f"{len(manifest.files)} files and {len(manifest.tables)} tables are what was sealed"
    yield proved("manifest", says)
    yield proved("outcomes", "outcomes, wide table, summaries and database follow from the tables")
    if run.unchecked:
        says = f"{len(run.unchecked)} lines against the data"
        yield not_run("card", says, f"in words of another version: {run.unchecked[0]}")
    yield proved(
        "card",
        "each other line of README.md with figures follows from tables and manifest"
        if run.unchecked
        else "each line of README.md follows from tables and manifest",
    )
    if run.signer is not None:
        yield proved("signature", "the manifest was signed with that key")
    else:
        yield believed("signature", "who made the release: no key was given (`--signer`)")


def _files(
    evidence: Evidence, readable: set[str], render_files: RenderFiles | None, draws: bool
) -> Results:
    """Plots and metadata, rendered once more where the same code made them."""
    manifest = evidence.manifest
    names = sorted(
        name for name in readable if not name.startswith(("data/", "numbered/", "README", FILE))
    )
    if render_files is None or not names:
        return
    if not evidence.same_code or not evidence.has(*manifest.tables):
        why = "not every table is there" if evidence.same_code else evidence.other_code
        yield not_run("files", f"{', '.join(names)[:200]} rendered again", why)
        return
    if plots := [] if draws else [name for name in names if name.startswith("plots/")]:
        why = "the limit of address space leaves no room to draw (`ulimit -v unlimited` lifts it)"
        yield not_run("files", f"{', '.join(plots)[:200]} drawn again", why)
        names = [name for name in names if name not in plots]
    tables = {name: evidence.tables[name] for name in manifest.tables}
    fresh = render_files(tables, card_facts(manifest))
    wrong = [name for name in names if (evidence.release / name).read_bytes() != fresh.get(name)]
    for name in wrong:
        says = "differs from what the tables give, or belongs to no release"
        yield Finding("file", name, says)
    if names and not wrong:
        yield proved("files", f"{', '.join(names)[:200]}: rendered again from the tables")


def _word(evidence: Evidence) -> Results:
    """What no computation can show."""
    if evidence.rows("responses"):
        collected = evidence.collect
        how = "recorded elsewhere" if collected and collected.provider == "recorded" else "asked"
        yield believed(
            "responses",
            f"that these models gave these {evidence.rows('responses'):,} answers ({how}), their "
            "tokens, times and served models, and costs that a provider stated",
        )
    if evidence.manifest.sources:
        says = "that questions, references, ids and metadata are those of the sources"
        yield believed("sources", says)
    if evidence.rows("models"):
        says = "that prices, sizes and families, which the recipe states as well, are the models'"
        yield believed("models", says)
    if stages := evidence.manifest.stages:
        says = f"{len(stages)} fingerprints of stages: they hash more than a release holds"
        yield believed("stages", says)
    says = f"name, version, recipe, and that version {evidence.manifest.code_version} made it"
    yield believed("manifest", says)


def _unproved(evidence: Evidence, covered: set[str]) -> Results:
    """Columns and figures that no check proved."""
    for name in evidence.manifest.tables:
        if name == "outcomes" or not evidence.rows(name) or name not in CONTRACTS:
            continue
        key = CONTRACTS[name].key if name != "queries" else ()
        columns = [
            column
            for column in _filled_in(evidence.tables[name])
            if column not in key and f"{name}.{column}" not in covered
        ]
        if columns:
            says = f"{', '.join(columns)} of {evidence.rows(name):,} rows"
            yield believed(name, f"{says}, as the publisher states them")
    for stage in evidence.manifest.figures:
        figures = evidence.figures(stage)
        names = [key for key in figures if f"figures.{stage}.{key}" not in covered]
        if names := [key for key in names if figures[key] not in ([], {}, None, "")]:
            yield believed(f"figures.{stage}", f"{', '.join(names)}, as the publisher states them")


def _filled_in(table: pa.Table | StoredTable) -> list[str]:
    """Columns that hold a value in any row."""
    if isinstance(table, pa.Table):
        return [n for n in table.column_names if table.column(n).null_count < table.num_rows]
    with pq.ParquetFile(table.path) as file:
        groups = [file.metadata.row_group(n) for n in range(file.num_row_groups)]
    filled = {
        part.path_in_schema.partition(".")[0]
        for group in groups
        for part in map(group.column, range(group.num_columns))
        if part.statistics is None or part.statistics.null_count != part.num_values
    }
    return [name for name in table.column_names if name in filled]
