"""The stages of a build: the one list of what is made, of what, by which function, in which order.

`build`, `plan`, `status` and `refresh` walk this list. `python -m routeyard.flows.stages` prints
it as the table of ARCHITECTURE.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from routeyard.flows.tasks.collect import (
    ask_in_rounds,
    ask_in_shards,
    ask_models,
    import_answers,
    walk_trajectories,
)
from routeyard.flows.tasks.curate import apply_rules, embed_in_shards, embed_queries, read_layers
from routeyard.flows.tasks.ingest import list_models, read_sources
from routeyard.flows.tasks.label import (
    ask_judges,
    check_labels,
    decide_labels,
    lines_of_judges,
    read_reviews,
    score_responses,
)
from routeyard.flows.tasks.release import (
    audit_metering,
    certify_routability,
    check_metering,
    lines_of_audit,
    write_benchmark,
)
from routeyard.flows.tracking import AFTER_CALLS, ATTEMPTS, ON_THIS_MACHINE
from routeyard.flows.workspace import BuildContext, StageResult, review_files
from routeyard.schemas.recipe import Recipe

_HOUR_S = 3600.0
_ASKING = {"timeout_seconds": 24 * _HOUR_S, **AFTER_CALLS}
#: Below this many rows, starting worker processes costs more than the work.
_SMALL = 20_000


def needs_embeddings(recipe: Recipe) -> bool:
    """True when a curation rule reads the `embeddings` table, or the release is to hold it."""
    from routeyard.pipelines.curate import RULES

    return recipe.release.include_embeddings or any(
        "embeddings" in RULES.get(rule.rule).reads for rule in recipe.curate
    )


def _is_recorded(recipe: Recipe, root: Path) -> bool:
    return recipe.collect.provider == "recorded"


def _is_agent(recipe: Recipe, root: Path) -> bool:
    return not _is_recorded(recipe, root) and recipe.collect.agent is not None


def _is_asked(recipe: Recipe, root: Path) -> bool:
    return not _is_recorded(recipe, root) and recipe.collect.agent is None


def _is_reviewed(recipe: Recipe, root: Path) -> bool:
    return bool(review_files(root, recipe.name))


@dataclass(frozen=True)
class Stage:
    """One stage.

    Attributes:
        name: Its folder below `stages/`, and its name in manifests and `routeyard status`.
        makes: What later stages call its result.
        function: (context, sections, inputs) → what its output is made of. It reads, and neither
            writes nor asks: `status` calls it too. The release's function writes.
        sections: Keys of the recipe that it is given.
        inputs: What it reads of earlier stages, by `makes`; None where a stage was not wanted.
        prints: What `build` prints of its figures: a line, in which lists count their entries,
            or a function that returns lines.
        wanted: (recipe, workspace) → whether this build has it.
        part_of: The stage that it is a part of, in manifests and `routeyard status`.
        runs_with: The stage of `--until` with which it runs, where that is another one.
        each: Input of which each file is worked on alone, at the same time.
        shards: Does most of the work beforehand, in tasks that run at the same time (`--shards`).
        check: Raises where its result stops the build.
        task: Name of its Prefect task, where that is another one.
        retries: How often the task is tried again.
    """

    name: str
    makes: str
    function: Callable[..., Any]
    sections: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    prints: str | Callable[[Mapping[str, Any]], list[str]] = ""
    wanted: Callable[[Recipe, Path], bool] = lambda recipe, root: True
    part_of: str | None = None
    runs_with: str | None = None
    each: str | None = None
    shards: Callable[..., None] | None = None
    check: Callable[[BuildContext, StageResult], None] | None = None
    task: str | None = None
    retries: Mapping[str, Any] = field(default_factory=lambda: ON_THIS_MACHINE)

    @property
    def until(self) -> str:
        """The value of `--until` from which on it runs."""
        return self.runs_with or self.part_of or self.name

    def lines(self, figures: Mapping[str, Any]) -> list[str]:
        """What `build` prints about the stage's result."""
        if not isinstance(self.prints, str):
            return self.prints(figures)
        sizes = {k: len(v) if isinstance(v, list) else v for k, v in figures.items()}
        return [self.prints.format(**sizes)] if self.prints else []


_COLLECT: dict[str, Any] = {
    "name": "collect",
    "makes": "responses",
    "sections": ("pool", "collect"),
    "inputs": ("queries", "models"),
    "prints": "{responses:,} responses",
}

