"""Prefect beyond tasks: settings, retries, limits, events, artifacts."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from routeyard.pipelines.common.errors import BudgetReached, GateFailed
from routeyard.schemas.errors import BadInput, RouteyardError
from routeyard.schemas.text import visible

if TYPE_CHECKING:
    from routeyard.schemas.recipe import Recipe

# Prefect when an API is configured, the same functions directly when none is.
#
# A temporary Prefect server costs 15 seconds per run, and its import 1.5 CPU-seconds per process;
# most runs need neither.

# Lines for the log of a tracked run; each names benchmark, stage and shard.
#
#     [gsm8k verdicts 3/8] 1,319 verdicts, in 4.2 s
#
# Without Prefect there is no log: `routeyard.flows.console` tells the person who waits.


def log(
    benchmark: str,
    stage: str,
    text: str,
    *,
    shard: tuple[int, int] | None = None,
    error: bool = False,
) -> None:
    """Write one line to the log of the Prefect run we are in, if we are in one.

    Args:
        shard: (number from 1, how many), where the stage works in several.
        error: The run ends here and has no release; one such line per run.
    """
    if "prefect" not in sys.modules:
        return
    from prefect.exceptions import MissingContextError
    from prefect.logging import get_run_logger

    try:
        logger = get_run_logger()
    except MissingContextError:
        return
    part = f" {shard[0]}/{shard[1]}" if shard else ""
    level = logging.ERROR if error else logging.INFO
    logger.log(level, "[%s %s%s] %s", benchmark, stage, part, visible(text))


def counts(figures: Mapping[str, Any]) -> str:
    """The whole numbers among some figures: `1,319 verdicts, 0 removed`."""
    sizes = [
        f"{value:,} {name}"
        for name, value in figures.items()
        if isinstance(value, int) and not isinstance(value, bool)
    ]
    return ", ".join(sizes) or "done"


class _Stops(logging.Filter):
    """Drops the frames that Prefect logs for an error whose text is shown already."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, RouteyardError)


_STOPS = _Stops()


def stops_in_words() -> None:
    """From here on bad input, a gate or a spent budget is logged without a traceback.

    Each flow and task that such an error passes through would log it whole; the state of the
    run keeps its text. Errors of other kinds are logged as ever.
    """
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logging.getLogger(name).addFilter(_STOPS)


