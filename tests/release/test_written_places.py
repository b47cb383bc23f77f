"""No command writes into a release: every place that one may write to refuses it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from routeyard.flows.cli import run
from routeyard.flows.cli.tree import command_of, commands, function_of
from routeyard.flows.ledgers import open_ledger
from routeyard.pipelines.common.errors import BadInput

#: Paths that are only read, by their names in any command.
READ = {
    "release", "place", "places", "results", "predictions", "embeddings", "also", "join", "test_on",
    "prices", "picks", "path", "workspace_or_release", "target", "key", "benchmark", "source",
    "take", "file", "beside", "reworded", "pool",
    "logs", "steps", "add", "images", "checks",
}  # fmt: skip
#: Workspaces that are only read, where a ledger is not opened (`open_ledger` refuses it).
READS = {"plan", "status", "cost ledger", "doctor", "fingerprint", "relabel", "audit"}
#: Refused where something is written, since the default may lie in a release that is read.
LATER = {("study", "out")}


def written() -> list[tuple[str, str]]:
    """(command, parameter) of every path that is written; caches are asked for later."""
    found = []
    for name in commands():
        said = inspect.signature(function_of(name), eval_str=True).parameters
        paths = [key for key, one in said.items() if "Path" in str(one.annotation)]
        found += [
            (name, key)
            for key in paths
            if key not in READ | {"cache"} and (key != "workspace" or name not in READS)
            if (name, key) not in LATER
        ]
    return found


def refused(one: Any, context: Any, place: Path) -> bool:
    try:
        one.process_value(context, str(place))
    except BadInput as error:
        return "inside a release, whose seal a new file would break" in error.what
    return False


def test_every_path_that_is_written_refuses_a_release(release: Path, tmp_path: Path) -> None:
    places = written()
    assert {("query", "out"), ("build", "workspace"), ("init", "recipe")} <= set(places)
    open_to = []
    for name, key in places:
        command = command_of(name)
        (one,) = [one for one in command.params if one.name == key]
        context = command.context_class(command)
        inside = (release, release / "data", release / "new" / "deeper")
        if not all(refused(one, context, place) for place in inside):
            open_to.append((name, key))
        assert one.process_value(context, str(tmp_path / "beside")) == tmp_path / "beside"
    assert not open_to


@pytest.mark.extensions
def test_another_release_than_the_one_that_is_read_is_as_safe(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = write(root=tmp_path / "one").path, write(root=tmp_path / "other").path
    before = sorted(other.rglob("*"))
    for words in (
        ["recipe", "schema", "--out", f"{other}/schema.json"],
        ["health", str(one), "--out", f"{other}/health"],
        ["site", str(one), "--out", f"{other}/site"],
        ["study", "dominance", str(one), "--out", f"{other}/study"],
        ["init", f"{other}/mine.yaml", "--from", str(one)],
        ["evaluate", str(one), "--out", str(tmp_path / "e"), "--embed", "--cache", str(other)],
    ):
        assert run(words) == 2, words
        said = capsys.readouterr().err
        assert "inside a release, whose seal a new file would break" in said, words
    with pytest.raises(BadInput, match="inside a release"), open_ledger(other):
        pass
    assert sorted(other.rglob("*")) == before
