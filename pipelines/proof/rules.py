"""Rules between columns of a release (`rules.yaml`): one scan for each table."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from routeyard.pipelines.io.plain_yaml import read_text
from routeyard.pipelines.proof.claims import ProofClaim, Results, contradiction, not_run
from routeyard.pipelines.proof.evidence import Evidence
from routeyard.schemas.stored import register

#: Cost of a call by the prices of its model, as `Price.of` computes it.
_BY_TABLE = (
    "(CASE WHEN prompt_tokens > price_up_to OR {fresh} < 0 THEN NULL "
    "ELSE ({fresh} * price_in + {read} + {write} + completion_tokens * price_out) / 1e6 END)"
).format(
    fresh="(prompt_tokens - coalesce(cache_read_tokens, 0) - coalesce(cache_write_tokens, 0))",
    **{
        way: f"(CASE WHEN coalesce(cache_{way}_tokens, 0) = 0 THEN 0 ELSE cache_{way}_tokens * "
        f"coalesce(price_cache_{way}, CASE WHEN price_in = 0 THEN 0 END) END)"
        for way in ("read", "write")
    },
)


@cache
def rules() -> Mapping[str, Mapping[str, Any]]:
    """What `rules.yaml` holds: name of a group → its rows and rules."""
    path = Path(__file__).with_name("rules.yaml")
    found: Mapping[str, Mapping[str, Any]] = read_text(
        path.read_text(encoding="utf-8"), where=path.name
    )
    return found


def rows_against_rules(evidence: Evidence) -> Results:
    """Rows that break a rule, and what the rules kept."""
    import duckdb

    conditions, words = _conditions(evidence), _words(evidence)
    if evidence.collect is None and evidence.built and evidence.rows("responses"):
        check = "rules of answers that this code asked for, or that were recorded"
        yield not_run("responses", check, evidence.unread("collect"))
    with duckdb.connect(config={"memory_limit": "2GB"}) as connection:
        connection.execute("SET temp_directory = ?", [tempfile.gettempdir()])
        for name, table in evidence.tables.items():
            register(connection, name, table)
        for group, entry in rules().items():
            if not evidence.has(*entry["tables"]):
                continue
            wanted = {
                name: rule
                for name, rule in entry["rules"].items()
                if conditions[rule.get("when", "always")]
            }
            if wanted:
                yield from _group(connection, group, entry, wanted, words)


def _conditions(evidence: Evidence) -> dict[str, bool]:
    """When a rule is meant: `calls` are single calls, `asked` were sent by this code."""
    collect = evidence.collect
    recorded = collect is not None and collect.provider == "recorded"
    calls = not evidence.has("steps")
    return {
        "always": True,
        "calls": calls,
        "recorded": recorded,
        "asked": calls and collect is not None and not recorded,
    }


def _words(evidence: Evidence) -> dict[str, str]:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    return {
        "{by_table}": _BY_TABLE,
        "{tomorrow}": tomorrow.strftime("%Y-%m-%d"),
        "{samples}": str(evidence.samples),
    }


def _group(
    connection: Any,
    group: str,
    entry: Mapping[str, Any],
    wanted: Mapping[str, Mapping[str, Any]],
    words: Mapping[str, str],
) -> Results:
    def filled(text: str) -> str:
        for word, value in words.items():
            text = text.replace(word, value)
        return text

    where = f" WHERE {entry['where']}" if "where" in entry else ""
    breaks = {name: f"NOT coalesce(({filled(one['holds'])}), true)" for name, one in wanted.items()}
    counts = ", ".join(f"count(*) FILTER (WHERE {sql})" for sql in breaks.values())
    (row,) = connection.execute(f"SELECT count(*), {counts} FROM {entry['from']}{where}").fetchall()
    of, covers, proves = int(row[0]), list[str](), dict[str, str]()
    for (name, rule), bad in zip(wanted.items(), row[1:], strict=True):
        if not bad:
            about, valued = _about(connection, entry, rule) if "proves" in rule else (of, of)
            if about:  # of no row, it says nothing
                proves[name] = name if about == of else f"{name} ({about:,} of them)"
            if "proves" in rule and about >= valued:
                covers.append(f"{entry['tables'][0]}.{rule['proves']}")
            continue
        shown = f"{entry['key']}, {filled(rule['found'])}, {filled(rule['expected'])}"
        sql = f"SELECT {shown} FROM {entry['from']} WHERE {breaks[name]}"
        sql += f" AND {entry['where']}" if "where" in entry else ""
        examples = [
            f"{key}: {found}, expected {expected}"
            for key, found, expected in connection.execute(f"{sql} ORDER BY 1 LIMIT 3").fetchall()
        ]
        yield contradiction(entry["tables"][0], bad, of, f"rows break the rule '{name}'", examples)
    yield from _kept(group, wanted, of, proves, covers)


def _kept(
    group: str,
    wanted: Mapping[str, Mapping[str, Any]],
    of: int,
    proves: Mapping[str, str],
    covers: list[str],
) -> Results:
    """What rules without a row that breaks them show, by kind."""
    for kind in ("proved", "consistent"):
        of_kind = [
            says for name, says in proves.items() if wanted[name].get("kind", "consistent") == kind
        ]
        if of_kind and of:
            says = f"{of:,} rows: {'; '.join(of_kind)}"
            yield ProofClaim(kind, group, says, tuple(covers) if kind == "proved" else ())


def _about(connection: Any, entry: Mapping[str, Any], rule: Mapping[str, Any]) -> tuple[int, int]:
    """Rows of which a rule that proves a column speaks, and rows that have a value in it."""
    where = rule.get("of", "true")
    sql = f"SELECT count(*) FILTER (WHERE {where}), count({rule['proves']}) FROM {entry['from']}"
    ((about, valued),) = connection.execute(sql).fetchall()
    return int(about), int(valued)
