"""What a mapping of a source may say, as a table: each line is an example that a test evaluates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Example:
    """A mapping, what it does, and what it gives for a row."""

    mapping: str
    says: str
    row: Mapping[str, Any] = field(default_factory=dict)
    gives: Any = None


#: What a row holds, and how it is reached.
REACHED = (
    Example("answer", "a column, as it is", {"answer": [4, 5]}, [4, 5]),
    Example("item.text", "a key within an object", {"item": {"text": "Why?"}}, "Why?"),
    Example("{{ question }}", "an expression: its own value", {"question": ["a"]}, ["a"]),
    Example(
        "{{ passage }}\n{{ question }}",
        "a text with expressions in it",
        {"passage": "P", "question": "Q"},
        "P\nQ",
    ),
    Example(
        "{{ _row['Correct Answer'] }}",
        "`_row` is the whole row: for names with spaces, or with `{{`",
        {"Correct Answer": "Rome"},
        "Rome",
    ),
    Example("{{ _row.get('hint') }}", "nothing where the row lacks the key", {}, None),
    Example(
        "{{ _item.question }}",
        "`_item` is the entry of the list that the source's `each` names",
        {"_item": {"question": "Why?"}},
        "Why?",
    ),
    Example("{{ _index }}", "`_index` is the entry's place in it, from 0", {"_index": 2}, 2),
    Example(
        "{{ _config }}", "`_config` is a hub dataset's configuration", {"_config": "main"}, "main"
    ),
    Example("{{ _split }}", "`_split` is its split", {"_split": "test"}, "test"),
)
#: Filters and functions that Jinja does not have, or has otherwise.
OWN = (
    Example("{{ label | letter }}", "an index from 0 as an option's letter", {"label": 2}, "C"),
    Example(
        "{{ [right, wrong] | shuffled(question) }}",
        "in an order that the text fixes, for sources that list the right option first",
        {"right": "a", "wrong": "b", "question": "Q?"},
        ["b", "a"],
    ),
    Example(
        "{{ ([right, wrong] | shuffled(question)).index(right) | letter }}",
        "the letter of the right one in that order",
        {"right": "a", "wrong": "b", "question": "Q?"},
        "B",
    ),
    Example(
        "{{ solution | boxed }}",
        "what the last `\\boxed{…}` holds; an empty text without one",
        {"solution": "so \\boxed{7}"},
        "7",
    ),
    Example(
        "{{ options | from_json }}",
        "a text of JSON as what it stands for",
        {"options": '["a", "b"]'},
        ["a", "b"],
    ),
    Example(
        "{{ options | split('; ') }}",
        "parts of a text, between the sign or, without one, at spaces",
        {"options": "a; b"},
        ["a", "b"],
    ),
    Example(
        "{{ answer | strip('.') }}",
        "without these signs, or spaces, at both ends",
        {"answer": "Rome."},
        "Rome",
    ),
    Example(
        "{{ zip(keys, texts) | map('join', ': ') | list }}",
        "`zip` pairs the entries of lists",
        {"keys": ["x", "y"], "texts": ["1", "2"]},
        ["x: 1", "y: 2"],
    ),
)
#: What sources need most of Jinja's own and of Python's methods.
OFTEN = (
    Example("{{ options.values() | list }}", "an object's texts", {"options": {"A": "x"}}, ["x"]),
    Example(
        "{{ options | map(attribute='text') | list }}",
        "one key of each object in a list",
        {"options": [{"text": "x"}, {"text": "y"}]},
        ["x", "y"],
    ),
    Example(
        "{{ options.index(answer) | letter }}",
        "the letter of the option that the answer repeats",
        {"options": ["x", "y"], "answer": "y"},
        "B",
    ),
    Example(
        "{{ (label | int - 1) | letter }}", "the letter of an index from 1", {"label": "2"}, "B"
    ),
    Example(
        "{{ answer.split('####')[-1].strip() }}",
        "what stands after a sign",
        {"answer": "2 + 2 #### 4"},
        "4",
    ),
    Example("{{ 'yes' if label else 'no' }}", "a word for true or false", {"label": True}, "yes"),
    Example(
        "{{ options | reject('in', [none, '']) | list }}",
        "without empty entries",
        {"options": ["x", None, ""]},
        ["x"],
    ),
)


def page() -> Iterator[str]:
    """The table in Markdown, line by line, with the names of Jinja's filters at the end."""
    from pipelines.mapping.expressions import words

    yield "# What a mapping may say\n"
    yield (
        "`fields`, `each`, `where` and `exclude` of a source, and `fields` of a recording, name a "
        "column or hold [Jinja](https://jinja.palletsprojects.com/en/stable/templates/) "
        "expressions over one row. A mapping that is one `{{ … }}` gives the expression's own "
        "value (a list stays a list), any other text with `{{` a text. `choices` and `references` "
        "take a list, or a list of mappings that give a text each. Null and NaN are nothing. "
        "Expressions run in Jinja's sandbox, with limits of time and memory for each row.\n"
    )
    titles = ("Reaching a value", "Filters of ours", "Often needed")
    for title, examples in zip(titles, (REACHED, OWN, OFTEN), strict=True):
        yield f"## {title}\n"
        yield "| mapping | what it is | of the row | gives |\n| --- | --- | --- | --- |"
        for one in examples:
            row, gives = _code(_text(one.row)), _code(_text(one.gives))
            yield f"| {_code(one.mapping)} | {_bar(one.says)} | {row} | {gives} |"
        yield ""
    yield "## Jinja's own filters\n"
    yield ", ".join(f"`{name}`" for name in words()[1]) + ".\n"


def _text(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _code(text: str) -> str:
    return f"`{_bar(text)}`".replace("\n", "↵")


def _bar(text: str) -> str:
    return text.replace("|", "\\|")
