"""Whole builds from recorded answers: identical twice, missing stays missing, clear refusals."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
import yaml

from routeyard.flows.build import run_build
from routeyard.flows.label_audits import built
from routeyard.pipelines.common.errors import (
    GateFailed,
    RecipeError,
    RecordedError,
    RouteyardError,
    SourceError,
    VersionExists,
)
from tests.support.small_recorded import RECIPE, write


def build(recipe: Path, yard: Path, until: str = "release") -> dict:
    return run_build(str(recipe), str(yard), jobs=1, until=until)


def digests(release: Path) -> dict[str, str]:
    return {
        path.relative_to(release).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(release.rglob("*"))
        if path.is_file() and path.suffix not in (".duckdb", ".sha256")
    }


def test_two_builds_in_two_places_are_byte_identical(small_built: Path, tmp_path: Path) -> None:
    build(write(tmp_path / "far/away"), tmp_path / "yard")
    releases = [folder / "yard/releases/small/1.0.0" for folder in (small_built, tmp_path)]
    first, second = map(digests, releases)
    assert first == second
    assert {"manifest.json", "README.md", "data/labels.parquet"} <= set(first)
    contents = [json.loads((r / "manifest.json").read_text())["database"] for r in releases]
    assert contents[0] == contents[1]


def test_missing_answers_are_missing_not_wrong(small_built: Path) -> None:
    release = small_built / "yard/releases/small/1.0.0"
    with duckdb.connect(str(release / "small.duckdb"), read_only=True) as connection:
        rows = connection.execute(
            "SELECT model_id, count(score), avg(score) FROM labels GROUP BY 1 ORDER BY 1"
        ).fetchall()
    assert rows == [("careful", 12, 1.0), ("hasty", 11, pytest.approx(5 / 11))]


def test_the_same_again_is_unchanged_and_other_content_needs_a_version(small: Path) -> None:
    folder, yard = small.parent, small.parent / "yard"
    assert build(small, yard)["release"]["status"] == "unchanged"
    before = digests(yard / "releases/small/1.0.0")
    lines = (folder / "answers.jsonl").read_text().splitlines()
    (folder / "answers.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(VersionExists) as caught:
        build(small, yard)
    assert caught.value.exit_code == 2
    assert "version:" in str(caught.value)
    assert digests(yard / "releases/small/1.0.0") == before


def test_rules_of_a_build_remove_what_is_elsewhere_and_add_their_splits(tmp_path: Path) -> None:
    # The other dataset has no ids or references: only its questions are read.
    (tmp_path / "theirs.csv").write_text("prompt\nwhat IS 3 + 4?\nWho was first?\n")
    theirs = {"name": "theirs", "path": "theirs.csv", "fields": {"question": "prompt"}}
    rules = [{"rule": "contamination", "action": "remove"}, APART]
    recipe = write(tmp_path, compared_with=[theirs], curate=rules, sources=[BY_SIZE])
    release = Path(build(recipe, tmp_path / "yard")["release"]["path"])
    with duckdb.connect(str(release / "small.duckdb"), read_only=True) as connection:
        gone = connection.execute("SELECT reason, detail FROM removals").fetchall()
        left = connection.execute("SELECT count(*), count(*) FILTER (question LIKE '%3 + 4%') "
                                  "FROM queries").fetchone()  # fmt: skip
        tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
    assert gone == [("contaminated_exact", "same text in 'theirs'")]
    assert left == (11, 0)
    assert "external" not in tables
    # The split of the recipe is beside that of the rule.
    schemes = pq.read_table(release / "data" / "splits.parquet")["scheme"].unique().to_pylist()
    assert sorted(schemes) == ["dense", "ood:adding"]


#: Tasks by the size of the numbers, and a rule that holds one of them out.
BY_SIZE = {
    **RECIPE["sources"][0],
    "fields": {
        **RECIPE["sources"][0]["fields"],
        "task": "{{ 'small' if id | int < 4 else 'large' }}",
    },
}
APART = {"rule": "out_of_distribution", "groups": {"adding": ["small"]}}


def test_compared_datasets_without_the_rule_are_refused(tmp_path: Path) -> None:
    theirs = {"name": "theirs", "path": "theirs.csv", "fields": {"question": "prompt"}}
    with pytest.raises(RecipeError, match="contamination"):
        build(write(tmp_path, compared_with=[theirs]), tmp_path / "yard")


def test_the_default_scheme_stays_when_only_a_rule_makes_schemes(tmp_path: Path) -> None:
    recipe = write(tmp_path, curate=[APART], sources=[BY_SIZE])
    written = yaml.safe_load(recipe.read_text())
    del written["split"]
    recipe.write_text(yaml.safe_dump(written))
    build(recipe, tmp_path / "yard", "curate")
    done = built("small", tmp_path / "yard").folders["curate"]
    schemes = pq.read_table(done / "splits.parquet")["scheme"].unique().to_pylist()
    assert sorted(schemes) == ["dense", "ood:adding"]


def test_two_splits_of_one_name_are_refused(tmp_path: Path) -> None:
    rule = {"rule": "dense_sparse", "validation": 1, "test": 1, "slice_share": 0.5}
    with pytest.raises(RecipeError, match="already made the split scheme 'dense'"):
        build(write(tmp_path, curate=[rule]), tmp_path / "yard")


def test_a_gate_that_is_not_waived_stops_the_release(small: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "yard/releases")
    recipe = write(tmp_path, release={})
    with pytest.raises(GateFailed, match="metering audit stops") as caught:
        build(recipe, tmp_path / "yard")
    assert caught.value.exit_code == 3
    assert "gate: metering" in str(caught.value)
    assert not (tmp_path / "yard/releases/small").exists()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_bad_input_is_refused_and_the_workspace_stays_usable(small: Path) -> None:
    folder, yard = small.parent, small.parent / "yard"
    for file, added, kind, says in (
        ("answers.jsonl", None, SourceError, "there is no file"),
        ("questions.jsonl", "{", SourceError, "line 13 is not JSON"),
        ("answers.jsonl", '{"id":"1","model":"new","output":"3"}\n', RecordedError,
         "not in the pool"),
        ("answers.jsonl", '{"id":"1","model":"hasty","output":"3"}\n', RecordedError,
         "what another row has answered"),
    ):  # fmt: skip
        whole = (folder / file).read_text()
        if added is None:
            (folder / file).unlink()
        else:
            (folder / file).write_text(whole + added)
        with pytest.raises(kind, match=says) as caught:
            build(small, yard)
        assert caught.value.exit_code == 2
        assert caught.value.where
        (folder / file).write_text(whole)
    assert build(small, yard)["release"]["status"] == "unchanged"


def test_a_truncated_parquet_file_is_named(tmp_path: Path) -> None:
    recipe = write(tmp_path)
    text = recipe.read_text().replace("questions.jsonl", "questions.parquet")
    recipe.write_text(text)
    import pyarrow.json as pj

    pq.write_table(pj.read_json(tmp_path / "questions.jsonl"), tmp_path / "questions.parquet")
    whole = (tmp_path / "questions.parquet").read_bytes()
    (tmp_path / "questions.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=r"questions\.parquet cannot be read"):
        build(recipe, tmp_path / "yard")


def test_a_full_disk_during_release_exits_1_and_leaves_no_half_release(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A fault that cannot be had for real without a file system of our own.
    import routeyard.pipelines.release.build as release_build

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    shutil.rmtree(tmp_path / "yard/releases")
    with monkeypatch.context() as patch:
        patch.setattr(release_build, "write_database", full)
        with pytest.raises(RouteyardError) as caught:
            build(small, tmp_path / "yard")
    assert caught.value.exit_code == 1
    left = list((tmp_path / "yard/releases").rglob("*.parquet"))
    assert left == []
    assert build(small, tmp_path / "yard")["release"]["status"] == "created"
