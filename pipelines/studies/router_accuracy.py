"""Test accuracy of routers with their gap to the oracle (the routing plateau)."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.studies.context import StudyContext
from pipelines.studies.router_table import router_cells
from pipelines.studies.study import Study, StudyCell


def cells(context: StudyContext) -> Sequence[StudyCell]:
    return router_cells(
        context,
        {
            "accuracy": ("accuracy", "percent"),
            "gap_to_oracle": ("gap to oracle", "points"),
            "gain_over_best_single": ("gain over best single", "points"),
            "agreement_with_generalist": ("agreement with generalist", "percent"),
        },
    )


STUDY = Study(
    name="router_accuracy",
    paper="routing-plateau",
    item="Table 1, Figure 2",
    title="Test accuracy of routers, and how far below the oracle they stay",
    cells=cells,
    needs=("labels", "splits", "embeddings"),
    rows="router",
    plot="bars",
    plot_column="accuracy",
    notes=("One encoder and one fit per router; the paper averages over six encoders.",),
)
