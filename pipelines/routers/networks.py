"""Networks on a frozen embedding, trained by gradient; they differ in loss and head.

`Trained` in `training.py` is the base that they share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.common.arrays import Array, Bools, Floats, Ints, Names, Vectors, ranked
from routeyard.pipelines.common.machine import torch_in_one_thread
from routeyard.pipelines.common.matrix import Examples, Queries
from routeyard.pipelines.routers.base import mean_cost, model_means, strongest, usable
from routeyard.pipelines.routers.listed import listed
from routeyard.pipelines.routers.training import (
    Trained,
    TrainingBatch,
    best_network,
    dropped,
    head,
    logistic_loss,
    masked_mean,
    probabilities,
    seeded,
    start_logits,
    train_network,
)
from routeyard.schemas.errors import BadInput

# CP-Router: a conformal set of models that may be right; the cheapest of them is asked.

#: Error rates that are tried.
ALPHAS = tuple(round(0.01 * k, 2) for k in range(1, 100))


@listed
class CPRouter(Trained):
    """CP-Router (Su et al., arXiv 2505.19970), from a pair to a pool.

    The paper's task: a cheap model's option probabilities on a multiple-choice
    question give a conformal set of answers; one answer in it means the cheap model
    suffices. α is the one that maximises FBE = β·H_full + H_binary of the set
    sizes, β = 3. It needs the cheap model's token probabilities at routing time.

    From the question alone, and for M models: a predictor of correctness (cross-
    entropy per model); nonconformity 1 − p̂ of the correct (question, model) cells
    of the validation questions; a model is in the set where 1 − p̂ is within their
    ⌈(n+1)(1−α)⌉/n quantile. `floor` is 1 minus that quantile: the selection rule
    `sufficient:FLOOR` takes the cheapest model of each set, and the highest score
    where a set is empty. The scores are the predictor's, so without regard to cost
    the rule is argmax, as the plateau study's table has it. α is chosen on validation;
    the published procedure takes the (unlabelled) test questions for it.
    """

    name = "cp-router"

    def settle(self, network: Any, train: Examples) -> None:
        super().settle(network, train)
        held = train.validation or train
        p = self.scores(held.queries)
        right = np.nan_to_num(held.labels, nan=0.0) >= 0.5
        self.alpha, self.quantile = best_alpha(1 - p, right, self.settings["beta"])

    @property
    def floor(self) -> float:
        """Least score of a model in the conformal set; 0 where the set holds every model."""
        return max(0.0, 1 - self.quantile)


def conformal_quantile(nonconformity: Floats, alpha: float) -> float:
    """The ⌈(n+1)(1−α)⌉-th smallest value; infinity where n is too small for α.

    >>> conformal_quantile(np.array([0.1, 0.2, 0.3, 0.4]), 0.2)
    0.4
    >>> conformal_quantile(np.array([0.1]), 0.1)
    inf
    """
    n = len(nonconformity)
    # Rounded: (n + 1)·(1 − α) of 4.000000001 is 4.
    rank = math.ceil(round((n + 1) * (1 - alpha), 9))
    return float("inf") if rank > n else float(np.sort(nonconformity)[max(rank, 1) - 1])


def best_alpha(
    nonconformity: Floats, right: Bools, beta: float, alphas: tuple[float, ...] = ALPHAS
) -> tuple[float, float]:
    """(α, quantile) with the largest FBE = β·H(set size) + H(set of one or not); first of equals.

    Args:
        nonconformity: (n, m) 1 − p̂ on calibration questions.
        right: (n, m) correct cells; without any the sets hold everything.
    """
    calibration = nonconformity[right]
    if not len(calibration):
        return alphas[0], float("inf")
    best = (-1.0, alphas[0], float("inf"))
    for alpha in alphas:
        limit = conformal_quantile(calibration, alpha)
        sizes = (nonconformity <= limit).sum(axis=1)
        full = entropy(np.bincount(sizes))
        number = int((sizes == 1).sum())
        value = beta * full + entropy(np.array([number, len(sizes) - number]))
        if value > best[0] + 1e-12:
            best = (value, alpha, limit)
    return best[1], best[2]


def entropy(counts: Ints) -> float:
    """Shannon entropy in bits of counts."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log2(p)).sum()) + 0.0


# Fly-swat or cannon: one meta-model with the model it is asked about as an input.


