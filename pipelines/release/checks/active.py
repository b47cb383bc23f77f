"""Content that a viewer would run or fetch: scripts in plots, foreign addresses in metadata."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from routeyard.pipelines.release.finding import Finding, first_line
from routeyard.schemas.manifest import Manifest

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
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    context = found.get("@context")
    if not isinstance(context, dict):
        yield "takes the meaning of its words from elsewhere (@context)"
    else:
        for value in _texts(context):
            if ":" in value and "//" in value and not value.startswith(_CONTEXT):
                yield f"takes the meaning of its words from {value[:60]!r}"
    held = found.get("distribution")
    for item in held if isinstance(held, list) else []:
        url = item.get("contentUrl") if isinstance(item, dict) else None
        entry = manifest.files.get(str(url))
        if entry is None:
            yield f"offers {str(url)[:60]!r}, which is no file of this release"
        elif item.get("sha256") != entry.sha256:
            yield f"gives another checksum of {url} than the manifest"
    if any(re.search(r"<\s*script|javascript:", text, re.I) for text in _texts(found)):
        yield "holds a script"
    if (found.get("name"), found.get("version")) != (manifest.name, manifest.version):
        yield "is of another release"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str):
        yield value
