"""Routers compared on a release, and the release certified; `import routeyard` offers both."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from routeyard.flows.console import line
from routeyard.flows.evaluation.released import (
    code_of_fits,
    out_folder,
    read_release,
    with_beside,
    with_embeddings,
)
from routeyard.flows.workspace import BASE
from routeyard.pipelines.common import machine as memory
from routeyard.pipelines.common.arrays import Array
from routeyard.pipelines.common.matrix import Core, Queries, core_of, unseen_images
from routeyard.pipelines.common.staging import write_json, write_parquet
from routeyard.pipelines.evaluate.experiment import (
    Predictions,
    RouterSpec,
    default_scheme,
    handed_over,
    own,
    read_predictions,
    registered,
)
from routeyard.pipelines.evaluate.fit import PredictionStore
from routeyard.pipelines.evaluate.run.fitted import LABELS, battles_on, misled, trained
from routeyard.pipelines.evaluate.run.fitted import duels_agreement as agreement
from routeyard.pipelines.evaluate.settings import Bands, EvaluationSettings, lists_settings
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import (
    Study,
    StudyCell,
    StudyContext,
    check,
    context_for,
    lacking,
    leaks,
    table_of,
    untaken,
)
from routeyard.pipelines.release.manifest import MANIFEST, read_manifest
from routeyard.pipelines.routers import PAIR_ROUTERS, REFERENCE
from routeyard.schemas.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.pipelines.evaluate.certificate import Certificate
    from routeyard.pipelines.evaluate.run import Evaluation

# What the options of `routeyard evaluate` say: groups of tasks, bands, a judge's picks.


def parse_groups(texts: Sequence[str] | None) -> dict[str, list[str]] | None:
    """`name=pattern,pattern` or the name of a known group (`stem`), again for more groups."""
    from routeyard.pipelines.common.pool import OOD_GROUPS

    groups: dict[str, list[str]] = {}
    for text in texts or []:
        name, _, patterns = text.partition("=")
        if text in OOD_GROUPS:
            groups[text] = list(OOD_GROUPS[text])
            continue
        listed = [pattern.strip() for pattern in patterns.split(",") if pattern.strip()]
        if not name.strip() or not listed:
            raise BadInput(
                f"{text!r} is no group of tasks",
                next_step="write it as stem=mmlu_physics*,gsm8k, or name one: "
                + ", ".join(OOD_GROUPS),
            )
        groups[name.strip()] = listed
    return groups or None


def parse_bands(text: str) -> Bands:
    """`d1_lpm,d1_mpm,low,high`."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 4:
        raise BadInput(f"{text!r} gives no bands", next_step="write them as 0.25,0.30,0.85,0.95")
    return Bands(*values)


def read_picks(path: Path) -> dict[str, dict[str, float]]:
    """router → query → 1 where the judge selected its answer, 0 where another's.

    Every judged question counts for every router that is named anywhere.
    """
    if not path.is_file():
        raise BadInput("there is no such file of picks", where=str(path))
    table = read_predictions(path)
    missing = [c for c in ("query_id", "router") if c not in table.column_names]
    if missing:
        raise BadInput(
            f"the file of picks lacks column {missing[0]!r}",
            where=str(path),
            next_step="columns: query_id, router (the one whose answer the judge selected)",
        )
    picked = dict(zip(*(table.column(c).to_pylist() for c in ("query_id", "router")), strict=True))
    return {
        router: {query: float(picked[query] == router) for query in picked}
        for router in sorted(set(picked.values()))
    }


# Routers of an evaluation: registered ones, someone's own code, files of predictions.

#: Reference routers that read no embeddings.
BLIND = ("best-generalist", "random")


def makers(core: Core, routers: Sequence[str] | Mapping[str, Any] | None) -> dict[str, RouterSpec]:
    """Name → router: registered names, or a mapping with routers or router classes of your own.

    A mapping may hold registered names too, so that yours are beside ours under names
    of your choice. None means the reference routers that the release can feed.
    """
    if isinstance(routers, Mapping):
        return {name: handed_over(name, router) for name, router in routers.items()}
    names = list(REFERENCE) if routers is None else list(routers)
    if core.embeddings is None and routers is None:
        names = [name for name in names if name in BLIND]
        line("evaluate", "no embeddings: only routers that need none; add --embed for the others")
    return {spec.name: spec for spec in registered(names)}


def reference(name: str) -> RouterSpec:
    """A registered router, which is a maker of one for a seed."""
    return registered([name])[0]


def from_code(target: str) -> RouterSpec:
    """A router class in someone's own module.

    This runs that module. It is reached only through a flag that names it.

    Raises:
        BadInput: neither `module:Class` nor `file.py:Class`, not importable, or not a router.
    """
    spec = own(target)
    spec(0)  # a constructor that fails is reported before anything is computed
    return spec


