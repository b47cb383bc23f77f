"""What `routeyard zoo tune` wrote of a release, and the split that it was measured on."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.experiment.splits import with_validation
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.reading import core_of
from routeyard.pipelines.studies.context import StudyContext
from routeyard.pipelines.tuning.cell import identity


def runs_of(context: StudyContext, tables: Mapping[str, pa.Table]) -> pa.Table | None:
    """The rows of `tuned` that were measured on these tables' test questions."""
    if "tuned" not in context.tables:
        return None
    core, scheme = split_of(context, tables)
    return context.tables["tuned"].filter(
        pc.equal(context.tables["tuned"].column("data"), identity(core, scheme))
    )


def split_of(context: StudyContext, tables: Mapping[str, pa.Table]) -> tuple[Core, str]:
    core, own = core_of(tables), tables is context.tables
    scheme = context.default_scheme() if own else context.scheme_beside(core)
    return with_validation(core, scheme)[0], scheme
