"""`routeyard route`: ask a router about one question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    place: Annotated[
        Path, typer.Argument(help="A release, to fit a router on, or the folder of a saved one.")
    ],
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    router: Annotated[str, typer.Option(help="Router to fit on a release.")] = "knn",
    encoder: Annotated[
        str,
        typer.Option(
            help="Encoder to fit it with; of a saved router, the folder or hub id that it names."
        ),
    ] = "tfidf",
    weight: Annotated[float, typer.Option(help="λ, weight of cost from 0 to 1.")] = 0.0,
    rule: Annotated[
        str | None,
        typer.Option(help="A selection rule with its value: query-budget:0.001, mean-budget:…"),
    ] = None,
    task: Annotated[str, typer.Option(help="Task of the question, where a router reads it.")] = "",
    scheme: Annotated[str | None, typer.Option(help="Split scheme.")] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            callback=sealed_off, help="Keep the fitted router here (safetensors and JSON)."
        ),
    ] = None,
    cache: Annotated[Path, typer.Option(help="Cache of embeddings.")] = Path(
        "yard/cache/embeddings"
    ),
    as_json: Json = False,
) -> None:
    """Print every model's score for a question, its usual cost, and the model that is chosen.

    Examples:

        routeyard route yard/releases/demo/1.0.0 "What is 17 · 3?" --save my-router

        routeyard route my-router "Name the capital of France." --weight 0.3
    """
    from flows.cli.results import print_result
    from flows.evaluation.route import route

    found = route(
        place, question, router=router, encoder=encoder, weight=weight, rule=rule, scheme=scheme,
        cache=cache, save=save, task=task,
    )  # fmt: skip
    if print_result(found, as_json):
        return
    costs = found["costs"]
    unit = f"; cost: {costs['unit']}, mean of the train questions" if costs else ""
    print(f"{found['router']} on {found['encoder']}, rule {found['rule']}{unit}")
    width = max(map(len, found["scores"]))
    for model, score in sorted(found["scores"].items(), key=lambda item: -item[1]):
        mark = "→" if model == found["model_id"] else " "
        cost = f"  {costs['mean'][model]:.3g}" if costs else ""
        print(f"{mark} {model:<{width}}  {score:.4f}{cost}")