def from_file(path: Path) -> RouterSpec:
    """A router that is a CSV or Parquet file of predictions."""

    return handed_over(path.stem, Predictions(read_predictions(path), path.stem))


def pair_scorers(
    core: Core,
    tables: Mapping[str, pa.Table],
    scheme: str,
    pair: tuple[str, str],
    basis: str | None = None,
) -> dict[str, Callable[[Queries], Array]]:
    """The pair routers, trained on the release's preferences or, without any, on its labels.

    Battles of test questions are never used. The names say what the battles were
    decided on: `pair-knn[correctness]`.

    Raises:
        BadInput: the preferences have several bases and none is named, or the one named is absent.
    """
    from routeyard.pipelines.routers.pairs import of_one_basis

    if core.embeddings is None:
        return {}
    battles, called = battles_on(core, tables.get("preferences"), scheme, pair, basis)
    if called == LABELS:
        line("pairs", f"no preferences in the release: trained on {len(battles.outcome)} labels")
    else:
        agree, total = agreement(core, scheme, of_one_basis(tables["preferences"], basis))
        where = f"the right model in {agree} of {total} records in which one alone is right"
        if misled(agree, total):
            line("note", f"no pair routers: preferences by {called} name {where}, which is less "
                 "than chance: take another --basis")  # fmt: skip
            return {}
        line("pairs", f"trained on {len(battles.outcome)} records decided by {called}; {where}")
    result = trained(battles, pair, [name for name in PAIR_ROUTERS.names() if _usual(name)])
    return {f"{name}[{called}]": scores for name, scores in result.items()}


def _usual(name: str) -> bool:
    """Whether a pair router runs when none is named; those that refuse a set of ties do not."""
    return name not in ("pair-mf-as-printed", "pair-mlp-as-printed")


def parse_pair(text: str | None) -> tuple[str, str] | None:
    """`small,large`."""
    if text is None:
        return None
    names: Sequence[str] = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise BadInput(f"{text!r} is no pair of models", next_step="write it as small,large")
    return names[0], names[1]


# An evaluation written for people and programs: tables, plots and one HTML page.

_TABLES = ("metrics", "curves", "comparisons", "profiles", "exchanges", "choices", "ood")


def write_evaluation(
    folder: Path,
    release: Path,
    done: Evaluation,
    tables: Mapping[str, pa.Table],
    certificate: Mapping[str, Any] | None,
    *,
    page: bool = True,
) -> Path:
    """Everything of an evaluation into a folder; returns the page, or without one the folder."""
    from routeyard.datacards.reports.evaluation import lookup, plot_all, report
    from routeyard.datacards.site.evaluation import EvaluationTables

    write_tables(folder, {name: getattr(done, name) for name in _TABLES})
    summary: dict[str, Any] = {"facts": done.facts, "ranking": done.ranking}
    if (release / MANIFEST).is_file():
        # Beside the figures, so that no page shows them under another version.
        sealed = read_manifest(release)
        summary["release"] = {"name": sealed.name, "version": sealed.version}
        summary["release"]["fingerprint"] = sealed.fingerprint
    write_json(folder / "evaluation.json", summary)
    if not page:
        return folder
    title = f"Routers on {release.resolve().parent.name} {release.resolve().name}"
    shown = {field.name: getattr(done, field.name) for field in fields(EvaluationTables)[1:]}
    item = EvaluationTables(title, **shown)
    models = sorted(tables["models"].column("model_id").to_pylist())
    simulated = any(tables["models"].column("simulated").to_pylist())
    plot_all(folder, item, models, simulated=simulated)
    ids = sorted(set(done.choices.column("query_id").to_pylist()))
    answers = lookup(tables, ids, done.choices)
    text = report(item, models=models, simulated=simulated, certificate=certificate, lookup=answers)
    evaluation = folder / "report.html"
    evaluation.write_text(text, encoding="utf-8")
    return evaluation


def write_tables(out: Path, tables: Mapping[str, pa.Table | None]) -> None:
    """Parquet files, written beside and renamed, zstd."""

    for name, table in tables.items():
        if table is not None:
            write_parquet(out / f"{name}.parquet", table)


# Where predictions are kept between commands, and what code decides them.

#: Folder of `--cache` that holds the predictions of every command.
FOLDER = "predictions"


def predictions_in(cache: Path) -> Path:
    """The folder of predictions in a cache; absolute, since other processes write there too."""
    return (cache / FOLDER).resolve()


