"""Every fault of a recipe at once: its keys, its names, its pool file and its local sources."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from routeyard.flows.recipe import (
    Fault,
    Finding,
    Place,
    entries,
    find,
    finding,
    load,
    merged_pool,
    names,
    notes_of,
    of_findings,
    of_validation,
    read_yaml,
)
from routeyard.pipelines.audit.metering import GATE, MeteringFinding, audited
from routeyard.pipelines.collect.plan import provider_of
from routeyard.pipelines.collect.recorded import (
    NEEDED,
    RecordedImport,
    import_recorded,
    not_in_the_pool,
)
from routeyard.pipelines.common import files
from routeyard.pipelines.common import files as named_files
from routeyard.pipelines.common.errors import few
from routeyard.pipelines.common.files import expanded
from routeyard.pipelines.common.mapping import Field, NoColumn, compile_field
from routeyard.pipelines.common.pool import models_table
from routeyard.pipelines.ingest import ingest
from routeyard.pipelines.ingest.catalog import from_catalog
from routeyard.pipelines.ingest.mapping import with_fields
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe import Pool, Recipe, Recorded, Source

# Faults of one recording, all at once: its files, its columns, its models.


def recording_faults(
    entry: Recorded, pool: Collection[str] | None, base: Path
) -> Iterator[Finding]:
    """Faults that need no question to be seen, with keys within the entry; none hides another.

    Args:
        pool: Names of the pool's models; None where they are not known.
        base: Folder that the recipe's paths start from.
    """
    try:
        paths = named_files.expand(entry.path, base=base, where="collect.recorded")
    except BadInput as error:
        yield finding(("path",), error)
        return
    readers: dict[str, Field] = {}
    for name, text in entry.fields.model_dump(exclude_none=True).items():
        try:
            readers[name] = compile_field(text, where=f"{paths[0].name}, fields.{name}")
        except BadInput as error:
            yield finding(("fields", name), error)
    unread: dict[str, BadInput | None] = dict.fromkeys(readers)
    models: dict[str, None] = {}
    try:
        for row in chain.from_iterable(files.rows(path, entry.format) for path in paths):
            _try(row, readers, unread)
            if "model" in readers and "model" not in unread:
                models[_model(row, readers["model"])] = None
    except BadInput as error:
        yield finding(("path",), error, where=True)
    for name, fault in unread.items():
        if fault is not None:
            yield finding(("fields", name), fault, where=True)
    unknown = [name for name in models if name and name not in (pool or ())]
    if unknown and pool is not None and entry.other_models == "error":
        yield finding((), not_in_the_pool(unknown, pool, entry, where=entry.path), where=True)


def _try(row: Any, readers: dict[str, Field], unread: dict[str, BadInput | None]) -> None:
    """Read the keys that no row had so far; a needed key is missing from the first row on."""
    for name in list(unread):
        if unread[name] is not None and name in NEEDED:
            continue
        try:
            readers[name](row)
            del unread[name]
        except NoColumn as error:
            unread[name] = unread[name] or error
        except BadInput:
            del unread[name]  # reported by the import, with the row


def _model(row: Any, read: Field) -> str:
    try:
        return str(read(row) or "")
    except BadInput:
        return ""


# Faults of recorded answers that show when they are imported as a build would import them.

#: Places that a fault shows.
_SHOWN = 3


def recorded_faults(
    recipe: Recipe, base: Path, notes: list[str], faulty: Collection[int] = ()
) -> Iterator[Finding]:
    """Ids that do not fit, repeated answers, and what the metering audit would stop.

    Args:
        base: Folder that the recipe's paths start from.
        faulty: Numbers of entries that are faulty already: they are not imported.
        notes: Gets what a build would print, such as rows about questions that are not asked.
    """
    away = [item.name for item in map(from_catalog, recipe.sources) if item.on_hub]
    if away:
        notes.append(
            f"recorded answers are not compared with questions of the hub ({', '.join(away)})"
        )
        return
    try:
        queries = ingest(recipe.sources, base=base).queries
    except BadInput:
        return  # reported for the source itself
    models = models_table(recipe.pool)
    imported, whole = None, not faulty
    for number, entry in enumerate(recipe.collect.recorded):
        if number in faulty:
            continue
        try:
            imported = import_recorded(queries, models, [entry], base=base)
        except BadInput as error:
            whole = False
            place: Place = ("collect", "recorded", number, *_recorded_within(error))
            yield finding(place, error, where=True)
    if whole and len(recipe.collect.recorded) > 1:
        try:
            imported = import_recorded(queries, models, recipe.collect.recorded, base=base)
        except BadInput as error:
            whole = False
            yield finding(("collect", "recorded"), error, where=True)
    if whole and imported is not None:
        notes += imported.notes
        yield from _unmetered(recipe, imported, queries, models)


def _recorded_within(error: BadInput) -> tuple[str, ...]:
    """The key of an entry that an error names."""
    if "fields." in str(error.where):
        return ("fields", str(error.where).rpartition("fields.")[2].split(",")[0])
    return ()


def _unmetered(
    recipe: Recipe, imported: RecordedImport, queries: pa.Table, models: pa.Table
) -> Iterator[Finding]:
    """One fault for each check of the metering audit that would stop the release."""
    if any(waiver.gate == GATE for waiver in recipe.release.waivers):
        return
    unresolved, _ = audited(recipe, imported.responses, queries, models)
    alike: dict[tuple[str, str], list[MeteringFinding]] = {}
    for item in unresolved:
        alike.setdefault((item.check, item.says), []).append(item)
    for (check, says), result in alike.items():
        which = few([f"{entry.model_id} {entry.count:,}" for entry in result], 5)
        first = result[0]
        keys = [(query, first.model_id, sample) for query, sample in first.rows[:_SHOWN]]
        places = ", ".join(imported.places[key] for key in keys if key in imported.places)
        gate = first.gate
        yield (
            ("release",),
            f"the metering audit would stop this release: {says} ({which}; first {places})",
            f"{_mend(check, says)}; or waive it aloud: release.waivers: "
            f"[{{gate: {gate}, reason: …}}]; `routeyard audit WORKSPACE --recipe FILE` names more",
        )


def _mend(check: str, says: str) -> str:
    """What to do about a finding of a recording."""
    if check == "price_unknown" and "no price" in says:
        return "give the model price_in, price_out and price_date in the pool, or map cost_usd"
    if check in ("price_unknown", "usage_missing"):
        return "map prompt_tokens and completion_tokens (or cost_usd) under collect.recorded"
    if check in ("implausible_count", "constant_count", "totals", "logprob_count"):
        return "map the columns that hold the provider's counts, or empty those that are not"
    return "correct the recording or its mapping, or the thresholds of collect.metering"


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
    results = list(_pool_file(content, path))
    whole = dict(content)
    if isinstance(content.get("pool"), dict):
        whole["pool"] = {k: v for k, v in content["pool"].items() if k != "file"}
    try:
        Recipe.model_validate(whole)
    except ValidationError as error:
        results += of_validation(error, path, content)
    named = [finding(place, error) for place, error in names(content)]
    with _fixtures(content):
        checked, refused = None, None
        try:
            checked, _ = load(path)
        except BadInput as error:  # its own fault is reported with its line, unless it is of a file
            refused = error
        sources = list(_sources(content, path, notes))
        recorded = _recorded(content, path, notes, checked, sources=not sources)
        providers = [] if checked is None else _providers(content, checked)
        results += of_findings([*named, *providers, *sources, *recorded], path, content)
    if not results and refused is not None:  # prices, prompts or a zoo's table
        at = "" if refused.where is None else f" ({refused.where})"
        results.append(Fault(str(path), 0, "", f"{refused.what}{at}", refused.next_step or ""))
    if not results and checked is not None:
        notes += notes_of(checked)
    return sorted(set(results), key=lambda item: (item.file != str(path), item.line, item.says))


def _providers(content: Mapping[str, Any], checked: Recipe) -> Iterator[Finding]:
    """Models that no provider serves."""
    if checked.collect.provider != "openai":
        return
    for number, model in enumerate(checked.pool.models):
        try:
            if model.relay is None:
                provider_of(model, checked.pool)
        except BadInput as error:
            listed = isinstance((content.get("pool") or {}).get("models"), list)
            yield finding(("pool", "models", number) if listed else ("pool",), error)


@contextmanager
def _fixtures(content: Mapping[str, Any]) -> Iterator[None]:
    """The files that a shipped recipe leaves to the environment, made for as long as needed."""
    from tempfile import TemporaryDirectory

    from routeyard.flows.workspace import fixtures

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
    from routeyard.pipelines.label.scorers import SCORERS
    from routeyard.schemas.statuses import NO_RULE

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
            if not source.on_hub:
                notes += ingest([source], base=path.parent.absolute()).notes
        except BadInput as error:
            # Which rows they are is half of the answer.
            rows = re.search(r"\brows? \d", str(error.where)) is not None
            yield finding(("sources", number, *_within(error)), error, where=rows)


def _recorded(
    content: Mapping[str, Any],
    path: Path,
    notes: list[str],
    checked: Recipe | None,
    *,
    sources: bool,
) -> Iterator[Finding]:
    """Faults of each recording, then of all as a build would import them.

    Args:
        checked: The recipe, where it can be loaded.
        sources: Whether the questions can be read, which the import needs.
    """
    base = path.parent.absolute()
    models = None if checked is None else {model.model_id for model in checked.pool.models}
    collect = content.get("collect")
    if not isinstance(collect, dict) or collect.get("provider") != "recorded":
        return
    faulty = set()
    for number, listed in enumerate(entries(collect, "recorded")):
        try:
            entry = with_fields(Recorded.model_validate(listed))
        except ValidationError:
            continue  # reported already
        for within, says, then in recording_faults(entry, models, base):
            faulty.add(number)
            yield ("collect", "recorded", number, *within), says, then
    if checked is not None and sources:
        yield from recorded_faults(checked, base, notes, faulty)


def _within(error: BadInput) -> tuple[str, ...]:
    """The key of a source that an error names."""
    match = re.search(r", (where|exclude)\.(?!.*, \1\.)(.*)|, fields\.([^,]*)", str(error.where))
    if match:
        return (match[1], match[2]) if match[1] else ("fields", match[3])
    if "there is no file" in error.what or "environment variable" in error.what:
        return ("path",)
    return ()
