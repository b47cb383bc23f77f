"""Wrong inputs of a command line: one style of errors, each with a next step."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from routeyard.flows.cli import run
from tests.support import small_release

sound = small_release.sound

#: Command line → words of the message. `nowhere` is not there, `empty` is a folder without files,
#: `text.csv` has questions, `bad.yaml` a wrong key, `mine.py` a
#: router, `broken.json` half an object, `release` a release.
WRONG = {
    # Names of commands and options
    "biuld demo": "did you mean 'build'",
    "recipe shecma": "recipe schema",
    "cost": "needs a command",
    "build": "missing argument 'recipe'",
    "build demo --jbos 2": "did you mean '--jobs'",
    "build demo --jobs two": "invalid value for '--jobs'",
    "build demo --jobs 0": "invalid value for '--jobs'",
    "build demo --jobs": "requires an argument",
    "build demo demo": "unexpected extra argument",
    "evaluate release": "missing option '--out'",
    "evaluate release --out o --resamples 5": "invalid value for '--resamples'",
    "evaluate release --out o --seeds none": "at least one fit",
    "evaluate release --out o --seeds 1,1": "at least one fit",
    "evaluate release --out o --pair one": "no pair of models",
    "site --serve --port 99999": "invalid value for '--port'",
    "audit": "missing argument 'path'",
    "build demo --real": "belong to --rehearse",
    "build demo --rehearse --scale 0.1": "a rehearsal takes none",
    "sources --check": "no source is named",
    "site release": "no folder is given",
    "diff release": "no second release is given",
    "diff release release --changelog": "--changelog takes one folder",
    "query release --json": "no SQL is given",
    "export preferences release o.csv --strong m0": "preferences take no --strong",
    "export embedllm release o --basis correctness": "embedllm takes no --basis",
    "import preferences nowhere.csv": "there is no file nowhere.csv",
    "zoo online release --alpha 0.5 --router cascade": "MESS+ alone",
    "review demo --limit 0 --csv q.csv": "invalid value for '--limit'",
    "health release": "missing option '--out'",
    "health release --out o --trade-off 2": "invalid value for '--trade-off'",
    "publish release": "missing option '--to'",
    # Recipes
    "build no_such": "there is no recipe",
    "build bad.yaml": "bad.yaml",
    "build empty": "recipe",
    "build demo --until lable": "did you mean 'label'",
    "build demo --scale 0": "scale",
    "plan no_such": "there is no recipe",
    "plan bad.yaml": "bad.yaml",
    "status no_such": "there is no recipe",
    "recipe check nowhere.yaml": "there is no recipe",
    "recipe check no_such --print": "there is no recipe",
    "demo --scale 0.5": "belongs to --real",
    "init mine.yaml": "no questions are given",
    "init mine.yaml --from nowhere.csv": "nowhere.csv",
    "init bad.yaml --from text.csv": "is not overwritten",
    "init mine.yaml --from empty": "empty",
    "init mine.yaml --from text.csv --question nothing": "there is no column",
    "init mine.yaml --from text.csv --scorer numerik": "did you mean 'numeric'",
    "try nowhere": "nothing to try",
    "try text.csv": "no answers of models were found",
    "try empty": "empty",
    # Releases
    "verify nowhere": "not a release",
    "verify empty": "a check of the release failed",
    "query nowhere": "not a release",
    "query release 'SELEC 1'": "SELEC",
    "query release no_such": "no_such",
    "diff nowhere release": "not a release",
    "export embedlm release o": "did you mean 'embedllm'",
    "sign release --key nowhere": "nowhere",
    "publish nowhere --to o": "not a release",
    "publish release --to nope://x": "no storage is known for nope",
    "publish release --to ftp://no-such-host.invalid/x": "no host of that name is known",
    "publish release --to ''": "the address to publish to is empty",
    "site nowhere --out o": "neither a release",
    "site release --out o --results nowhere": "no such folder of results",
    "audit nowhere": "nothing to audit",
    "audit text.csv": "text.csv",
    "audit text.csv --beside text.csv": "no release is named",
    "audit picks.csv --release release --beside text.csv": "no column 'query_id'",
    "audit picks.csv --release nowhere": "nowhere is no release",
    "try release": "this is a release, not answers of models",
    "query release 'DROP TABLE labels'": "a release is read-only",
    "yank release": "missing option '--reason'",
    "replay nowhere": "no file of this format",
    "import nothing empty": "nothing",
    "cost ledger -w nowhere": "this workspace has no ledger",
    "cost reprice release --prices nowhere.csv": "nowhere.csv",
    "route release ''": "the question is empty",
    "health release --out release": "inside a release",
    "verify release --signer nowhere.pub": "the public key cannot be read",
    "build demo --until nowhere": "there is no stage 'nowhere'",
    "build list.yaml": "a recipe is a mapping of keys",
    "health nowhere --out o": "nowhere",
    # Routers, scorers
    "evaluate nowhere --out o": "nowhere",
    "evaluate release --out o --router knm": "did you mean 'knn'",
    "evaluate release --out o --router-from mine.py:Mien": "did you mean 'Mine'",
    "evaluate release --out o --router-from nowhere.py:Mine": "cannot be imported",
    "evaluate release --out o --router-from mine": "does not name a class",
    "evaluate release --out o --router-from broken.py:Mine": "broken.py:1",
    "evaluate release --out o --predictions text.csv": "no column 'query_id'",
    "zoo tune release --routers knn --out o": "has no head",
    "evaluate release --out o --predictions nowhere.csv": "nowhere.csv",
    "evaluate release --out o --scheme dence": "dence",
    "evaluate release --out release/o": "inside a release",
    "evaluate empty --out o": "no table 'queries'",
    "certify nowhere --out o": "nowhere",
    "zoo knm": "did you mean 'knn'",
    "zoo run release --out o --encoders tfidf --routers kmean": "did you mean 'kmeans'",
    "zoo run release --out o --encoders tfid --routers knn": "did you mean 'tfidf'",
    "zoo run release --out o --runner ray": "is not one of 'threads', 'dask'",
    "zoo run release --out o --encoders tfidf --own no.csv": "no such predictions file",
    "zoo run release --out o --encoders tfidf --own no:Class": "cannot be imported",
    "zoo run release --out release/x --encoders tfidf": "inside a release",
    "score": "no answer to score",
    "score nowhere.jsonl": "cannot be read",
    "score broken.json": "line 1",
    "score --output 18 --reference 18 --scorer numerik": "did you mean 'numeric'",
    "sources gsm8": "did you mean 'gsm8k'",
    "leaderboard nowhere": "nowhere",
    "leaderboard": "expected results of evaluations",
    "leaderboard empty --labels release --out o": "there is no submission",
    "leaderboard empty --labels nowhere --out o": "nowhere",
    "leaderboard empty --labels release --add empty --out o": "--add needs --name",
    "leaderboard empty --labels release --add empty --name ../a --number 1": "expected one",
    "submit mine.py": "missing option '--to'",
    "submit mine.py --to empty": "the place has no benchmark",
    "submit mine.py --to empty --release release": "expected one class",
    "submit nowhere.py --to empty --release release": "there is no such file",
    "submit mine.py:Mine --to empty --release release": "no method 'scores'",
    "submit knm --to empty --release release": "does not name a class",
    "submit knn --to empty --release text.csv": "text.csv",
    "compare nowhere always:m0 always:m1": "there is no such release",
    "compare text.csv always:m0 always:m1": "a release is expected",
    "compare release nobody always:m1": "'nobody' is no router",
    "compare release": "no two members of the pool",
    "compare release nobody": "two routers are compared",
    "shadow text.csv": "missing option '--router'",
    "replay empty": "empty",
    "reproduce no_such": "there is no paper 'no_such'",
    "relabel nothing --workspace empty": "nothing",
    "relabel release": "no build of 'release'",
    "audit nowhere.csv --release release": "there is no such predictions file",
    "cost prices bad.yaml --out p.yaml": "bad.yaml",
    "submit best-generalist --to empty --release release --name ../a": "cannot name a folder",
    "export participants release release/o": "inside a release",
    "export participants release taken --scheme nope": "there is no split scheme 'nope'",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sound: Path) -> Path:
    made = tmp_path_factory.mktemp("wrong")
    (made / "empty").mkdir()
    rows = "".join(f"What is {n} + 1?,{n + 1}\n" for n in range(9))
    (made / "text.csv").write_text("question,answer\n" + rows)
    (made / "bad.yaml").write_text("name: bad\nversion: 1.0.0\nsuorces: []\n")
    (made / "mine.py").write_text("class Mine:\n    def fit(self, train): pass\n")
    (made / "broken.py").write_text("def :\n")
    (made / "list.yaml").write_text("- 1\n")
    (made / "picks.csv").write_text("query_id,model_id\nq1,a\n")
    (made / "broken.json").write_text('{"output": \n')
    (made / "release").symlink_to(sound)
    return made


#: First words of commands that extensions and papers bring.
EXTENSIONS = (
    "compare", "latency", "leaderboard", "replay", "reproduce", "shadow", "study", "submit",
    "zoo online", "zoo tune",
)  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(one, marks=[pytest.mark.extensions] if one.startswith(EXTENSIONS) else [])
        for one in WRONG
    ],
)
def test_a_wrong_input_says_what_is_wrong_and_what_to_do(
    words: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code = run(shlex.split(words))
    printed = capsys.readouterr()
    said = printed.err[printed.err.rfind("error: ") :]
    assert code in (1, 2, 3), printed.err
    assert said.startswith("error: "), printed
    assert WRONG[words] in said
    assert "\n  next:  " in said, said
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(("variable", "coloured"), [("FORCE_COLOR", True), ("NO_COLOR", False)])
def test_colours_are_forced_and_forbidden(variable: str, coloured: bool) -> None:
    environment = {"PATH": "/usr/bin:/bin", "FORCE_COLOR": "1" if coloured else "", variable: "1"}
    done = subprocess.run(
        [sys.executable, "-m", "routeyard", "biuld"],
        cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert ("\x1b[1;31merror\x1b[0m: there is no command" in done.stderr) == coloured
    assert "error" in done.stderr
