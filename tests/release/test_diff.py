from __future__ import annotations

import json
import os

import pyarrow as pa
import pytest

from routeyard.datacards.card import render
from routeyard.flows.cli import run
from routeyard.flows.evaluation.released import read_release
from routeyard.pipelines.common.errors import BadInput, SourceError
from routeyard.pipelines.release.diff import changelog, diff_releases, write_diff
from routeyard.pipelines.release.manifest import yank, yanked
from routeyard.pipelines.release.reader import open_release
from routeyard.schemas import LABELS, MODELS, RESPONSES, VERDICTS
from tests.support.sound_release import verify_release


def test_diff_with_itself_is_empty(release):
    assert diff_releases(release, release).empty


def test_relabelling_lists_exactly_the_flips(write, tables, tmp_path):
    rows = tables["labels"].to_pylist()
    before = write().path
    flipped = {
        (rows[3]["query_id"], rows[3]["model_id"]),
        (rows[8]["query_id"], rows[8]["model_id"]),
    }
    for row in rows:
        if (row["query_id"], row["model_id"]) in flipped:
            row["correct"] = not row["correct"]
            row["score"] = 1.0 - row["score"]
            row["decided_by"] = "xverify:0.5b"
    after = write({**tables, "labels": LABELS.from_rows(rows)}, recipe={"version": "1.1.0"}).path
    diff = diff_releases(before, after)
    found = diff.tables["labels"].to_pylist()
    assert {(row["query_id"], row["model_id"]) for row in found} == flipped
    assert {row["change"] for row in found} == {"flipped"}
    # By whom.
    assert {(r["decided_by_before"], r["decided_by_after"]) for r in found} == {
        ("numeric", "xverify:0.5b")
    }
    assert not diff.tables["queries"].num_rows
    assert {path.name for path in write_diff(diff, tmp_path / "out")} >= {"labels.parquet"}


def test_a_label_that_vanished_is_not_a_flip(write, tables):
    before = write().path
    after = write({**tables, "labels": tables["labels"].slice(1)}, recipe={"version": "1.1.0"}).path
    found = diff_releases(before, after).tables["labels"].to_pylist()
    assert [row["change"] for row in found] == ["vanished"]


def test_verdicts_are_compared_at_their_newest(write, tables):
    # The labels stay: what a diff of labels alone would never show.
    before = write().path
    rows = tables["verdicts"].to_pylist()
    rows[0] |= {"outcome": "abstain", "score": None}
    rows[1] |= {"extracted": "2"}
    rows.append({**rows[2], "scorer_version": "10", "outcome": "correct", "score": 1.0})
    rows.append({**rows[3], "scorer": "human:ada"})
    gone = rows.pop(4)
    after = write({**tables, "verdicts": VERDICTS.from_rows(rows)}, recipe={"version": "1.1.0"})
    found = diff_releases(before, after.path)
    assert found.counts() == {
        "verdicts": {"filed": 1, "other outcome": 2, "read otherwise": 1, "withdrawn": 1}
    }
    said = {
        (r["query_id"], r["model_id"], r["scorer"]): r for r in found.tables["verdicts"].to_pylist()
    }
    raised = said[rows[2]["query_id"], rows[2]["model_id"], "numeric"]
    assert (raised["version_before"], raised["version_after"]) == ("1", "10")
    assert said[gone["query_id"], gone["model_id"], "numeric"]["change"] == "withdrawn"


def test_a_file_outside_the_release_is_not_read(write, tmp_path, tables):
    import pyarrow.parquet as pq

    good, bad = write().path, write(recipe={"version": "1.1.0"}).path
    secret = tmp_path / "secret.parquet"
    pq.write_table(tables["labels"].slice(1), secret)
    manifest = json.loads((bad / "manifest.json").read_text())
    manifest["files"][str(secret)] = manifest["files"].pop(manifest["tables"]["labels"]["file"])
    manifest["tables"]["labels"]["file"] = str(secret)
    (bad / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SourceError, match="absolute path"):
        diff_releases(good, bad)


