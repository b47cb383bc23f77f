"""Whole builds from recorded answers: identical twice, missing stays missing, clear refusals."""

from __future__ import annotations

import hashlib
import json
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


def build(recipe: Path, yard: Path) -> dict:
    return run_build(str(recipe), str(yard), jobs=1, until="release")


def digests(release: Path) -> dict[str, str]:
    return {
        path.relative_to(release).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(release.rglob("*"))
        if path.is_file() and path.suffix not in (".duckdb", ".sha256")
    }


def test_two_builds_in_two_places_are_byte_identical(tmp_path: Path) -> None:
    for name in ("here", "far/away"):
        build(write(tmp_path / name), tmp_path / name / "yard")
    releases = [tmp_path / n / "yard/releases/small/1.0.0" for n in ("here", "far/away")]
    first, second = map(digests, releases)
    assert first == second
    assert {"manifest.json", "README.md", "data/labels.parquet"} <= set(first)
    contents = [json.loads((r / "manifest.json").read_text())["database"] for r in releases]
    assert contents[0] == contents[1]


def test_missing_answers_are_missing_not_wrong(tmp_path: Path) -> None:
    release = Path(build(write(tmp_path), tmp_path / "yard")["release"]["path"])
    with duckdb.connect(str(release / "small.duckdb"), read_only=True) as connection:
        rows = connection.execute(
            "SELECT model_id, count(score), avg(score) FROM labels GROUP BY 1 ORDER BY 1"
        ).fetchall()
    assert rows == [("careful", 12, 1.0), ("hasty", 11, pytest.approx(5 / 11))]


def test_the_same_again_is_unchanged_and_other_content_needs_a_version(tmp_path: Path) -> None:
    yard = tmp_path / "yard"
    recipe = write(tmp_path)
    assert build(recipe, yard)["release"]["status"] == "created"
    assert build(recipe, yard)["release"]["status"] == "unchanged"
    before = digests(yard / "releases/small/1.0.0")
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    (tmp_path / "answers.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(VersionExists) as caught:
        build(recipe, yard)
    assert caught.value.exit_code == 2
    assert "version:" in str(caught.value)
    assert digests(yard / "releases/small/1.0.0") == before


def test_questions_that_stand_in_other_datasets_leave_with_the_dataset_named(
    tmp_path: Path,
) -> None:
    # The other dataset has no ids or references: only its questions are read.
    (tmp_path / "theirs.csv").write_text("prompt\nwhat IS 3 + 4?\nWho was first?\n")
    theirs = {"name": "theirs", "path": "theirs.csv", "fields": {"question": "prompt"}}
    rule = {"rule": "contamination", "action": "remove"}
    recipe = write(tmp_path, compared_with=[theirs], curate=[rule])
    release = Path(build(recipe, tmp_path / "yard")["release"]["path"])
    with duckdb.connect(str(release / "small.duckdb"), read_only=True) as connection:
        gone = connection.execute("SELECT reason, detail FROM removals").fetchall()
        left = connection.execute("SELECT count(*), count(*) FILTER (question LIKE '%3 + 4%') "
                                  "FROM queries").fetchone()  # fmt: skip
        tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
    assert gone == [("contaminated_exact", "same text in 'theirs'")]
    assert left == (11, 0)
    assert "external" not in tables


def test_compared_datasets_without_the_rule_are_refused(tmp_path: Path) -> None:
    theirs = {"name": "theirs", "path": "theirs.csv", "fields": {"question": "prompt"}}
    with pytest.raises(RecipeError, match="contamination"):
        build(write(tmp_path, compared_with=[theirs]), tmp_path / "yard")


def test_the_recipe_split_stands_beside_those_of_rules(tmp_path: Path) -> None:
    rule = {"rule": "out_of_distribution", "groups": {"adding": ["small"]}}
    source = RECIPE["sources"][0]
    fields = {**source["fields"], "task": "{{ 'small' if id | int < 4 else 'large' }}"}
    recipe = write(tmp_path, curate=[rule], sources=[{**source, "fields": fields}])
    release = Path(build(recipe, tmp_path / "yard")["release"]["path"])
    schemes = pq.read_table(release / "data" / "splits.parquet")["scheme"].unique().to_pylist()
    assert sorted(schemes) == ["dense", "ood:adding"]


def test_the_default_scheme_stays_when_only_a_rule_makes_schemes(tmp_path: Path) -> None:
    rule = {"rule": "out_of_distribution", "groups": {"adding": ["small"]}}
    source = RECIPE["sources"][0]
    fields = {**source["fields"], "task": "{{ 'small' if id | int < 4 else 'large' }}"}
    recipe = write(tmp_path, curate=[rule], sources=[{**source, "fields": fields}])
    written = yaml.safe_load(recipe.read_text())
    del written["split"]
    recipe.write_text(yaml.safe_dump(written))
    done = build_until_curate(recipe, tmp_path / "yard")
    schemes = pq.read_table(done / "splits.parquet")["scheme"].unique().to_pylist()
    assert sorted(schemes) == ["dense", "ood:adding"]


def build_until_curate(recipe: Path, yard: Path) -> Path:
    run_build(str(recipe), str(yard), jobs=1, until="curate")
    return built("small", yard).folders["curate"]


def test_two_splits_of_one_name_are_refused(tmp_path: Path) -> None:
    rule = {"rule": "dense_sparse", "validation": 1, "test": 1, "slice_share": 0.5}
    with pytest.raises(RecipeError, match="already made the split scheme 'dense'"):
        build(write(tmp_path, curate=[rule]), tmp_path / "yard")


def test_a_gate_that_is_not_waived_stops_the_release(tmp_path: Path) -> None:
    recipe = write(tmp_path, release={})
    with pytest.raises(GateFailed, match="metering audit stops") as caught:
        build(recipe, tmp_path / "yard")
    assert caught.value.exit_code == 3
    assert "gate: metering" in str(caught.value)
    assert not (tmp_path / "yard/releases/small").exists()


@pytest.mark.parametrize(
    ("damage", "kind", "says"),
    [
        (lambda f: (f / "answers.jsonl").unlink(), SourceError, "there is no file"),
        (lambda f: (f / "questions.jsonl").write_text("{"), SourceError, "line 1 is not JSON"),
        (
            lambda f: (
                (f / "answers.jsonl").open("a").write('{"id":"1","model":"new","output":"3"}\n')
            ),
            RecordedError,
            "not in the pool",
        ),
        (
            lambda f: (
                (f / "answers.jsonl").open("a").write('{"id":"1","model":"hasty","output":"3"}\n')
            ),
            RecordedError,
            "what another row has answered",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_bad_input_is_refused_and_the_workspace_stays_usable(
    tmp_path: Path, damage, kind: type[RouteyardError], says: str
) -> None:
    recipe = write(tmp_path)
    damage(tmp_path)
    with pytest.raises(kind, match=says) as caught:
        build(recipe, tmp_path / "yard")
    assert caught.value.exit_code == 2
    assert caught.value.where
    write(tmp_path)
    assert build(recipe, tmp_path / "yard")["release"]["status"] == "created"


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A fault that cannot be had for real without a file system of our own.
    import routeyard.pipelines.release.build as release_build

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    recipe = write(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(release_build, "write_database", full)
        with pytest.raises(RouteyardError) as caught:
            build(recipe, tmp_path / "yard")
    assert caught.value.exit_code == 1
    left = list((tmp_path / "yard/releases").rglob("*.parquet"))
    assert left == []
    assert build(recipe, tmp_path / "yard")["release"]["status"] == "created"
