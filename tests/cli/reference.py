"""Attention as plain Python loops over nested lists [T][D], straight from the formulas."""

import math


def dot(a, b):
    assert len(a) == len(b)
    return sum(x * y for x, y in zip(a, b))


def times(matrix, vector):
    return [dot(row, vector) for row in matrix]


def additive(q, k, p, activation):
    a = times(p["W_q"], q) if "W_q" in p else q
    b = times(p["W_k"], k) if "W_k" in p else k
    offset = p.get("b", [0.0] * len(a))
    return sum(v * activation(x + y + o) for v, x, y, o in zip(p["v"], a, b, offset))


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def cosine(q, k, p):
    return p.get("beta", 1.0) * dot(q, k) / math.sqrt(dot(q, q) * dot(k, k))


def elu_features(x):
    return [a + 1 if a > 0 else math.exp(a) for a in x]


def positive_features(x, omega):
    x = [a / len(x) ** 0.25 for a in x]
    return [math.exp(dot(row, x) - dot(x, x) / 2) / math.sqrt(len(omega)) for row in omega]


# score(q, k, position of k, parameters)
SCORES = {
    "dot": lambda q, k, j, p: dot(q, k),
    "scaled_dot": lambda q, k, j, p: dot(q, k) / math.sqrt(len(q)),
    "general": lambda q, k, j, p: dot(q, times(p["W"], k)),
    "additive": lambda q, k, j, p: additive(q, k, p, math.tanh),
    "additive_sigmoid": lambda q, k, j, p: additive(q, k, p, sigmoid),
    "additive_relu": lambda q, k, j, p: additive(q, k, p, lambda x: max(0.0, x)),
    "additive_leaky_relu": lambda q, k, j, p: additive(q, k, p, lambda x: max(0.2 * x, x)),
    "squared_distance": lambda q, k, j, p: -sum((x - y) ** 2 for x, y in zip(q, k)),
    "absolute_distance": lambda q, k, j, p: -sum(abs(x - y) for x, y in zip(q, k)),
    "cosine": lambda q, k, j, p: cosine(q, k, p),
    "elu_features": lambda q, k, j, p: dot(elu_features(q), elu_features(k)),
    "positive_features": lambda q, k, j, p: dot(
        positive_features(q, p["omega"]), positive_features(k, p["omega"])
    ),
    "location": lambda q, k, j, p: times(p["W"], q)[j] if "W" in p else q[j],
}


def attend(query, key, value, score="scaled_dot", parameters=None, allows=lambda i, j: True):
    """The dictionary that `attend compute --scores --weights` gives, as nested lists."""
    result = {"context": [], "lse": [], "scores": [], "weights": []}
    for i, q in enumerate(query):
        scores = [
            SCORES[score](q, k, j, parameters or {}) if allows(i, j) else -math.inf
            for j, k in enumerate(key)
        ]
        total = sum(math.exp(s) for s in scores)
        weights = [math.exp(s) / total if total else 0.0 for s in scores]
        result["scores"].append(scores)
        result["weights"].append(weights)
        result["lse"].append(math.log(total) if total else -math.inf)
        result["context"].append(
            [sum(w * v[d] for w, v in zip(weights, value)) for d in range(len(value[0]))]
        )
    return result
