"""Prefect when an API is configured, the same functions directly when none is.

A temporary Prefect server costs 15 seconds per run, and its import 1.5 CPU-seconds per process;
most runs need neither.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal


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
    beside = {".env": "prefect_", "pyproject.toml": "[tool.prefect"}
    return any(
        mark in Path(name).read_text("utf-8", "replace").lower()
        for name, mark in beside.items()
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

        given = dict(flow_run.parameters)
        recipe = given["recipe"]
        checked = load(recipe)[0] if isinstance(recipe, str) else recipe
        return f"{verb} {checked.name} {given.get('version') or checked.version}"

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
        futures = [_made(task).submit(**one) for one in parameters]
        yield from (future.result() for future in futures)
    elif processes <= 1 or len(parameters) <= 1:
        yield from (task.fn(**one) for one in parameters)
    else:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        from routeyard.pipelines.memory import collect_rarely

        spawned = get_context("spawn")
        with ProcessPoolExecutor(processes, spawned, initializer=collect_rarely) as pool:
            yield from pool.map(_direct, [task.fn] * len(parameters), parameters)


def _direct(function: Any, parameters: Mapping[str, Any]) -> Any:
    return function(**parameters)


def artifact_key(benchmark: str, key: str) -> str:
    """`<benchmark>-<key>`: artifacts of several benchmarks on one server stay apart.

    Prefect takes small letters, digits and dashes.
    """
    import re

    return re.sub(r"[^a-z0-9]+", "-", f"{benchmark}-{key}".lower()).strip("-")


def publish_markdown(benchmark: str, key: str, text: str, description: str) -> None:
    """A Prefect artifact `<benchmark>-<key>` in a tracked run; nothing otherwise."""
    if tracked():
        from prefect.artifacts import create_markdown_artifact

        create_markdown_artifact(
            key=artifact_key(benchmark, key), markdown=text, description=description
        )
