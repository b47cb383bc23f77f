"""Two-step questions for agents: made-up people, works and towns, in the layout of HotpotQA.

The first passage leads to the second: who made a thing, and something about that person. No
question can be answered from one passage, and no fact stands anywhere else but here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

SEED = 20261122
_FIRST = (
    "Adela", "Bruno", "Carla", "Dimo", "Edda", "Falk", "Greta", "Hanno", "Ilse", "Jaro", "Kira",
    "Lorin", "Mirek", "Nadja", "Orla", "Pavel", "Quirin", "Runa", "Silas", "Tamsin",
)  # fmt: skip
_LAST = (
    "Abendrot", "Brockelmann", "Castellet", "Dornberg", "Eschwege", "Fontaneda", "Grimaldo",
    "Holzapfel", "Ivarsen", "Jankovic", "Kestrelli", "Lindqvar", "Morbacher", "Nestoril", "Ostrava",
)  # fmt: skip
_TOWNS = (
    "Altmark", "Birkenau", "Corvina", "Dresmond", "Elbing", "Fenwick", "Gorlitz", "Harrow",
    "Iglau", "Jever", "Kolberg", "Lissa", "Meran", "Nizza Vale", "Ostheim", "Plau", "Quern",
    "Rovigno", "Senzig", "Tolmin",
)  # fmt: skip
_WORKS = (
    ("novel", "written", "wrote"), ("bridge", "designed", "designed"),
    ("opera", "composed", "composed"), ("clock tower", "built", "built"),
    ("map", "drawn", "drew"), ("telescope", "made", "made"),
)  # fmt: skip
_NAMES = (
    "Amber", "Basalt", "Cedar", "Delta", "Ember", "Falcon", "Garnet", "Harbour", "Indigo",
    "Juniper", "Kestrel", "Lantern", "Marble", "Northern", "Opal", "Pilgrim", "Quarry", "River",
    "Saffron", "Thistle",
)  # fmt: skip


def rows(n: int = 120, seed: int = SEED) -> list[dict[str, Any]]:
    """`n` questions with context (title → sentences), answer and the name that links the two."""
    random = Random(seed)
    people = [f"{a} {b}" for a in _FIRST for b in _LAST]
    things = [(f"{name} {work[0].title()}", work) for name in _NAMES for work in _WORKS]
    random.shuffle(people)
    random.shuffle(things)
    made = []
    for k in range(min(n, len(things))):
        thing, (kind, passive, active) = things[k]
        person, year = people[k], 1700 + random.randrange(250)
        born, lived = random.sample(_TOWNS, 2)
        forms = (
            (f"In which town was the person born who {active} the {thing}?", born),
            (f"In which year was the maker of the {kind} called {thing} born?", str(year)),
            (f"Where did the one by whom the {thing} was {passive} spend old age?", lived),
        )
        question, answer = forms[k % 3]
        first = f"The {thing} is a {kind}. It was {passive} by {person}."
        second = f"{person} was born in {born} in {year}. {person} spent old age in {lived}."
        made.append(
            {
                "id": f"hop-{k:03d}",
                "question": question,
                "answer": answer,
                "bridge": person,
                "context": {
                    "title": [f"The {thing}", person],
                    "sentences": [_sentences(first), _sentences(second)],
                },
            }
        )
    return made


def _sentences(text: str) -> list[str]:
    return [part.strip() + "." for part in text.split(".") if part.strip()]


def bank(rows: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows as the server of a rehearsal knows them."""
    return [
        {
            "question": row["question"],
            "references": [row["answer"]],
            "choices": [],
            "scorer": "f1",
            "bridge": row["bridge"],
        }
        for row in rows
    ]


def write(folder: Path) -> tuple[Path, Path]:
    """Questions and the server's bank as files of JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = (folder / "hops.jsonl", folder / "bank.jsonl")
    made = rows()
    contents: tuple[Sequence[Mapping[str, Any]], ...] = (made, bank(made))
    for path, content in zip(paths, contents, strict=True):
        lines = [json.dumps(row, ensure_ascii=False) for row in content]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths
