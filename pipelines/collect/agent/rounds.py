"""Asks trajectories step by step: a round asks the next step of each, and then looks what came.

A step is a call like any other: claimed, within budget and limits, kept before it counts, and
found again by its hash. So a run that is stopped goes on where it was, and two members of the
pool that begin alike pay for what they share once.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from routeyard.pipelines.calls.budget import BudgetLedger
from routeyard.pipelines.calls.known_answers import KnownAnswers, notes
from routeyard.pipelines.calls.progress import OnProgress
from routeyard.pipelines.calls.request import Message, Request, RequestSettings
from routeyard.pipelines.calls.runner import RunResult, run_requests
from routeyard.pipelines.collect.agent import replies as words
from routeyard.pipelines.collect.agent.search import Corpus
from routeyard.pipelines.collect.agent.trajectory import Trajectory
from routeyard.pipelines.collect.missing import settles, unanswered
from routeyard.pipelines.collect.model_prompts import ModelPrompts
from routeyard.pipelines.collect.settings import (
    check_model,
    model_notes,
    provider_of,
    queue_of,
    settings_of,
    timeouts_of,
)
from routeyard.pipelines.ledger.answer_keys import AnswerKey, SettledKey
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe.agent import Agent
from routeyard.schemas.recipe.collect import Collect
from routeyard.schemas.recipe.pool import Pool

PURPOSE = "agent"


@dataclass(frozen=True)
class AgentRun:
    """The state of the trajectories.

    Attributes:
        missing: Model → steps that asking again may bring; trajectories behind them wait.
        refused: Model → what came back where a key, an address or the model was refused.
        stopped: Why nothing more was asked in this run, per model or for all.
        out_of_budget: Nothing but the budget keeps the missing steps away.
    """

    trajectories: Sequence[Trajectory]
    missing: Mapping[str, int]
    stopped: tuple[str, ...] = ()
    out_of_budget: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)


def trajectories_of(queries: pa.Table, pool: Pool, collect: Collect) -> list[Trajectory]:
    """All that the recipe wants, before any step: member by member, question by question."""
    agent = collect.agent
    assert agent is not None
    ids = queries.column("query_id").to_pylist()
    whole = {model.model_id: model for model in pool.models}
    begun = []
    for member in pool.models:
        # A relay's question is put in the words of the model that begins.
        first = member if member.relay is None else whole[member.relay.first]
        asked = ModelPrompts(queries, first, collect)
        asked.check_images(range(len(ids)))
        told = {"role": "system", "content": words.system(agent, asked.system)}
        samples = member.samples or asked.samples
        for row, query_id in enumerate(ids):
            opening: list[Message] = [told, {"role": "user", "content": asked.prompt(row)}]
            begun += [Trajectory(query_id, member, k, opening) for k in range(samples)]
    return begun


def walk(
    queries: pa.Table,
    pool: Pool,
    collect: Collect,
    ledger: Ledger,
    corpus: Corpus,
    *,
    benchmark: str = "",
    send: bool = True,
    on_progress: OnProgress | None = None,
) -> AgentRun:
    """Ask every trajectory to its end, as far as answers can be had.

    Args:
        queries: `query_id`, `prompt` and what frames of the pool use.
        send: False only looks at what the ledger holds.

    Raises:
        RecipeError: a model names no provider, or a budget is set and a worst case is unknown.
        BadInput: a provider's key is not set. DiskFull: the ledger can keep no more.
    """
    agent = collect.agent
    assert agent is not None
    runner = _StepRunner(pool, collect, agent, ledger, benchmark, on_progress)
    every = trajectories_of(queries, pool, collect)
    missing: dict[str, int] = {}

    async def rounds() -> None:
        for number in range(agent.steps):
            waiting = [one for one in every if not one.ended and len(one.steps) == number]
            for model_id, group in _by_actor(waiting).items():
                missing[model_id] = missing.get(model_id, 0)
                runner.prepare(model_id, group, last=number + 1 == agent.steps)
            if send:
                await runner.send()
            for model_id, group in _by_actor(waiting).items():
                missing[model_id] += runner.take(model_id, group, corpus)

    # One event loop for all rounds: they share a budget.
    asyncio.run(rounds())
    left = {name: count for name, count in missing.items() if count}
    refused = {name: words for name, words in runner.refused.items() if name in left}
    return AgentRun(every, left, tuple(sorted(runner.stopped)), runner.out_of_budget, refused)


def _by_actor(waiting: Sequence[Trajectory]) -> dict[str, list[Trajectory]]:
    groups: dict[str, list[Trajectory]] = {}
    for one in waiting:
        groups.setdefault(one.actor, []).append(one)
    return groups


class _StepRunner:
    """Asks one round after the other, with one budget and one run for all."""

    def __init__(
        self,
        pool: Pool,
        collect: Collect,
        agent: Agent,
        ledger: Ledger,
        benchmark: str,
        on_progress: OnProgress | None,
    ) -> None:
        self._collect, self._agent, self._ledger = collect, agent, ledger
        self._benchmark, self._on_progress = benchmark, on_progress
        self._models = {m.model_id: m for m in pool.models if m.relay is None}
        self._providers = {name: provider_of(m, pool) for name, m in self._models.items()}
        for model in self._models.values():
            check_model(model, collect)
        self._run = uuid.uuid4().hex[:12]
        kinds = [self._settings(name, last=last) for name in self._models for last in (False, True)]
        self._budget = BudgetLedger(collect.budget, ledger, benchmark)
        ledger.remember(notes(ledger, kinds, benchmark) | model_notes(self._models.values()))
        self._asked: dict[str, tuple[RequestSettings, KnownAnswers, list[list[Message]]]] = {}
        self._open: dict[str, list[Request]] = {}
        self._after = 0
        self.stopped: set[str] = set()
        self.out_of_budget = False
        self.refused: dict[str, str] = {}
        #: Models that answered anything.
        self._answering: set[str] = set()

    def _settings(self, model_id: str, *, last: bool) -> RequestSettings:
        model, provider = self._models[model_id], self._providers[model_id]
        plain = settings_of(model, provider, self._collect)
        if self._agent.calls == "text":
            return plain
        tools: dict[str, Any] = {"tools": words.TOOLS}
        # Still declared, as providers want it of conversations that called tools.
        tools |= {"tool_choice": "none"} if last else {}
        return replace(plain, parameters={**plain.parameters, **tools})

    def prepare(self, model_id: str, group: Sequence[Trajectory], *, last: bool) -> None:
        """Note what the next steps of these trajectories ask, and what of it is missing."""
        settings = self._settings(model_id, last=last)
        known = KnownAnswers(self._ledger, settings, self._benchmark)
        asked = [one.messages for one in group]
        self._after = self._ledger.position() if not self._open else self._after
        settled = self._settled(model_id, known, asked)
        requests: dict[tuple[str, int], Request] = {}
        for one in group:
            name = settings.request_hash(one.messages)
            row = settled.get((name, one.sample))
            if (name, one.sample) in requests or self._settles(model_id, row):
                continue
            requests[name, one.sample] = Request(
                one.query_id, model_id, settings, one.messages, (one.sample,), name,
                tokens_expected=sum(len(str(m.get("content"))) for m in one.messages) // 4,
                billed=row.billed if row else 0,
            )  # fmt: skip
        self._asked[model_id] = (settings, known, asked)
        self._open[model_id] = list(requests.values())

    async def send(self) -> None:
        """Ask what is missing of this round."""
        collect = self._collect
        queues = [
            queue_of(
                self._models[name],
                self._providers[name],
                collect,
                iter(requests),
                wanted=len(requests),
            )
            for name, requests in self._open.items()
            if requests
        ]
        self._open = {}
        if not queues:
            return
        end: RunResult = await run_requests(
            queues,
            self._ledger,
            after=self._after,
            run=self._run,
            purpose=PURPOSE,
            retry=collect.retry,
            budget=self._budget,
            timeouts=timeouts_of(collect),
            on_progress=self._on_progress,
        )
        paused = [t.paused for t in end.tallies.values() if t.paused]
        self.stopped |= {*([end.stopped] if end.stopped else []), *paused}
        self.out_of_budget |= any(t.out_of_budget for t in end.tallies.values())
        self.refused |= {name: words for name, t in end.tallies.items() if (words := t.refusal)}

    def _settled(
        self, model_id: str, known: KnownAnswers, asked: Sequence[Sequence[Message]]
    ) -> dict[AnswerKey, SettledKey]:
        found = known.settled(asked)
        if any(row.status != "error" for row in found.values()):
            self._answering.add(model_id)
        return found

    def _settles(self, model_id: str, row: SettledKey | None) -> bool:
        """As `missing.settles`; what refuses every step refuses how it is asked."""
        rejected = row is not None and row.status == "error" and row.permanent
        return settles(row, self._collect) and (not rejected or model_id in self._answering)

    def take(self, model_id: str, group: Sequence[Trajectory], corpus: Corpus) -> int:
        """Let trajectories go on with what was answered; how many steps are still missing."""
        settings, known, asked = self._asked.pop(model_id)
        self._open.pop(model_id, None)
        settled, answered = self._settled(model_id, known, asked), known.answered(asked)
        still: set[tuple[str, int]] = set()
        for one in group:
            key = (settings.request_hash(one.messages), one.sample)
            row: SettledKey | None = settled.get(key)
            if row is None or key not in answered or not self._settles(model_id, row):
                still.add(key)
                continue
            given_up = unanswered(row.status, row.billed, self._collect)
            one.take(answered[key], self._agent, corpus, given_up=given_up)
        return len(still)
