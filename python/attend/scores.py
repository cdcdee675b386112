"""Scores of a query and a key, named as in docs/mechanisms.md. Parameters have gradients; each may have an axis of
heads first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ._checks import check_parameter, check_tensor, shape

DOT, ADDITIVE, SQUARED_DISTANCE, ABSOLUTE_DISTANCE = range(4)
TANH, SIGMOID, RELU, LEAKY_RELU = range(4)

Parameters = dict[str, Tensor]
Map = Callable[[Tensor, Parameters], Tensor]


@dataclass(frozen=True, eq=False)
class Score:
    """A score: its family in the kernels, and the maps of queries and keys. Made by the functions of this module."""

    name: str
    family: int
    parameters: Parameters = field(default_factory=dict)
    map_query: Map | None = None
    map_key: Map | None = None
    scale: float | None = 1.0  # None: 1 / sqrt(depth)
    activation: int = TANH

    def converted(self, like: Tensor) -> Parameters:
        return {name: check_parameter(name, x, like) for name, x in self.parameters.items()}


def _given(name: str, axes: int, **parameters: Tensor | None) -> Parameters:
    found = {}
    for key, x in parameters.items():
        if x is None:
            continue
        own = check_tensor(f"{key} of score {name}", x)
        if own.dim() not in (axes, axes + 1):
            raise ValueError(f"{key} of score {name} has shape {shape(own)}; it must have {axes} axes, or one more for heads")
        found[key] = own
    return found


def dot(scale: float = 1.0) -> Score:
    """scale q . k (Luong et al. 2015, eq. 8)."""
    return Score("dot", DOT, scale=float(scale))


def scaled_dot() -> Score:
    """q . k / sqrt(depth) (Vaswani et al. 2017, eq. 1)."""
    return Score("scaled_dot", DOT, scale=None)


def _times(x: Tensor, matrix: Tensor, name: str) -> Tensor:
    if x.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"{name} has shape {shape(matrix)}; its input has depth {x.shape[-1]}")
    return x @ matrix


def general(W: Tensor) -> Score:
    """q . W k, W: [query_depth, key_depth] (Luong et al. 2015, eq. 8)."""
    return Score("general", DOT, _given("general", 2, W=W), map_query=lambda q, p: _times(q, p["W"], "W"))


def _additive_query(q: Tensor, p: Parameters) -> Tensor:
    mapped = _times(q, p["W_q"].transpose(-2, -1), "W_q transposed") if "W_q" in p else q
    if "b" not in p:
        return mapped
    b = p["b"]
    return mapped + (b if b.dim() == 1 else b.unsqueeze(1))


def _additive_key(k: Tensor, p: Parameters) -> Tensor:
    return _times(k, p["W_k"].transpose(-2, -1), "W_k transposed") if "W_k" in p else k


def _additive(name: str, activation: int, v: Tensor, W_q: Tensor | None, W_k: Tensor | None,
              b: Tensor | None) -> Score:
    parameters = _given(name, 1, v=v, b=b) | _given(name, 2, W_q=W_q, W_k=W_k)
    return Score(name, ADDITIVE, parameters, map_query=_additive_query if {"W_q", "b"} & set(parameters) else None,
                 map_key=_additive_key if "W_k" in parameters else None, activation=activation)


def additive(v: Tensor, W_q: Tensor | None = None, W_k: Tensor | None = None, b: Tensor | None = None) -> Score:
    """v . tanh(W_q q + W_k k + b) (Bahdanau et al. 2015). v: [depth]; W_q: [depth, query_depth]; W_k: [depth,
    key_depth]; b: [depth]. Without W_q or W_k, queries or keys are taken as projected."""
    return _additive("additive", TANH, v, W_q, W_k, b)


def additive_sigmoid(v: Tensor, W_q: Tensor | None = None, W_k: Tensor | None = None,
                     b: Tensor | None = None) -> Score:
    """v . sigmoid(W_q q + W_k k + b); shapes as additive()."""
    return _additive("additive_sigmoid", SIGMOID, v, W_q, W_k, b)


def additive_relu(v: Tensor, W_q: Tensor | None = None, W_k: Tensor | None = None, b: Tensor | None = None) -> Score:
    """v . max(0, W_q q + W_k k + b); shapes as additive()."""
    return _additive("additive_relu", RELU, v, W_q, W_k, b)


def additive_leaky_relu(v: Tensor, W_q: Tensor | None = None, W_k: Tensor | None = None,
                        b: Tensor | None = None) -> Score:
    """v . leaky_relu(W_q q + W_k k + b), slope 0.2 (Brody et al. 2022, eq. 7, GATv2); shapes as additive()."""
    return _additive("additive_leaky_relu", LEAKY_RELU, v, W_q, W_k, b)


def _linear_query(q: Tensor, p: Parameters) -> Tensor:
    number = q @ p["w_q"].unsqueeze(-1)
    if "b" in p:
        number = number + (p["b"] if p["b"].dim() == 0 else p["b"].view(-1, 1, 1))
    return torch.cat([number, torch.ones_like(number)], -1)


def _linear_key(k: Tensor, p: Parameters) -> Tensor:
    number = k @ p["w_k"].unsqueeze(-1)
    return torch.cat([torch.ones_like(number), number], -1)


def linear(w_q: Tensor, w_k: Tensor, b: Tensor | None = None) -> Score:
    """w_q . q + w_k . k + b. w_q: [query_depth]; w_k: [key_depth]; b: one number."""
    parameters = _given("linear", 1, w_q=w_q, w_k=w_k) | _given("linear", 0, b=b)
    return Score("linear", DOT, parameters, _linear_query, _linear_key)


def squared_distance() -> Score:
    """-|q - k|^2 (Kim et al. 2021, eq. 6)."""
    return Score("squared_distance", SQUARED_DISTANCE)


def absolute_distance() -> Score:
    """-sum_a |q_a - k_a| (Kim et al. 2019)."""
    return Score("absolute_distance", ABSOLUTE_DISTANCE)


def _unit(x: Tensor) -> Tensor:
    # Dividing by the largest entry first prevents overflow and underflow of the squares.
    largest = x.detach().abs().amax(-1, keepdim=True)
    zero = largest == 0
    scaled = x / largest.masked_fill(zero, 1.0)
    squares = scaled.square().sum(-1, keepdim=True).masked_fill(zero, 1.0)
    return scaled * squares.rsqrt()


def _cosine_query(q: Tensor, p: Parameters) -> Tensor:
    unit = _unit(q)
    if "beta" not in p:
        return unit
    return unit * (p["beta"] if p["beta"].dim() == 0 else p["beta"].view(-1, 1, 1))


def cosine(beta: Tensor | None = None) -> Score:
    """beta q . k / (|q| |k|) (Graves et al. 2014, eq. 5-6). beta: one number, or one per head."""
    return Score("cosine", DOT, _given("cosine", 0, beta=beta), _cosine_query, lambda k, _: _unit(k))


WITHOUT_PARAMETERS = {one.name: one for one in (dot(), scaled_dot(), squared_distance(), absolute_distance(), cosine())}


def score(given: object) -> Score:
    """A score from a Score or the name of one without parameters."""
    if isinstance(given, Score):
        return given
    if isinstance(given, str) and given in WITHOUT_PARAMETERS:
        return WITHOUT_PARAMETERS[given]
    raise ValueError(f"score is {given!r}; it must be a score of attend.scores or one of "
                     f"{', '.join(WITHOUT_PARAMETERS)}")
