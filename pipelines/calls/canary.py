"""Canary prompts: fixed prompts asked at the start and again at the end of a run.

An endpoint that changes under a run (another model behind the name, another
quantisation) answers them differently. They are kept in the ledger under
separate purposes, never enter `responses`, and are asked in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from routeyard.pipelines.calls.request import Request, RequestSettings
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.tables import RESULTS

START, END = "canary:start", "canary:end"


def canary_requests(
    model_id: str, settings: RequestSettings, prompts: Sequence[str], max_tokens: int, run: str
) -> Iterator[Request]:
    """One request per prompt at temperature 0, with the model's other parameters.

    The run's name is part of the key, so that each run asks anew.
    """
    parameters = {k: v for k, v in settings.parameters.items() if k != "max_completion_tokens"}
    limit = "max_completion_tokens" if parameters != settings.parameters else "max_tokens"
    parameters |= {"temperature": 0, "seed": 0, limit: max_tokens}
    asked = replace(settings, parameters=parameters)
    for prompt in prompts:
        messages = [{"role": "user", "content": prompt}]
        yield Request(
            query_id=prompt,
            model_id=model_id,
            settings=asked,
            messages=messages,
            samples=(0,),
            request_hash=f"{run}:{asked.request_hash(messages)}",
        )


def canary_answers(ledger: Ledger) -> pa.Table | None:
    """Canary answers of the newest run that asked any at its end; null without one.

    Columns `model_id`, `prompt`, `phase` (`start`, `end`), `text`, `served_model`.
    """
    rows = []
    newest: str | None = None
    for phase, purpose in (("start", START), ("end", END)):
        for attempt in ledger.attempts(purpose=purpose):
            if attempt.usable:
                rows.append((attempt.run, phase, attempt))
                newest = attempt.run
    if not rows:
        return None
    return pa.Table.from_pylist(
        [
            {
                "model_id": attempt.model_id,
                "prompt": attempt.query_id,
                "phase": phase,
                "text": attempt.text,
                "served_model": attempt.served_model,
            }
            for run, phase, attempt in rows
            if run == newest
        ],
        schema=RESULTS["canary_answers"],
    )
