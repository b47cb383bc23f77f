"""Questions answered in several steps, by an agent that may search a local corpus.

`walk` asks step by step, through the same request runner and ledger as everything else.
`after` says what is asked next, `Corpus` what a search finds; `tables_of` makes `responses`
(one row a trajectory) and `steps` of it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.collect.budget import BudgetLedger, OnProgress, Price
from routeyard.pipelines.collect.collect import METERED, OWN, cost_by_price
from routeyard.pipelines.collect.ledger import AnsweredKey, AnswerKey, Attempt, Ledger, SettledKey
from routeyard.pipelines.collect.plan import (
    ModelPrompts,
    check_model,
    model_notes,
    provider_of,
    queue_of,
    settings_of,
    settles,
    timeouts_of,
    unanswered,
)
from routeyard.pipelines.collect.reply import TOOL_CALLS
from routeyard.pipelines.collect.request import Message, Request, RequestSettings
from routeyard.pipelines.collect.runner import RequestRun, run_requests
from routeyard.pipelines.common import files
from routeyard.pipelines.common.mapping import compile_field
from routeyard.pipelines.common.usage import whole_sum
from routeyard.schemas import RESPONSES, STEPS
from routeyard.schemas.errors import BadInput, RecipeError
from routeyard.schemas.recipe.collect import Agent, Collect, Search
from routeyard.schemas.recipe.pool import Model, Pool
from routeyard.schemas.statuses import ANSWERLESS, response_status

# The messages sent to an agent, and how its replies are read: a search, several, or an answer.

#: The tool, as the chat completions API declares it.
TOOLS: list[Mapping[str, Any]] = json.loads(Path(__file__).with_name("tools.json").read_text())
_TOLD = (
    "You answer questions with the help of a search in a small encyclopedia. Search for one thing "
    "at a time; facts often stand in different passages. You may search {searches} at most."
)
_BY_TOOL = " When you know the answer, give it without calling the tool."
_BY_TEXT = (
    ' To search, reply with the one line "Search: " and the words to look for, and nothing else. '
    "When you know the answer, reply with it."
)
#: Characters of a passage that are shown.
SHOWN = 1200
_REPLIES_LAST = "Answer now, as well as you can, without another search."
_LINE = re.compile(r"^\W{0,3}search\W{0,3}:\W{0,2}(?P<query>[^\n]{1,500})", re.I | re.M)


@dataclass(frozen=True)
class AgentReply:
    """What a reply means: `queries` to search for, or else `text` as the answer."""

    text: str | None
    queries: tuple[str, ...] = ()
    #: What was asked of the tool and cannot be done, at the same places as in `queries`.
    faults: tuple[str | None, ...] = ()


def system(agent: Agent, own: str | None) -> str:
    """The system message: the recipe's own first."""
    searches = agent.steps - 1
    instructions = _TOLD.format(searches="once" if searches == 1 else f"{searches} times")
    instructions += _BY_TOOL if agent.calls == "tools" else _BY_TEXT
    return f"{own}\n\n{instructions}" if own else instructions


