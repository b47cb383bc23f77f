"""The recipe of an import: it builds a release from the two Parquet files beside it."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from routeyard.pipelines.ingest.importers.spec import ImportedAnswer, Importer, ImportResult
from routeyard.pipelines.model_sizes import published_size
from routeyard.pipelines.published_split import NAMES

#: A size in billions as names state it; not one of several experts (`8x7b`).
_SIZE = re.compile(r"(?<![0-9a-zA-Z.])(\d+(?:\.\d+)?)[bB](?![0-9a-zA-Z])")


def _model(importer: Importer, model: str) -> dict[str, Any]:
    """A model of the pool; with a size where its name states exactly one, or one is published."""
    sizes = set(_SIZE.findall(model)) if importer.sizes_in_names else set()
    if len(sizes) == 1:
        size = float(next(iter(sizes)))
        return {"model_id": model, "params_b": size} if size > 0 else {"model_id": model}
    known = published_size(model)
    if known is None:
        return {"model_id": model}
    return {"model_id": model, "params_b": known.params_b, "params_source": known.words}


def recipe_of(
    importer: Importer, name: str, result: ImportResult, models: list[str], known: set[str]
) -> dict[str, Any]:
    """The recipe that builds a release from the two files beside it."""
    scorers = sorted({question.scorer for question in result.questions.values()})
    names = ("id", "question", "prompt", "choices", "references", "task", "domain")
    mapped: dict[str, Any] = {name: name for name in names}
    parts = {NAMES.get((one.split or "").lower()) for one in result.questions.values()}
    if parts != {None}:
        mapped["metadata"] = ["split"]
    # A split that was published is kept, to the question, where it can serve as one.
    published = {"curate": [{"rule": "upstream_split"}]} if {"train", "test"} <= parts else {}
    sources = [
        {
            "name": name if len(scorers) == 1 else f"{name}_{scorer}",
            "path": "queries.parquet",
            "scorer": scorer,
            "license": importer.license,
            "url": importer.url,
            "where": {"scorer": scorer},
            "fields": mapped,
        }
        for scorer in scorers
    ]
    answers = [f.name for f in fields(ImportedAnswer) if f.name in {"query", "model", *known}]
    recorded = {"path": "responses.parquet", "fields": {name: name for name in answers}}
    metered = {"prompt_tokens", "completion_tokens", "cost_usd"} <= known
    reason = f"Imported as recorded upstream ({importer.title}); usage or price is not stated."
    left_out = [f"{reason}: {n:,}" for reason, n in result.reasons().items()]
    return {
        "name": name,
        "version": "1.0.0",
        "sources": sources,
        "pool": {"models": [_model(importer, model) for model in models]},
        "collect": {"provider": "recorded", "recorded": [recorded]},
        # An answer that upstream did not grade has no label; it is not wrong.
        **({"label": {"default": {"unreadable": "null"}}} if "given" in scorers else {}),
        **published,
        "release": {
            "title": importer.title,
            "description": f"Imported from {importer.url} in the format {importer.name}.",
            "license": importer.license,
            "known_issues": [
                *(f"The source does not record {what}." for what in importer.lacks),
                *(f"Left out on import: {line}." for line in left_out),
                *(f"{doubt}." for doubt in (*result.choices, *result.doubts)),
            ],
            **({} if metered else {"waivers": [{"gate": "metering", "reason": reason}]}),
        },
    }


def write_yaml(content: dict[str, Any], importer: Importer, path: Path) -> None:
    """Write a recipe, or a part of one, under a head that names its upstream."""
    head = (
        f"# {importer.title}, imported from files of the format `{importer.name}`.\n"
        f"# Upstream: {importer.url} (licence as stated there: {importer.license}).\n"
        "# queries.parquet and responses.parquet are beside this file.\n"
    )
    # Recipes are read without aliases: through JSON no part is held twice.
    plain = json.loads(json.dumps(content))
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)
    path.write_text(head + text, encoding="utf-8", newline="\n")
