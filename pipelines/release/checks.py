"""The checks that a release carries: views in its database, and `checks.sql` over its files.

Both are made of the same statements: of the contracts of its tables (`schemas/contracts.yaml`), of
`checks/rules.yaml` and of the files `checks/*.sql`. `verify` runs them from here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.sql import Check, quoted
from routeyard.pipelines.release.derived_tables import NUMBERED, SUMMARIES
from routeyard.schemas import CONTRACTS, Contract
from routeyard.schemas.contracts import statements
from routeyard.schemas.release import FOLDER, WITHHELD, Manifest
from routeyard.schemas.text import own_table

#: The checks over the files, in a release.
FILE = "checks.sql"
_CHECKS = Path(__file__).with_name("checks")
#: What checks need that ask what only a release of the same version of the code has.
SAME_CODE = "same_code"


def release_checks(tables: Collection[str], *origins: str) -> list[Check]:
    """The checks that need no other tables than these.

    Args:
        tables: With `same_code` for a release that this version of the code made.
        origins: `contracts`, `references`, `rules` or the name of a file; all of them by default.
    """
    counted = " UNION ALL ".join(
        f"SELECT '{name}' AS name, count(*) AS n FROM {name}"
        for name in CONTRACTS
        if name in tables
    )
    return [
        replace(check, sql=check.sql.replace("{counted}", counted))
        for origin, found in _all().items()
        for check in found
        if {*check.needs} - {"nothing"} <= {*tables} and (not origins or origin in origins)
    ]


@cache
def _all() -> Mapping[str, list[Check]]:
    files = sorted(path for path in _CHECKS.glob("*.sql") if path.stem not in ("files", "stated"))
    return {
        "contracts": [check for c in CONTRACTS.values() for check in _of_contract(c)],
        "references": [
            _of_reference(child.name, tuple(columns), parent)
            for child in CONTRACTS.values()
            for parent, columns in child.parents.items()
        ],
        "rules": [_of_rule(group, name) for group, name in rules()],
        **{
            path.stem: [
                Check.of(name, sql.replace("{withheld}", quoted(WITHHELD)))
                for name, sql in statements(path).items()
            ]
            for path in files
        },
    }


def _of_contract(contract: Contract) -> Iterator[Check]:
    """That no key is repeated, and that columns keep the rules of their contract."""
    name, key = contract.name, tuple(contract.key)
    names = ", ".join(f'"{column}"' for column in key)
    yield Check(
        f"{name}_keys", "proved", f"no key of {name} is repeated", "error", (name,), key,
        f"SELECT {names}, count(*) || ' rows' AS found, '1' AS expected\n"
        f"FROM {name} GROUP BY ALL HAVING count(*) > 1",
    )  # fmt: skip
    broken = {
        f'"{column.name}" IS NULL': f"{column.name} is null"
        for column in contract.columns
        if not column.nullable
    }
    broken |= {f"({rule.predicate}) IS NOT TRUE": rule.name for rule in contract.checked}
    cases = ",\n    ".join(
        f"CASE WHEN {condition} THEN {quoted(says)} END" for condition, says in broken.items()
    )
    yield Check(
        f"{name}_rules", "proved", f"rows of {name} keep the rules of their contract", "error",
        (name,), key,
        f"SELECT {names}, broken AS found, 'a row that keeps its contract' AS expected\n"
        f"FROM (SELECT *, concat_ws(', ',\n    {cases}) AS broken FROM {name}) WHERE broken <> ''",
    )  # fmt: skip


def _of_reference(child: str, columns: tuple[str, ...], parent: str) -> Check:
    key = ", ".join(columns)
    return Check(
        f"{child}_of_{parent}", "proved", f"each {key} of {child} is in {parent}", "error",
        (child, parent), columns,
        f"SELECT DISTINCT {key}, 'not in {parent}' AS found, 'a row of {parent}' AS expected\n"
        f"FROM {child} ANTI JOIN {parent} USING ({key})",
    )  # fmt: skip


@cache
def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = own_table(_CHECKS / "rules.yaml")
    return content


def rules() -> Iterator[tuple[Mapping[str, Any], str]]:
    """Each group of rules of `rules.yaml`, with the name of each of its rules."""
    groups = (group for group in _content().values() if isinstance(group, Mapping))
    yield from ((group, name) for group in groups for name in group["rules"])


def _of_rule(group: Mapping[str, Any], name: str) -> Check:
    rule = group["rules"][name]
    conditions = [f"NOT coalesce(({rule['holds']}), true)"]
    if "when" in rule:
        conditions.append(f"(SELECT {rule['when']} FROM stated.recipe)")
    if "where" in group:
        conditions.append(group["where"])
    sql = (
        f"SELECT {group['key']} AS key, {rule['found']} AS found, {rule['expected']} AS expected\n"
        f"FROM {group['from']}\nWHERE {' AND '.join(conditions)}"
    ).replace("{by_table}", _content()["cost by the price table"])
    kind = rule.get("kind", "consistent")
    tables = tuple(group["tables"])
    return Check(re.sub(r"\W+", "_", name), kind, name, "error", tables, ("key",), sql)


# Names in a connection: the files of a release, what it states, and views of checks.


def named_tables(paths: Mapping[str, str]) -> dict[str, str]:
    """Name → SQL of each table in files of a release; those by number are in `numbered`.

    Args:
        paths: File of a release → its path as DuckDB reads it.
    """
    tables = {name: f"FROM read_parquet('data/{name}.parquet')" for name in CONTRACTS}
    tables |= statements(_CHECKS / "files.sql")
    tables |= {f"numbered_{n}": f"FROM read_parquet('{NUMBERED}/{n}.parquet')" for n in SUMMARIES}
    named = {}
    for name, sql in tables.items():
        files = set(re.findall(r"read_parquet\('([^']+)'", sql))
        if files <= paths.keys():
            for file in files:
                sql = sql.replace(f"'{file}'", quoted(paths[file]))
            named[name.replace("numbered_", "numbered.")] = sql
    return named


def named_files(paths: Mapping[str, str]) -> Iterator[str]:
    """SQL that makes a view of each of `named_tables`."""
    yield "CREATE SCHEMA numbered"
    for name, sql in named_tables(paths).items():
        yield f"CREATE VIEW {name} AS {sql}"


def stated_text(manifest: Manifest) -> str:
    """What a database keeps of a manifest, as JSON: no file and no checksum."""
    names = {"name", "version", "recipe", "sources", "waivers", "figures"}
    facts = manifest.model_dump(mode="json", include=names)
    facts["tables"] = {name: {"rows": entry.rows} for name, entry in manifest.tables.items()}
    return json.dumps(facts, sort_keys=True, ensure_ascii=False)


def stated(manifest: str, card: str) -> Iterator[str]:
    """SQL that makes the schema `stated` of a release's manifest and card.

    Args:
        manifest: SQL of its text; so is `card`.
    """
    sql = statements(_CHECKS / "stated.sql")
    yield "CREATE SCHEMA stated"
    integers = "json_type(x) IN ('BIGINT', 'UBIGINT')"
    yield f"CREATE MACRO stated.whole(x) AS CASE WHEN {integers} THEN x::BIGINT END"
    yield f"CREATE TABLE stated.manifest AS SELECT {manifest}::JSON AS told"
    for name in ("counts", "card"):
        yield f"CREATE TABLE stated.{name} AS {sql.pop(name).replace('$card', card)}"
    for name, statement in sql.items():
        yield f"CREATE VIEW stated.{name} AS {statement}"


def views_of(checks: Iterable[Check]) -> Iterator[str]:
    """SQL that makes a view of each check, and `checks.summary`."""
    yield "CREATE SCHEMA checks"
    lines = []
    for check in checks:
        yield f"CREATE VIEW checks.{check.name} AS\n{check.text}"
        yield f"COMMENT ON VIEW checks.{check.name} IS {quoted(check.says)}"
        table = check.needs[0] if check.needs[0] in CONTRACTS else "the release"
        mend = f"fetch {table} again; if the rows stay, do not rely on it and tell its publisher"
        lines.append(
            f"SELECT '{check.name}' AS \"check\", {quoted(check.says)} AS says,\n"
            f"    (SELECT count(*) FROM checks.{check.name}) AS rows, {quoted(mend)} AS what_to_do"
        )
    summary = "\nUNION ALL ".join(lines)
    yield f'CREATE VIEW checks.summary AS {summary}\nORDER BY rows DESC, "check"'
    yield "COMMENT ON VIEW checks.summary IS 'Each check, and how many rows break it'"


_INTRO = """\
-- Checks of this release, in plain DuckDB: run `duckdb -f checks.sql` in this folder, or in Python
-- `duckdb.sql(open("checks.sql").read())`. It reads the Parquet files, the manifest and the card
-- beside it and writes nothing. It shows how many rows break each check; `FROM checks.NAME` shows
-- which. `routeyard verify` finds out whether this text was changed, and checks what SQL cannot.

"""


def checks_file(files: Collection[str]) -> str:
    """Text of `checks.sql`: names of the files, what the release states, the checks, the summary.

    Args:
        files: Files of the release.
    """
    paths = {file: file for file in files if file.endswith(".parquet")}
    if any(file.startswith(f"{FOLDER}/") for file in files):
        paths[FOLDER] = f"{FOLDER}/*/*.parquet"
    texts = (f"(SELECT content FROM read_text('{f}'))" for f in ("manifest.json", "README.md"))
    parts = [
        *named_files(paths),
        *stated(*texts),
        *views_of(release_checks({*named_tables(paths), SAME_CODE})),
        "FROM checks.summary",
    ]
    return _INTRO + ";\n\n".join(parts) + ";\n"
