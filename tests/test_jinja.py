"""Field mappings: what they read, and that a stranger's recipe cannot run code."""

from __future__ import annotations

import pytest

from pipelines.errors import RecipeError
from pipelines.jinja import compile_field

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
