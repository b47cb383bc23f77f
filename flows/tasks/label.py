"""Verdicts of verifiers and judges, and the labels that the recipe's policy makes of all."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeyard.flows.ledgers import open_ledger
from routeyard.flows.tasks.collect import check_refused
from routeyard.flows.workspace import (
    BuildContext,
    PendingAnswers,
    StageResult,
    StageWork,
    content,
    read,
    read_shards,
    review_files,
    reviews,
    write_table,
)
from routeyard.pipelines.common.errors import GateFailed
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe import Collect, Label

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.pipelines.label.policies import FiledVerdicts

# Rule verdicts over one model's responses, and decisions of people.


def scorer_modules(queries: Path) -> list[str]:
    """Modules of the scorers that a table of queries names."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from routeyard.pipelines.label.scorers import SCORERS
    from routeyard.schemas.statuses import GIVEN

    named = pc.unique(pq.read_table(queries, columns=["scorer"]).column("scorer"))
    return SCORERS.modules([GIVEN, *named.to_pylist()])


def score_responses(
    context: BuildContext, *, label: Label, queries: StageResult, responses: Path
) -> StageWork:
    """Verdicts of the queries' scorers over one model's response file."""
    import pyarrow.parquet as pq

    from routeyard.pipelines.label.rules import file_verdicts, versions

    named = pq.read_table(queries.path("queries"), columns=["scorer"]).column("scorer")
    isolation = label.run_code_without_isolation

    def make(folder: Path) -> Mapping[str, Any]:
        verdicts = file_verdicts(
            read(queries, "queries"),
            read_shards([responses], "responses"),
            options={
                "run_code_without_isolation": isolation,
                "code_modules": label.code_modules,
            },
        )
        write_table(verdicts, folder / "verdicts.parquet")
        return {"verdicts": verdicts.num_rows}

    return StageWork(
        {"run_code_without_isolation": isolation, "scorers": versions(named)},
        {"queries": queries.fingerprint, "responses": content([responses])},
        make,
        scorer_modules(queries.path("queries")),
    )


def read_reviews(context: BuildContext) -> StageWork:
    """What people decided (`routeyard review`), as one more file of verdicts."""

    def make(folder: Path) -> Mapping[str, Any]:
        decisions = reviews(context.root, context.benchmark)
        write_table(decisions, folder / "verdicts.parquet")
        return {"decisions": decisions.num_rows}

    files = review_files(context.root, context.benchmark)
    return StageWork({"benchmark": context.benchmark}, {"reviews": content(files)}, make)


def ask_judges(
    context: BuildContext,
    *,
    label: Label,
    collect: Collect,
    queries: StageResult,
    responses: StageResult,
    verdicts: Sequence[StageResult],
    reviews: StageResult | None,
) -> StageWork | PendingAnswers:
    """All verdicts, with those of verifiers and judges that the policies still want."""
    from routeyard.pipelines.label.judges import ask_verifiers_and_judges
    from routeyard.pipelines.release.manifest import content

    questions = read(queries, "queries")
    answers = read_shards(responses.parts("responses"), "responses")
    filed = [*verdicts, *([reviews] if reviews else [])]
    known = read_shards([item.path("verdicts") for item in filed], "verdicts")

    def asked(*, send: bool) -> FiledVerdicts:
        how: dict[str, Any] = {"run": uuid.uuid4().hex, "send": send}
        with open_ledger(context.root) as ledger:
            return ask_verifiers_and_judges(
                questions,
                answers,
                known,
                policy=label,
                ledger=ledger,
                benchmark=context.benchmark,
                **how,
            )

    def work(filed: FiledVerdicts) -> StageWork:
        def make(folder: Path) -> Mapping[str, Any]:
            write_table(filed.verdicts, folder / "verdicts.parquet")
            return {"heard": dict(filed.figures)}

        inputs = {"queries": queries.fingerprint, "verdicts": content(filed.verdicts)}
        return StageWork(label.model_dump(mode="json"), inputs, make)

    stored = asked(send=False)
    missing = sum(figure["missing"] for figure in stored.figures.values())

    def ask() -> StageWork:
        filed = asked(send=True)
        served = {f"xverify:{item.name}": item.provider for item in label.verifiers}
        served |= {f"judge:{judge.name}": judge.provider for judge in label.judges}
        refused = {k: words for k, v in filed.figures.items() if (words := v.get("refusal"))}
        if refused:
            left = {name: filed.figures[name]["missing"] for name in refused}
            wanted = answers.num_rows * len(served)
            check_refused(context, refused, left, served, collect, wanted, "verdicts")
        return work(filed)

    return PendingAnswers(missing, ask) if missing else work(stored)


