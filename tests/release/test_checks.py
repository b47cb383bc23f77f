"""Each check of `verify` on a sound release whose manifest says something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.release.manifest import Finding, first_line
from routeyard.pipelines.verify import files as files_room
from routeyard.pipelines.verify.database import _first_difference, card_facts, check_card
from routeyard.pipelines.verify.evidence import Evidence
from routeyard.pipelines.verify.files import check_files, check_seal
from routeyard.schemas.release import Manifest
from tests.support.sound_release import LABELS, evidence_of, other, places, tables_of


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"recipe__name": "b"}, [("manifest", "manifest.json")]),
        ({"recipe__version": "2.0.0"}, [("manifest", "manifest.json")]),
        ({"content": "b"}, [("manifest", "manifest.json")]),
        ({"content_without_times": "b"}, [("manifest", "manifest.json")]),
        ({"content": "b", "content_without_times": "b"}, [("manifest", "manifest.json")]),
        ({"tables__labels__kind": "add_on"}, []),
        ({"tables__labels__kind": "other"}, [("manifest", LABELS)]),
        ({"tables__labels__file": "data/splits.parquet"}, [("path", "data/splits.parquet")]),
        ({"database__file": "other.duckdb"}, [("path", "other.duckdb")]),
        ({"database__file": "README.md"}, [("path", "README.md")] * 3),  # twice, and no database
        ({"database__file": "readme.md"}, [("path", "readme.md")] * 2),
    ],
)
def test_the_manifest_against_itself(manifest, changes, found):
    assert places(check_seal(other(manifest, **changes))) == found


def test_a_table_without_a_checksum_and_a_digest_of_something_else(manifest):
    entries = {name: entry for name, entry in manifest.files.items() if name != LABELS}
    less = manifest.model_copy(update={"files": entries})
    assert places(check_seal(less.sealed())) == [("manifest", LABELS)]
    assert places(check_seal(less)) == [("manifest", "manifest.json"), ("manifest", LABELS)]


def files(sound: Path, manifest: Manifest) -> tuple[list[str], set[str]]:
    evidence = Evidence(sound, manifest, render)
    found = [f"{one.check} {one.where} {one.says}" for one in check_files(evidence)]
    return found, evidence.readable


def test_sound_files_are_all_readable(sound, manifest):
    assert files(sound, manifest) == ([], set(manifest.files))


def test_a_file_of_another_size_is_named_and_read_unless_it_is_far_too_large(
    sound, manifest, monkeypatch
):
    size = manifest.files[LABELS].size
    told = other(manifest, files__labels_file__size=size + 1)
    found, readable = files(sound, told)
    says = f"has {size:,} bytes, the manifest says {size + 1:,}"
    assert (found, LABELS in readable) == ([f"file {LABELS} {says}"], True)
    monkeypatch.setattr(files_room, "_ANYWAY", 1)
    for sealed, read in (((size - 1) // 2, True), ((size - 1) // 2 - 1, False)):
        told = other(manifest, files__labels_file__size=sealed)
        assert (LABELS in files(sound, told)[1]) is read


def test_a_file_of_another_checksum_is_named_and_read(sound, manifest):
    told = other(manifest, files__labels_file__sha256="0" * 64)
    found, readable = files(sound, told)
    assert f"file {LABELS} has another SHA-256 than the manifest says" in found
    assert LABELS in readable


def test_a_missing_table_is_named_unless_it_may_be_left_out(sound, manifest):
    entry = manifest.tables["labels"]
    for kind, found in (("core", ["file data/x/b.parquet is missing"]), ("add_on", [])):
        table = entry.model_copy(update={"file": "data/x/b.parquet", "kind": kind})
        told = manifest.model_copy(
            update={
                "files": manifest.files | {"data/x/b.parquet": manifest.files[LABELS]},
                "tables": manifest.tables | {"b": table},
            }
        )
        assert files(sound, told) == (found, set(manifest.files))


def test_a_file_that_the_manifest_does_not_list_is_named(sound, manifest):
    listed = {name: one for name, one in manifest.files.items() if not name.startswith("plots/")}
    plots = sorted({*manifest.files} - {*listed})
    told = manifest.model_copy(update={"files": listed})
    assert files(sound, told)[0] == [
        "file plots is a folder that holds no file of the manifest",
        *(f"file {name} is in the release but not in the manifest" for name in plots),
    ]


def test_the_card_against_other_facts(sound, manifest):
    tables = tables_of(sound, manifest)

    def found(told: Manifest, given: Any = None, card: Any = render) -> list[str]:
        given = tables if given is None else given
        return [str(one)[:60] for one in check_card(evidence_of(sound, told, given, card))]

    assert found(manifest) == []
    assert found(other(manifest, fingerprint="b"))[0].startswith("fingerprint: manifest.json: ")
    less = {name: table for name, table in tables.items() if name != "models"}
    assert found(other(manifest, fingerprint="b"), less) == []  # a core table is not sound

    def fails(*_: Any) -> str:
        raise KeyError("facts")

    (says,) = found(manifest, card=fails)
    assert says.startswith("card: README.md: cannot be computed again: KeyError")


def test_the_facts_of_a_card(manifest):
    facts = card_facts(manifest)
    assert facts["name"] == "tiny"
    assert all(name.startswith("data/") for name in facts["files"])
    assert LABELS in facts["files"]
    assert facts["further"] == sorted(
        name for name in manifest.files if name[:5] != "data/" and name != "README.md"
    )


def test_the_first_line_that_differs_is_named():
    assert _first_difference("a\nb", "a\nc") == "line 2 says 'b', the data say 'c'"
    assert _first_difference("a", "a\nc") == "differs in length from what the data give"


def test_a_finding_is_one_printable_line():
    assert str(Finding("path", "a\x1b[1m\n", "is\tb")) == "path: a�[1m�: is�b"
    assert len(str(Finding("path", "a" * 3000, ""))) == 2000
    assert first_line(ValueError("a\nb")) == "a"
    assert first_line(ValueError()) == "ValueError"
    assert len(first_line(ValueError("a" * 600))) == 500