def store_in(cache: Path | None, specs: Iterable[RouterSpec]) -> PredictionStore | None:
    """The predictions of these routers; None where nothing can be kept in the cache."""
    if cache is None:
        return None
    folder = predictions_in(cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    return PredictionStore(folder, code_of(spec for spec in specs if spec.given is None))


def code_of(specs: Iterable[RouterSpec]) -> dict[str, str]:
    """Router → hash of all code that its figures depend on; of other people's, of their files."""
    code = {}
    for spec in specs:
        module = spec.target.rpartition(":")[0]
        hashed = hashlib.sha256(code_of_fits().encode())
        if module.endswith(".py"):
            for file in sorted(reached(Path(module))):
                hashed.update(file.read_bytes())
        elif not spec.is_table and not module.startswith("routeyard.pipelines."):
            # Another package's: its own file, and its version for what that file imports.
            hashed.update(_foreign(module))
        code[spec.name] = hashed.hexdigest()[:16]
    return code


def reached(file: Path) -> set[Path]:
    """A file of someone's own and the files beside it, or where we were started, it imports."""
    from modulefinder import ModuleFinder

    finder = ModuleFinder([str(file.resolve().parent), str(Path.cwd())])
    finder.run_script(str(file))
    paths = (vars(module)["__file__"] for name, module in finder.modules.items()
             if name != "__main__")  # fmt: skip
    return {file, *(Path(path).resolve() for path in paths if path)}


def _foreign(module: str) -> bytes:
    """Source of a module of another package and the versions it is distributed in."""
    from importlib.metadata import packages_distributions, version
    from importlib.util import find_spec

    spec = find_spec(module)
    source = b""
    if spec and spec.origin and spec.origin.endswith(".py"):
        source = b"".join(item.read_bytes() for item in sorted(reached(Path(spec.origin))))
    names = sorted(set(packages_distributions().get(module.partition(".")[0], [])))
    return source + json.dumps([f"{name}=={version(name)}" for name in names]).encode()


#: Where commands keep embeddings that a release lacks, and predictions of routers.
EVALUATION_CACHE = Path("yard/cache/embeddings")


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
    cache: Path | None = EVALUATION_CACHE,
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
    tables = with_embeddings(
        tables, embeddings, how.embed, cache or EVALUATION_CACHE, how.encoder, how.scheme,
        how.device,
    )  # fmt: skip
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
    from routeyard.pipelines.evaluate.results import default_pair
    from routeyard.pipelines.evaluate.run import REFERENCES
    from routeyard.pipelines.evaluate.run import evaluate as run

    core = core_of(tables, whole=False) if core is None else core
    chosen = default_scheme(core, settings.scheme)
    theirs = [*map(from_code, router_from), *(from_file(Path(path)) for path in predictions)]
    specs, own = makers(core, routers), [item.name for item in theirs]
    taken = [*specs, *REFERENCES, *own]
    if clash := next((name for name in own if taken.count(name) > 1), None):
        raise BadInput(
            f"two routers are called {clash!r}, and results go by the name",
            next_step="give yours another `name`, or the file of its predictions another name",
        )
    specs |= {item.name: item for item in theirs}
    if isinstance(routers, Mapping):
        own += [name for name, router in routers.items() if not isinstance(router, str)]
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
    also: Sequence[Path] = (),
    embeddings: Path | None = None,
    cache: Path = EVALUATION_CACHE,
    **value: Any,
) -> tuple[Evaluation, dict[str, Any] | None, Path]:
    """As `evaluate`, written to a folder: the evaluation, its certificate and its HTML page.

    Args:
        certificate: Also write the routability certificate and put it on the page.
        page: Write the page and its plots; without them the folder is what `site` reads.
        also, embeddings, cache, given: As for `evaluate`, `value` router_from, predictions, picks.

    Raises:
        BadInput: as `evaluate`, or `out` is in a release.
    """
    from routeyard.pipelines.evaluate.certificate import REFERENCE, least_resamples
    from routeyard.pipelines.evaluate.certificate import certify as run

    how = settings or EvaluationSettings()
    memory.check("an evaluation", BASE)  # before hours of work
    tables = with_beside(read_release(release), also)
    folder = out_folder(release, out)
    tables = with_embeddings(
        tables, embeddings, how.embed, cache, how.encoder, how.scheme, how.device
    )
    core = core_of(tables, whole=False)
    done = evaluate_tables(tables, routers, how, cache=cache, core=core, **value)
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
    cache: Path = EVALUATION_CACHE,
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
    from routeyard.pipelines.evaluate.certificate import REFERENCE
    from routeyard.pipelines.evaluate.certificate import certify as run

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

    if not (release / MANIFEST).is_file():
        return None
    manifest = read_manifest(release)
    stored = (manifest.figures.get("certify") or {}).get("certificate") or {}
    return None if stored.get("encoder") is None else str(stored["encoder"])


# Runs studies on a release: Parquet, Markdown, HTML and a plot for each.

