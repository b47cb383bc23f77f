"""`routeyard reproduce`: papers on small releases, verdicts on planted ones, what is missing."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import routeyard
from routeyard.flows.cli import run
from routeyard.flows.evaluation.evaluate import reference
from routeyard.papers import PAPERS
from routeyard.papers import reproduction as stands
from routeyard.papers.paper import Paper, read_paper
from routeyard.papers.reproduction import Reproduction, Stand, alike, reproduction
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.studies.study import StudyContext
from tests.studies.test_paper_studies import POOL, release
from tests.support.sampled import some

ROOT = Path(__file__).parents[2]
#: Paper → releases by the name of their folder, with the models of each.
RELEASES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "routing_plateau": {"small_nine": POOL[:4]},
    "routerbench_plus": {"small_embedllm": POOL[:4]},
    "triple_perspective": {"small_xbench": POOL[:2]},
    "confidence_router": {"small_pairs": POOL[:2]},
    "cscr": {"small_cscr": POOL},
}


#: Papers of which some routers do: to fit the networks of all of them takes most of the time.
FEW: Mapping[str, dict[str, Any]] = {
    "routing_plateau": {
        "search": False, "encoders": ["e"],
        "routers": ["knn", "kmeans", "mlp", "zooter", "carrot", "mess-plus"],
    },
    "routerbench_plus": {
        "routers": ["knn-as-printed", "kmeans-as-printed", "best-generalist", "random"]
    },
}  # fmt: skip


def written(folder: Path, tables: Mapping[str, pa.Table]) -> Path:
    """The tables as a release folder, its name the release's."""
    (folder / "data").mkdir(parents=True)
    for name, table in tables.items():
        pq.write_table(table, folder / "data" / f"{name}.parquet")
    return folder


