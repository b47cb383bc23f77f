"""A rehearsal: a recipe built end to end from fixture rows and a pool on loopback, for nothing.

Catalogue sources become files of rows written by us, each model and judge of the recipe is
played by one local server, EmbedLLM is planted. The recipe that comes of it is an ordinary one
and is in the workspace, beside the files it reads.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from routeyard.flows.build import run_build
from routeyard.flows.recipe import load
from routeyard.flows.scaling import resized, scaled
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.files import names
from routeyard.pipelines.ingest.catalog import entry, from_catalog
from routeyard.pipelines.ingest.queries import each_item, to_queries
from routeyard.schemas.recipe import HiddenStates, Pool, Recipe, Source

URL = "ROUTEYARD_REHEARSAL_URL"
EMBEDLLM = "ROUTEYARD_EMBEDLLM"
REAL = "ROUTEYARD_REAL_URL"
_BANK = "ROUTEYARD_DEMO_BANK"
ISSUE = (
    "This is a rehearsal: rows written for Routeyard replace the datasets and {} replace "
    "the models. It shows that the recipe builds, and says nothing about any real model."
)
#: EmbedLLM questions of a rehearsal, of 35,673.
PLANTED = 1_200
#: Questions of each part of a rehearsal's split, or a quarter of them: of two test questions no
#: router can be told from another.
LEAST = 8
#: Tasks of a rehearsal, of 80, by EmbedLLM's names: with fewer questions a task, luck hides what is
#: planted. The first three are hard, as RouterBench+ finds them; the last three repeat others.
TASKS = (
    "logiqa", "social_iqa", "gpqa", "mathqa", "asdiv", "gsm8k", "medmcqa",
    "mmlu_clinical_knowledge", "piqa", "mmlu_astronomy", "mmlu_philosophy", "truthfulqa",
    "mmlu_college_physics", "winogrande",
)  # fmt: skip


def rehearse(
    recipe: str, workspace: str, *, copies: int = 3, jobs: int = 1, real: bool = False
) -> dict[str, Any]:
    """Build the rehearsal of a recipe; the summary of `routeyard build`.

    Args:
        copies: How often each fixture row is asked, each time as another variant.
        real: A real small model, in several quantisations, answers in the place of the pool's
            models; its layers read the questions where the recipe has `hidden_states`. Verifiers
            and judges are played all the same: the model is too small for it.

    Raises:
        BadInput: a source is neither of the catalog nor an import of EmbedLLM.
    """
    root = Path(workspace).absolute()
    folder = root / "rehearsals" / load(recipe)[0].name
    folder.mkdir(parents=True, exist_ok=True)
    with _embedllm(recipe, folder):
        checked, _ = load(recipe)
        if all(model.simulated for model in checked.pool.models):  # nobody would be asked anyway
            return run_build(recipe, workspace, jobs=jobs, until="release")
        if checked.collect.provider == "recorded":
            small = _shrunk(checked)
            path = _written(small, folder)
            return run_build(str(path), workspace, jobs=jobs, until="release")
        from routeyard.flows.demo.server import running

        sources, bank = _fixtures(checked, folder, copies)
        with running("rehearsed", bank=str(bank)) as url, _environment({URL: url}):
            played = _played(checked, sources)
            if real:
                played = _real(played, checked.hidden_states)
            path = _written(played, folder, real=real)
            return run_build(str(path), workspace, jobs=jobs, until="release")


def _shrunk(recipe: Recipe) -> Recipe:
    """A recipe of recorded answers with about `PLANTED` questions; whole where no source says
    how many it has."""
    limit = sum(source.limit or 0 for source in recipe.sources)
    scale = min(1.0, PLANTED / max(limit, 1))
    if scale == 1:
        return recipe
    stated = [one.but(limit=one.limit or PLANTED) for one in recipe.sources]
    return scaled(recipe.but(sources=stated), scale)


def _fixtures(recipe: Recipe, folder: Path, copies: int) -> tuple[list[Source], Path]:
    """Sources that read fixture rows, and the bank of their questions for the server."""
    from routeyard.flows.demo.bank import bank as questions

    sources: list[Source] = []
    bank: list[dict[str, Any]] = []
    for listed in recipe.sources:
        if _BANK in names(str(listed.path or "")):  # our own questions need no replacement
            sources.append(listed)
            bank += [asdict(one) for one in questions()]
            continue
        if listed.catalog is None:
            raise BadInput(
                f"source {listed.name!r} is not from the catalog, so there are no rows to rehearse",
                next_step="name a 'catalog' entry, or build the recipe itself",
            )
        source, rows = _varied(from_catalog(listed), listed.catalog, copies)
        path = _write_lines(folder / f"{listed.name}.jsonl", rows)
        taken, _ = to_queries(
            source.but(limit=None, dense=None),
            each_item(source, rows, where=path.name),
            seen=Counter(),
            where=path.name,
        )
        solutions = [_solution(row) for row in each_item(source, rows, where=path.name)]
        for query, solution in zip(taken, solutions, strict=False):
            kept = {k: query[k] for k in ("question", "references", "choices", "scorer")}
            bank.append({**kept, "solution": solution})
        dense = None if source.dense is None else max(1, round(0.4 * len(taken)))
        update = {"path": path.name, "limit": len(taken), "dense": dense}
        sources.append(source.model_copy(update=update))
    return sources, _write_lines(folder / "bank.jsonl", bank)


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


def _varied(source: Source, name: str, copies: int) -> tuple[Source, list[dict[str, Any]]]:
    """The source on files, each fixture row `copies` times with another `_variant`."""
    rows = [
        {"_config": "", "_split": "", **row, "_variant": f" (variant {k})" if k else ""}
        for k in range(copies)
        for row in entry(name).rows
    ]
    assert source.fields is not None
    fields = source.fields.but(
        question=_template(source.fields.question),
        id=None if source.fields.id is None else _template(source.fields.id),
    )
    changes: dict[str, Any] = {
        "kind": "files",
        "format": "jsonl",
        **dict.fromkeys(("catalog", "hub_id", "config")),
        "fields": fields,
        "where": {},
        "exclude": {},
    }
    return source.model_copy(update=changes), rows


def _template(mapped: str) -> str:
    whole = mapped if "{{" in mapped or "{%" in mapped else f"{{{{ _row[{mapped!r}] }}}}"
    return whole + "{{ _variant }}"


def _solution(row: Mapping[str, Any]) -> str:
    """A program that passes the row's tests, where the dataset has one."""
    if "canonical_solution" in row:
        return str(row["prompt"]) + str(row["canonical_solution"])
    return str(row.get("code", ""))