#: Attributes of a study in the list of studies, and on its page.
_LISTED = ("name", "paper", "item", "title")
_PRINTED = (*_LISTED, "rows", "plot", "plot_column", "axes")


def listed() -> list[dict[str, Any]]:
    """Every study: name, paper, item, title, needs."""
    studies = map(STUDIES.get, STUDIES.names())
    return [
        {key: getattr(study, key) for key in _LISTED} | {"needs": list(study.needs)}
        for study in studies
    ]


def context_of(release: Path, tables: Mapping[str, pa.Table], **how: Any) -> StudyContext:
    """The data of a release directory for studies; `how` as `StudyContext` has it."""
    return StudyContext(release=named(release)[0], tables=tables, make=reference, **how)


def named(release: Path) -> tuple[str, str]:
    """Name and version of a release: from its manifest, else from its folder."""
    manifest = release / "manifest.json"
    if manifest.is_file():
        content = json.loads(manifest.read_text(encoding="utf-8"))
        return str(content["name"]), str(content["version"])
    return release.resolve().name, "?"


def run_study(
    name: str, inputs: StudyContext, release: Path, out: Path, *, one_of_many: bool = False
) -> dict[str, Any]:
    """Run one study and write `<name>.parquet`, `.md`, `.html` and, with a plot, `.svg`.

    Args:
        one_of_many: A router or a release that this study does not read is given for others: its
            notes say so, and nothing is refused.

    Raises:
        UnknownName: there is no such study.
        BadInput: the release lacks what the study needs, or something is given that it does not
            read.
    """
    study: Study = STUDIES.get(name)
    check(study, inputs, one_of_many=one_of_many)
    context, only = context_for(study, inputs)
    curves = study.curves(context) if study.curves else None
    cells = study.cells(context)
    unread = " and ".join(untaken(study, inputs))
    said = [
        f"Figures are over {only}." if only else "", leaks(study, inputs),
        f"{unread} was given, which this study does not read." if unread else "",
    ]  # fmt: skip
    write_study(study, cells, curves, inputs.release, release, out, list(filter(None, said)))
    return {"study": study.name, "cells": len(cells), "out": str(out / f"{study.name}.md")}


def write_study(
    study: Study,
    cells: Sequence[StudyCell],
    curves: pa.Table | None,
    called: str,
    release: Path,
    out: Path,
    notes: Sequence[str] = (),
) -> str | None:
    """Write what a study found on a release, as `run_study` does; its drawing for a page."""
    from routeyard.datacards.charts import PAGE
    from routeyard.datacards.reports.study import markdown, page, plot

    name, table = study.name, table_of(study, cells, called)
    _, version = named(release)
    about = {
        **{key: getattr(study, key) for key in _PRINTED},
        "notes": [*study.notes, *notes, *(study.printed_notes if called in study.printed else ())],
        "release": called,
        "version": version,
    }
    figure = plot(about, table, curves)
    drawn = plot(about, table, curves, PAGE)
    write_tables(out, {name: table, f"{name}_curves": curves})
    (out / f"{name}.md").write_text(markdown(about, table), encoding="utf-8")
    (out / f"{name}.html").write_text(page(about, table, drawn), encoding="utf-8")
    if figure is not None:
        (out / f"{name}.svg").write_text(figure, encoding="utf-8")
    return drawn


def run_all(
    context: StudyContext, release: Path, out: Path
) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Every study the release has what it needs for; what was left out, with need and remedy.

    One that does not read a router or a release that was given says so in its notes.
    """
    done: list[str] = []
    left: list[tuple[str, str, str]] = []
    for name in STUDIES.names():
        missing = lacking(STUDIES.get(name), context)
        if missing:
            left.append((name, *missing[0]))
            continue
        run_study(name, context, release, out, one_of_many=True)
        done.append(name)
    write_index(out, context.release, done, left)
    return done, left


def write_index(
    out: Path, release: str, done: Sequence[str], left: Sequence[tuple[str, str, str]]
) -> None:
    """`index.md`: the tables of the studies in `done`, and what was left out, with need and why."""
    parts = [f"# Studies of {release}\n"]
    parts += [(out / f"{name}.md").read_text(encoding="utf-8") for name in done]
    if left:
        rows = [f"- `{name}` needs {need}: {then}." for name, need, then in left]
        parts.append("## Not applicable\n\n" + "\n".join(rows) + "\n")
    (out / "index.md").write_text("\n".join(parts), encoding="utf-8")


def release_of(name: str, release: Path | None) -> Path:
    """The release of a call `study NAME RELEASE`.

    Raises:
        BadInput: none is given.
    """
    if release is None:
        raise BadInput(
            f"`study {name}` needs a release",
            next_step=f"routeyard study {name} yard/releases/<name>/<version> --out results",
        )
    return release
