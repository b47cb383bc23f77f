"""What the options of `routeyard evaluate` say: groups of tasks, bands, a judge's picks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from routeyard.pipelines.bands import Bands
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.experiment.given import read_predictions


def parse_groups(texts: Sequence[str] | None) -> dict[str, list[str]] | None:
    """`name=pattern,pattern` or the name of a known group (`stem`), again for more groups."""
    from routeyard.pipelines.task_groups import OOD_GROUPS

    groups: dict[str, list[str]] = {}
    for text in texts or []:
        name, _, patterns = text.partition("=")
        if text in OOD_GROUPS:
            groups[text] = list(OOD_GROUPS[text])
            continue
        listed = [pattern.strip() for pattern in patterns.split(",") if pattern.strip()]
        if not name.strip() or not listed:
            raise BadInput(
                f"{text!r} is no group of tasks",
                next_step="write it as stem=mmlu_physics*,gsm8k, or name one: "
                + ", ".join(OOD_GROUPS),
            )
        groups[name.strip()] = listed
    return groups or None


def parse_bands(text: str) -> Bands:
    """`d1_lpm,d1_mpm,low,high`."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 4:
        raise BadInput(f"{text!r} gives no bands", next_step="write them as 0.25,0.30,0.85,0.95")
    return Bands(*values)


def read_picks(path: Path) -> dict[str, dict[str, float]]:
    """router → query → 1 where the judge selected its answer, 0 where another's.

    Every judged question counts for every router that is named anywhere.
    """
    if not path.is_file():
        raise BadInput("there is no such file of picks", where=str(path))
    table = read_predictions(path)
    missing = [c for c in ("query_id", "router") if c not in table.column_names]
    if missing:
        raise BadInput(
            f"the file of picks lacks column {missing[0]!r}",
            where=str(path),
            next_step="columns: query_id, router (the one whose answer the judge selected)",
        )
    picked = dict(zip(*(table.column(c).to_pylist() for c in ("query_id", "router")), strict=True))
    return {
        router: {query: float(picked[query] == router) for query in picked}
        for router in sorted(set(picked.values()))
    }
