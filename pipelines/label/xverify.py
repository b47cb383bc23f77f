"""xVerify: a small model, trained to compare an answer with its reference, as verifier.

One user message holds question, output and reference; the model says `Correct` or
`Incorrect`. Everything else, an outage included, is an `error` verdict after bounded
retries. Temperature 0.1 and top_p 0.7 are the ones the models were published with.

The xVerify models (0.5B-I, 3B-Ia, 8B-I, 9B-C) are licensed CC BY-NC-ND 4.0. Serve one
with any OpenAI-compatible server; their own prompt can be given as a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from routeyard.pipelines.calls.prompts import request_for
from routeyard.pipelines.calls.wire.requests_client import RequestsClient
from routeyard.pipelines.label.model_requests import ask_model, settings_of
from routeyard.pipelines.label.templates import load_template
from routeyard.pipelines.label.verdicts import (
    FiledVerdicts,
    ResponseKey,
    answers,
    verdict_table,
    verdicts_from,
)
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe.verifier import Verifier

_NAMES = frozenset({"question", "answer", "references"})
_SAID = re.compile(r"[\s\[(*_\"'`]{0,10}(correct|incorrect)[\s\])*_\"'`.]{0,10}", re.IGNORECASE)


def verdict_in(text: str) -> str | None:
    """`correct` or `incorrect`, bracketed or in any case; null for anything else."""
    found = _SAID.fullmatch(text)
    return found[1].lower() if found else None


def verify(
    queries: pa.Table,
    responses: pa.Table,
    verifier: Verifier,
    ledger: Ledger,
    *,
    run: str,
    benchmark: str = "",
    only: Iterable[ResponseKey] | None = None,
    send: bool = True,
) -> FiledVerdicts:
    """Verdicts of `xverify:<name>` on responses that hold a text.

    What the ledger already answers is not asked again, so a stopped run resumes.
    A response that was not asked about (budget, outage) gets no verdict.
    """
    template = load_template("xverify", verifier.template, names=_NAMES)
    scorer, version = f"xverify:{verifier.name}", template.version
    settings = settings_of(verifier, temperature=verifier.temperature, top_p=verifier.top_p)
    asked = []
    for answer in answers(queries, responses, only):
        prompt = template.fill(
            {
                "question": answer.question,
                "answer": answer.text,
                "references": "\n".join(answer.references),
            }
        )
        asked.append((answer, request_for(settings, scorer, answer.key[0], prompt)))
    results = ask_model(
        [request for _, request in asked],
        verifier,
        ledger,
        run=run,
        purpose="verify",
        benchmark=benchmark,
        readable=lambda text: verdict_in(text) is not None,
        transport=RequestsClient,
        send=send,
    )
    rows = verdicts_from(
        [(answer, results.answers.get(request.request_hash)) for answer, request in asked],
        scorer,
        version,
        lambda answer, text: {"outcome": verdict_in(text)},
    )
    return FiledVerdicts(verdict_table(rows), results.figures)
