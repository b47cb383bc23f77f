"""Submissions: what participants get, what a bundle holds, what a board makes of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from routeyard.datacards.card import render
from routeyard.datacards.files import render as render_files
from routeyard.extensions.leaderboard.bundle import PREDICTIONS, SUBMISSION, submissions_of, take
from routeyard.extensions.leaderboard.submit import board, scored_submissions, spec_of, submit
from routeyard.flows.evaluation.released import read_release
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.files import sha256
from routeyard.pipelines.common.matrix import core_of
from routeyard.pipelines.release.build import write_release
from routeyard.pipelines.release.exporters import EXPORTERS
from routeyard.pipelines.release.exporters.router_tables import export
from routeyard.pipelines.release.manifest import read_manifest
from routeyard.pipelines.release.reader import open_release
from routeyard.schemas import CONTRACTS
from tests.support import small_release

ROOT = Path(__file__).parents[3]
ROUTER = '''
import numpy as np

class Mine:
    """The model that was right most often on the question's task."""

    name = "mine"

    def fit(self, train):
        self.all = np.nanmean(train.labels, axis=0)
        tasks = np.asarray(train.queries.tasks)
        self.of = {t: np.nanmean(train.labels[tasks == t], axis=0) for t in set(tasks)}

    def scores(self, queries):
        return [self.of.get(task, self.all) for task in queries.tasks]
