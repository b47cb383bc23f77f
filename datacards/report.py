"""One self-contained HTML page of an evaluation: nothing is requested from elsewhere.

The data travel as compressed JSON inside the page, in base64, so that no
character of a question or an answer can be read as markup; the page's script
puts text into the document as text only, and a content security policy
forbids every request.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import pyarrow as pa

from datacards.report_plots import COLOURS, REFERENCES


def report(
    title: str,
    *,
    metrics: pa.Table,
    curves: pa.Table,
    comparisons: pa.Table,
    profiles: pa.Table,
    ood: pa.Table | None,
    ranking: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Any],
    certificate: Mapping[str, Any] | None,
    lookup: Mapping[str, Any],
) -> str:
    """The page as text.

    Args:
        metrics, curves, comparisons, profiles, ood, ranking, facts: as an
            evaluation gives them.
        certificate: the certificate as JSON, or None.
        lookup: from `datacards.report_lookup.lookup`.
    """
    from jinja2 import Environment

    folder = files("datacards").joinpath("templates")
    content = {
        "metrics": _columns(metrics),
        "curves": _lines(curves),
        "comparisons": comparisons.to_pylist(),
        "profiles": _columns(profiles),
        "ood": [] if ood is None else ood.to_pylist(),
        "ranking": list(ranking),
        "facts": dict(facts),
        "certificate": certificate,
        "lookup": lookup,
        "colours": COLOURS,
        "references": REFERENCES,
    }
    # Six digits carry all that is meant; a fixed mtime keeps equal pages equal in bytes.
    text = json.dumps(_rounded(content), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    packed = base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()
    page = Environment(autoescape=True).from_string(
        folder.joinpath("report.html.jinja").read_text(encoding="utf-8")
    )
    return page.render(
        title=title,
        style=folder.joinpath("report.css").read_text(encoding="utf-8"),
        script=folder.joinpath("report.js").read_text(encoding="utf-8"),
        data=packed,
    )


def _columns(table: pa.Table) -> dict[str, list[Any]]:
    return {name: table.column(name).to_pylist() for name in table.column_names}


def _lines(curves: pa.Table) -> list[dict[str, Any]]:
    """One object per curve, points as parallel lists."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in curves.to_pylist():
        key = (row["curve"], row["measure"], row["router"])
        line = found.setdefault(
            key,
            {
                "curve": row["curve"],
                "measure": row["measure"],
                "router": row["router"],
                "x": [],
                "y": [],
                "low": [],
                "high": [],
            },
        )
        for name in ("x", "y", "low", "high"):
            line[name].append(row[name])
    return list(found.values())


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value
