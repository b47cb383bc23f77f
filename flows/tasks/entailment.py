"""The objects that a recipe's `preference` rule needs: its entailment backend and its assessor.

Rules know neither scorers nor clients; this module gives them both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeyard.flows.tasks.verdicts import scorer_modules
from routeyard.flows.workspace.stage_folders import BuildContext
from routeyard.pipelines.entailment.equivalence import scorer_equivalence
from routeyard.pipelines.equivalence_types import Entailment
from routeyard.pipelines.errors import RecipeError

if TYPE_CHECKING:
    from routeyard.schemas.recipe import Collect, CurationRule, Pool


def made_for(
    context: BuildContext, pool: Pool, collect: Collect, rule: str, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """The objects a rule needs and no recipe can write; none for most rules."""
    from routeyard.pipelines.curate import RULES

    if "entailment" not in RULES.get(rule).needs:
        return {}
    backend = parameters.get("backend", "equivalence")
    made: dict[str, Any] = {"entailment": entailment_for(backend, context, pool, collect)}
    if parameters.get("self_assessment"):
        made["assess"] = assessor(context, pool, collect, str(parameters["weak"]))
    return made


def parts_of(rules: Sequence[CurationRule], queries: Path) -> list[str]:
    """Modules of the backend and the scorers that a `preference` rule asks; none without one."""
    from routeyard.pipelines.curate import RULES
    from routeyard.pipelines.entailment import BACKENDS

    found: list[str] = []
    for rule in rules:
        if "entailment" in RULES.get(rule.rule).needs:
            backend = rule.parameters.get("backend", "equivalence")
            name = backend.get("name", "") if isinstance(backend, Mapping) else backend
            found += BACKENDS.modules([str(name)]) + scorer_modules(queries)
    return found


def inputs_of(rules: Sequence[CurationRule]) -> dict[str, str]:
    """What a curate stage depends on beside tables and code: the files of local encoders."""
    from routeyard.pipelines.signals.local_model import fingerprint

    found = {}
    for number, rule in enumerate(rules):
        backend = rule.parameters.get("backend")
        if rule.rule == "preference" and isinstance(backend, Mapping) and backend.get("model"):
            found[f"entailment.{number}"] = fingerprint(str(backend["model"]))
    return found


def entailment_for(
    backend: str | Mapping[str, Any], context: BuildContext, pool: Pool, collect: Collect
) -> Entailment | None:
    """The backend of a name, or of `{name: …, options}`; None for `equality`.

    Raises:
        UnknownName: there is no such backend.
        RecipeError: an option is missing or unknown.
    """
    options = {"name": backend} if isinstance(backend, str) else dict(backend)
    name = str(options.pop("name", ""))
    where = f"rule 'preference', backend {name!r}"
    if name == "equality":
        return None
    if name == "equivalence" and not options:
        return scorer_equivalence()

    from routeyard.pipelines.entailment import BACKENDS

    kind = BACKENDS.get(name, where="rule 'preference'")
    if name == "judge":
        provider = options.pop("provider", None)
        options["ask"] = judge(context, pool, collect, str(options.get("model", "")), provider)
    try:
        made: Entailment = kind(**options)
    except TypeError as error:
        raise RecipeError(
            f"the backend cannot be made from {sorted(options)}: {error}",
            where=where,
            next_step="write 'backend: {name: cross_encoder, model: FOLDER}' or "
            "'backend: {name: judge, model: MODEL_ID}'",
        ) from error
    return made


def judge(
    context: BuildContext, pool: Pool, collect: Collect, model: str, provider: str | None
) -> Any:
    """Ask function of a judge: greedy, one word, through the ledger."""
    from routeyard.flows.workspace.prompts import ask_prompts, model_to_ask

    asked_model = model_to_ask(pool, model, provider)

    def ask(prompts: Sequence[str]) -> list[str | None]:
        parameters = {"temperature": 0.0, "max_tokens": 8}
        how: dict[str, Any] = {"purpose": "entailment", "parameters": parameters}
        asked = ask_prompts(context, pool, collect, asked_model, prompts, **how)
        return [None if one is None else one.text for one in asked]

    return ask


def assessor(context: BuildContext, pool: Pool, collect: Collect, model: str) -> Any:
    """Asks a model of the pool whether its answers are right."""
    from routeyard.flows.workspace.prompts import ask_prompts, model_to_ask

    asked_model = model_to_ask(pool, model)

    def assess(items: Sequence[tuple[str, str]]) -> list[float | None]:
        from routeyard.pipelines.signals.self_assessment import PARAMETERS, certainty, prompt

        prompts = [prompt(question, answer) for question, answer in items]
        how: dict[str, Any] = {"purpose": "self_assessment", "parameters": PARAMETERS}
        asked = ask_prompts(context, pool, collect, asked_model, prompts, **how)
        return [None if one is None else certainty(one.text, one.logprobs) for one in asked]

    return assess
