"""What a saved router chooses for many questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from routeyard.flows.evaluation.route import (
    _can_route,
    _encoded,
    _lexical,
    _own_encoder,
    _scores,
)
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.lexical import NAME as TFIDF


def choices_of(place: Path, questions: Sequence[str], *, encoder: str = TFIDF) -> list[str]:
    """The model that a saved router chooses for each question, by its highest score.

    Args:
        place: Folder of a router that `route` saved.
        encoder: The encoder that it wants, where that is not one of the package.

    Raises:
        BadInput: there is no saved router, or it needs more than the question.
        Unsafe: it wants an encoder from elsewhere, and nobody named it.
    """
    from routeyard.pipelines.routers import saved
    from routeyard.pipelines.routers.base import Queries, traits_of

    if not saved.is_saved(place):
        raise BadInput(
            "there is no saved router",
            where=str(place),
            next_step="save one: routeyard route RELEASE QUESTION --router knn --save FOLDER",
        )
    fitted, words = saved.load(place)
    _can_route(fitted.name, traits_of(type(fitted)).needs)
    _own_encoder(words["encoder"], encoder)
    vectors = None
    if words["encoder"] != "none":
        lexical = _lexical(place, words) if words["encoder"] == TFIDF else None
        vectors = _encoded(questions, words, lexical, place)
    ids, asked = tuple(map(str, range(len(questions)))), tuple(questions)
    queries = Queries(ids, np.full(len(ids), ""), vectors, prompts=asked, questions=asked)
    scores = _scores(fitted, queries, words["model_ids"], place)
    return [words["model_ids"][k] for k in scores.argmax(axis=1)]
