"""Questions and splits: ids are hashes of what is asked; the recipe's split is made once more."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow.compute as pc

from routeyard.pipelines.curate.split import split
from routeyard.pipelines.errors import RouteyardError
from routeyard.pipelines.ingest.queries import query_id
from routeyard.pipelines.proof.claims import Results, believed, contradiction, proved
from routeyard.pipelines.proof.evidence import Evidence

#: Questions that say exactly the same, at most: the id of the last of them counts the others.
_REPEATS = 64


def ids_of_questions(evidence: Evidence) -> Results:
    """Questions whose id is not the hash of question, options and references."""
    if not evidence.has("queries") or not evidence.built:
        return
    queries = evidence.table("queries", ["query_id", "question", "choices", "references"])
    there = pc.invert(pc.is_in(queries.column("query_id"), value_set=evidence.withheld))
    queries = queries.filter(there)
    wrong, seen = [], Counter[str]()
    for row in queries.to_pylist():
        content = (row["question"], row["choices"] or [], row["references"] or [])
        first = query_id(*content, 0)
        seen[first] += 1
        if row["query_id"] == first:
            continue
        if all(row["query_id"] != query_id(*content, n) for n in range(1, _REPEATS)):
            wrong.append(f"{row['query_id']}, expected {first}")
    if wrong:
        what = "ids are not the hash of their question, options and references"
        yield contradiction("queries", len(wrong), queries.num_rows, what, wrong)
    elif queries.num_rows:
        says = f"{queries.num_rows:,} ids are the hashes of question, options and references"
        yield proved("queries", says)
    if len(evidence.withheld):
        yield believed("queries", f"{len(evidence.withheld):,} questions whose text is withheld")


def splits_of_recipe(evidence: Evidence) -> Results:
    """Contradictions between the recipe's split scheme and the one made again."""
    if not evidence.has("queries", "splits") or not evidence.rows("splits"):
        return
    stored = evidence.table("splits", ["scheme", "query_id", "split"])
    schemes = sorted(set(stored.column("scheme").to_pylist()))
    settings = evidence.split
    if settings is None or settings.scheme not in schemes:
        yield believed("splits", f"{len(schemes)} schemes: {', '.join(schemes)[:200]}")
        return
    own = stored.filter(pc.equal(stored.column("scheme"), settings.scheme))
    if len(evidence.withheld):
        yield believed("splits", f"scheme {settings.scheme!r}: questions are withheld")
    elif not evidence.same_code or _made_by_rule(evidence, settings.scheme):
        yield believed("splits", f"scheme {settings.scheme!r} was made by other code, or by a rule")
    else:
        yield from _again(evidence, settings, own)
    others = [name for name in schemes if name != settings.scheme]
    if others:
        yield believed("splits", f"schemes made by rules: {', '.join(others)[:200]}")


def _again(evidence: Evidence, settings: Any, own: Any) -> Results:
    duplicates = evidence.tables.get("duplicates")
    columns = evidence.tables["queries"].column_names  # `prompt` says which are near-equal
    try:
        made = split(
            evidence.table("queries", columns),
            duplicates if evidence.rows("duplicates") else None,
            **settings.model_dump(),
        )
    except RouteyardError as error:
        yield contradiction("splits", 1, 1, "schemes cannot be made again", [error.what])
        return
    fresh = dict(
        zip(made.column("query_id").to_pylist(), made.column("split").to_pylist(), strict=True)
    )
    wrong = [
        f"{row['query_id']} is in {row['split']}, expected {fresh.get(row['query_id'])}"
        for row in own.to_pylist()
        if fresh.get(row["query_id"]) != row["split"]
    ]
    lost = set(fresh) - set(own.column("query_id").to_pylist())
    wrong += [f"{name} is in no part, expected {fresh[name]}" for name in sorted(lost)]
    if wrong:
        what = f"questions of scheme {settings.scheme!r} are not where the recipe's split puts them"
        yield contradiction("splits", len(wrong), len(fresh), what, wrong)
    else:
        yield proved("splits", f"scheme {settings.scheme!r} follows from ids, seed and shares")


def _made_by_rule(evidence: Evidence, scheme: str) -> bool:
    """Whether a curation rule made the scheme, in place of the recipe's split."""
    rules = evidence.recipe.get("curate") or ()
    makers = ("out_of_distribution", "unseen_models", "dense_sparse", "upstream_split", "split")
    return any(isinstance(rule, dict) and rule.get("rule") in makers for rule in rules)
