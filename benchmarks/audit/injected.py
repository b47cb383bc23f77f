"""How many injected faults the audit names with the right kind; `python -m benchmarks audit`."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.audit.faults import FAULTS, replaced
from benchmarks.audit.matrices import QUERIES, matrix
from benchmarks.audit.resubmitted import figures
from routeyard.pipelines.audit.answers import Answers
from routeyard.pipelines.audit.checks import RecordingAudit, audit_recording
from routeyard.schemas.contracts import recording

#: Matrices that faults are put into.
HOSTS = (
    "zeroeval_gsm", "mmlu_pro", "routerdc", "open_llm_leaderboard_v2", "livecodebench_generation",
    "mathvista", "mint_bench_texts", "crux_sample", "omnisbench", "alpaca_eval", "evouna_nq",
)  # fmt: skip
#: Questions of a large matrix with texts that are kept, so that the whole takes minutes.
QUESTIONS = 3_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--faults", nargs="*", default=list(FAULTS))
    parser.add_argument("--each", type=int, default=20, help="faults of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--honest", action="store_true", help="list findings of honest matrices")
    parser.add_argument(
        "--resubmitted", type=int, default=0, metavar="DRAWS",
        help="honest and mended second submissions, over so many draws of test questions",
    )  # fmt: skip
    parser.add_argument("--speed", action="store_true", help="CPU-seconds of two large audits")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Share of the faults that are named, by kind; or findings of every honest matrix; or times."""
    if arguments.speed:
        return {"cpu_s": _speed()}
    if arguments.resubmitted:
        return figures(arguments.resubmitted, arguments.seed)
    if arguments.honest:
        found = {name: _findings(audit_recording(matrix(name))) for name in QUERIES}
        return {"most": max(map(len, found.values())), "findings": found}
    hosts = {name: metered(small(matrix(name))) for name in HOSTS}
    honest = {name: _named(audit_recording(table)) for name, table in hosts.items()}
    rows, missed = [], []
    for fault in arguments.faults:
        number = list(FAULTS).index(fault)  # the same draws whichever kinds are asked for
        inject, needs = FAULTS[fault]
        fit = [name for name, table in hosts.items() if _has(table, needs)]
        named, tried, done = 0, 0, 0
        while done < arguments.each and tried < 10 * arguments.each:
            rng = np.random.default_rng([arguments.seed, number, tried])
            host = fit[tried % len(fit)]
            tried += 1
            try:
                one = inject(hosts[host], rng)
            except (IndexError, ValueError):
                continue  # no arm or suite of this matrix could have the fault
            done += 1
            new = _named(audit_recording(one.table)) - honest[host]
            hit = [f for f in new if f[0] in one.kinds and all(name in f[1] for name in one.about)]
            named += bool(hit)
            print(fault, host, one.how, bool(hit), file=sys.stderr, flush=True)
            if not hit:
                also = sorted({f"{f[0]}: {f[1]}" for f in new})[:3]
                missed.append(
                    {
                        "fault": fault,
                        "host": host,
                        "about": one.about,
                        "how": one.how,
                        "instead": also,
                    }
                )
        rows.append({"fault": fault, "injected": done, "named": named})
    least = min(row["named"] / row["injected"] for row in rows)
    return {"faults": rows, "least_share": least, "missed": missed}


def small(table: pa.Table) -> pa.Table:
    """At most `QUESTIONS` questions, spread over the file, where there are texts."""
    answers = Answers.of(table)
    if not answers.has("text"):
        return table
    step = max(1, -(-answers.n_questions // QUESTIONS))
    return answers.table.filter(pa.array(answers.question % step == 0))


def metered(table: pa.Table) -> pa.Table:
    """With tokens counted off the texts and costs at a price of each arm, where none are known."""
    answers = Answers.of(table)
    if not answers.has("text"):
        return table
    columns = {}
    tokens = answers.numbers("completion_tokens")
    if not answers.has("completion_tokens"):
        # Tokenizers differ: 3 to 5 characters a token, a little noise.
        per = 3.0 + (answers.arm % 5) * 0.5
        noise = 1 + 0.05 * np.sin(np.arange(len(answers)))
        tokens = np.ceil(np.nan_to_num(answers.lengths("text")) / per * noise) + 1
        columns["completion_tokens"] = tokens
    if not answers.has("cost_usd"):
        columns["cost_usd"] = tokens * (0.2 + answers.arm % 7) * 1e-6
    return replaced(answers.table, **columns)


def _has(table: pa.Table, needs: tuple[str, ...]) -> bool:
    answers = Answers.of(table)
    return all(answers.has(name) for name in needs) and bool(
        pc.any(pc.is_valid(table.column("score"))).as_py()
    )


def _named(found: RecordingAudit) -> set[tuple[str, str, str]]:
    """(kind, about, says) of each finding, of findings with parts of each part."""
    return {
        (one.kind, part["about"], part["says"])
        for one in found.findings
        for part in one.parts or ({"about": one.about, "says": one.says},)
    }


def _findings(found: RecordingAudit) -> list[str]:
    """What is more than a note, a line each."""
    told = [one for one in found.findings if one.severity != "note"]
    return [f"{one.kind} | {one.about[:120]} | {one.says[:400]}" for one in told]


def _speed(arms: int = 300, questions: int = 10_000) -> dict[str, float]:
    """CPU-seconds of an audit of MMLU-Pro with its texts, and of 3 million labels without any."""
    rng = np.random.default_rng(0)
    arm, question = (x.ravel() for x in np.meshgrid(range(arms), range(questions), indexing="ij"))
    at = np.linspace(1, -1, arms)[arm] - rng.normal(0, 1, questions)[question]
    plain = recording({
        "arm": pa.array([f"arm{k}" for k in range(arms)]).take(pa.array(arm)),
        "suite": pa.array([f"s{k}" for k in range(20)]).take(pa.array(question % 20)),
        "question": pa.array([f"q{k}" for k in range(questions)]).take(pa.array(question)),
        "score": pa.array((rng.random(len(at)) < 1 / (1 + np.exp(-at))).astype(float)),
    })  # fmt: skip
    found = {}
    for name, table in (("mmlu_pro, texts", matrix("mmlu_pro")), ("3,000,000 labels", plain)):
        began = time.process_time()
        audit_recording(table)
        found[name] = round(time.process_time() - began, 1)
    return found
