"""What strangers wrote is shown as text: no terminal, page or spreadsheet acts on it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeyard.pipelines.common.errors import SourceError
from routeyard.schemas.text import fenced, markdown, one_line, prose, spreadsheet, visible


@given(st.text())
def test_no_sign_is_left_that_a_terminal_acts_on(text: str) -> None:
    for sign in visible(text):
        assert sign in "\n\t" or (ord(sign) >= 32 and not 0x7F <= ord(sign) < 0xA0)
    visible(text).encode("utf-8")  # no half of a surrogate pair either
    assert "\n" not in one_line(text)
    assert visible(visible(text)) == visible(text)


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[2J",
        "\x1b]0;title\x07",
        "\x9b31m",
        "a\rb",
        "\x08\x08",
        "\u202egpj.exe",
        "\u2066a",
        "\ud800",
    ],
)
def test_signs_that_act_become_visible(text: str) -> None:
    assert "�" in visible(text)


def test_words_of_all_languages_stay() -> None:
    for text in ("naïve 模型 модель", "line\n\ttab", "שלום", "👩‍💻", "e\u0301"):
        assert visible(text) == text


@pytest.mark.parametrize("formula", ["=1+1", "+cmd|' /C'!A0", "-2+3", "@SUM(1)", " =1", "\t=1"])
def test_formulas_get_an_apostrophe(formula: str) -> None:
    assert spreadsheet(formula).startswith("'")


@pytest.mark.parametrize("value", ["-3.5", "+1e5", "plain", "", None, -2, True])
def test_numbers_and_words_stay_as_they_are(value: object) -> None:
    assert spreadsheet(value) == value


def test_markdown_holds_no_markup_of_its_own() -> None:
    import markdown_it

    reader = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")
    hostile = "<script>a</script> ![i](https://x.test/i.gif) [l](javascript:0) `c` | b \\"
    page = reader.render(f"| head |\n| --- |\n| {markdown(hostile)} |\n")
    for tag in ("<script", "<img", "<a ", "<code"):
        assert tag not in page
    assert page.count("<td") == 1
    said = reader.render(prose(f"# title\n\n{hostile}"))
    assert "<h1>title</h1>" in said
    for tag in ("<script", "<img"):
        assert tag not in said


def test_an_error_says_strangers_text_without_signs_that_act() -> None:
    """Prefect keeps an error's text as a run's state, and a worker's log prints it."""
    error = SourceError("no \x1b[2J file", where="a\u202eb", next_step="look\nthere")
    # Further lines are indented: a name with a line break in it begins no line of a message.
    assert str(error) == "no �[2J file\n  where: a�b\n  next:  look\n         there"


@pytest.mark.parametrize("text", ["plain", "```\n# head\n```", "`````"])
def test_a_fence_is_longer_than_any_in_its_text(text: str) -> None:
    fence, *lines, last = fenced(text).split("\n")
    assert fence == last
    assert "\n".join(lines) == text
    assert all(fence not in line for line in lines)
