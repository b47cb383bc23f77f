"""Runs studies on a release: Parquet, Markdown, HTML and a plot for each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.flows.evaluation.evaluate import reference, write_tables
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.needs import check, lacking, untaken
from routeyard.pipelines.evaluate.studies.study import (
    Study,
    StudyCell,
    StudyContext,
    fed,
    leaks,
    table_of,
)

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
    name: str, given: StudyContext, release: Path, out: Path, *, one_of_many: bool = False
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
    check(study, given, one_of_many=one_of_many)
    context, only = fed(study, given)
    curves = study.curves(context) if study.curves else None
    cells = study.cells(context)
    unread = " and ".join(untaken(study, given))
    said = [
        f"Figures are over {only}." if only else "", leaks(study, given),
        f"{unread} was given, which this study does not read." if unread else "",
    ]  # fmt: skip
    write_study(study, cells, curves, given.release, release, out, list(filter(None, said)))
    return {"study": study.name, "cells": len(cells), "out": str(out / f"{study.name}.md")}


def write_study(
    study: Study,
    found: Sequence[StudyCell],
    curves: pa.Table | None,
    called: str,
    release: Path,
    out: Path,
    notes: Sequence[str] = (),
) -> str | None:
    """Write what a study found on a release, as `run_study` does; its drawing for a page."""
    from routeyard.datacards.charts import PAGE
    from routeyard.datacards.reports.study import markdown, page, plot

    name, cells = study.name, table_of(study, found, called)
    _, version = named(release)
    about = {
        **{key: getattr(study, key) for key in _PRINTED},
        "notes": [*study.notes, *notes, *(study.printed_notes if called in study.printed else ())],
        "release": called,
        "version": version,
    }
    figure = plot(about, cells, curves)
    drawn = plot(about, cells, curves, PAGE)
    write_tables(out, {name: cells, f"{name}_curves": curves})
    (out / f"{name}.md").write_text(markdown(about, cells), encoding="utf-8")
    (out / f"{name}.html").write_text(page(about, cells, drawn), encoding="utf-8")
    if figure is not None:
        (out / f"{name}.svg").write_text(figure, encoding="utf-8")
    return drawn


def run_all(
    given: StudyContext, release: Path, out: Path
) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Every study the release has what it needs for; what was left out, with need and remedy.

    One that does not read a router or a release that was given says so in its notes.
    """
    done: list[str] = []
    left: list[tuple[str, str, str]] = []
    for name in STUDIES.names():
        missing = lacking(STUDIES.get(name), given)
        if missing:
            left.append((name, *missing[0]))
            continue
        run_study(name, given, release, out, one_of_many=True)
        done.append(name)
    write_index(out, given.release, done, left)
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
