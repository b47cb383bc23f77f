"""Croissant metadata (JSON-LD): files with checksums, tables as record sets.

Written from the contracts, so that a program can find and check every column.
Format: MLCommons Croissant 1.1 with the RAI vocabulary 1.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from routeyard.datacards.cite import bibtex
from routeyard.datacards.front_matter import hub_license
from routeyard.datacards.markdown import texts
from routeyard.datacards.responsible import last_answer, responsible
from routeyard.schemas import StoredTable
from routeyard.schemas.recipe.release import Release

CROISSANT = "croissant.json"
#: The format, and its vocabulary for responsible AI.
CONFORMS_TO = ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]


def croissant(
    tables: Mapping[str, pa.Table | StoredTable],
    facts: Mapping[str, Any],
    numbers: Mapping[str, Any],
) -> str:
    """`croissant.json`: the text of the metadata, keys in a fixed order.

    Args:
        numbers: Of `card_numbers`.
    """
    words = Release.model_validate(facts["recipe"].get("release") or {})
    licence, name = hub_license(words.license, [s.get("license") for s in facts["sources"]])
    full = {name: table for name, table in tables.items() if table.num_rows}
    date = last_answer(tables)
    metadata = {
        "@context": texts("croissant_context.json"),
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": facts["name"],
        "version": facts["version"],
        "description": words.description or f"LLM-routing benchmark {facts['name']}",
        "license": name or licence,
        "keywords": sorted({"llm-routing", "routeyard", *words.tags}),
        "inLanguage": list(words.languages),
        "citeAs": words.citation or bibtex({**facts, "fingerprint": None, "date_published": date}),
        **({"datePublished": date} if date else {}),
        **responsible(facts, words, numbers),
        "distribution": [_file(table, facts["files"]) for table in full],
        "recordSet": [_record_set(table, rows.schema) for table, rows in full.items()],
    }
    return json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"


def _file(table: str, files: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    path = f"data/{table}.parquet"
    return {
        "@type": "cr:FileObject",
        "@id": f"{table}.parquet",
        "name": f"{table}.parquet",
        "contentUrl": path,
        "contentSize": f"{files[path]['size']} B",
        "encodingFormat": "application/x-parquet",
        "sha256": files[path]["sha256"],
    }


def _record_set(table: str, schema: pa.Schema) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": table,
        "name": table,
        "field": [_field(table, field) for field in schema],
    }


def _field(table: str, field: pa.Field) -> dict[str, Any]:
    kind = field.type
    listed = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)
    says = (field.metadata or {}).get(b"description", b"").decode()
    unit = (field.metadata or {}).get(b"unit", b"").decode()
    return {
        "@type": "cr:Field",
        "@id": f"{table}/{field.name}",
        "name": field.name,
        "description": f"{says} [{unit}]" if unit else says,
        "dataType": _data_type(kind.value_type if listed else kind),
        **({"repeated": True} if listed else {}),
        "source": {
            "fileObject": {"@id": f"{table}.parquet"},
            "extract": {"column": field.name},
        },
    }


def _data_type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    return "sc:Float" if pa.types.is_floating(kind) else "sc:Text"
