"""Files of a release: regular, complete, listed in the manifest, with honest statistics."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import sha256
from routeyard.pipelines.common.untrusted import false_statistics
from routeyard.pipelines.release.manifest import MANIFEST, SIGNATURE, Finding, combine, first_line
from routeyard.pipelines.release.storage import DEEPEST, wrong_name
from routeyard.pipelines.verify.evidence import Evidence
from routeyard.schemas.release import Manifest

# Content that a viewer would run or fetch: scripts in plots, foreign addresses in metadata.

#: Larger files of these kinds are no plots and no metadata.
_MOST = 64 * 1024 * 1024
_SVG = "{http://www.w3.org/2000/svg}"
#: What a drawing needs: no scripts, foreign objects or animations.
_SHAPES = "svg g defs symbol use path rect circle ellipse line polyline polygon text tspan title"
_PAINTS = "desc style clipPath mask marker pattern linearGradient radialGradient"
_MORE = "stop image metadata"
_DRAWN = frozenset(
    f"{_SVG}{name}" for words in (_SHAPES, _PAINTS, _MORE) for name in words.split(" ")
)
#: Descriptions inside `metadata`: Dublin Core and RDF, as plotting libraries write them.
_DESCRIBED = (
    "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}",
    "{http://purl.org/dc/elements/1.1/}",
    "{http://creativecommons.org/ns#}",
)
_STYLE = re.compile(
    r"@import|expression\s*\(|url\s*\((?!\s*['\"]?#)|javascript:|behavior\s*:", re.I
)
_CONTEXT = ("http://mlcommons.org/croissant/", "https://schema.org/", "http://purl.org/dc/terms/")


def active(path: Path, name: str, manifest: Manifest) -> Iterator[Finding]:
    """Findings in one file, by its ending; files of other kinds have none."""
    if path.suffix.lower() in (".html", ".htm", ".js", ".xhtml", ".wasm", ".pkl", ".exe", ".so"):
        yield Finding("active content", name, "is of a kind that a release does not hold")
    check = {".svg": _svg, ".json": _croissant}.get(path.suffix.lower())
    if check is None or (path.suffix.lower() == ".json" and path.name != "croissant.json"):
        return
    if path.stat().st_size > _MOST:
        yield Finding("active content", name, "is too large for what it should be")
        return
    try:
        for says in check(path.read_bytes(), manifest):
            yield Finding("active content", name, says)
    except (ValueError, RecursionError, ElementTree.ParseError, OSError) as error:
        yield Finding("active content", name, f"cannot be read: {first_line(error)}")


def _svg(data: bytes, _: Manifest) -> Iterator[str]:
    text = data.decode("utf-8")
    if re.search(r"<!ENTITY|<\?xml-stylesheet|<!DOCTYPE[^>]*\[", text, re.I):
        yield "declares entities or a style sheet from elsewhere"
        return
    # Without its own entities an XML document cannot grow while it is read.
    for element in ElementTree.fromstring(text).iter():  # noqa: S314
        tag = str(element.tag)
        if tag not in _DRAWN and not tag.startswith(_DESCRIBED):
            yield f"holds <{tag.rpartition('}')[2][:40]}>, which a drawing does not need"
        if tag == f"{_SVG}style" and _STYLE.search(element.text or ""):
            yield "its style sheet fetches or runs something"
        for key, value in element.attrib.items():
            short = key.rpartition("}")[2].lower()
            local = value.startswith("#") or value.startswith("data:image/png;base64,")
            if short.startswith("on"):
                yield f"runs a script ({short[:40]})"
            elif short in ("href", "src") and not local:
                yield f"refers to {value[:60]!r}"
            elif _STYLE.search(value):
                yield f"its {short[:40]} fetches or runs something"


def _croissant(data: bytes, manifest: Manifest) -> Iterator[str]:
    result = json.loads(data)
    if not isinstance(result, dict):
        raise ValueError("not an object")
    context = result.get("@context")
    if not isinstance(context, dict):
        yield "takes the meaning of its words from elsewhere (@context)"
    for _, value in texts(context if isinstance(context, dict) else None):
        if ":" in value and "//" in value and not value.startswith(_CONTEXT):
            yield f"takes the meaning of its words from {value[:60]!r}"
    held = result.get("distribution")
    for item in held if isinstance(held, list) else []:
        url = item.get("contentUrl") if isinstance(item, dict) else None
        entry = manifest.files.get(str(url))
        if entry is None:
            yield f"offers {str(url)[:60]!r}, which is no file of this release"
        elif item.get("sha256") != entry.sha256:
            yield f"gives another checksum of {url} than the manifest"
    if any(re.search(r"<\s*script|javascript:", text, re.I) for _, text in texts(result)):
        yield "holds a script"
    if (result.get("name"), result.get("version")) != (manifest.name, manifest.version):
        yield "is of another release"


def texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Each text in a value of JSON or YAML, after its key; those of a list have the list's."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from texts(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part, key)
    elif isinstance(value, str):
        yield key, value


#: Written beside a release after it was sealed.
BESIDE = frozenset({"YANKED.json", SIGNATURE})
#: What a hub puts beside the files it stores: which of them are large, and nothing else.
_ATTRIBUTES = ".gitattributes"
_LARGE_FILE = re.compile(r"(#.*|\S+ filter=lfs diff=lfs merge=lfs -text)?")
#: Bytes of a file that are read whatever the manifest says of its size.
_ANYWAY = 10_000_000
_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def check_files(evidence: Evidence) -> Iterator[Finding]:
    """Findings in the files; `readable` of the evidence gets those that the manifest sealed.

    Nothing but a regular file inside the release is opened: reading a device or a
    pipe could wait for ever.
    """
    manifest = evidence.manifest
    kinds = dict(_walk(evidence.release))
    for name, kind in kinds.items():
        if kind not in ("file", "folder"):
            yield Finding("path", name, f"is {kind}; a release holds regular files only")
    add_ons = {entry.file for entry in manifest.tables.values() if entry.kind == "add_on"}
    for name in manifest.files:
        if wrong_name(name):
            continue  # `check_seal` reports it
        if kinds.get(name) == "file":
            yield from _check_file(evidence, name)
        elif name not in kinds and name not in add_ons:
            yield Finding("file", name, "is missing")
    yield from _unlisted(evidence.release, manifest, kinds)


def _check_file(evidence: Evidence, name: str) -> Iterator[Finding]:
    """Size, checksum, Parquet statistics and active content of one file."""
    path, entry = evidence.release / name, evidence.manifest.files[name]
    try:
        size = path.stat().st_size
        if size != entry.size:
            yield Finding("file", name, f"has {size:,} bytes, the manifest says {entry.size:,}")
            if size > 2 * entry.size + _ANYWAY:
                return  # reading could take for ever, and a sparse file costs its author nothing
        elif sha256(path) != entry.sha256:
            yield Finding("file", name, "has another SHA-256 than the manifest says")
        if path.suffix == ".parquet":
            for says in false_statistics(path):
                yield Finding("statistics", name, says)
    except SourceError as error:
        yield Finding("parquet", name, error.what)
        return
    except OSError as error:
        yield Finding("file", name, f"cannot be read: {first_line(error)}")
        return
    evidence.readable.add(name)
    yield from active(path, name, evidence.manifest)


def _unlisted(release: Path, manifest: Manifest, kinds: Mapping[str, str]) -> Iterator[Finding]:
    """Files and folders of the release that the manifest does not name."""
    database = manifest.database.file
    listed = {*manifest.files, database, f"{database}.sha256", MANIFEST, *BESIDE}
    folders = {
        parent.as_posix()
        for name in listed
        if not wrong_name(name)
        for parent in Path(name).parents
    }
    for name, kind in kinds.items():
        if kind == "file" and name == _ATTRIBUTES and _of_a_hub(release / name):
            continue
        if kind == "file" and name not in listed:
            yield Finding("file", name, "is in the release but not in the manifest")
        if kind == "folder" and name not in folders:
            yield Finding("file", name, "is a folder that holds no file of the manifest")


def _of_a_hub(path: Path) -> bool:
    """Whether a `.gitattributes` says no more than a hub does: which files are large.

    Other attributes can name programs that git runs.
    """
    if path.stat().st_size > 65_536:
        return False
    lines = path.read_bytes().decode("utf-8", "replace").splitlines()
    return all(_LARGE_FILE.fullmatch(line.strip()) for line in lines)


def _walk(release: Path) -> Iterator[tuple[str, str]]:
    """(name, what it is) of everything under the release; links are not followed."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            held = sorted(os.scandir(release / folder), key=lambda entry: entry.name)
        except OSError as error:
            yield folder or ".", f"a folder that cannot be read ({first_line(error)})"
            continue
        for item in held:
            name = f"{folder}/{item.name}" if folder else item.name
            mode = item.stat(follow_symlinks=False).st_mode
            if not stat.S_ISDIR(mode):
                yield name, next((kind for test, kind in _KINDS if test(mode)), "file")
            elif name.count("/") >= DEEPEST:
                yield name, f"a folder {DEEPEST + 1} deep, and what it holds was not looked at"
            else:
                yield name, "folder"
                folders.append(name)


