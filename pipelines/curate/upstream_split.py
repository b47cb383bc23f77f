"""Rule `upstream_split`: the split that the source itself published, kept as a scheme."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from routeyard.pipelines.curate.rule import Curated, Rule, refused
from routeyard.pipelines.curate.split import splits_table, with_splits
from routeyard.schemas.release import NAMES, SCHEME


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


RULE = Rule("upstream_split", upstream_split, reads=())
