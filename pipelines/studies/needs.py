"""What studies need of a release, and what to do where it is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipelines.errors import BadInput
from pipelines.studies.context import StudyContext
from pipelines.studies.study import Study

#: Need → (whether a release has it, what to do if not).
NEEDS: Mapping[str, tuple[Callable[[StudyContext], bool], str]] = {
    "labels": (lambda g: bool(g.tables["labels"].num_rows), "label the responses first"),
    "tasks": (
        lambda g: len(set(g.tables["queries"].column("task").to_pylist())) > 1,
        "use a release with more than one task",
    ),
    "splits": (lambda g: bool(g.core.splits), "give the recipe a 'split' section"),
    "embeddings": (
        lambda g: g.core.embeddings is not None,
        "add --embed, or --embeddings FILE",
    ),
    # An empty table may also mean that nobody looked.
    "duplicates": (
        lambda g: (
            ("duplicates" in g.tables and bool(g.tables["duplicates"].num_rows))
            or "embeddings" in g.tables
        ),
        "give the recipe the rule 'dedup', or add --embed",
    ),
    "cost": (lambda g: bool(g.core.costs), "give the pool prices or sizes (params_b)"),
    "pair": (
        lambda g: g.pair is not None or len(g.core.model_ids) == 2,
        "name two models: --pair small,large",
    ),
    "pseudo_specialists": (
        lambda g: "pseudo_specialist" in g.tables["models"].column("kind").to_pylist(),
        "give the recipe the rule 'pseudo_specialists'",
    ),
    "preferences": (
        lambda g: "preferences" in g.tables and bool(g.tables["preferences"].num_rows),
        "give the recipe the rule 'preference'",
    ),
    "descriptors": (
        lambda g: bool(g.core.descriptors),
        "routeyard fingerprint RELEASE --kind text_footprint --steps 0 --out descriptors.parquet, "
        "then --also descriptors.parquet (other kinds read a model: with --plan the command says "
        "what that takes, and stops)",
    ),
    "hidden_states": (
        lambda g: g.core.hidden is not None,
        "routeyard hidden-states RELEASE --model FOLDER --out states (with --plan it says what "
        "that takes), then --also states",
    ),
    "signals": (
        lambda g: bool(g.core.signals),
        "collect with log-probabilities (`collect.logprobs`) or several samples, with the rule "
        "`preference` on their entropy (`routeyard plan RECIPE` says what it costs)",
    ),
    "steps": (
        lambda g: "steps" in g.tables and bool(g.tables["steps"].num_rows),
        "give the recipe 'collect.agent': agents that answer in steps",
    ),
    "judged": (
        lambda g: any(basis.startswith("judge:") for basis in _bases(g)),
        "file verdicts of a judge and give the recipe the rule 'preference' with basis 'judge' "
        "(`routeyard plan RECIPE` says what it costs)",
    ),
    "tuned": (
        lambda g: _tuned(g),
        "routeyard zoo tune RELEASE --out tuned (with --plan it says what that takes), then "
        "--also tuned/tuned.parquet",
    ),
    "unseen_models": (
        lambda g: bool(g.core.splits) and bool(g.core.unseen.get(g.default_scheme())),
        "give the recipe's split a share of 'unseen_models'",
    ),
    "releases": (
        lambda g: bool(g.joined),
        "name more releases to train on: --join RELEASE (and --test-on RELEASE for others)",
    ),
    "many_models": (lambda g: len(g.core.model_ids) > 2, "use a pool of more than two models"),
}


def _bases(context: StudyContext) -> list[str]:
    table = context.tables.get("preferences")
    return [] if table is None else sorted(set(table.column("basis").to_pylist()))


def _tuned(context: StudyContext) -> bool:
    from pipelines.studies.tuning import runs_of

    found = runs_of(context, context.tables)
    return found is not None and bool(found.num_rows)


def lacking(study: Study, context: StudyContext) -> list[tuple[str, str]]:
    """(need, what to do) of everything the release does not have for this study."""
    from pipelines.routers import PAIR_ROUTERS, ROUTERS

    found = []
    for need in study.needs:
        if need.startswith("router:"):
            name = need.removeprefix("router:")
            if name not in ROUTERS.names() and name not in PAIR_ROUTERS.names():
                found.append((need, f"the router {name!r} is not in the registry"))
            continue
        has, then = NEEDS[need]
        if not has(context):
            found.append((need, then))
    return found


def check(study: Study, context: StudyContext) -> None:
    """Raises BadInput where something is missing."""
    missing = lacking(study, context)
    if missing:
        need, then = missing[0]
        raise BadInput(
            f"the study {study.name!r} needs {need}, which {context.release} does not have",
            where=f"needs: {', '.join(study.needs)}",
            next_step=then,
        )