STAGES = (
    Stage(
        "ingest",
        "queries",
        read_sources,
        sections=("sources", "compared_with"),
        prints="{queries:,} questions",
        retries={"timeout_seconds": 6 * _HOUR_S, **ATTEMPTS},
    ),
    Stage("pool", "models", list_models, ("pool",), prints="{models} models", runs_with="ingest"),
    # A recipe has one of the three ways to collect.
    Stage(function=import_answers, wanted=_is_recorded, task="import recorded", **_COLLECT),
    Stage(function=walk_trajectories, wanted=_is_agent, retries=_ASKING, **_COLLECT),
    Stage(function=ask_models, wanted=_is_asked, shards=ask_in_shards, retries=_ASKING, **_COLLECT),
    Stage(
        "verdicts",
        "verdicts",
        score_responses,
        sections=("label",),
        inputs=("queries", "responses"),
        each="responses",
        part_of="label",
        task="file verdicts",
    ),
    Stage("reviews", "reviews", read_reviews, wanted=_is_reviewed, part_of="label"),
    Stage(
        "hear",
        "judged",
        ask_judges,
        sections=("label", "collect"),
        inputs=("queries", "responses", "verdicts", "reviews"),
        prints=lines_of_judges,
        wanted=lambda recipe, root: bool(recipe.label.verifiers or recipe.label.judges),
        part_of="label",
        retries=_ASKING,
    ),
    Stage(
        "label",
        "labels",
        decide_labels,
        sections=("label",),
        inputs=("queries", "responses", "verdicts", "reviews", "judged"),
        prints="{labels:,} labels, {undecided:,} undecided",
        check=check_labels,
    ),
    Stage(
        "embed",
        "embeddings",
        embed_queries,
        sections=("embed",),
        inputs=("queries",),
        wanted=lambda recipe, root: needs_embeddings(recipe),
        shards=embed_in_shards,
        prints="{embeddings:,} questions",
        runs_with="curate",
    ),
    Stage(
        "curate",
        "curated",
        apply_rules,
        sections=("curate", "split", "split_is_written", "pool", "collect"),
        inputs=("queries", "models", "responses", "labels", "embeddings"),
        prints="{rules} rules",
    ),
    Stage(
        "hidden_states",
        "layers",
        read_layers,
        sections=("hidden_states", "embed", "pool", "collect"),
        inputs=("curated",),
        wanted=lambda recipe, root: recipe.hidden_states is not None,
        prints="{queries:,} questions, {layers} layers of {width}",
        runs_with="curate",
    ),
    Stage(
        "audit",
        "audited",
        audit_metering,
        sections=("pool", "collect", "release", "split", "curate"),
        inputs=("curated", "responses"),
        prints=lines_of_audit,
        check=check_metering,
        runs_with="certify",
    ),
    Stage(
        "certify",
        "certified",
        certify_routability,
        sections=("release",),
        inputs=("curated", "embeddings"),
        prints="{verdict}",
    ),
)
#: The last one: it stores no output, it writes the release from those of all stages.
RELEASE = Stage("release", "release", write_benchmark)
#: What `--until` takes, in order.
UNTIL = tuple(dict.fromkeys(stage.until for stage in (*STAGES, RELEASE)))


class Complete(Protocol):
    """Gives the results of a stage, one for each set of what its function is given."""

    def __call__(
        self, stage: Stage, parts: Sequence[Mapping[str, Any]], processes: int
    ) -> list[StageResult]: ...


def walk(
    recipe: Recipe, context: BuildContext, complete: Complete, until: str = "certify"
) -> Iterator[tuple[Stage, list[StageResult]]]:
    """Each stage that the recipe wants with its results, in order, up to a stage of `UNTIL`.

    Args:
        complete: Makes a stage's results, or finds those that are stored.
    """
    made: dict[str, Any] = {}

    def run(stage: Stage, **more: Any) -> list[StageResult]:
        arguments = {key: getattr(recipe, key) for key in stage.sections}
        arguments |= {name: made.get(name) for name in stage.inputs} | more
        parts, processes = [arguments], 1
        if stage.each is not None:
            source: StageResult = made[stage.each]
            parts = [{**arguments, stage.each: path} for path in source.parts(stage.each)]
            processes = context.jobs if source.figures[stage.each] >= _SMALL else 1
        results = complete(stage, parts, processes)
        made[stage.makes] = results if stage.each is not None else results[0]
        return results

    def in_rounds(stage: Stage) -> list[StageResult]:
        def label(rows: list[list[int]]) -> tuple[StageResult, StageResult]:
            run(stage, rows=rows)
            for later in (item for item in STAGES if item.until == "label"):
                if later.wanted(recipe, context.root):
                    run(later)
            return made["responses"], made["labels"]

        arguments = {"pool": recipe.pool, "collect": recipe.collect, "queries": made["queries"]}
        made["responses"] = ask_in_rounds(context, **arguments, complete=label)
        return [made["responses"]]

    for stage in STAGES:
        if UNTIL.index(stage.until) > UNTIL.index(until):
            return
        if not stage.wanted(recipe, context.root):
            continue
        asks = stage.function is ask_models and recipe.collect.strategy == "informative"
        yield stage, in_rounds(stage) if asks else run(stage)


def as_table() -> str:
    """The list as a Markdown table."""
    lines = ["| Stage | Made from | Recipe | Makes | Function |", "| --- | --- | --- | --- | --- |"]
    for stage in STAGES:
        name = f"{stage.part_of}: {stage.name}" if stage.part_of else stage.name
        keys = (f"`{key}`" for key in stage.sections if key in Recipe.model_fields)
        function = f"`{stage.function.__module__}.{stage.function.__name__}`"
        inputs = ", ".join(stage.inputs)
        lines.append(f"| {name} | {inputs} | {', '.join(keys)} | {stage.makes} | {function} |")
    function = f"`{RELEASE.function.__module__}.{RELEASE.function.__name__}`"
    return "\n".join([*lines, f"| release | all of them | all of it | release | {function} |"])


if __name__ == "__main__":
    print(as_table())
