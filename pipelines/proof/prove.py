"""Verification of a release: its seal, then every part of it that can be computed again.

Each check gives findings (contradictions) and claims: what it proved, what is consistent, and what
rests on the publisher's word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.proof.certificate import certificate_of_tables
from routeyard.pipelines.proof.claims import Proof, Results, believed, proved
from routeyard.pipelines.proof.curated import rules_again
from routeyard.pipelines.proof.evidence import SAMPLE, Evidence, Sample
from routeyard.pipelines.proof.figures import counts_of_stages
from routeyard.pipelines.proof.images import images_of_questions
from routeyard.pipelines.proof.labels import labels_of_verdicts
from routeyard.pipelines.proof.metering import metering_of_answers
from routeyard.pipelines.proof.questions import ids_of_questions, questions_of_sources
from routeyard.pipelines.proof.recipe import manifest_of_recipe
from routeyard.pipelines.proof.requests import requests_of_recipe
from routeyard.pipelines.proof.rules import rows_against_rules
from routeyard.pipelines.proof.verdicts import verdicts_of_texts
from routeyard.pipelines.release.checks.card import card_facts
from routeyard.pipelines.release.checks.verify import RenderCard, Verification, check, unreadable
from routeyard.pipelines.release.finding import Finding, first_line
from routeyard.schemas import StoredTable

RenderFiles = Callable[
    [Mapping[str, "pa.Table | StoredTable"], Mapping[str, Any]], Mapping[str, bytes]
]

#: Every proof, in the order in which a person reads them.
PROOFS: tuple[Callable[[Evidence], Results], ...] = (
    ids_of_questions,
    questions_of_sources,
    images_of_questions,
    requests_of_recipe,
    rows_against_rules,
    verdicts_of_texts,
    rules_again,
    labels_of_verdicts,
    counts_of_stages,
    manifest_of_recipe,
    metering_of_answers,
    certificate_of_tables,
)


def verify(
    release: Path,
    *,
    render_card: RenderCard,
    render_files: RenderFiles | None = None,
    full: bool = False,
    signer: str | None = None,
    images: Path | None = None,
) -> Proof:
    """Findings of a release, and what of it is proved, consistent and believed.

    Args:
        render_card: Renders the card again from the data.
        render_files: Renders plots and metadata again.
        full: Compute all verdicts, intervals and reference routers, and run the programs that
            models wrote; else a sample, whose size the claims name.
        signer: Public key (text or file) whose signature of the manifest is required.
        images: Folder whose image files are compared with the hashes of the questions' images.
    """
    proof = Proof()
    if found := unreadable(release):
        proof.add(found)
        return proof
    run = Verification.of(release, render_card, signer)
    manifest = run.manifest
    rows = manifest.tables["responses"].rows if "responses" in manifest.tables else 0
    # The seed follows from all that the release says: it cannot be chosen apart from that.
    sample = Sample(rows, rows if full else SAMPLE, int(manifest.digest[:8] or "0", 16))
    run.watch["responses"] = sample.add
    proof.add(check(run))
    if any(one.check != "signature" for one in proof.findings):
        return proof  # what is damaged, or not what was sealed, is not computed further
    proof.add(_seal(run))
    evidence = Evidence(release, manifest, run.tables, full, sample, images=images)
    for prove in PROOFS:
        try:
            proof.add(prove(evidence))
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:  # figures and recipes of a stranger can be of any form
            why = f"cannot be computed: {type(error).__name__}: {first_line(error)}"
            proof.findings.append(Finding("proof", prove.__name__.replace("_", " "), why))
    evidence.forget()
    proof.add(_files(evidence, run.readable, render_files))
    proof.add(_word(evidence))
    return proof


def _seal(run: Verification) -> Results:
    """What `check` established."""
    manifest = run.manifest
    says = f"{len(manifest.files)} files and {len(manifest.tables)} tables are what was sealed"
    yield proved("manifest", says)
    yield proved("outcomes", "outcomes, wide table, summaries and database follow from the tables")
    if run.unchecked:
        says = f"{len(run.unchecked)} lines in words of another version: {run.unchecked[0]}"
        yield believed("card", says)
    yield proved(
        "card",
        "each other line of README.md with figures follows from the data"
        if run.unchecked
        else "each line of README.md follows from the data",
    )
    if run.signer is not None:
        yield proved("signature", "the manifest was signed with that key")
    else:
        yield believed("signature", "who made the release: no key was given (`--signer`)")


def _files(evidence: Evidence, readable: set[str], render_files: RenderFiles | None) -> Results:
    """Plots and metadata, rendered once more where the same code made them."""
    manifest = evidence.manifest
    names = sorted(
        name for name in readable if not name.startswith(("data/", "numbered/", "README"))
    )
    if render_files is None or not names:
        return
    if not evidence.same_code or not evidence.has(*manifest.tables):
        yield believed("files", f"{', '.join(names)[:200]}: made by another version of the code")
        return
    tables = {name: evidence.tables[name] for name in manifest.tables}
    fresh = render_files(tables, card_facts(manifest))
    wrong = [name for name in names if (evidence.release / name).read_bytes() != fresh.get(name)]
    for name in wrong:
        says = "differs from what the tables give, or belongs to no release"
        yield Finding("file", name, says)
    if not wrong:
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
    computed = ("signals", "entropies") if "preference" in evidence.applied else ()
    for name in ("embeddings", "hidden_states", "descriptors", "signals", "entropies"):
        if evidence.rows(name) and name not in computed:
            yield believed(name, f"{evidence.rows(name):,} rows of encoders and local models")
    if evidence.rows("duplicates"):
        yield believed("duplicates", "similarities: they need the encoder")
    if evidence.manifest.sources:
        says = "that questions, references, ids and metadata are those of the sources"
        yield believed("sources", says)