def _played(recipe: Recipe, sources: list[Source]) -> Recipe:
    """The recipe over the fixture sources, every model played by the local server."""
    from routeyard.flows.demo.rehearsed import effort_of, prices
    from routeyard.schemas.recipe import Provider

    stage = Provider(name="rehearsal", base_url=f"${{{URL}}}")
    models = []
    for model in recipe.pool.models:
        if model.relay is not None:
            models.append(model.but(simulated=True))
            continue
        # Efforts are played by one simulated model, which knows how many levels there are below.
        played = model.model_id if model.arm is None else model.arm.of
        price_in, price_out = prices(played)
        level = None if model.arm is None else model.arm.effort_level
        called = None if level is None else effort_of(model.model_id, played, level)
        stated = {
            "endpoint_model": called, "provider": "rehearsal", "simulated": True,
            "price_in": price_in, "price_out": price_out, "price_date": "2026-11-01",
            "price_source": "made up for the rehearsal",
            "price_cache_read": None, "price_cache_write": None, "price_up_to": None,
        }  # fmt: skip
        models.append(model.model_copy(update=stated))
    label = recipe.label.but(
        verifiers=[v.but(provider=stage) for v in recipe.label.verifiers],
        judges=[j.but(provider=stage) for j in recipe.label.judges],
    )
    small = resized(recipe, sources, LEAST)
    return small.but(
        pool=Pool(models=models, providers=[stage]),
        label=label,
        collect=small.collect.but(max_tokens=512),
        hidden_states=None,
    )


def _real(played: Recipe, layers: HiddenStates | None) -> Recipe:
    """The rehearsal with a real model in the place of the pool's, the coarser the smaller theirs.

    Judges stay programs: a model of 135 million parameters names the first of two answers in
    either order, or none.
    """
    from routeyard.flows.demo.real.weights import VARIANTS
    from routeyard.schemas.recipe import Provider, Waiver
    from routeyard.schemas.recipe.collect import RateLimits

    stage = Provider(name="real", base_url=f"${{{REAL}}}", limits=RateLimits(concurrency=2))
    models = played.pool.models
    largest = sorted(models, key=lambda one: -(one.params_b or float("inf")))
    finest = list(VARIANTS)
    last = max(len(models) - 1, 1)
    serves = {
        one.model_id: finest[round(place * (len(finest) - 1) / last)]
        for place, one in enumerate(largest)
    }
    asked = [
        one if one.relay is not None else one.but(
            endpoint_model=serves[one.model_id], provider=stage.name, simulated=False,
            price_cache_read=0.0, context_window=2048,
        )
        for one in models
    ]  # fmt: skip
    waived = [
        Waiver(gate=f"metering:{gate}", reason="A small model on the machine that rehearses.")
        for gate in ("truncated", "latency")
    ]
    return played.but(
        pool=Pool(models=asked, providers=[stage]),
        collect=played.collect.but(
            max_tokens=64,
            deadline_s=300.0,
            metering=played.collect.metering.but(cache_unwritten=1.0),
        ),
        release=played.release.but(waivers=[*played.release.waivers, *waived]),
        hidden_states=None if layers is None else layers.but(weights="smollm2", dtype="float32"),
    )


def _written(recipe: Recipe, folder: Path, *, real: bool = False) -> Path:
    """The rehearsal's recipe as YAML beside its files, named after the real one."""
    import yaml

    said = ISSUE.format("SmolLM2-135M in several quantisations" if real else "programs")
    release = recipe.release.but(known_issues=[*recipe.release.known_issues, said])
    content = recipe.but(release=release).model_dump(mode="json", exclude_unset=True)
    content["name"] = f"{recipe.name}-rehearsal"
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


@contextmanager
def _embedllm(recipe: str, folder: Path) -> Iterator[None]:
    """A planted EmbedLLM, imported, where the recipe reads one."""
    checked, _ = load(recipe)
    if not any(EMBEDLLM in (source.path or "") for source in checked.sources):
        yield
        return
    from routeyard.flows.demo.rehearsed import plant, write_embedllm
    from routeyard.pipelines.ingest.importers import IMPORTERS
    from routeyard.pipelines.ingest.importers.write import run_import

    raw = write_embedllm(plant(questions=PLANTED, names=TASKS, twin_tasks=3), folder / "embedllm")
    # Another version of Routeyard may have planted others; what is made of them is made again.
    shutil.rmtree(folder / "import", ignore_errors=True)
    done = run_import(IMPORTERS.get("embedllm"), raw, folder / "import")
    with _environment({EMBEDLLM: str(done.folder)}):
        yield


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
