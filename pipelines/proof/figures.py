"""Counts of the stages in the manifest against the tables: what went in, came out or is listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pyarrow.compute as pc

from routeyard.pipelines.proof.claims import Results, believed, consistent, contradiction, proved
from routeyard.pipelines.proof.evidence import Evidence

#: Entity of a removal → the table that it was removed from.
_ENTITIES = {"query": "queries", "model": "models"}


def counts_of_stages(evidence: Evidence) -> Results:
    """Contradictions between figures of the stages, removals and the rows of tables."""
    if not evidence.manifest.figures:
        return
    removed = _removed(evidence)
    wrong = [*_totals(evidence, removed), *_rules(evidence, removed), *_sources(evidence)]
    if wrong:
        yield contradiction("figures", len(wrong), len(wrong), "counts do not add up", wrong)
    else:
        yield proved("figures", "what the stages counted, kept and removed adds up to the tables")
    yield from _manifest(evidence)


def _removed(evidence: Evidence) -> Counter[tuple[str, str]]:
    """(stage, entity) → rows of `removals`."""
    rows = evidence.table("removals", ["stage", "entity"]).to_pylist()
    return Counter((row["stage"], row["entity"]) for row in rows)


def _totals(evidence: Evidence, removed: Counter[tuple[str, str]]) -> Iterator[str]:
    """Rows of queries and models: what the first stage counted, less what curation removed."""
    gone = {
        entity: sum(n for (stage, what), n in removed.items() if what == entity and _curated(stage))
        for entity in _ENTITIES
    }
    ingested, pool = evidence.figures("ingest"), evidence.figures("pool")
    if isinstance(count := ingested.get("queries"), int):
        left = count - gone["query"]
        if left != evidence.rows("queries"):
            yield (
                f"{count:,} questions were read and {gone['query']:,} removed, and "
                f"{evidence.rows('queries'):,} are there, expected {left:,}"
            )
    if isinstance(count := ingested.get("removed"), int):
        rows = sum(n for (stage, _), n in removed.items() if not _curated(stage))
        if count != rows:
            yield f"{count:,} rows were left out by sources, and removals list {rows:,}"
    if isinstance(count := pool.get("models"), int):
        left, there = count - gone["model"], len(evidence.real)
        if left != there:
            yield (
                f"{count:,} models are in the pool and {gone['model']:,} removed, and {there:,} "
                f"are there, expected {left:,}"
            )
    yield from _rows(evidence, any(gone.values()))


def _rows(evidence: Evidence, fewer: bool) -> Iterator[str]:
    """Rows of tables: as many as their stage made, or fewer where curation removed some."""
    injected = evidence.rows("models") > len(evidence.real)
    told = {
        "responses": evidence.figures("collect").get("responses"),
        "labels": evidence.figures("label").get("labels"),
        "verdicts": evidence.figures("label").get("verdicts"),
    }
    for name, count in told.items():
        if not isinstance(count, int) or not evidence.has(name):
            continue
        rows = evidence.rows(name)
        if injected and name != "verdicts":
            model = evidence.table(name, ["model_id"]).column("model_id")
            rows = int(pc.sum(pc.is_in(model, value_set=evidence.real)).as_py() or 0)
        if (rows > count) if fewer else (rows != count):
            yield f"the stage counted {count:,} {name}, and {rows:,} are there"
    undecided = evidence.figures("label").get("undecided")
    if isinstance(undecided, int) and evidence.has("labels"):
        nulls = evidence.table("labels", ["score"]).column("score").null_count
        if (nulls > undecided) if fewer else (nulls != undecided):
            yield f"the stage counted {undecided:,} undecided labels, and {nulls:,} are there"


def _rules(evidence: Evidence, removed: Counter[tuple[str, str]]) -> Iterator[str]:
    """Each curation rule: kept and removed are what it was given, which the rule before left."""
    applied = evidence.figures("curate").get("rules")
    counted = Counter[tuple[str, str]]()
    known: dict[str, int] = {}
    injected = {"models": 0}
    for one in applied if isinstance(applied, list) else ():
        before, after = one.get("before") or {}, one.get("after") or {}
        added = (one.get("figures") or {}).get("injected")
        injected["models"] += len(added) if isinstance(added, list) else 0
        for entity, table in _ENTITIES.items():
            if table not in before or table not in after:
                continue
            if known.get(table, before[table]) != before[table]:
                yield (
                    f"the rule {one.get('rule')!r} was given {before[table]:,} {table}, and the "
                    f"one before left {known[table]:,}"
                )
            known[table] = after[table]
            more = len(added) if isinstance(added, list) and table == "models" else 0
            counted[f"curate.{one.get('rule')}", entity] += before[table] + more - after[table]
    for entity, table in _ENTITIES.items():
        if table in known and known[table] != evidence.rows(table):
            there = evidence.rows(table)
            yield f"the last rule left {known[table]:,} {table}, and {there:,} are there"
        for stage in sorted(
            {s for s, what in [*removed, *counted] if what == entity and _curated(s)}
        ):
            rows, told = removed[stage, entity], counted[stage, entity]
            if rows != told:
                yield f"{stage} removed {told:,} {table} by its figures, and removals list {rows:,}"


def _curated(stage: str) -> bool:
    return stage.startswith("curate.")


def _sources(evidence: Evidence) -> Iterator[str]:
    """Questions of each source: at most what the source gave, and of no other source."""
    told = {
        row.get("source"): row.get("queries")
        for row in evidence.manifest.sources
        if isinstance(row, Mapping)
    }
    if not told or not evidence.has("queries"):
        return
    found = Counter(evidence.table("queries", ["source"]).column("source").to_pylist())
    for name, count in sorted(found.items()):
        if name not in told:
            yield f"{count:,} questions are of the source {name!r}, which nothing lists"
        elif isinstance(gave := told[name], int) and count > gave:
            yield f"source {name!r} gave {gave:,} questions, and {count:,} are there"


def _manifest(evidence: Evidence) -> Results:
    """The manifest's copies of what the recipe says, and models against the pool."""
    recipe = evidence.recipe
    wrong: list[str] = []
    if isinstance(recipe.get("release"), Mapping):
        waived = [(w.get("gate"), w.get("reason")) for w in recipe["release"].get("waivers") or ()]
        listed = [(one.gate, one.reason) for one in evidence.manifest.waivers]
        if waived != listed:
            wrong.append(f"waivers {listed!r:.80}, expected {waived!r:.80} of the recipe")
    wrong += [*_unwaived(evidence), *_unmade(evidence), *_unlicensed(evidence)]
    if wrong:
        yield contradiction("manifest", len(wrong), len(wrong), "entries differ", wrong)
    if evidence.pool is None:
        if "pool" in recipe:
            yield believed("models", "the recipe's pool is of another version of the code")
        return
    differ, compared = _models(evidence)
    if differ:
        what = "columns of models differ from the recipe's pool"
        yield contradiction("models", len(differ), compared, what, differ)
    elif compared:
        yield consistent("models", "prices, sizes and families are those of the recipe's pool")


