"""Extensions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer

from routeyard.extensions.tuning.encoder import TuningSettings
from routeyard.extensions.tuning.tune import Grid, read, tune
from routeyard.flows.cli.options import (
    CACHE,
    YARD,
    Embed,
    Output,
    Resamples,
    WrittenPath,
    WrittenWorkspace,
    comma_list,
    plain,
)
from routeyard.flows.console import counter, line
from routeyard.flows.evaluation.evaluate import context_of, named, store_in, write_study
from routeyard.flows.evaluation.released import (
    Tables,
    out_folder,
    read_with,
    vectors,
    with_embeddings,
)
from routeyard.flows.evaluation.zoo import measured, run
from routeyard.flows.recipe import find, load, read_yaml, shipped
from routeyard.papers import PAPERS
from routeyard.papers.paper import Paper, SmallTuning
from routeyard.papers.reproduction import (
    Counts,
    Reproduction,
    Stand,
    alike,
    prepared,
    reproduction,
    simulated,
    tally,
)
from routeyard.pipelines.common import encoders
from routeyard.pipelines.common.arrays import Vectors, single_means
from routeyard.pipelines.common.encoders import NAME as TFIDF
from routeyard.pipelines.common.matrix import Core, core_of
from routeyard.pipelines.common.staging import place, staging, write_text
from routeyard.pipelines.evaluate.experiment import default_scheme, registered
from routeyard.pipelines.evaluate.fit import CellInputs
from routeyard.pipelines.evaluate.results import default_pair
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.settings import FIRST_SEED, EvaluationSettings
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import StudyContext, ZooFigures
from routeyard.pipelines.evaluate.zoo import run as zoo
from routeyard.pipelines.evaluate.zoo.report import cells_table
from routeyard.schemas.errors import BadInput, RouteyardError
from routeyard.schemas.recipe import ENCODER

# The releases of a reproduction as studies read them: one context for each, embedded once.


def _embedded(tables: Tables, cache: Path, *, wanted: bool) -> Tables:
    """The tables with the papers' embeddings, where they are wanted and none are there."""
    own = ENCODER if wanted and "embeddings" not in tables else None
    return with_embeddings(tables, None, False, cache, own)


def stands_of(
    paper: Paper, releases: Mapping[str, Path], also: Sequence[Path], cache: Path, resamples: int
) -> dict[str, Stand]:
    """Benchmark → the release used for it, with what its paper puts in where it lacks it.

    Args:
        releases: Benchmark → folder of its release.
        also: Tables beside the releases.
        cache: Where embeddings and predictions are kept.
    """
    embed = {releases[name] for name in releases if paper.benchmarks[name].embed}
    places = set(releases.values())
    learnt = {releases.get(paper.benchmarks[n].trained_on or "", p) for n, p in releases.items()}
    whole = {spot: read_with(spot, also) for spot in places}
    tables = {}
    for spot, own in whole.items():
        part = own if spot in learnt else tested_part(own)
        tables[spot] = _embedded(part, cache, wanted=spot in embed)
    contexts: dict[tuple[Path, Path | None], Stand] = {}
    found = {}
    for name, spot in releases.items():
        benchmark = paper.benchmarks[name]
        source = releases.get(benchmark.trained_on or "")
        key = (spot, source if source != spot else None)
        if key not in contexts:
            first, tested = spot, {}
            if key[1] is not None:
                first, tested = key[1], {named(spot)[0]: tables[spot]}
            context = context_of(
                first, tables[first], tested=tested, resamples=resamples, pair=benchmark.pair,
                kept=partial(store_in, cache),
            )  # fmt: skip
            context.routers = paper.study_routers
            if context.pair is not None and set(context.pair) - set(context.core.model_ids):
                context.pair = pair_in_place(context.core, context.default_scheme())
                line("pair", f"{' and '.join(context.pair)} on {context.release}")
            if context.pair is not None and simulated(context.tables["models"]):
                # A program plays both: which of them is the better one is its throw.
                context.pair = by_accuracy(context.core, context.default_scheme(), context.pair)
            contexts[key] = Stand(context, whole=whole[spot] if tested else None)
        stand = alike(contexts[key], name, benchmark.size, benchmark.release)
        if paper.prepare and stand.unlike:
            line("prepare", f"{name}: what {stand.release} lacks")
        found[name] = prepared(paper, stand)
    return found


