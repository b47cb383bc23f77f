"""`benchmarks judged`: an answer that nobody decided about is no wrong answer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.answers.judged import judged


def test_answers_without_a_verdict_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "judged").mkdir()
    row = {"model": "m", "question": "?", "references": ["1"], "choices": None, "output": "1"}
    rows = [{**row, "judged": verdict} for verdict in (True, None, False)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "judged" / "some.parquet")
    assert [one.right for one in judged(tmp_path, "some")] == [True, False]