@listed
class FlySwat(Trained):
    """FORC (Šakota et al., "Fly-Swat or Cannon?", WSDM 2024).

    Task: P(correct) of a (question, model) pair from one meta-model; the model's
    name is a token before the question. Loss: cross-entropy. Rules of the paper:
    best predicted, cheapest above 0.5, greedy and integer program under a budget,
    of which `argmax` and `sufficient` are here (the greedy one drops
    questions once the money is spent, which counts as wrong).

    On a frozen encoder the token becomes a learnt vector per model that joins the
    question's projection before the hidden layer, so that all models share every
    weight but their own vector: that is what sets it apart from an MLP with a head
    per model. The plateau study lists this paper under the name TagRouter; both
    are here under their own names.
    """

    name = "fly-swat"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        width, size, m = self.settings["width"], self.settings["size"], len(start)

        class Meta(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.tokens = nn.Parameter(torch.randn(m, size) / size**0.5)
                self.question = nn.Linear(inputs, width)
                self.model = nn.Linear(size, width, bias=False)
                self.mixed, self.out = nn.Linear(width, width), nn.Linear(width, 1)
                self.level = nn.Linear(size, 1)
                with torch.no_grad():
                    self.out.weight.mul_(0.1)
                    # One coordinate of the token begins as the model's level.
                    self.tokens[:, 0] = torch.from_numpy(start.copy())
                    self.level.weight.zero_()
                    self.level.weight[0, 0] = 1.0
                    self.level.bias.zero_()

            def forward(self, x: Any) -> Any:
                joined = self.question(x)[:, None, :] + self.model(self.tokens)
                hidden = torch.relu(self.mixed(torch.relu(joined)))
                return self.out(hidden)[..., 0] + self.level(self.tokens)[:, 0]

        return Meta()


# GraphRouter: models learn from the questions they are linked to.


@listed
class GraphRouter(Trained):
    """GraphRouter (Feng et al., arXiv 2410.03834).

    A graph of questions and models whose edges carry the results. Two rounds of
    messages: a model's node takes the mean of its linked questions' nodes and edge
    values, a question's node that of its models. Half the edges of a batch are
    hidden and predicted from the others: σ(question's first node · model's last
    node). Loss: cross-entropy on hidden edges. Rule: argmax.

    The published target is 1 for the model of greatest utility in a row and 0 for
    the rest (preset `code`); on labels full of ties that calls many right answers
    wrong, so the default target is the label. Descriptions of models and tasks are
    not in a release: a model's first node is learnt. The published copies merge
    validation into test and keep the best test epoch, which is not followed.
    A new question has no edges: its score reads its own first node and the models'
    nodes after messages from all train questions.
    """

    name = "graph-router"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        size, m = self.settings["size"], len(start)

        class Graph(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.question = nn.Linear(inputs, size)
                self.models = nn.Parameter(torch.randn(m, size) / size**0.5)
                self.to_models = nn.ModuleList([nn.Linear(2 * size, size) for _ in range(2)])
                self.to_questions = nn.Linear(2 * size, size)
                self.keep = nn.ModuleList([nn.Linear(size, size) for _ in range(2)])
                self.norms = nn.ModuleList([nn.LayerNorm(size) for _ in range(2)])
                self.last = nn.Linear(2 * size, size)
                self.level = nn.Parameter(torch.from_numpy(start.copy()))
                self.register_buffer("nodes", torch.zeros(m, size))

            def after_messages(self, first: Any, y: Any, seen: Any) -> Any:
                """(m, size) model nodes after two rounds over the visible edges."""
                signed = (2 * y - 1) * seen
                n_model = seen.sum(dim=0).clamp(min=1.0)[:, None]
                n_question = seen.sum(dim=1).clamp(min=1.0)[:, None]
                questions, nodes = first, self.models
                for k in range(2):
                    got = torch.cat([seen.T @ questions, signed.T @ questions], dim=1) / n_model
                    new = torch.relu(self.norms[k](self.keep[k](nodes) + self.to_models[k](got)))
                    got = torch.cat([seen @ nodes, signed @ nodes], dim=1) / n_question
                    questions = first + torch.relu(self.to_questions(got))
                    nodes = new
                return self.last(torch.cat([nodes, self.models], dim=1))

            def score(self, first: Any, nodes: Any) -> Any:
                return first @ nodes.T + self.level

        return Graph()

    def _descend(self, network: Any, train: Examples) -> None:
        # What new questions are scored against: the nodes after all train edges.
        self._edges = self.batch(train, self.inputs(train.queries))
        super()._descend(network, train)
        self._refresh(network)
        del self._edges

    def _refresh(self, network: Any) -> None:
        import torch

        with torch.no_grad():
            edges = self._edges
            first = network.question(edges.x)
            network.nodes.copy_(network.after_messages(first, edges.y, edges.known))

    def look(self, network: Any, check: TrainingBatch) -> tuple[float, float]:
        self._refresh(network)
        return super().look(network, check)

    def targets(self, train: Examples) -> dict[str, Array]:
        if not self.settings["best_only"]:
            return {}
        filled = np.nan_to_num(train.labels, nan=-1.0)
        top = (filled == filled.max(axis=1, keepdims=True)) & (filled > 0)
        return {"best": top.astype(np.float32)}

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        import torch

        hide = torch.rand(batch.known.shape, generator=batch.noise) < self.settings["hidden"]
        hidden = batch.known * hide
        first = network.question(batch.x)
        nodes = network.after_messages(first, batch.y, batch.known - hidden)
        target = batch.more.get("best", batch.y)
        return logistic_loss(network.score(first, nodes), target, hidden)

    def read(self, network: Any, x: Any) -> Any:
        import torch

        return torch.sigmoid(network.score(network.question(x), network.nodes))


# HybridLLM: is this model's answer as good as the reference model's?


@listed
class HybridLLM(Trained):
    """Hybrid LLM (Ding et al., arXiv 2404.14618), and its form for many models.

    Task: the chance that a candidate answers as well as the reference, the most
    accurate model on train. Labels: `det` 1[q_m ≥ q_ref]; `prob` the same over
    samples of fractional labels; `trans` 1[q_m ≥ q_ref − t] with the t that spreads
    the labels most, max over t of mean |y_i − y_j|. Loss: cross-entropy. Rule: the
    small model where p ≥ threshold.

    With many models the published code trains one output per candidate. Read by
    argmax it always picks the reference, whose label is 1 on every question: the
    plateau study's row for it is far below all others, a single model
    (arXiv 2606.07587, Table 1). That are its presets. By default a tie counts one
    half, so that the score is ½ + E[q_m − q_ref]/2 and its argmax is the better
    model.
    """

    name = "hybrid-llm"

    def build(self, inputs: int, start: Vectors) -> Any:
        level = 1 / (1 + np.exp(-start.astype(np.float64)))
        return super().build(inputs, start_logits(0.5 + (level - level.max()) / 2))

    def targets(self, train: Examples) -> dict[str, Array]:
        reference = strongest(train)
        target = as_good(train.labels, reference, self.settings["labels"])
        known = ~np.isnan(target)
        return {
            "target": np.where(known, target, 0.0).astype(np.float32),
            "counts": known.astype(np.float32),
        }

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        return logistic_loss(network(batch.x), batch.more["target"], batch.more["counts"])


def as_good(labels: Floats, reference: int, form: str) -> Floats:
    """(n, m) how surely each answer is as good as the reference's; NaN where either is unknown.

    >>> as_good(np.array([[1.0, 0.0], [1.0, 1.0]]), 0, "det").tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    >>> as_good(np.array([[1.0, 0.0], [1.0, 1.0]]), 0, "half").tolist()
    [[0.5, 0.0], [0.5, 0.5]]
    """
    gap = labels - labels[:, [reference]]
    if form == "half":
        return np.asarray((np.sign(gap) + 1) / 2)
    slack = 0.0 if form == "det" else widest(gap)
    # An answer a little behind counts half a tie, so that `trans` still knows the better one.
    good = np.where(np.isnan(gap), np.nan, (gap >= -slack).astype(np.float64))
    return good if form == "det" else np.asarray((good + (np.sign(gap) + 1) / 2) / 2)


def widest(gap: Floats) -> float:
    """The slack t that makes the labels 1[gap ≥ −t] differ most, 2·p·(1 − p) at its largest."""
    known = gap[~np.isnan(gap)]
    choices = np.unique(np.concatenate([[0.0], -known[known < 0]]))[:-1]
    if not len(choices):
        return 0.0
    spread = [float(np.mean(known >= -t) * np.mean(known < -t)) for t in choices[:200]]
    return float(choices[int(np.argmax(spread))])


# MESS+: the correctness predictor of a service-level router.


@listed
class MessPlus(Trained):
    """MESS+ (Woisetschläger et al., arXiv 2505.19947).

    Task: answer a stream of questions at least cost while a share α is answered
    well. Predictor: Linear(d, h)-LayerNorm-ReLU-Linear(h, m) on the frozen
    encoder; loss: cross-entropy per model. Rule of the paper: explore with
    probability min(1, c/t^(1/4)), else choose argmin V·E + Q·(α − p̂) with a
    virtual queue Q: `mess_stream`, `routeyard zoo online --alpha`.

    The study of the plateau takes the predictor and its own rule, and so does this
    class. Published code trains by SGD (rate 0.0606, momentum 0.9) one row at a
    time with dropout 0.1; AdamW in batches reaches the same optimum of the same
    loss in a fraction of the time. The published code overwrites its energy
    estimate with the last value where the paper has a running mean. The router
    learns in an order, so its seeds are orders: the rows come shuffled by the
    seed, and five are reported.
    """

    name = "mess-plus"

    def build(self, inputs: int, start: Vectors) -> Any:
        from torch import nn

        width = self.settings["width"]
        return nn.Sequential(
            nn.Linear(inputs, width), nn.LayerNorm(width), nn.ReLU(), head(width, start)
        )

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        share = self.settings["dropout"]
        hidden = network[:3](dropped(batch.x, share, batch.noise))
        logits = network[3](dropped(hidden, share, batch.noise))
        return logistic_loss(logits, batch.y, batch.known)


# MESS+ online: questions come one by one, and a share α of them is to be answered well.


@dataclass(frozen=True, eq=False)
class Stream:
    """What a run over n questions did, in the order they came.

    Attributes:
        order: (n,) rows as they came.
        choice: (n,) model whose answer was given.
        explored: (n,) whether all models were asked for the question.
        hit: (n,) label of the given answer.
        spent: (n,) cost: of all models where it was explored.
        queue: (n,) virtual queue after the question.
    """

    order: Ints
    choice: Ints
    explored: Bools
    hit: Floats
    spent: Floats
    queue: Floats


def serve(
    vectors: Vectors,
    labels: Floats,
    cost: Floats,
    *,
    alpha: float,
    trade_off: float = 1e-3,
    explore: float = 0.1,
    seed: int = 42,
    width: int = 128,
) -> Stream:
    """MESS+'s decision rule over one shuffle of the questions (arXiv 2505.19947).

    At step t all models are asked with probability min(1, c/t^(1/4)); the answer of the
    dearest one is given and the predictor learns from the row, one step of SGD (rate
    0.0606, momentum 0.9, weight decay 0.01, gradient clipped at 1, as published).
    Else the model of argmin V·E_m + Q·(α − p̂_m) answers, with E_m the mean cost seen
    so far. Then Q ← max(0, Q + α − hit).

    The published code keeps the last cost of a model for E_m where the paper has the
    mean; here it is the mean, scaled by the largest one so that V has no unit. The rule
    sees the label of the given answer, as its feedback, and all labels of explored
    questions, nothing else.

    Args:
        vectors: (n, d) embeddings; labels, cost: (n, m) without gaps.
        alpha: the share to be answered well; `trade_off`: V; `explore`: c.

    Raises:
        BadInput: α is no share, or a label or cost is unknown.
    """
    if not 0 <= alpha <= 1:
        raise BadInput(f"α = {alpha} is no share", next_step="choose one from 0 to 1")
    if np.isnan(labels).any() or np.isnan(cost).any():
        raise BadInput(
            "a stream needs the label and cost of every model and question",
            next_step="leave out the questions on which one is unknown",
        )
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

    n, m = labels.shape
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    predictor = MessPlus(seed=seed, width=width)
    with torch_in_one_thread():
        start = start_logits(np.full(m, 0.5))
        network = seeded(lambda: predictor.build(vectors.shape[1], start), seed)
        optimiser = torch.optim.SGD(
            network.parameters(), lr=0.0606, momentum=0.9, weight_decay=0.01
        )
        x = torch.from_numpy(np.ascontiguousarray(vectors))
        y = torch.from_numpy(labels.astype(np.float32))
        total, queue = np.zeros(m), 0.0
        seen = 0
        stream = Stream(
            order, np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool), np.zeros(n), np.zeros(n),
            np.zeros(n),
        )  # fmt: skip
        for step, row in enumerate(order.tolist()):
            # Before anything is seen there is no cost to weigh.
            look = not seen or rng.random() < min(1.0, explore / (step + 1) ** 0.25)
            if look:
                seen += 1
                total += cost[row]
                chosen = int(np.argmax(total))
                optimiser.zero_grad()
                cross_entropy(network(x[row : row + 1]), y[row : row + 1]).backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimiser.step()
            else:
                with torch.no_grad():
                    p = torch.sigmoid(network(x[row : row + 1]))[0].double().numpy()
                mean = total / max(total.max(), 1e-300)
                chosen = int(np.argmin(trade_off * mean + queue * (alpha - p)))
            stream.choice[step], stream.explored[step] = chosen, look
            stream.hit[step] = labels[row, chosen]
            stream.spent[step] = cost[row].sum() if look else cost[row, chosen]
            queue = max(0.0, queue + alpha - float(labels[row, chosen]))
            stream.queue[step] = queue
    return stream


# MLP: a shared hidden layer and one head per model.


@listed
class MLP:
    """Probability that each model is right, from the question's embedding.

    RouterBench (arXiv 2403.12031) trains a network per model; a
    shared hidden layer with one head per model learns the same in one pass.
    Width and weight decay are chosen on the validation questions by loss.
    """

    name = "mlp"

    def __init__(
        self,
        widths: tuple[int, ...] = (64, 256),
        decays: tuple[float, ...] = (1e-2, 1e-1),
        seed: int = 0,
    ):
        self.widths, self.decays, self.seed = widths, decays, seed

    def fit(self, train: Examples) -> MLP:
        train = usable(train)
        inputs, start = train.queries.vectors().shape[1], start_logits(model_means(train.labels))
        tried = [
            ((w, decay), layers(inputs, w, start), {"weight_decay": decay, "learning_rate": 3e-3})
            for w in self.widths
            for decay in self.decays
        ]
        (self.width, self.decay), self._network = best_network(tried, train, self.seed)
        return self

    def scores(self, queries: Queries) -> Floats:
        return probabilities(self._network, queries.vectors())

    def blank(self, state: Mapping[str, Array]) -> Any:
        """A network of the fitted one's shape, for `saved`."""
        start = np.zeros(len(state["2.bias"]), dtype=np.float32)
        return layers(state["0.weight"].shape[1], self.width, start)()


def layers(inputs: int, width: int, start: Vectors) -> Any:
    """Builder of a network from embeddings (n, d) to logits (n, len(start))."""

    def build() -> Any:
        import torch
        from torch import nn

        heads = nn.Linear(width, len(start))
        with torch.no_grad():
            heads.bias.copy_(torch.from_numpy(start))
        return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), heads)

    return build


