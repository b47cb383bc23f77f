"""Responsible-AI properties of a release (Croissant RAI 1.0), from what the release knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from routeyard.datacards.numbers import card_numbers
from routeyard.schemas.recipe.release import Release
from routeyard.schemas.stored import StoredTable, register


def responsible(
    facts: Mapping[str, Any], words: Release, tables: Mapping[str, pa.Table | StoredTable]
) -> dict[str, Any]:
    """Properties `rai:…` → text or list of texts; nothing that the release cannot know."""
    n = card_numbers(tables)
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
    found: dict[str, Any] = {
        "dataCollection": f"{n['rows'].get('queries', 0):,} questions were asked of "
        f"{len(n['models'])} models; every answer, its cost and its verdicts are kept.",
        "dataCollectionType": ["Software Collection", "Secondary Data Analysis"],
        "dataCollectionRawData": "Questions of: " + (", ".join(sources) or "not stated") + ".",
        "dataCollectionMissingData": f"{counts.get('labelled', 0):,} labels; pairs without one "
        "are null, with the reason in `labels` and `removals`.",
        "dataPreprocessingProtocol": ["Curation rules in order: " + (", ".join(rules) or "none")],
        "dataManipulationProtocol": "What a rule removed is listed in `removals` with its reason.",
        "dataAnnotationProtocol": "Rules, verifiers and judges record verdicts; a policy turns "
        "them into labels and marks contested ones. Nothing is overwritten.",
        "dataAnnotationPlatform": ["Routeyard"],
        "dataAnnotationAnalysis": [
            f"{counts.get('contested', 0):,} labels are contested; "
            f"{counts.get('unreadable', 0):,} answers were unreadable."
        ],
        "machineAnnotationTools": decided or ["none"],
        "dataLimitations": limits,
        "dataUseCases": ["Training, validating and testing LLM routers; studying model pools."],
        "dataBiases": ["Models and questions are those the recipe names, not a sample of all."],
        "personalSensitiveInformation": [
            words.datasheet.get("personal information")
            or "Not examined beyond what the sources state."
        ],
        "dataReleaseMaintenancePlan": "Versions are never changed; a wrong one is yanked with "
        "its reason and a new one is built from the same recipe.",
    }
    return {f"rai:{name}": value for name, value in found.items()}


def last_answer(tables: Mapping[str, pa.Table | StoredTable]) -> str | None:
    """The day of the newest answer (YYYY-MM-DD), or of the newest price; None without either.

    A release holds no time of its own: equal data give the same day.
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
