"""What a run shows: plan, spend, health, audit findings, certificate and diff.

Each function gives plain rows; `publish` shows them as Prefect artifacts in a
tracked run, so that the same figures can be read without the UI.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeyard.flows.tracking.run import artifact_key, publish_markdown, tracked
from routeyard.schemas.text import fenced, markdown, one_line

Rows = list[dict[str, Any]]


def spend(stage: Path) -> Rows:
    """Answers, tokens and USD per model; `unpriced` counts answers whose cost is unknown."""
    return _ask("spend", stage)


def health(stage: Path) -> Rows:
    """How each model answered: status counts, attempts, latency in seconds."""
    return _ask("health", stage)


def findings(stage: Path) -> Rows:
    """Findings of the metering audit, as its stage wrote them; a row that says so for none."""
    path = stage / "findings.json"
    found: Rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    rows = [{k: _plain(v) for k, v in finding.items()} for finding in found]
    return rows or [{"finding": "none"}]


def certificate(stage: Path) -> Rows:
    """The routability certificate: what it decides, then its figures and its routers' accuracy.

    `low` and `high` bound the 95 % interval; `says` holds words, or why a figure is missing.
    """
    path = stage / "certificate.json"
    if not path.is_file():
        return []
    record: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        _entry(key, **({"says": value} if isinstance(value, str) else {"value": value}))
        for key, value in sorted(record.items(), key=lambda one: (one[0] != "verdict", one[0]))
        if value is not None and not isinstance(value, Mapping | list)
    ]
    for name, one in record["figures"].items():
        rows.append(_entry(name, one["value"], one["low"], one["high"], one["reason"]))
    for one in record["routers"]:
        rows.append(_entry(f"router {one['router']}: accuracy", one["accuracy"]))
        gain = (one["gain"], one["gain_low"], one["gain_high"])
        rows.append(_entry(f"router {one['router']}: gain on the best single model", *gain))
    return rows


def _entry(
    entry: str, value: Any = None, low: Any = None, high: Any = None, says: str | None = None
) -> dict[str, Any]:
    # Every row has every column: the page takes the columns of the first.
    numbers = {"value": value, "low": low, "high": high}
    short = {k: round(v, 4) if isinstance(v, float) else v for k, v in numbers.items()}
    return {"entry": entry, **short, "says": says}


def difference(before: Path | None, after: Path) -> Rows:
    """Tables whose content differs between two releases, and by how many rows.

    Measured times do not count as a difference.
    """
    from routeyard.pipelines.release.manifest import read_manifest

    new = read_manifest(after).tables
    old = read_manifest(before).tables if before else {}
    rows: Rows = []
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        same = was and now and was.content_without_times == now.content_without_times
        counts = {"before": was.rows if was else None, "after": now.rows if now else None}
        rows.append({"table": name, **counts, "changed": not same})
    return rows


def publish(benchmark: str, key: str, rows: Rows, description: str) -> None:
    """A table artifact `<benchmark>-<key>` in a tracked run; nothing otherwise or for no rows."""
    if rows and tracked():
        from prefect.artifacts import create_table_artifact

        shown = [{name: cell(value) for name, value in row.items()} for row in rows]
        create_table_artifact(
            key=artifact_key(benchmark, key), table=shown, description=description
        )


def cell(value: Any) -> Any:
    """A value of a table as a page may show it: pages make links of `[text](address)`."""
    if not isinstance(value, str):
        return value
    return markdown(value) if "](" in value or "<" in value else one_line(value)


def publish_link(benchmark: str, key: str, to: str, description: str) -> None:
    """Where something is stored, in a tracked run: a link that opens, or words to copy.

    Browsers open no `file://` from a page that came by HTTP, so a folder is text.
    """
    if not tracked():
        return
    if address := web_address(to):
        from prefect.artifacts import create_link_artifact

        key = artifact_key(benchmark, key)
        create_link_artifact(key=key, link=address, link_text=to, description=description)
    else:
        publish_markdown(benchmark, key, f"{description}:\n\n{fenced(to)}", description)


def web_address(to: str) -> str | None:
    """What a browser opens for a place: a hub dataset's page, a web address, or nothing."""
    if to.startswith("hub:"):
        import os

        home = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
        return f"{home}/datasets/{to.removeprefix('hub:')}"
    return to if to.startswith(("https://", "http://")) else None


def _ask(query: str, stage: Path) -> Rows:
    """What a query beside this module finds in the responses of a stage."""
    import duckdb

    files = [str(path) for path in sorted((stage / "responses").glob("*.parquet"))]
    if not files:
        return []
    with duckdb.connect() as connection:
        sql = Path(__file__).with_name(f"{query}.sql").read_text(encoding="utf-8")
        found = connection.execute(sql, [files])
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _plain(value: Any) -> Any:
    """Scalars as they are, the rest as short JSON: cells of a table hold nothing else."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 500 else text[:497] + "…"
