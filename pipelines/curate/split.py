"""Splits and the rules that make their schemes: seeded by each question's own hash, duplicates
together, tasks in proportion.

A question's place depends on its id, the seed and its task's size, not on row order,
so adding questions moves only a few at the borders.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.arrays import dense_rows
from routeyard.pipelines.common.pool import OOD_GROUPS, members
from routeyard.pipelines.curate.rule import Curated, Rule, refused
from routeyard.schemas import MODEL_SPLITS, SPLITS
from routeyard.schemas.errors import RecipeError
from routeyard.schemas.questions import GROUP, marks_of, same_question
from routeyard.schemas.release import NAMES, SCHEME

# Questions that are one for a split: of one group, equal or near-equal in words, or duplicates.

#: What stays together besides groups and the rule's duplicates: near-equal texts and equal ones,
#: equal ones, or nothing.
Together = Literal["near", "equal", "group"]


def group_names(queries: pa.Table) -> list[str | None]:
    """Value of `fields.group` of each question; None where it has none."""
    if "metadata" not in queries.column_names:
        return [None] * queries.num_rows
    texts = queries.column("metadata").to_pylist()
    result = (json.loads(text).get(GROUP) if text and GROUP in text else None for text in texts)
    return [None if item is None else str(item) for item in result]


def one_question(
    queries: pa.Table, duplicates: pa.Table | None, together: Together = "near"
) -> dict[str, str]:
    """query_id → the smallest id of the questions that are one with it.

    Args:
        queries: QUERIES; without `prompt` nothing is known of texts.
        duplicates: groups of the rule `dedup`; overlapping groups are one.
    """
    ids: list[str] = queries.column("query_id").to_pylist()
    parent = {query: query for query in ids}
    _join(parent, zip(ids, group_names(queries), strict=True))
    if duplicates is not None:
        columns = (duplicates.column(name).to_pylist() for name in ("query_id", "group_id"))
        _join(parent, ((q, g) for q, g in zip(*columns, strict=True) if q in parent))
    if together != "group" and "prompt" in queries.column_names:
        texts = queries.column("prompt").combine_chunks()
        marks = np.asarray(marks_of(texts).dictionary_encode().indices).astype(np.int64)
        groups = same_question(texts.to_pylist(), marks) if together == "near" else marks
        _join(parent, zip(ids, map(str, groups.tolist()), strict=True))
    return {query: _root(parent, query) for query in ids}


def _join(parent: dict[str, str], named: Iterable[tuple[str, str | None]]) -> None:
    """Join the questions that have one name; the smallest id names a group."""
    first: dict[str, str] = {}
    for query, name in named:
        if name is None:
            continue
        a, b = _root(parent, query), _root(parent, first.setdefault(name, query))
        parent[max(a, b)] = min(a, b)


def _root(parent: dict[str, str], name: str) -> str:
    while parent[name] != name:
        parent[name] = parent[parent[name]]
        name = parent[name]
    return name


def left_apart(
    splits: pa.Table, together: dict[str, str]
) -> list[tuple[str, int, int, Sequence[str]]]:
    """(scheme, leaked test questions, test questions, some of them) of schemes that leak.

    A test question leaks where one that is joined with it is in train or validation.
    """
    results: list[tuple[str, int, int, Sequence[str]]] = []
    for scheme in sorted(splits.column("scheme").unique().to_pylist()):
        rows = [row for row in splits.to_pylist() if row["scheme"] == scheme]
        seen = {together.get(r["query_id"]) for r in rows if r["split"] in ("train", "validation")}
        test = [row["query_id"] for row in rows if row["split"] == "test"]
        leaked = sorted(query for query in test if together.get(query) in seen - {None})
        if leaked:
            results.append((scheme, len(leaked), len(test), leaked[:5]))
    return results


# Units of questions that stay together, and splits of them in exact counts.


@dataclass(frozen=True, slots=True)
class Unit:
    """A group of duplicates, or one question, with its seeded place in [0, 1) and its task."""

    place: float
    name: str
    task: str
    members: tuple[str, ...]


Strata = dict[str, list[Unit]]


def units_of(
    queries: pa.Table, duplicates: pa.Table | None, salt: str, together: Together = "near"
) -> list[Unit]:
    """Units of the queries: what `one_question` keeps together."""
    tasks = dict(zip(*(queries.column(c).to_pylist() for c in ("query_id", "task")), strict=True))
    group = one_question(queries, duplicates, together)
    members: dict[str, list[str]] = defaultdict(list)
    for query in sorted(tasks):
        members[group[query]].append(query)
    return [
        Unit(hash01(f"{salt}|{name}"), name, tasks[rows[0]], tuple(rows))
        for name, rows in members.items()
    ]


def hash01(text: str) -> float:
    """Number in [0, 1) drawn by the SHA-256 of a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7]) / 2**56


def strata_of(units: Iterable[Unit], *, stratify: bool) -> Strata:
    """Units by task in order of name, in seeded order; all under one key where not stratified."""
    strata: Strata = defaultdict(list)
    for unit in sorted(units, key=lambda unit: (unit.place, unit.name)):
        strata[unit.task if stratify else ""].append(unit)
    return dict(sorted(strata.items()))