def test_prices_and_ranks(write, tables):
    before = write().path
    rows = tables["models"].to_pylist()
    rows[1]["price_out"] = None
    after = write({**tables, "models": MODELS.from_rows(rows)}, recipe={"version": "1.1.0"}).path
    found = diff_releases(before, after)
    assert found.tables["prices"].to_pylist()[0]["price_out_after"] is None
    assert found.counts() == {"models": {"changed": 1}, "prices": {"changed": 1}}


def test_costs_that_became_known_are_told_with_their_sums(write, tables):
    rows = tables["responses"].to_pylist()
    known = [row["cost_usd"] for row in rows if row["model_id"] == "m1"]
    lacking = [row | ({"cost_usd": None} if row["model_id"] == "m1" else {}) for row in rows]
    lacking = [row | ({"cost_source": None} if row["cost_usd"] is None else {}) for row in lacking]
    before = write({**tables, "responses": RESPONSES.from_rows(lacking)}).path
    after = write(tables, recipe={"version": "1.1.0"}).path
    found = diff_releases(before, after).tables["costs"].to_pylist()
    assert found == [
        {
            "model_id": "m1",
            "costs_changed": len(known),
            "tokens_changed": 0,
            "pairs": len(known),
            "known_before": 0,
            "known_after": len(known),
            "usd_before": None,
            "usd_after": pytest.approx(sum(known), abs=1e-9),
        }
    ]
    assert "- Costs: 1 changed (m1)." in changelog(before.parent)


def test_certificates_are_compared_figure_by_figure(write):
    def certified(version, certificate):
        path = write(recipe={"version": version}).path
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["figures"]["certify"] = certificate
        (path / "manifest.json").write_text(json.dumps(manifest))
        return path

    def certificate(verdict, gap):
        figures = {"gap_mix": {"value": gap}, "hard_share": {"value": 0.25}}
        return {"certificate": {"verdict": verdict, "figures": figures}}

    before = certified("1.0.0", certificate("headroom only", 0.1))
    after = certified("1.1.0", certificate("routable", 0.2))
    assert diff_releases(before, after).tables["certificate"].to_pylist() == [
        {"figure": "verdict", "before": "headroom only", "after": "routable"},
        {"figure": "figures.gap_mix", "before": "0.1", "after": "0.2"},
    ]
    odd = certified("1.2.0", ["no", "object"])
    found = diff_releases(after, odd).tables["certificate"].to_pylist()
    assert [row["after"] for row in found] == [None] * 3


def test_a_rank_that_stays_is_no_change(write, tables):
    before = write().path
    found = []
    for number in range(2):
        rows = tables["labels"].to_pylist()
        if rows[number]["score"] is None:
            continue
        rows[number]["score"] = 1 - rows[number]["score"]
        rows[number]["correct"] = rows[number]["score"] >= 0.5
        version = {"version": f"1.{number + 1}.0"}
        after = write({**tables, "labels": LABELS.from_rows(rows)}, recipe=version).path
        diff = diff_releases(before, after)
        assert not diff.empty
        found += diff.tables["ranks"].to_pylist()
    assert all(row["rank_before"] != row["rank_after"] for row in found)


def test_changelog_is_made_from_the_data(write, tables):
    first = write().path
    rows = tables["labels"].to_pylist()
    rows[0].update(score=0.0, correct=False, decided_by="human:ann")
    write({**tables, "labels": LABELS.from_rows(rows)}, recipe={"version": "1.1.0"})
    yank(first, reason="a label was wrong", use_instead="1.1.0")
    text = changelog(first.parent)
    assert text.index("## 1.1.0") < text.index("## 1.0.0")
    assert "Labels: 1 flipped (decided by human:ann: 1)" in text
    assert "**Yanked:** a label was wrong. Use 1.1.0." in text
    assert "6 queries, 3 models, 17 labels" in text


def test_yank_needs_a_reason_and_happens_once(release):
    with pytest.raises(BadInput, match="for a reason"):
        yank(release, reason=" ")
    yank(release, reason="wrong prices")
    assert yanked(release).reason == "wrong prices"
    with pytest.raises(BadInput, match="already"):
        yank(release, reason="again")