# MLP as printed: one network per model, of its own labels only.


@listed
class MLPAsPrinted:
    """One network per model, of its own labels only (RouterBench+, appendix E).

    One hidden layer of 100, learning rate 1e-3 and at most 200 epochs, as in
    RouterBench's code, which stops after ten epochs without progress. Progress is
    measured on the validation questions where there are any, else on train; the best
    epoch is kept. The loss is the cross-entropy; the paper prints none, and the code's
    regression has the squared error.

    Args:
        width: units of the hidden layer; the code's other setting is two layers of 100.
        epochs: most epochs, 200 as printed.
        patience: epochs without progress after which training stops.
    """

    name = "mlp-as-printed"

    def __init__(self, width: int = 100, epochs: int = 200, patience: int = 10, seed: int = 0):
        self.width, self.epochs, self.patience, self.seed = width, epochs, patience, seed

    def fit(self, train: Examples) -> MLPAsPrinted:
        held = train.validation
        train = usable(train)
        vectors, means = train.queries.vectors(), model_means(train.labels)
        self._networks: list[Any] = []
        for k in range(len(train.model_ids)):
            known = ~np.isnan(train.labels[:, k])
            pairs = (vectors[known], train.labels[known][:, [k]])
            if held is not None and not np.isnan(held.labels[:, k]).all():
                pairs = (held.queries.vectors(), held.labels[:, [k]])
            if not known.any():
                self._networks.append(None)
                continue
            network, _ = train_network(
                layers(vectors.shape[1], self.width, start_logits(means[[k]])),
                vectors[known],
                train.labels[known][:, [k]],
                pairs,
                # One for all models, as in RouterBench's code: a model's place decides nothing.
                seed=self.seed,
                epochs=self.epochs,
                patience=self.patience,
                weight_decay=0.0,
            )
            self._networks.append(network)
        self._means = means
        return self

    def scores(self, queries: Queries) -> Floats:
        vectors = queries.vectors()
        columns = [
            np.full(len(vectors), self._means[k])
            if network is None
            else probabilities(network, vectors)[:, 0]
            for k, network in enumerate(self._networks)
        ]
        return np.stack(columns, axis=1)

    blank = MLP.blank


