"""What a viewer of plots and metadata would run or fetch, sign by sign."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from routeyard.pipelines.verify import files as room
from routeyard.pipelines.verify.files import active

SHA = "0" * 64
MANIFEST: Any = SimpleNamespace(
    name="tiny", version="1.0.0", files={"data/a.parquet": SimpleNamespace(sha256=SHA)}
)
HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'


def says(folder: Path, name: str, content: str | bytes) -> list[str]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = list(active(path, f"in/{name}", MANIFEST))
    assert {(one.check, one.where) for one in found} <= {("active content", f"in/{name}")}
    return [one.says for one in found]


@pytest.mark.parametrize(
    "inside",
    [
        '<use xlink:href="#a"/>',
        '<image href="data:image/png;base64,AAAA"/>',
        '<g style="clip-path: url(#a)"/>',
        "<g style=\"fill: url( '#a')\"/>",
        "<style>.a { fill: red }</style><style/>",
        '<title>on the way: url of "https"</title>',
        '<metadata><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/></metadata>',
    ],
)
def test_a_drawing_may_refer_to_itself(tmp_path, inside):
    assert says(tmp_path, "a.svg", f"<!DOCTYPE svg>{HEAD}{inside}</svg>") == []


@pytest.mark.parametrize(
    ("inside", "found"),
    [
        ("<script/>", "holds <script>, which a drawing does not need"),
        ('<r:x xmlns:r="urn:else"/>', "holds <x>, which a drawing does not need"),
        ("<style>@IMPORT 'x'</style>", "its style sheet fetches or runs something"),
        ('<g onload="a()"/>', "runs a script (onload)"),
        ('<g ONCLICK="a()"/>', "runs a script (onclick)"),
        ('<use xlink:href="b.svg#a"/>', "refers to 'b.svg#a'"),
        ('<use src="b.svg"/>', "refers to 'b.svg'"),
        ('<image href="data:text/html,a"/>', "refers to 'data:text/html,a'"),
        ("<g style=\"fill: url('b')\"/>", "its style fetches or runs something"),
        ('<g fill="expression (a)"/>', "its fill fetches or runs something"),
        ('<g fill="JavaScript:a"/>', "its fill fetches or runs something"),
    ],
)
def test_what_a_drawing_would_run_or_fetch_is_named(tmp_path, inside, found):
    assert says(tmp_path, "a.SVG", f"{HEAD}<g/>{inside}</svg>") == [found]


@pytest.mark.parametrize(
    "head", ["<!ENTITY a 'b'>", "<?xml-stylesheet href='a'?>", "<!DOCTYPE svg [<!ELEMENT a ANY>]>"]
)
def test_declarations_from_elsewhere_end_the_reading(tmp_path, head):
    (only,) = says(tmp_path, "a.svg", f"{head}{HEAD}<script/></svg>")
    assert only.startswith("declares")


def croissant(**other: Any) -> str:
    held = {"contentUrl": "data/a.parquet", "sha256": SHA}
    told = {"@context": {"sc": "https://schema.org/", "id": "@id", "cr": "rdf:type"}}
    return json.dumps(told | {"name": "tiny", "version": "1.0.0", "distribution": [held]} | other)


def test_metadata_of_this_release_hold(tmp_path):
    assert says(tmp_path, "croissant.json", croissant()) == []
    assert says(tmp_path, "other.json", "[") == []  # only the metadata are read


@pytest.mark.parametrize(
    ("other", "found"),
    [
        ({"name": "other"}, "is of another release"),
        ({"version": "2.0.0"}, "is of another release"),
        ({"@context": "https://schema.org/"}, "takes the meaning of its words from elsewhere"),
        ({"@context": {"a": [{"b": "ftp://c"}]}}, "takes the meaning of its words from 'ftp://c'"),
        ({"distribution": ["a"]}, "offers 'None'"),
        ({"distribution": [{"contentUrl": "b"}]}, "offers 'b', which is no file of this release"),
        ({"distribution": [{"contentUrl": "data/a.parquet"}]}, "gives another checksum of data/a"),
        ({"note": [{"deep": "< SCRIPT>"}]}, "holds a script"),
        ({"note": {"a": "Javascript:b"}}, "holds a script"),
    ],
)
def test_what_metadata_promise_of_elsewhere_is_named(tmp_path, other, found):
    (only,) = says(tmp_path, "croissant.json", croissant(**other))
    assert only.startswith(found)


def test_metadata_without_a_list_of_files_promise_none(tmp_path):
    assert says(tmp_path, "croissant.json", croissant(distribution="a")) == []


def test_what_cannot_be_read_is_a_finding(tmp_path):
    assert says(tmp_path, "croissant.json", "[]") == ["cannot be read: not an object"]
    assert says(tmp_path, "a.svg", b"\xff")[0].startswith("cannot be read: 'utf-8'")


def test_other_kinds_and_sizes(tmp_path, monkeypatch):
    wrong = ["is of a kind that a release does not hold"]
    for end in ("html", "htm", "JS", "xhtml", "wasm", "pkl", "exe", "so"):
        assert says(tmp_path, f"a.{end}", "") == wrong
    assert says(tmp_path, "a.txt", "") == []
    whole = f"{HEAD}</svg>"
    monkeypatch.setattr(room, "_MOST", len(whole))
    assert says(tmp_path, "a.svg", whole) == []
    assert says(tmp_path, "a.svg", whole + " ") == ["is too large for what it should be"]
