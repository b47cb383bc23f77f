"""Shards on Dask workers: the same tables as one process makes, with a real encoder."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from routeyard.flows.build import build
from routeyard.flows.tracking import on, start
from routeyard.schemas.release import MEASURED_COLUMNS
from tests.flows.model_endpoint import endpoint
from tests.support.small_recorded import write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.prefect,
    pytest.mark.timeout(1200),
    # Prefect's own server and client, and distributed, warn on their way out.
    pytest.mark.filterwarnings("ignore"),
]


def tables(yard: Path, done: dict) -> dict[str, list[dict]]:
    """Tables after curation, without what was measured."""
    folder = yard / "stages" / "curate" / done["stages"]["curate"]["fingerprint"]
    found = {path.stem: pq.read_table(path) for path in sorted(folder.glob("*.parquet"))}
    kept = {
        name: [column for column in table.column_names if column not in MEASURED_COLUMNS]
        for name, table in found.items()
    }
    return {name: table.select(kept[name]).to_pylist() for name, table in found.items()}


def test_two_dask_workers_and_one_process_give_the_same_tables(tmp_path: Path) -> None:
    pytest.importorskip("prefect_dask", reason="prefect-dask is not installed (extra 'dask')")
    from prefect.client.orchestration import get_client
    from prefect.testing.utilities import prefect_test_harness

    with endpoint("one", "two") as served:
        pool = {
            "providers": [{"name": "p", "base_url": served.url, "limits": {"concurrency": 8}}],
            "models": [{"model_id": "one"}, {"model_id": "two"}],
        }
        recipe = write(tmp_path, pool=pool, collect={}, curate=[{"rule": "dedup"}])
        # Three files of the embedding cache, so that two shards have work.
        with (tmp_path / "questions.jsonl").open("w") as out:
            for i in range(1100):
                asked = {"id": str(i), "question": f"What is {i} + {i * i}?", "answer": "0"}
                out.write(json.dumps(asked) + "\n")
        given = {"recipe": str(recipe), "until": "curate", "jobs": 2}
        yards = tmp_path / "direct", tmp_path / "dask"
        direct = start(build, **given, workspace=str(yards[0]))
        first = dict(served.asked)
        with prefect_test_harness(server_startup_timeout=600):
            running = on(build, "dask", workers=2)
            sharded = running(**given, workspace=str(yards[1]), shards=2)
            with get_client(sync_client=True) as client:
                names = [run.name.rsplit("-", 1)[0] for run in client.read_task_runs()]
    assert first == {"one": 1100, "two": 1100}
    assert dict(served.asked) == {"one": 2200, "two": 2200}
    assert names.count("collect shard") == 4
    assert names.count("embed shard") == 2
    assert names.count("file verdicts") == 2
    assert sharded["stages"]["embed"]["fingerprint"] == direct["stages"]["embed"]["fingerprint"]
    caches = [
        {path.name: path.read_bytes() for path in (yard / "cache").rglob("*.parquet")}
        for yard in yards
    ]
    assert caches[0] == caches[1]
    assert len(caches[0]) == 3
    assert tables(yards[0], direct) == tables(yards[1], sharded)