# Pairs of models of one question, for losses that compare two at a time.


def pairs_of(y: Any, known: Any, noise: Any, most: int = 128) -> tuple[Any, Any, Any, Any]:
    """Pairs of models per question: first, second (p,) columns, their sign and weight (b, p).

    All pairs of a small pool; of a large one `most` drawn anew each step, which
    leaves the mean over pairs unbiased.

    Returns:
        first, second: (p,) model positions, first < second.
        sign: (b, p) 1 when the first is better, −1 when the second, 0 for a tie.
        weight: (b, p) 1 where both are labelled.
    """
    import torch

    first, second = torch.triu_indices(y.shape[1], y.shape[1], offset=1)
    if len(first) > most and noise is not None:
        some = torch.randperm(len(first), generator=noise)[:most]
        first, second = first[some], second[some]
    sign = torch.sign(y[:, first] - y[:, second])
    return first, second, sign, known[:, first] * known[:, second]


# EquiRouter: models are ranked within each question by a head that sees both.


@listed
class EquiRouter(Trained):
    """EquiRouter (Lai and Ye, "When Routing Collapses", arXiv 2602.03478).

    Task: the order of models within a question, against collapse onto one model.
    A trunk gives z; a model's embedding E modulates it, z_m = γ(E)⊙z + β(E), and
    one head reads [z_m, u, z_m⊙u, |z_m−u|] with u = Linear(E). Loss: squared
    error + 50 · softplus(−(s_i − s_j)) over pairs with Y_i > Y_j. Rule of the
    paper: argmax among models whose predicted cost fits the budget, which here is
    the rule `query-budget`.

    The authors' code pools pairs over the whole batch, so questions with many pairs
    dominate, where the text speaks of the order within each question: here every
    question weighs the same; the presets pool. The code has no order by cost
    within ties of quality, though the text has: the tie-break by
    cost is the selection rule's here. Trunk 1024-512, embedding 128, rate 1e-4,
    5 epochs and batch 128 are the published configuration; the default is a
    narrower one that trains in seconds on frozen embeddings.
    """

    name = "equirouter"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        width, size, m = self.settings["width"], self.settings["embedding"], len(start)

        class Modulated(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.trunk = nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.LayerNorm(width))
                self.models = nn.Parameter(0.02 * torch.randn(m, size))
                self.film = nn.Linear(size, 2 * width)
                self.own = nn.Linear(size, width)
                self.hidden = nn.Sequential(nn.Linear(4 * width, width), nn.GELU())
                self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 1)
                self.level = nn.Parameter(torch.sigmoid(torch.from_numpy(start.copy())))
                with torch.no_grad():
                    self.out.weight.mul_(0.1)
                    self.out.bias.zero_()

            def forward(self, x: Any) -> Any:
                z = self.trunk(x)
                scale, shift = self.film(self.models).chunk(2, dim=-1)
                scale, u = 1 + scale, self.own(self.models)
                layer, bend = self.hidden
                # All of [z_m, u, z_m ⊙ u] that is linear in z is one product: a matrix a model.
                of_z, of_u, of_product, of_gap = layer.weight.chunk(4, dim=1)
                joined = of_z + of_product * u[:, None, :]
                fixed = (joined @ shift[..., None])[..., 0] + u @ of_u.T + layer.bias
                moved = (joined * scale[:, None, :]).reshape(-1, width)
                hidden = (z @ moved.T).reshape(len(x), m, width) + fixed
                gap = torch.addcmul(shift - u, z[:, None, :], scale).abs()
                return self.out(self.norm(bend(hidden + gap @ of_gap.T)))[..., 0] + self.level

        return Modulated()

    def read(self, network: Any, x: Any) -> Any:
        return network(x)

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        scores = network(batch.x)
        first, second, sign, weight = pairs_of(batch.y, batch.known, batch.noise)
        ranked = misordered(
            scores[:, first] - scores[:, second], sign, weight, pooled=self.settings["pooled"]
        )
        squares = masked_mean((scores - batch.y) ** 2, batch.known)
        return squares + self.settings["weight"] * ranked


