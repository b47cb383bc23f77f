"""Every fault of a recipe at once: its keys, its names, its pool file and its local sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from flows.recipe import find, load, merged_pool, read_yaml
from flows.recipe_faults import Fault, line_of, of_validation, words_of
from pipelines.collect.settings import provider_of
from pipelines.errors import BadInput
from pipelines.io.environment import expanded
from schemas.recipe import Pool, Recipe, Recorded, Source


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
        return [_of(error, path, (), {})]
    found = list(_pool_file(content, path))
    whole = dict(content)
    if isinstance(content.get("pool"), dict):
        whole["pool"] = {k: v for k, v in content["pool"].items() if k != "file"}
    try:
        Recipe.model_validate(whole)
    except ValidationError as error:
        found += of_validation(error, path, content)
    found += _names(content, path)
    found += _providers(content, path)
    with _around(content):
        told = [] if notes is None else notes
        sources = list(_sources(content, path, told))
        found += sources
        found += _recorded(content, path, told, sources=not sources)
        if not found:
            found += _files(path)
    return sorted(set(found), key=lambda one: (one.file != str(path), one.line, one.says))


def _providers(content: dict[str, Any], path: Path) -> Iterator[Fault]:
    """Models that somebody must be asked for, and whom nobody serves."""
    try:
        checked, _ = load(path)
    except BadInput:
        return  # said elsewhere
    if checked.collect.provider != "openai":
        return
    for number, model in enumerate(checked.pool.models):
        try:
            if model.relay is None:
                provider_of(model, checked.pool)
        except BadInput as error:
            listed = isinstance((content.get("pool") or {}).get("models"), list)
            at = ("pool", "models", number) if listed else ("pool",)
            yield _of(error, path, at, content)


def _files(path: Path) -> Iterator[Fault]:
    """Files that a recipe names and nobody has read yet: prices, prompts, a zoo's table."""
    try:
        load(path)
    except BadInput as error:
        at = "" if error.where is None else f" ({error.where})"
        yield Fault(str(path), 0, "", f"{error.what}{at}", error.next_step or "")


@contextmanager
def _around(content: dict[str, Any]) -> Iterator[None]:
    """The files that a shipped recipe leaves to the environment, made for as long as needed."""
    from tempfile import TemporaryDirectory

    from flows.workspace.fixtures import fixtures

    try:
        checked = Recipe.model_validate(content)
    except ValidationError:
        yield
        return
    with TemporaryDirectory() as folder, fixtures(checked, Path(folder), serve=False):
        yield


def _pool_file(content: dict[str, Any], path: Path) -> Iterator[Fault]:
    pool = content.get("pool")
    if not isinstance(pool, dict) or not isinstance(pool.get("file"), str):
        return
    if "$" in expanded(pool["file"]):
        return  # named through the environment: it is looked for when the pool is needed
    file = path.parent / expanded(pool["file"])
    try:
        said = read_yaml(file) if file.is_file() else None
        if said is None:
            merged_pool(pool, path)
            return
    except BadInput as error:
        yield _of(error, path, ("pool", "file"), content)
        return
    try:
        Pool.model_validate(said)
    except ValidationError as error:
        yield from of_validation(error, file, said)


def _names(content: dict[str, Any], path: Path) -> Iterator[Fault]:
    """Rules and scorers that exist, and parameters that a rule has."""
    from pipelines.curate import RULES
    from pipelines.metering.audit import check_gate
    from pipelines.scorers import SCORERS

    for number, rule in enumerate(_entries(content, "curate")):
        if not isinstance(rule.get("rule"), str):
            continue
        parameters = rule.get("parameters")
        if not isinstance(parameters, dict):
            parameters = {k: v for k, v in rule.items() if k != "rule"}
        try:
            RULES.get(rule["rule"]).check(parameters, where="curate")
        except BadInput as error:
            yield _of(error, path, ("curate", number), content)
    for number, source in enumerate(_entries(content, "sources")):
        if isinstance(source.get("scorer"), str) and source["scorer"] != "none":
            try:
                SCORERS.get(source["scorer"])
            except BadInput as error:
                yield _of(error, path, ("sources", number, "scorer"), content)
    release = content.get("release")
    for number, waiver in enumerate(
        _entries(release, "waivers") if isinstance(release, dict) else ()
    ):
        try:
            check_gate(str(waiver.get("gate")))
        except BadInput as error:
            yield _of(error, path, ("release", "waivers", number), content)


