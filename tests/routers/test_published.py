"""Published settings are honoured or named, and published formulas equal ones from scratch."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from routeyard.pipelines.common.arrays import ranked
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Arms
from routeyard.pipelines.evaluate.experiment import architectures, handed_over, registered
from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers.base import traits_of
from routeyard.pipelines.routers.listed import PRESETS, constants, presets_of
from routeyard.pipelines.routers.listed import presets_rows as rows
from routeyard.pipelines.routers.networks import to_models
from routeyard.pipelines.routers.training import Trained

MODELS, WIDTH = 5, 12


def examples(n: int, seed: int) -> Examples:
    """Questions in five directions, labels with holes, costs that differ by model."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, MODELS, n)
    vectors = np.eye(WIDTH)[kind] + 0.4 * rng.normal(size=(n, WIDTH))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    labels = (rng.random((n, MODELS)) < 0.3 + 0.5 * (kind[:, None] == np.arange(MODELS))) * 1.0
    labels[rng.random((n, MODELS)) < 0.1] = np.nan
    ids = tuple(f"q{seed}-{i}" for i in range(n))
    queries = Queries(ids, np.array([f"t{k}" for k in kind]), vectors)
    usd = rng.uniform(0.5, 1.5, (n, MODELS)) * np.array([5.0, 1.0, 3.0, 2.0, 4.0])
    return Examples(queries, tuple("abcde"), labels, {"usd": usd})


