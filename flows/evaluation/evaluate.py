"""Routers compared on a release, and the release certified; `import routeyard` offers both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeyard.flows.console import line
from routeyard.flows.evaluation.kept import store_in
from routeyard.flows.evaluation.released import (
    out_folder,
    read_release,
    with_beside,
    with_embeddings,
)
from routeyard.flows.evaluation.router_specs import from_code, from_file, makers, pair_scorers
from routeyard.flows.workspace.memory_needs import BASE
from routeyard.pipelines import memory
from routeyard.pipelines.experiment.settings import EvaluationSettings, lists_settings
from routeyard.pipelines.matrix.reading import core_of

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.pipelines.evaluate.certificate import Certificate
    from routeyard.pipelines.evaluate.run import Evaluation
    from routeyard.pipelines.matrix.core import Core

#: Where commands keep embeddings that a release lacks, and predictions of routers.
CACHE = Path("yard/cache/embeddings")


@lists_settings
def evaluate(
    release: str | Path,
    routers: Sequence[str] | Mapping[str, Any] | None = None,
    settings: EvaluationSettings | None = None,
    *,
    router_from: Sequence[str] = (),
    predictions: Sequence[str | Path] = (),
    embeddings: Path | None = None,
    also: Sequence[str | Path] = (),
    cache: Path | None = CACHE,
    picks: Mapping[str, Mapping[str, float]] | None = None,
    **more: Any,
) -> Evaluation:
    """Compare routers on a release: metrics with intervals, curves, tests.

    Routers learn from the train questions, choose hyperparameters on the validation
    questions and are measured on the test questions. What a router of a name or of a file
    predicts is kept in `cache`, and read there by whoever asks the same again.

    Args:
        release: A release directory.
        routers: Names of registered routers, or name → router (class or object with
            `fit(train)` and `scores(queries)`, or the name of a registered one); by
            default the reference routers.
        settings: How they are fitted and measured.
        router_from: `module:Class` or `file.py:Class` of your own routers; this runs it.
        predictions: CSV or Parquet files with query_id, model_id[, score].
        embeddings: Parquet with query_id and vector, in place of the release's.
        also: Files or folders of tables beside the release: descriptors, hidden states,
            signals, entropies, preferences.
        cache: Folder of embeddings and predictions; None keeps no predictions.
        picks: A judge's: router → query → 1 where its answer was preferred, else 0.
        more: Settings by name, such as `seeds=5`; they replace those of `settings`.

    Returns:
        An `Evaluation`: Arrow tables `metrics`, `curves`, `comparisons`, `profiles`,
        `exchanges`, `choices`, `ood`, and `ranking`, `facts` and `settings`.

    Raises:
        BadInput: no release there, no such router or split scheme.
    """
    how = (settings or EvaluationSettings()).but(**more)
    tables = with_beside(read_release(Path(release)), [Path(place) for place in also])
    tables = with_embeddings(tables, embeddings, how.embed, cache or CACHE, how.encoder, how.scheme)
    return evaluate_tables(
        tables, routers, how,
        router_from=router_from, predictions=predictions, picks=picks, cache=cache,
    )  # fmt: skip


def evaluate_tables(
    tables: Mapping[str, pa.Table],
    routers: Sequence[str] | Mapping[str, Any] | None,
    settings: EvaluationSettings,
    *,
    router_from: Sequence[str] = (),
    predictions: Sequence[str | Path] = (),
    picks: Mapping[str, Mapping[str, float]] | None = None,
    cache: Path | None = None,
    core: Core | None = None,
) -> Evaluation:
    """As `evaluate`, of tables that were read already, and of their core where it is at hand."""
    from routeyard.pipelines.evaluate.pairs import default_pair
    from routeyard.pipelines.evaluate.run import evaluate as run
    from routeyard.pipelines.experiment.splits import default_scheme

    core = core_of(tables, whole=False) if core is None else core
    chosen = default_scheme(core, settings.scheme)
    theirs = [*map(from_code, router_from), *(from_file(Path(path)) for path in predictions)]
    specs = makers(core, routers) | {one.name: one for one in theirs}
    own = [one.name for one in theirs]
    if isinstance(routers, Mapping):
        own += [name for name, given in routers.items() if not isinstance(given, str)]
    duel = settings.pair or default_pair(core)
    trained = {}
    if duel and settings.pair_routers:
        trained = pair_scorers(core, tables, chosen, duel, settings.basis)
    line("evaluate", f"{', '.join(specs)} on scheme {chosen!r}")
    done = run(
        core, specs, settings, scheme=chosen, pair=duel, pair_scorers=trained, picks=picks,
        own=own, store=store_in(cache, specs.values()),
    )  # fmt: skip
    for name, beyond in done.facts.get("no_chances", {}).items():
        line(
            "note",
            f"the scores of {name!r} {beyond}: they are not probabilities, so utility at a weight "
            'is unknown. Scale them to [0, 1], or declare `traits = Traits(scale="strength")`',
        )
    for name, columns in done.facts.get("not_read", {}).items():
        line("note", f"columns of {name!r} that were not read: {', '.join(map(repr, columns))}")
    for name, unlike in done.facts.get("not_as_published", {}).items():
        line("note", f"{name!r} is not as published: {'; '.join(unlike)}")
    line("evaluate", f"encoder: {done.facts['encoder'] or 'none'}")
    for words in done.facts["missing"]:
        line("evaluate", words)
    return done


def evaluate_into(
    release: Path,
    out: Path,
    routers: Sequence[str] | Mapping[str, Any] | None = None,
    settings: EvaluationSettings | None = None,
    *,
    certificate: bool = True,
    page: bool = True,
    router_from: Sequence[str] = (),
    predictions: Sequence[Path] = (),
    also: Sequence[Path] = (),
    embeddings: Path | None = None,
    picks: Mapping[str, Mapping[str, float]] | None = None,
    cache: Path = CACHE,
) -> tuple[Evaluation, dict[str, Any] | None, Path]:
    """As `evaluate`, written to a folder: the evaluation, its certificate and its HTML page.

    Args:
        certificate: Also write the routability certificate and put it on the page.
        page: Write the page and its plots; without them the folder is what `site` reads.
        router_from, predictions, also, embeddings, picks, cache: As for `evaluate`.

    Raises:
        BadInput: as `evaluate`, or `out` is in a release.
    """
    from routeyard.flows.evaluation.report import write_evaluation
    from routeyard.pipelines.evaluate.certificate import certify as run
    from routeyard.pipelines.evaluate.certificate.crossfit import REFERENCE, least_resamples
    from routeyard.pipelines.experiment.entrants import registered
    from routeyard.pipelines.io.staging import write_json

    how = settings or EvaluationSettings()
    memory.check("an evaluation", BASE)  # before hours of work
    tables = with_beside(read_release(release), also)
    folder = out_folder(release, out)
    tables = with_embeddings(tables, embeddings, how.embed, cache, how.encoder, how.scheme)
    core = core_of(tables, whole=False)
    done = evaluate_tables(
        tables, routers, how,
        router_from=router_from, predictions=predictions, picks=picks, cache=cache, core=core,
    )  # fmt: skip
    certified = None
    if certificate:
        certified = run(
            core,
            scheme=done.settings.scheme,
            # Of fewer resamples the certificate's verdict could not follow.
            resamples=max(how.resamples, least_resamples(len(REFERENCE))),
            seed=how.seed,
            cluster=how.cluster,
            store=store_in(cache, registered(list(REFERENCE))),
        ).to_json()
        write_json(folder / "certificate.json", certified)
    return done, certified, write_evaluation(folder, release, done, tables, certified, page=page)


def certify(
    release: str | Path,
    *,
    embeddings: Path | None = None,
    embed: bool | None = None,
    encoder: str | None = None,
    cache: Path = CACHE,
    scheme: str | None = None,
    measure: str | None = None,
    resamples: int = EvaluationSettings.resamples,
    seed: int = 0,
    cluster: str | None = None,
) -> Certificate:
    """Whether a release can tell routers apart, and how surely.

    Args:
        release: A release directory.
        embeddings: As for `evaluate`.
        embed: Compute embeddings that the release lacks. Default: where the certificate of its
            build had some, so that the same routers are tried.
        encoder: As for `evaluate`; where the release lacks embeddings, that of the certificate of
            its build.
        cache: Folder of embeddings and predictions.
        scheme: Split scheme. Default: the release's own, `upstream` before `dense`.
        measure: Cost measure: `usd`, `tokens`, `latency` or `params`. Default: the first there is.
        resamples: Number of bootstrap resamples.
        seed: Seed of the bootstrap.
        cluster: Resample whole groups: `duplicates` or `task`. Default: single questions.

    Returns:
        A `Certificate` with `verdict`, `words` and `to_json()`.
    """
    from routeyard.pipelines.evaluate.certificate import certify as run
    from routeyard.pipelines.evaluate.certificate.crossfit import REFERENCE
    from routeyard.pipelines.experiment.entrants import registered
    from routeyard.pipelines.matrix.question_columns import unseen_images

    tables = read_release(Path(release))
    if embed is None and encoder is None and embeddings is None and "embeddings" not in tables:
        encoder = as_built(Path(release))
        if encoder:
            line("certify", f"embeddings of {encoder}, as the build had them; --no-embed: without")
    tables = with_embeddings(tables, embeddings, bool(embed), cache, encoder, scheme)
    store = store_in(cache, registered(list(REFERENCE)))
    core = core_of(tables, whole=False)
    if unseen := unseen_images(core.metadata):
        line("certify", unseen)
    return run(
        core, store=store, scheme=scheme, measure=measure,
        resamples=resamples, seed=seed, cluster=cluster,
    )  # fmt: skip


def as_built(release: Path) -> str | None:
    """The encoder that the certificate of a release was made with; None without any."""
    from routeyard.pipelines.release.manifest import MANIFEST, read_manifest

    if not (release / MANIFEST).is_file():
        return None
    manifest = read_manifest(release)
    stored = (manifest.figures.get("certify") or {}).get("certificate") or {}
    return None if stored.get("encoder") is None else str(stored["encoder"])
