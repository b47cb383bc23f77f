"""What studies need of a release, and what to do where it is missing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.files import read_text
from routeyard.pipelines.common.matrix import Core, core_of
from routeyard.pipelines.evaluate.experiment import with_validation
from routeyard.pipelines.evaluate.studies.study import Study, StudyContext, known_costs
from routeyard.schemas.contracts import Contract, columns, rules
from routeyard.schemas.errors import BadInput

# Contract of `tuned`: which model routers with frozen and with trained encoders ask.
#
# It is not part of a release: a file beside it, for the studies `tuning_*`.

TUNED = Contract(
    "tuned",
    "Which model each router asks, its encoder frozen or trained, written by `zoo tune`.",
    key=("data", "router", "encoder", "train_rows", "tuned", "seed", "query_id"),
    columns=columns(
        data="string: hash of the test questions and labels that it was measured on",
        router="string: router",
        encoder="string: encoder it started from",
        parameters="int64: parameters of the encoder",
        train_rows="int64: questions it was trained on",
        tuned="bool: whether the encoder was trained; else frozen",
        seed="int32: seed of the training",
        query_id="string: question of the test split",
        model_id="string: model that is asked, cost disregarded",
    ),
    rules=rules(
        sizes_are_positive="parameters >= 0 AND train_rows > 0",
    ),
)


# What `routeyard zoo tune` wrote of a release, and the split that it was measured on.


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


_PATH = Path(__file__).with_suffix(".yaml")
_HAS: Mapping[str, Callable[[StudyContext], bool]] = {
    "labels": lambda g: bool(g.tables["labels"].num_rows),
    "tasks": lambda g: len(set(g.tables["queries"].column("task").to_pylist())) > 1,
    "splits": lambda g: bool(g.core.splits),
    "embeddings": lambda g: g.core.embeddings is not None,
    # An empty table may also mean that nobody looked.
    "duplicates": lambda g: _has_rows(g, "duplicates") or "embeddings" in g.tables,
    "cost": lambda g: bool(known_costs(g)[0].core.costs),
    "some_cost": lambda g: bool(g.core.costs or g.core.part_costs),
    "pair": lambda g: g.pair is not None or len(g.core.model_ids) == 2,
    "pseudo_specialists": lambda g: (
        "pseudo_specialist" in g.tables["models"].column("kind").to_pylist()
    ),
    "preferences": lambda g: _has_rows(g, "preferences"),
    "descriptors": lambda g: bool(g.core.descriptors),
    "hidden_states": lambda g: g.core.hidden is not None,
    "signals": lambda g: bool(g.core.signals),
    "steps": lambda g: _has_rows(g, "steps"),
    "judged": lambda g: any(basis.startswith("judge:") for basis in _bases(g)),
    "tuned": lambda g: _tuned(g),
    "unseen_models": lambda g: bool(g.core.splits) and bool(g.unseen),
    "releases": lambda g: bool(g.joined) or len(g.domains) > 1,
    "many_models": lambda g: len(g.core.model_ids) > 2,
}
#: Need → (whether a release has it, what to do if not).
NEEDS: Mapping[str, tuple[Callable[[StudyContext], bool], str]] = {
    need: (_HAS[need], remedy)
    for need, remedy in read_text(_PATH.read_text(encoding="utf-8"), where=str(_PATH)).items()
}


def _has_rows(context: StudyContext, name: str) -> bool:
    return name in context.tables and bool(context.tables[name].num_rows)


def _bases(context: StudyContext) -> list[str]:
    table = context.tables.get("preferences")
    return [] if table is None else sorted(set(table.column("basis").to_pylist()))


def _tuned(context: StudyContext) -> bool:
    runs = runs_of(context, context.tables)
    return runs is not None and bool(runs.num_rows)


def lacking(study: Study, context: StudyContext) -> list[tuple[str, str]]:
    """(need, what to do) of everything the release does not have for this study."""
    from routeyard.pipelines.routers import PAIR_ROUTERS, ROUTERS

    results = []
    for need in study.needs:
        if need.startswith("router:"):
            name = need.removeprefix("router:")
            if name not in ROUTERS.names() and name not in PAIR_ROUTERS.names():
                results.append((need, f"the router {name!r} is not in the registry"))
            continue
        has, then = NEEDS[need]
        if not has(context):
            results.append((need, then))
    return results


#: What `Study.takes` names → the option that gives it.
OPTIONS: Mapping[str, str] = {"routers": "--router", "joined": "--join", "tested": "--test-on"}


def untaken(study: Study, context: StudyContext) -> list[str]:
    """Options that are given and that this study does not read."""
    names = [name for name in OPTIONS if getattr(context, name) and name not in study.takes]
    return [OPTIONS[name] for name in names]


def check(study: Study, context: StudyContext, *, one_of_many: bool = False) -> None:
    """Raises BadInput where something is missing, or one study is given what it does not read."""
    if (unread := untaken(study, context)) and not one_of_many:
        raise BadInput(
            f"the study {study.name!r} does not read {' and '.join(unread)}",
            where=f"paper {study.paper}, {study.item}",
            next_step="leave it out; another release is studied by its own command",
        )
    missing = lacking(study, context)
    if missing:
        need, then = missing[0]
        raise BadInput(
            f"the study {study.name!r} needs {need}, which {context.release} does not have",
            where=f"needs: {', '.join(study.needs)}",
            next_step=then,
        )


def identity(core: Core, scheme: str) -> str:
    """Hash of the test questions, the models and their labels: what figures are comparable on.

    Train questions are no part of it: amounts of data may be split schemes of one release, or
    releases that share their test split, as the study's two benchmarks do.
    """
    return whole(core.take(core.rows(scheme, "test")), scheme)


def whole(core: Core, scheme: str) -> str:
    """Hash of questions, models, labels and splits."""
    words = json.dumps([list(core.query_ids), core.model_ids, core.splits[scheme].tolist()])
    hashed = hashlib.sha256(words.encode())
    hashed.update(np.ascontiguousarray(core.labels).tobytes())
    return hashed.hexdigest()[:16]