def misordered(difference: Any, sign: Any, weight: Any, *, pooled: bool) -> Any:
    """Mean softplus(−sign·difference) over pairs that are no tie.

    Args:
        pooled: over all pairs of the batch; else over each question's pairs, and
            then over the questions that have any.
    """
    from torch.nn.functional import softplus

    counts = weight * sign.abs()
    each = softplus(-sign * difference) * counts
    if pooled:
        return each.sum() / counts.sum().clamp(min=1.0)
    n = counts.sum(dim=1)
    return masked_mean(each.sum(dim=1) / n.clamp(min=1.0), (n > 0).to(each.dtype))


# Model Spider: model tokens that attend to the question, trained to rank models.


@listed
class ModelSpider(Trained):
    """Model Spider (Zhang et al., arXiv 2306.03900), turned from tasks to questions.

    Task: rank models. A model's token attends to the prototypes of a task through
    one attention layer with residual and LayerNorm; a linear map of what comes out
    is the score. Loss: Σ_r −log softmax over the models not yet ranked, on the true
    order (ListMLE). Rule: argmax.

    For routing, the prototypes are the question and the centre of its cluster. The
    order is by label, which in routing is mostly ties: as published a tie is broken
    by the models' mean accuracy, which teaches the global order once more. Here the
    models of equal label share one place (the likelihood of the tied set, each tied
    model against itself and all below), so that a tie teaches nothing about its
    members; the preset `code` breaks ties by mean.
    """

    name = "model-spider"

    def fit(self, train: Examples) -> ModelSpider:
        from routeyard.pipelines.routers.clusters import at_most

        self._centres = at_most(self.settings["clusters"], train.queries.vectors(), self.seed)[1]
        super().fit(train)
        return self

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        size, m, clusters = self.settings["size"], len(start), len(self._centres)
        centres = torch.from_numpy(self._centres.copy())

        class Spider(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("centres", centres.reshape(clusters, inputs))
                self.tokens = nn.Parameter(torch.randn(m, size) / size**0.5)
                self.project = nn.Linear(inputs, size)
                self.query, self.key = nn.Linear(size, size), nn.Linear(size, size)
                self.value, self.join = nn.Linear(size, size), nn.Linear(size, size)
                self.norm, self.out = nn.LayerNorm(size), nn.Linear(size, 1)
                self.level = nn.Parameter(torch.from_numpy(start.copy()))
                with torch.no_grad():
                    self.out.weight.mul_(0.1)

            def forward(self, x: Any) -> Any:
                near = torch.cdist(x, self.centres).argmin(dim=1)
                seen = self.project(torch.stack([x, self.centres[near]], dim=1))
                keys, values = self.key(seen), self.value(seen)
                token_keys = self.key(self.tokens)
                asked = self.query(self.tokens)
                own = (asked * token_keys).sum(dim=1).expand(len(x), m)[..., None]
                weight = torch.cat([own, asked @ keys.transpose(1, 2)], dim=-1)
                weight = torch.softmax(weight / size**0.5, dim=-1)
                got = weight[..., :1] * self.value(self.tokens) + weight[..., 1:] @ values
                # The product keeps what attention over two prototypes alone cannot carry:
                # a direction of the question that suits this model.
                met = self.norm(self.tokens + self.join(got) * (1 + self.tokens))
                return self.out(met)[..., 0] + (met * seen[:, :1]).mean(dim=-1) + self.level

        return Spider()

    def targets(self, train: Examples) -> dict[str, Array]:
        step = np.zeros(len(train.model_ids))
        if self.settings["ties"] == "mean":
            # Less than any difference of labels can be, so that it decides ties only.
            step = 1e-4 * model_means(train.labels)
        place = np.nan_to_num(train.labels, nan=-1.0) + step
        return {"place": place.astype(np.float32)}

    def read(self, network: Any, x: Any) -> Any:
        return network(x)

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        return ordered(network(batch.x), batch.more["place"], batch.known)


def ordered(scores: Any, place: Any, known: Any) -> Any:
    """Mean over questions of −Σ log P(each model against itself and all strictly below).

    Without ties this is the Plackett-Luce likelihood of the order. Models of the
    lowest label have nobody below and add nothing; unlabelled ones take no part.
    """
    import torch

    # In rising order, unlabelled ones last, those strictly below come first: one running
    # logsumexp serves all models of a question.
    level, order = place.masked_fill(known <= 0, torch.inf).sort(dim=1)
    ranked = scores.gather(1, order)
    running = torch.logcumsumexp(ranked, dim=1)
    before = torch.searchsorted(level, level, right=False)
    counts = ((before > 0) & torch.isfinite(level)).to(scores.dtype)
    below = running.gather(1, (before - 1).clamp(min=0))
    each = torch.logaddexp(ranked, below) - ranked
    n = counts.sum(dim=1)
    per_row = (each * counts).sum(dim=1) / n.clamp(min=1.0)
    return per_row.sum() / (n > 0).sum().clamp(min=1)


# Prompt-to-Leaderboard: a ranking of models for every question, from pairwise results.


@listed
class PromptToLeaderboard(Trained):
    """P2L (Frick et al., arXiv 2502.14855).

    Task: coefficients β(x) of a Bradley-Terry model for every question. From
    correctness, a pair of models is won by the higher label; equal labels are a
    tie, and both wrong is "both bad". Losses: `bag` (the one its authors ship,
    grounded Rao-Kupper: win, loss, tie and both bad, with a strength of 1 for "an
    acceptable answer") uses every label; `bt` is plain Bradley-Terry with ties as
    half a win each, the plateau study's choice. Rule: argmax β; under a budget the
    linear program of rule `mean-budget` over probabilities.

    The published model fine-tunes a decoder; here β is read off the frozen
    embedding. With `bag` the score is σ(β), the chance to beat the ground of 1,
    which is a probability; with `bt` β has no unit and is an order only, so its
    sigmoid is one too.
    """

    name = "p2l"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        width = self.settings["width"]

        class Coefficients(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                hidden = [nn.Linear(inputs, width), nn.ReLU()] if width else []
                self.beta = nn.Sequential(*hidden, head(width or inputs, start))
                self.eta = nn.Parameter(torch.zeros(()))

            def forward(self, x: Any) -> Any:
                return self.beta(x)

        return Coefficients()

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        beta = network(batch.x)
        first, second, sign, weight = pairs_of(batch.y, batch.known, batch.noise)
        a, b = beta[:, first], beta[:, second]
        if self.settings["form"] == "bt":
            return masked_mean(bradley_terry(a, b, sign), weight)
        bad = (batch.y[:, first] + batch.y[:, second] == 0).to(a.dtype)
        return masked_mean(grounded(a, b, network.eta, sign, bad), weight)


def bradley_terry(first: Any, second: Any, sign: Any) -> Any:
    """−log likelihood of each pair; a tie is half a win each."""
    from torch.nn.functional import logsigmoid

    d = first - second
    return -((1 + sign) / 2 * logsigmoid(d) + (1 - sign) / 2 * logsigmoid(-d))


def grounded_probabilities(first: Any, second: Any, eta: Any) -> tuple[Any, Any, Any, Any]:
    """Chances that the first wins, the second wins, both are good and both are bad; sum 1.

    π = exp β and θ = exp η + 1.000001: π_a/(π_a + θπ_b + 1), the same turned
    round, 1/(1 + π_a + π_b) for both bad, and the rest for a tie.
    """
    import torch

    a, b = torch.exp(first.clamp(-15, 15)), torch.exp(second.clamp(-15, 15))
    theta = torch.exp(eta) + 1.000001
    win, lose = a / (a + theta * b + 1), b / (b + theta * a + 1)
    bad = 1 / (1 + a + b)
    return win, lose, 1 - win - lose - bad, bad


def grounded(first: Any, second: Any, eta: Any, sign: Any, bad: Any) -> Any:
    """−log likelihood of each pair under `grounded_probabilities`, clamped at 1e-6."""
    import torch

    win, lose, tie, both_bad = grounded_probabilities(first, second, eta)
    equal = torch.where(bad > 0, both_bad, tie)
    seen = torch.where(sign > 0, win, torch.where(sign < 0, lose, equal))
    return -torch.log(seen.clamp(min=1e-6))


# RouterDC: questions drawn to the models that answer them, and to questions like them.


@listed
class RouterDC(Trained):
    """RouterDC (Chen et al., arXiv 2409.19886).

    Task: cosine between a question and a vector k_m per model. Sample-LLM loss:
    for each of the K+ best models of a question, −log softmax over that model and
    the K− worst ones (a good model is skipped where its score is 0, a bad one
    masked where its score exceeds 0.5). Sample-sample loss, weight 1: a question of
    the same cluster against H = 3 of other clusters. K+ = K− = 3, k_m ~ N(0, 0.78²),
    temperature 1. Rule: argmax.

    Labels of 0 and 1 leave most of the K+ and K− to ties. The published code takes the
    first of them by position, so that the order of columns decides who is trained (`ties`
    `position`, preset `code`: `evaluate` then gives the range over orders); here the better
    on all train questions comes first (`arrays.ranked`).

    The paper tunes mDeBERTa; here a linear map or one hidden layer of the frozen
    embedding takes its place. The published code keeps the checkpoint that is
    best on the test questions, which is not followed; that its positive can be the
    question itself, and a good model its own rival where it also is among the worst, only
    with `ties` `position`. Its clusters come from t-SNE and K-means; here K-means alone.
    Temperature 1 lets a cosine move a softmax by e² at most: the default is lower.
    """

    name = "routerdc"
    targets_read_embeddings = True

    def build(self, inputs: int, start: NDArray[np.float32]) -> Any:
        import torch
        from torch import nn

        size, m = self.settings["size"], len(start)

        class Space(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.question = nn.Linear(inputs, size)
                self.models = nn.Parameter(0.78 * torch.randn(m, size))

            def embed(self, x: Any) -> Any:
                return nn.functional.normalize(self.question(x), dim=1)

            def forward(self, x: Any) -> Any:
                return self.embed(x) @ nn.functional.normalize(self.models, dim=1).T

        return Space()

    def targets(self, train: Examples) -> dict[str, NDArray[Any]]:
        from routeyard.pipelines.routers.clusters import at_most

        place = np.argsort(ranked(train.labels, mean_cost(train))).astype(np.int32)
        if self.positional:
            place = np.arange(len(place), dtype=np.int32)
        places = np.tile(place, (len(train.labels), 1))
        result, _ = at_most(self.settings["clusters"], train.queries.vectors(), self.seed)
        return {"cluster": result, "place": places}

    def read(self, network: Any, x: Any) -> Any:
        return network(x)

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        s = self.settings
        z = network.embed(batch.x)
        from torch.nn.functional import normalize

        cosine = z @ normalize(network.models, dim=1).T / s["temperature"]
        m = cosine.shape[1]
        k = min(s["top"], m if self.positional else max(m // 2, 1))
        more, coded = batch.more, self.positional
        total = to_models(cosine, batch.y, batch.known, more["place"], k, as_coded=coded)
        if s["weight"]:
            near = to_questions(z, more["cluster"], s["negatives"], batch.noise, as_coded=coded)
            total = total + s["weight"] * near
        return total

    def _unlike_published(self, n: int) -> tuple[str, ...]:
        result, m = super()._unlike_published(n), self._shape[-1]
        if self.as_published and not self.positional and self.settings["top"] > m // 2:
            result += (f"top {self.settings['top']}: half of {m} models",)
        return result

    @property
    def positional(self) -> bool:
        """Whether the order of columns decides which of equal models are trained."""
        return bool(self.settings["ties"] == "position")


def to_models(
    cosine: Any, labels: Any, known: Any, place: Any, k: int, *, as_coded: bool = False
) -> Any:
    """Sample-LLM loss: mean over questions of the sum over their best models.

    Of equal labels the one with the lower `place` comes first, among the good and among
    the bad. Models without a label are neither good nor bad.

    Args:
        cosine, labels, known: (n, m) similarities, scores and 1 where there is a score.
        place: (n, m) place of each model on all train questions, 0 the best.
        k: K+ = K−.
        as_coded: a good model that also is one of the worst is its own rival.
    """
    import torch

    good_order = torch.where(known > 0, labels, torch.full_like(labels, -1.0))
    bad_order = torch.where(known > 0, labels, torch.full_like(labels, 2.0))
    first = torch.argsort(place, dim=1)
    good, bad = (
        first.gather(1, torch.sort(by.gather(1, first), dim=1, stable=True).indices)[:, :k]
        for by in (-good_order, bad_order)
    )
    bad_value = bad_order.gather(1, bad)
    low = cosine.gather(1, bad).masked_fill(bad_value > 0.5, -torch.inf)
    total = cosine.new_zeros(len(cosine))
    for column in range(k):
        at = good[:, column : column + 1]
        high = cosine.gather(1, at)
        counts = (good_order.gather(1, at)[:, 0] > 0).to(cosine.dtype)
        # Where the good model is also among the bad ones it is no rival of itself.
        rivals = low if as_coded else low.masked_fill(bad == at, -torch.inf)
        each = torch.logsumexp(torch.cat([high, rivals], dim=1), dim=1) - high[:, 0]
        total = total + each * counts
    return total.mean()


def to_questions(
    z: Any, cluster: Any, negatives: int, noise: Any, *, as_coded: bool = False
) -> Any:
    """Sample-sample loss: −log softmax of the cosine to one positive among H negatives.

    Questions without another of their cluster, or without any of another one in
    the batch, do not count. `as_coded`: the positive may be the question itself, and
    those with fewer than H of other clusters do not count.
    """
    import torch

    same = cluster[:, None] == cluster[None, :]
    other = ~same
    if not as_coded:
        same = same & ~torch.eye(len(z), dtype=torch.bool)
    usable = same.any(dim=1) & (other.sum(dim=1) >= (negatives if as_coded else 1))
    if not bool(usable.any()):
        return z.sum() * 0.0
    draw = torch.rand(same.shape, generator=noise)
    positive = torch.where(same, draw, torch.full_like(draw, -1.0)).argmax(dim=1, keepdim=True)
    order = torch.where(other, draw, torch.full_like(draw, -1.0))
    h = min(negatives, len(z))
    drawn, negative = order.topk(h, dim=1)
    cosine = z @ z.T
    near = cosine.gather(1, positive)
    far = cosine.gather(1, negative).masked_fill(drawn < 0, -torch.inf)
    each = torch.logsumexp(torch.cat([near, far], dim=1), dim=1) - near[:, 0]
    return masked_mean(each, usable.to(each.dtype))


# Zooter: a distribution over models, distilled from their scores.


@listed
class Zooter(Trained):
    """Zooter (Lu et al., "Routing to the Expert", arXiv 2311.08692).

    Task: which models answer a question well. Target: the models' labels as a
    distribution, smoothed by the mean of the question's tag, s* = β·s + (1−β)·s_tag
    with β = 0.3; tags here are the release's tasks. Loss: KL(s* ‖ Z), that is
    cross-entropy with soft targets; the paper prints the arguments the other way
    round, KL(Z ‖ s), which its training cannot have meant for a fixed target with
    zeros. Rule: argmax.

    The plateau study's `zooter_lite` adds cross-entropy per model ("KL + BCE for
    distillation", arXiv 2606.07587, appendix E.4), which also makes the scores
    probabilities: that is the default here. With the preset `text` only the KL term
    and the softmax remain, and the target is the softmax of the labels. Questions
    that no model solves have no distribution and teach only the second term.
    """

    name = "zooter"

    def targets(self, train: Examples) -> dict[str, Array]:
        soft = not self.settings["both"]
        target, counts = distribution(
            train.labels, train.queries.tasks, self.settings["beta"], softmax=soft
        )
        return {"target": target.astype(np.float32), "counts": counts.astype(np.float32)}

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        logits = network(batch.x)
        total = divergence(logits, batch.more["target"], batch.more["counts"])
        if self.settings["both"]:
            total = total + logistic_loss(logits, batch.y, batch.known)
        return total

    def read(self, network: Any, x: Any) -> Any:
        import torch

        logits = network(x)
        return torch.sigmoid(logits) if self.settings["both"] else torch.softmax(logits, dim=1)


def distribution(
    labels: Floats, tags: Names, beta: float, *, softmax: bool
) -> tuple[Floats, Floats]:
    """(n, m) target distributions and (n,) 1 where a question has one.

    Args:
        softmax: softmax of the labels as in the paper; else labels divided by
            their sum, and a question without any right answer has no target.
    """
    known = ~np.isnan(labels)
    filled = np.where(known, labels, 0.0)
    shares = np.where(known, np.exp(filled), 0.0) if softmax else filled
    total = shares.sum(axis=1, keepdims=True)
    counts = (total[:, 0] > 0).astype(np.float64)
    own = shares / np.where(total > 0, total, 1.0)
    smooth = np.zeros_like(own)
    for tag in np.unique(tags):
        at = tags == tag
        n = counts[at].sum()
        smooth[at] = own[at].sum(axis=0) / n if n else 0.0
    return beta * own + (1 - beta) * smooth, counts


def divergence(logits: Any, target: Any, counts: Any) -> Any:
    """Mean KL(target ‖ softmax(logits)) over the questions that count.

    The target's entropy is constant and kept, so that a perfect fit is 0.
    """
    import torch

    log_p = torch.log_softmax(logits, dim=1)
    per_row = (torch.xlogy(target, target) - target * log_p).sum(dim=1)
    return masked_mean(per_row, counts)