'''


def wrong(model: str, number: int) -> bool:
    """Where a model that the tiny release has right is wrong here."""
    return (model == "m0" and number % 5 == 4) or (model == "m1" and number % 7 == 3)


def tables() -> dict[str, pa.Table]:
    """240 questions: m0 is mostly right, m1 mostly on even ones, m2 never."""
    found = dict(small_release.tiny_tables(240))
    for name in ("labels", "verdicts"):
        rows = found[name].to_pylist()
        for row in rows:
            if wrong(row["model_id"], int(row["query_id"][1:], 16)):
                row["score"] = 0.0
                if name == "labels":
                    row["correct"] = False
                else:
                    row["outcome"] = "incorrect"
        found[name] = CONTRACTS[name].from_rows(rows)
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(place with a benchmark and one submission, the whole release)."""
    root = tmp_path_factory.mktemp("board")
    release = write_release(
        tables(),
        recipe=small_release.RECIPE,
        root=root / "releases",
        render_card=render,
        render_files=render_files,
        sources=small_release.SOURCES,
    ).path
    with open_release(release) as opened:
        export(EXPORTERS.get("participants"), opened, root / "place" / "benchmark", {})
    (root / "mine.py").write_text(ROUTER)
    done = submit(str(root / "mine.py"), str(root / "place"), cache=root / "cache")
    assert done.where is not None
    return root / "place", release


@pytest.fixture
def own(place: tuple[Path, Path], tmp_path: Path) -> Path:
    """A copy of the place."""
    return Path(shutil.copytree(place[0], tmp_path / "place"))


def bundle_of(place: Path) -> Path:
    return next((place / "submissions").glob("*/*"))


def another(place: Path, scores: np.ndarray | None = None, **changes: Any) -> Path:
    """A second bundle of another entry: the first one's with other scores or description."""
    first = bundle_of(place)
    target = place / "submissions" / "other" / "1"
    shutil.copytree(first, target)
    table = pq.read_table(target / PREDICTIONS)
    if scores is not None:
        columns = {n: pa.array(scores[:, k]) for k, n in enumerate(table.column_names[1:])}
        new = pa.table({"query_id": table.column("query_id"), **columns})
        pq.write_table(new, target / PREDICTIONS)
    about = json.loads((target / SUBMISSION).read_text())
    about["files"][PREDICTIONS] = sha256(target / PREDICTIONS)
    (target / SUBMISSION).write_text(json.dumps({**about, **changes}))
    return target


def test_participants_get_no_answer_to_a_test_question(place: tuple[Path, Path]) -> None:
    folder, release = place[0] / "benchmark" / "data", place[1]
    with open_release(release) as opened:
        splits = opened.sql("SELECT query_id FROM splits WHERE split = 'test'")
        rest = opened.sql("SELECT count(*) FROM labels JOIN splits USING (query_id) "
                          "WHERE split = 'train'").column(0)[0].as_py()  # fmt: skip
    tests = set(splits.column(0).to_pylist())
    assert tests
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        if path.stem in ("queries", "splits"):
            continue
        assert "query_id" not in table.column_names or not tests & set(
            table.column("query_id").to_pylist()
        ), path.name
    asked = {row["query_id"]: row for row in pq.read_table(folder / "queries.parquet").to_pylist()}
    assert tests < set(asked)
    assert all(asked[one]["references"] == [] for one in tests)
    assert all(row["references"] for one, row in asked.items() if one not in tests)
    assert pq.read_table(folder / "labels.parquet").num_rows == rest
    assert not (folder / "responses.parquet").exists()


def test_the_board_ranks_shows_doubts_and_keeps_history(
    own: Path, place: tuple[Path, Path]
) -> None:
    table = pq.read_table(bundle_of(own) / PREDICTIONS)
    n = table.num_rows
    rng = np.random.default_rng(1)
    another(own, rng.random((n, 3)))
    shutil.copytree(own / "submissions" / "other" / "1", own / "submissions" / "mine" / "0")
    told, page = board(str(own), place[1], own / "page", resamples=200)
    assert [row["entry"] for row in told["ranking"]] == ["mine", "other"]
    first = told["ranking"][0]
    assert (first["best_place"], first["worst_place"]) == (1, 1)
    asked = [("m1" if q % 2 == 0 else "m0", q) for q in range(0, 240, 3)]
    assert first["accuracy"] == np.mean([not wrong(*one) for one in asked])
    assert first["submissions"] == 2
    assert first["p50_s"] is not None
    assert first["usd_per_1000"] is not None
    history = [(row["entry"], row["number"], row["verdict"]) for row in told["history"]]
    assert history[0][:2] == ("mine", "0")
    # The later submission of an entry is compared with its earlier one.
    assert any(one["name"] == "changes" for one in told["history"][1]["found"])
    assert not any(one["name"] == "changes" for one in told["history"][0]["found"])
    text = page.read_text()
    assert "mine leads the leaderboard of tiny 1.0.0: it answers " in text
    assert f"Always asking {told['best_single']}, best on the train questions: " in text
    assert not re.search(r"""(?:src|href)=["']https?:""", text)
    assert {row["name"] for row in told["references"]} >= {"single:m0", "oracle"}


def test_choices_that_follow_the_answers_are_shown_and_not_ranked(
    own: Path, place: tuple[Path, Path]
) -> None:
    with open_release(place[1]) as opened:
        matrix = opened.matrix("score").to_pandas()
        cost = opened.matrix("cost_usd").to_pandas()
    table = pq.read_table(bundle_of(own) / PREDICTIONS)
    ids, models = table.column("query_id").to_pylist(), table.column_names[1:]
    # The cheapest right model, everywhere.
    another(
        own,
        matrix.loc[ids, models].fillna(0).to_numpy() - cost.loc[ids, models].fillna(1).to_numpy(),
    )
    told, page = board(str(own), place[1], own / "page", resamples=200)
    assert [row["entry"] for row in told["ranking"]] == ["mine"]
    (failed,) = [row for row in told["history"] if row["entry"] == "other"]
    assert failed["verdict"] == "failed"
    assert "label leak" in {one["name"] for one in failed["found"] if one["level"] == "fail"}
    assert "choices follow the answers" in page.read_text()


def _extra(folder: Path) -> str:
    about = json.loads((folder / SUBMISSION).read_text())
    (folder / SUBMISSION).write_text(json.dumps({**about, "more": 1}))
    return "more"


def _link(folder: Path) -> str:
    (folder / PREDICTIONS).unlink()
    (folder / PREDICTIONS).symlink_to("/etc/passwd")
    return "no regular file"


def _swapped(folder: Path) -> str:
    (folder / PREDICTIONS).write_bytes((folder / PREDICTIONS).read_bytes() + b"x")
    return "is not the file"


def _pickled(folder: Path) -> str:
    import pickle

    (folder / PREDICTIONS).write_bytes(pickle.dumps({"a": 1}))
    about = json.loads((folder / SUBMISSION).read_text())
    about["files"][PREDICTIONS] = sha256(folder / PREDICTIONS)
    (folder / SUBMISSION).write_text(json.dumps(about))
    return "predictions.parquet cannot be read"


def _missing(folder: Path) -> str:
    table = pq.read_table(folder / PREDICTIONS).slice(1)
    pq.write_table(table, folder / PREDICTIONS)
    about = json.loads((folder / SUBMISSION).read_text())
    about["files"][PREDICTIONS] = sha256(folder / PREDICTIONS)
    (folder / SUBMISSION).write_text(json.dumps(about))
    return "lacks 1 of the 80 questions"


def _other_release(folder: Path) -> str:
    about = json.loads((folder / SUBMISSION).read_text())
    about["benchmark"]["fingerprint"] = "0" * 64
    (folder / SUBMISSION).write_text(json.dumps(about))
    return "other data than tiny 1.0.0"


def _huge(folder: Path) -> str:
    (folder / SUBMISSION).write_text(" " * 1_000_001)
    return "larger than"


@pytest.mark.parametrize(
    "spoil",
    [_extra, _link, _swapped, _pickled, _missing, _other_release, _huge],
    ids=lambda one: one.__name__,
)
def test_one_bad_bundle_is_refused_and_the_others_stand(
    own: Path, place: tuple[Path, Path], spoil: Any
) -> None:
    why = spoil(another(own))
    core, manifest = core_of(read_release(place[1])), read_manifest(place[1])
    with submissions_of(str(own)) as found:
        scored = list(scored_submissions(found, core, "dense", manifest))
    verdicts = {one.entry: one for one in scored}
    assert verdicts["mine"].verdict in ("clean", "doubtful")
    assert verdicts["other"].verdict == "refused"
    assert why in str(verdicts["other"].refused)


def test_nothing_of_a_bundle_is_run(own: Path, place: tuple[Path, Path], tmp_path: Path) -> None:
    folder = bundle_of(own)
    for name in ("router.py", "conftest.py", "sitecustomize.py"):
        (folder / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    done = subprocess.run(
        [sys.executable, "-c", "from routeyard.extensions.leaderboard.bundle import read_bundle; "
         f"import pathlib; print(read_bundle(pathlib.Path({str(folder)!r}), 'a', '1').key)"],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "a/1", done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_place_can_be_an_address(own: Path, place: tuple[Path, Path]) -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    system.put(str(own), "/league", recursive=True)
    router = place[0].parent / "mine.py"
    done = submit(str(router), "memory://league", name="again", cache=own / "cache")
    assert str(done.where).startswith("memory://league/submissions/again/")
    with pytest.raises(BadInput, match="no benchmark"):
        submit(str(router), "memory://nowhere", cache=own / "cache")
    with submissions_of("memory://league") as found:
        assert [entry for entry, _, _ in found] == ["again", "mine"]


def test_who_an_entry_is_says_the_owner(own: Path) -> None:
    handed = own.parent / "handed"
    shutil.copytree(bundle_of(own), handed / "submissions" / "admin" / "9")
    where = take(handed, str(own), "team-a", "run-000001")
    assert where.endswith("submissions/team-a/run-000001")
    with pytest.raises(BadInput, match="already"):
        take(handed, str(own), "team-a", "run-000001")
    for name in ("../up", "a/b", "", ".hidden", "x" * 61):
        with pytest.raises(BadInput, match="cannot name a folder"):
            take(handed, str(own), name, "1")
    shutil.copytree(bundle_of(own), handed / "second")
    with pytest.raises(BadInput, match="expected one"):
        take(handed, str(own), "team-b", "1")


def test_a_file_with_one_router_needs_no_class(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(ROUTER)
    (tmp_path / "two.py").write_text(ROUTER + "\nclass Other(Mine):\n    name = 'other'\n")
    assert spec_of(str(tmp_path / "one.py")).name == "mine"
    with pytest.raises(BadInput, match="found 2"):
        spec_of(str(tmp_path / "two.py"))
    assert spec_of(f"{tmp_path / 'two.py'}:Other").name == "other"


def test_a_router_that_looks_at_the_whole_batch_is_told_apart(
    place: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "peeks.py").write_text(
        "import numpy as np\nclass Peeks:\n    name = 'peeks'\n    def fit(self, train): pass\n"
        "    def scores(self, queries):\n        n = len(queries)\n"
        "        return np.eye(3)[np.full(n, min(n, 3) - 1)]\n"
    )
    done = submit(
        str(tmp_path / "peeks.py"), str(tmp_path), release=place[1], cache=tmp_path / "cache"
    )
    assert done.about.times.moved == done.about.times.asked > 0
    assert done.about.labels_readable  # the whole release was given


WORKFLOWS = {
    path.name: yaml.safe_load(path.read_text())
    for path in sorted((ROOT / "extensions/leaderboard/ci").glob("*.yml"))
}


def test_the_job_that_runs_a_submission_has_no_secret_and_the_other_runs_nothing_of_it() -> None:
    untrusted, trusted = WORKFLOWS["submission.yml"], WORKFLOWS["score.yml"]
    text = (ROOT / "extensions/leaderboard/ci/submission.yml").read_text()
    assert "${{" not in text  # no secret, and nothing of an event in a script
    assert untrusted["permissions"] == {"contents": "read"}
    assert untrusted[True] == {"pull_request": {"paths": ["submissions/**"]}}
    (checkout,) = [
        s for s in untrusted["jobs"]["bundle"]["steps"] if "checkout" in s.get("uses", "")
    ]
    assert checkout["with"] == {"persist-credentials": False}
    (checkout,) = [s for s in trusted["jobs"]["score"]["steps"] if "checkout" in s.get("uses", "")]
    assert checkout["with"] == {"ref": "${{ github.event.repository.default_branch }}"}
    assert "pull_request_target" not in str(WORKFLOWS)
    for step in trusted["jobs"]["score"]["steps"]:
        assert "${{" not in step.get("run", ""), "what GitHub says of an event goes through env"
        assert "submit" not in step.get("run", "").replace("submissions", "")


def test_the_steps_of_both_jobs_run(
    place: tuple[Path, Path], as_a_user: tuple[Path, dict], tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(place[0] / "benchmark", repository / "benchmark")
    (repository / "submissions" / "mine").mkdir(parents=True)
    (repository / "submissions" / "mine" / "router.py").write_text(ROUTER)
    path = {key: as_a_user[1][key] for key in ("PATH", "PYTHONPATH")} | {"HOME": str(tmp_path)}

    def steps(workflow: str, job: str, where: Path, **env: str) -> None:
        for step in WORKFLOWS[workflow]["jobs"][job]["steps"]:
            if "run" in step and step["name"] != "Install":
                done = subprocess.run(
                    ["bash", "-e", "-c", step["run"]], cwd=where, env=path | env,
                    capture_output=True, text=True, check=False,
                )  # fmt: skip
                assert done.returncode == 0, (step["name"], done.stdout, done.stderr)

    steps("submission.yml", "bundle", repository)
    trusted, remote = tmp_path / "trusted", tmp_path / "remote.git"
    git = {"cwd": tmp_path, "check": True, "capture_output": True}
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], **git)
    subprocess.run(["git", "clone", "-q", str(remote), str(trusted)], **git)
    shutil.copytree(repository / "handover", trusted / "handover")
    steps("score.yml", "score", trusted, ENTRY="octocat", NUMBER="17", LABELS=str(place[1]))
    told = json.loads((trusted / "page" / "leaderboard.json").read_text())
    assert [row["entry"] for row in told["ranking"]] == ["octocat"]
    assert told["history"][0]["number"] == "run-000017"
    pushed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "HEAD"], cwd=remote, capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip
    assert "board/submissions/octocat/run-000017/submission.json" in pushed
    assert "page/index.html" in pushed
    assert "handover" not in pushed


def test_the_workflows_are_in_the_package(tmp_path: Path) -> None:
    from routeyard.extensions.leaderboard.commands import leaderboard_command as command

    command(workflow=tmp_path / "ci")
    assert {p.name for p in (tmp_path / "ci").iterdir()} == set(WORKFLOWS)
    assert files("routeyard.extensions.leaderboard").joinpath("ci/score.yml").is_file()
    with pytest.raises(BadInput, match="there already"):
        command(workflow=tmp_path / "ci")
