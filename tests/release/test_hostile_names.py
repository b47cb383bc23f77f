"""Model ids, titles and answers of strangers in a card, on a terminal, in CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pytest

from routeyard.flows.cli import run

#: Clears a screen, sets a window's title, turns text around, is a formula, a link and HTML.
NASTY = "=1+1\x1b[2J\x1b]0;owned\x07\u202e|<img src=x onerror=a()> [bold][x](javascript:0)"
ACTING = ("\x1b", "\x07", "\u202e", "\x9b")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, tiny):
    from routeyard.datacards.card import render
    from routeyard.pipelines.release.build import write_release

    tables = {}
    for name, table in tiny().items():
        if "model_id" in table.column_names:
            ids = [NASTY if m == "m0" else m for m in table.column("model_id").to_pylist()]
            at = table.column_names.index("model_id")
            table = table.set_column(at, table.schema.field(at), pa.array(ids))
        if "text" in table.column_names:
            at = table.column_names.index("text")
            texts = [f"{NASTY} {t}" for t in table.column("text").to_pylist()]
            table = table.set_column(at, table.schema.field(at), pa.array(texts))
        tables[name] = table
    words = {"title": NASTY, "description": f"Good. {NASTY}", "known_issues": [NASTY]}
    return write_release(
        tables,
        recipe={"name": "tiny", "version": "1.0.0", "release": words},
        root=tmp_path_factory.mktemp("hostile"),
        render_card=render,
        sources=[{"source": "arith", "license": "MIT", "url": None, "redistribute_text": True}],
    ).path


def clean(text: str) -> None:
    for sign in ACTING:
        assert sign not in text


def test_the_card(hostile) -> None:
    import markdown_it

    card = (hostile / "README.md").read_text(encoding="utf-8")
    clean(card)
    body = card.split("\n---\n", 1)[1]  # before it stands YAML, which the hub reads as data
    page = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table").render(body)
    assert "<img src=x" not in page
    assert "javascript:0" in page
    assert 'href="javascript' not in page


@pytest.mark.parametrize(
    "words",
    [
        ["query", "{release}", "SELECT * FROM responses"],
        ["query", "{release}", "FROM responses", "--format", "csv"],
        ["query", "{release}", "FROM responses", "--format", "markdown"],
        ["query", "{release}", "@leaderboard", "--format", "json"],
        ["query", "{release}", f"SELECT * FROM models WHERE model_id = '{NASTY}x'"],
        ["query", "{release}", f"SELECT nothing AS '{NASTY}'"],
        ["verify", "{release}"],
        ["diff", "{release}", "{release}"],
        ["certify", "{release}", "--resamples", "10"],
        ["audit", "{release}", "--labels"],
    ],
    ids=lambda words: " ".join(words[:1] + words[3:])[:30],
)
def test_what_a_command_prints(hostile, words, capsys) -> None:
    run([word.replace("{release}", str(hostile)) for word in words])
    said = capsys.readouterr()
    clean(said.out + said.err)
    assert said.out + said.err


def test_the_summary_after_a_build(hostile, capsys, monkeypatch) -> None:
    from routeyard.flows.summary import console_summary, markdown

    console_summary(hostile, "new")
    said = capsys.readouterr().out
    clean(said)
    assert "[bold]" in said  # shown as it is written, not obeyed
    clean(markdown(hostile))
    assert "| \\[" not in markdown(hostile).replace(" =1", "")


def test_a_table_on_a_terminal_shows_their_markup_as_text() -> None:
    from rich.table import Table

    from routeyard.flows.console import SafeConsole

    console = SafeConsole(width=200)
    console.file, console._force_terminal = io.StringIO(), True
    table = Table(title=NASTY)
    table.add_column("model")
    table.add_row(NASTY)
    console.print(table)
    said = console.file.getvalue()
    for theirs in ("\x1b[2J", "\x1b]0", "\x07"):
        assert theirs not in said
    assert "[bold]" in said


def test_cells_of_csv_are_no_formulas(hostile, tmp_path) -> None:
    out = tmp_path / "answer.csv"
    assert (
        run(["query", str(hostile), "SELECT model_id, text FROM responses", "--out", str(out)]) == 0
    )
    with out.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))[1:]
    assert len(rows) == 17
    assert all(cell[:1] not in "=+-@" for row in rows for cell in row)
    # Formats for programs hold what was said to the letter.
    lossless = tmp_path / "answer.json"
    assert run(["query", str(hostile), "SELECT text FROM responses", "--out", str(lossless)]) == 0
    assert all(r["text"].startswith(NASTY) for r in json.loads(lossless.read_text("utf-8")))