def lines_of_judges(figures: Mapping[str, Any]) -> list[str]:
    """One line per verifier and judge: how many were asked, and why it stopped."""
    lines = []
    for name, item in sorted(figures["heard"].items()):
        stopped = f", stopped: {item['stopped']}" if item.get("stopped") else ""
        lines.append(
            f"{name}: {item['asked']:,} asked, {item['failed']:,} without an answer{stopped}"
        )
    return lines


def decide_labels(
    context: BuildContext,
    *,
    label: Label,
    queries: StageResult,
    responses: StageResult,
    verdicts: Sequence[StageResult],
    reviews: StageResult | None = None,
    judged: StageResult | None = None,
) -> StageWork:
    """Verdicts → labels, by the recipe's policy.

    Args:
        judged: All verdicts, where verifiers or judges were asked.
    """
    from routeyard.pipelines.audit.labels import label_gates
    from routeyard.pipelines.label.policies import decide

    made = [judged] if judged is not None else [*verdicts, *([reviews] if reviews else [])]

    def make(folder: Path) -> Mapping[str, Any]:
        filed = read_shards([item.path("verdicts") for item in made], "verdicts")
        answers = read_shards(responses.parts("responses"), "responses")
        asked = read(queries, "queries")
        labels = decide(asked, answers, filed, policy=label)
        undecided = labels.column("score").null_count
        if undecided == labels.num_rows:
            _refuse_errors(filed)
        write_table(filed, folder / "verdicts.parquet")
        write_table(labels, folder / "labels.parquet")
        gates = label_gates(asked, answers, filed, labels, label)
        counts = {"labels": labels.num_rows, "undecided": undecided, "verdicts": filed.num_rows}
        return {**counts, "stops": gates.stops, "notes": gates.notes}

    inputs = {
        "queries": queries.fingerprint,
        "responses": responses.fingerprint,
        "verdicts": ",".join(item.fingerprint for item in made),
    }
    uses = scorer_modules(queries.path("queries"))
    return StageWork(label.model_dump(mode="json"), inputs, make, uses)


def check_labels(context: BuildContext, labelled: StageResult) -> None:
    """Stop where too many answers are undecided, or a rule contradicts a recording's grades.

    Raises:
        GateFailed: names task, model, share or examples, and what to write in the recipe.
    """
    stops: list[dict[str, str]] = labelled.figures.get("stops") or []
    if not stops:
        return
    more = f" (and {len(stops) - 1} more such tasks)" if len(stops) > 1 else ""
    raise GateFailed(
        stops[0]["what"] + more,
        where=f"benchmark {context.benchmark}; {labelled.folder}",
        next_step=f"{stops[0]['next_step']}; `routeyard review` shows the answers, and no model is "
        "asked again",
    )


def _refuse_errors(filed: pa.Table) -> None:
    """Stop where no answer has a label because scorers failed: nothing after it could say why.

    Raises:
        BadInput: names the scorers, how often each failed, and its most frequent error.
    """
    columns = filed.select(["query_id", "scorer", "outcome", "reason"])
    failed = [row for row in columns.to_pylist() if row["outcome"] == "error"]
    if not failed:
        return
    per_scorer = Counter(row["scorer"] for row in failed)
    named = ", ".join(f"{name!r} ({count:,} errors)" for name, count in sorted(per_scorer.items()))
    (scorer, reason), _ = Counter(
        (row["scorer"], " ".join((row["reason"] or "no reason given").split())[:200])
        for row in failed
    ).most_common(1)[0]
    raise BadInput(
        f"no answer has a label: scorer {named} failed on every question, most often {reason!r}",
        where=f"scorer {scorer!r}, e.g. question {failed[0]['query_id']}",
        next_step="mend fields.references of its source or choose another scorer; the answers "
        "are kept, and no model is asked again",
    )
