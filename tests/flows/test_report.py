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
    assert rows[0]["entry"] == "verdict"
    assert rows[0]["says"] == said["verdict"]
    # A table artifact shows no nested values, and takes its columns from the first row.
    assert {tuple(row) for row in rows} == {("entry", "value", "low", "high", "says")}
    assert not any(isinstance(cell, dict | list) for row in rows for cell in row.values())
    by_name = {row["entry"]: row for row in rows}
    assert set(said["figures"]) <= set(by_name)
    # What could not be computed is empty with its reason, never zero.
    missing = by_name["query_oracle_corrected"]
    assert missing["value"] is None
    assert "sampled once" in missing["says"]
    assert {f"router {one['router']}: accuracy" for one in said["routers"]} <= set(by_name)


def test_no_certificate_gives_no_rows(tmp_path: Path) -> None:
    assert certificate(tmp_path) == []


def test_a_cell_of_a_page_makes_no_link_and_no_markup() -> None:
    assert cell("openai/gpt-4o [1, 2]") == "openai/gpt-4o [1, 2]"
    assert "[a](" not in cell("[a](javascript:alert(1))")
    assert "<b>" not in cell("<b>").replace("\\<", "")
    assert cell("\x1b[2J\nx") == "�[2J x"
    assert cell(3) == 3
