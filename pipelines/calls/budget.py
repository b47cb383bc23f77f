"""A hard limit in USD over all runs, processes and hosts, which counts what is in flight.

Before a call is sent its worst case is charged in the ledger: every byte of the
prompt a token (no byte-level tokenizer makes more) plus what a chat template adds,
and `max_tokens` for each answer. When the answer comes the charge becomes its
cost. A call whose outcome is not known (time-out, reset, 5xx, a kill) may have
been billed: its charge stays. What a provider says a call cost is believed only
where it is not below what the price table makes of its tokens, and tokens only where they are not
fewer than the text must have, nor cached where no earlier prompt began so (`bill.py`).
"""

from __future__ import annotations

import asyncio
import json
import math
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence

from routeyard.pipelines.calls.bill import PromptsSeen
from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.calls.progress import Tally
from routeyard.pipelines.calls.request import Request
from routeyard.pipelines.calls.wire.image_part import image_tokens
from routeyard.pipelines.ledger.charges import Charge, ChargeBounds
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe.collect import Budget

#: Tokens a chat template adds around one message, generously.
TEMPLATE_TOKENS = 64
RUN_NOTE = "run:"
#: Seconds between looks at what other processes hold.
_LOOK_S = 0.5


class BudgetLedger:
    """The budget of one benchmark as one run sees it.

    Args:
        account: Whose money it is: the benchmark's name.
        raise_by: The recipe key that a person raises to go on.
    """

    def __init__(
        self,
        budget: Budget,
        ledger: Ledger,
        account: str = "",
        *,
        raise_by: str = "collect.budget",
    ) -> None:
        self._budget = budget
        self._ledger = ledger
        self._account = account
        self._raise_by = raise_by
        self._before: dict[str, float] | None = None
        self._settled: dict[str, float | None] = {}
        self._writing: asyncio.TimerHandle | None = None
        self._changed = asyncio.Condition()
        self._asking = asyncio.Lock()
        self._waits = False
        self._seen: dict[tuple[str, str], PromptsSeen] = defaultdict(PromptsSeen)

    @property
    def limited(self) -> bool:
        return self._budget.is_set

    async def begin(self, run: str) -> None:
        """Note whose run this is; every attempt of it counts against the account."""
        note = json.dumps({"account": self._account, "charged": self.limited})
        await asyncio.to_thread(self._ledger.remember, {RUN_NOTE + run: note})

    async def reserve(self, model_id: str, usd: float, tally: Tally | None = None) -> str | None:
        """Charge one call, waiting for calls in flight where they can still make room.

        Args:
            tally: Is told what it waits for, once in a run.

        Returns:
            The charge's id, for `settle`; null when it does not fit any more.
        """
        while True:
            (charge,), (answer,) = await self._ask(model_id, [usd])
            if answer == "yes":
                return charge
            if answer == "full":
                return None
            if tally is not None and not self._waits:
                self._waits = True
                aside = (await asyncio.to_thread(self._ledger.set_aside, self._account)).values()
                calls, held = sum(n for n, _ in aside), sum(usd for _, usd in aside)
                tally.waits = (
                    f"{held:.4f} USD of the budget are set aside for {calls:,} calls in flight, at "
                    "their worst case; further calls wait until those are answered"
                )
            async with self._changed:
                try:
                    async with asyncio.timeout(_LOOK_S):
                        await self._changed.wait()
                except TimeoutError:
                    continue

    async def reserve_many(self, model_id: str, usd: Sequence[float]) -> list[str]:
        """Charge calls in order as far as they fit at once; ids of those that do."""
        charges, answers = await self._ask(model_id, usd)
        fit = next((n for n, answer in enumerate(answers) if answer != "yes"), len(answers))
        for charge in (c for c, a in zip(charges[fit:], answers[fit:], strict=True) if a == "yes"):
            await self.settle(charge, 0.0)
        return charges[:fit]

    async def settle(self, charge: str, spent: float | None) -> None:
        """Replace a charge by what the call cost; null keeps all of it."""
        if not charge:
            return
        self._settled[charge] = spent
        if self._writing is None:
            # Others wait for what is still charged, and this run may ask nothing more.
            self._writing = asyncio.get_running_loop().call_later(_LOOK_S, self._write)
        async with self._changed:
            self._changed.notify_all()

    def cached(self, request: Request) -> float:
        """Most of a prompt that a cache can have held, as a share; from now on all of it."""
        model = request.settings.provider, request.settings.endpoint_model
        return self._seen[model].add(request)

    def _write(self) -> None:
        self._writing = None
        if self._settled:
            settled, self._settled = self._settled, {}
            self._ledger.charge(self._account, ChargeBounds(None, {}), [], settled)

    async def close(self) -> None:
        """Write down what is settled."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        if self._settled:
            settled, self._settled = self._settled, {}
            writing = self._ledger.charge(self._account, ChargeBounds(None, {}), [], settled)
            await asyncio.shield(asyncio.wrap_future(writing))

    def full(self, model_id: str) -> str:
        """Why nothing more is asked of a model, and what to do."""
        own = self._budget.models.get(model_id)
        parts = [
            (own, f"models.{model_id}"),
            (self._budget.per_model_usd if own is None else None, "per_model_usd"),
            (self._budget.usd, "usd"),
        ]
        given = [(usd, key) for usd, key in parts if usd is not None]
        said = " and ".join(f"{usd:g} USD ('{key}')" for usd, key in given)
        raised = self._raise_by
        if raised == "collect.budget" and given:
            raised += f".{given[0][1]}" if len(given) == 1 else ""
        return (
            f"the budget is reached: {said} for all runs of this benchmark; raise '{raised}' to go "
            "on"
        )

    async def explain(self, tallies: Mapping[str, Tally]) -> None:
        """Add to why models were stopped, once, what the budget went to."""
        out = [tally for tally in tallies.values() if tally.out_of_budget and tally.paused]
        first = out[0].paused if out else None
        why = await asyncio.to_thread(self._gone_to) if out else ""
        for tally in out:
            # One limit stops several models in the same words, which are printed once.
            tally.paused = f"{first} ({why})" if tally.paused == first else tally.paused

    def spent(self) -> dict[str, float]:
        """USD per model that no further call can have: costs, and what is set aside."""
        spent = self._known_costs(charged=False)
        for model_id, usd in self._ledger.charged(self._account).items():
            spent[model_id] = spent.get(model_id, 0.0) + usd
        return spent

    def _gone_to(self) -> str:
        """Sentence on what an account's money went to."""
        known = [sum(self._known_costs(charged=one).values()) for one in (True, False)]
        aside = self._ledger.set_aside(self._account).values()
        calls, held = sum(n for n, _ in aside), sum(usd for _, usd in aside)
        charged = sum(self._ledger.charged(self._account).values())
        kept = charged - held - known[0]
        said = [f"{sum(known):.4f} USD are the known cost of calls"]
        if calls:
            said.append(
                f"{held:.4f} USD are set aside for {calls:,} calls in flight or of killed runs, at "
                "their worst case"
            )
        if kept > 5e-5:
            said.append(
                f"{kept:.4f} USD are set aside for calls whose cost is unknown, such as time-outs, "
                "and for tokens that cannot be as few, or as cached, as reported"
            )
        if self._budget.usd is not None and (left := self._budget.usd - charged - known[1]) > 5e-5:
            said.append(f"{left:.4f} USD are left, and the next call may cost more")
        return "; ".join(said)

    async def _ask(self, model_id: str, usd: Sequence[float]) -> tuple[list[str], list[str]]:
        if not self._bounded(model_id):
            usd = [one if math.isfinite(one) else 0.0 for one in usd]
        charges = [Charge(uuid.uuid4().hex, model_id, one) for one in usd]
        if not self.limited:
            return [one.id for one in charges], ["yes"] * len(charges)
        async with self._asking:
            if self._before is None:
                self._before = await asyncio.to_thread(self._known_costs, charged=False)
            settled, self._settled = self._settled, {}
            asked = self._ledger.charge(self._account, self._bounds(model_id), charges, settled)
            try:
                # Cancelled with us, it would take along what is settled.
                answers = await asyncio.shield(asyncio.wrap_future(asked))
            except asyncio.CancelledError:
                unused = dict.fromkeys((one.id for one in charges), 0.0)
                self._ledger.charge(self._account, ChargeBounds(None, {}), [], unused)
                raise
        return [one.id for one in charges], list(answers)

    def _bounded(self, model_id: str) -> bool:
        limit = self._budget.models.get(model_id, self._budget.per_model_usd)
        return limit is not None or self._budget.usd is not None

    def _bounds(self, model_id: str) -> ChargeBounds:
        assert self._before is not None
        limit = self._budget.models.get(model_id, self._budget.per_model_usd)
        if limit is not None:
            limit -= self._before.get(model_id, 0.0)
        total = self._budget.usd
        if total is not None:
            total -= sum(self._before.values())
        return ChargeBounds(total, {model_id: limit})

    def _known_costs(self, *, charged: bool) -> dict[str, float]:
        """USD per model of runs that charged their calls, or of those that did not: they had no
        budget."""
        notes = {run: json.loads(text) for run, text in self._ledger.recall(RUN_NOTE).items()}
        spent: dict[str, float] = defaultdict(float)
        for run, model_id, usd in self._ledger.spending():
            note = notes.get(run, {})
            if (note.get("account"), note.get("charged")) == (self._account, charged):
                spent[model_id] += usd
        return dict(spent)


def worst_case(request: Request, price: Price, max_tokens: int | None) -> float:
    """Most USD the request can cost; infinite where that cannot be known."""
    if not max_tokens:
        return float("inf")
    prompt = sum(
        _bytes(message) + TEMPLATE_TOKENS + image_tokens(message) for message in request.messages
    )
    # Declared tools are read with the prompt.
    prompt += _bytes(request.settings.parameters.get("tools", ""))
    cost = price.dearest.of(prompt, max_tokens * len(request.samples))
    return float("inf") if cost is None else cost


def _bytes(message: object) -> int:
    return len(str(message).encode("utf-8", "surrogatepass"))