@dataclass(eq=False)
class Deferred:
    """A function that is made a Prefect flow or task the first time that Prefect runs it."""

    kind: Literal["flow", "task"]
    fn: Callable[..., Any]
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name in Prefect."""
        return str(self.options["name"])

    @cached_property
    def made(self) -> Any:
        """The Prefect flow or task."""
        import prefect

        return getattr(prefect, self.kind)(**self.options)(self.fn)


def api_configured() -> bool:
    """True when Prefect knows an API (environment, profile or test harness)."""
    if "prefect" not in sys.modules and not _has_settings():
        return False
    from prefect.settings import PREFECT_API_URL

    return PREFECT_API_URL.value() is not None


def _has_settings() -> bool:
    """True where Prefect has settings that could name an API: then only Prefect can tell."""
    if any(name.startswith("PREFECT_") for name in os.environ):
        return True
    profiles = Path.home() / ".prefect" / "profiles.toml"
    if profiles.exists() or Path("prefect.toml").exists():
        return True
    settings = {".env": "prefect_", "pyproject.toml": "[tool.prefect"}
    return any(
        mark in Path(name).read_text("utf-8", "replace").lower()
        for name, mark in settings.items()
        if Path(name).is_file()
    )


def tracked() -> bool:
    """True inside a flow run that Prefect tracks."""
    if "prefect" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


def run_name(verb: str) -> Callable[[], str]:
    """Name of a flow run: the verb, the benchmark and its version."""

    def name() -> str:
        from prefect.runtime import flow_run

        from routeyard.flows.recipe import load

        parameters = dict(flow_run.parameters)
        recipe = parameters["recipe"]
        checked = load(recipe)[0] if isinstance(recipe, str) else recipe
        return f"{verb} {checked.name} {parameters.get('version') or checked.version}"

    return name


def start(flow: Any, **parameters: Any) -> Any:
    """Run a flow through Prefect when an API is configured, else directly."""
    return _made(flow)(**parameters) if api_configured() else flow.fn(**parameters)


def call(task: Any, **parameters: Any) -> Any:
    """Run one task, tracked or directly."""
    return _made(task)(**parameters) if tracked() else task.fn(**parameters)


def _made(part: Any) -> Any:
    return part.made if isinstance(part, Deferred) else part


def each(
    task: Any,
    parameters: Sequence[Mapping[str, Any]],
    *,
    processes: int = 1,
    on_done: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """Run one task per set of parameters and return the results in order.

    Tracked runs hand the tasks to the flow's task runner (threads, Dask, Ray);
    direct runs use `processes` worker processes. `on_done` is called with (done, wanted).
    """
    results = []
    for result in _run_each(task, parameters, processes):
        results.append(result)
        if on_done:
            on_done(len(results), len(parameters))
    return results


def _run_each(task: Any, parameters: Sequence[Mapping[str, Any]], processes: int) -> Iterator[Any]:
    if tracked():
        futures = [_made(task).submit(**parameter) for parameter in parameters]
        yield from (future.result() for future in futures)
    elif processes <= 1 or len(parameters) <= 1:
        yield from (task.fn(**parameter) for parameter in parameters)
    else:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        from routeyard.pipelines.common.machine import collect_rarely

        spawned = get_context("spawn")
        with ProcessPoolExecutor(processes, spawned, initializer=collect_rarely) as pool:
            yield from pool.map(_direct, [task.fn] * len(parameters), parameters)


def _direct(function: Any, parameters: Mapping[str, Any]) -> Any:
    return function(**parameters)


def artifact_key(benchmark: str, key: str) -> str:
    """`<benchmark>-<key>`: artifacts of several benchmarks on one server stay apart.

    Prefect takes small letters, digits and dashes.
    """
    return re.sub(r"[^a-z0-9]+", "-", f"{benchmark}-{key}".lower()).strip("-")


def publish_markdown(benchmark: str, key: str, text: str, description: str) -> None:
    """A text as an artifact."""
    artifact("markdown", benchmark, key, description, markdown=text)


def artifact(
    kind: Literal["markdown", "table", "link"],
    benchmark: str,
    key: str,
    description: str,
    **content: Any,
) -> None:
    """A Prefect artifact `<benchmark>-<key>` in a tracked run; nothing otherwise."""
    if tracked():
        import prefect.artifacts

        create = getattr(prefect.artifacts, f"create_{kind}_artifact")
        create(key=artifact_key(benchmark, key), description=description, **content)


# How often a Prefect task is tried again, how long it waits, and what is not worth it.


def worth_retrying(task: Any, run: Any, state: Any) -> bool:
    """False where the same inputs give the same refusal: bad input, a gate, a spent budget."""
    try:
        state.result()
    except (BadInput, GateFailed, BudgetReached):
        return False
    except Exception:
        return True
    return True


#: For tasks that load from elsewhere: after about 5, 10 and 20 seconds, jittered.
ATTEMPTS: dict[str, Any] = {
    "retries": 3,
    "retry_delay_seconds": [5, 10, 20],
    "retry_jitter_factor": 0.5,
    "retry_condition_fn": worth_retrying,
}

#: For tasks whose every call was tried again already, as the recipe's `retry` says.
AFTER_CALLS = ATTEMPTS | {"retries": 1}
#: For tasks on this machine's disk and processors.
ON_THIS_MACHINE = ATTEMPTS | {"retries": 1, "retry_delay_seconds": 2}


# Where the tasks of a tracked run work: threads of one process, or a Dask cluster.

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


# Prefect global concurrency limits, one per provider: its calls in flight over all workers.


def limit_name(provider: str) -> str:
    """Name of a provider's global concurrency limit."""
    return f"routeyard-provider-{provider}"


