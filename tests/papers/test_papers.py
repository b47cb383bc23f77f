"""Every table and figure of each paper is declared, every printed value has its place and study."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from routeyard.papers import PAPERS
from routeyard.papers.paper import Paper
from routeyard.pipelines.common.registry import Registry
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import declared
from tests.citations import PAPERS as PLACES

ROOT = Path(__file__).parents[2]
#: Paper → its name in `tests/citations.py`, and how many values it prints in tables of numbers.
CITED = {
    "routing_plateau": "routing plateau", "routerbench_plus": "RouterBench+",
    "triple_perspective": "RouterXBench", "confidence_router": "confidence-driven router",
    "cscr": "CSCR",
}  # fmt: skip


def paper(name: str) -> Paper:
    found: Paper = PAPERS.get(name)
    return found


def test_the_five_papers_are_registered_as_other_packages_register() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(stated["entry-points"]["routeyard.papers"]) == set(CITED) == set(PAPERS.names())
    assert not PAPERS.builtin
    own = {name for name, target in STUDIES.targets.items() if ".papers." in target}
    files = [ROOT / "papers" / name / "studies.yaml" for name in CITED]
    assert own == {study for file in files for study in yaml.safe_load(file.read_text())}
    assert not own & set(STUDIES.builtin)


def test_a_package_registers_one_study_or_all_that_it_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "hexstudies-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hexstudies\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[routeyard.studies]\nall = hexstudies\nsingle = hexstudies:single\n"
    )
    (tmp_path / "hexstudies").mkdir()
    (tmp_path / "hexstudies" / "__init__.py").write_text("")
    (tmp_path / "hexstudies" / "studies.yaml").write_text("one: {}\ntwo: {}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = Registry("study", "routeyard.studies", {}, declared=declared).targets
    names = {name: target for name, target in found.items() if target.startswith("hexstudies")}
    assert names == {name: f"hexstudies:{name}" for name in ("one", "two", "single")}


@pytest.mark.parametrize("name", CITED)
def test_every_table_and_figure_is_declared(name: str) -> None:
    places = PLACES[CITED[name]]
    declared = {item.partition(" (")[0] for item in paper(name).items}
    wanted = {f"Table {k + 1}" for k in range(places.tables)}
    wanted |= {f"Figure {k + 1}" for k in range(places.figures)}
    assert wanted <= declared
    assert not {one for one in declared - wanted if re.match(r"(Table|Figure) \d", one)}


@pytest.mark.parametrize("name", CITED)
def test_every_item_stands_in_a_section_and_has_a_study(name: str) -> None:
    found = paper(name)
    sections = PLACES[CITED[name]].sections
    for called, item in found.items.items():
        numbers = re.findall(r"(?:section|appendix) ([\w.]+)", item.where)
        assert numbers, called
        assert set(numbers) <= sections, called
        assert item.drawing or item.counts or item.lacks or item.study in STUDIES.names(), called
        assert set(item.benchmarks) <= set(found.benchmarks), called
        for cell in found.cells(called):
            assert cell.on in found.benchmarks


@pytest.mark.parametrize("name", CITED)
def test_every_benchmark_says_how_it_is_had(name: str) -> None:
    for benchmark in paper(name).benchmarks.values():
        assert len(benchmark.get) > 30
        assert benchmark.trained_on is None or benchmark.trained_on in paper(name).benchmarks


def test_printed_means_are_the_means_of_their_rows() -> None:
    """A typing error shows where the paper itself prints the mean of what is typed."""
    wrong = []
    for name in CITED:
        for called, item in paper(name).items.items():
            rows: dict[str, list[float]] = {}
            means = {}
            for cell in paper(name).cells(called):
                if cell.derived:
                    means[cell.row] = cell.printed
                else:
                    rows.setdefault(cell.row, []).append(cell.printed.value)
            for row, mean in means.items():
                own = sum(rows[row]) / len(rows[row])
                if abs(own - mean.value) > 2.2 * mean.within:
                    wrong.append(f"{name}, {called}, {row}: {own:.5f} against {mean.text}")
            assert item.derived or not means
    assert wrong == []


def test_the_sources_of_nine_by_add_up() -> None:
    found = paper("routing_plateau")
    rows = [cell for cell in found.cells("Table 7") if cell.on == "Nine-by-30k"]
    *sources, total = [cell.printed.value for cell in rows]
    assert len(sources) == 57
    assert sum(sources) == total == 31_027
