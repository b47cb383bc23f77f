"""Field mappings: what they read, and that a stranger's recipe cannot run code."""

from __future__ import annotations

import json
import re

import pytest

from routeyard.pipelines.common.errors import RecipeError
from routeyard.pipelines.common.mapping import compile_field, words
from routeyard.pipelines.ingest.queries import page

#: (mapping, what it is, row, value) of each example on the page.
SHOWN = [
    [re.sub(r"^ ?`|` ?$", "", cell).replace("\\|", "|").replace("↵", "\n") for cell in cells[1:5]]
    for cells in (re.split(r"(?<!\\)\|", line) for line in page().splitlines())
    if len(cells) > 1 and cells[1].startswith(" `")
]
ROW = {"question": "Why?", "options": ["x", "y"], "answer": 1, "nested": {"text": ["a"]}}


@pytest.mark.parametrize(
    ("mapping", "value"),
    [
        ("question", "Why?"),
        ("nested.text", ["a"]),
        ("{{ answer | letter }}", "B"),
        ("{{ options }}", ["x", "y"]),  # one expression keeps its own type
        ("{{ options[answer] }}", "y"),
        ("Q: {{ question }} ({{ answer }})", "Q: Why? (1)"),
        ("{% for o in options %}{{ o }};{% endfor %}", "x;y;"),
        ('{{ "#### 18".split("####")[-1] | strip }}', "18"),
    ],
)
def test_mappings(mapping: str, value: object) -> None:
    assert compile_field(mapping, where="test")(ROW) == value


@pytest.mark.parametrize(("mapping", "says", "row", "gives"), SHOWN, ids=[one[0] for one in SHOWN])
def test_what_the_page_of_mappings_shows_is_so(
    mapping: str, says: str, row: str, gives: str
) -> None:
    assert says.strip()
    assert compile_field(mapping, where="page")(json.loads(row)) == json.loads(gives)


def test_the_page_of_mappings_names_every_filter() -> None:
    # Trap: filters of ours stood in the code only, and a newcomer could not know of them.
    ours, theirs = words()
    assert {"letter", "from_json", "zip"} <= {*ours}
    own = page().partition("## Filters of ours")[2].partition("\n## ")[0]
    for name in ours:
        assert re.search(rf"\b{name}\b", own), name
    assert page().splitlines()[-1] == ", ".join(f"`{name}`" for name in theirs) + "."
    # A bar within a cell would end it.
    rows = [line for line in page().splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {5}


@pytest.mark.parametrize(
    ("mapping", "instead"),
    [
        ("{{ question | shuffle }}", "did you mean 'shuffled'?"),
        ("{{ answer | leter }}", "did you mean 'letter'?"),
        ("{{ question is strin }}", "did you mean 'string'?"),
    ],
)
def test_a_filter_that_does_not_exist_is_answered_with_the_one_that_does(
    mapping: str, instead: str
) -> None:
    with pytest.raises(RecipeError) as caught:
        compile_field(mapping, where="source 's', fields.question")
    assert instead in str(caught.value)
    assert "recipe schema --page" in str(caught.value)


@pytest.mark.parametrize("mapping", ["qestion", "{{ qestion }}", "a {{ qestion }}", "nested.txt"])
def test_a_column_that_does_not_exist_is_named(mapping: str) -> None:
    with pytest.raises(RecipeError) as caught:
        compile_field(mapping, where="questions.jsonl")(ROW)
    assert "columns" in str(caught.value)
    assert "questions.jsonl" in str(caught.value)


@pytest.mark.parametrize(
    "mapping",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ question.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{{ lipsum.__globals__ }}",
        "{{ question | attr('__class__') }}",
        "{{ options.append(1) }}",
        "{{ 'a' * 10000000000 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ '%10000000000d' % 1 }}",
        "{{ '{:>10000000000}'.format(1) }}",
        "{{ 'a'.ljust(10000000000) }}",
        "{{ 'a' | center(10000000000) }}",
        "{{ range(10000000000) | list }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ question",
    ],
)
def test_escapes_and_bombs_are_refused(mapping: str) -> None:
    with pytest.raises(RecipeError):
        compile_field(mapping, where="test")(ROW)


LONG = {"question": "word " * 20_000, "options": ["x", "y"], "answer": 1}


@pytest.mark.parametrize(
    "mapping",
    [
        # Time without end: loops in loops over a text of 100,000 signs.
        "{% for a in question %}{% for b in question %}{% endfor %}{% endfor %}",
        # Memory without end: a text that doubles, squares, or is set anew.
        "{% set q = question ~ question %}" + "{% set q = q ~ q %}" * 40 + "{{ q | length }}",
        "{{ question | replace('w', question) | replace('w', question) | length }}",
        "{{ question.replace('w', question).replace('w', question) }}",
        "{{ (question | list) | batch(1, question) | map('join', question) | join(question) }}",
        "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    ],
    ids=["loops", "doubling", "squares", "method", "batches", "recursion"],
)
def test_a_mapping_without_end_is_ended_and_takes_nothing_of_ours(mapping: str) -> None:
    import resource
    import time

    before, started = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
    with pytest.raises(RecipeError) as caught:
        compile_field(mapping, where="questions.jsonl")(LONG)
    assert "questions.jsonl" in str(caught.value)
    assert time.process_time() - started < 2
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_maxrss - before.ru_maxrss < 200_000  # kB
    assert ("does not end" in str(caught.value)) == ("macro" not in mapping)
    # The next one answers.
    assert compile_field("{% for o in options %}{{ o }}{% endfor %}", where="test")(LONG) == "xy"


def test_an_error_in_a_loop_is_named() -> None:
    with pytest.raises(RecipeError, match="columns"):
        compile_field("{% for o in optoins %}{{ o }}{% endfor %}", where="test")(LONG)
    with pytest.raises(RecipeError, match="ZeroDivisionError"):
        compile_field("{% for o in options %}{{ 1 / 0 }}{% endfor %}", where="test")(LONG)


@pytest.mark.parametrize(
    ("mapping", "plain"),
    [
        ("{{ options[answer] }}", True),
        ("Q: {{ question | strip }} ({{ answer | letter }})", True),
        ("{{ question.split('####')[-1] | strip }}", True),
        ("{{ options | join(', ') }}", True),
        ("{{ options | join(question) }}", False),
        ("{{ question | replace('a', question) }}", False),
        ("{% for o in options %}{{ o }}{% endfor %}", False),
        ("{% set q = question %}{{ q }}", False),
        ("{{ options | map('upper') | list }}", False),
    ],
)
def test_only_what_cannot_grow_runs_beside_us(mapping: str, plain: bool) -> None:
    from routeyard.pipelines.common.mapping import ENVIRONMENT as _ENVIRONMENT
    from routeyard.pipelines.common.mapping import is_plain

    assert is_plain(_ENVIRONMENT.parse(mapping)) is plain
