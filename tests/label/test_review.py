"""The review queue: order, export, the page, and decisions as verdicts."""

from __future__ import annotations

import csv
import io
import threading
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import pyarrow as pa
import pytest

from routeyard.flows.web import ReviewPage
from routeyard.pipelines.audit.labels import decisions, from_csv, review_queue, to_csv
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.label.policies import decide
from routeyard.pipelines.label.rules import file_verdicts
from tests.support.label_tables import qid, queries, responses

AT = "2026-11-21T00:00:00Z"
TORN = "The answer is 1. <script>alert(1)</script>\nThe answer is 2."


def _contested() -> tuple[pa.Table, pa.Table, pa.Table, pa.Table]:
    """Models with 6, 2 and 2 right answers of 8; each has one contested label."""
    asked = queries(["1"] * 8)
    right = {"far": 6, "near": 2, "level": 2}
    texts = responses(
        {model: ["answer is 1"] * n + ["answer is 5"] * (8 - n) for model, n in right.items()}
    )
    filed = file_verdicts(asked, texts).to_pylist()
    for row in filed:
        row["conflict"] = row["query_id"] == qid(7)
    verdicts = pa.Table.from_pylist(filed, schema=file_verdicts(asked, texts).schema)
    return asked, texts, verdicts, decide(asked, texts, verdicts)


def test_what_moves_the_ranking_comes_first() -> None:
    rows = review_queue(*_contested())
    # flipping a label of a tied model splits the tie; the far one changes nothing
    assert [(r["model_id"], r["order_changes"]) for r in rows] == [
        ("level", 0.5),
        ("near", 0.5),
        ("far", 0.0),
    ]
    assert rows[0]["closeness"] > rows[-1]["closeness"]
    assert {r["why"] for r in rows} == {"contested"}


def test_a_suspect_reference_flips_all_its_labels() -> None:
    asked, texts, verdicts, labels = _contested()
    rows = review_queue(asked, texts, verdicts, labels, pa.table({"query_id": [qid(3)]}))
    suspect = [r for r in rows if r["why"] == "suspect reference"]
    assert len(suspect) == 3
    # far loses one, the two others gain one each: their order among all stays
    assert {r["order_changes"] for r in suspect} == {0.0}


def test_of_a_long_answer_what_was_read_and_the_end_are_shown() -> None:
    asked = queries(["1"])
    long = "so " * 20_000 + "The answer is 1.\n" + "and " * 9_000 + "end."
    texts = responses({"m": [long]})
    filed = file_verdicts(asked, texts)
    verdicts = pa.Table.from_pylist(
        [row | {"conflict": True} for row in filed.to_pylist()], schema=filed.schema
    )
    row = review_queue(asked, texts, verdicts, decide(asked, texts, verdicts))[0]
    start, end = map(int, row["span"].split("-"))
    assert row["output"][start:end].rstrip(".") == "1"
    assert row["output"].startswith("so so")
    assert row["output"].endswith("end.")
    assert len(row["output"]) < 22_000
    assert "characters …]" in row["output"]
    assert "correct (1.) - " in row["reasons"]


def test_export_and_decisions_round_trip() -> None:
    asked, texts, verdicts, labels = _contested()
    exported = to_csv(review_queue(asked, texts, verdicts, labels))
    rows = list(csv.DictReader(io.StringIO(exported)))
    rows[0] |= {"decision": "Correct", "note": "=1+1"}
    rows[1]["decision"] = "cannot tell"
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    filed = from_csv(out.getvalue(), by="ada", at=AT)
    assert filed["scorer"].to_pylist() == ["human:ada", "human:ada"]
    assert sorted(filed["outcome"].to_pylist()) == ["abstain", "correct"]
    after = decide(asked, texts, pa.concat_tables([verdicts, filed]))
    decided = {(r["query_id"], r["model_id"]): r["decided_by"] for r in after.to_pylist()}
    assert decided[qid(7), "level"] == "human:ada"
    assert decided[qid(7), "near"] == "numeric"
    # what a person has seen is not asked again
    left = review_queue(asked, texts, pa.concat_tables([verdicts, filed]), after)
    assert [r["model_id"] for r in left] == ["far"]


@pytest.mark.parametrize(
    "text",
    [
        "query_id,model_id\n",
        "query_id,model_id,sample,decision\nq,m,0,yes\n",
        "query_id,model_id,sample,decision\nq,m,x,correct\n",
        "decision,query_id,model_id,sample\ncorrect,q\n",
        pytest.param(f"query_id,model_id,sample,decision\n{'q' * 10_000_001}", id="long"),
    ],
)
def test_files_that_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        from_csv(text, by="ada", at=AT)


def test_a_reviewer_needs_a_plain_name() -> None:
    with pytest.raises(BadInput):
        decisions([], by="../ada", at=AT)


def test_formulas_in_answers_are_disarmed() -> None:
    asked = queries(["1"])
    texts = responses({"m": ["=cmd|' /C calc'!A0 the answer is 1. The answer is 2."]})
    filed = file_verdicts(asked, texts).to_pylist()
    filed[0]["conflict"] = True
    verdicts = pa.Table.from_pylist(filed, schema=file_verdicts(asked, texts).schema)
    rows = review_queue(asked, texts, verdicts, decide(asked, texts, verdicts))
    (row,) = csv.DictReader(io.StringIO(to_csv(rows)))
    assert row["output"].startswith("'=")


def test_the_page_shows_text_as_text_and_keeps_decisions() -> None:
    asked, texts, verdicts, labels = _contested()
    rows: list[dict[str, Any]] = review_queue(asked, texts, verdicts, labels)
    rows[0]["output"] = TORN
    rows[0]["span"] = f"0-{len(TORN)}"  # what was read is marked, and still only text
    kept: list[tuple[Any, ...]] = []
    page = ReviewPage(rows, lambda *decision: kept.append(decision))
    thread = threading.Thread(target=page.serve, daemon=True)
    thread.start()
    try:
        with urllib.request.urlopen(page.address) as shown:
            body = shown.read().decode()
            policy = shown.headers["Content-Security-Policy"]
        assert "&lt;script&gt;" in body
        assert "Verdicts" in body
        assert "<mark>" in body
        assert "<script>" not in body
        assert "default-src 'none'" in policy
        sent = urllib.parse.urlencode({"decision": "correct", "note": "read"}).encode()
        with urllib.request.urlopen(page.address + "0", sent) as after:
            assert "2 of 3" in after.read().decode()
        assert kept == [((rows[0]["query_id"], rows[0]["model_id"], 0), "correct", "read")]
        for address, headers in (
            (page.address.rsplit("/", 2)[0] + "/wrong/", {}),
            # another site's name that resolves to this machine
            (page.address, {"Host": "evil.example"}),
        ):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(address, headers=headers))
            refused.value.close()
            assert refused.value.code == 404
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(page.address + "0", b"decision=maybe")
        refused.value.close()
        assert len(kept) == 1
    finally:
        page.end()
        thread.join()
