"""Further files of a release: Croissant metadata and plots."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from routeyard.datacards.card import bibtex, card_numbers, hub_license, texts
from routeyard.datacards.charts import accuracy_bars, cost_accuracy
from routeyard.schemas import StoredTable
from routeyard.schemas.contracts import register

if TYPE_CHECKING:
    from routeyard.schemas.recipe import Release

# Plots of a card: accuracy per model, and accuracy over cost where costs are known.


def plots(numbers: Mapping[str, Any]) -> dict[str, bytes]:
    """`plots/accuracy.svg`, and `plots/cost.svg` when two models or more have a cost.

    Args:
        numbers: Of `card_numbers`.
    """
    costs = {row["model_id"]: row["cost"] for row in numbers["mean_costs"]}
    models: list[dict[str, Any]] = [
        {**row, "cost": 1000 * cost if (cost := costs.get(row["model_id"])) else None}
        for row in numbers["models"]
        if row["accuracy"] is not None
    ]
    if not models:
        return {}
    pool = [row["model_id"] for row in numbers["models"]]
    out = {"plots/accuracy.svg": accuracy_bars(models, pool=pool)}
    priced = [row for row in models if row["cost"] is not None]
    if len(priced) > 1:
        out["plots/cost.svg"] = cost_accuracy(
            priced, pool=pool, simulated=bool(numbers["simulated"])
        )
    return {path: text.encode() for path, text in out.items()}


# Responsible-AI properties of a release (Croissant RAI 1.0), from what the release knows.


def responsible(facts: Mapping[str, Any], words: Release, n: Mapping[str, Any]) -> dict[str, Any]:
    """Properties `rai:…` → text or list of texts; nothing that the release cannot know.

    Args:
        n: Of `card_numbers`.
    """
    counts = n["counts"] or {}
    sources = [str(source["source"]) for source in facts["sources"]]
    rules = [str(rule.get("rule")) for rule in facts["recipe"].get("curate") or ()]
    decided = [f"{row['decided_by']}: {row['labels']:,} labels" for row in n["decided"]]
    lacking = counts.get("undecided") or 0
    limits = [
        "Labels hold for these questions, these prompts and the served models of that time.",
        "A missing answer has no label; it is never counted wrong.",
        *(["The model pool is simulated: it says nothing about real models."]
          if n["simulated"] else []),
        *([f"{lacking:,} pairs of a question and a model have an answer but no label."]
          if lacking else []),
        *words.known_issues,
    ]  # fmt: skip
    fields = {
        "questions": n["rows"].get("queries", 0),
        "models": len(n["models"]),
        "sources": ", ".join(sources) or "not stated",
        "labelled": counts.get("labelled", 0),
        "rules": ", ".join(rules) or "none",
        "contested": counts.get("contested", 0),
        "unreadable": counts.get("unreadable", 0),
    }
    result = _filled(texts("responsible.yaml"), fields)
    result |= {"machineAnnotationTools": decided or ["none"], "dataLimitations": limits}
    return {f"rai:{name}": value for name, value in result.items()}


def _filled(value: Any, fields: Mapping[str, Any]) -> Any:
    """The texts of a template with what is known put in."""
    if isinstance(value, Mapping):
        return {name: _filled(item, fields) for name, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, fields) for item in value]
    return value.format(**fields)


def last_answer(tables: Mapping[str, pa.Table | StoredTable]) -> str | None:
    """The day of the newest answer (YYYY-MM-DD), or of the newest price; None without either.

    A release does not hold the time of its making: equal data give the same day.
    """
    import duckdb

    results: list[str] = []
    with duckdb.connect(config={"threads": 1}) as connection:
        for table, column in (("responses", "requested_at"), ("models", "price_date")):
            if not results and table in tables and column in tables[table].column_names:
                register(connection, table, tables[table])
                row = connection.execute(
                    f"SELECT max(left({column}, 10)) FROM {table} "
                    f"WHERE regexp_matches({column}, '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}')"
                ).fetchall()
                results += [value for (value,) in row if value]
    return results[0] if results else None


# Croissant metadata (JSON-LD): files with checksums, tables as record sets.
#
# Written from the contracts, so that a program can find and check every column.
# Format: MLCommons Croissant 1.1 with the RAI vocabulary 1.0.

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
    from routeyard.schemas.recipe import Release

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


def render(
    tables: Mapping[str, pa.Table | StoredTable], facts: Mapping[str, Any], *, draw: bool = True
) -> dict[str, bytes]:
    """Files by path inside the release; the same tables give the same bytes.

    Args:
        draw: False leaves the plots out.
    """
    numbers = card_numbers(tables)
    drawn = plots(numbers) if draw else {}
    return {CROISSANT: croissant(tables, facts, numbers).encode(), **drawn}
