"""`routeyard site` and `routeyard view`: pages, shards, hostile text, and a real browser."""

from __future__ import annotations

import base64
import gzip
import html.parser
import http.client
import json
import os
import re
import shutil
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.datacards.card import render
from routeyard.datacards.files import render as render_files
from routeyard.flows.cli import run
from routeyard.flows.site import write as write_site
from routeyard.flows.web import SiteServer
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.release.build import write_release
from routeyard.schemas import CONTRACTS
from routeyard.schemas.contracts import RESULTS
from tests.support import small_release

write, release, sound = small_release.write, small_release.release, small_release.sound
NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'{{7*7}}"


def hostile() -> dict[str, pa.Table]:
    """The tiny release whose names and texts all try to become markup."""
    tables = dict(small_release.tiny_tables())
    for name, table in tables.items():
        rows = table.to_pylist()
        for row in rows:
            if row.get("model_id") == "m1":
                row["model_id"] = f"m1{NASTY}"
            if name == "queries":
                row["prompt"] = row["question"] = f"{row['question']} {NASTY}"
                row["task"] = f"{row['task']}{NASTY}"
            if name == "responses":
                row["text"] = f"{NASTY} {row['text']}"
            if name == "verdicts":
                row["reason"] = NASTY
        tables[name] = CONTRACTS[name].from_rows(rows)
    return tables


class Tags(html.parser.HTMLParser):
    """Elements of a page with their attributes."""

    def __init__(self, text: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def shard(path: Path) -> Any:
    found = re.fullmatch(r'routeyard\("\w+",\d+,"([A-Za-z0-9+/=]*)"\);\n', path.read_text("ascii"))
    assert found, "a shard is one call with base64 and nothing else"
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    recipe = {**small_release.RECIPE, "release": {"title": f"T{NASTY}"}}
    made = write_release(hostile(), recipe=recipe, root=root, render_card=render,
                         render_files=render_files, sources=small_release.SOURCES)  # fmt: skip
    return write_site([made.path], root / "site").parent


def test_hostile_text_is_text_on_every_page_and_nothing_is_asked_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) == 5
    for page in pages:
        tags = Tags(page.read_text(encoding="utf-8")).found
        policy = next(a["content"] for t, a in tags if a.get("http-equiv"))
        assert policy is not None
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        for tag, attributes in tags:
            assert tag not in ("img", "iframe", "object", "embed", "form") or tag == "form"
            assert not [name for name in attributes if name.startswith("on")]
            assert "style" not in attributes, "the policy forbids it"
            for name in ("src", "href", "action"):
                assert not re.match(r"[a-z]+:(?!,)|//", attributes.get(name) or ""), attributes
            if tag == "script" and "src" not in attributes:
                assert attributes.get("type") == "application/json"


def test_a_question_carries_answers_verdicts_cost_and_who_decided(site: Path) -> None:
    folder = next(site.glob("*/*/shards"))
    index = shard(folder / "index-0.js")
    assert len(index["id"]) == 6
    assert index["missing"] == [0, 0, 0, 0, 0, 1], "a missing answer is told, not counted wrong"
    answers = shard(folder / "answers-0.js")
    assert [q["query_id"] for q in answers] == index["id"]
    first = answers[0]["cells"][0]
    assert first["by"] == "numeric"
    assert first["cost"] == pytest.approx(3e-5)
    assert first["samples"][0]["verdicts"][0]["reason"] == NASTY
    assert first["samples"][0]["text"] == [f"{NASTY} 1"]
    contested = [c["contested"] for c in answers[0]["cells"]]
    assert contested == [False, True, False]


def test_a_workspace_shows_its_versions_with_their_own_evaluations_and_the_same_bytes_again(
    release: Path, tmp_path: Path
) -> None:
    fingerprint = json.loads((release / "manifest.json").read_text())["fingerprint"]
    ids = [row["query_id"] for row in small_release.tiny_tables()["queries"].to_pylist()]
    beside = tmp_path / "beside" / "results"
    beside.mkdir(parents=True)
    row = {"router": "my-own-router", "metric": "accuracy", "split": "test", "value": 0.9}
    row |= {"low": None, "high": None, "reason": None}
    pq.write_table(pa.Table.from_pylist([row], RESULTS["metrics"]), beside / "metrics.parquet")
    choices = {
        "query_id": ids,
        "router": ["my-own-router"] * len(ids),
        "model_id": ["m0"] * len(ids),
    }
    pq.write_table(pa.table(choices), beside / "choices.parquet")
    sites = []
    for name, of in (("one", fingerprint), ("two", fingerprint), ("other", "another version")):
        told = {"release": {"fingerprint": of}, "facts": {}, "ranking": []}
        (beside / "evaluation.json").write_text(json.dumps(told))
        sites.append(write_site([tmp_path], tmp_path / name, results=[beside]).parent)
    shown = ["my-own-router" in next(page.rglob("routers.html")).read_text() for page in sites]
    assert shown == [True, True, False]
    one, two = sites[:2]
    page = (one / "index.html").read_text(encoding="utf-8")
    assert f"{release.parent.name}/{release.name}/index.html" in page
    files = sorted(p.relative_to(one) for p in one.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(two) for p in two.rglob("*") if p.is_file())
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in files)


