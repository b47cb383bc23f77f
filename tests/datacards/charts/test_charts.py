"""Charts: names, units, stable bytes, and labels that do not touch."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest

from routeyard.datacards import charts as bars
from routeyard.datacards import charts as grids
from routeyard.datacards import charts as lines
from routeyard.datacards.charts import (
    COLOURS,
    PAGE,
    SIDES,
    _box,
    accuracy_bars,
    colours,
    cost_accuracy,
    frontier,
    place,
    short,
)

NASTY = "\x00\x1b\ufffe</svg><script>alert(1)</script> clip1 url(#clip1) 'x' \"y\" \\ {{7*7}}"


def pool(n: int) -> list[dict[str, object]]:
    chance = random.Random(n)
    return [
        {
            "model_id": f"org{k % 9}/model-{k}-{chance.choice(['it', 'chat-v0.2-long-name'])}",
            "accuracy": chance.uniform(0.3, 0.9),
            "cost": 10 ** chance.uniform(-3, 1.5),
        }
        for k in range(n)
    ]


def ids(models: list[dict[str, object]]) -> list[str]:
    return [str(row["model_id"]) for row in models]


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter() if node.tag.endswith("text")]


@pytest.mark.parametrize("n", [3, 9, 43, 112])
def test_every_model_is_named_on_its_bar_and_axes_have_titles_and_units(n: int) -> None:
    models = pool(n)
    svg = accuracy_bars([{**row, "oracle": 0.95} for row in models], pool=ids(models))
    shown = texts(svg)
    assert {short(str(row["model_id"])) for row in models} <= set(shown)
    assert "accuracy (share of labelled questions answered right)" in shown
    scatter = texts(cost_accuracy(models, pool=ids(models)))
    assert "mean cost (USD per 1,000 questions, log scale)" in scatter
    assert "accuracy" in scatter


def test_the_oracle_stands_beside_each_model_where_their_questions_differ() -> None:
    same = [{"model_id": m, "accuracy": 0.5, "oracle": 0.8} for m in "ab"]
    assert "per-query oracle" in texts(accuracy_bars(same, pool=ids(same)))
    # b was asked easy questions: one line at 0.8 would stand below its bar.
    apart = [
        {"model_id": "b", "accuracy": 0.9, "oracle": 0.95},
        {"model_id": "a", "accuracy": 0.5, "oracle": 0.8},
    ]
    svg = accuracy_bars(apart, pool=ids(apart))
    assert "per-query oracle on the model's questions" in texts(svg)
    assert "per-query oracle" not in texts(svg)


def test_labels_touch_neither_each_other_nor_a_sign_nor_what_is_blocked() -> None:
    chance = random.Random(1)
    points = [
        (chance.uniform(0, 560), chance.uniform(0, 380), "model-name" * 2) for _ in range(112)
    ]
    wall = (200.0, 0.0, 202.0, 380.0)
    placed = [None if k is None else SIDES[k] for k in place(points, 560, 380, blocked=[wall])]
    boxes = [
        _box(x + where[1], y + where[2], label, where[0])
        for (x, y, label), where in zip(points, placed, strict=True)
        if where is not None
    ]
    assert len(boxes) > 5
    for a, b in combinations([*boxes, wall], 2):
        assert not (a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3])


def test_the_same_rows_give_the_same_bytes_whatever_was_drawn_before() -> None:
    first = cost_accuracy(pool(9), pool=ids(pool(9)), name="one")
    accuracy_bars(pool(3), pool=ids(pool(3)))
    assert cost_accuracy(pool(9), pool=ids(pool(9)), name="one") == first
    found = re.findall(r' id="([^"]*)"', first)
    assert all(one.startswith("one-") for one in found)


@pytest.mark.parametrize("look", [PAGE])
def test_hostile_names_stay_text(look) -> None:
    models = [
        {"model_id": NASTY, "accuracy": 0.5, "cost": 1.0},
        {"model_id": "b", "accuracy": 0.6, "cost": 2.0},
    ]
    drawn = [
        accuracy_bars(models, pool=ids(models), look=look),
        cost_accuracy(models, pool=ids(models), look=look),
        grids.heatmap([(NASTY, NASTY, 0.5)], name="h", title=NASTY, rows=[NASTY],
                      columns=[NASTY], value="v", of=("a", "b"), look=look),
        bars.bars([{"name": NASTY, "value": 1.0}], name="b", title=NASTY, of="a", value="v",
                  look=look),
        bars.shares([{"router": NASTY, "model_id": NASTY, "share": 1.0}], name="s", title="t",
                    of="router", models=[NASTY], look=look),
        bars.changes([{"router": NASTY, "group": NASTY, "change": 0.1, "low": 0.0, "high": 0.2}],
                     name="g", title="t", of="group", value="v", routers=[NASTY], look=look),
        lines.curves([{"router": NASTY, "point": k, "x": 1.0 + k, "y": 0.5} for k in range(3)],
                     name="c", title="t", x="x", y="y", log=True, look=look),
    ]  # fmt: skip
    for svg in drawn:
        root = ET.fromstring(svg)
        assert not [node for node in root.iter() if node.tag.endswith("script")]
        assert "alert(1)" in svg  # the name is shown, as text
        assert "49" not in "".join(t for t in texts(svg) if "7*7" in t)


def test_a_model_keeps_its_colour_and_48_are_told_apart() -> None:
    names = [f"m{k:03}" for k in range(112)]
    found = colours(names)
    assert colours(reversed(names)) == found
    assert len({found[name] for name in names[:48]}) == 48


def test_a_model_keeps_its_colour_where_others_of_its_pool_are_not_drawn() -> None:
    models = pool(5)
    whole = dict.fromkeys(ids(models))
    last = max(whole)
    alone = [row for row in models if row["model_id"] == last]
    hue = colours(whole)[last][0]
    assert hue != colours([last])[last][0]
    for svg in (accuracy_bars(alone, pool=whole), cost_accuracy(alone, pool=whole)):
        assert f'fill="{hue}"' in svg


def test_models_of_one_hue_are_told_apart_in_a_bar() -> None:
    names = [f"m{k:02}" for k in range(9)]
    rows = [{"router": "r", "model_id": name, "share": 1 / 9} for name in names]
    svg = bars.shares(rows, name="s", title="t", of="router", models=names, look=PAGE)
    marks = [node for node in ET.fromstring(svg).iter() if "data-says" in node.attrib]
    looks = {node.attrib["fill"] for node in marks}
    assert len(looks) == len(marks) == 9


def test_every_mark_of_a_curve_carries_its_series() -> None:
    points = [
        {"router": name, "point": k, "x": 1.0 + k, "y": 0.5, "low": 0.4, "high": 0.6}
        for name in ("b", "oracle", "a|1")
        for k in range(3)
    ]
    svg = lines.curves(points, name="c", title="t", x="x", y="y", legend=False, look=PAGE)
    marks = [node for node in ET.fromstring(svg).iter() if "data-series" in node.attrib]
    # A band, a line and three dots each; references come last.
    assert sorted(node.attrib["data-series"] for node in marks) == sorted("012" * 5)
    said = {node.attrib["data-series"]: node.attrib.get("data-says", "") for node in marks}
    assert [said[k].split(":")[0] for k in "012"] == ["a|1", "b", "oracle"]


def test_points_that_stand_apart_are_not_joined() -> None:
    points = [
        {"router": name, "point": k, "x": float(k), "y": 0.1 * k}
        for name in ("routers", "oracle")
        for k in range(3)
    ]
    for apart, per_series in (((), [4, 4]), (("routers",), [3, 4])):
        svg = lines.curves(
            points, name="c", title="t", x="x", y="y", legend=False, apart=apart, look=PAGE
        )
        marks = [n.attrib.get("data-series") for n in ET.fromstring(svg).iter()]
        # Three dots each and, where they are joined, a line; references come last.
        assert [marks.count("0"), marks.count("1")] == per_series


def test_hues_read_on_white_and_on_the_dark_page() -> None:
    def light(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in COLOURS:
        for page in ("#ffffff", "#14181d"):
            a, b = sorted([light(colour), light(page)])
            assert (b + 0.05) / (a + 0.05) >= 3, (colour, page)


def test_frontier_is_what_nothing_cheaper_beats() -> None:
    rows = [
        {"model_id": "a", "cost": 1.0, "accuracy": 0.5},
        {"model_id": "b", "cost": 2.0, "accuracy": 0.4},
        {"model_id": "c", "cost": 3.0, "accuracy": 0.6},
        {"model_id": "d", "cost": 3.0, "accuracy": 0.6},
    ]
    assert frontier(rows) == ["a", "c"]