def size_of(units: Iterable[Unit]) -> int:
    """Number of questions in the units."""
    return sum(len(unit.members) for unit in units)


def counted(
    units: Sequence[Unit],
    source: Mapping[str, str],
    parts: Mapping[str, int],
    sources: Mapping[str, Mapping[str, int]],
    *,
    stratify: bool,
) -> list[tuple[str, str]]:
    """(query_id, split) in counts: `parts` of all questions, or `sources` one by one.

    A group of duplicates that spans sources goes with its first question, so it
    stays together; the other source then has fewer to give.

    Args:
        source: query_id → source.

    Raises:
        RecipeError: a source has no questions, or a count cannot be met.
    """
    if not sources:
        return by_counts(strata_of(units, stratify=stratify), where="split", **parts)
    unknown = sorted(set(sources) - set(source.values()))
    if unknown:
        raise RecipeError(
            f"split.sources names {unknown[0]!r}, of which there are no questions",
            where="split",
            next_step=f"known: {', '.join(sorted(set(source.values())))}",
        )
    rows: list[tuple[str, str]] = []
    for name in sorted(sources):
        own = [unit for unit in units if source[unit.members[0]] == name]
        strata = strata_of(own, stratify=stratify)
        rows += by_counts(strata, where=f"split, source {name!r}", **sources[name])
    return rows


def by_counts(
    strata: Strata, *, train: int, validation: int, test: int, where: str
) -> list[tuple[str, str]]:
    """(query_id, split) with exactly `test` and `validation` questions, strata in proportion.

    Each stratum gives its share of a count, by largest remainder. A group of
    duplicates that does not fit what is left of a share is passed over for the
    next; what no stratum could fill so is filled from all. Train takes what is
    left, up to `train`; questions beyond that are in no split.

    Raises:
        RecipeError: there are not enough questions for validation and test, or
            groups of duplicates are too large to meet a count.
    """
    left = dict(strata)
    total = sum(size_of(units) for units in left.values())
    if validation + test > total or (train and validation + test >= total):
        raise RecipeError(
            f"{total:,} questions cannot hold {test:,} for test and {validation:,} for "
            f"validation{' and a train set' if train else ''}",
            where=where,
            next_step="lower the counts, add questions, or scale the recipe (`--scale`)",
        )
    rows: list[tuple[str, str]] = []
    for name, count in (("test", test), ("validation", validation), ("train", train)):
        taken = _draw(left, count)
        short = count - len(taken)
        if short and name != "train":
            raise RecipeError(
                f"{name} lacks {short} of {count:,} questions: the groups of duplicates that "
                "are left are too large",
                where=where,
                next_step=f"lower the count for {name}, or remove duplicates (rule 'dedup')",
            )
        rows += [(query, name) for query in taken]
    return rows


def _draw(left: Strata, count: int) -> list[str]:
    """At most `count` questions, taken out of `left`: each stratum's share, then from all."""
    quotas = apportion({name: size_of(units) for name, units in left.items()}, count)
    taken: dict[str, Unit] = {}
    for name, quota in quotas.items():
        _fill(taken, left[name], quota)
    rest = (unit for units in left.values() for unit in units if unit.name not in taken)
    _fill(
        taken,
        sorted(rest, key=lambda unit: (unit.place, unit.name)),
        count - size_of(taken.values()),
    )
    for name, units in left.items():
        left[name] = [unit for unit in units if unit.name not in taken]
    return [query for unit in taken.values() for query in unit.members]


def _fill(taken: dict[str, Unit], units: Iterable[Unit], room: int) -> None:
    for unit in units:
        if len(unit.members) <= room:
            taken[unit.name] = unit
            room -= len(unit.members)


