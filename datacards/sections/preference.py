"""Card section of the `preference` rule: winners, the τ sweep, entropy's predictive power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.untrusted_text import markdown


def preference_sections(figures: Mapping[str, Any]) -> str:
    """Markdown for each `preference` rule among a release's curation figures, else "".

    Args:
        figures: A manifest's `figures`; `figures["curate"]["rules"]` lists each
            rule with its figures, in order.
    """
    rules = (figures.get("curate") or {}).get("rules") or []
    sections = [
        preference_section(rule["figures"]) for rule in rules if rule["rule"] == "preference"
    ]
    return "\n".join(sections)


def preference_section(figures: Mapping[str, Any]) -> str:
    """Markdown of one rule's figures; every number is taken from them."""
    strong, weak = _cell(figures["strong"]), _cell(figures["weak"])
    lines = [
        f"## Preference pairs: {strong} (strong) and {weak} (weak)",
        "",
        f"{figures['pairs']:,} pairs over {figures['queries']:,} queries. By semantic entropy the "
        "model with the lower entropy wins where δ = |(SE_strong − SE_weak) / SE_strong| exceeds "
        f"τ = {figures['tau']:g}, else the pair is a tie. Answers are clustered by "
        f"{_cell(figures['backend'])}: {figures['entailment_calls']:,} entailment questions were "
        f"asked, the plain loop asks at least {figures['entailment_calls_naive']:,}.",
        "",
        *_table(
            ("decided by", "pairs", "ties", f"{strong} wins", f"{weak} wins"),
            [
                (_cell(basis), row["pairs"], row["ties"], row["strong_wins"], row["weak_wins"])
                for basis, row in figures["pairs_by_basis"].items()
            ],
        ),
    ]
    if figures["no_pair"]:
        reasons = ", ".join(f"{count:,} {_cell(why)}" for why, count in figures["no_pair"].items())
        lines += ["", f"Without a pair: {reasons}; `removals` holds each."]
    sweep = figures["tau_sweep"]
    if sweep and sweep[0]["pairs"]:
        lines += [
            "",
            "Agreement is the share of decided pairs with exactly one right model in which that "
            "model wins.",
            "",
            *_table(
                ("τ", "ties", f"{strong} wins", f"{weak} wins", "comparable", "agreement"),
                [
                    (
                        f"{row['tau']:g}",
                        _percent(row["tie_share"]),
                        row["strong_wins"],
                        row["weak_wins"],
                        row["comparable"],
                        _percent(row["agreement"]),
                    )
                    for row in sweep
                ],
            ),
        ]
    if figures["predictive_power"]:
        lines += [
            "",
            "How well entropy tells a wrong majority answer from a right one (AUROC; 0.5 is "
            "chance, – where all are right or all wrong):",
            "",
            *_table(
                ("model", "estimator", "queries", "wrong", "AUROC"),
                [
                    (
                        _cell(row["model_id"]),
                        _cell(row["estimator"]),
                        row["queries"],
                        row["wrong"],
                        "–" if row["auroc"] is None else f"{row['auroc']:.3f}",
                    )
                    for row in figures["predictive_power"]
                ],
            ),
        ]
    return "\n".join([*lines, ""])


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1)]
    cells = [[f"{value:,}" if isinstance(value, int) else value for value in row] for row in rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in (*lines, *cells)]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _cell(value: object) -> str:
    """Text that stays in one cell and makes no markup of its own."""
    return markdown(str(value))