def set_limits(providers: Mapping[str, int]) -> dict[str, int]:
    """Give each provider's limit so many slots; returns limit name → slots."""
    from prefect.client.orchestration import get_client

    limits = {limit_name(name): slots for name, slots in providers.items()}
    with get_client(sync_client=True) as client:
        for name, slots in limits.items():
            client.upsert_global_concurrency_limit_by_name(name, slots)
    return limits


def made(providers: Mapping[str, int]) -> dict[str, int]:
    """Provider → slots of its limit as the server has it; made with the given ones if missing.

    A limit that somebody changed in the UI stays as it is.
    """
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    result = {}
    with get_client(sync_client=True) as client:
        for name, slots in providers.items():
            try:
                limit = client.read_global_concurrency_limit_by_name(limit_name(name))
                result[name] = int(limit.limit)
            except ObjectNotFound:
                client.upsert_global_concurrency_limit_by_name(limit_name(name), slots)
                result[name] = slots
    return result


# What a run tells automations: a benchmark was released, or a gate stopped it.

RELEASED = "routeyard.released"
GATE_FAILED = "routeyard.gate-failed"


def emit(event: str, benchmark: str, **payload: Any) -> None:
    """Send an event about a benchmark in a tracked run; nothing otherwise.

    The resource is `routeyard.benchmark.<name>`, so that an automation can watch one or all.
    """
    if tracked():
        from prefect.events import emit_event

        resource = {
            "prefect.resource.id": f"routeyard.benchmark.{benchmark}",
            "prefect.resource.name": benchmark,
        }
        emit_event(event=event, resource=resource, payload=payload)


# A release as a Prefect asset, with the sources and the pool it came from above it.


def release_key(name: str) -> str:
    """Key of a benchmark's releases: one asset, materialised once per version."""
    return f"routeyard://releases/{_part(name)}"


def source_key(source: Any) -> str:
    """Key of a source: the dataset at its hub, or a file by the name the recipe gives it.

    A local path is left out: it shows where somebody keeps files.
    """
    if source.hub_id:
        owner, _, dataset = source.hub_id.rpartition("/")
        return f"hf://datasets/{_part(owner) + '/' if owner else ''}{_part(dataset)}"
    return f"routeyard://sources/{_part(source.name)}"


def materialising(task: Any, recipe: Recipe) -> Any:
    """The task that releases, as one that materialises the release from the recipe's sources."""
    from prefect.assets import Asset, AssetProperties
    from prefect.tasks import MaterializingTask

    properties = AssetProperties(
        name=recipe.release.title or recipe.name,
        description=(recipe.release.description or f"Benchmark {recipe.name}")[:2000],
    )
    # `with_options` of a plain task cannot name assets, so the task is made again around it.
    return MaterializingTask(
        fn=_with_metadata(task.fn, release_key(recipe.name)),
        assets=[Asset(key=release_key(recipe.name), properties=properties)],
        materialized_by="routeyard",
        name=task.name,
        persist_result=True,
        asset_deps=[Asset(key=key) for key in sorted({source_key(s) for s in recipe.sources})],
    )


def _with_metadata(
    function: Callable[..., dict[str, Any]], key: str
) -> Callable[..., dict[str, Any]]:
    """The function, which also writes the version that it made to the asset."""
    from functools import wraps

    @wraps(function)
    def released(*value: Any, **named: Any) -> dict[str, Any]:
        from prefect.assets import add_asset_metadata

        made = function(*value, **named)
        about = {"version": Path(made["path"]).name, "fingerprint": made["fingerprint"]}
        add_asset_metadata(key, about | {"status": made["status"]})
        return made

    return released


def _part(text: str) -> str:
    """A part of a key: Prefect takes letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-") or "unnamed"
