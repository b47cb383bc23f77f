"""A paper reproduced: releases, recorded matrices or a rehearsal in, a page and a JSON out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from routeyard.flows.console import counter, line
from routeyard.flows.evaluation.evaluate import CACHE
from routeyard.flows.evaluation.released import out_folder
from routeyard.flows.evaluation.reproduced.stands import stands_of
from routeyard.flows.evaluation.reproduced.tuning import with_tuned
from routeyard.flows.evaluation.reproduced.zoo import zoo_figures
from routeyard.flows.evaluation.study import named, write_study
from routeyard.flows.recipe import find, load, read_yaml, shipped
from routeyard.papers import PAPERS
from routeyard.papers.paper import Paper
from routeyard.papers.reproduction import Reproduction, reproduction
from routeyard.papers.stands import Counts
from routeyard.papers.tally import tally
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.io.staging import write_text
from routeyard.pipelines.lexical import NAME as TFIDF

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

    from routeyard.datacards.reports.reproduction import markdown, page
    from routeyard.flows.console.json_values import plain

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