def read(attempt: Attempt, agent: Agent) -> AgentReply:
    """A reply, read as untrusted: what is no search is an answer."""
    if agent.calls == "text":
        match = _LINE.search(attempt.text or "")
        query = (match["query"].strip(),) if match else ()
        return AgentReply(attempt.text, query, (None,) * len(query))
    if attempt.finish_reason != TOOL_CALLS:
        return AgentReply(attempt.text)
    try:
        said = json.loads(attempt.text or "")
        calls = [_call(item["name"], item["arguments"]) for item in said["tool_calls"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        # A server that calls its plain text a call of tools.
        return AgentReply(attempt.text)
    queries, faults = zip(*calls, strict=True) if calls else ((), ())
    return AgentReply(said.get("content"), queries, faults)


def _call(name: Any, arguments: Any) -> tuple[str, str | None]:
    if name != "search":
        return "", f"There is no tool {str(name)[:40]!r}. The only tool is 'search'."
    try:
        query = json.loads(arguments)["query"]
    except (ValueError, KeyError, TypeError, RecursionError):
        query = None
    if not isinstance(query, str) or not query.strip():
        return "", "The call was not understood: 'search' takes one argument, the text 'query'."
    return query.strip(), None


def after(
    said: AgentReply, results: tuple[str, ...], step: int, agent: Agent, *, last: bool
) -> list[Mapping[str, Any]]:
    """The messages that follow a search: the agent's reply, and what the search found.

    Ids of calls are ours: a server's own would make the same step another request each time.

    Args:
        last: The next step is the last one, which can only answer.
    """
    messages: list[Mapping[str, Any]]
    if agent.calls == "text":
        shown = f"Found:\n\n{results[0]}" + (f"\n\n{_REPLIES_LAST}" if last else "")
        return [
            {"role": "assistant", "content": said.text or ""},
            {"role": "user", "content": shown},
        ]
    ids = [f"call_{step}_{k}" for k in range(len(said.queries))]
    calls = [
        {
            "id": name,
            "type": "function",
            "function": {"name": "search", "arguments": json.dumps({"query": query})},
        }
        for name, query in zip(ids, said.queries, strict=True)
    ]
    messages = [{"role": "assistant", "content": said.text or "", "tool_calls": calls}]
    messages += [
        {"role": "tool", "tool_call_id": name, "content": text}
        for name, text in zip(ids, results, strict=True)
    ]
    return messages + ([{"role": "user", "content": _REPLIES_LAST}] if last else [])


# The corpus that an agent searches: passages, and BM25 over their words.

_WORD = re.compile(r"\w+")
#: Characters of a query that are read.
LONGEST_QUERY = 500


@dataclass(frozen=True, order=True)
class Passage:
    """A text of the corpus; `title` is empty where the text has no title."""

    title: str
    text: str


class Corpus:
    """Passages in a fixed order, searched by BM25 (the `bm25s` library, its Lucene form).

    Equal scores keep the order of the passages, so a search gives the same on every machine.

    Raises:
        BadInput: the library is not installed, or there is no passage.
    """

    def __init__(self, passages: Iterable[Passage], search: Search) -> None:
        try:
            import bm25s
        except ImportError as error:
            raise BadInput(
                f"an agent's search needs the library bm25s ({error})",
                next_step="pip install -c constraints.txt '.[agent]'",
            ) from None
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        self.passages = sorted(set(passages))
        self._search = search
        words = [_words(f"{passage.title} {passage.text}") for passage in self.passages]
        if not any(words):
            raise BadInput(
                "the corpus of the search holds no passage",
                where="collect.agent.search",
                next_step="check 'passages' (or 'file') against the source's columns",
            )
        self._known = {word for result in words for word in result}
        self._bm25 = bm25s.BM25()
        self._bm25.index(words, show_progress=False)

    def find(self, query: str) -> list[Passage]:
        """The best passages that share a word with the query, best first."""
        import numpy as np

        words = [word for word in _words(query[:LONGEST_QUERY]) if word in self._known]
        if not words:
            return []
        scores = self._bm25.get_scores(words)
        best = np.argsort(-scores, kind="stable")[: self._search.results]
        return [self.passages[int(k)] for k in best if scores[k] > 0]

    def shown(self, query: str) -> str:
        """What the tool says: passages with titles, or that none was found."""
        result = self.find(query)
        if not result:
            return "No passage was found. Try other words."
        cut = SHOWN
        return "\n\n".join(
            f"[{k}] {item.title + ': ' if item.title else ''}{item.text[:cut]}"
            for k, item in enumerate(result, 1)
        )


def corpus_of(queries: pa.Table, search: Search, *, base: Path) -> Corpus:
    """The recipe's corpus: passages of the queries' metadata, or of a file.

    Raises:
        BadInput: there is no passage. RecipeError: the expression fails, or gives something else.
    """
    if search.file is not None:
        return Corpus(_of_file(search.file, base), search)
    assert search.passages is not None
    read = compile_field(search.passages, where="collect.agent.search.passages")
    passages: list[Passage] = []
    for text in queries.column("metadata").to_pylist():
        metadata = json.loads(text)
        passages += _passages(read(metadata))
    return Corpus(passages, search)


def _of_file(path: str, base: Path) -> list[Passage]:
    results = []
    for item in files.expand(path, base=base, where="collect.agent.search.file"):
        for row in files.rows(item):
            if not isinstance(row.get("text"), str):
                raise BadInput(
                    "a row of the corpus has no text",
                    where=str(item),
                    next_step="name a file with a column 'text' (and 'title')",
                )
            results.append(Passage(str(row.get("title") or ""), row["text"]))
    return results


def _passages(value: Any) -> list[Passage]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _no_passages(value)
    passages = []
    for item in value:
        if isinstance(item, str):
            passages.append(Passage("", item))
        elif isinstance(item, Sequence) and len(item) == 2 and isinstance(item[0], str):
            text = item[1] if isinstance(item[1], str) else "".join(map(str, item[1]))
            passages.append(Passage(item[0], text.strip()))
        else:
            raise _no_passages(item)
    return passages


def _no_passages(value: Any) -> RecipeError:
    return RecipeError(
        f"'passages' gives {str(value)[:80]!r}",
        where="collect.agent.search",
        next_step="give a list of texts, or of pairs of a title and a text, as in "
        "'{{ zip(context.title, context.sentences) }}'",
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


# One question on its way through a member of the pool: who acts next, what came of each step.


@dataclass(frozen=True)
class TrajectoryStep:
    """One call: who was asked, what it said and what the search then found."""

    model_id: str
    attempt: Attempt
    attempts: int
    said: AgentReply
    results: tuple[str, ...] = ()


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
        results = tuple(
            fault or corpus.shown(query)
            for query, fault in zip(said.queries, said.faults, strict=True)
        )
        actor = self.actor
        self.steps.append(TrajectoryStep(actor, attempt, answered.attempts, said, results))
        self.messages = [
            *self.messages,
            *after(said, results, number, agent, last=number + 2 == agent.steps),
        ]


# Asks trajectories step by step: a round asks the next step of each, and then looks what came.
#
# A step is a call like any other: claimed, within budget and limits, kept before it counts, and
# found again by its hash. So a run that is stopped goes on where it was, and two members of the
# pool that begin alike pay for what they share once.

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
        message = {"role": "system", "content": system(agent, asked.system)}
        samples = member.samples or asked.samples
        for row, query_id in enumerate(ids):
            opening: list[Message] = [message, {"role": "user", "content": asked.prompt(row)}]
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
    missing: Counter[str] = Counter()

    async def rounds() -> None:
        for number in range(agent.steps):
            waiting = [item for item in every if not item.ended and len(item.steps) == number]
            asked = [runner.request(item, last=number + 1 == agent.steps) for item in waiting]
            if send:
                await runner.send(asked)
            missing.update(runner.take(waiting, asked, corpus))

    # One event loop for all rounds: they share a budget.
    asyncio.run(rounds())
    refused = {name: words for name, words in runner.refused.items() if name in missing}
    return AgentRun(every, missing, tuple(sorted(runner.stopped)), runner.out_of_budget, refused)


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
        self._on_progress, self._run = on_progress, uuid.uuid4().hex[:12]
        self._budget = BudgetLedger(collect.budget, ledger, benchmark)
        self._models = {
            m.model_id: (m, provider_of(m, pool)) for m in pool.models if m.relay is None
        }
        #: (model, whether it is the last step) → what a request says beside its messages.
        self._settings: dict[tuple[str, bool], RequestSettings] = {}
        for name, (model, provider) in self._models.items():
            check_model(model, collect)
            plain = settings_of(model, provider, collect)
            tools: dict[str, Any] = {"tools": TOOLS} if agent.calls == "tools" else {}
            # Still declared, as providers want it of conversations that called tools.
            ending = tools and {**tools, "tool_choice": "none"}
            for last, more in ((False, tools), (True, ending)):
                parameters = {**plain.parameters, **more}
                self._settings[name, last] = replace(plain, parameters=parameters)
        ledger.remember(model_notes(model for model, _ in self._models.values()))
        self.stopped: set[str] = set()
        self.out_of_budget = False
        self.refused: dict[str, str] = {}
        #: Models that answered anything.
        self._answering: set[str] = set()

    def request(self, item: Trajectory, *, last: bool) -> Request:
        """What the next step of a trajectory asks."""
        settings = self._settings[item.actor, last]
        return Request(
            item.query_id, item.actor, settings, item.messages, (item.sample,),
            settings.request_hash(item.messages),
            tokens_expected=sum(len(str(m.get("content"))) for m in item.messages) // 4,
        )  # fmt: skip

    async def send(self, asked: Sequence[Request]) -> None:
        """Ask what is missing of this round."""
        after, collect = self._ledger.position(), self._collect
        known = self._settled(asked)
        missing: dict[str, dict[AnswerKey, Request]] = {}
        for request in asked:
            row = known.get(request.keys[0])
            if not self._settles(request, row):
                part = request.with_billed(row.billed if row else 0)
                missing.setdefault(request.model_id, {}).setdefault(request.keys[0], part)
        if not missing:
            return
        queues = [
            queue_of(*self._models[name], collect, iter(requests.values()), wanted=len(requests))
            for name, requests in missing.items()
        ]
        run = RequestRun(
            self._ledger, after, self._run, PURPOSE, collect.retry, self._budget,
            timeouts=timeouts_of(collect), on_progress=self._on_progress,
        )  # fmt: skip
        end = await run_requests(queues, run)
        self.stopped |= {*([end.stopped] if end.stopped else []), *end.paused.values()}
        self.out_of_budget |= any(t.out_of_budget for t in end.tallies.values())
        self.refused |= end.refused

    def take(
        self, waiting: Sequence[Trajectory], asked: Sequence[Request], corpus: Corpus
    ) -> Counter[str]:
        """Let trajectories go on with what was answered; steps still missing, by model."""
        settled = self._settled(asked)
        answered = self._ledger.answered([request.request_hash for request in asked])
        still: set[tuple[str, AnswerKey]] = set()
        for item, request in zip(waiting, asked, strict=True):
            key = request.keys[0]
            if key not in answered or not self._settles(request, settled.get(key)):
                still.add((request.model_id, key))
                continue
            given_up = unanswered(answered[key].attempt.status, answered[key].billed, self._collect)
            item.take(answered[key], self._agent, corpus, given_up=given_up)
        return Counter(model_id for model_id, _ in still)

    def _settled(self, asked: Sequence[Request]) -> dict[AnswerKey, SettledKey]:
        result = self._ledger.settled([request.request_hash for request in asked])
        good = {name for (name, _), row in result.items() if row.status != "error"}
        self._answering |= {item.model_id for item in asked if item.request_hash in good}
        return result

    def _settles(self, request: Request, row: SettledKey | None) -> bool:
        """As `plan.settles`; what refuses every step refuses how it is asked."""
        rejected = row is not None and row.status == "error" and row.permanent
        answering = request.model_id in self._answering
        return settles(row, self._collect) and (not rejected or answering)


# Trajectories as tables: one row of `responses` each, one row of `steps` for each call.

_ORDER = [("model_id", "ascending"), ("query_id", "ascending"), ("sample", "ascending")]


def tables_of(trajectories: Sequence[Trajectory], pool: Pool) -> Mapping[str, pa.Table]:
    """`responses` and `steps` of the trajectories that came to an end.

    A trajectory costs what its steps cost, also where another one paid for the same call; what
    is unknown of one step is unknown of the whole.
    """
    prices = {model.model_id: Price.of_model(model) for model in pool.models}
    ended = [trajectory for trajectory in trajectories if trajectory.ended]
    responses = RESPONSES.from_rows([_response(item, prices) for item in ended])
    steps = STEPS.from_rows(
        [
            _step(item, number, step, prices[step.model_id])
            for item in ended
            for number, step in enumerate(item.steps)
        ]
    )
    return {
        "responses": responses.sort_by(_ORDER),
        "steps": steps.sort_by([*_ORDER, ("step", "ascending")]),
    }


def _response(trajectory: Trajectory, prices: Mapping[str, Price]) -> dict[str, Any]:
    last = trajectory.steps[-1]
    attempt = last.attempt
    costs = [cost_by_price(step.attempt, prices[step.model_id]) for step in trajectory.steps]
    usd = whole_sum([cost["cost_usd"] for cost in costs])
    source = "provider" if all(c["cost_source"] == "provider" for c in costs) else "price_table"
    row: dict[str, Any] = {name: getattr(attempt, name) for name in OWN}
    row |= {
        name: whole_sum([getattr(step.attempt, name) for step in trajectory.steps])
        for name in (*METERED, "latency_s")
    }
    status, text = _outcome(trajectory, last)
    return row | {
        "query_id": trajectory.query_id,
        "model_id": trajectory.member.model_id,
        "sample": trajectory.sample,
        "text": text,
        "status": status,
        "cost_usd": usd,
        "cost_source": None if usd is None else source,
        "attempts": sum(step.attempts for step in trajectory.steps),
        "error": attempt.reason,
    }


def _outcome(trajectory: Trajectory, last: TrajectoryStep) -> tuple[str, str | None]:
    """Status and text of the whole: its last step's, unless that still wanted to search."""
    if trajectory.unanswered:
        return "unanswered", None
    if last.attempt.status != "ok":
        return _status(last.attempt), last.attempt.text
    if last.said.queries:
        # The steps are used up and it did not answer: cut off, as by a limit of tokens.
        return "truncated", last.said.text or ""
    return response_status("ok", last.said.text), last.said.text


def _status(attempt: Attempt) -> str:
    return response_status(attempt.status, attempt.text, attempt.error_class)


def _step(trajectory: Trajectory, index: int, step: TrajectoryStep, price: Price) -> dict[str, Any]:
    attempt, said = step.attempt, step.said
    last = step is trajectory.steps[-1]
    status = "unanswered" if trajectory.unanswered and last else _status(attempt)
    searched = bool(step.results)
    return {
        **{name: getattr(attempt, name) for name in STEPS.column_names if name in OWN},
        "query_id": trajectory.query_id,
        "model_id": trajectory.member.model_id,
        "sample": trajectory.sample,
        "step": index,
        "acted_by": step.model_id,
        "action": "search" if searched else "answer" if status == "ok" and not said.queries
        else "none",
        "said": None if status in ANSWERLESS else said.text,
        "queries": list(said.queries),
        "found": list(step.results),
        "status": status,
        **cost_by_price(attempt, price),
        "attempts": step.attempts,
        "error": attempt.reason,
        "arm": step.model_id,
        "parent": index - 1 if index else None,
    }  # fmt: skip