def apportion(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """`count` in proportion to sizes, whole, by largest remainder; never above a size.

    >>> apportion({"a": 5, "b": 3, "c": 2}, 5)
    {'a': 3, 'b': 1, 'c': 1}
    >>> apportion({"a": 1, "b": 1}, 5)
    {'a': 1, 'b': 1}
    """
    total = sum(sizes.values())
    if count >= total:
        return dict(sizes)
    exact = {name: size * count / total for name, size in sizes.items()}
    out = {name: int(share) for name, share in exact.items()}
    order = sorted(sizes, key=lambda name: (out[name] - exact[name], name))
    for name in order[: count - sum(out.values())]:
        out[name] += 1
    return out


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
    existing: pa.Table | None = None,
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
        existing: SPLITS of rules, kept as they are.

    Raises:
        RecipeError: shares do not add up to 1, counts cannot be met, or a rule made
            the same scheme.
    """
    if existing is not None and scheme in existing.column("scheme").to_pylist():
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
    return made if existing is None else pa.concat_tables([existing, made])


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


def dense_sparse(
    tables: Mapping[str, pa.Table],
    *,
    slice_share: float | None = 0.1,
    validation: int = 3000,
    test: int = 5000,
    stratify: bool = True,
    seed: int = 0,
) -> Curated:
    """Schemes `dense` and `sparse`: a slice asked of all models, and the rest.

    A seeded slice (10 % of 300,000 prompts are 30,000) holds validation, test and
    the dense train set. The complement is the sparse train extension, with the
    same validation and test.

    Args:
        slice_share: Share drawn for the slice. null takes the questions that the
            sources mark with `dense`; then `sparse` trains on all questions outside
            validation and test, 302,371 of Nine-by-300k (the routing-plateau paper,
            Table 8), and `dense` is the split that a recipe of the slice alone makes.
    """
    queries = tables["queries"]
    part = partial(split, duplicates=tables.get("duplicates"), stratify=stratify, seed=seed)
    if slice_share is None:
        return _marked(tables, part, validation, test)
    n = len(queries)
    room = slice_share * n
    if not 0 < slice_share < 1 or validation + test >= room:
        raise refused(
            "dense_sparse",
            f"a slice of {slice_share:g} of {n} queries ({int(room)}) cannot hold validation "
            f"({validation}), test ({test}) and a train set",
            "raise slice_share or lower validation and test",
        )
    shares: dict[str, Any] = {"validation": validation / n, "test": test / n}
    place = places_of(part(queries, scheme="dense", train=1 - sum(shares.values()), **shares))
    rest = queries.filter(pa.array([place[q] == "train" for q in ids_of(queries)]))
    # Among what is left, the dense train set is a seeded share as well.
    share = (room - validation - test) / max(1, len(rest))
    cut = part(rest, scheme="dense-slice", train=1 - share, validation=0.0, test=share)
    inside = places_of(cut)
    held = [(query, name) for query, name in place.items() if name != "train"]
    rows = {"dense": [*held], "sparse": [*held]}
    for query, name in inside.items():
        rows["dense" if name == "test" else "sparse"].append((query, "train"))
    return with_splits(tables, splits_table(rows))


def _marked(
    tables: Mapping[str, pa.Table], part: Callable[..., pa.Table], validation: int, test: int
) -> Curated:
    queries = tables["queries"]
    inside = queries.filter(pa.array(dense_rows(queries)))
    if not len(inside):
        raise refused(
            "dense_sparse",
            "no question is marked as the dense slice",
            "give sources 'dense: n', or the rule a 'slice_share'",
        )
    train = max(2, len(inside))
    dense = part(inside, scheme="dense", train=train, validation=validation, test=test)
    held = {query: name for query, name in places_of(dense).items() if name != "train"}
    # A question outside the slice that is a twin of one held out would leak.
    closed = with_duplicates(queries, tables.get("duplicates"), set(held))
    rest = [(query, "train") for query in ids_of(queries) if query not in closed]
    sparse = splits_table({"sparse": [*held.items(), *rest]})
    figures = {"slice": len(inside), "left_out_as_duplicates": len(closed) - len(held)}
    return with_splits(tables, pa.concat_tables([dense, sparse]), figures)


def upstream_split(
    tables: Mapping[str, pa.Table],
    *,
    scheme: str = SCHEME,
    field: str = "split",
    names: Mapping[str, str] | None = None,
) -> Curated:
    """A scheme from a field of the queries' metadata; published splits are kept to the question.

    Near-duplicates that the source put on both sides stay where it put them: the
    certificate, `health` and `verify` count them.

    Args:
        field: Key of `metadata` that names a question's split.
        names: The source's word → `train`, `validation` or `test`, beside the
            usual ones. Questions with another word, or none, are in no split.

    Raises:
        RecipeError: no question has such a field, or `names` maps to another word.
    """
    known = {**NAMES, **{k.lower(): v for k, v in (names or {}).items()}}
    wrong = sorted(set(known.values()) - {"train", "validation", "test"})
    if wrong:
        raise refused(
            "upstream_split",
            f"names must map to train, validation or test, not {wrong[0]!r}",
            "map names to train, validation or test",
        )
    rows: list[tuple[str, str]] = []
    unread: Counter[str] = Counter()
    for query in tables["queries"].select(["query_id", "metadata"]).to_pylist():
        value = json.loads(query["metadata"] or "{}").get(field)
        place = known.get(str(value).lower()) if value is not None else None
        if place is None:
            unread["nothing" if value is None else str(value)] += 1
        else:
            rows.append((query["query_id"], place))
    if not rows:
        raise refused(
            "upstream_split",
            f"no question says in metadata field {field!r} which split it is in "
            f"(found: {', '.join(sorted(unread)[:5])})",
            "map the field in the source's `fields.metadata`, or give 'names'",
        )
    figures: dict[str, Any] = dict(Counter(place for _, place in rows))
    splits = splits_table({scheme: rows})
    return with_splits(tables, splits, {"splits": figures, "unread": dict(unread)})


OUT_OF_DISTRIBUTION = Rule("out_of_distribution", out_of_distribution, reads=("duplicates",))
UNSEEN_MODELS = Rule("unseen_models", unseen_models, reads=("model_splits",))
DENSE_SPARSE = Rule("dense_sparse", dense_sparse, reads=("duplicates",))
UPSTREAM_SPLIT = Rule("upstream_split", upstream_split, reads=())
