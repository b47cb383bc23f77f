"""Asking a router about one question: fitted on a release, or loaded from a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from routeyard.pipelines.common import encoders
from routeyard.pipelines.common.arrays import Floats, Vectors
from routeyard.pipelines.common.encoders import NAME as TFIDF
from routeyard.pipelines.common.encoders import Lexical
from routeyard.pipelines.common.encoders import fitted as lexical_of
from routeyard.pipelines.common.errors import Unsafe
from routeyard.pipelines.common.matrix import MEASURES, Queries, core_of
from routeyard.pipelines.common.untrusted import regular
from routeyard.pipelines.routers import saved
from routeyard.pipelines.routers.base import GIVEN, traits_of
from routeyard.schemas.errors import BadInput


def route(
    place: Path,
    question: str,
    *,
    router: str | None = None,
    encoder: str = TFIDF,
    weight: float = 0.0,
    rule: str | None = None,
    scheme: str | None = None,
    cache: Path = Path("yard/cache/embeddings"),
    save: Path | None = None,
    task: str = "",
) -> dict[str, Any]:
    """Scores and mean train costs of every model on a question, and the choice, as JSON.

    Args:
        place: a release, on whose train questions `router` is fitted, or the folder of
            a saved router.
        encoder: what to fit it with; of a saved router that names a folder or a hub id, the
            same name: nothing is loaded from there because a file says so.
        weight: λ of (1−λ)·score − λ·cost, cost min-max scaled over models: the rule
            `utility:λ`.
        rule: another selection rule with its value, such as `query-budget:0.001` (USD).
        save: where to keep the fitted router.
        task: name of the question's task, for routers that read it.

    Raises:
        BadInput: the question is empty, the weight is outside [0, 1] or the saved
            router's encoder is not the one installed, or the rule cannot use the scores.
        Unsafe: a saved router wants an encoder from elsewhere, and nobody named it.
    """

    if not question.strip():
        raise BadInput("the question is empty", next_step="write it in quotes")
    if not 0 <= weight <= 1:
        raise BadInput(f"λ = {weight} is no weight", next_step="choose one from 0 to 1")
    if saved.is_saved(place):
        fitted, words, lexical = _loaded(place, encoder)
    else:
        fitted, words, lexical = _fitted(place, router or "knn", encoder, scheme, cache)
        if save is not None:
            _save(fitted, words, lexical, save)
    scores = _scores(fitted, words, lexical, place, [question], task)
    share = _shares(fitted, words, scores, rule, weight)
    chosen = int(share[0].argmax())
    models = words["model_ids"]
    return {
        "router": fitted.name,
        "encoder": words["encoder"],
        "rule": asked_rule(rule, weight),
        "model_id": models[chosen],
        # A budget in the mean may ask two models, each for a share of such questions.
        "shares": {models[k]: float(share[0, k]) for k in np.flatnonzero(share[0] > 0)},
        "scores": dict(zip(models, scores[0].tolist(), strict=True)),
        "costs": _costs(words),
    }


def _own_encoder(wanted: str, named: str) -> None:
    """A stranger's router does not choose which folder or hub id is loaded on this machine."""

    known = {"none", TFIDF, saved.TUNED, *encoders.ALIASES, *encoders.names()}
    if encoders.unpooled(wanted)[0] not in known and wanted != named:
        raise Unsafe(
            f"the saved router wants vectors of {wanted!r}, which did not come with it",
            where="encoder",
            next_step=f"if you trust its contents: --encoder {wanted}",
        )


def _loaded(place: Path, encoder: str) -> tuple[Any, dict[str, Any], Lexical | None]:
    """A saved router that can route a question alone, what was saved with it, and its encoder."""
    fitted, words = saved.load(place)
    _can_route(fitted.name, traits_of(type(fitted)).needs)
    _own_encoder(words["encoder"], encoder)
    return fitted, words, _lexical(place, words) if words["encoder"] == TFIDF else None


