"""Every fault of a recipe at once: its keys, its names, its pool file and its local sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from routeyard.flows.recipe import find, load, merged_pool, notes_of, read_yaml
from routeyard.flows.recipe_faults import (
    Fault,
    Finding,
    entries,
    finding,
    names,
    of_findings,
    of_validation,
)
from routeyard.pipelines.collect.settings import provider_of
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.io.environment import expanded
from routeyard.schemas.recipe import Pool, Recipe, Recorded, Source


def faults(recipe: str, notes: list[str] | None = None) -> list[Fault]:
    """All faults of a recipe file, in the order of its lines; none when it can be built.

    Reads local sources (a column that does not exist, a `where` that matches nothing) and
    recorded answers, and asks nothing of anyone: hub datasets and providers are not looked at.

    Args:
        notes: Gets what is no fault and worth knowing before a build.
    """
    path = find(recipe)
    try:
        content = read_yaml(path)
    except BadInput as error:
        return of_findings([finding((), error)], path, {})
    notes = [] if notes is None else notes
    found = list(_pool_file(content, path))
    whole = dict(content)
    if isinstance(content.get("pool"), dict):
        whole["pool"] = {k: v for k, v in content["pool"].items() if k != "file"}
    try:
        Recipe.model_validate(whole)
    except ValidationError as error:
        found += of_validation(error, path, content)
    named = [finding(place, error) for place, error in names(content)]
    with _fixtures(content):
        sources = list(_sources(content, path, notes))
        recorded = _recorded(content, path, notes, sources=not sources)
        found += of_findings(
            [*named, *_providers(content, path), *sources, *recorded], path, content
        )
        if not found:
            found += _files(path, notes)
    return sorted(set(found), key=lambda one: (one.file != str(path), one.line, one.says))


def _providers(content: Mapping[str, Any], path: Path) -> Iterator[Finding]:
    """Models that no provider serves."""
    try:
        checked, _ = load(path)
    except BadInput:
        return  # reported elsewhere
    if checked.collect.provider != "openai":
        return
    for number, model in enumerate(checked.pool.models):
        try:
            if model.relay is None:
                provider_of(model, checked.pool)
        except BadInput as error:
            listed = isinstance((content.get("pool") or {}).get("models"), list)
            yield finding(("pool", "models", number) if listed else ("pool",), error)


def _files(path: Path, notes: list[str]) -> Iterator[Fault]:
    """Files that a recipe names and nobody has read yet: prices, prompts, a zoo's table."""
    try:
        recipe, _ = load(path)
        notes += notes_of(recipe)
    except BadInput as error:
        at = "" if error.where is None else f" ({error.where})"
        yield Fault(str(path), 0, "", f"{error.what}{at}", error.next_step or "")


@contextmanager
def _fixtures(content: Mapping[str, Any]) -> Iterator[None]:
    """The files that a shipped recipe leaves to the environment, made for as long as needed."""
    from tempfile import TemporaryDirectory

    from routeyard.flows.workspace.fixtures import fixtures

    try:
        checked = Recipe.model_validate(content)
    except ValidationError:
        yield
        return
    with TemporaryDirectory() as folder, fixtures(checked, Path(folder), serve=False):
        yield


def _pool_file(content: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    pool = content.get("pool")
    if not isinstance(pool, dict) or not isinstance(pool.get("file"), str):
        return
    if "$" in expanded(pool["file"]):
        return  # named through the environment: it is looked for when the pool is needed
    file = path.parent / expanded(pool["file"])
    try:
        if not file.is_file():
            merged_pool(pool, path)  # which names the file
            return
        listed = read_yaml(file)
    except BadInput as error:
        yield from of_findings([finding(("pool", "file"), error)], path, content)
        return
    try:
        Pool.model_validate(listed)
    except ValidationError as error:
        yield from of_validation(error, file, listed)


def _sources(content: Mapping[str, Any], path: Path, notes: list[str]) -> Iterator[Finding]:
    """Local sources are read as a build would read them."""
    from routeyard.pipelines.ingest import ingest
    from routeyard.pipelines.ingest.catalog import from_catalog
    from routeyard.pipelines.scorers import SCORERS
    from routeyard.pipelines.scorers.scorer import NO_RULE

    for number, listed in enumerate(entries(content, "sources")):
        try:
            source = Source.model_validate(listed)
        except ValidationError:
            continue  # reported already
        try:
            source = from_catalog(source)
            if source.scorer is not None and source.scorer not in SCORERS.names():
                # Reported already, with its line; the other keys are checked all the same.
                source = source.but(scorer=NO_RULE)
            if source.kind == "files":
                notes += ingest([source], base=path.parent.absolute()).notes
        except BadInput as error:
            # Which rows they are is half of the answer.
            rows = re.search(r"\brows? \d", str(error.where)) is not None
            yield finding(("sources", number, *_within(error)), error, where=rows)


def _recorded(
    content: Mapping[str, Any], path: Path, notes: list[str], *, sources: bool
) -> Iterator[Finding]:
    """Faults of each recording, then of all as a build would import them.

    Args:
        sources: Whether the questions can be read, which the import needs.
    """
    from routeyard.flows.check_recorded_answers import recorded_faults
    from routeyard.flows.check_recording import recording_faults

    try:
        checked, base = load(path)
        models: set[str] | None = {model.model_id for model in checked.pool.models}
    except BadInput:  # reported elsewhere
        checked, base, models = None, path.parent.absolute(), None
    collect = content.get("collect")
    if not isinstance(collect, dict) or collect.get("provider") != "recorded":
        return
    faulty = set()
    for number, listed in enumerate(entries(collect, "recorded")):
        try:
            entry = Recorded.model_validate(listed)
        except ValidationError:
            continue  # reported already
        for within, says, then in recording_faults(entry, models, base):
            faulty.add(number)
            yield ("collect", "recorded", number, *within), says, then
    if checked is not None and sources:
        yield from recorded_faults(checked, base, notes, faulty)


def _within(error: BadInput) -> tuple[str, ...]:
    """The key of a source that an error names."""
    found = re.search(r", (where|exclude)\.(?!.*, \1\.)(.*)|, fields\.([^,]*)", str(error.where))
    if found:
        return (found[1], found[2]) if found[1] else ("fields", found[3])
    if "there is no file" in error.what or "environment variable" in error.what:
        return ("path",)
    return ()
