"""Verification of a release: its seal, then every part of it that can be computed again.

Each check gives findings (contradictions) and claims: what it proved, what is consistent, what
rests on the publisher's word, and which check could not be made. What no check proved is listed as
believed, column by column.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines.release.build import RenderCard, RenderFiles
from routeyard.pipelines.release.checks import FILE
from routeyard.pipelines.release.manifest import Finding, first_line, read_manifest
from routeyard.pipelines.verify.certificate import certificate_of_tables
from routeyard.pipelines.verify.database import card_facts, check, unreadable
from routeyard.pipelines.verify.evidence import (
    Evidence,
    Proof,
    Results,
    believed,
    not_run,
    proved,
)
from routeyard.pipelines.verify.recipe import (
    checks_of_release,
    manifest_of_recipe,
    metering_of_answers,
    recipe_validates,
    rules_again,
)
from routeyard.pipelines.verify.tables import (
    errors_of_labels,
    ids_of_questions,
    images_of_questions,
    labels_of_verdicts,
    questions_of_sources,
    requests_of_recipe,
    verdicts_of_texts,
)
from routeyard.schemas import CONTRACTS, StoredTable
from routeyard.schemas.questions import group_of, leaked_tests, looked_for_duplicates

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
    evidence = Evidence(release, read_manifest(release), render_card, signer, full, images)
    proof.add(check(evidence))
    if any(finding.check != "signature" for finding in proof.findings):
        return proof  # what is damaged, or not what was sealed, is not computed further
    proof.leaks = _leaks(evidence)
    proof.add(_seal(evidence))
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
    proof.add(_files(evidence, render_files, draws))
    proof.add(_word(evidence))
    proof.add(_unproved(evidence, proof.covered))
    return proof


def _leaks(evidence: Evidence) -> list[dict[str, Any]]:
    """Rows of the table `leaks` of the schemes in which some test question is also in train.

    No file is broken by it: a published split is kept as it was, and counted.
    """
    if not evidence.has("splits", "queries"):
        return []
    groups = None
    if evidence.has("duplicates") and looked_for_duplicates(evidence.recipe):
        groups = group_of(evidence.table("duplicates", ["query_id", "group_id"]))
    result = leaked_tests(evidence.tables["queries"], evidence.whole("splits"), groups)
    return [row for row in result if row["verbatim"] != 0 or row["near_duplicates"]]


def _seal(evidence: Evidence) -> Results:
    """What `check` established."""
    manifest = evidence.manifest
    says = f"{len(manifest.files)} files and {len(manifest.tables)} tables are what was sealed"
    yield proved("manifest", says)
    yield proved("outcomes", "outcomes, wide table, summaries and database follow from the tables")
    if evidence.unchecked:
        says = f"{len(evidence.unchecked)} lines against the data"
        yield not_run("card", says, f"in words of another version: {evidence.unchecked[0]}")
    yield proved(
        "card",
        "each other line of README.md with figures follows from tables and manifest"
        if evidence.unchecked
        else "each line of README.md follows from tables and manifest",
    )
    if evidence.signer is not None:
        yield proved("signature", "the manifest was signed with that key")
    else:
        yield believed("signature", "who made the release: no key was given (`--signer`)")


def _files(evidence: Evidence, render_files: RenderFiles | None, draws: bool) -> Results:
    """Plots and metadata, rendered once more where the same code made them."""
    manifest = evidence.manifest
    names = sorted(
        name
        for name in evidence.readable
        if not name.startswith(("data/", "numbered/", "README", FILE))
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
