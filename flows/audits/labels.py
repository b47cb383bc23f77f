"""Labels of a build or a release looked at again: audited, regraded, decided by people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeyard.flows.audits.judged import Judged, built, sealed
from routeyard.flows.workspace.reviews import keep_review, reviews
from routeyard.pipelines.errors import BadInput
from routeyard.schemas import VERDICTS

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.pipelines.label.audit.audit import Audit
    from routeyard.pipelines.label.recipe_scorers import ScorerChange
    from routeyard.pipelines.label.relabel import LabelChanges

#: Bytes of a filled-in queue.
_MOST = 100_000_000


@dataclass(frozen=True)
class LabelAudit:
    """Findings on the labels of a benchmark.

    Attributes:
        losses: Why pairs have no label, as `routeyard.datacards.losses.causes` counts them.
        duplicates_looked_for: Whether a rule looked for near-duplicates.
    """

    audit: Audit
    losses: Sequence[dict[str, Any]]
    duplicates_looked_for: bool


def audit_labels(benchmark: str | Path, workspace: Path = Path("yard")) -> LabelAudit:
    """Labels that should not be trusted, of a built benchmark, its recipe, or a release folder.

    Raises:
        BadInput: there is neither a build up to its labels nor a whole release.
    """
    from routeyard.datacards.losses import causes
    from routeyard.schemas.leaks import looked_for_duplicates

    if (Path(benchmark) / "manifest.json").is_file():
        # What people decided before the release is among its verdicts.
        found, decided = sealed(Path(benchmark)), VERDICTS.empty()
    else:
        found = built(str(benchmark), workspace)
        decided = reviews(workspace, found.name)
    names = ("queries", "responses", "labels", "verdicts", "models")
    tables = {name: found[name] for name in names}
    looked = found.recipe is None or looked_for_duplicates(found.recipe.model_dump(mode="json"))
    return LabelAudit(
        _audited(found, decided, found.tables.get("duplicates")), causes(tables), looked
    )


def _audited(found: Judged, decided: pa.Table, duplicates: pa.Table | None = None) -> Audit:
    from routeyard.pipelines.label.audit.audit import audit
    from routeyard.pipelines.label.verdict_matrix import add

    return audit(
        found["queries"],
        found["responses"],
        add(found["verdicts"], decided),
        found["labels"],
        duplicates,
        policy=None if found.recipe is None else found.recipe.label,
    )


def relabel(
    benchmark: str, workspace: Path = Path("yard"), *, jobs: int = 2, out: Path | None = None
) -> tuple[LabelChanges, Judged, list[ScorerChange]]:
    """What changes when scorers and policy of the recipe as it is now run over stored responses.

    Verdicts of verifiers, judges and people are carried over; the build is not touched. The
    third part lists the sources whose questions another scorer reads now.

    Args:
        out: Folder for the new verdicts and labels and the tables of changes.

    Raises:
        BadInput: there is no build up to its labels.
    """
    from routeyard.flows.workspace.stage_folders import write_table
    from routeyard.pipelines.label.aggregate import decide
    from routeyard.pipelines.label.recipe_scorers import rescored
    from routeyard.pipelines.label.relabel import changes, keep_others
    from routeyard.pipelines.label.rules import file_verdicts
    from routeyard.pipelines.label.verdict_matrix import add
    from routeyard.schemas.recipe import Label

    found = built(benchmark, workspace)
    policy = found.recipe.label if found.recipe else Label()
    queries, responses = found["queries"], found["responses"]
    queries, scorers = rescored(queries, _scorers(found))
    options = policy.model_dump(include={"run_code_without_isolation", "code_modules"})
    ruled = file_verdicts(queries, responses, jobs=jobs, options=options)
    verdicts = keep_others(add(found["verdicts"], reviews(workspace, found.name)), ruled)
    labels = decide(queries, responses, verdicts, policy=policy)
    changed = changes(queries, found["labels"], labels)
    if out is not None:
        tables = {"verdicts": verdicts, "labels": labels, "changed_labels": changed.labels}
        tables |= {"changed_models": changed.models, "changed_tasks": changed.tasks}
        for name, table in tables.items():
            write_table(table, out / f"{name}.parquet")
    return changed, found, scorers


def _scorers(found: Judged) -> dict[str, str]:
    """Source → scorer that the recipe names now; sources whose rows name their own are left out."""
    from routeyard.pipelines.ingest.catalog import from_catalog

    sources = [from_catalog(one) for one in found.recipe.sources] if found.recipe else []
    return {
        one.name: one.scorer
        for one in sources
        if one.scorer and not (one.fields and one.fields.scorer)
    }


class Review:
    """Decisions of one person on the doubtful labels of a build, kept in its workspace.

    Raises:
        BadInput: there is no build up to its labels.
    """

    def __init__(self, benchmark: str, workspace: Path, by: str = "") -> None:
        self.found = built(benchmark, workspace)
        self.name, self.count = self.found.name, 0
        self._workspace, self._by = workspace, by

    def queue(self, limit: int = 200) -> list[dict[str, Any]]:
        """Answers to decide, the most consequential first."""
        from routeyard.pipelines.label.audit.review import review_queue
        from routeyard.pipelines.label.verdict_matrix import add

        found, decided = self.found, reviews(self._workspace, self.name)
        suspects = _audited(found, decided).tables["suspect_gold"]
        # A pruned model or a removed question is nobody's work: no decision on it can show.
        return review_queue(
            found["queries"], found["responses"], add(found["verdicts"], decided),
            found.released_labels, suspects, limit=limit,
        )  # fmt: skip

    def take(self, file: Path) -> tuple[int, Path]:
        """Keep the decisions of a filled-in queue; how many there are, and where they are kept.

        Raises:
            BadInput: the file is not text, or holds no decision.
        """
        from routeyard.pipelines.io.untrusted import short_text
        from routeyard.pipelines.label.audit.review import from_csv

        at = _now("milliseconds")
        try:
            verdicts = from_csv(short_text(file, _MOST), by=self._by, at=at)
        except UnicodeDecodeError as error:
            raise BadInput(f"the file is not text: {error}", where=str(file)) from error
        if not verdicts.num_rows:
            raise BadInput(
                "no decision is filled in", where=str(file), next_step="fill in `decision`"
            )
        return verdicts.num_rows, keep_review(self._workspace, self.name, verdicts, at=at)

    def keep(self, key: tuple[str, str, int], decision: str, note: str) -> None:
        """Keep one decision on (query_id, model_id, sample)."""
        from routeyard.pipelines.label.audit.review import decisions

        at = _now("microseconds")
        one = decisions([(key, decision, note, "")], by=self._by, at=at)
        keep_review(self._workspace, self.name, one, at=at)
        self.count += 1


def _now(precision: str) -> str:
    return datetime.now(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