def _scores(
    fitted: Any,
    words: dict[str, Any],
    lexical: Lexical | None,
    place: Path,
    questions: Sequence[str],
    task: str = "",
) -> Floats:
    """(n, m) scores; of a saved router any array may have any shape."""
    vectors = None
    if words["encoder"] != "none":
        vectors = _encoded(questions, words, lexical, place)
    ids, asked = tuple(map(str, range(len(questions)))), tuple(questions)
    tasks = np.array([task] * len(ids))
    queries = Queries(ids, tasks, vectors, prompts=asked, questions=asked)
    if not saved.is_saved(place):
        return np.asarray(fitted.scores(queries), dtype=np.float64)
    try:
        scores = np.asarray(fitted.scores(queries), dtype=np.float64)
        if scores.shape != (len(ids), len(words["model_ids"])) or not np.isfinite(scores).all():
            raise ValueError("its scores are not one finite number for each model")
    except saved.SURPRISES as error:
        raise BadInput(
            f"this is no saved router: {str(error)[:300] or type(error).__name__}",
            where=str(place),
            next_step="save it again with `routeyard route RELEASE --save FOLDER`",
        ) from error
    return scores


def _costs(words: dict[str, Any]) -> dict[str, Any] | None:
    """What each model's answers cost in the mean of the train questions, and the unit."""
    unit = MEASURES.get(str(words.get("price_in")))
    if words["price"] is None or unit is None:  # saved before the measure was written down
        return None
    mean = np.asarray(words["price"], dtype=np.float64).tolist()
    return {"unit": unit, "mean": dict(zip(words["model_ids"], mean, strict=True))}


def asked_rule(rule: str | None, weight: float) -> str:
    """The rule that is meant by --rule or --weight.

    Raises:
        BadInput: both are given.
    """
    if rule is not None and weight:
        raise BadInput("--rule and --weight are two rules", next_step="give one of them")
    return rule or (f"utility:{weight:g}" if weight else "argmax")


def _shares(
    fitted: Any, words: dict[str, Any], scores: Floats, rule: str | None, weight: float
) -> Floats:
    """(1, m) share of each model under the rule."""
    from routeyard.pipelines.evaluate.zoo.run import asked, shares

    what, scale = asked(asked_rule(rule, weight)), traits_of(fitted).scale
    return shares(what, scores, words["price"], router=fitted.name, scale=scale)


def _fitted(
    release: Path, name: str, encoder: str, scheme: str | None, cache: Path
) -> tuple[Any, dict[str, Any], Lexical | None]:
    from routeyard.flows.evaluation.released import read_release, texts_of, vectors
    from routeyard.pipelines.evaluate.experiment import (
        default_scheme,
        price,
        priced_in,
        registered,
        traits,
        with_validation,
    )
    from routeyard.pipelines.evaluate.fit import Fit
    from routeyard.pipelines.evaluate.settings import FIRST_SEED

    tables = read_release(release)
    core = core_of(tables.without("embeddings"))
    chosen = default_scheme(core, scheme)
    core, _ = with_validation(core, chosen)
    entrant = registered([name])[0]
    _can_route(name, traits(entrant).needs)
    lexical = None
    if "embeddings" not in traits(entrant).needs:
        encoder, encoder_hash = "none", ""
    elif encoder == TFIDF:
        texts = texts_of(tables, core)
        train = core.splits[chosen] == "train"
        lexical = lexical_of([text for text, use in zip(texts, train, strict=True) if use])
        core = replace(core, embeddings=lexical.encode(texts))
        encoder_hash = _hash(lexical)
    else:
        made_here = vectors(tables, core, [encoder], scheme=chosen, cache=cache)
        core = replace(core, embeddings=made_here[encoder])
        encoder_hash = encoders.weights_hash(encoder)
    setting: dict[str, Any] = {"seed": FIRST_SEED} if traits(entrant).stochastic else {}
    router = Fit(replace(entrant, seed=FIRST_SEED), core.training(chosen)).router
    cost = price(core, chosen)
    words = {
        "setting": setting,
        "model_ids": tuple(core.model_ids),
        "encoder": encoder,
        "encoder_hash": encoder_hash,
        "price": cost if np.any(cost > 0) else None,
        "price_in": priced_in(core, chosen),
    }
    return router, words, lexical


