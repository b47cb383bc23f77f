"""A whole build and release against a server that says the key back: no file or log holds it."""

from __future__ import annotations

import json
import logging
import sqlite3
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from routeyard.flows.cli import run
from tests.calls.echo import Echo
from tests.calls.test_key_comes_back import KEY, found_in, stands_in

RECIPE = """name: echoed
version: "1.0.0"
sources:
  - {{name: one, path: rows.jsonl, scorer: em_strict, fields: {{question: q, references: a}}}}
pool:
  providers: [{{name: p, base_url: "{url}", api_key_env: ECHO_KEY}}]
  models:
    - {{model_id: m0, provider: p, price_in: 1, price_out: 1, price_date: "2026-01-01"}}
    - {{model_id: m1, provider: p, price_in: 1, price_out: 1, price_date: "2026-01-01"}}
collect:
  retry: {{attempts: 2, first_wait_s: 0.0}}
release:
  waivers: [{{gate: metering, reason: "The server says nonsense on purpose."}}]
"""


def tables_hold(folder: Path) -> list[str]:
    """Parquet and SQLite files with the key in a value: their bytes are packed."""

    def said(path: Path) -> str:
        return json.dumps(pq.read_table(path).to_pylist(), default=str, ensure_ascii=False)

    found = [str(path) for path in sorted(folder.rglob("*.parquet")) if stands_in(said(path))]
    for path in sorted(folder.rglob("*.sqlite")):
        with sqlite3.connect(path) as ledger:
            dump = "\n".join(ledger.iterdump())
        if stands_in(dump):
            found.append(str(path))
    return found


@pytest.mark.parametrize("kind", ["ok", pytest.param("error", marks=pytest.mark.slow)])
def test_the_key_is_nowhere_after_a_build(
    kind: str, tmp_path: Path, monkeypatch, capfd, caplog
) -> None:
    monkeypatch.setenv("ECHO_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    rows = "".join(json.dumps({"q": f"question {i}", "a": "1"}) + "\n" for i in range(4))
    (tmp_path / "rows.jsonl").write_text(rows)
    yard = tmp_path / "yard"
    with Echo(KEY, kind=kind) as server:
        (tmp_path / "recipe.yaml").write_text(RECIPE.format(url=server.base_url))
        words = [str(tmp_path / "recipe.yaml"), "--workspace", str(yard)]
        code = run(["build", *words])
        for command in ("plan", "status"):
            run([command, *words])
    release = yard / "releases" / "echoed" / "1.0.0"
    said = capfd.readouterr()
    assert release.is_dir() is (kind == "ok"), said.err
    assert (code == 0) is (kind == "ok"), said.err
    if kind == "ok":
        for command in ("verify", "diff"):
            run([command, str(release), *([str(release)] if command == "diff" else [])])
        assert run(["query", str(release), "FROM responses", "--format", "json"]) == 0
        # The server's text did arrive: what is missing in it is the key.
        texts = pq.read_table(release / "data" / "responses.parquet").column("text").to_pylist()
        assert len(texts) == 8
        assert all("Correct" in text or "yes" in text for text in texts)
    said_after = capfd.readouterr()
    for text in (said.out, said.err, said_after.out, said_after.err, caplog.text):
        assert not stands_in(text)
    assert found_in(yard) == []
    assert tables_hold(yard) == []
