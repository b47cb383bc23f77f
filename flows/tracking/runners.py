"""Where the tasks of a tracked run work: threads of one process, or a Dask cluster."""

from __future__ import annotations

from typing import Any, Literal

from routeyard.pipelines.errors import BadInput

Runner = Literal["threads", "dask"]


def on(flow: Any, runner: Runner, *, workers: int = 2, dask_address: str | None = None) -> Any:
    """The same flow on another task runner; the stages and their order stay as they are.

    Args:
        workers: Threads, or processes of a local Dask cluster.
        dask_address: Scheduler of a cluster that runs already (`tcp://host:8786`).

    Raises:
        BadInput: `dask` without prefect-dask.
    """
    if runner == "threads":
        from prefect.task_runners import ThreadPoolTaskRunner

        return flow.with_options(task_runner=ThreadPoolTaskRunner(max_workers=workers))
    try:
        from prefect_dask import DaskTaskRunner
    except ImportError as error:
        raise BadInput(
            "the Dask runner needs prefect-dask",
            next_step="pip install -c constraints.txt '.[dask]'",
        ) from error
    if dask_address:
        return flow.with_options(task_runner=DaskTaskRunner(address=dask_address))
    # One thread each: labelling and embedding hold the interpreter.
    local = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    return flow.with_options(task_runner=DaskTaskRunner(cluster_kwargs=local))
