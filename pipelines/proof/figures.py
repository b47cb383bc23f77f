"""Counts of the stages in the manifest against the tables: what went in, came out or is listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pyarrow.compute as pc

from routeyard.pipelines.label.label_errors import label_errors
from routeyard.pipelines.proof.claims import Results, consistent, contradiction, not_run, proved
from routeyard.pipelines.proof.differences import values
from routeyard.pipelines.proof.evidence import Evidence

#: Answers beyond which the estimate of wrong labels is only made again with `--full`.
_MOST = 100_000
#: Entity of a removal → the table that it was removed from.
_ENTITIES = {"query": "queries", "model": "models"}


def counts_of_stages(evidence: Evidence) -> Results:
    """Contradictions between figures of the stages, removals and the rows of tables."""
    if not evidence.manifest.figures:
        if evidence.built:
            yield not_run("figures", "counts of the stages", "the manifest holds none")
        return
    removed = _removed(evidence)
    wrong = [*_totals(evidence, removed), *_rules(evidence, removed), *_sources(evidence)]
    if wrong:
        yield contradiction("figures", len(wrong), len(wrong), "counts do not add up", wrong)
    else:
        exact = list(_exact(evidence, removed))
        if exact:
            says = f"{', '.join(exact)}: rows of the tables, and of removals"
            yield proved("figures", says, *(f"figures.{name}" for name in exact))
        yield consistent("figures", "what stages counted, kept and removed adds up to the tables")


def errors_of_labels(evidence: Evidence) -> Results:
    """The estimate of wrong labels against answers and labels: made once more."""
    told, check = evidence.figures("label_errors"), "the estimate of wrong labels"
    if not told:
        if evidence.built:
            yield not_run("figures.label_errors", check, "the manifest holds none")
        return
    why = evidence.other_code if not evidence.same_code else ""
    if not why and len(evidence.withheld):
        why = "texts are withheld"
    if not why and not evidence.full and evidence.rows("responses") > _MOST:
        why = f"of more than {_MOST:,} answers only `--full` makes it"
    if why:
        yield not_run("figures.label_errors", check, why)
        return
    fresh = label_errors(
        evidence.table("queries", ["query_id", "scorer", "references", "choices"]),
        evidence.table("responses", ["query_id", "model_id", "text"]),
        evidence.table("labels", ["query_id", "model_id", "decided_by", "correct"]),
    )
    names = sorted(told.keys() | fresh.keys())
    wrong = list(values((name, told.get(name), fresh.get(name)) for name in names))
    if wrong:
        what = "figures differ from what answers, labels and measured error rates give"
        yield contradiction("figures.label_errors", len(wrong), len(names), what, wrong)
    else:
        says = "follows from answers, labels and the error rates that this code has measured"
        covers = (f"figures.label_errors.{name}" for name in names)
        yield proved("figures.label_errors", f"{check} {says}", *covers)


def _exact(evidence: Evidence, removed: Counter[tuple[str, str]]) -> Iterator[str]:
    """Counts of the stages that equal rows of the tables, those of removals included."""
    gone = Counter[str]()
    for (stage, entity), count in removed.items():
        gone[entity if _curated(stage) else "left out"] += count
    rows = {
        "ingest.queries": evidence.rows("queries") + gone["query"],
        "ingest.removed": gone["left out"],
        "pool.models": len(evidence.real) + gone["model"],
    }
    if not any(gone[entity] for entity in _ENTITIES):
        injected = evidence.rows("models") > len(evidence.real)
        rows["label.verdicts"] = evidence.rows("verdicts")
        if not injected:
            rows |= {"collect.responses": evidence.rows("responses")}
            rows |= {"label.labels": evidence.rows("labels")}
        nulls = evidence.table("labels", ["score"]).column("score").null_count
        rows["label.undecided"] = nulls
    for name, count in rows.items():
        stage, key = name.split(".")
        if evidence.figures(stage).get(key) == count:
            yield name


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
    yield from _rows(evidence, gone)


def _rows(evidence: Evidence, gone: Mapping[str, int]) -> Iterator[str]:
    """Rows of tables: as many as their stage made, less at most those of what curation removed."""
    injected, fewer = evidence.rows("models") > len(evidence.real), any(gone.values())
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
        least = count - _most_of(evidence, gone, evidence.samples if name != "labels" else 1)
        if name == "verdicts" and fewer:
            least = 0  # a response has one of each scorer
        if not max(least, 0) <= rows <= count:
            yield f"the stage counted {count:,} {name}, and {rows:,} are there"
    undecided = evidence.figures("label").get("undecided")
    if isinstance(undecided, int) and evidence.has("labels"):
        nulls = evidence.table("labels", ["score"]).column("score").null_count
        if (nulls > undecided) if fewer else (nulls != undecided):
            yield f"the stage counted {undecided:,} undecided labels, and {nulls:,} are there"


def _most_of(evidence: Evidence, gone: Mapping[str, int], samples: int) -> int:
    """Rows at most of questions and models that curation removed."""
    queries, models = evidence.rows("queries"), len(evidence.real)
    of_queries = gone["query"] * (models + gone["model"])
    return samples * (of_queries + gone["model"] * queries)


def _rules(evidence: Evidence, removed: Counter[tuple[str, str]]) -> Iterator[str]:
    """Each curation rule: kept and removed are what it was given, which the rule before left."""
    told = evidence.figures("curate").get("rules")
    applied = told if isinstance(told, list) else []
    for entity, table in _ENTITIES.items():
        counted = Counter[str]()
        left: int | None = None
        for one in applied:
            before, after = ((one.get(side) or {}).get(table) for side in ("before", "after"))
            if before is None or after is None:
                continue
            if left not in (None, before):
                yield (
                    f"the rule {one.get('rule')!r} was given {before:,} {table}, and the "
                    f"one before left {left:,}"
                )
            left = after
            added = (one.get("figures") or {}).get("injected")
            more = len(added) if isinstance(added, list) and table == "models" else 0
            counted[f"curate.{one.get('rule')}"] += before + more - after
        if left not in (None, there := evidence.rows(table)):
            yield f"the last rule left {left:,} {table}, and {there:,} are there"
        listed = Counter({stage: n for (stage, what), n in removed.items() if what == entity})
        for stage in sorted(filter(_curated, counted | listed)):
            if listed[stage] != counted[stage]:
                yield (
                    f"{stage} removed {counted[stage]:,} {table} by its figures, and removals "
                    f"list {listed[stage]:,}"
                )


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