def _unwaived(evidence: Evidence) -> Iterator[str]:
    """Findings of the metering audit that no waiver covers: such a release is never written."""
    gates = {waiver.gate for waiver in evidence.manifest.waivers}
    found = evidence.figures("audit").get("findings")
    for row in found if isinstance(found, list) else ():
        check = row.get("check") if isinstance(row, Mapping) else None
        if not {"metering", f"metering:{check}"} & gates:
            yield f"the metering finding {check!r} is not waived, and the release was written"


#: Table → curation rules of which one makes it; a release without such a rule has no rows of it.
_MADE_BY = {
    "duplicates": ("dedup",),
    "model_splits": ("unseen_models",),
    "preferences": ("preference",),
    "entropies": ("preference",),
}


def _unmade(evidence: Evidence) -> Iterator[str]:
    """Tables with rows that no part of the recipe makes."""
    if not evidence.built:
        return
    rules = [r.get("rule") for r in evidence.recipe.get("curate") or () if isinstance(r, Mapping)]
    for table, makers in _MADE_BY.items():
        if evidence.rows(table) and not set(rules) & set(makers):
            rows = evidence.rows(table)
            yield f"{table} has {rows:,} rows, expected none without the rule {makers[0]!r}"
    asked = (evidence.recipe.get("release") or {}).get("include_embeddings")
    if evidence.rows("embeddings") and not asked:
        yield "embeddings has rows, expected none without release.include_embeddings"
    if evidence.rows("steps") and not (evidence.recipe.get("collect") or {}).get("agent"):
        yield "steps has rows, expected none without collect.agent"


def _unlicensed(evidence: Evidence) -> Iterator[str]:
    """Questions whose text is withheld, though their source may be passed on, or the reverse."""
    if not evidence.has("queries"):
        return
    closed = {
        row.get("source")
        for row in evidence.manifest.sources
        if isinstance(row, Mapping) and row.get("redistribute_text") is False
    }
    queries = evidence.table("queries", ["query_id", "source", "question"])
    hidden = pc.is_in(queries.column("query_id"), value_set=evidence.withheld)
    found = set(queries.filter(hidden).column("source").to_pylist())
    for name in sorted(found - closed):
        yield f"text of source {name!r} is withheld, expected its text: it may be passed on"
    shown = set(queries.filter(pc.invert(hidden)).column("source").to_pylist())
    for name in sorted(shown & closed):
        yield f"text of source {name!r} is there, expected none: it may not be passed on"


def _models(evidence: Evidence) -> tuple[list[str], int]:
    from routeyard.pipelines.errors import RouteyardError
    from routeyard.pipelines.pool import models_table

    assert evidence.pool is not None
    try:
        stated = {row["model_id"]: row for row in models_table(evidence.pool).to_pylist()}
    except RouteyardError:
        return [], 0
    columns = [
        n for n in next(iter(stated.values()), {}) if n in evidence.tables["models"].column_names
    ]
    differ, compared = [], 0
    for row in evidence.table("models", columns).to_pylist():
        if row["kind"] != "real":
            continue
        own = stated.get(row["model_id"])
        if own is None:
            differ.append(f"{row['model_id']} is not in the recipe's pool")
            continue
        compared += 1
        differ += [
            f"{name} of {row['model_id']} {row[name]!r}, expected {own[name]!r}"
            for name in columns
            if row[name] != own[name]
        ]
    return differ, max(compared, len(differ))
