"""Newer dataset revisions, asked of a stand-in hub by the hub's own client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from routeyard.pipelines.ingest import revisions
from routeyard.schemas.recipe import Source
from tests.ingest.hub_stand_in import commit_of, serving

ROOT = Path(__file__).parents[2]

SCRIPT = """
import dataclasses, json, sys
from routeyard.pipelines.ingest import revisions
from routeyard.schemas.recipe import Source
found = revisions([Source.model_validate(one) for one in json.loads(sys.argv[1])])
print(json.dumps([dataclasses.asdict(r) | {"newer": r.newer_exists} for r in found]))
"""


def source(**more):
    fields = {"question": "question", "references": "answer"}
    return {"name": "quiz", "hub_id": "org/quiz", "fields": fields, **more}


def ask(endpoint, sources, home):
    # The client reads the hub's address when it is imported: a process of its own.
    environment = os.environ | {"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0", "HF_HOME": home}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(sources)],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_pin_is_compared_with_the_hub_and_a_missing_answer_is_unknown(tmp_path):
    folder = tmp_path / "hub" / "org" / "quiz"
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n')
    now, old = commit_of(folder), "a" * 40
    with serving(tmp_path / "hub") as endpoint:
        sources = [
            source(revision=old),
            source(revision=now),
            source(),
            source(revision="main"),
            source(revision=old, hub_id="org/gone"),
        ]
        found = ask(endpoint, sources, str(tmp_path / "home"))
    assert [one["newer"] for one in found] == [True, False, False, False, False]
    assert [one["newest"] for one in found] == [now, now, now, now, None]
    # Not "nothing newer": the hub said nothing.
    assert "org/gone" in found[4]["why"]


def test_sources_from_files_ask_no_hub():
    fields = {"question": "question"}
    assert revisions([Source(name="own", path="own.jsonl", fields=fields)]) == []