def _can_route(name: str, needs: Sequence[str]) -> None:
    """Raises BadInput: the router reads what is not known of a question that comes alone."""
    for need in ("signals", "hidden"):
        if need in needs:
            raise BadInput(
                f"router {name!r} reads {GIVEN[need]}, and a question that comes alone has none",
                next_step="compare it on a release with `routeyard evaluate`, or route with one "
                "that reads embeddings (`routeyard zoo` says what each needs)",
            )


def _save(router: Any, words: dict[str, Any], lexical: Lexical | None, folder: Path) -> None:
    from safetensors.numpy import save_file

    saved.save(router, folder, **words)
    if lexical is not None:
        arrays = {"idf": lexical.idf, "axes": lexical.axes, "mean": lexical.mean}
        save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, folder / LEXICAL[0])
        (folder / LEXICAL[1]).write_text(json.dumps(lexical.words) + "\n", encoding="utf-8")


LEXICAL = ("tfidf.safetensors", "tfidf.json")


def _lexical(folder: Path, words: dict[str, Any]) -> Lexical:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        for name in LEXICAL:
            regular(folder / name)
        arrays = load_file(folder / LEXICAL[0])
        vocabulary = json.loads((folder / LEXICAL[1]).read_text(encoding="utf-8"))
        lexical = Lexical(tuple(vocabulary), arrays["idf"], arrays["axes"], arrays["mean"])
        lexical.encode(["a question"])  # its parts fit each other
    except (*saved.SURPRISES, SafetensorError) as error:
        raise BadInput(f"the saved router lacks its encoder: {error}", where=str(folder)) from error
    _same(words, _hash(lexical), folder)
    return lexical


def _encoded(
    questions: Sequence[str], words: dict[str, Any], lexical: Lexical | None, place: Path
) -> Vectors:
    if lexical is not None:
        return lexical.encode(list(questions))

    name = encoders.full_name(words["encoder"])
    if name == saved.TUNED:  # it came with the router
        name = str(saved.tuned_encoder(place))
    _same(words, encoders.weights_hash(name), Path(name))
    return encoders.load(name, 1)(list(questions))[0]


def _same(words: dict[str, Any], encoder_hash: str, where: Path) -> None:
    if words["encoder_hash"] != encoder_hash:
        raise BadInput(
            f"the encoder {words['encoder']!r} is not the one the router was fitted with",
            where=str(where),
            next_step="install the same weights, or fit the router again",
        )


def _hash(lexical: Lexical) -> str:
    hashed = hashlib.sha256(json.dumps(lexical.words).encode())
    for array in (lexical.idf, lexical.axes, lexical.mean):
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()[:16]


# What a saved router chooses for many questions.


def choices_of(place: Path, questions: Sequence[str], *, encoder: str = TFIDF) -> list[str]:
    """The model that a saved router chooses for each question, by its highest score.

    Args:
        place: Folder of a router that `route` saved.
        encoder: The encoder that it wants, where that is not one of the package.

    Raises:
        BadInput: there is no saved router, or it needs more than the question.
        Unsafe: it wants an encoder from elsewhere, and nobody named it.
    """

    if not saved.is_saved(place):
        raise BadInput(
            "there is no saved router",
            where=str(place),
            next_step="save one: routeyard route RELEASE QUESTION --router knn --save FOLDER",
        )
    fitted, words, lexical = _loaded(place, encoder)
    scores = _scores(fitted, words, lexical, place, questions)
    return [words["model_ids"][k] for k in scores.argmax(axis=1)]