def pair_in_place(core: Core, scheme: str) -> tuple[str, str]:
    """(small, large) of a pool that lacks the paper's: of more than two models the one of median
    accuracy on train and the most accurate."""
    if (pair := default_pair(core)) is not None:
        return pair
    means = single_means(core.labels[core.rows(scheme, "train")])
    real = [k for k, name in enumerate(core.model_ids) if core.kinds.get(name, "real") == "real"]
    order = sorted(real, key=lambda k: -np.inf if np.isnan(means[k]) else means[k])
    return core.model_ids[order[(len(order) - 1) // 2]], core.model_ids[order[-1]]


def by_accuracy(core: Core, scheme: str, pair: tuple[str, str]) -> tuple[str, str]:
    """Two models, the more accurate one on train last."""
    means = single_means(core.labels[core.rows(scheme, "train")])
    one, other = (float(means[core.place(name)]) for name in pair)
    return pair if one <= other else (pair[1], pair[0])


def tested_part(tables: Tables) -> Tables:
    """The tables of a release that is only tested on: its other questions are never read."""
    splits, queries = tables["splits"], tables["queries"]
    wanted = pc.equal(splits.column("scheme"), default_scheme(core_of(tables), None))
    test = splits.filter(pc.and_(wanted, pc.equal(splits.column("split"), "test")))
    asked = pc.is_in(queries.column("query_id"), value_set=test.column("query_id").combine_chunks())
    return tables.also("queries", queries.filter(asked))


# `zoo tune` in small for a paper's tables of trained encoders, where no release is named.

#: The encoder that is trained, and with fewer of its layers as the smaller one.
TUNING_ENCODER = "minilm"


def with_tuned(
    paper: Paper, small: SmallTuning, stands: Mapping[str, Stand], folder: Path, cache: Path
) -> None:
    """Put choices of routers with frozen and trained encoders beside the releases that need them.

    Args:
        folder: Where cells are kept; those that are there are not trained again.
        cache: Where the encoder with fewer layers is kept.
    """
    if find_spec("accelerate") is None:
        line("left out", "trained encoders: pip install -c constraints.txt '.[tune]'")
        return
    made: dict[str, pa.Table] = {}
    for item, one in paper.items.items():
        if not one.study or "tuned" not in STUDIES.get(one.study).needs:
            continue
        for name in paper.benchmarks_of(item):
            context = stands[name].context if name in stands else None
            if context is None or "tuned" in context.tables:
                continue
            if context.release not in made:
                made[context.release] = _tuned(small, context, folder / context.release, cache)
            table = made[context.release]
            context.tables = (
                context.tables.also("tuned", table)
                if isinstance(context.tables, Tables)
                else {**context.tables, "tuned": table}
            )


def _tuned(small: SmallTuning, context: StudyContext, folder: Path, cache: Path) -> pa.Table:
    core, scheme = read(context.tables, context.default_scheme())
    grid = Grid(
        small.routers, (str(fewer_layers(small.layers, cache)), TUNING_ENCODER), small.rows,
        ("frozen", "tuned"), (FIRST_SEED,),
    )  # fmt: skip
    settings = TuningSettings(epochs=small.epochs, tokens=small.tokens, head_first=True)
    line("tune", f"{context.release}, {' and '.join(map(str, small.rows))} train questions")
    tune(core, scheme, grid, settings, folder)
    return pq.read_table(folder / "tuned.parquet")


def fewer_layers(layers: int, cache: Path) -> Path:
    """Folder of the encoder's first layers, made where it is not there."""
    folder = cache / "encoders" / f"{Path(TUNING_ENCODER).name}-{layers}-layers"
    if not (folder / "modules.json").is_file():
        model = encoders.loaded(encoders.ALIASES.get(TUNING_ENCODER, TUNING_ENCODER))
        inside = model[0].auto_model
        inside.encoder.layer = inside.encoder.layer[:layers]
        inside.config.num_hidden_layers = layers
        with staging(folder) as unfinished:
            model.save(str(unfinished))
            place(unfinished, folder)
    return folder


# The zoo behind a paper's tables: its routers and encoders, with or without the whole search.


def zoo_figures(
    paper: Paper,
    context: StudyContext,
    folder: Path,
    *,
    encoders: Sequence[str],
    search: bool,
    cache: Path,
    beside: Sequence[str] = (),
) -> ZooFigures:
    """Figures of the paper's routers on a release; cells that are there are not fitted again.

    Args:
        encoders: As `routeyard zoo run` takes them; empty for those of the paper's that are here.
        search: All settings and seeds of the protocol; else each router's first setting once.
        beside: Encoders that are taken beside the paper's where none are named.
    """

    def ran() -> tuple[zoo.Zoo, CellInputs]:
        entrants = registered(list(paper.routers))
        found = run(
            _bare(context.core), context.default_scheme(), here(), entrants, folder,
            title=f"Routers of {paper.name} on {context.release}", search=search, cache=cache,
        )  # fmt: skip
        for (router, encoder), why in found[0].refused.items():
            line("left out", f"{router} with {encoder}: {why}")
        return found

    def here() -> dict[str, Vectors]:
        wanted = encoders or (*paper.encoders.values(), *beside)
        return context.once(
            "vectors", lambda: _vectors(context, wanted, cache, needed=bool(encoders))
        )

    def by_encoder() -> Mapping[str, Evaluation]:
        done, bench = context.once("zoo run", ran)
        how = EvaluationSettings(resamples=context.resamples)
        return {name: measured(bench, done, name, how) for name in here()}

    def on_train() -> Mapping[str, Mapping[str, float]]:
        done, _ = context.once("zoo run", ran)
        return {name: zoo.train_bce(done, name) for name in here()}

    def cells() -> object:
        return cells_table(context.once("zoo run", ran)[0].results)

    return ZooFigures(by_encoder, on_train, cells)


def _bare(core: Core) -> Core:
    """The core without embeddings: each cell reads its encoder's."""
    return replace(core, embeddings=None)


def _vectors(
    context: StudyContext, encoders: Sequence[str], cache: Path, *, needed: bool
) -> dict[str, Vectors]:
    """Encoder → vectors; of those that are not needed the ones whose weights are here.

    Raises:
        BadInput: no encoder can be had.
    """
    found: dict[str, Vectors] = {}
    for name in encoders:
        try:
            found |= vectors(
                context.tables, context.core, [name], scheme=context.default_scheme(), cache=cache
            )
        except (RouteyardError, OSError) as error:
            if needed:
                raise
            line("left out", f"encoder {name}: {str(error.args[0]).splitlines()[0]}")
    if not found:
        raise BadInput("no encoder of the paper is here", next_step="--encoders tfidf")
    return found


# A paper reproduced: releases, recorded matrices or a rehearsal in, a page and a JSON out.

#: Where `--data` reads recorded matrices.
DATA = "ROUTEYARD_DATA"
#: Curation rules that leave every question and model in its place.
KEEPING = ("preference", "upstream_split", "unseen_models", "dense_sparse")


def listed() -> list[dict[str, Any]]:
    """Every paper: name, title, reference, benchmarks, printed cells, tables and figures."""
    papers: list[Paper] = [PAPERS.get(name) for name in PAPERS.names()]
    return [
        {
            "name": paper.name,
            "title": paper.title,
            "reference": paper.reference,
            "benchmarks": {k: one.release or None for k, one in paper.benchmarks.items()},
            "tables_and_figures": sum(not item.drawing for item in paper.items.values()),
            "printed": sum(1 for item in paper.items for _ in paper.cells(item)),
        }
        for paper in papers
    ]


def reproduce(
    paper: str,
    on: Sequence[str | Path] = (),
    *,
    data: bool = False,
    out: str | Path = "reproduced",
    workspace: str | Path = "yard",
    also: Sequence[str | Path] = (),
    routers: Sequence[str] = (),
    encoders: Sequence[str] = (),
    search: bool | None = None,
    resamples: int = 2_000,
    cache: Path = CACHE,
) -> Reproduction:
    """Compute every table and figure of a paper, each value beside the one it prints.

    Args:
        paper: Name of a paper; `routeyard reproduce list` has them.
        on: Release folders, or `BENCHMARK=FOLDER`. A release of the recipe of one of the
            paper's benchmarks is used for that one, any other for the next that has none. Where
            routers learn from one benchmark and are tested on others of which none is named,
            they are tested on its own test questions.
        data: Build and use the shipped recipes over ROUTEYARD_DATA that replace the paper's.
        out: Folder for the page, the JSON and each study; a zoo that is there goes on.
        workspace: Where releases are built that are needed and not there.
        also: Tables beside the releases: descriptors, hidden states, signals, tuned routers.
        routers: Of the paper's routers only these.
        encoders: As `routeyard zoo run` takes them; by default those of the paper's that are here.
            Only for papers whose routers are the zoo's, like `search`.
        search: Whether the paper's own search of settings and seeds is run, which can take hours.
            By default it is on releases that are named, and elsewhere each router has its first
            setting and one fit.

    Returns:
        Cells with `value`, `low`, `high`, `printed_value`, `verdict` and `reason`; `summary()`.
        Without releases and `data`, the paper's recipes are rehearsed: no value is the paper's.

    Raises:
        UnknownName: there is no such paper.
        BadInput: a release is given for a benchmark that the paper does not have, there is
            neither a release nor anything to rehearse, or an argument is given that nothing of
            this paper reads.
    """
    known: Paper = PAPERS.get(paper)
    given = {"routers": routers, "encoders": encoders, "search": search is not None}
    for name in [n for n, there in given.items() if there and n not in known.reads]:
        raise BadInput(
            f"nothing of {paper} reads {name!r}", where=f"--{name}", next_step="leave it out"
        )
    known = replace(known, routers=tuple(routers) or known.routers)
    folder = Path(out)
    releases = _releases(known, on, data, Path(workspace))
    for release in releases.values():
        out_folder(release, folder)
    folder.mkdir(parents=True, exist_ok=True)
    stands = stands_of(known, releases, [Path(place) for place in also], cache, resamples)
    if known.zoo:
        for stand in {id(one): one for one in stands.values()}.values():
            stand.context.zoo = zoo_figures(
                known, stand.context, folder / "zoo" / stand.context.release,
                encoders=encoders, cache=cache,
                search=bool(on) if search is None else search,
                # What is spread over encoders is rehearsed with two of them.
                beside=() if on or data else [TFIDF],
            )  # fmt: skip
    if known.tuning is not None and not on:
        with_tuned(known, known.tuning, stands, folder / "tuned", cache)
    with counter("studies", "studies") as count:

        def told(done: int, wanted: int, said: str) -> None:
            count(done, wanted)
            if said:
                line("reproduce", f"{done + 1}/{wanted}: {said}")

        found = reproduction(known, stands, asked=asked_counts, on_progress=told)
    how = " ".join(f"--on {one}" for one in map(str, on)) or ("--data" if data else "")
    found = replace(found, how=how)
    write(found, releases, folder)
    return found


def _releases(
    paper: Paper, on: Sequence[str | Path], data: bool, workspace: Path
) -> dict[str, Path]:
    """Benchmark → release used for it."""
    if on and data:
        why = "releases are named, so none is built over recorded data"
        raise BadInput(why, where="--on and --data", next_step="leave one of them out")
    if on:
        return _assigned(paper, on)
    if data:
        if DATA not in os.environ:
            raise BadInput(
                f"{DATA} is not set", next_step=f"export {DATA}=FOLDER of recorded matrices"
            )
        built = {name: one.data for name, one in paper.benchmarks.items() if one.data}
        return {name: _built(recipe, workspace) for name, recipe in built.items()}
    return {
        name: _rehearsed(one.rehearsal, workspace, one.copies)
        for name, one in paper.benchmarks.items()
        if one.rehearsal
    }


def _assigned(paper: Paper, on: Sequence[str | Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    rest = []
    for one in map(str, on):
        name, equals, place = one.partition("=")
        if not equals:
            release = Path(one)
            own = [k for k, b in paper.benchmarks.items() if b.release == named(release)[0]]
            if own:
                found[own[0]] = release
            else:
                rest.append(release)
        elif name in paper.benchmarks:
            found[name] = Path(place)
        else:
            raise BadInput(
                f"{paper.name} has no benchmark {name!r}",
                next_step=f"name one of {', '.join(paper.benchmarks)}",
            )
    free = [name for name in paper.benchmarks if name not in found]
    if len(rest) > len(free):
        raise BadInput(
            f"{paper.name} measures on {len(paper.benchmarks)} benchmarks, and more were named",
            where=str(rest[len(free)]),
            next_step="leave some out",
        )
    found |= dict(zip(free, rest, strict=False))
    tested = [name for name in paper.benchmarks if paper.benchmarks[name].trained_on]
    if not set(tested) & set(found):
        # Routers are tested on test questions of the release that they learn from.
        learnt = {name: paper.benchmarks[name].trained_on or "" for name in tested}
        found |= {name: found[source] for name, source in learnt.items() if source in found}
    return found


def _built(recipe: str, workspace: Path) -> Path:
    """The release of a shipped recipe, built where it is not there."""
    from routeyard.flows.build import run_build

    checked, _ = load(recipe)
    place = workspace / "releases" / checked.name / checked.version
    if not place.is_dir():
        run_build(recipe, str(workspace), until="release")
    return place


def _rehearsed(recipe: str, workspace: Path, copies: int) -> Path:
    """The release of a rehearsal, made where it is not there."""
    from routeyard.flows.rehearse import rehearse

    place = workspace / "releases" / f"{recipe}-rehearsal" / version_of(recipe)
    if not place.is_dir():
        rehearse(recipe, str(workspace), copies=copies)
    return place


def version_of(recipe: str) -> str:
    """Version of a shipped recipe, whatever its environment lacks."""
    return str(read_yaml(find(recipe))["version"])


def asked_counts(name: str) -> Counts | None:
    """Questions per source, parts of the split and models that a shipped recipe asks for."""
    if name not in shipped():
        return None
    try:
        recipe, _ = load(name)
    except BadInput:
        return None
    found: dict[tuple[str, str], float] = {
        (source.name, "questions"): float(source.limit) for source in recipe.sources if source.limit
    }
    # What a rule takes out or puts in is known once the release is built.
    if all(rule.rule in KEEPING for rule in recipe.curate):
        found["in all", "questions"] = sum(found.values())
        if recipe.pool.models:
            found["in all", "models"] = float(len(recipe.pool.models))
    split = recipe.split
    for part in ("train", "validation", "test") if split is not None else ():
        wanted = getattr(split, part)
        if wanted is not None and wanted > 1:
            found["in all", part] = float(wanted)
    for source, parts in (getattr(split, "sources", None) or {}).items():
        for part in ("train", "validation", "test"):
            found[source, part] = float(getattr(parts, part) or 0)
    return found


def write(found: Reproduction, releases: Mapping[str, Path], out: Path) -> Path:
    """`<paper>.json`, `.md` and `.html`, and each study in a folder of its release."""
    import json

    from routeyard.datacards.reports.study import reproduction_markdown as markdown
    from routeyard.datacards.reports.study import reproduction_page as page

    drawn: dict[tuple[str, str], str | None] = {}
    for (name, benchmark), one in found.studies.items():
        if one.cells and (name, one.release) not in drawn and benchmark in releases:
            drawn[name, one.release] = write_study(
                one.study, one.cells, one.curves, one.release, releases[benchmark],
                out / one.release, one.notes,
            )  # fmt: skip
    links: dict[str, list[tuple[str, str]]] = {}
    figures: dict[str, list[tuple[str, str]]] = {}
    for item in found.items:
        if not item.item.startswith("Figure"):
            continue
        for release in dict.fromkeys(item.made.values()):
            if svg := drawn.get((item.study, release)):
                figures.setdefault(item.item, []).append((release, svg))
                links.setdefault(item.item, []).append((release, f"{release}/{item.study}.svg"))
    content = as_json(found)
    path = out / f"{found.paper.name}.json"
    write_text(path, json.dumps(plain(content), ensure_ascii=False, indent=1) + "\n")
    write_text(out / f"{found.paper.name}.md", markdown(content, links))
    write_text(out / f"{found.paper.name}.html", page(content, figures))
    return path


def as_json(found: Reproduction) -> dict[str, Any]:
    """The reproduction as plain values: paper, command, summary, table, items, cells."""
    from dataclasses import asdict

    return {
        "paper": found.paper.name,
        "title": found.paper.title,
        "reference": found.paper.reference,
        "command": f"routeyard reproduce {found.paper.name} {found.how}".rstrip(),
        "summary": found.summary(),
        "table": tally(found),
        "items": [asdict(item) for item in found.items],
        "cells": [asdict(cell) for cell in found.cells],
    }


def said(found: Reproduction, out: Path) -> Iterator[str]:
    """Lines of the summary: the counts, then each reason for a missing value once."""
    for name, count in found.summary().items():
        yield f"{name:<20} {count}"
    missing: dict[str, int] = {}
    for cell in found.cells:
        if cell.verdict == "cannot be computed":
            missing[cell.reason] = missing.get(cell.reason, 0) + 1
    for reason, count in sorted(missing.items(), key=lambda one: -one[1])[:20]:
        yield f"  {count} cells: {reason}"
    yield f"page                 {out / found.paper.name}.html"


def reproduce_command(
    paper: str,
    on: list[str] | None = None,
    data: Annotated[bool, typer.Option("--data")] = False,
    out: WrittenPath = Path("reproduced"),
    workspace: WrittenWorkspace = YARD,
    also: list[Path] | None = None,
    routers: str = "",
    encoders: str = "",
    search: bool | None = None,
    resamples: Resamples = 2_000,
    cache: Path = CACHE,
) -> Output:
    """Compute a paper's tables and figures beside its printed values.

    Each value has a verdict. A value on the paper's own data is `equal` (within the printed
    precision or the 95 % interval) or `differs`. What is missing is named per cell and the rest
    runs. Without releases the paper's recipes are rehearsed, which shows that everything runs.

    Examples:

        routeyard reproduce list

        routeyard reproduce confidence_router --out reproduced

        routeyard reproduce routing_plateau --on yard/releases/nine_by_30k/1.0.0 --out reproduced

    Args:
        paper: Paper; `list` names them.
        on: Release folder, or BENCHMARK=FOLDER; again for more.
        data: Build and use the recipes over ROUTEYARD_DATA that replace the paper's.
        out: Folder for page, JSON and studies; a run that was stopped goes on there.
        also: Tables beside the releases (descriptors, hidden states, tuned); again for more.
        routers: Of the paper's routers only these, commas between; all by default.
        encoders: Encoders of routers, commas between; the paper's that are here by default.
        search: The paper's search of settings and seeds, or each router's first setting, once;
            by default it searches on releases that are named.
    """
    if paper == "list":
        rows = listed()
        return Output(
            rows,
            (
                f"{row['name']:<20} {row['printed']:>4} printed values in "
                f"{row['tables_and_figures']} tables and figures: {row['title']}"
                for row in rows
            ),
        )
    found = reproduce(
        paper, on or (), data=data, out=out, workspace=workspace, also=also or (),
        routers=comma_list(routers), encoders=comma_list(encoders), search=search,
        resamples=resamples, cache=cache,
    )  # fmt: skip
    return Output(as_json(found), said(found, out))


def study_command(
    name: str,
    release: Annotated[Path | None, typer.Argument()] = None,
    out: Path = Path("studies"),
    router: list[str] | None = None,
    pair: str | None = None,
    scheme: str | None = None,
    join: list[Path] | None = None,
    test_on: list[Path] | None = None,
    embeddings: Path | None = None,
    embed: Embed = False,
    also: list[Path] | None = None,
    encoder: str | None = None,
    cache: Path = CACHE,
    resamples: Resamples = 2_000,
    seed: int = 0,
) -> Output:
    """Make a paper's table or figure from your own release.

    It has intervals. Written as Parquet, Markdown and HTML with a plot; where the paper is about
    the same data, its printed values are beside ours. `pipelines/evaluate/studies/README.md` lists
    every table and figure of the papers.

    Examples:

        routeyard study list

        routeyard study dominance yard/releases/mmlu_pro/1.0.0 --out results/mmlu_pro

        routeyard study probe_mixture RELEASE --join OTHER --test-on THIRD --also states

        routeyard study all yard/releases/mmlu_pro/1.0.0 --out results/mmlu_pro --embed

    Args:
        name: Study; `list` names them, `all` runs what applies.
        release: A release folder.
        out: Folder for the results; never inside a release.
        router: Router instead of the study's own; again for more.
        join: Release to train on as well; again for more.
        test_on: Release to test on alone; again for more.
    """
    from routeyard.flows.evaluation import evaluate as studies

    if name == "list":
        rows = studies.listed()
        return Output(
            rows,
            (
                f"{row['name']:<28} {row['paper']}, {row['item']}: {row['title']}\n"
                f"{'':<28} needs {', '.join(row['needs'])}"
                for row in rows
            ),
        )
    where = studies.release_of(name, release)
    how: dict[str, Any] = {
        "embeddings": embeddings,
        "embed": embed,
        "cache": cache,
        "encoder": encoder,
    }
    tables = read_with(where, also or [])
    folder = out_folder(where, out)
    context = studies.context_of(
        where,
        with_embeddings(tables, **how),
        scheme=scheme,
        pair=studies.parse_pair(pair),
        routers=tuple(router or ()),
        resamples=resamples,
        seed=seed,
        joined={studies.named(o)[0]: read_with(o, also or [], **how) for o in join or []},
        tested={studies.named(o)[0]: read_with(o, also or [], **how) for o in test_on or []},
        kept=partial(store_in, cache),
    )
    if name != "all":
        made = studies.run_study(name, context, where, folder)
        return Output(made, str(made["out"]))
    done, left = studies.run_all(context, where, folder)
    rest = [{"study": study, "needs": need, "then": then} for study, need, then in left]
    return Output(
        {"studies": done, "path": folder / "index.md", "not_applicable": rest},
        [
            f"{len(done)} studies in {folder / 'index.md'}",
            *(f"not applicable: {study} needs {need} ({then})" for study, need, then in left),
        ],
    )
