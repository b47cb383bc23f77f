"""Results of many evaluations, read from their folders into one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.run.written import metrics_table, told


def read_leaderboard(results: Iterable[Path]) -> tuple[pa.Table, list[str]]:
    """One row per result and router, best accuracy first; and the releases they are of.

    Args:
        results: `metrics.parquet` files, or folders that hold one.

    Raises:
        BadInput: there is no such file, or it is not an evaluation's table of metrics.
    """
    found, releases = {}, {}
    for path in results:
        file = path / "metrics.parquet" if path.is_dir() else path
        if not file.is_file():
            raise BadInput(
                "there is no metrics.parquet",
                where=str(path),
                next_step="name a folder that `routeyard evaluate … --out FOLDER` wrote",
            )
        table = metrics_table(file)
        if table is None:
            raise BadInput("this is no metrics table of an evaluation", where=str(file))
        name = file.parent.name or str(file)
        found[name] = table
        if release := _release(file.parent):
            releases[name] = release
    return leaderboard(found, releases=releases), sorted(set(releases.values()))


def _release(folder: Path) -> str | None:
    """Release and split scheme of an evaluation; None where the folder does not record them."""
    about = told(folder)
    try:
        of = about["release"]
        return f"{of['name']} {of['version']} ({about['facts']['scheme']})"
    except (KeyError, TypeError):
        return None


def leaderboard(
    results: Mapping[str, pa.Table],
    *,
    releases: Mapping[str, str] | None = None,
    split: str = "test",
) -> pa.Table:
    """One row per (result file, router) with the metrics as columns, best accuracy first.

    Where labels of the chosen models are missing, their place is that of `accuracy_floor`, which
    counts them as wrong. `questions` says over how many of the test questions the accuracy is,
    such as `117 of 120`; null in results of versions that did not store it.

    Args:
        results: name of a result → its metrics table.
        releases: name of a result → release and scheme that it is of, where that is known.
    """
    of = releases or {}
    tested = {
        result: table.filter(pc.equal(table.column("split"), split)).to_pylist()
        for result, table in sorted(results.items())
    }
    names = {row["metric"] for part in tested.values() for row in part}
    names -= {"result", "release", "router", "questions"}  # which say what a row is of
    rows: list[dict[str, object]] = []
    for result, part in tested.items():
        asked = max((row.get("n") or 0 for row in part), default=0)
        for router in sorted({row["router"] for row in part}):
            values = {row["metric"]: row for row in part if row["router"] == router}
            line = {"result": result, "release": of.get(result), "router": router}
            line |= {name: values.get(name, {}).get("value") for name in sorted(names)}
            if "accuracy" in values:
                n = values["accuracy"].get("n")
                line["questions"] = f"{n:,} of {asked:,}" if n is not None else None
                line["accuracy_low"] = values["accuracy"]["low"]
                line["accuracy_high"] = values["accuracy"]["high"]
            rows.append(line)
    rows.sort(key=_place)
    return (
        pa.Table.from_pylist(rows)
        if rows
        else pa.table({"result": [], "release": [], "router": []})
    )


def _place(row: dict[str, object]) -> tuple[float, str, str]:
    floor = row.get("accuracy_floor")
    accuracy = row.get("accuracy") if floor is None else floor
    return (
        -accuracy if isinstance(accuracy, float) else 1.0,
        str(row["result"]),
        str(row["router"]),
    )
