"""The normal form of anybody's results: one row per answer, which readers give and audits take.

`pipelines/ingest` reads a stranger's file into it, `flows/audits` makes it of a release, and
`pipelines/audit` looks for defects in it. A value that a source does not give is null: never
wrong, zero or free. Values are as the source has them, also where they make no sense (a
cost below zero, half a token), so that an audit can name them.
"""

from __future__ import annotations

import pyarrow as pa

#: Column → Arrow type. Every column is there; one that a source lacks is null throughout.
RECORDING = pa.schema(
    [
        ("arm", pa.string()),  # model, with the effort, mode or harness that is compared
        ("question", pa.string()),  # its id inside the suite, as the source names it
        ("suite", pa.string()),  # task, benchmark or subject; "" where the source has none
        ("sample", pa.int32()),  # repeated answers: seed, epoch, trial; from 0
        ("score", pa.float64()),  # 1 right, 0 wrong; percent and words are already converted
        ("status", pa.string()),  # what the source says of the attempt, in its own word
        ("error", pa.string()),  # the error's text or kind, where one is recorded
        ("cost_usd", pa.float64()),
        ("prompt_tokens", pa.float64()),
        ("completion_tokens", pa.float64()),
        ("latency_s", pa.float64()),
        ("served_model", pa.string()),  # the model that answered, where the source says so
        ("text", pa.string()),  # the answer
        ("prompt", pa.string()),  # the question's text
        ("reference", pa.string()),  # what the answer was graded against
        ("split", pa.string()),  # train, validation or test, where the source says so
        ("at", pa.string()),  # where a person finds the row: file and line, or key
    ]
)


def recording(columns: dict[str, pa.Array | pa.ChunkedArray | list[object]]) -> pa.Table:
    """The normal form of some columns, the others null; each is cast to its type.

    Raises:
        pa.ArrowInvalid: a value cannot be cast, or columns differ in length.
    """
    n = max((len(values) for values in columns.values()), default=0)
    made = []
    for field in RECORDING:
        values = columns.get(field.name)
        if values is None:
            made.append(pa.nulls(n, field.type))
        elif isinstance(values, list):
            made.append(pa.array(values, field.type))
        else:
            made.append(values.cast(field.type))
    return pa.Table.from_arrays(made, schema=RECORDING)
