"""Splits: seeded by each question's own hash, duplicates together, tasks in proportion.

A question's place depends on its id, the seed and its task's size, not on row order,
so adding questions moves only a few at the borders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from routeyard.pipelines.curate.one_question import Together
from routeyard.pipelines.curate.rule import Curated, Rule, refused
from routeyard.pipelines.curate.split_counts import counted, hash01, size_of, strata_of, units_of
from routeyard.pipelines.errors import RecipeError
from routeyard.pipelines.task_groups import OOD_GROUPS, members
from routeyard.schemas import MODEL_SPLITS, SPLITS


def split(
    queries: pa.Table,
    duplicates: pa.Table | None = None,
    *,
    scheme: str = "dense",
    train: float = 0.7,
    validation: float = 0.1,
    test: float = 0.2,
    sources: Mapping[str, Mapping[str, int]] | None = None,
    stratify: bool = True,
    seed: int = 0,
    keep_together: Together = "near",
    beside: pa.Table | None = None,
) -> pa.Table:
    """SPLITS rows of one scheme, after those of other schemes.

    Sizes are shares that add up to 1, or counts (any above 1): then test and
    validation hold exactly so many, and train what is left, up to its count.

    Args:
        queries: QUERIES.
        duplicates: DUPLICATES; members of a group get the same split.
        sources: {source: {train, validation, test}} in counts; others take no part.
        stratify: Keep the shares within each task.
        keep_together: As in `one_question`: what gets one split besides groups and duplicates.
        beside: SPLITS of rules, kept as they are.

    Raises:
        RecipeError: shares do not add up to 1, counts cannot be met, or a rule made
            the same scheme.
    """
    if beside is not None and scheme in beside.column("scheme").to_pylist():
        raise RecipeError(
            f"a curation rule already made the split scheme {scheme!r}",
            where="split",
            next_step="give the recipe's split another 'scheme', or leave it out",
        )
    units = units_of(queries, duplicates, f"{scheme}|{seed}", keep_together)
    if sources or max(train, validation, test) > 1:
        parts = {"train": int(train), "validation": int(validation), "test": int(test)}
        source = dict(zip(ids_of(queries), queries.column("source").to_pylist(), strict=True))
        rows = counted(units, source, parts, sources or {}, stratify=stratify)
    elif min(train, validation, test) < 0 or abs(train + validation + test - 1) > 1e-9:
        raise RecipeError(
            f"split shares add up to {train + validation + test:g}, not 1",
            where="split",
            next_step="give train, validation and test shares that add up to 1",
        )
    else:
        rows = []
        for stratum, own in strata_of(units, stratify=stratify).items():
            total = size_of(own)
            # A seeded remainder, so that many small tasks do not all lose their test.
            chance = hash01(f"{scheme}|{seed}|stratum|{stratum}")
            ends = {"test": int(test * total + chance)}
            ends["validation"] = int((test + validation) * total + chance)
            before = 0
            for unit in own:
                name = next((name for name, end in ends.items() if before < end), "train")
                rows += [(member, name) for member in unit.members]
                before += len(unit.members)
    made = splits_table({scheme: rows})
    return made if beside is None else pa.concat_tables([beside, made])


def out_of_distribution(
    tables: Mapping[str, pa.Table],
    *,
    groups: Sequence[str] | Mapping[str, Sequence[str]] = ("math", "medical", "stem"),
    validation: float = 0.1,
    reverse: bool = False,
    seed: int = 0,
) -> Curated:
    """Schemes `ood:<group>`: the group's tasks are the test, all others train and validation.

    With `reverse` also `ood:not <group>`: trained on the group, tested on the rest
    (CSCR, appendix D.2.1: STEM and Non-STEM).

    A question outside the group that is a near-duplicate of one inside is in
    no split of the scheme: it would leak.

    Args:
        groups: Names in `OOD_GROUPS`, or {name: [what is in it, …]}: tasks, domains
            or sources, each a name or a pattern (`mmlu_*`), in any case, or a field
            of the metadata with what it holds (`subject=*physics`).
        reverse: also the other way round.
    """
    queries, duplicates = tables["queries"], tables.get("duplicates")
    named = groups if isinstance(groups, Mapping) else {name: _known(name) for name in groups}
    rows: dict[str, list[tuple[str, str]]] = {}
    figures: dict[str, Any] = {}
    ids = set(ids_of(queries))
    held_out = {name: _members(queries, patterns) for name, patterns in named.items()}
    if reverse:
        held_out |= {f"not {name}": ids - inside for name, inside in held_out.items()}
    for name, inside in held_out.items():
        if not inside or len(inside) == len(ids):
            figures[name] = "left out: no task of the group, or nothing else, is in the queries"
            continue
        scheme = f"ood:{name}"
        closed = with_duplicates(queries, duplicates, inside)
        seen = split(
            queries.filter(pa.array([query not in closed for query in ids_of(queries)])),
            duplicates,
            scheme=scheme,
            train=1 - validation,
            validation=validation,
            test=0.0,
            seed=seed,
        )
        rows[scheme] = [*((query, "test") for query in inside), *places_of(seen).items()]
        figures[name] = {"test": len(inside), "left_out_as_duplicates": len(closed - inside)}
    return with_splits(tables, splits_table(rows), figures)


def _members(queries: pa.Table, patterns: Sequence[str]) -> set[str]:
    hit = members(
        patterns,
        [queries.column(name).to_pylist() for name in ("task", "domain", "source")],
        queries.column("metadata").to_pylist() if "metadata" in queries.column_names else [],
    )
    return {query for query, inside in zip(ids_of(queries), hit.tolist(), strict=True) if inside}


def unseen_models(
    tables: Mapping[str, pa.Table],
    *,
    seen_share: float = 2 / 3,
    scheme: str = "unseen_models",
    seed: int = 0,
) -> Curated:
    """`model_splits`: two thirds of the pool may be seen in training, the rest may not."""
    models = tables["models"]
    ids = sorted(
        models.column("model_id").to_pylist(),
        key=lambda model: (hash01(f"{scheme}|{seed}|{model}"), model),
    )
    seen = round(seen_share * len(ids))
    table = MODEL_SPLITS.from_rows(
        {"scheme": scheme, "model_id": model, "split": "seen" if place < seen else "unseen"}
        for place, model in enumerate(ids)
    ).sort_by("model_id")
    if "model_splits" in tables:
        table = pa.concat_tables([tables["model_splits"], table])
    figures = {"seen": seen, "unseen": len(ids) - seen}
    return Curated(added={"model_splits": table}, figures=figures)


def with_duplicates(queries: pa.Table, duplicates: pa.Table | None, ids: set[str]) -> set[str]:
    """The questions with these ids and all near-duplicates of them."""
    units = [unit.members for unit in units_of(queries, duplicates, "")]
    return {member for unit in units if not ids.isdisjoint(unit) for member in unit}


def _known(name: str) -> Sequence[str]:
    if name not in OOD_GROUPS:
        raise refused(
            "out_of_distribution",
            f"there is no out-of-distribution group {name!r}",
            f"known: {', '.join(OOD_GROUPS)}; or write groups: {{{name}: [task, …]}}",
        )
    return OOD_GROUPS[name]


def places_of(splits: pa.Table) -> dict[str, str]:
    """query_id → split, of one scheme."""
    return dict(zip(*(splits.column(c).to_pylist() for c in ("query_id", "split")), strict=True))


def ids_of(queries: pa.Table) -> list[str]:
    """Ids of the queries, in order."""
    ids: list[str] = queries.column("query_id").to_pylist()
    return ids


def splits_table(rows: Mapping[str, Sequence[tuple[str, str]]]) -> pa.Table:
    """SPLITS rows of {scheme: (query_id, split) pairs}, ordered by scheme and query."""
    return SPLITS.from_rows(
        {"scheme": scheme, "query_id": query, "split": name}
        for scheme in sorted(rows)
        for query, name in sorted(rows[scheme])
    )


def with_splits(
    tables: Mapping[str, pa.Table], splits: pa.Table, figures: Mapping[str, Any] | None = None
) -> Curated:
    """Result of a rule that appends split schemes to those of earlier rules."""
    if "splits" in tables:
        splits = pa.concat_tables([tables["splits"], splits])
    return Curated(added={"splits": splits}, figures=figures or {})


OUT_OF_DISTRIBUTION = Rule("out_of_distribution", out_of_distribution, reads=("duplicates",))
UNSEEN_MODELS = Rule("unseen_models", unseen_models, reads=("model_splits",))
