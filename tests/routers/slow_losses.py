"""Losses of the gradient routers written out in loops, from a network's parameters as arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Arrays = Mapping[str, Floats]
#: (parameters, x, y, known, targets, settings) → loss.
Slow = Callable[[Arrays, Floats, Floats, Floats, Mapping[str, Any], Mapping[str, Any]], float]


def sigmoid(v: float) -> float:
    return 1 / (1 + math.exp(-v))


def bce(logits: Floats, y: Floats, known: Floats) -> float:
    total, n = 0.0, 0
    for b, m in zip(*np.nonzero(known), strict=True):
        p = sigmoid(float(logits[b, m]))
        total -= float(y[b, m]) * math.log(p) + (1 - float(y[b, m])) * math.log(1 - p)
        n += 1
    return total / n


def linear(p: Arrays, name: str, v: Floats) -> Floats:
    out = p[f"{name}.weight"] @ v
    return out + p[f"{name}.bias"] if f"{name}.bias" in p else out


def norm(p: Arrays, name: str, v: Floats) -> Floats:
    v = (v - v.mean()) / math.sqrt(float(v.var()) + 1e-5)
    return v * p[f"{name}.weight"] + p[f"{name}.bias"]


def gelu(v: Floats) -> Floats:
    return np.array([0.5 * float(a) * (1 + math.erf(float(a) / math.sqrt(2))) for a in v])


def relu(v: Floats) -> Floats:
    return np.maximum(v, 0)


def hidden_layer(p: Arrays, x: Floats, prefix: str = "") -> Floats:
    return np.array([linear(p, f"{prefix}2", relu(linear(p, f"{prefix}0", v))) for v in x])


def one_hidden(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    return bce(hidden_layer(p, x), y, known)


def logistic(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    return bce(x @ p["weight"].T + p["bias"], y, known)


def embedding_mlp(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    rows = [
        linear(p, "head", relu(linear(p, "hidden.1", relu(linear(p, "hidden.0", v))))) for v in x
    ]
    return bce(np.array(rows), y, known)


def parametric(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    logits, terms = x @ p["weight"].T + p["bias"], []
    for b in range(len(x)):
        good = sum(np.exp(v) for v, a, k in zip(logits[b], y[b], known[b], strict=True) if a * k)
        every = sum(np.exp(v) for v, k in zip(logits[b], known[b], strict=True) if k)
        if good:
            terms.append(-np.log(good / every))
    return float(np.mean(terms))


def mess_plus(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    rows = [linear(p, "3", relu(norm(p, "1", linear(p, "0", v)))) for v in x]
    return bce(np.array(rows), y, known)


def hybrid(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    return bce(hidden_layer(p, x), t["target"], t["counts"])


def fly_swat(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    logits = np.zeros(y.shape)
    for b, v in enumerate(x):
        for m, token in enumerate(p["tokens"]):
            first = relu(linear(p, "question", v) + linear(p, "model", token))
            out = linear(p, "out", relu(linear(p, "mixed", first)))
            logits[b, m] = out[0] + linear(p, "level", token)[0]
    return bce(logits, y, known)


def embedllm(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    total, n = 0.0, 0
    for b, v in enumerate(x):
        for m in range(y.shape[1]):
            if not known[b, m]:
                continue
            # Two classes; each model's own level belongs to "right".
            wrong, right = linear(p, "classes", p["models"][m] * linear(p, "project", v))
            right += p["level"][m]
            log_sum = math.log(math.exp(wrong) + math.exp(right))
            total -= y[b, m] * (right - log_sum) + (1 - y[b, m]) * (wrong - log_sum)
            n += 1
    return float(total) / n


def mirt(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    logits = np.zeros(y.shape)
    for b, v in enumerate(x):
        a = np.array([math.log1p(math.exp(float(u))) for u in linear(p, "discrimination", v)])
        for m, ability in enumerate(p["ability"]):
            logits[b, m] = a @ ability - linear(p, "difficulty", v)[0]
    return bce(logits, y, known)


def nirt(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    logits = np.zeros(y.shape)
    for b, v in enumerate(x):
        raw = np.exp(linear(p, "relevance", v))
        relevance = raw / raw.sum() * len(raw)
        sharp = 9 * sigmoid(float(linear(p, "sharpness", v)[0]))
        for m, mastery in enumerate(p["mastery"]):
            demand = linear(p, "demand", v)
            gap = [
                sharp * (sigmoid(float(i)) - sigmoid(float(j))) * r
                for i, j, r in zip(mastery, demand, relevance, strict=True)
            ]
            hidden = np.tanh(np.abs(p["first.weight"]) @ np.array(gap) + p["first.bias"])
            logits[b, m] = (np.abs(p["second.weight"]) @ hidden + p["second.bias"])[0]
    return bce(logits, y, known)


def graph(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    hidden = known * (t["drawn"] < s["hidden"])
    seen = known - hidden
    first = np.array([linear(p, "question", v) for v in x])
    questions, nodes = first.copy(), p["models"].copy()
    for k in range(2):
        new, later = [], []
        for m in range(y.shape[1]):
            linked = [b for b in range(len(x)) if seen[b, m]]
            n = max(len(linked), 1)
            plain = sum((questions[b] for b in linked), np.zeros(s["size"])) / n
            signed = sum(
                ((2 * y[b, m] - 1) * questions[b] for b in linked), np.zeros(s["size"])
            ) / n  # fmt: skip
            mixed = linear(p, f"keep.{k}", nodes[m])
            mixed = mixed + linear(p, f"to_models.{k}", np.concatenate([plain, signed]))
            new.append(relu(norm(p, f"norms.{k}", mixed)))
        for b in range(len(x)):
            linked = [m for m in range(y.shape[1]) if seen[b, m]]
            n = max(len(linked), 1)
            plain = sum((nodes[m] for m in linked), np.zeros(s["size"])) / n
            signed = sum(((2 * y[b, m] - 1) * nodes[m] for m in linked), np.zeros(s["size"])) / n
            got = linear(p, "to_questions", np.concatenate([plain, signed]))
            later.append(first[b] + relu(got))
        questions, nodes = np.array(later), np.array(new)
    last = [
        linear(p, "last", np.concatenate([a, b])) for a, b in zip(nodes, p["models"], strict=True)
    ]
    return bce(first @ np.array(last).T + p["level"], y, hidden)


def equi(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    scores = np.zeros(y.shape)
    for b, v in enumerate(x):
        z = norm(p, "trunk.2", gelu(linear(p, "trunk.0", v)))
        for m, token in enumerate(p["models"]):
            film = linear(p, "film", token)
            own = (1 + film[: len(z)]) * z + film[len(z) :]
            u = linear(p, "own", token)
            both = np.concatenate([own, u, own * u, np.abs(own - u)])
            out = linear(p, "out", norm(p, "norm", gelu(linear(p, "hidden.0", both))))
            scores[b, m] = out[0] + p["level"][m]
    squares = float(np.mean((scores - y)[known > 0] ** 2))
    rows = []
    for b in range(len(x)):
        terms = [
            math.log1p(math.exp(-(scores[b, i] - scores[b, j])))
            for i in range(y.shape[1])
            for j in range(y.shape[1])
            if known[b, i] and known[b, j] and y[b, i] > y[b, j]
        ]
        if terms:
            rows.append(sum(terms) / len(terms))
    return squares + s["weight"] * sum(rows) / len(rows)


def spider(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    rows, size = [], s["size"]
    for b, v in enumerate(x):
        centre = min(t["centres"], key=lambda c: float(((c - v) ** 2).sum()))
        seen = [linear(p, "project", v), linear(p, "project", centre)]
        scores = []
        for m, token in enumerate(p["tokens"]):
            asked = linear(p, "query", token)
            nodes = [token, *seen]
            weight = np.exp([float(asked @ linear(p, "key", n)) / math.sqrt(size) for n in nodes])
            weight = weight / weight.sum()
            values = [linear(p, "value", n) for n in nodes]
            got = sum((w * u for w, u in zip(weight, values, strict=True)), np.zeros(size))
            met = norm(p, "norm", token + linear(p, "join", got) * (1 + token))
            score = linear(p, "out", met)[0] + float(np.mean(met * seen[0])) + p["level"][m]
            scores.append(float(score))
        terms = []
        for m, own in enumerate(scores):
            below = [k for k in range(len(scores)) if y[b, k] < y[b, m] and known[b, k]]
            if known[b, m] and below:
                total = math.exp(own) + sum(math.exp(scores[k]) for k in below)
                terms.append(math.log(total) - own)
        if terms:
            rows.append(sum(terms) / len(terms))
    return sum(rows) / len(rows)


def p2l(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    beta, theta = hidden_layer(p, x, "beta."), math.exp(float(p["eta"])) + 1.000001
    total, n = 0.0, 0
    for b in range(len(x)):
        for i in range(y.shape[1]):
            for j in range(i + 1, y.shape[1]):
                if not (known[b, i] and known[b, j]):
                    continue
                u, w = math.exp(beta[b, i]), math.exp(beta[b, j])
                win, lose, bad = u / (u + theta * w + 1), w / (w + theta * u + 1), 1 / (1 + u + w)
                if y[b, i] == y[b, j]:
                    chance = bad if y[b, i] == 0 else 1 - win - lose - bad
                else:
                    chance = win if y[b, i] > y[b, j] else lose
                total -= math.log(chance)
                n += 1
    return total / n


def routellm_bert(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    logits, total, n = hidden_layer(p, x), 0.0, 0
    for b in range(len(x)):
        for m in range(y.shape[1]):
            if known[b, m] and known[b, 1]:
                place = 0 if y[b, m] > y[b, 1] else 2 if y[b, m] < y[b, 1] else 1
                three = np.exp(logits[b, 3 * m : 3 * m + 3])
                total -= math.log(float(three[place] / three.sum()))
                n += 1
    return total / n


def routellm_mf(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    total, n = 0.0, 0
    for b, v in enumerate(x):
        delta = [
            float(p["out.weight"][0] @ (u / np.linalg.norm(u) * linear(p, "project", v)))
            for u in p["models"]
        ]
        for i in range(y.shape[1]):
            for j in range(y.shape[1]):
                if known[b, i] and known[b, j] and y[b, i] > y[b, j]:
                    total += math.log1p(math.exp(-(delta[i] - delta[j])))
                    n += 1
    return total / n


def routerdc(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    rows = []
    for b, v in enumerate(x):
        z = linear(p, "question", v)
        cosine = [
            float(z @ k / np.linalg.norm(z) / np.linalg.norm(k)) / s["temperature"]
            for k in p["models"]
        ]
        order = range(len(cosine))
        good = sorted(order, key=lambda m: -(y[b, m] if known[b, m] else -1.0))[: s["top"]]
        bad = sorted(order, key=lambda m: y[b, m] if known[b, m] else 2.0)[: s["top"]]
        bad = [m for m in bad if known[b, m] and y[b, m] <= 0.5]
        row = 0.0
        for m in good:
            if known[b, m] and y[b, m] > 0:
                total = sum(math.exp(cosine[k]) for k in [m, *(k for k in bad if k != m)])
                row += math.log(total) - cosine[m]
        rows.append(row)
    return sum(rows) / len(rows)


def zooter(p: Arrays, x: Floats, y: Floats, known: Floats, t: Any, s: Any) -> float:
    logits, rows = hidden_layer(p, x), []
    for b in range(len(x)):
        if t["counts"][b]:
            logs = logits[b] - math.log(float(np.exp(logits[b]).sum()))
            target = t["target"][b]
            each = zip(target.tolist(), logs.tolist(), strict=True)
            rows.append(sum(w * (math.log(w) - q) for w, q in each if w > 0))
    return sum(rows) / len(rows) + bce(logits, y, known)


SLOW: dict[str, Slow] = {
    "cp-router": one_hidden,
    "embedllm": embedllm,
    "equirouter": equi,
    "fly-swat": fly_swat,
    "graph-router": graph,
    "hybrid-llm": hybrid,
    "embedding-mlp": embedding_mlp,
    "logistic": logistic,
    "mess-plus": mess_plus,
    "mirt": mirt,
    "model-spider": spider,
    "nirt": nirt,
    "p2l": p2l,
    "parametric": parametric,
    "routellm-bert": routellm_bert,
    "routellm-mf": routellm_mf,
    "routerdc": routerdc,
    "zooter": zooter,
}