def several(tables: dict[str, pa.Table], sources: tuple[str, ...]) -> dict[str, pa.Table]:
    """The release with its questions in several sources, the last two only tested."""
    queries = tables["queries"]
    named = [sources[k % len(sources)] for k in range(queries.num_rows)]
    at = queries.column_names.index("source")
    queries = queries.set_column(at, queries.schema.field("source"), pa.array(named, pa.string()))
    splits = tables["splits"].to_pylist()
    for row, source in zip(splits, named, strict=True):
        if source in sources[-2:]:
            row["split"] = "test"
    made = pa.Table.from_pylist(splits, schema=tables["splits"].schema)
    return {**tables, "queries": queries, "splits": made}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Paper → its reproduction on small releases, made once."""
    made: dict[str, tuple[Reproduction, Path]] = {}

    def of(name: str) -> tuple[Reproduction, Path]:
        if name not in made:
            root = tmp_path_factory.mktemp(name)
            places = []
            for called, models in RELEASES[name].items():
                tables = release("0", models)
                if name == "triple_perspective":
                    sources = ("alpaca", "big_math", "mmlu", "magpie", "math")
                    tables = several(release("0", models, n=200), sources)
                place = written(root / called, tables)
                places.append(f"Nine-by-30k={place}" if name == "routing_plateau" else place)
            out = root / "out"
            where = {"out": out, "workspace": root / "yard", "cache": root / "cache"}
            more = FEW.get(name, {})
            made[name] = (routeyard.reproduce(name, places, resamples=50, **where, **more), out)
        return made[name]

    return of


@pytest.mark.parametrize("name", RELEASES)
def test_a_paper_runs_and_every_cell_has_a_verdict_and_a_reason(found: Any, name: str) -> None:
    one, out = found(name)
    paper: Paper = PAPERS.get(name)
    assert len(one.cells) == sum(1 for item in paper.items for _ in paper.cells(item))
    assert one.summary()["computed"] > 0
    assert one.summary()["of which computed"] >= 2
    for cell in one.cells:
        if cell.verdict == "not comparable":
            assert cell.reason, cell
        else:
            assert cell.value is not None
    # No release here is the paper's own data: only what a recipe asks for can be equal.
    told = {cell.on.partition(" ")[0] for cell in one.cells if cell.verdict != "not comparable"}
    assert told <= {"recipe"}
    content = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    assert len(content["cells"]) == len(one.cells)
    assert paper.title in (out / f"{name}.html").read_text(encoding="utf-8")
    page = (out / f"{name}.md").read_text(encoding="utf-8")
    assert all(f"## {item.item}" in page for item in one.items)
    *rows, whole = content["table"]
    assert [row["item"] for row in rows] == [item.item for item in one.items]
    assert whole["printed"] == sum(row["printed"] for row in rows) == len(one.cells)
    for row in (*rows, whole):
        assert row["equal"] + row["differs"] + row["not comparable"] == row["printed"]
        for verdict, why in (
            ("differs", "differs because"),
            ("not comparable", "not because"),
        ):
            assert sum(reason["cells"] for reason in row[why]) == row[verdict]


@pytest.mark.parametrize("name", RELEASES)
def test_a_page_shows_each_verdict_in_words_and_each_figure(found: Any, name: str) -> None:
    one, out = found(name)
    text = (out / f"{name}.html").read_text(encoding="utf-8")
    signs = Counter(
        {"equal": "= equal", "differs": "≠ differs"}.get(
            cell.verdict, "? not here" if cell.value is None else "~ other data"
        )
        for cell in one.cells
    )
    assert {sign: text.count(f">{sign}</small>") for sign in signs} == signs
    drawn = {
        item.item
        for item in one.items
        for made in item.made.values()
        if item.item.startswith("Figure") and (out / made / f"{item.study}.svg").is_file()
    }
    assert text.count("<figure>") >= len(drawn) > 0
    assert "src=" not in text.replace("src='self'", "")


def test_every_table_of_the_plateau_is_there_in_kind(found: Any) -> None:
    one, _ = found("routing_plateau")
    made = {item.item for item in one.items if item.made}
    tuned = {"Table 6", "Table 13", "Figure 5"}  # encoders trained end to end
    elsewhere = {f"Table {k}" for k in range(9, 13)} | {f"Figure {k}" for k in (4, 6, 7, 8)}
    spread = {"Figure 3"}  # over encoders, of which there is one here
    assert {item.item for item in one.items} - made == tuned | elsewhere | spread
    (figure,) = (item for item in one.items if item.item == "Figure 3")
    assert figure.missing["Nine-by-30k"] == "small_nine: one encoder"
    kinds = {name for name, _ in one.studies}
    assert {
        "oracle_gap",
        "exchange",
        "bce_against_knn",
        "configurations",
        "encoder_spread",
    } <= kinds


def test_what_is_missing_is_named(found: Any) -> None:
    one, _ = found("routing_plateau")
    by_item = {(cell.item, cell.row): cell for cell in one.cells}
    assert "EmbedLLM's train.csv" in by_item["Table 10", "kmeans"].reason
    assert "routeyard zoo tune" in by_item["Table 6", "300k, FT, mbl"].reason or (
        "nine_by_30k" in by_item["Table 6", "300k, FT, mbl"].reason
    )
    sources = [cell for cell in one.cells if cell.item == "Table 7"]
    assert {cell.verdict for cell in sources} == {"equal"}


def _paper(tmp_path: Path, rows: str, size: int = 4) -> Paper:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "paper.yaml").write_text(
        f"""
title: A paper
reference: none
benchmarks:
  Bench: {{release: one, get: the data of its authors, size: {{models: {size}}}}}
items:
  Table 1:
    where: section 1
    title: Ranks
    study: dominance
    benchmarks: [Bench]
    columns: {{Avg. rank: mean rank, Mean: {{}}}}
    derived: [Mean]
    rows:
{rows}
  Figure 1: {{where: section 1, title: A drawing, drawing: true}}