TRAIN, TEST = examples(400, 0), examples(150, 1)
HELD = dataclasses.replace(TRAIN, validation=examples(80, 2))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("alpha", [1.0, 0.45])
def test_avengers_pro_chooses_as_its_paper_computes(alpha: float) -> None:
    router = ROUTERS.get("avengers-pro")(preset="code", alpha=alpha)
    router.fit(TRAIN)
    centres, x = router._centres, TRAIN.queries.vectors().astype(np.float64)
    member = ((x[:, None, :] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    cost = np.nanmean(TRAIN.costs["usd"], axis=0)
    ranks, first = np.zeros((len(centres), MODELS)), ranked(TRAIN.labels, cost).tolist()
    for k in range(len(centres)):
        accuracy = np.array(
            [
                np.nanmean(y) if not np.isnan(y).all() else np.nanmean(TRAIN.labels[:, m])
                for m, y in enumerate(TRAIN.labels[member == k].T)
            ]
        )
        spread = accuracy.max() - accuracy.min()
        worth = (accuracy - accuracy.min()) / spread if spread else np.ones(MODELS)
        worth = alpha * worth + (1 - alpha) * (1 - cost / cost.max())
        for place, m in enumerate(
            sorted(range(MODELS), key=lambda m, w=worth: (-w[m], first.index(m)))
        ):
            ranks[k, m] = 1 / (place + 1)
    wrong = 0
    found = router.scores(TEST.queries)
    for e, ours in zip(TEST.queries.vectors().astype(np.float64), found, strict=True):
        distance = np.array([1 - e @ centre for centre in centres])
        near = np.argsort(distance, kind="stable")[:3]
        total = softmax(-9 * distance[near]) @ ranks[near]
        wrong += int(total.argmax() != ours.argmax())
        assert ours == pytest.approx(total, abs=1e-9)
    assert wrong == 0


@pytest.mark.parametrize("preset", PRESETS)
def test_embedllm_scores_as_its_formula(preset: str) -> None:
    published = preset != "routeyard"
    router = ROUTERS.get("embedllm")(seed=1, preset=preset, epochs=2)
    a = {k: v.numpy() for k, v in router.fit(TRAIN).network.state_dict().items()}
    x = TEST.queries.vectors()
    product = a["models"][None] * (x @ a["project.weight"].T + a["project.bias"])[:, None, :]
    two = product @ a["classes.weight"].T + a["classes.bias"]
    logit = two[..., 1] - two[..., 0]
    assert ("level" in a) is not published
    wanted = sigmoid(logit if published else logit + a["level"])
    assert router.scores(TEST.queries) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("preset", PRESETS)
def test_nirt_scores_as_its_formula(preset: str) -> None:
    published = preset != "routeyard"
    router = ROUTERS.get("nirt")(seed=1, preset=preset, epochs=2)
    a = {k: v.numpy() for k, v in router.fit(TRAIN).network.state_dict().items()}
    x = TEST.queries.vectors()

    def linear(name: str, of: np.ndarray) -> np.ndarray:
        return of @ a[f"{name}.weight"].T + a[f"{name}.bias"]

    relevance = softmax(linear("relevance", x)) * (1 if published else 25)
    mastered = sigmoid(a["mastery"])[None] - sigmoid(linear("demand", x))[:, None, :]
    seen = 9 * sigmoid(linear("sharpness", x))[:, None, :] * mastered * relevance[:, None, :]
    hidden = np.tanh(seen @ np.abs(a["first.weight"]).T + a["first.bias"])
    logit = (hidden @ np.abs(a["second.weight"]).T)[..., 0] + a["second.bias"]
    assert router.scores(TEST.queries) == pytest.approx(sigmoid(logit), abs=1e-6)


TRAINED = sorted(
    name
    for name in ROUTERS.builtin
    if issubclass(ROUTERS.get(name), Trained)
    and "embeddings" in ROUTERS.get(name).traits.needs
    and not {"hidden", "descriptors"} & set(ROUTERS.get(name).traits.needs)
)


@pytest.mark.parametrize("name", ["mirt", "embedllm", "equirouter", "routerdc"])
def test_published_epochs_and_batches_are_run(name: str) -> None:
    sizes = []
    router = ROUTERS.get(name)(seed=0, preset="code")
    router.settings["epochs"] = min(router.settings["epochs"], 9)
    if router.settings["steps"]:
        router.settings["steps"] = 17
    plain = router.loss

    def counted(network: object, batch: object) -> object:
        sizes.append(len(batch.x))
        return plain(network, batch)

    router.loss = counted
    router.fit(HELD)
    size = router.settings["batch"]
    each = [min(size, 400 - first) for first in range(0, 400, size)]
    assert sizes == (each * router.settings["epochs"])[: router.settings["steps"]]
    assert any(f"batch {size:,}" in one for one in router.not_as_published) == (size > 400)


def test_the_last_weights_of_a_preset_are_kept() -> None:
    """Validation chooses nothing: its questions change no weight."""
    alone, held = (
        ROUTERS.get("mirt")(seed=0, preset="code").fit(part).network.state_dict()
        for part in (TRAIN, HELD)
    )
    for name, values in alone.items():
        np.testing.assert_array_equal(values, held[name])


@pytest.mark.parametrize("name", sorted(ROUTERS.builtin))
def test_every_constant_has_its_place(name: str) -> None:
    for preset in presets_of(name):
        router = ROUTERS.get(name)(preset=preset)
        for setting, constant in constants(name, preset).items():
            assert constant.at
            assert constant.of in (preset, "code")
            found = (vars(router) | getattr(router, "settings", {}))[setting]
            assert found == constant.value, (preset, setting)
    with pytest.raises(BadInput, match="has no preset 'printed'") as refused:
        ROUTERS.get(name)(preset="printed")
    assert "presets.yaml" in str(refused.value.where)
    assert "routeyard" in refused.value.next_step


#: Constants that no release is too small for: sizes of networks, rates, and how long one trains.
FREE = {
    "alpha", "average", "best_only", "beta", "bonus", "both", "depth", "dropout", "embedding",
    "epochs", "features", "form", "gamma", "heads", "hidden", "labels", "leaf", "learning_rate",
    "least", "levels", "mix", "noise", "of", "optimiser", "penalty", "pooled", "positives",
    "rate", "restarts", "scaled", "share", "size", "slope", "steps", "temperature", "ties",
    "trees", "weight", "weight_decay", "width", "widths",
}  # fmt: skip


def tiny(questions: int, models: int) -> Examples:
    """Few questions, two of them with one vector, and few models; everything a router may need."""
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(questions, 8)).astype(np.float32)
    vectors[1] = vectors[0]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    shown = rng.random((questions, models))
    queries = Queries(
        tuple(f"q{i}" for i in range(questions)), np.array(["t", "u"] * questions)[:questions],
        vectors, signals=dict.fromkeys(("margin", "self_assessment"), shown),
        hidden=np.repeat(vectors[:, None], 2, axis=1), hidden_of="m0",
    )  # fmt: skip
    labels = np.resize([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], (questions, models))
    arms = Arms(*np.ones((4, models)))
    return Examples(
        queries, tuple(f"m{k}" for k in range(models)), labels,
        {"usd": np.tile(np.arange(1.0, models + 1), (questions, 1))}, None,
        {"logit_footprint": np.eye(models, 4, dtype=np.float32)}, arms,
    )  # fmt: skip


@pytest.mark.parametrize("name", [n for n in sorted(ROUTERS.builtin) if len(presets_of(n)) > 1])
def test_nothing_of_a_preset_shrinks_without_a_word(name: str) -> None:
    """On a release of five questions and three models each constant is honoured or named."""
    limited = rows()[name].get("limited", {})
    for preset in presets_of(name)[1:]:
        known = constants(name, preset)
        free = FREE | ({"k"} if name == "soft-moe" else set())  # there it stands for all models
        assert not known.keys() - limited.keys() - free - {"batch"}, "can a release be too small?"
        more = {"epochs": 1} if "epochs" in known else {}
        settings = {**more, "seed": 0} if traits_of(ROUTERS.get(name)).stochastic else more
        router = ROUTERS.get(name)(preset=preset, **settings)
        if getattr(router, "settings", {}).get("steps"):
            router.settings["steps"] = 2
        train = tiny(5, 3)
        router.fit(train)
        counts = {"questions": 5, "distinct questions": 4, "models": 3}
        for setting in known.keys() & limited.keys():
            value = known[setting].value
            most = max(value) if isinstance(value, tuple) else value or 0
            told = f"{setting} {most:,}: {counts[limited[setting]]} {limited[setting]}"
            too_few = most > counts[limited[setting]]
            assert (told in router.not_as_published) == too_few, (preset, setting)
        if "batch" in known and (known["batch"].value or 0) > 5:
            assert any("all 5 train questions are one" in s for s in router.not_as_published)


def test_a_second_fit_says_nothing_of_the_first_ones_shortage() -> None:
    router = ROUTERS.get("umr")(preset="code")
    assert "k 20: 4 distinct questions" in router.fit(tiny(5, 3)).not_as_published
    assert not any("questions" in one for one in router.fit(tiny(40, 3)).not_as_published)


def test_as_published_is_the_text_and_what_is_given_wins() -> None:
    cscr = ROUTERS.get("cscr")
    assert cscr(as_published=True).settings == cscr(preset="text").settings
    text, code = cscr(preset="text").settings, cscr(preset="code", k=7).settings
    assert (text["learning_rate"], text["epochs"], text["batch"]) == (5e-4, 10, 512)
    assert (text["bands"], text["average"], text["k"]) == (5, "query", 4)
    assert (code["bands"], code["average"], code["k"]) == (None, "band", 7)
    assert ROUTERS.get("umr")(as_published=True).preset == "code"  # which alone there is


def test_what_a_source_leaves_open_is_said() -> None:
    text = ROUTERS.get("embedllm")(seed=0, preset="text", epochs=1).fit(TRAIN).not_as_published
    assert any(one.startswith("not printed, from the code: size") for one in text)
    code = ROUTERS.get("nirt")(seed=0, preset="code", epochs=1).fit(TRAIN).not_as_published
    assert "not stated, ours: epochs 1, batch 256" in code
    assert ROUTERS.get("rorf")().not_as_published == ()


def test_scores_of_a_preset_say_what_they_mean() -> None:
    for name, preset in (("avengers-pro", "text"), ("zooter", "text"), ("rorf", "code")):
        ours, theirs = ROUTERS.get(name)(), ROUTERS.get(name)(preset=preset)
        assert (traits_of(ours).scale, traits_of(theirs).scale) == ("probability", "strength")


def routerdc_loss(
    cosine: np.ndarray, labels: np.ndarray, top: int, last: int
) -> tuple[float, np.ndarray]:
    """(mean, (n,)) sample-LLM loss, written from the published code's steps, row by row."""
    each = []
    for s, y in zip(cosine, labels, strict=True):
        models = range(len(y))
        best = sorted(models, key=lambda m, y=y: (-y[m], m))[:top]
        worst = [m for m in sorted(models, key=lambda m, y=y: (y[m], m))[:last] if y[m] <= 0.5]
        total = 0.0
        for m in best:
            if y[m] > 0:
                total -= np.log(np.exp(s[m]) / (np.exp(s[m]) + np.exp(s[worst]).sum()))
        each.append(total)
    return float(np.mean(each)), np.array(each)


@pytest.mark.parametrize("graded", [False, True])
def test_routerdc_draws_questions_to_models_as_published(graded: bool) -> None:
    import torch

    rng = np.random.default_rng(5)
    labels = rng.random((60, 9))
    labels = np.round(labels * 10) / 10 if graded else (labels < 0.4) * 1.0
    cosine = rng.uniform(-1, 1, labels.shape)
    place = np.tile(np.arange(9), (60, 1))
    given = [torch.from_numpy(one) for one in (cosine, labels, np.ones_like(labels), place)]
    wanted = routerdc_loss(cosine, labels, 3, 3)[0]
    assert float(to_models(*given, 3, as_coded=True)) == pytest.approx(wanted, abs=1e-12)
    if not graded:
        # Where columns are turned round, equal models change places in it, and in ours they do not.
        turned = [one.flip(1) for one in given[:3]]
        other = float(to_models(*turned, given[3], 3, as_coded=True))
        assert abs(other - wanted) > 1e-3
        ours = [float(to_models(*given, 3)), float(to_models(*turned, given[3].flip(1), 3))]
        assert ours[0] == pytest.approx(ours[1], abs=1e-12)


@pytest.mark.parametrize("name", TRAINED)
def test_our_own_settings_deviate_from_nothing(name: str) -> None:
    few = dataclasses.replace(examples(60, 3), validation=examples(30, 4))
    assert ROUTERS.get(name)(seed=0, epochs=1).fit(few).not_as_published == ()


def test_a_preset_is_named_behind_the_router() -> None:
    (one,) = registered(["embedllm:code"])
    assert one.name == "embedllm:code"
    assert architectures(one) == ({"preset": "code"},)
    assert (one(3).preset, one(3).seed, one(3).settings["size"]) == ("code", 3, 232)
    assert handed_over("theirs", "embedllm:code")(0).preset == "code"
    with pytest.raises(BadInput, match="'knn' has no preset 'text'"):
        registered(["knn:text"])