# The manifest against itself: digest, name and version, fingerprints of fingerprints.


def check_seal(manifest: Manifest) -> Iterator[Finding]:
    """Findings in the manifest alone."""
    if manifest.digest != manifest.expected_digest():
        yield Finding("manifest", MANIFEST, "was edited: its digest does not match what it says")
    if (manifest.name, manifest.version) != (
        manifest.recipe.get("name"),
        manifest.recipe.get("version"),
    ):
        yield Finding("manifest", MANIFEST, "name or version differs from the recipe's")
    tables = manifest.tables.items()
    contents = combine({name: entry.content for name, entry in tables})
    timeless = combine({name: entry.content_without_times for name, entry in tables})
    if (manifest.content, manifest.content_without_times) != (contents, timeless):
        yield Finding("manifest", MANIFEST, "the content fingerprint is not that of its tables")
    held = {name: entry.content for name, entry in tables if name in manifest.database.tables}
    if manifest.database.content != combine(held):
        yield Finding("manifest", MANIFEST, "the database's fingerprint is not that of its tables")
    yield from _names(manifest)


def _names(manifest: Manifest) -> Iterator[Finding]:
    """Every file that the manifest names, and that each is named once."""
    named = [*manifest.files, manifest.database.file]
    for name in {*named, *(entry.file for entry in manifest.tables.values())}:
        if says := wrong_name(name):
            yield Finding("path", name[:200], f"the manifest names it, and it {says}")
    seen: dict[str, str] = {}
    for name in named:
        # Two names that one file system tells apart and another does not.
        other = seen.setdefault(name.casefold(), name)
        if other != name or named.count(name) > 1:
            yield Finding("path", name[:200], f"the manifest names it twice ({other!r})")
    for table, entry in manifest.tables.items():
        if entry.file != f"data/{table}.parquet":
            yield Finding("path", entry.file[:200], f"is not where the table {table} belongs")
        elif entry.file not in manifest.files:
            yield Finding("manifest", entry.file, "the manifest lists no checksum of it")
        if entry.kind not in ("core", "add_on"):
            yield Finding("manifest", entry.file, f"is of an unknown kind {entry.kind!r}")
    if manifest.database.file != f"{manifest.name}.duckdb":
        yield Finding("path", manifest.database.file[:200], "is not the name of its database")