""",
        encoding="utf-8",
    )
    return read_paper(folder)


def _ranks(models: tuple[str, ...]) -> tuple[StudyContext, dict[str, float]]:
    from routeyard.pipelines.evaluate.studies.items import dominance

    context = StudyContext("one", release("0", models), reference, resamples=100)
    cells = dominance(context)
    return context, {c.row: float(c.value or 0) for c in cells if c.column == "mean rank"}


def test_the_papers_own_data_give_equal_and_differs(tmp_path: Path) -> None:
    context, ranks = _ranks(POOL[:4])
    (first, value), (second, _) = list(ranks.items())[:2]
    rows = f"      {first}: {value:.2f} {value:.2f}\n      {second}: 99.00 99.00\n"
    rows += "      stranger: 1.00 1.00"
    paper = _paper(tmp_path, rows)
    stand = alike(Stand(context), "Bench", {"models": 4}, "one")
    cells = {(c.row, c.column): c for c in reproduction(paper, {"Bench": stand}).cells}
    assert cells[first, "Avg. rank"].verdict == cells[first, "Mean"].verdict == "equal"
    assert cells[second, "Avg. rank"].verdict == cells[second, "Mean"].verdict == "differs"
    assert cells["stranger", "Avg. rank"].verdict == "not comparable"
    assert "no row 'stranger'" in cells["stranger", "Avg. rank"].reason


@pytest.mark.parametrize(
    ("sizes", "called", "reason"),
    [
        ({"models": 112}, "one", "has 112 models, this one 4"),
        ({"models": 4, "test": 5_000}, "one", "has 5,000 test, this one 20"),
        ({}, "embedllm", "computed on one instead of Bench"),
    ],
)
def test_other_data_are_shown_and_never_equal(
    tmp_path: Path, sizes: dict[str, int], called: str, reason: str
) -> None:
    context, ranks = _ranks(POOL[:4])
    name, value = next(iter(ranks.items()))
    paper = _paper(tmp_path, f"      {name}: {value:.2f} {value:.2f}")
    stand = alike(Stand(context), "Bench", sizes, called)
    cell = reproduction(paper, {"Bench": stand}).cells[0]
    assert cell.value == pytest.approx(value)
    assert cell.verdict == "not comparable"
    assert reason in cell.reason


def test_a_release_that_is_only_tested_on_needs_no_train_questions(tmp_path: Path) -> None:
    tables = release("1", POOL[:2], n=40)
    rows = [{**row, "split": "test"} for row in tables["splits"].to_pylist()[:30]]
    tables["splits"] = pa.Table.from_pylist(rows, schema=tables["splits"].schema)
    learnt = written(tmp_path / "small_pairs", release("0", POOL[:2]))
    tested = written(tmp_path / "small_mmlu", tables)
    one = routeyard.reproduce(
        "confidence_router", [f"Questions with preferences={learnt}", f"MMLU={tested}"],
        out=tmp_path / "out", cache=tmp_path / "cache", resamples=50,
    )  # fmt: skip
    cell = next(c for c in one.cells if (c.row, c.column) == ("TO-Router kNN", "MMLU CPT(50%)"))
    assert cell.value is not None
    assert cell.on == "small_mmlu"
    assert cell.reason == "computed on small_mmlu by routers of small_pairs instead of MMLU"
    # All thirty test questions, and none of the ten that are in no part.
    counted = pq.read_table(tmp_path / "out" / "small_mmlu" / "confidence_rates.parquet")
    assert counted.num_rows > 0
    assert (tmp_path / "out" / "small_pairs" / "confidence_sizes.parquet").is_file()


def test_a_stand_in_takes_other_rows_and_says_so(tmp_path: Path) -> None:
    context, ranks = _ranks(POOL[:4])
    first = next(iter(ranks))
    paper = _paper(tmp_path, "      The best of all: 1.00 1.00\n      nobody: 1.00 1.00")
    benchmark = paper.benchmarks["Bench"].model_copy(update={"instead": {"The best of all": first}})
    paper = dataclasses.replace(
        paper, benchmarks={"Bench": benchmark}, without={"nobody": "a body"}
    )
    own, other = (alike(Stand(context), "Bench", {}, name) for name in ("one", "another"))
    cells = {c.row: c for c in reproduction(paper, {"Bench": other}).cells if c.column != "Mean"}
    assert cells["The best of all"].value == pytest.approx(ranks[first])
    assert f"{first} in the place of The best of all" in cells["The best of all"].reason
    assert cells["nobody"].reason == "one lacks a body"
    # The paper's own data need nothing in the place of anything.
    assert reproduction(paper, {"Bench": own}).cells[0].value is None


def test_without_a_release_the_benchmark_is_missing(tmp_path: Path) -> None:
    paper = _paper(tmp_path, "      a: 1.00 1.00")
    cell = reproduction(paper, {}).cells[0]
    assert cell.value is None
    assert cell.reason == "Bench is not here: the data of its authors"


@pytest.mark.parametrize(("kind", "other"), [("real", True), ("pseudo_specialist", False)])
def test_simulated_models_are_not_the_papers(kind: str, other: bool) -> None:
    context, _ = _ranks(POOL[:4])
    # Pseudo-specialists are RouterBench+'s own, and simulated there as well.
    rows = context.tables["models"].to_pylist()
    rows[0] |= {"simulated": True, "kind": kind}
    table = pa.Table.from_pylist(rows, schema=context.tables["models"].schema)
    context.tables = {**context.tables, "models": table}
    assert ("simulated" in alike(Stand(context), "Bench", {}, "one").unlike) is other


def test_a_benchmark_that_the_paper_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no benchmark 'Mine'"):
        routeyard.reproduce("cscr", ["Mine=there"], out=tmp_path)
    with pytest.raises(BadInput, match="there is no paper"):
        routeyard.reproduce("cscr2", out=tmp_path)


def test_a_release_that_routers_learn_from_is_tested_on_its_own_test_questions(
    tmp_path: Path,
) -> None:
    from routeyard.papers.reproduction import _assigned

    paper = PAPERS.get("confidence_router")
    place = tmp_path / "confidence_pairs" / "1.0.0"
    place.mkdir(parents=True)
    learnt = "Questions with preferences"
    alone = _assigned(paper, [f"{learnt}={place}"])
    assert alone == dict.fromkeys((learnt, "MT-Bench", "GSM8K", "MMLU"), place)
    # One test benchmark that is named: the others are missing, as they are.
    named = _assigned(paper, [f"{learnt}={place}", f"GSM8K={tmp_path}"])
    assert named == {learnt: place, "GSM8K": tmp_path}


def test_the_list_names_papers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(RELEASES)
    assert rows["routing_plateau"]["printed"] > 700


@pytest.mark.parametrize("name", some(RELEASES, 5))
def test_the_readme_of_a_paper_says_how_and_its_commands_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "papers" / name / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```bash\n(.*?)```", text, re.S)
    commands = [line for block in blocks for line in block.splitlines() if line.strip()]
    assert any(line.startswith(f"routeyard reproduce {name}") for line in commands)
    monkeypatch.chdir(tmp_path)
    for line in commands:
        words = line.split()
        assert words[0] == "routeyard"
        for place in re.findall(r"yard/releases/\S+", line):
            if not Path(place).is_dir():
                models = next(iter(RELEASES[name].values()))
                written(tmp_path / place, release("0", models[:3] if len(models) > 2 else models))
        quick = ["--resamples", "100"]
        if name == "routing_plateau":
            quick += ["--no-search", "--routers", "knn,kmeans"]
        assert run([*words[1:], *quick]) == 0, line
    capsys.readouterr()


@pytest.mark.parametrize(
    ("paper", "given", "said"),
    [
        ("confidence_router", {"routers": ["knn"]}, "reads 'routers'"),
        ("cscr", {"encoders": ["tfidf"]}, "reads 'encoders'"),
        ("triple_perspective", {"search": False}, "reads 'search'"),
        ("cscr", {"on": ["there"], "data": True}, "releases are named"),
    ],
)
def test_what_nothing_of_a_paper_reads_is_refused(
    paper: str, given: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=said):
        routeyard.reproduce(paper, out=tmp_path, **given)


@pytest.mark.slow  # the ablations of the paper come along
def test_routers_that_are_asked_for_take_the_place_of_the_papers(tmp_path: Path) -> None:
    place = written(tmp_path / "small", release("0", POOL[:4]))
    one = routeyard.reproduce(
        "cscr", [place], routers=["umr", "cscr"], out=tmp_path / "out", resamples=50,
        cache=tmp_path / "cache",
    )  # fmt: skip
    own = {c.row for c in one.cells if c.item == "Table 1" and c.value is not None}
    assert own == {"Oracle", "UMR", "CSCR"}


def test_a_recipe_says_no_total_that_its_rules_change() -> None:
    from routeyard.papers.reproduction import asked_counts

    nine = asked_counts("nine_by_30k") or {}
    assert nine["in all", "questions"] == 31_027
    assert nine["in all", "models"] == 9
    pairs = asked_counts("confidence_pairs") or {}
    assert pairs["in all", "questions"] == 12_247
    # Trap: dedup and pruning come after the 35,673 that the recipe reads, and its pool is a file's.
    plus = asked_counts("routerbench_plus") or {}
    assert not {("in all", "questions"), ("in all", "models")} & set(plus)
    assert asked_counts("no_such_recipe") is None


def test_releases_are_embedded_in_the_order_of_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Texts that a cache lacks are embedded in batches: with another order, other last bits.
    paper: Paper = PAPERS.get("routerbench_plus")
    folders = {
        name: written(tmp_path / f"copy_{number}", release("0", POOL[:4]))
        for number, name in enumerate(paper.benchmarks)
    }
    read: list[Path] = []
    real = stands.read_with

    def spied(spot: Path, also: Any) -> Any:
        read.append(spot)
        return real(spot, also)

    monkeypatch.setattr(stands, "read_with", spied)
    stands.stands_of(paper, folders, [], tmp_path / "cache", 50)
    assert len(folders) > 3
    assert read == list(folders.values())
