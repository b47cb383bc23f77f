"""A stranger's folder: what lies in it that is no file of the format's."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.write import run_import

SAMPLES = "samples_t_2025-01-01T00-00-00.jsonl"
ROW = {
    "doc_id": 1, "doc": {}, "target": "a", "resps": [["x"]], "filtered_resps": ["x"],
    "arguments": {"gen_args_0": {"arg_0": "q", "arg_1": {}}}, "exact_match": 1.0,
}  # fmt: skip


def read(folder: Path, target: Path) -> int:
    return run_import(IMPORTERS.get("lm_eval"), folder, target / "lm_eval").answers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "theirs"
    made.mkdir()
    return made


def test_a_link_that_leads_out_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    # What it leads to would be imported, and published with the rest.
    (tmp_path / "mine.jsonl").write_text(json.dumps(ROW) + "\n")
    (folder / SAMPLES).symlink_to(tmp_path / "mine.jsonl")
    with pytest.raises(SourceError, match="a link leads out of the folder") as caught:
        read(folder, tmp_path)
    assert str(caught.value.where).endswith(SAMPLES)


def test_so_is_one_to_the_name_of_a_model(folder: Path, tmp_path: Path) -> None:
    (folder / SAMPLES).write_text(json.dumps(ROW) + "\n")
    (tmp_path / "mine.json").write_text('{"model_name": "secret"}')
    (folder / "results_2025-01-01T00-00-00.json").symlink_to(tmp_path / "mine.json")
    with pytest.raises(SourceError, match="a link leads out of the folder"):
        read(folder, tmp_path)


def test_links_within_the_folder_and_those_of_a_hubs_cache_are_read(tmp_path: Path) -> None:
    cache = tmp_path / "datasets--a--b"
    folder, blobs = cache / "snapshots/0a1b", cache / "blobs"
    (folder / "deep").mkdir(parents=True)
    blobs.mkdir()
    (blobs / "sum").write_text(json.dumps(ROW) + "\n")
    (folder / "deep" / SAMPLES).symlink_to("../../../blobs/sum")
    assert read(folder, tmp_path) == 1
    (folder / "again").mkdir()
    (folder / "again" / SAMPLES).symlink_to(f"../deep/{SAMPLES}")
    assert read(folder / "deep", tmp_path / "deep") == 1
    assert read(folder, tmp_path / "again") == 2


def test_a_pipe_is_not_waited_for(folder: Path, tmp_path: Path) -> None:
    (folder / SAMPLES).write_text(json.dumps(ROW) + "\n")
    os.mkfifo(folder / "results_2025-01-01T00-00-00.json")
    with pytest.raises(SourceError, match="no regular file"):
        read(folder, tmp_path)


def test_memory_that_is_not_there_is_said(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(path: Path, kind: str) -> None:
        raise MemoryError

    (folder / SAMPLES).write_text(json.dumps(ROW) + "\n")
    monkeypatch.setattr("routeyard.pipelines.ingest.importers.harnesses.files.rows", short)
    with pytest.raises(SourceError, match="more memory than there is"):
        read(folder, tmp_path)


def test_a_parquet_footer_is_read_after_the_file_was_in_the_limited_process(
    folder: Path, tmp_path: Path
) -> None:
    # The footer alone is sound, and lacks the columns of models: what it says would be the error.
    columns = {name: ["a" * 999] for name in ("key", "dataset", "prompt", "golden_answer")}
    path = folder / "test-00000.parquet"
    pq.write_table(pa.table(columns), path, compression="none")
    pages = path.read_bytes()
    path.write_bytes(pages[:4] + b"\xff" * 900 + pages[904:])
    with pytest.raises(SourceError, match=r"test-00000.parquet cannot be read"):
        run_import(IMPORTERS.get("sprout"), folder, tmp_path / "sprout")