def _sources(content: dict[str, Any], path: Path, notes: list[str]) -> Iterator[Fault]:
    """Local sources are read as a build would read them."""
    from pipelines.ingest import ingest
    from pipelines.ingest.catalog import from_catalog
    from pipelines.scorers import SCORERS
    from pipelines.scorers.scorer import NO_RULE

    for number, said in enumerate(_entries(content, "sources")):
        try:
            source = Source.model_validate(said)
        except ValidationError:
            continue  # said already
        try:
            source = from_catalog(source)
            if source.scorer is not None and source.scorer not in SCORERS.names():
                # Said already, with its line; the other keys are checked all the same.
                source = source.model_copy(update={"scorer": NO_RULE})
            if source.kind == "files":
                notes += ingest([source], base=path.parent.absolute()).notes
        except BadInput as error:
            place = _within(error, said)
            fault = _of(error, path, ("sources", number, *place), content)
            # Which rows they are is half of the answer.
            yield replace(fault, says=f"{error.what} ({error.where})") if _rows(error) else fault


def _recorded(
    content: dict[str, Any], path: Path, notes: list[str], *, sources: bool
) -> Iterator[Fault]:
    """Each recording by itself, then all as a build would import them.

    Args:
        sources: Whether the questions can be read, which the import needs.
    """
    from flows.check_recorded_answers import recorded_faults
    from flows.check_recording import alone_faults

    try:
        checked, base = load(path)
        models: set[str] | None = {model.model_id for model in checked.pool.models}
    except BadInput:  # said elsewhere
        checked, base, models = None, path.parent.absolute(), None
    collect = content.get("collect")
    if not isinstance(collect, dict) or collect.get("provider") != "recorded":
        return
    found: list[tuple[tuple[str | int, ...], str, str]] = []
    faulty = set()
    for number, said in enumerate(_entries(collect, "recorded")):
        try:
            entry = Recorded.model_validate(said)
        except ValidationError:
            continue  # said already
        for within, says, then in alone_faults(entry, models, base):
            faulty.add(number)
            found.append((("collect", "recorded", number, *within), says, then))
    if checked is not None and sources:
        found += recorded_faults(checked, base, notes, faulty)
    for place, says, then in found:
        yield Fault(str(path), line_of(path, place), words_of(place, content), says, then)


def _rows(error: BadInput) -> bool:
    return re.search(r"\brows? \d", str(error.where)) is not None


def _within(error: BadInput, source: dict[str, Any]) -> tuple[str | int, ...]:
    """The key of a source that an error names."""
    where = str(error.where)
    for key in ("where", "exclude"):
        if f", {key}." in where:
            return (key, where.rpartition(f", {key}.")[2])
    if ", fields." in where:
        return ("fields", where.rpartition(", fields.")[2].split(",")[0])
    if "there is no file" in error.what or "environment variable" in error.what:
        return ("path",)
    return ()


def _entries(content: dict[str, Any], key: str) -> list[dict[str, Any]]:
    said = content.get(key)
    return [one if isinstance(one, dict) else {} for one in said] if isinstance(said, list) else []


def _of(error: BadInput, path: Path, place: tuple[str | int, ...], content: Any) -> Fault:
    words = words_of(place, content)
    return Fault(str(path), line_of(path, place), words, error.what, error.next_step or "")
