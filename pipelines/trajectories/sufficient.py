"""The cheapest arm that sufficed from a step on, only where several arms were executed there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa


@dataclass(frozen=True)
class SufficientArms:
    """Labels of the prompts from which several arms went on.

    Attributes:
        labels: `query_id`, `step`, `arms` (tried), `arm` (the cheapest that sufficed; null where
            none did, or its cost is unknown), `trials`.
        steps: Steps in all; the others have no label, as no other arm was executed there.
    """

    labels: pa.Table
    steps: int

    def lines(self) -> Iterator[str]:
        """The labels in words."""
        if not self.labels.num_rows:
            yield (
                "cheapest sufficient arm: unknown at every step, as no two arms went on from "
                "the same prompt"
            )
            return
        counts = Counter(self.labels.column("arm").to_pylist())
        told = ", ".join(
            f"{arm or 'none that is known'} {n:,}" for arm, n in sorted(counts.items(), key=str)
        )
        yield (
            f"cheapest sufficient arm at {self.labels.num_rows:,} prompts from which several arms "
            f"went on: {told}; at the other steps it is unknown"
        )


def sufficient_arms(steps: pa.Table, enough: float = 1.0) -> SufficientArms:
    """The cheapest arm, by mean cost from the step on, of those that succeeded often enough.

    Arms are compared where they were asked the same prompt (`prefix_hash`) of the same task and
    the trajectory has an outcome. What another arm would have done elsewhere was not executed,
    and is not said.

    Args:
        enough: Least mean outcome of an arm's trials that suffices.
    """
    import duckdb

    sql = Path(__file__).with_name("sufficient.sql").read_text(encoding="utf-8")
    with duckdb.connect() as connection:
        connection.register("steps", steps)
        found = connection.sql(sql, params=[enough]).to_arrow_table()
    return SufficientArms(found, steps.num_rows)
