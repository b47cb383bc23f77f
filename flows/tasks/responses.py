"""What the three ways of collecting have in common: one file per model, and when a build stops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from routeyard.flows import console
from routeyard.flows.tracking.log import log
from routeyard.flows.workspace.stage_folders import BuildContext, StageResult, write_table
from routeyard.flows.workspace.tables import slug
from routeyard.pipelines.errors import BudgetReached, GateFailed, ProviderError
from routeyard.schemas.images import IMAGES
from routeyard.schemas.recipe import Collect, Pool

#: Entries of a list that an error shows.
_LISTED = 3
#: Kinds of refusals → what mends them.
_MENDS = {
    "http_401 http_403 http_407": "correct the key in the variable of 'api_key_env', or its rights",
    "http_402 insufficient_quota": "pay into the account",
    "http_404 http_410": "correct 'base_url', 'model_id' or 'endpoint_model'",
    "http_405 redirect": "correct 'base_url'",
    "*": "correct what the message names",
}


def asked_about(context: BuildContext, queries: StageResult) -> dict[str, Any]:
    """Arguments of a plan beside questions, pool and settings: the benchmark, and its images."""
    return {"benchmark": context.benchmark, "images": Path(queries.folder) / IMAGES}


def write_by_model(responses: Any, folder: Path) -> None:
    """`responses/<model>.parquet`, so that later stages work model by model."""
    for model_id in sorted(pc.unique(responses.column("model_id")).to_pylist()):
        part = responses.filter(pc.equal(responses.column("model_id"), model_id))
        write_table(part, folder / "responses" / f"{slug(model_id)}.parquet")


def answers_fingerprint(responses: Any) -> str:
    """What was answered, whenever it was: measured times do not enter."""
    from routeyard.pipelines.release.fingerprint import content
    from routeyard.schemas.manifest import MEASURED_COLUMNS

    return content(responses, without=MEASURED_COLUMNS)


def check_complete(
    context: BuildContext,
    missing: Mapping[str, int],
    why: Iterable[str],
    *,
    what: str = "answers are still missing ({models})",
    out_of_budget: bool,
    refused: Mapping[str, str],
    pool: Pool,
    collect: Collect,
    wanted: int,
) -> None:
    """Stop when answers are missing: a label matrix has no holes that nobody asked for.

    Args:
        missing: Model → answers that asking again may bring.
        why: Why nothing more was asked.
        refused: Model → what came back where a key, an address or the model was refused.
        wanted: Answers wanted of all models.

    Raises:
        BudgetReached, ProviderError: name the models and how to go on.
        GateFailed: keys, addresses or models were refused, for more than the recipe allows.
    """
    if refused:
        from routeyard.pipelines.collect.settings import provider_of

        named = {
            f"{provider_of(model, pool).name}/{model.model_id}": refused[model.model_id]
            for model in pool.models
            if model.model_id in refused
        }
        pairs = {name: missing[name.partition("/")[2]] for name in named}
        check_refused(context, named, pairs, collect, wanted, "answers")
        missing = {model: count for model, count in missing.items() if model not in refused}
    if not missing:
        return
    models = ", ".join(f"{model} {n:,}" for model, n in sorted(missing.items()))
    raise (BudgetReached if out_of_budget else ProviderError)(
        f"{sum(missing.values()):,} {what.format(models=models)}: "
        f"{'; '.join(dict.fromkeys(why)) or 'calls failed'}",
        where=f"benchmark {context.benchmark}; what arrived is in the ledger",
        next_step="remove the cause and run the same command again "
        f"(--workspace {context.root}): only what is missing is asked",
    )


def check_refused(
    context: BuildContext,
    refused: Mapping[str, str],
    missing: Mapping[str, int],
    collect: Collect,
    wanted: int,
    what: str,
) -> None:
    """Stop where keys, addresses or models were refused: nothing of it is settled.

    Args:
        refused: `provider/model` → what came back.
        missing: `provider/model` → answers that are missing.
        collect: Its `unanswered.refused_share` is the share of `wanted` that may be missing.

    Raises:
        GateFailed: more is missing than the recipe allows.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for name, words in sorted(refused.items()):
        provider, _, model = name.partition("/")
        alike.setdefault((provider, words), []).append(model)
    lines = []
    for (provider, words), models in alike.items():
        count = sum(missing[f"{provider}/{model}"] for model in models)
        named = ", ".join(models[:3]) + (f" and {len(models) - 3} more" if models[3:] else "")
        lines.append(f"{provider}/{named}: {count:,}, {words}; {_mends(words)}")
    total, share = sum(missing.values()), collect.unanswered.refused_share
    text = f"{total:,} of {wanted:,} {what} are missing by a fault of set-up"
    allowed = total <= share * wanted
    for line in lines if allowed or len(lines) > _LISTED else []:
        console.line("refused", line)
    log(context.benchmark, "collect", "; ".join([text, *lines]))
    if allowed:
        console.line("note", f"{text}, which 'collect.unanswered.refused_share' allows")
        return
    more = [f"and {len(lines) - _LISTED + 1} more, listed above"] if len(lines) > _LISTED else []
    shown = lines[: _LISTED - 1] if more else lines
    raise GateFailed(
        "\n  ".join([text, *shown, *more]),
        where=f"benchmark {context.benchmark}; what arrived is in the ledger",
        next_step="mend it and run the same command again: only what is missing is asked; or "
        f"write 'collect: {{unanswered: {{refused_share: {-(-total * 100 // wanted) / 100:g}}}}}' "
        "to release without",
    )


def _mends(words: str) -> str:
    """What a person does about a refusal."""
    kind = words.partition(":")[0]
    return next((mend for kinds, mend in _MENDS.items() if kind in kinds.split()), _MENDS["*"])


def check_answered(context: BuildContext, collect: Collect, responses: Any) -> None:
    """Report pairs that were given up, and stop where the recipe releases none of them.

    Raises:
        GateFailed: there are such pairs, and `collect.unanswered.release` is `stop`.
    """
    gone = responses.filter(pc.equal(responses.column("status"), "unanswered"))
    if not gone.num_rows:
        return
    counts = Counter(gone.column("model_id").to_pylist())
    models = ", ".join(f"{model} {count:,}" for model, count in sorted(counts.items()))
    policy = collect.unanswered
    gave_up = (
        f"{gone.num_rows:,} pairs were billed {policy.after} times and never answered ({models})"
    )
    if policy.release == "go_on":
        log(
            context.benchmark,
            "collect",
            f"{gave_up}: unanswered, counted neither as right nor as wrong",
        )
        return
    raise GateFailed(
        gave_up,
        where=f"benchmark {context.benchmark}, collect.unanswered.release: stop",
        next_step="raise 'collect.unanswered.after' to ask them again, write 'release: go_on' to "
        f"release without them, or take the queries out (--workspace {context.root})",
    )
