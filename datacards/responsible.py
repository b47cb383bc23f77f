"""Responsible-AI properties of a release (Croissant RAI 1.0), from what the release knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from routeyard.datacards.markdown import texts
from routeyard.schemas.recipe.release import Release
from routeyard.schemas.stored import StoredTable, register


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
    told = {
        "questions": n["rows"].get("queries", 0),
        "models": len(n["models"]),
        "sources": ", ".join(sources) or "not stated",
        "labelled": counts.get("labelled", 0),
        "rules": ", ".join(rules) or "none",
        "contested": counts.get("contested", 0),
        "unreadable": counts.get("unreadable", 0),
    }
    found = _filled(texts("responsible.yaml"), told)
    found |= {"machineAnnotationTools": decided or ["none"], "dataLimitations": limits}
    if stated := words.datasheet.get("personal information"):
        found["personalSensitiveInformation"] = [stated]
    return {f"rai:{name}": value for name, value in found.items()}


def _filled(value: Any, told: Mapping[str, Any]) -> Any:
    """The texts of a template with what is known put in."""
    if isinstance(value, Mapping):
        return {name: _filled(one, told) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, told) for one in value]
    return value.format(**told)


def last_answer(tables: Mapping[str, pa.Table | StoredTable]) -> str | None:
    """The day of the newest answer (YYYY-MM-DD), or of the newest price; None without either.

    A release does not hold the time of its making: equal data give the same day.
    """
    import duckdb

    found: list[str] = []
    with duckdb.connect(config={"threads": 1}) as connection:
        for table, column in (("responses", "requested_at"), ("models", "price_date")):
            if not found and table in tables and column in tables[table].column_names:
                register(connection, table, tables[table])
                row = connection.execute(
                    f"SELECT max(left({column}, 10)) FROM {table} "
                    f"WHERE regexp_matches({column}, '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}')"
                ).fetchall()
                found += [value for (value,) in row if value]
    return found[0] if found else None
