"""An honest recording of six arms, five suites and 60 questions each, to put defects into."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.audit.checks import RecordingAudit, audit_recording
from routeyard.schemas.contracts import RECORDING, recording

ARMS = ("anchor", "birch", "copper", "delta", "ember", "flint")
SUITES = ("algebra", "botany", "chess", "drama", "economics")
QUESTIONS = 60
Columns = dict[str, Any]


def honest(seed: int = 0) -> dict[str, np.ndarray]:
    """Columns, which a test changes."""
    rng = np.random.default_rng(seed)
    arm, suite, question = (
        x.ravel() for x in np.meshgrid(range(6), range(5), range(QUESTIONS), indexing="ij")
    )
    ability = np.array([1.6, 1.1, 0.7, 0.4, 0.0, -0.4])
    ease = np.array([0.2, 0.6, -0.2, 0.4, 0.0])
    hard = rng.normal(0, 1, (5, QUESTIONS))
    p = 1 / (1 + np.exp(-(ability[arm] + ease[suite] - hard[suite, question])))
    tokens = rng.integers(60, 400, len(arm)) + 40 * arm
    price = (1 + arm) * 1e-6

    def named(form: str) -> list[str]:
        return [form.format(SUITES[s], q) for s, q in zip(suite, question, strict=True)]

    words = [f"{ARMS[a]} reasons about {SUITES[s]} {q} " + "step " * int(t / 5)
             for a, s, q, t in zip(arm, suite, question, tokens, strict=True)]  # fmt: skip
    return {
        "arm": np.array(ARMS, dtype=object)[arm],
        "suite": np.array(SUITES, dtype=object)[suite],
        "question": np.array(named("{}-case-{}"), dtype=object),
        "score": (rng.random(len(arm)) < p).astype(float),
        "text": np.array(words, dtype=object),
        "prompt": np.array(named("In {}, what is the value of item {}?"), dtype=object),
        "prompt_tokens": np.full(len(arm), 30.0),
        "completion_tokens": tokens.astype(float),
        "cost_usd": price * (30 + 4 * tokens),
        "latency_s": rng.lognormal(0, 0.3, len(arm)),
    }  # fmt: skip


def of(columns: Columns, arm: str | None = None, suite: str | None = None) -> np.ndarray:
    """Rows of an arm, of a suite, or of an arm on a suite."""
    here = np.ones(len(columns["arm"]), bool)
    for name, value in (("arm", arm), ("suite", suite)):
        here &= value is None or columns[name] == value
    return np.flatnonzero(here)


def large(seed: int = 0) -> Columns:
    """Scores of six arms on five suites of 300 questions, whose difficulty all arms share."""
    rng = np.random.default_rng(seed)
    arm, suite, question = (
        x.ravel() for x in np.meshgrid(range(6), range(5), range(300), indexing="ij")
    )
    hard = rng.normal(0, 3, (5, 300))
    at = np.linspace(1.0, -1.0, 6)[arm] - hard[suite, question]
    return {
        "arm": np.array(ARMS, dtype=object)[arm],
        "suite": np.array(SUITES, dtype=object)[suite],
        "question": np.array([f"{s}-{q}" for s, q in zip(suite, question, strict=True)], object),
        "score": (rng.random(len(arm)) < 1 / (1 + np.exp(-at))).astype(float),
    }


def audited(columns: dict[str, Any], **more: Any) -> RecordingAudit:
    """The audit of columns."""
    made = {
        name: pa.array(list(values), RECORDING.field(name).type, from_pandas=True)
        for name, values in columns.items()
    }
    return audit_recording(recording(made), **more)


def kinds(found: RecordingAudit) -> dict[str, set[str]]:
    """Kind → whom its findings are about, of findings that are more than notes."""
    told: dict[str, set[str]] = {}
    for one in found.findings:
        if one.severity != "note":
            whom = [str(part["about"]) for part in one.parts] or [one.about]
            told.setdefault(one.kind, set()).update(whom)
    return told
