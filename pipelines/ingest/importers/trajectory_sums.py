"""What importers of agents share: sums over steps, and reports of the SWE-bench harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.ingest.importers import reading, spec

#: Counts of an answer that are those of its steps together.
TOKENS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")


def sums_of(steps: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Column → sum over all steps; None as soon as one is unknown."""
    values = {name: [step[name] for step in steps] for name in names}
    return {
        name: None if not found or None in found else sum(found) for name, found in values.items()
    }


def harness_reports(paths: Sequence[Path], result: spec.ImportResult) -> dict[str, bool]:
    """Instance → whether it was resolved, from the SWE-bench harness's reports among the files."""
    resolved: dict[str, bool] = {}
    for path in paths:
        if path.suffix != ".json" or path.name.endswith(".traj.json"):
            continue
        content = reading.load_json(path)
        if not isinstance(content, dict) or not isinstance(content.get("resolved_ids"), list):
            result.skip("files that are not of the format", path.name)
            continue
        judged = content.get("completed_ids") or content.get("submitted_ids") or []
        resolved |= dict.fromkeys(map(str, judged), False)
        resolved |= dict.fromkeys(map(str, content["resolved_ids"]), True)
    if not resolved:
        result.doubts.append(
            "whether instances were resolved is not known: put the harness's report, with "
            "`resolved_ids`, beside the trajectories"
        )
    return resolved
