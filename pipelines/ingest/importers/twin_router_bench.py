"""TwinRouterBench: the question bank of its static track, one step of an agent per line.

Layout: `question_bank.jsonl` with `id`, `benchmark`, `instance_id`, `step_index`, `total_steps`,
`messages`, `target_tier` and `target_tier_id`, as its `main/dataset.py`, `main/tiers.py` and
`main/eval/runner.py` (CommonstackAI/TwinRouterBench, 7b35f7f) read them; the bank itself was not
at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.importers import reading, spec
from routeyard.pipelines.ingest.importers.conversations import messages_in

#: From the cheapest to the strongest; a model of the pool is whatever serves a tier.
TIERS = ("low", "mid", "mid_high", "high")
_COLUMNS = ("id", "benchmark", "messages", "target_tier_id")


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """A step is a question, a tier an arm: its label says which tiers suffice."""
    result.choices.append(
        "a label is the cheapest tier that sufficed: every stronger tier counts as right, as in "
        "the benchmark's own grading, though it may not have been executed"
    )
    result.doubts.append(
        "steps of one trajectory share most of their prompts: keep them on one side of a split"
    )
    for path in paths:
        for where, row in reading.records(reading.json_rows(path), _COLUMNS, path.name, result):
            target = reading.count(row["target_tier_id"], where)
            if target is None or target >= len(TIERS) or _other(row.get("target_tier"), target):
                raise SourceError(
                    f"expected a tier from 0 to 3 and its name, found {row['target_tier_id']!r} "
                    f"and {row.get('target_tier')!r}",
                    where=where,
                )
            query, prompt = str(row["id"]), _prompt(row["messages"], where)
            task = str(row["benchmark"])
            result.ask(spec.ImportedQuestion(query, prompt, task, prompt=prompt), where)
            for number, tier in enumerate(TIERS):
                yield spec.ImportedAnswer(query, tier, score=float(number >= target))


def _other(name: Any, target: int) -> bool:
    """Whether a tier's name is not that of its number."""
    return name is not None and name != TIERS[target]


def _prompt(messages: Any, where: str) -> str:
    """The messages as one text, each under its role."""
    return "\n\n".join(
        f"{one['role']}:\n{reading.text(one.get('content') or one.get('tool_calls') or '')}"
        for one in messages_in(messages, where)
    )


IMPORTER = spec.importer("twin_router_bench", read)
