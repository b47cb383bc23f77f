"""`RESULTS.md` and its plots: what one run of all benchmarks found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

#: What became of a case that has no figures.
ABSENT = {
    "data": "ROUTEYARD_DATA names no folder of recorded outputs",
    "lm_eval": "lm-evaluation-harness is not installed (`python -m benchmarks peers`)",
}


def write(folder: Path, run: dict[str, Any]) -> None:
    """The page, and its plots in `plots/` beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join([*_head(run), *(line for case in run["cases"] for line in _case(case, run))])
    drawn = draw(folder / "plots", run)
    text += "".join(f"\n![{says}](plots/{name})\n" for name, says in drawn.items())
    (folder / "RESULTS.md").write_text(text.rstrip() + "\n", encoding="utf-8")


def _head(run: dict[str, Any]) -> list[str]:
    on = run["surroundings"]
    versions = ", ".join(f"{name} {v}" for name, v in on["versions"].items() if v)
    return [
        "# Benchmarks: results",
        "",
        "Made by `python -m benchmarks all`; read by `python -m benchmarks compare`.",
        "What users wait for, beside a floor: [FLOORS.md](FLOORS.md).",
        "",
        f"{on['processor']}, {on['cores']} cores, {on['memory_gib']} GiB, {on['system']}, "
        f"Python {on['python']}, {on['measured_on']}.",
        "One thread; medians with the range of the runs; seeds are fixed.",
        "Seconds are CPU-seconds where it says CPU, so that a busy machine changes them little;",
        "ratios are taken within one run.",
        "",
        f"Versions: {versions}.",
        "",
    ]


def _when(case: dict[str, Any], cores: int) -> list[str]:
    """When the case ran, and what a reader has to know where others worked on the same cores."""
    if "on" not in case:
        return []
    runs = "one run" if case["rounds"] == 1 else f"{case['rounds']} runs"
    loads = case.get("loads")
    if not loads:
        return [f"{case['on']}, {runs}.", ""]
    said = f"{case['on']}, {runs}, load average {loads[0]:g} to {loads[-1]:g} on {cores} cores"
    if loads[-1] <= cores:
        return [f"{said}.", ""]
    return [
        f"{said}: **a busy machine**, so rates by the clock (1/s) and their ratios are noisy.",
        "",
    ]


def _case(case: dict[str, Any], run: dict[str, Any]) -> list[str]:
    lines = [f"## {case['title']}", "", *_when(case, run["surroundings"]["cores"])]
    if "failed" in case:
        return [*lines, f"Failed: {case['failed'].splitlines()[-1]}", ""]
    if not case["figures"]:
        why = "; ".join(ABSENT.get(name, name) for name in case["absent"])
        return [*lines, f"Not run here: {why}.", ""]
    lines += ["| figure | median | range |", "| --- | ---: | --- |"]
    for figure in case["figures"]:
        if figure["median"] is None:
            lines.append(f"| {figure['says']} | absent | not installed here |")
            continue
        low, high = number(figure["low"]), number(figure["high"])
        spread = f"{low} to {high}" if low != high else "the same each time"
        spread = spread if figure["runs"] > 1 else "one run"
        shown = f"{number(figure['median'])} {figure['unit']}".strip()
        lines.append(f"| {figure['says']} | {shown} | {spread} |")
    if case["growth"]:
        growth = case["growth"]
        sizes = ", ".join(f"{size:,}" for size in growth["sizes"])
        times = ", ".join(number(one) for one in growth["relative"])
        lines += [
            "",
            f"Growth with `{growth['option']}` {sizes}: time {times} of the first, "
            f"exponent {growth['exponent']:.2f}.",
        ]
    return [*lines, ""]


def number(value: float) -> str:
    """Three significant digits, counts whole."""
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4f}" if 0.9 <= value < 1 else f"{value:.3g}"


def draw(folder: Path, run: dict[str, Any]) -> dict[str, str]:
    """SVG file name → what it shows; nothing where there is nothing to draw."""
    import altair as alt
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    ratios = [
        {"case": f"{case['name']}: {one['says']}", "ratio": one["median"]}
        for case in run["cases"]
        for one in case["figures"]
        if one["ratio"] and one["median"]
    ]
    grown = [
        {
            "case": f"{case['name']} ({case['growth']['exponent']:.2f})",
            "size": size / case["growth"]["sizes"][0],
            "time": time,
        }
        for case in run["cases"]
        if case["growth"]
        for size, time in zip(case["growth"]["sizes"], case["growth"]["relative"], strict=True)
    ]
    drawn: dict[str, str] = {}
    if ratios:
        chart = (
            alt.Chart(pd.DataFrame(ratios))
            .mark_circle(size=80)
            .encode(
                x=alt.X("ratio:Q", scale=alt.Scale(type="log"), title="times as fast (log scale)"),
                y=alt.Y("case:N", sort="-x", title=None, axis=alt.Axis(labelLimit=420)),
            )
        )
        line = (
            alt.Chart(pd.DataFrame({"ratio": [1]})).mark_rule(strokeDash=[4, 4]).encode(x="ratio")
        )
        (line + chart).properties(width=360).save(folder / "ratios.svg")
        drawn["ratios.svg"] = "Speed over each peer, measured in the same run"
    if grown:
        chart = (
            alt.Chart(pd.DataFrame(grown))
            .mark_line(point=True)
            .encode(
                x=alt.X("size:Q", scale=alt.Scale(type="log"), title="size over the smallest"),
                y=alt.Y("time:Q", scale=alt.Scale(type="log"), title="time over the smallest"),
                color=alt.Color("case:N", title="case (exponent)"),
            )
        )
        chart.properties(width=360, height=280).save(folder / "growth.svg")
        drawn["growth.svg"] = "How time grows with size"
    return drawn