def test_without_texts_no_question_and_no_answer_is_anywhere(sound: Path, tmp_path: Path) -> None:
    out = write_site([sound], tmp_path / "site", texts=False).parent
    assert not list(out.rglob("shards"))
    text = "".join(path.read_text() for path in out.rglob("*.html"))
    assert "Answer with a number." not in text  # of every prompt
    assert "4+1?" not in text
    assert "The release holds no certificate" in text
    page = (out / "tiny/1.0.0/questions.html").read_text()
    assert "belong to their sources" in page


def test_a_release_without_costs_or_responses_has_its_pages(write: Any, tmp_path: Path) -> None:
    tables = {
        k: v for k, v in small_release.tiny_tables().items() if k not in ("responses", "verdicts")
    }
    release = write(tables).path
    index = write_site([release], tmp_path / "site")
    page = next(index.parent.glob("*/*/index.html")).read_text(encoding="utf-8")
    assert "Fewer than two models have a known cost and a label" in page


def test_where_a_cost_is_not_known_specialists_are_told_over_all_models(
    write: Any, tmp_path: Path
) -> None:
    tables = dict(small_release.tiny_tables())
    responses = tables["responses"].to_pylist()
    for row in responses:
        # Only m1 and m2 have a cost; m0, right everywhere, must still be who is compared with.
        if row["model_id"] == "m0":
            row["cost_usd"] = row["cost_source"] = None
    tables["responses"] = CONTRACTS["responses"].from_rows(responses)
    index = write_site([write(tables).path], tmp_path / "site")
    page = next(index.parent.glob("*/*/index.html")).read_text(encoding="utf-8")
    assert "No budgets are set here" in page
    row = re.search(r">even</a></th>.*?</tr>", page)
    assert row is not None
    # m1 is as good as m0 on even questions: nobody gains, and nobody loses.
    assert ">+0.0</td><td>no</td>" in row[0]


def test_bad_places_are_told(release: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="neither a release"):
        write_site([tmp_path / "nothing"], tmp_path / "site")
    with pytest.raises(BadInput, match="inside a release"):
        write_site([release], release / "site")
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.tex").write_text("years of work")
    with pytest.raises(BadInput, match="other things"):
        write_site([release], full)


def test_the_server_answers_this_machine_only_and_lists_nothing(tmp_path: Path) -> None:
    site, secret = tmp_path / "site", tmp_path / "secret"
    (site / "inner").mkdir(parents=True)
    (site / "index.html").write_text("hello")
    secret.write_text("a key")
    (site / "out").symlink_to(secret)  # pages of a stranger's site could read it
    os.mkfifo(site / "pipe")
    for name, page in (("sub", "index.html"), ("old", "index.htm")):
        (site / name).mkdir()
        (site / name / page).symlink_to(secret)  # opened when the folder is asked for
    server = SiteServer(site)
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        with urllib.request.urlopen(server.address) as answer:
            assert answer.read() == b"hello"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
            assert "frame-ancestors 'none'" in policy
        for path, host, code in (
            ("", "evil.example", 403), ("inner/", None, 404), ("%00", None, 404),
            ("out", None, 404), ("pipe", None, 404), ("../secret", None, 404),
            ("sub/", None, 404), ("sub/index.html", None, 404), ("old/", None, 404),
        ):  # fmt: skip
            asked = urllib.request.Request(server.address + path)
            if host:
                asked.add_header("Host", host)
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(asked, timeout=5)
            assert refused.value.code == code
            refused.value.close()
        for hosts in (("localhost", "evil.example"), ("evil.example", "localhost"), ()):
            asking = http.client.HTTPConnection(server.address.split("/")[2])
            asking.putrequest("GET", "/", skip_host=True)
            for host in hosts:
                asking.putheader("Host", host)
            asking.endheaders()
            with asking.getresponse() as answered:
                assert answered.status == 400, hosts  # by the parser of requests
            asking.close()
    finally:
        server.end()


@pytest.mark.parametrize("command", ["site", "health"])
def test_a_table_that_is_missing_or_cut_stops_the_pages(
    command: str, demo_release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The site was written all the same, from what else was there; `health` had a KeyError.
    damaged = tmp_path / "demo" / "1.0.0"
    shutil.copytree(demo_release, damaged)
    labels = damaged / "data" / "labels.parquet"
    for content in (labels.read_bytes()[:-9], None):
        if content is None:
            labels.unlink()
        else:
            labels.write_bytes(content)
        assert run([command, str(damaged), "--out", str(tmp_path / "out")]) == 2
        assert "data/labels.parquet" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


def test_a_table_that_was_altered_is_no_wrong_query(
    demo_release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "demo" / "1.0.0"
    shutil.copytree(demo_release, damaged)
    with (damaged / "data" / "responses.parquet").open("r+b") as file:
        file.seek(200)
        file.write(bytes(400))
    assert run(["site", str(damaged), "--out", str(tmp_path / "out")]) == 2
    assert "`routeyard verify RELEASE` says which" in capsys.readouterr().err
