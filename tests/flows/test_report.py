"""What a tracked run shows, read from the demo's stages."""

from __future__ import annotations

import json
from pathlib import Path

from routeyard.flows.build import last_run
from routeyard.flows.deploy import cell, certificate


def test_certificate_rows_are_flat_and_say_the_verdict_first(demo_yard: Path) -> None:
    stage = demo_yard / last_run(demo_yard, "demo")["folders"]["certify"]
    said = json.loads((stage / "certificate.json").read_text())
    rows = certificate(stage)
    assert (rows[0]["figure"], rows[0]["value"]) == ("verdict", said["verdict"])
    # A table artifact shows no nested values, and takes its columns from the first row.
    assert {tuple(row) for row in rows} == {("figure", "value", "interval", "says")}
    assert all(isinstance(cell, str) for row in rows for cell in row.values())
    assert len(rows) == 1 + len(said["figures"]) + len(said["routers"])
    by_name = {row["figure"]: row for row in rows}
    # What could not be computed is unknown with its reason, never zero.
    missing = by_name["per-query oracle, corrected for sampling noise"]
    assert missing["value"] == "–"
    assert "sampled once" in missing["says"]
    (router, *_) = said["routers"]
    assert by_name[f"router {router['router']}"]["value"] == f"{100 * router['accuracy']:.1f} %"


def test_no_certificate_gives_no_rows(tmp_path: Path) -> None:
    assert certificate(tmp_path) == []


def test_a_cell_of_a_page_makes_no_link_and_no_markup() -> None:
    assert cell("openai/gpt-4o [1, 2]") == "openai/gpt-4o [1, 2]"
    assert "[a](" not in cell("[a](javascript:alert(1))")
    assert "<b>" not in cell("<b>").replace("\\<", "")
    assert cell("\x1b[2J\nx") == "�[2J x"
    assert cell(3) == 3
