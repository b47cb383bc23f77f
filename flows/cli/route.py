"""`routeyard route`: ask a router about one question."""

from __future__ import annotations

from pathlib import Path

from routeyard.flows.cli.options import CACHE, OptionalWrittenPath
from routeyard.flows.cli.results import Output


def command(
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
    """Print every model's score for a question, its usual cost, and the model that is chosen.

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

    found = route(
        place, question, router=router, encoder=encoder, weight=weight, rule=rule, scheme=scheme,
        cache=cache, save=save, task=task,
    )  # fmt: skip
    costs, scores = found["costs"], found["scores"]
    unit = f"; cost: {costs['unit']}, mean of the train questions" if costs else ""
    lines = [f"{found['router']} on {found['encoder']}, rule {found['rule']}{unit}"]
    for model, score in sorted(scores.items(), key=lambda item: -item[1]):
        mark = "→" if model == found["model_id"] else " "
        cost = f"  {costs['mean'][model]:.3g}" if costs else ""
        lines.append(f"{mark} {model:<{max(map(len, scores))}}  {score:.4f}{cost}")
    return Output(found, lines)