@pytest.mark.parametrize(
    "lay",
    [
        lambda mark: mark.write_text("[" * 60_000),  # was a traceback of every command
        lambda mark: mark.write_text('{"reason": "\\ud800"}'),  # no page of it could be written
        lambda mark: mark.write_text('{"reason": "' + "x" * 100_000 + '"}'),
        lambda mark: mark.mkdir(),
        lambda mark: os.mkfifo(mark),  # was waited for without end
        lambda mark: mark.symlink_to(mark.parent.parent / "elsewhere"),
    ],
    ids=["nested", "half a sign", "long", "a folder", "a pipe", "a link to nowhere"],
)
def test_a_mark_of_a_stranger_that_is_none_is_said_in_words(lay, tmp_path):
    lay(tmp_path / "YANKED.json")
    with pytest.raises(SourceError, match="mark of a yanked release cannot be read"):
        yanked(tmp_path)


def test_a_mark_that_cannot_be_read_is_a_finding_and_a_link_is_not_written_through(release):
    mark, elsewhere = release / "YANKED.json", release.parent / "elsewhere"
    mark.write_text("[" * 60_000)
    found = verify_release(release, render_card=render)
    assert [(one.check, one.where) for one in found] == [("yanked", "YANKED.json")]
    mark.unlink()
    mark.symlink_to(elsewhere)
    with pytest.raises(SourceError):
        yank(release, reason="mine")
    assert not elsewhere.exists()


def test_a_changelog_of_strangers_makes_no_markup(write, tables):
    first = write().path
    yank(first, reason="was\x1b[2J wrong\n\n## 9.9.9\n\n[see](javascript:0) <img src=x>")
    text = changelog(first.parent)
    assert "\x1b" not in text
    assert "\n## 9.9.9" not in text
    assert "[see](" not in text
    assert "<img" not in text.replace("\\<img", "")


def test_a_yanked_release_is_said_to_be_one_and_goes_to_no_new_place(release, tmp_path, capsys):
    # Only `verify` said so: people went on asking and publishing.
    shelf = tmp_path / "shelf"
    assert run(["publish", str(release), "--to", str(shelf)]) == 0
    yank(release, reason="wrong prices", use_instead="1.1.0")
    said = "this release was yanked: wrong prices; use 1.1.0 instead"
    with pytest.warns(UserWarning, match=said), open_release(release) as opened:
        assert opened.tables
    capsys.readouterr()
    assert run(["query", str(release), "SELECT count(*) FROM labels"]) == 0
    assert said in " ".join(capsys.readouterr().err.split())
    assert len(read_release(release)["labels"])
    assert said in " ".join(capsys.readouterr().err.split())
    assert run(["publish", str(release), "--to", str(tmp_path / "other")]) == 3
    assert f"{said}\n" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
    # Where it lies already, its mark goes too.
    assert run(["publish", str(release), "--to", str(shelf)]) == 0
    assert yanked(shelf / "tiny" / "1.0.0") == yanked(release)


def test_two_benchmarks_are_said_to_be_two(write, tables, tmp_path, capsys):
    one = write().path
    other = write(recipe={"name": "other"}).path
    assert run(["diff", str(one), str(other)]) == 0
    assert "tiny and other are two benchmarks" in " ".join(capsys.readouterr().err.split())
    assert run(["diff", str(one), str(one)]) == 0
    assert capsys.readouterr().err == ""


def test_a_folder_that_is_no_release_is_named(release, tmp_path):
    with pytest.raises(SourceError, match="not a release"):
        diff_releases(release, tmp_path)


def test_numbers_are_versions_not_texts(write, tables):
    # 1.10.0 comes after 1.9.0, whatever the alphabet says.
    for version in ("1.9.0", "1.10.0"):
        folder = write(recipe={"version": version}).path.parent
    assert changelog(folder).index("## 1.10.0") < changelog(folder).index("## 1.9.0")
    assert isinstance(tables["labels"], pa.Table)
