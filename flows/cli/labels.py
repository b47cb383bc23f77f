"""Labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from routeyard.flows.cli.options import (
    YARD,
    Jobs,
    Json,
    Map,
    Models,
    OptionalWrittenPath,
    Output,
    Workspace,
    WrittenWorkspace,
    write_csv,
)
from routeyard.schemas.errors import BadInput
from routeyard.schemas.text import in_line

if TYPE_CHECKING:
    from routeyard.flows.audits import AuditPage
    from routeyard.flows.label_audits import Judged, LabelAudit
    from routeyard.pipelines.audit.answers import AuditCheck
    from routeyard.pipelines.label.rules import LabelChanges, ScorerChange

# `routeyard audit PATH`: what is wrong with results, a release or a submission.


def audit_command(
    path: Annotated[Path | None, typer.Argument()] = None,
    map_: Map = None,
    models: Models = None,
    checks: Annotated[Path | None, typer.Option()] = None,
    list_: Annotated[bool, typer.Option("--list")] = False,
    labels: Annotated[bool, typer.Option("--labels")] = False,
    recipe: str | None = None,
    workspace: Workspace = YARD,
    release: Annotated[Path | None, typer.Option()] = None,
    scheme: str | None = None,
    beside: Annotated[Path | None, typer.Option()] = None,
    reworded: Path | None = None,
    arena: OptionalWrittenPath = None,
    show: Annotated[int, typer.Option(min=0)] = 5,
    out: OptionalWrittenPath = None,
) -> Output:
    """Find what is wrong with results, a release, a workspace or choices.

    Takes a file or a folder of results in any layout, a release, or choices of a router (with
    the --release they were made for: leaks, constants, foreign prices, gaps, repeats). One verdict:
    `clean`, `doubtful` or `defective`. Findings come in the order of what mending them changes:
    pairs of arms that change places first. Each names its rows, and the recipe key that mends it.
    Exits 3 when the verdict is `defective`.

    Of a workspace usage, prices and served models are checked: of all answers in its ledger, of
    the recording that --recipe names, else that of the recipe that was built last. Exits 3 when a
    finding is neither waived by --recipe nor resolved.

    With --labels: labels of a build or of any release that should not be trusted, and why. Looks
    at agreement and confusion of scorers per task, models that cannot be read, runs whose texts
    commit to several answers, constants filled in where nothing was found, references that are
    probably wrong, texts that are no answers (stubs, refusals, cut-off answers, errors of a
    harness, constants), conflicts among near-duplicates, and stored labels that a regrade
    contradicts. Every model's accuracy is printed over all and over readable answers, with the
    interval its doubtful labels leave open.

    Examples:

        routeyard audit results.csv

        routeyard audit results.csv --map arm=engine,question=case,score=ok --checks my_checks

        routeyard audit --list

        routeyard audit yard/releases/demo/1.0.0 --out findings

        routeyard audit choices.csv --release yard/releases/demo/1.0.0 --arena mine-arena.json

        routeyard audit yard --recipe my_benchmark.yaml --json

        routeyard audit zeroeval_gsm --labels --workspace yard --out findings

    Args:
        path: File or folder of results, release, table of choices or workspace; with --labels a
            release, or the name or recipe of a built benchmark.
        map_: Which column of results is what: `arm=COLUMN,question=COLUMN,score=COLUMN`. A column
            may be a path (`usage.prompt_tokens`), a constant (`=gpt-4o`) or an expression of
            recipes; what is not named is guessed, and printed.
        models: Columns of a wide table that hold the scores of one model each.
        checks: Folder of your own checks: `.sql` files, each a head (`-- says:`, `-- severity:`,
            `-- needs:`, `-- mends:`, `-- key:`) and a SELECT over `answers` that gives `row`.
        list_: Print every check, with its SQL where it is SQL.
        labels: Audit the labels.
        recipe: Recipe whose thresholds, prices and waivers count for a workspace.
        release: The release that choices were made for.
        beside: With --release: earlier choices of the same team, to compare with.
        reworded: With --release: what the router chose for the same questions in other words; the
            share that goes to the same model is RouterArena's robustness.
        arena: With --release: also write RouterArena's layout here, if nothing fails; its score
            is read back off the file.
        show: Findings of each kind to print; --json and --out have all.
        out: Folder for the page (`audit.html`, `audit.md`) and `audit.json`, or, with --labels, for
            every table behind the findings as CSV.
    """
    from routeyard.flows.audits import audit_path, audit_submitted, write_page
    from routeyard.pipelines.audit.checks import CHECKS
    from routeyard.pipelines.audit.metering import CHECKS as METERING
    from routeyard.pipelines.audit.own import checks_in
    from routeyard.pipelines.ingest.mapping import parse_map
    from routeyard.pipelines.ingest.results import ROLES

    own = checks_in(checks) if checks is not None else []
    if list_:
        rows = [{k: v for k, v in vars(item).items() if k != "find"} for item in (*CHECKS, *own)]
        others = f"metering, of a workspace: {', '.join(METERING)}"
        return Output(rows, [*map(_listed, (*CHECKS, *own)), others])
    if path is None:
        raise BadInput(
            "missing argument 'path'", where="routeyard audit",
            next_step="name what to audit; `routeyard audit --help` shows options and examples",
        )  # fmt: skip

    metered = recipe is not None or (path / "stages").is_dir() or (path / "ledger").is_dir()
    other = labels or release is not None or metered
    _for_results(path, other=other, checks=bool(own), columns=bool(map_ or models))
    if labels:
        return _labels(str(path), workspace, show, out)
    if release is not None:
        result = audit_submitted(path, release, beside, scheme, arena, reworded)
    elif flags := [n for n, item in {"beside": beside, "scheme": scheme, "arena": arena,
                                    "reworded": reworded}.items() if item is not None]:  # fmt: skip
        raise BadInput(
            f"--{flags[0]} is about choices, and no release is named that they are for",
            next_step="add --release yard/releases/<name>/<version>",
        )
    elif metered:
        return _metering(path, recipe)
    else:
        result = audit_path(path, parse_map(map_, ROLES, models), own)
    if out is not None:
        write_page(result, out)
    return Output(
        result.data,
        map(in_line, _audit_lines(result, show)),
        exit_code=3 if result.verdict == "defective" else 0,
    )


def _for_results(path: Path, *, other: bool, checks: bool, columns: bool) -> None:
    """Refuse options about results where something else is audited."""
    from routeyard.flows.audits import is_import

    known = other or is_import(path) or (path / "manifest.json").is_file()
    if (other and checks) or (known and columns):
        raise BadInput(
            "expected results for --map and --models; results, an import or a release for --checks",
            where=str(path), next_step="leave them out, or --labels, --release and --recipe",
        )  # fmt: skip


def _listed(check: AuditCheck) -> str:
    needs = ", ".join(check.needs) or "nothing"
    head = f"{check.kind}: {check.severity}; needs {needs}; mends {check.mends}; {check.key}"
    return "\n".join([head, *(f"  {line}" for line in check.sql.strip().splitlines())])


def _audit_lines(page: AuditPage, show: int) -> Iterator[str]:
    from routeyard.datacards.reports.health import whom

    looked_at = ", ".join(f"{count:,} {name}" for name, count in page.looked_at.items())
    yield f"{page.title}: {page.verdict}"
    yield f"looked at {page.of}: {looked_at}" if looked_at else f"looked at {page.of}"
    yield from (f"note: {note}" for note in page.notes)
    kinds = Counter(item.kind for item in page.findings)
    shown: Counter[str] = Counter()
    for finding in page.findings:
        shown[finding.kind] += 1
        if shown[finding.kind] > show:
            continue
        yield f"{finding.severity}: {finding.kind}: {whom(finding.about, finding.parts)}"
        yield f"  {finding.says}"
        yield f"  when mended: {finding.effect}; mend with {finding.key}"
        if finding.rows:
            yield f"  rows: {'; '.join(_row(row) for row in finding.rows[:3])}"
        if shown[finding.kind] == show < kinds[finding.kind]:
            yield f"  … and {kinds[finding.kind] - show:,} more of this kind (--show N, or --json)"
    if not page.findings:
        yield "nothing was found"
    if page.not_checked:
        lacking: defaultdict[str, list[str]] = defaultdict(list)
        for name, column in page.not_checked.items():
            lacking[column].append(name)
        yield "not checked, as the source lacks a column"
        yield from (f"  {column}: {', '.join(names)}" for column, names in lacking.items())


def _row(row: dict[str, object]) -> str:
    return str(row.get("at") or ", ".join(f"{k} {v}" for k, v in row.items()))


def _metering(workspace: Path, recipe: str | None) -> Output:
    """Usage, prices and served models of a workspace."""
    from routeyard.flows.metering_audit import audit_workspace
    from routeyard.pipelines.audit.metering import SHOWN

    value = audit_workspace(workspace, recipe)
    whole = [(f, None) for f in value.unresolved] + [(f, w.reason) for f, w in value.waived]
    rows = [asdict(f) | {"waived": why, "at": value.rows(f, SHOWN)} for f, why in whole]
    lines = []
    for finding in value.unresolved:
        more = ", …" if finding.count > 5 else ""
        lines.append(f"{finding.check}: {finding.model_id}: {finding.count:,} {finding.says}")
        lines.append(f"  rows: {', '.join(value.rows(finding, 5))}{more}")
    lines += [f"{f.check}: {f.model_id}: waived: {w.reason}" for f, w in value.waived]
    if not value.unresolved:
        lines.append("metering: no unresolved finding" if value.waived else "metering: no findings")
    if value.of != "the ledger":
        lines.append(f"looked at: {value.of}")
    return Output(rows, lines, exit_code=3 if value.unresolved else 0)


def _labels(benchmark: str, workspace: Path, show: int, out: Path | None) -> Output:
    """Labels of a build or a release that should not be trusted."""
    from routeyard.flows.label_audits import audit_labels

    labels = audit_labels(benchmark, workspace)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, table in labels.audit.tables.items():
            write_csv(table, out / f"{name}.csv")
    data = {
        "findings": [
            {"kind": finding.kind, "about": finding.about, "says": finding.says}
            | ({} if finding.probability is None else {"probability": finding.probability})
            for finding in labels.audit.findings
        ],
        "accuracy": labels.audit.tables.get("accuracy", []),
        "not_labelled": labels.losses,
        "duplicates_looked_for": labels.duplicates_looked_for,
    }
    return Output(data, _audit_labels_lines(labels, show))


def _audit_labels_lines(audit: LabelAudit, show: int) -> Iterator[str]:
    """The report for people: losses, findings by kind, agreement, accuracies."""
    from routeyard.datacards.card import sentence

    if audit.losses:
        yield f"not labelled ({sum(row['pairs'] for row in audit.losses):,} pairs)"
    for row in audit.losses:
        yield f"  {sentence(row)}\n    next: {row['next']}"
    if not audit.duplicates_looked_for:
        yield "near-duplicates were not looked for: the recipe has no rule 'dedup'"
    kinds: dict[str, list[str]] = defaultdict(list)
    for finding in audit.audit.findings:
        kinds[finding.kind].append(f"{finding.about}: {finding.says}")
    for kind, lines in kinds.items():
        yield f"{kind} ({len(lines)})"
        yield from (f"  {line}" for line in lines[:show])
        if len(lines) > show:
            yield f"  … and {len(lines) - show:,} more (--show N, or --out FOLDER)"
    yield "agreement of scorers"
    for row in audit.audit.tables["agreement"].to_pylist():
        kappa = "undefined" if row["kappa"] is None else f"{row['kappa']:.3f}"
        pair = f"{row['scorer_a']} and {row['scorer_b']}"
        yield f"  {row['task']}: {pair} agree on {row['agree']:.2%} of {row['n']:,}, κ {kappa}"
    yield "accuracy, over readable answers, and what doubtful labels leave open"
    for row in audit.audit.tables["accuracy"].to_pylist():
        yield (
            f"  {row['model_id']}: {percent(row['accuracy'])}, "
            f"readable {percent(row['accuracy_readable'])}, "
            f"[{row['low']:.2%}, {row['high']:.2%}] ({row['doubtful']:,} of {row['n']:,} doubtful)"
        )


def percent(value: float | None) -> str:
    """An accuracy; `undecided` where no label exists."""
    return "undecided" if value is None else f"{value:.2%}"


# `routeyard relabel`.


def relabel_command(
    benchmark: str,
    workspace: Workspace = YARD,
    jobs: Jobs = 2,
    show: Annotated[int, typer.Option(min=0)] = 20,
    out: OptionalWrittenPath = None,
) -> Output:
    """Run scorers and policy again over stored responses.

    What changes is listed. Nothing is asked of any model: the scorers that the recipe names now
    read the stored texts again, verdicts of verifiers, judges and people are carried over, and the
    recipe's policy as it is now decides. Sources whose scorer changed are listed. The build itself
    is not touched; `routeyard build` takes a changed scorer or policy over.

    Examples:

        routeyard relabel zeroeval_gsm

        routeyard relabel recipe.yaml --workspace yard --show 100 --out relabelled

    Args:
        show: Changed labels to print.
        out: Folder for the new verdicts, labels and changes.
    """
    from routeyard.flows.label_audits import relabel

    changed, result, scorers = relabel(benchmark, workspace, jobs=jobs, out=out)
    data = {**changed.figures, "responses": result["responses"].num_rows}
    data |= {"scorers": [scorer._asdict() for scorer in scorers]}
    return Output(data, _relabel_lines(changed, result, scorers, show))


def _relabel_lines(
    changed: LabelChanges, judged: Judged, scorers: list[ScorerChange], show: int
) -> Iterator[str]:
    figures = changed.figures
    for item in scorers:
        yield (
            f"source {item.source!r}: {item.questions:,} questions are read by {item.after!r}, and "
            f"were by {item.before!r}; the models were asked to answer for {item.before!r} "
            "(`routeyard plan` says which prompts change)"
        )
    if judged.recipe is None:
        yield "the recipe is not where it was: the default policy was used"
    yield (
        f"{judged['responses'].num_rows:,} responses read again, no model asked: "
        f"{figures['labels']:,} labels change ({figures['flipped']:,} to another decision), "
        f"{figures['model_ranks']} model ranks, {figures['task_ranks']} task ranks"
    )
    other = [
        row for row in changed.labels.to_pylist() if _decision(row, 0)[0] != _decision(row, 1)[0]
    ]
    for row in other[:show]:
        before, after = (" ".join(_decision(row, side)) for side in (0, 1))
        yield f"  {row['query_id']} {row['model_id']}: {before} → {after}"
    if len(other) > show:
        yield f"  … and {len(other) - show:,} more (--show N, or --out FOLDER)"
    if same := changed.labels.num_rows - len(other):
        yield f"  {same:,} labels keep their score and are decided by another scorer (--out FOLDER)"
    for name, table in (("model_id", changed.models), ("task", changed.tasks)):
        for row in table.to_pylist():
            was, now = (percent(row[f"accuracy_{side}"]) for side in ("before", "after"))
            places = f"rank {row['rank_before']} → {row['rank_after']}"
            fewer = row["labelled_before"] != row["labelled_after"]
            of = f", of {row['labelled_before']} → {row['labelled_after']} decided labels"
            yield f"  {row[name]}: {was} → {now}{of if fewer else ''}, {places}"


def _decision(row: dict[str, Any], side: int) -> tuple[str, str]:
    """A label before (0) or after (1) the change: its score, and who decided it."""
    score, by = (row[f"{name}_{('before', 'after')[side]}"] for name in ("score", "decided_by"))
    if score is None:
        return ("undecided", f"({by})") if by else ("no label", "")
    return f"{score:g}", f"by {by}"


# `routeyard review`.


def review_command(
    benchmark: str,
    workspace: WrittenWorkspace = YARD,
    csv: OptionalWrittenPath = None,
    take: Path | None = None,
    by: str | None = None,
    limit: Annotated[int, typer.Option(min=1)] = 200,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    as_json: Json = False,
) -> Output:
    """Decide doubtful labels by hand, the most consequential first.

    The queue holds labels that are contested, undecided or rest on a suspect
    reference, of the questions and models that curation left, ordered by how many
    pairs of models change their order when the label flips. Without `--csv` or
    `--take` a page opens on this machine (loopback only).
    Decisions are kept in the workspace as verdicts of scorer `human:<name>`; the
    next build, and `routeyard relabel`, take them over every other verdict.

    Examples:

        routeyard review zeroeval_gsm --csv queue.csv

        routeyard review zeroeval_gsm --take queue.csv --by ada

        routeyard review zeroeval_gsm --by ada

    Args:
        csv: Write the queue to this file.
        take: Read decisions from a filled-in file.
        by: Your name, for `--take` and the page.
        limit: Answers in the queue at most.
        port: Port of the page; 0: any.
    """
    from routeyard.flows.console import line
    from routeyard.flows.label_audits import Review
    from routeyard.pipelines.audit.labels import to_csv

    if csv is None and by is None:
        raise BadInput(
            "a decision needs a name",
            next_step="add --by NAME, or --csv FILE to only write the queue",
        )
    review = Review(benchmark, workspace, str(by))
    if take is not None:
        count, path = review.take(take)
        then = f"next: routeyard relabel {review.name} --workspace {workspace}"
        data = {"decisions": count, "path": path}
        return Output(data, [f"{count} decisions kept in {path}", then])
    rows = review.queue(limit)
    if csv is not None:
        csv.write_text(to_csv(rows), encoding="utf-8")
        data = {"answers": len(rows), "path": csv}
        if not rows:
            return Output(
                data,
                f"no answer of {review.name} is in doubt: no label is contested, undecided or "
                f"rests on a suspect reference; {csv} has no row",
            )
        return Output(data, f"{len(rows)} answers to decide in {csv}")
    from routeyard.flows.web import ReviewPage

    page = ReviewPage(rows, review.keep, port=port)
    if as_json:
        line("review", page.address)
    else:
        print(f"{len(rows)} answers to decide: {page.address}  (Ctrl-C when done)", flush=True)
    page.serve()
    return Output({"decisions": review.count}, f"{review.count} decisions kept")


def score_command(
    file: Annotated[Path | None, typer.Argument()] = None,
    scorer: str | None = None,
    output: str | None = None,
    reference: list[str] | None = None,
    choice: list[str] | None = None,
    question: str = "",
) -> Output:
    """Score answers with a rule scorer and show what it read.

    Each line of the file is an object with `scorer`, `references`, `output` and,
    where the scorer needs them, `question`, `choices` and `metadata`. For each
    line one object is printed: `outcome` (`correct`, `incorrect`, `abstain`,
    `error`), `score` (in [0, 1]: F1, METEOR, …; null where nothing was read),
    `extracted`, `span` (characters of the output) and `reason`; with `--json` all
    in one list. Several references are alternatives: one of them suffices.

    Examples:

        routeyard score answers.jsonl

        routeyard score --scorer numeric --reference 18 --output 'So she makes $18. #### 18'

        echo '{"references": ["B"], "choices": ["Rome", "Paris"], "output": "(B)"}' |
        routeyard score --scorer mcq

    Args:
        file: JSONL of answers; standard input when left out or `-`.
        scorer: Scorer for every line, whatever the line names.
        output: One answer to score, instead of a file.
        reference: Accepted answer of `--output`; may be repeated.
        choice: Option of `--output`'s question, in order; repeat it.
        question: Question of `--output`.
    """
    import json
    from itertools import chain

    from routeyard.pipelines.label.scorers.score_answers import one_answer, rows, score_row

    if output is not None:
        answers = iter([one_answer(output, reference or [], choice or [], question)])
    else:
        answers = rows(None if file is None or str(file) == "-" else file)
    first = next(answers, None)
    if first is None:
        raise BadInput(
            "there is no answer to score",
            where="standard input" if file is None or str(file) == "-" else str(file),
            next_step="give --output TEXT --reference TEXT, or one object a line",
        )
    result = (score_row(row, scorer) for row in chain([first], answers))
    return Output(result, (json.dumps(item, ensure_ascii=False) for item in result))
