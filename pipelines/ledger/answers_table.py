"""The answers that a ledger holds, as one table, without a recipe or queries."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas import RESPONSES
from routeyard.schemas.recipe.pool import Model

_CHUNK = 1000
#: `responses` and what only a ledger knows.
SCHEMA = pa.schema(
    [
        *RESPONSES.schema,
        pa.field("total_tokens", pa.int64()),
        pa.field("choices", pa.int32()),
        pa.field("purpose", pa.string()),
    ]
)


def answers_table(ledger: Ledger, *, purpose: str = "collect") -> pa.Table:
    """The attempt that counts of every (request, sample) of a purpose; columns of `SCHEMA`."""
    return pa.Table.from_batches(_batches(ledger, purpose), schema=SCHEMA)


def _batches(ledger: Ledger, purpose: str) -> Iterator[pa.RecordBatch]:
    hashes = ledger.hashes(purpose=purpose)
    for start in range(0, len(hashes), _CHUNK):
        rows = []
        for (_, sample), found in sorted(ledger.answered(hashes[start : start + _CHUNK]).items()):
            attempt = found.attempt
            row = {name: getattr(attempt, name, None) for name in SCHEMA.names}
            rows.append(row | {"sample": sample, "attempts": found.attempts})
        yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def asked_models(ledger: Ledger) -> list[Model]:
    """The pool's entries of the models that were asked, as the last run had them."""
    notes = ledger.recall("model:")
    return [Model.model_validate(json.loads(text)) for text in notes.values()]
