"""One question on its way through a member of the pool: who acts next, what came of each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from routeyard.pipelines.collect.agent.replies import AgentReply, after, read
from routeyard.pipelines.collect.agent.search import Corpus
from routeyard.pipelines.ledger.answer_keys import AnsweredKey
from routeyard.pipelines.ledger.attempt import Attempt
from routeyard.schemas.recipe.agent import Agent
from routeyard.schemas.recipe.pool import Model


@dataclass(frozen=True)
class TrajectoryStep:
    """One call: who was asked, what it said and what the search then found."""

    model_id: str
    attempt: Attempt
    attempts: int
    said: AgentReply
    found: tuple[str, ...] = ()


@dataclass
class Trajectory:
    """A question, a member of the pool and a sample number.

    Attributes:
        messages: The conversation so far, which the next step is asked.
        ended: Nothing more is to be asked: an answer, or a step that cannot be had.
        unanswered: The last step was given up, billed too often without an answer.
    """

    query_id: str
    member: Model
    sample: int
    messages: list[Mapping[str, Any]]
    steps: list[TrajectoryStep] = field(default_factory=list)
    ended: bool = False
    unanswered: bool = False

    @property
    def actor(self) -> str:
        """Model that takes the next step."""
        relay = self.member.relay
        if relay is None:
            return self.member.model_id
        return relay.first if len(self.steps) < relay.steps else relay.then

    def take(self, answered: AnsweredKey, agent: Agent, corpus: Corpus, *, given_up: bool) -> None:
        """Go on with the result of the step that was asked.

        Args:
            given_up: It was billed so often without an answer that it is asked no more.
        """
        attempt, number = answered.attempt, len(self.steps)
        said = read(attempt, agent) if attempt.status == "ok" else AgentReply(attempt.text)
        if not said.queries or number + 1 >= agent.steps:
            self.steps.append(TrajectoryStep(self.actor, attempt, answered.attempts, said))
            self.ended, self.unanswered = True, given_up
            return
        found = tuple(
            fault or corpus.shown(query)
            for query, fault in zip(said.queries, said.faults, strict=True)
        )
        actor = self.actor
        self.steps.append(TrajectoryStep(actor, attempt, answered.attempts, said, found))
        self.messages = [
            *self.messages,
            *after(said, found, number, agent, last=number + 2 == agent.steps),
        ]
