"""Verifiers: small models, such as xVerify, trained to compare an answer with its reference.

One user message holds question, output and reference; the model says `Correct` or
`Incorrect`. Everything else, an outage included, is an `error` verdict after bounded
retries. Temperature 0.1 and top_p 0.7 are the ones that xVerify was published with.

The xVerify models (0.5B-I, 3B-Ia, 8B-I, 9B-C) and the prompt that they were trained on are
licensed CC BY-NC-ND 4.0, so neither comes with Routeyard: `template` names a file with that
prompt. The prompt `verification` is ours; an xVerify model that is asked with it is warned about
(`Verifier.foreign_prompt`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

import pyarrow as pa

from routeyard.pipelines.calls.prompts import request_for
from routeyard.pipelines.calls.wire.requests_client import RequestsClient
from routeyard.pipelines.label.model_requests import PromptRun, ask_model, settings_of
from routeyard.pipelines.label.templates import load_template
from routeyard.pipelines.label.verdict_matrix import ResponseKey
from routeyard.pipelines.label.verdicts import FiledVerdicts, answers, verdict_table, verdicts_from
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.pipelines.scorers.patterns import patterns
from routeyard.schemas.recipe.verifier import Verifier

_RE = patterns("verdict_replies")


#: What a prompt shows.
PLACES = frozenset({"question", "answer", "references"})
#: Characters of a reply that are read; a verdict is one word.
_MOST = 20_000


def verdict_in(text: str) -> str | None:
    """`correct` or `incorrect` of a verifier's reply; null where it says neither, or both.

    Read are the word alone or at the beginning ("Correct. The output matches."), and where it
    is announced or bracketed ("Judgement: [Incorrect]"). Thoughts do not count.
    """
    text = without_thoughts(text).strip()[-_MOST:]
    first = _RE["first"].match(text)
    said = {found[1].lower() for found in _RE["marked"].finditer(text)}
    if first:
        said.add(first[1].lower())
    return said.pop() if len(said) == 1 else None


def without_thoughts(text: str) -> str:
    """The text behind its `<think>` blocks; the whole where nothing is behind them."""
    rest = _RE["thought"].sub("", text) if "</think" in text else text
    return rest if rest.strip() else text


def alternatives(references: Sequence[str]) -> str:
    """One reference as it is; several as a list that says that any of them is right."""
    if len(references) <= 1:
        return "".join(references)
    listed = "\n".join(f"{number}. {one}" for number, one in enumerate(references, start=1))
    return f"any one of these {len(references)} alternatives:\n{listed}"


def verify(
    queries: pa.Table,
    responses: pa.Table,
    verifier: Verifier,
    ledger: Ledger,
    *,
    only: Iterable[ResponseKey] | None = None,
    **how: Unpack[PromptRun],
) -> FiledVerdicts:
    """Verdicts of `xverify:<name>` on responses that hold a text; the version names the prompt.

    What the ledger already answers is not asked again, so a stopped run resumes.
    A response that was not asked about (budget, outage) gets no verdict.
    """
    template = load_template("verification", verifier.template, names=PLACES)
    scorer, version = f"xverify:{verifier.name}", template.version
    settings = settings_of(verifier, temperature=verifier.temperature, top_p=verifier.top_p)
    asked = []
    for answer in answers(queries, responses, only):
        prompt = template.fill(
            {
                "question": answer.question,
                "answer": without_thoughts(answer.text),
                "references": alternatives(answer.references),
            }
        )
        asked.append((answer, request_for(settings, scorer, answer.key[0], prompt)))
    results = ask_model(
        [request for _, request in asked],
        verifier,
        ledger,
        purpose="verify",
        read=verdict_in,
        transport=RequestsClient,
        **how,
    )
    rows = verdicts_from(
        asked, results, scorer, version, lambda answer, text: {"outcome": verdict_in(text)}
    )
    return FiledVerdicts(verdict_table(rows), results.figures)
