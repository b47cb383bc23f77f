"""What `plan` and `build` give: the figures that `--json` prints, with the main ones by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from routeyard.schemas.notebook import html_card


class StepFigures(dict[str, Any], ABC):
    """Figures by name, shown as a card in a notebook."""

    @abstractmethod
    def _shown(self) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        """Title, main facts and rows of the card."""

    def __repr__(self) -> str:
        title, facts, _ = self._shown()
        told = (f"{name} {value}" for name, value in facts.items() if value is not None)
        return f"{title}: {', '.join(told)}"

    def _repr_html_(self) -> str:
        return html_card(*self._shown())


class BuildPlan(StepFigures):
    """What a build would ask and cost. Unknown figures are None."""

    @property
    def queries(self) -> int:
        """Questions of the benchmark."""
        return int(self["queries"])

    @property
    def calls(self) -> int | None:
        """Requests to models that are still to be sent."""
        return self.get("calls")

    @property
    def estimated_usd(self) -> float | None:
        """What they are expected to cost, in US dollars; None where a price is unknown."""
        return self.get("estimated_usd")

    @property
    def models(self) -> list[dict[str, Any]]:
        """Calls, tokens and US dollars of each model; empty for recorded answers."""
        return list(self.get("models") or [])

    @property
    def notes(self) -> list[str]:
        """What will be lost, not looked for, or cannot be known."""
        return list(self.get("notes") or [])

    def _shown(self) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        cost = self.estimated_usd
        usd = (
            None if cost is None else f"{'simulated ' if self.get('simulated') else ''}${cost:,.4f}"
        )
        facts = {"questions": self.queries, "models": self["models_in_pool"], "calls": self.calls}
        title = f"plan of {self['benchmark']} {self['version']}"
        return title, {**facts, "cost": usd or "unknown", "notes": len(self.notes)}, self.models


class BuildResult(StepFigures):
    """A build: its stages, and the release if it came so far."""

    @property
    def release(self) -> Path | None:
        """Folder of the release; None for a build that stopped at an earlier stage."""
        found = self.get("release")
        return Path(found["path"]) if found else None

    @property
    def stages(self) -> dict[str, dict[str, Any]]:
        """Stage → its fingerprint, whether it was reused, and its figures."""
        found: dict[str, dict[str, Any]] = self["stages"]
        return found

    def _shown(self) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        rows = [{"stage": name, "reused": one["reused"]} for name, one in self.stages.items()]
        path = self.release
        title = "build" if path is None else f"build of {path.parent.name} {path.name}"
        reused = sum(row["reused"] for row in rows)
        facts = {"release": path, "stages": len(rows), "reused": reused}
        return title, facts, rows
